//! One document as what it is, with its past and its neighbours.

use std::ops::RangeInclusive;

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_tools::verbatim::has_wide_integer;

use super::{Answer, around, ask, deleted, invalid, now, reading, versions};
use crate::{Host, Reply, Request, fields::Fields, frame, links, words};

/// The ways to look at a document.
const VIEWS: [(&str, &str); 5] =
    [("read", "Read"), ("source", "Source"), ("versions", "Versions"), ("links", "Related"), ("map", "Map")];

/// A document and the version of it that is looked at.
pub(super) struct Shown<'a> {
    pub id: &'a str,
    pub document: &'a Value,
    pub described: &'a Value,
    /// The hash of an older version.
    pub hash: Option<&'a str>,
    pub marked: Option<RangeInclusive<u64>>,
}

impl Shown<'_> {
    pub(super) fn mime(&self) -> &str {
        self.document.text("mime_type")
    }

    /// The hash of the version that is looked at.
    pub(super) fn hash_or_present(&self) -> &str {
        self.hash.unwrap_or_else(|| self.document.text("hash"))
    }

    pub(super) fn path(&self) -> &str {
        self.document.text("path")
    }

    pub(super) fn read(
        &self,
        host: &dyn Host,
        first: u64,
        most: u64,
    ) -> Result<Value, shelf_tools::ErrorReply> {
        let mut arguments = json!({ "document_id": self.id, "first_line": first, "max_lines": most });
        if let Some(hash) = self.hash {
            arguments["hash"] = json!(hash);
        }
        ask(host, "read_text", arguments)
    }
}

/// The lines that an address marks: `10-20` or `10`.
pub(super) fn lines(request: &Request) -> Option<RangeInclusive<u64>> {
    let text = request.query("lines")?;
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    (first >= 1 && first <= last).then_some(first..=last)
}

pub(super) fn page(host: &dyn Host, request: &Request, id: &str) -> Answer {
    let described = match ask(host, "describe_document", json!({ "document_id": id })) {
        Err(error) if error.kind == Kind::NotFound => return deleted::page(host, request, id, error),
        described => described?,
    };
    let shown = Shown {
        id,
        document: &described["document"],
        described: &described,
        hash: request.query("version"),
        marked: lines(request),
    };
    if request.query("part") == Some("preview") {
        return Ok(Reply::html(200, reading::preview(host, request, &shown)?));
    }
    let view = request.query("view").unwrap_or("read");
    let (content, outline) = match view {
        "versions" => (versions::list(host, &shown), html! {}),
        "links" => (around::neighbours(host, &shown), html! {}),
        "map" => (around::map(host, &shown), html! {}),
        "source" => (reading::source(host, request, &shown)?, html! {}),
        _ => reading::reading(host, request, &shown)?,
    };
    let name = title(shown.document);
    Ok(frame::page(
        host,
        request,
        name,
        html! {
            (crumbs(shown.document))
            (head(host, &shown, name))
            nav.tabs aria-label="Views" { ul { @for (key, label) in VIEWS {
                @let here = key == view || (key == "read" && !VIEWS.iter().any(|(known, _)| *known == view));
                li { a href=(address(&shown, key)) aria-current=[here.then_some("page")] { (label)
                    @if key == "versions" { span.figure { (described.list("versions").len()) } } } }
            } } }
            div.document { article.content { (content) } (outline) }
        },
    ))
}

fn address(shown: &Shown<'_>, view: &str) -> String {
    let view = if view == "read" { "" } else { view };
    links::with(&links::document(shown.id), &[("view", view), ("version", shown.hash.unwrap_or_default())])
}

/// What a document is called.
pub(super) fn title(document: &Value) -> &str {
    let (title, name) =
        (document.text("title"), document.text("path").rsplit('/').next().unwrap_or_default());
    if title.is_empty() { name } else { title }
}

/// The way to a document: collection and folders.
fn crumbs(document: &Value) -> Markup {
    let (collection, path) = (document.text("collection"), document.text("path"));
    let folders: Vec<&str> = path.split('/').collect();
    let mut way = String::new();
    let mut parts = Vec::new();
    for folder in folders.iter().take(folders.len().saturating_sub(1)) {
        way.push_str(folder);
        way.push('/');
        if !folder.is_empty() {
            parts.push((*folder, way.clone()));
        }
    }
    html! {
        nav.crumbs aria-label="Place" {
            a href=(links::collection(collection, "")) { (words::plain(collection)) }
            @for (folder, way) in &parts { " / " a href=(links::collection(collection, way)) { (words::plain(folder)) } }
            " / " (words::plain(folders.last().copied().unwrap_or_default()))
        }
    }
}

fn head(host: &dyn Host, shown: &Shown<'_>, name: &str) -> Markup {
    let document = shown.document;
    let hash = shown.hash.unwrap_or_else(|| document.text("hash"));
    let tags = document.list("tags");
    html! {
        h1 { (words::plain(name)) }
        @if let Some(hash) = shown.hash {
            p.notice role="status" { "This is an older version, " code { (words::short(hash)) } ". "
                a href=(links::document(shown.id)) { "Show the present one" } }
        }
        p.where {
            (words::kind(shown.mime())) " · " (words::bytes(document.number("size")))
            " · version " (document.number("version")) " · stored " (frame::when(document.text("indexed_at"), now()))
            " · " code title=(hash) { (words::short(hash)) } (frame::copy("Copy hash", hash))
        }
        div.actions {
            a href=(links::raw(shown.id, shown.hash)) { "Raw" }
            a href={ (links::with(&format!("/raw/{}", shown.id), &[("version", shown.hash.unwrap_or_default()), ("download", "1")])) } { "Download" }
            @if host.may("graph") { a href=(links::with("/graph", &[("node", &format!("doc:{}", shown.id))])) { "Graph" } }
            (frame::copy("Copy link", &links::document(shown.id)))
            @if host.may("delete_document_tool") {
                details.inline { summary { "Delete" }
                    form method="post" action={ (links::document(shown.id)) "/delete" } {
                        (frame::proof(host))
                        p { "The document disappears from lists and searches. Its content stays until garbage collection frees it, so that you can undo this; snapshots that hold it keep it for good." }
                        button.danger { "Delete this document" }
                    }
                }
            }
        }
        div.tags {
            @for tag in tags.iter().filter_map(Value::as_str) {
                span.tag { a href=(links::with("/search", &[("tag", tag)])) { (words::plain(tag)) }
                    @if host.may("update") {
                        form method="post" action={ (links::document(shown.id)) "/tags" } {
                            (frame::proof(host)) input type="hidden" name="tag" value={ "-" (tag) };
                            button.link aria-label={ "Remove tag " (tag) } { "×" }
                        }
                    } }
            }
            @if host.may("update") {
                form.add method="post" action={ (links::document(shown.id)) "/tags" } {
                    (frame::proof(host))
                    input name="tag" placeholder="Add a tag" aria-label="Add a tag" maxlength="200" size="12"; button.link { "Add" }
                }
            }
        }
        (metadata_of(host, shown))
    }
}

/// What somebody noted about a document, to be read or changed in place.
fn metadata_of(host: &dyn Host, shown: &Shown<'_>) -> Markup {
    let none = serde_json::Map::new();
    let metadata = shown.document.get("metadata").and_then(Value::as_object).unwrap_or(&none);
    let may_change = host.may("update_document_tool") && shown.hash.is_none();
    if metadata.is_empty() && !may_change {
        return html! {};
    }
    html! {
        details.metadata { summary { "Metadata" span.figure { (metadata.len()) } }
            @if may_change {
                form method="post" action={ (links::document(shown.id)) "/metadata" } {
                    (frame::proof(host))
                    table.data { thead { tr { th scope="col" { "Name" } th scope="col" { "Value" } } }
                        tbody {
                            @for (key, value) in metadata { (metadata_row(key, &text_of(value))) }
                            (metadata_row("", ""))
                        } }
                    p { button { "Save" } " " span.note { "An empty name or value removes the row." } }
                }
            } @else {
                dl.facts { @for (key, value) in metadata { dt { (words::plain(key)) } dd { (words::plain(&text_of(value))) } } }
            }
        }
    }
}

fn metadata_row(key: &str, value: &str) -> Markup {
    let label = if key.is_empty() { "another" } else { key };
    html! { tr {
        td { input name="key" value=(key) aria-label={ "Name of " (label) } maxlength="200" placeholder=[key.is_empty().then_some("name")]; }
        td { input.wide name="value" value=(value) aria-label={ "Value of " (label) } placeholder=[key.is_empty().then_some("value")]; }
    } }
}

/// A value as it stands in a form.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The metadata that a form describes. What was not touched stays what it was, also if it is no text.
fn metadata_from(request: &Request, before: &Value) -> serde_json::Map<String, Value> {
    let rows = request.every("key").zip(request.every("value"));
    let rows = rows.filter(|(key, value)| !key.trim().is_empty() && !value.is_empty());
    rows.map(|(key, text)| {
        let old = before.get(key).filter(|old| !old.is_string());
        let value = match old {
            Some(old) if text_of(old) == text => old.clone(),
            // An integer that is too large for a number stays the text that it is.
            Some(_) if !has_wide_integer(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            _ => json!(text),
        };
        (key.trim().to_owned(), value)
    })
    .collect()
}

/// A change that a form asks for.
pub(super) fn change(host: &dyn Host, request: &Request, id: &str, action: &str) -> Answer {
    if action == "undelete" {
        return deleted::bring_back(host, request);
    }
    let described = ask(host, "describe_document", json!({ "document_id": id }))?;
    let document = &described["document"];
    let collection = document.text("collection");
    match action {
        "tags" => {
            let tag = request.field("tag").ok_or_else(|| invalid("write a tag"))?;
            let arguments = json!({ "name": document.text("path"), "hash": document.text("hash"), "collection": collection, "tags": [tag] });
            ask(host, "update", arguments)?;
            Ok(Reply::to(links::document(id)))
        }
        "metadata" => {
            let metadata = metadata_from(request, &document["metadata"]);
            ask(host, "update_document_tool", json!({ "document_id": id, "doc_metadata": metadata }))?;
            Ok(Reply::to(links::document(id)))
        }
        "delete" => {
            ask(host, "delete_document_tool", json!({ "document_id": id }))?;
            Ok(deleted::done(host, request, &[described]))
        }
        "restore" => versions::restore(host, request, &described),
        _ => Err(super::missing("there is no such action")),
    }
}
