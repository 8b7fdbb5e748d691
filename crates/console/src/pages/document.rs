//! One document as what it is, with its past and its neighbours.

use std::ops::RangeInclusive;

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{Answer, ask, invalid, now};
use crate::{
    Host, Reply, Request,
    fields::Fields,
    frame, links,
    render::{code, data, markdown, table},
    words,
};

/// Lines of a text on one page.
const LINES: u64 = 5_000;
/// Lines before and after a hit in a preview.
const AROUND: u64 = 12;

/// The ways to look at a document.
const VIEWS: [(&str, &str); 5] =
    [("read", "Read"), ("source", "Source"), ("versions", "Versions"), ("links", "Links"), ("map", "Map")];

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
    fn mime(&self) -> &str {
        self.document.text("mime_type")
    }

    fn path(&self) -> &str {
        self.document.text("path")
    }

    fn read(&self, host: &dyn Host, first: u64, most: u64) -> Result<Value, shelf_tools::ErrorReply> {
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
    let described = ask(host, "describe_document", json!({ "document_id": id }))?;
    let shown = Shown {
        id,
        document: &described["document"],
        described: &described,
        hash: request.query("version"),
        marked: lines(request),
    };
    if request.query("part") == Some("preview") {
        return Ok(Reply::html(200, preview(host, &shown)?));
    }
    let view = request.query("view").unwrap_or("read");
    let (content, outline) = match view {
        "versions" => (super::versions::list(host, &shown), html! {}),
        "links" => (neighbours(host, &shown), html! {}),
        "map" => (map(host, &shown), html! {}),
        "source" => (source(host, request, &shown)?, html! {}),
        _ => reading(host, request, &shown)?,
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
    let (tags, metadata) = (document.list("tags"), document.get("metadata").and_then(Value::as_object));
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
                        p { "The document disappears from lists and searches. Snapshots that hold it keep its content, and the same name can be stored again." }
                        button.danger { "Delete this document" }
                    }
                }
            }
        }
        div.tags {
            @for tag in tags.iter().filter_map(Value::as_str) {
                span.tag { a href=(links::with("/search", &[("tag", tag), ("q", "*")])) { (words::plain(tag)) }
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
        @if let Some(metadata) = metadata.filter(|metadata| !metadata.is_empty()) {
            details { summary { "Metadata" span.figure { (metadata.len()) } }
                dl.facts { @for (key, value) in metadata {
                    dt { (words::plain(key)) }
                    dd { (words::plain(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))) }
                } }
            }
        }
    }
}

/// The document as it is meant to be read, and its outline.
fn reading(
    host: &dyn Host,
    request: &Request,
    shown: &Shown<'_>,
) -> Result<(Markup, Markup), shelf_tools::ErrorReply> {
    let (mime, none) = (shown.mime(), html! {});
    let raw = links::raw(shown.id, shown.hash);
    let name = words::plain(title(shown.document));
    if mime.starts_with("image/") {
        return Ok((html! { figure.picture { img src=(raw) alt=(name); } }, none));
    }
    if mime.starts_with("audio/") {
        return Ok((html! { audio controls preload="metadata" src=(raw) {} }, none));
    }
    if mime.starts_with("video/") {
        return Ok((html! { video controls preload="metadata" src=(raw) {} }, none));
    }
    let text = match shown.read(host, first_line(request, shown), LINES) {
        Ok(text) => text,
        // A text that is too large to be read whole is still there to be downloaded.
        Err(error) if error.kind == shelf_base::Kind::Invalid && shown.document.number("size") > 1 << 20 => {
            return Ok((
                frame::empty(
                    "Too large to show",
                    html! { p { (words::plain(&error.message)) } p { a href=(raw) { "Download it" } } },
                ),
                none,
            ));
        }
        Err(error) => return Err(error),
    };
    if !text.flag("has_text") {
        let state = frame::empty(
            "No preview",
            html! {
                p { "Documents of the type " code { (mime) } " have no text to show." } p { a href=(raw) { "Download it" } }
            },
        );
        return Ok((state, none));
    }
    let whole = text.text("text");
    let is_whole = text.number("first_line") == 1 && !text.flag("truncated");
    if mime == "text/markdown" && is_whole {
        let rendered = markdown::page(whole, Some(shown.id), shown.marked.as_ref());
        return Ok((html! { div.prose { (rendered.body) } }, outline(&rendered.outline)));
    }
    if (mime == "text/csv" || mime == "text/tab-separated-values") && is_whole {
        return Ok((table::page(whole, mime), none));
    }
    if mime == "application/json"
        && is_whole
        && shown.marked.is_none()
        && let Some(tree) = data::page(whole)
    {
        return Ok((tree, none));
    }
    if mime == "text/html" {
        let frame = html! {
            details.sandbox { summary { "Show it rendered, without scripts" }
                iframe sandbox="" src=(links::with(&format!("/raw/{}", shown.id), &[("version", shown.hash.unwrap_or_default()), ("frame", "1")])) title=(name) loading="lazy" {} }
        };
        return Ok((html! { (frame) (by_lines(shown, &text, request)) }, none));
    }
    if !text.list("pages").is_empty() {
        return Ok((by_pages(shown, &text, request), page_list(&text)));
    }
    let symbols = if code::is_code(mime, shown.path()) { symbols(host, shown) } else { none };
    Ok((by_lines(shown, &text, request), symbols))
}

/// The exact text with line numbers.
fn source(host: &dyn Host, request: &Request, shown: &Shown<'_>) -> Result<Markup, shelf_tools::ErrorReply> {
    let text = shown.read(host, first_line(request, shown), LINES)?;
    if !text.flag("has_text") {
        return Ok(frame::empty("No text", html! { p { "This document has no text." } }));
    }
    Ok(by_lines(shown, &text, request))
}

/// Where a page of lines begins: as the address says, or so that the marked lines are on it.
fn first_line(request: &Request, shown: &Shown<'_>) -> u64 {
    let asked = request.query("from").and_then(|from| from.parse().ok());
    asked.unwrap_or_else(|| match &shown.marked {
        Some(marked) if *marked.start() > LINES => marked.start().saturating_sub(200).max(1),
        _ => 1,
    })
}

fn by_lines(shown: &Shown<'_>, text: &Value, request: &Request) -> Markup {
    html! {
        @if !text.flag("as_stored") { p.note { "This is the text that was extracted from the file." } }
        (code::lines(text.text("text"), text.number("first_line"), (shown.mime(), shown.path()), shown.marked.as_ref()))
        (more_lines(shown, text, request))
    }
}

/// The way to the lines before and after.
fn more_lines(shown: &Shown<'_>, text: &Value, request: &Request) -> Markup {
    let (first, last, total) =
        (text.number("first_line"), text.number("last_line"), text.number("total_lines"));
    if first == 1 && last >= total {
        return html! {};
    }
    let view = request.query("view").unwrap_or_default();
    let to = |from: u64| {
        let pairs =
            [("view", view), ("version", shown.hash.unwrap_or_default()), ("from", &from.to_string())];
        links::with(&links::document(shown.id), &pairs)
    };
    html! {
        p.pager {
            @if first > 1 { a href=(to(first.saturating_sub(LINES).max(1))) rel="prev" { "Lines before" } }
            span.note { "Lines " (words::count(first)) "–" (words::count(last)) " of " (words::count(total)) }
            @if last < total { a href=(to(last + 1)) rel="next" { "Lines after" } }
        }
    }
}

/// Extracted text, page by page.
fn by_pages(shown: &Shown<'_>, text: &Value, request: &Request) -> Markup {
    let starts: Vec<u64> = text.list("pages").iter().filter_map(Value::as_u64).collect();
    let first = text.number("first_line");
    let mut pages: Vec<(usize, Vec<(u64, &str)>)> = Vec::new();
    for (number, line) in (first..).zip(text.text("text").lines()) {
        let page = starts.partition_point(|start| *start <= number);
        match pages.last_mut() {
            Some((last, lines)) if *last == page => lines.push((number, line)),
            _ => pages.push((page, vec![(number, line)])),
        }
    }
    let is_marked = |number: u64| shown.marked.as_ref().is_some_and(|marked| marked.contains(&number));
    html! {
        p.note { "This is the text of the pages. The file itself has their look: " a href=(links::raw(shown.id, shown.hash)) { "download it" } "." }
        @for (page, lines) in &pages {
            section.page id={ "p" (page) } aria-label={ "Page " (page) } {
                h2.quiet { a href={ "#p" (page) } { "Page " (page) } }
                @for (number, line) in lines {
                    div.text-line.marked[is_marked(*number)] id={ "L" (number) } { (words::plain(line)) }
                }
            }
        }
        (more_lines(shown, text, request))
    }
}

fn page_list(text: &Value) -> Markup {
    let count = text.list("pages").len();
    html! {
        aside.outline aria-label="Pages" { h2 { "Pages" } ol.grid { @for page in 1..=count.min(400) { li { a href={ "#p" (page) } { (page) } } } } }
    }
}

fn outline(headings: &[markdown::Heading]) -> Markup {
    if headings.len() < 2 {
        return html! {};
    }
    let top = headings.iter().map(|heading| heading.level).min().unwrap_or(1);
    html! {
        aside.outline aria-label="Outline" { h2 { "On this page" }
            ul { @for heading in headings.iter().take(200) {
                li class={ "d" (heading.level.saturating_sub(top).min(3)) } { a href={ "#" (heading.anchor) } { (words::plain(&heading.text)) } }
            } }
        }
    }
}

/// The map of a document as a flat list: id, title, depth and node.
pub(super) fn nodes<'a>(nodes: &'a [Value], depth: usize, found: &mut Vec<(usize, &'a Value)>) {
    for node in nodes {
        if found.len() >= 1_000 {
            return;
        }
        found.push((depth, node));
        self::nodes(node.list("children"), depth + 1, found);
    }
}

/// The definitions of a file with code, beside it.
fn symbols(host: &dyn Host, shown: &Shown<'_>) -> Markup {
    if shown.hash.is_some() {
        return html! {};
    }
    let Ok(structure) = ask(host, "getStructure", json!({ "resource_id": shown.id })) else {
        return html! {};
    };
    let mut found = Vec::new();
    nodes(structure.list("nodes"), 0, &mut found);
    let place = |node: &Value| node["location"]["lines"].as_array().and_then(|lines| lines.first()?.as_u64());
    html! {
        @if found.len() > 1 {
            aside.outline aria-label="Outline" { h2 { "Outline" }
                ul { @for (depth, node) in found.iter().take(300) {
                    li class={ "d" (depth.min(&3)) } {
                        @match place(node) {
                            Some(line) => a href={ "#L" (line) } { (words::plain(node.text("title"))) },
                            None => (words::plain(node.text("title"))),
                        }
                    }
                } }
            }
        }
    }
}

/// The map of a document: what can be cited, with its address.
fn map(host: &dyn Host, shown: &Shown<'_>) -> Markup {
    let structure = match ask(host, "getStructure", json!({ "resource_id": shown.id })) {
        Ok(structure) => structure,
        Err(error) => return frame::empty("No map", html! { p { (words::plain(&error.message)) } }),
    };
    let mut found = Vec::new();
    nodes(structure.list("nodes"), 0, &mut found);
    let resource = structure.text("resource_id");
    html! {
        @if structure["metadata"].flag("source_changed") { p.notice { "The document has changed since this map was made." } }
        p.note { (words::counted(found.len() as u64, "part", "parts")) " can be cited. Each has an address that stays." }
        ul.map { @for (depth, node) in &found {
            li class={ "d" (depth.min(&5)) } {
                a href=(links::with("/cite", &[("resource", resource), ("node", node.text("id"))])) { (words::plain(node.text("title"))) }
                " " span.note { (node.text("type")) }
                @if !node.text("summary").is_empty() { div.note { (words::clipped(&words::plain(node.text("summary")), 160)) } }
            }
        } }
    }
}

/// What a document links to, and what links to it.
fn neighbours(host: &dyn Host, shown: &Shown<'_>) -> Markup {
    let key = format!("doc:{}", shown.id);
    let side = |reverse: bool| {
        ask(host, "graph", json!({ "node_key": key, "depth": 1, "reverse": reverse, "limit": 200 }))
    };
    let list = |found: Result<Value, shelf_tools::ErrorReply>, none: &str| match found {
        Err(error) => html! { p.note { (words::plain(&error.message)) } },
        Ok(found) => {
            let nodes = found.list("connected_nodes");
            let relation = |node: &Value| {
                let key = node.text("node_key");
                let edge = found
                    .list("edges")
                    .iter()
                    .find(|edge| edge.text("source") == key || edge.text("target") == key);
                edge.map_or_else(String::new, |edge| edge.text("relation").to_lowercase().replace('_', " "))
            };
            html! {
                @if nodes.is_empty() { p.note { (none) } }
                ul.plain { @for node in nodes {
                    li { span.relation { (relation(node)) } " " (super::graph::node_link(node))
                        @if let Some(path) = node.maybe("path") { span.note { " " (words::plain(path)) } } }
                } }
                @if found.flag("truncated") { p { a href=(links::with("/graph", &[("node", &key)])) { "All of them" } } }
            }
        }
    };
    html! {
        h2 { "What it leads to" } (list(side(false), "It links to, imports and calls nothing."))
        h2 { "What leads here" } (list(side(true), "Nothing links to it."))
    }
}

/// Some lines around a hit.
fn preview(host: &dyn Host, shown: &Shown<'_>) -> Result<Markup, shelf_tools::ErrorReply> {
    let mime = shown.mime();
    let first = shown.marked.as_ref().map_or(1, |marked| marked.start().saturating_sub(AROUND).max(1));
    let most =
        shown.marked.as_ref().map_or(40, |marked| marked.end().saturating_sub(first) + AROUND + 1).min(400);
    let body = if mime.starts_with("image/") {
        html! { figure.picture { img src=(links::raw(shown.id, None)) alt=""; } }
    } else {
        let text = shown.read(host, first, most)?;
        if mime == "text/markdown" {
            let marked =
                shown.marked.as_ref().map(|marked| marked.start() + 1 - first..=marked.end() + 1 - first);
            html! { div.prose { (markdown::page(text.text("text"), Some(shown.id), marked.as_ref()).body) } }
        } else {
            code::lines(text.text("text"), first, (mime, shown.path()), shown.marked.as_ref())
        }
    };
    Ok(html! {
        p.where { a href=(links::document(shown.id)) { (words::plain(title(shown.document))) } " " span.note { (words::plain(shown.path())) } }
        (body)
    })
}

/// A change that a form asks for.
pub(super) fn change(host: &dyn Host, request: &Request, id: &str, action: &str) -> Answer {
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
        "delete" => {
            ask(host, "delete_document_tool", json!({ "document_id": id }))?;
            let folder = document
                .text("path")
                .rsplit_once('/')
                .map_or_else(String::new, |(folder, _)| format!("{folder}/"));
            Ok(Reply::to(links::collection(collection, &folder)))
        }
        "restore" => super::versions::restore(host, request, &described),
        _ => Err(super::missing("there is no such action")),
    }
}
