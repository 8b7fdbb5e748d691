//! The pages of somebody who has the document tools of one collection and nothing else, as a collection token does: its
//! documents, a search in them, and each of them to read.

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_base::Kind;

use super::{Answer, now, problem};
use crate::{
    Host, Request,
    fields::Fields,
    frame, links,
    render::{code, markdown},
    words,
};

/// Documents on a page.
const DOCUMENTS: u64 = 100;
/// Passages that a search shows, and how much of their text.
const PASSAGES: u64 = 30;
const TOKENS: u64 = 20_000;

/// The page for a path, or why there is none.
pub(super) fn show(host: &dyn Host, request: &Request, path: &[&str]) -> Answer {
    match path {
        [] | ["c"] => documents(host, request),
        ["search"] => search(host, request),
        ["d", id] => document(host, request, id),
        ["account"] => super::account::page(host, request),
        _ => Err(problem(
            Kind::Denied,
            "A collection token sees the documents of its collection, and nothing else",
        )),
    }
}

fn search_form(text: &str) -> Markup {
    html! {
        form.search action="/search" role="search" {
            input.big type="search" name="q" value=(text) aria-label="Search for" placeholder="Search these documents" autocomplete="off" autofocus;
            button.primary { "Search" }
        }
    }
}

fn documents(host: &dyn Host, request: &Request) -> Answer {
    let offset = request.query("offset").and_then(|offset| offset.parse::<u64>().ok()).unwrap_or(0);
    let listed = host.call("list_documents_tool", json!({ "limit": DOCUMENTS, "offset": offset }))?;
    let all = listed.value.as_array().map_or(&[][..], Vec::as_slice);
    let total = listed.about.get("total").and_then(Value::as_u64).unwrap_or(offset + all.len() as u64);
    let after = offset + all.len() as u64;
    let to = |offset: u64| links::with("/", &[("offset", &offset.to_string())]);
    Ok(frame::page(
        host,
        request,
        "Documents",
        html! {
            h1 { "Documents" }
            (search_form(""))
            p.note { "This token sees the documents of one collection: it can search and read them." }
            @if all.is_empty() { (frame::empty("No documents yet", html! { p { "The collection of this token is empty." } })) }
            @else { div.scroll { table.data {
                thead { tr { th scope="col" { "Title" } th scope="col" { "Type" } th scope="col" { "Stored" } } }
                tbody { @for document in all { tr {
                    td { a href=(links::document(document.text("id"))) { (words::plain(document.text("title"))) } }
                    td.note { (kind(document.text("title"), document.text("document_type"))) }
                    td { (frame::when(document.text("created_at"), now())) }
                } } }
            } } }
            p.pager {
                @if offset > 0 { a href=(to(offset.saturating_sub(DOCUMENTS))) rel="prev" { "Before" } }
                @if !all.is_empty() { span.note { (words::count(offset + 1)) "–" (words::count(after)) " of " (words::count(total)) } }
                @if after < total && !all.is_empty() { a href=(to(after)) rel="next" { "After" } }
            }
        },
    ))
}

/// What kind of document it is: what its author called it, or else the ending of its name.
fn kind(title: &str, told: &str) -> String {
    let ending = title.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_ending =
        (1..=5).contains(&ending.len()) && ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if told == "text" && is_ending { ending.to_uppercase() } else { words::plain(told) }
}

fn search(host: &dyn Host, request: &Request) -> Answer {
    let text = request.query("q").unwrap_or_default();
    let found = if text.is_empty() {
        json!({})
    } else {
        let asked = json!({ "query": text, "max_results": PASSAGES, "max_tokens": TOKENS });
        super::ask(host, "search_documents_tool", asked)?
    };
    let results = found.list("results");
    Ok(frame::page(
        host,
        request,
        "Search",
        html! {
            h1.quiet { "Search" }
            (search_form(text))
            @if text.is_empty() { (frame::empty("What are you looking for?", html! { p { "Words and questions find passages of the documents of this token's collection." } })) }
            @else if results.is_empty() { (frame::empty("Nothing found", html! { p { "Nothing fits " em { (words::plain(text)) } ". Try other or fewer words." } })) }
            @else { p.tally role="status" { (words::counted(found.number("total_results"), "passage", "passages")) } }
            ol.hits { @for passage in results {
                li.hit-item {
                    h2 { a href=(links::document(passage.text("document_id"))) { (words::plain(passage.text("title"))) } }
                    div.snippet { div.match { span { (words::clipped(&words::plain(passage.text("content")), 600)) } } }
                    p.actions { code { (passage.text("address")) } (frame::copy("Copy address", passage.text("address"))) }
                }
            } }
        },
    ))
}

fn document(host: &dyn Host, request: &Request, id: &str) -> Answer {
    let found = super::ask(host, "get_document_tool", json!({ "document_id": id }))?;
    let (title, kind) = (found.text("title"), found.text("document_type"));
    let content = found.text("content");
    let is_text = found.maybe("encoding").is_none();
    Ok(frame::page(
        host,
        request,
        title,
        html! {
            nav.crumbs aria-label="Place" { a href="/" { "Documents" } }
            h1 { (words::plain(title)) }
            p.where { (kind) " · version " (found.number("version")) " · stored " (frame::when(found.text("created_at"), now()))
                " · " code title=(found.text("hash")) { (words::short(found.text("hash"))) } (frame::copy("Copy hash", found.text("hash"))) }
            div.actions {
                a href=(links::raw(id, None)) { "Raw" }
                a href=(links::with(&format!("/raw/{}", links::encoded(id)), &[("download", "1")])) { "Download" }
            }
            @if !is_text { (frame::empty("No preview", html! { p { a href=(links::raw(id, None)) { "Open the file" } } })) }
            @else if kind == "markdown" { div.document { article.content { div.prose { (markdown::page(content, &markdown::Home::nowhere(), None).body) } } } }
            @else { (code::lines(content, 1, ("text/plain", title), None)) }
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_gave_a_type_is_told_by_its_ending() {
        for (title, told, shown) in [
            ("photo.png", "text", "PNG"),
            ("notes.md", "markdown", "markdown"),
            ("A title. With a sentence", "text", "text"),
            ("README", "text", "text"),
        ] {
            assert_eq!(kind(title, told), shown, "{title}");
        }
    }
}
