//! Collections and their folders.

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_tools::ErrorReply;

use super::{Answer, ask, deleted, invalid, now};
use crate::{Host, Reply, Request, fields::Fields, frame, links, words};

/// Documents on a page.
const DOCUMENTS: u64 = 100;
/// Documents that a filter shows.
const FILTERED: usize = 500;
/// Characters of a filter.
const FILTER_CHARS: usize = 60;
/// The columns that documents can be sorted by.
const SORTS: [(&str, &str); 3] = [("name", "Name"), ("size", "Size"), ("indexed", "Stored")];

pub(super) fn collections(host: &dyn Host, request: &Request) -> Answer {
    all_of_them(host, request, None)
}

/// All collections, with the reason why one could not be made.
fn all_of_them(host: &dyn Host, request: &Request, refusal: Option<&ErrorReply>) -> Answer {
    let found = ask(host, "list_collections", json!({ "limit": 1_000 }))?;
    let all = found.list("collections");
    Ok(frame::with_status(
        host,
        request,
        refusal.map_or(200, |error| error.kind.row().status),
        "Collections",
        html! {
            h1 { "Collections" }
            @if let Some(error) = refusal { p.refusal role="alert" { (frame::told(&error.message)) } }
            @if all.is_empty() { (frame::empty("No collections yet", html! { p { "The first document makes the first collection." } })) }
            @else { div.scroll { table.data {
                thead { tr { th scope="col" { "Name" } th.figure scope="col" { "Documents" } th.figure scope="col" { "Size" } th.figure scope="col" { "Snapshots" } th scope="col" { "Last stored" } } }
                tbody { @for shelf in all { tr {
                    td { a href=(links::collection(shelf.text("name"), "")) { (words::plain(shelf.text("name"))) } @if shelf.text("kind") == "book" { span.note { " book" } } }
                    td.figure { (words::count(shelf.number("document_count"))) }
                    td.figure { (words::bytes(shelf.number("bytes"))) }
                    td.figure { (words::count(shelf.number("snapshot_count"))) }
                    td { @if let Some(at) = shelf.maybe("updated_at") { (frame::when(at, now())) } }
                } } }
            } } }
            @if found.maybe("next_cursor").is_some() { p.note { "Only the first collections are shown." } }
            @if host.may("create_collection_tool") {
                form.filters id="make" method="post" action="/c" { (frame::proof(host)) label { "New collection " input name="name" required maxlength="200" value=(request.field("name").unwrap_or_default()); } button { "Make it" } }
            }
        },
    ))
}

/// Makes a collection.
pub(super) fn create(host: &dyn Host, request: &Request) -> Answer {
    let name = request.field("name").ok_or_else(|| invalid("write a name for the collection"))?;
    match ask(host, "create_collection_tool", json!({ "name": name })) {
        Ok(_) => Ok(Reply::to(links::collection(name, ""))),
        Err(error) => all_of_them(host, request, Some(&error)),
    }
}

pub(super) fn folder(host: &dyn Host, request: &Request, collection: &str) -> Answer {
    let (folder, offset) =
        (request.query("folder").unwrap_or_default(), request.query("offset").unwrap_or("0"));
    let sort =
        SORTS.iter().map(|(key, _)| *key).find(|key| request.query("sort") == Some(key)).unwrap_or("name");
    let order = if request.query("order") == Some("desc") { "desc" } else { "asc" };
    let offset: u64 = offset.parse().map_err(|_| invalid("offset must be a number"))?;
    // In the tree a folder that holds nothing but one folder is passed through; its own page shows it as it is.
    let exact = request.query("part") != Some("folders");
    let asked = json!({ "collection": collection, "folder": folder, "exact": exact, "sort_by": sort, "sort_order": order, "limit": DOCUMENTS, "offset": offset });
    if let Some(find) = request.query("find").map(str::trim).filter(|find| !find.is_empty()) {
        return filtered(host, request, collection, (folder, find), (sort, order));
    }
    let found = ask(host, "browse", asked)?;
    let place = found.text("folder");
    if request.query("part") == Some("folders") {
        return Ok(Reply::html(200, folder_rows(collection, Some(folder), &found)));
    }
    let to = |sort: &str, order: &str, offset: u64| {
        let offset = if offset == 0 { String::new() } else { offset.to_string() };
        links::with(
            &format!("/c/{}", links::encoded(collection)),
            &[
                ("folder", place),
                ("sort", if sort == "name" { "" } else { sort }),
                ("order", if order == "asc" { "" } else { order }),
                ("offset", &offset),
            ],
        )
    };
    let (folders, documents, total) = (found.list("folders"), found.list("documents"), found.number("total"));
    let is_empty = folders.is_empty() && documents.is_empty() && offset == 0;
    Ok(frame::page(
        host,
        request,
        collection,
        html! {
            (crumbs(collection, place))
            h1 { (words::plain(place.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(collection))) }
            p.where { (words::counted(found.number("folder_count"), "folder", "folders")) ", " (words::counted(total, "document", "documents")) " here · "
                a href=(links::with("/search", &[("collection", collection)])) { "Search" } " · "
                a href=(links::with("/snapshots", &[("collection", collection)])) { "Snapshots" } " · "
                a href=(links::with("/activity", &[("collection", collection)])) { "Activity" }
                @if host.may("archive") && !is_empty { " · " a data-act="" href=(links::with(&format!("/c/{}/zip", links::encoded(collection)), &[("folder", place)])) { "Download as ZIP" } } }
            @if host.may("add") { (super::upload::area(host, collection, place)) }
            @if is_empty { (frame::empty("Nothing here", html! { p { @if place.is_empty() { "This collection has no documents." } @else { "This folder does not exist, or is empty." } } })) }
            @if !is_empty { (filter_form(collection, place, "")) }
            @if !folders.is_empty() { div.scroll { table.data.folders {
                thead { tr { th scope="col" { "Folder" } th.figure scope="col" { "Documents" } th.figure scope="col" { "Size" } } }
                tbody { (folder_rows(collection, None, &found)) }
            } } }
            @if found.flag("folders_truncated") { p.note { "Only the first folders are shown." } }
            @if !documents.is_empty() { (document_table(host, collection, documents, &to, (sort, order))) }
            p.pager {
                @if offset > 0 { a href=(to(sort, order, offset.saturating_sub(DOCUMENTS))) rel="prev" { "Before" } }
                @if offset > 0 || found.get("next_offset").is_some() { span.note { (words::count(offset + 1)) "–" (words::count(offset + documents.len() as u64)) " of " (words::count(total)) } }
                @if let Some(next) = found.get("next_offset").and_then(Value::as_u64) { a href=(to(sort, order, next)) rel="next" { "After" } }
            }
        },
    ))
}

/// The folders of a folder, as rows of a tree: where scripts run, each row opens in place, and `opened` is the one that was.
fn folder_rows(collection: &str, opened: Option<&str>, found: &Value) -> Markup {
    let place = found.text("folder");
    // A folder that holds nothing but one folder is passed through, and its name is said here.
    let stem = opened.unwrap_or(place).trim_end_matches('/');
    let through = place.strip_prefix(stem).unwrap_or(place).trim_start_matches('/');
    let own = opened.map_or(0, |_| found.number("total"));
    html! {
        @for inner in found.list("folders") {
            @let name = inner.text("name");
            @let way = format!("{place}{name}/");
            @let part = links::with(&format!("/c/{}", links::encoded(collection)), &[("folder", &way), ("part", "folders")]);
            tr data-folder=(part) {
                td { a href=(links::collection(collection, &way)) { (words::plain(&format!("{through}{name}"))) "/" } }
                td.figure { (words::count(inner.number("document_count"))) }
                td.figure { (words::bytes(inner.number("bytes"))) }
            }
        }
        @if own > 0 { tr.own {
            td colspan="3" { a href=(links::collection(collection, place)) { @if !through.is_empty() { (words::plain(through)) " " } (words::counted(own, "document", "documents")) } }
        } }
    }
}

fn filter_form(collection: &str, place: &str, find: &str) -> Markup {
    html! {
        form.filters role="search" action={ "/c/" (links::encoded(collection)) } {
            @if !place.is_empty() { input type="hidden" name="folder" value=(place); }
            label { "Filter by name " input type="search" name="find" value=(find) maxlength=(FILTER_CHARS); } button { "Filter" }
        }
    }
}

/// A pattern for names that contain a text, in small letters or capitals.
fn pattern(place: &str, find: &str) -> String {
    let letter = |each: char| match each {
        each if each.is_ascii_alphabetic() => {
            format!("[{}{}]", each.to_ascii_lowercase(), each.to_ascii_uppercase())
        }
        '*' | '?' | '[' | ']' | '{' | '}' | '!' => format!("[{each}]"),
        '/' | '\\' => "?".to_owned(),
        each => each.to_string(),
    };
    let exactly = |each: char| match each {
        '*' | '?' | '[' | ']' | '{' | '}' => format!("[{each}]"),
        '\\' => "?".to_owned(),
        each => each.to_string(),
    };
    let place: String = place.chars().map(exactly).collect();
    let find: String = find.chars().take(FILTER_CHARS).map(letter).collect();
    format!("{place}**/*{find}*")
}

/// The documents of a folder, and of all folders below it, whose names contain a text.
fn filtered(
    host: &dyn Host,
    request: &Request,
    collection: &str,
    (place, find): (&str, &str),
    (sort, order): (&str, &str),
) -> Answer {
    let asked = json!({ "collection": collection, "pattern": pattern(place, find), "sort_by": sort, "sort_order": order, "limit": FILTERED });
    let found = ask(host, "list", asked)?;
    // A pattern also fits below folders of the same name elsewhere.
    let documents: Vec<Value> =
        found.list("documents").iter().filter(|one| one.text("path").starts_with(place)).cloned().collect();
    let is_cut = found.maybe("next_cursor").is_some();
    let to = |sort: &str, order: &str, _: u64| {
        let pairs = [("folder", place), ("find", find), ("sort", sort), ("order", order)];
        links::with(&format!("/c/{}", links::encoded(collection)), &pairs)
    };
    Ok(frame::page(
        host,
        request,
        collection,
        html! {
            (crumbs(collection, place))
            h1 { "Names with “" (words::plain(find)) "”" }
            (filter_form(collection, place, find))
            p.tally role="status" { (words::counted(documents.len() as u64, "document", "documents")) @if is_cut { ", and more: write more of the name" } " · "
                a href=(links::collection(collection, place)) { "All of the folder" } }
            @if documents.is_empty() { (frame::empty("No name fits", html! { p { "Names of documents were looked at, not what is in them. " a href=(links::with("/search", &[("q", find), ("collection", collection)])) { "Search their content" } } })) }
            @else { (document_table(host, collection, &documents, &to, (sort, order))) }
        },
    ))
}

fn crumbs(collection: &str, folder: &str) -> Markup {
    let mut way = String::new();
    let mut parts = Vec::new();
    for part in folder.split_terminator('/') {
        way.push_str(part);
        way.push('/');
        if !part.is_empty() {
            parts.push((part, way.clone()));
        }
    }
    html! {
        nav.crumbs aria-label="Place" { a href="/c" { "Collections" } " / " a href=(links::collection(collection, "")) { (words::plain(collection)) }
            @for (part, way) in &parts { " / " a href=(links::collection(collection, way)) { (words::plain(part)) } } }
    }
}

fn document_table(
    host: &dyn Host,
    collection: &str,
    documents: &[Value],
    to: &dyn Fn(&str, &str, u64) -> String,
    (sort, order): (&str, &str),
) -> Markup {
    let may_choose = host.may("update") || host.may("delete_document_tool");
    let now = now();
    html! {
        form method="post" action={ "/c/" (links::encoded(collection)) "/chosen" } {
            (frame::proof(host)) input type="hidden" name="back" value=(to(sort, order, 0));
            div.scroll { table.data {
                thead { tr {
                    @if may_choose { th { input type="checkbox" data-all="" aria-label="Choose all"; } }
                    @for (key, label) in SORTS {
                        @let turned = if key == sort && order == "asc" { "desc" } else { "asc" };
                        th scope="col" class=[(key == "size").then_some("figure")] aria-sort=[(key == sort).then_some(if order == "asc" { "ascending" } else { "descending" })] {
                            a href=(to(key, turned, 0)) { (label) @if key == sort { @if order == "asc" { " ↑" } @else { " ↓" } } } }
                    }
                    th scope="col" { "Type" } th scope="col" { "Tags" }
                } }
                tbody { @for document in documents { @let id = document.text("document_id"); tr {
                    @if may_choose { td { input type="checkbox" name="id" value=(id) aria-label={ "Choose " (words::plain(document.text("name"))) }; } }
                    td.name { a href=(links::document(id)) { (words::plain(super::document::title(document))) }
                        @if document.text("title") != document.text("name") && !document.text("title").is_empty() { br; span.note { (words::plain(document.text("name"))) } } }
                    td.figure { (words::bytes(document.number("size"))) }
                    td { (frame::when(document.text("indexed_at"), now)) }
                    td.note { (words::kind(document.text("mime_type"))) }
                    td.some-tags { @for tag in document.list("tags").iter().filter_map(Value::as_str).take(5) { span.tag { (words::plain(tag)) } " " } }
                } } }
            } }
            @if may_choose { p.filters {
                @if host.may("update") { label { "Tag the chosen " input name="tag" size="12" maxlength="200"; } button name="do" value="tag" { "Add tag" } }
                @if host.may("delete_document_tool") { button.danger name="do" value="delete" { "Delete the chosen…" } }
            } }
        }
    }
}

/// Makes a ZIP file of a folder and goes to it.
pub(super) fn zip(host: &dyn Host, request: &Request, collection: &str) -> Answer {
    let mut asked = json!({ "collection": collection });
    if let Some(folder) = request.query("folder") {
        asked["folder"] = json!(folder);
    }
    let made = ask(host, "archive", asked)?;
    Ok(Reply::to(links::local(made.text("archive_url"), &request.base_url)))
}

/// Does something with the documents that were chosen; deleting asks first.
pub(super) fn chosen(host: &dyn Host, request: &Request, collection: &str) -> Answer {
    let ids: Vec<&str> = request.fields("id").take(DOCUMENTS as usize).collect();
    if ids.is_empty() {
        return Err(invalid("choose some documents first"));
    }
    match request.field("do") {
        Some("tag") => {
            let tag =
                request.field("tag").ok_or_else(|| invalid("write the tag that the documents should get"))?;
            for id in ids {
                let described = ask(host, "describe_document", json!({ "document_id": id }))?;
                let document = &described["document"];
                ask(
                    host,
                    "update",
                    json!({ "name": document.text("path"), "hash": document.text("hash"), "collection": document.text("collection"), "tags": [tag] }),
                )?;
            }
            Ok(Reply::to(links::own(request.field("back"))))
        }
        Some("delete") if request.field("sure").is_some() => {
            let described: Vec<Value> = ids
                .iter()
                .map(|id| ask(host, "describe_document", json!({ "document_id": id })))
                .collect::<Result<_, _>>()?;
            for id in ids {
                ask(host, "delete_document_tool", json!({ "document_id": id }))?;
            }
            Ok(deleted::done(host, request, &described))
        }
        Some("delete") => {
            let described: Vec<Value> = ids
                .iter()
                .map(|id| ask(host, "describe_document", json!({ "document_id": id })))
                .collect::<Result<_, _>>()?;
            Ok(frame::page(
                host,
                request,
                "Delete documents",
                html! {
                    h1 { "Delete " (words::counted(ids.len() as u64, "document", "documents")) "?" }
                    p { "They disappear from lists and searches. Their content stays until garbage collection frees it, so that you can undo this; snapshots that hold them keep it for good." }
                    ul { @for found in &described { li { (words::plain(found["document"].text("path"))) " " span.note { (words::bytes(found["document"].number("size"))) } } } }
                    form method="post" {
                        (frame::proof(host)) @for id in &ids { input type="hidden" name="id" value=(id); }
                        input type="hidden" name="do" value="delete"; input type="hidden" name="sure" value="1";
                        button.danger { "Delete them" } " " a href=(links::collection(collection, "")) { "Keep them" }
                    }
                },
            ))
        }
        _ => Err(invalid("choose what to do with the documents")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_pattern_that_means_its_characters() {
        assert_eq!(pattern("", "a1"), "**/*[aA]1*");
        assert_eq!(pattern("x [y]/", "*é"), "x [[]y[]]/**/*[*]é*");
        assert_eq!(pattern("", "a/b"), "**/*[aA]?[bB]*");
    }

    #[test]
    fn folders_that_were_passed_through_are_named() {
        let found = json!({ "folder": "a/b/c/", "total": 2, "folders": [{ "name": "d", "document_count": 3, "bytes": 9 }] });
        let rows = folder_rows("x", Some("a/"), &found).into_string();
        assert!(
            rows.contains(">b/c/d/</a>") && rows.contains("folder=a%2Fb%2Fc%2Fd%2F&amp;part=folders"),
            "{rows}"
        );
        assert!(rows.contains("b/c/ 2 documents"), "{rows}");
        let page = folder_rows("x", None, &found).into_string();
        assert!(
            page.contains(">d/</a>") && !page.contains("documents"),
            "they stand below the folders: {page}"
        );
    }
}
