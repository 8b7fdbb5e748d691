//! A document as what it is: rendered, with its lines, by pages, or played.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{
    around, ask,
    document::{Shown, title},
    player, sheets,
};
use crate::{
    Host, Request,
    fields::Fields,
    frame, links,
    render::{code, data, markdown, table},
    words,
};

/// Lines of a text on one page.
const LINES: u64 = 5_000;
/// Lines of a table that are read for its pages.
const ROWS: u64 = 50_000;
/// Bytes of a file that are shown as they were written.
const WRITTEN: u64 = 2 << 20;
/// Lines before and after a hit in a preview.
const AROUND: u64 = 12;

/// The document as it is meant to be read, and its outline.
pub(super) fn reading(
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
    if mime.starts_with("audio/") || mime.starts_with("video/") {
        return Ok(player::recording(host, request, shown));
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
    if text.number("total_lines") == 0 && text.list("pages").is_empty() {
        let words = if shown.document.number("size") == 0 {
            "This document is empty."
        } else {
            "There is no text in this document."
        };
        return Ok((frame::empty("No text", html! { p { (words) } }), none));
    }
    let is_whole = text.number("first_line") == 1 && !text.flag("truncated");
    if mime == "text/markdown" && is_whole {
        let rendered = markdown::page(whole, &home(request, shown), shown.marked.as_ref());
        return Ok((html! { div.prose { (rendered.body) } }, outline(&rendered.outline)));
    }
    if mime == "text/csv" || mime == "text/tab-separated-values" {
        let more = if is_whole { Value::Null } else { shown.read(host, 1, ROWS)? };
        let rows = if is_whole { &text } else { &more };
        // More lines than that are read as they are.
        if !rows.flag("truncated") {
            return Ok((rows_of(shown, request, rows.text("text")), none));
        }
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
        let pages =
            html! { (sheets::pages(host, request, shown, &text)) (more_lines(shown, &text, request)) };
        return Ok((pages, sheets::list(&text)));
    }
    let symbols = match code::is_code(mime, shown.path()) {
        true if is_whole => symbols(host, shown),
        // To find the definitions of a long file takes longer than to show a part of it.
        true if host.may("getStructure") && shown.hash.is_none() => {
            let map = links::with(&links::document(shown.id), &[("view", "map")]);
            html! { aside.outline aria-label="Outline" { h2 { "Outline" } p { a href=(map) { "All definitions" } } } }
        }
        _ => none,
    };
    Ok((by_lines(shown, &text, request), symbols))
}

/// Where the links of a document start from.
fn home<'a>(request: &'a Request, shown: &'a Shown<'_>) -> markdown::Home<'a> {
    markdown::Home::of(shown.id, &request.base_url)
}

/// The exact text with line numbers.
pub(super) fn source(
    host: &dyn Host,
    request: &Request,
    shown: &Shown<'_>,
) -> Result<Markup, shelf_tools::ErrorReply> {
    let text = shown.read(host, first_line(request, shown), LINES)?;
    let is_written = shown.mime().starts_with("text/") || shown.mime() == "image/svg+xml";
    if is_written && !text.flag("as_stored") {
        return written(host, request, shown);
    }
    if !text.flag("has_text") {
        return Ok(frame::empty("No text", html! { p { "This document has no text." } }));
    }
    Ok(by_lines(shown, &text, request))
}

/// A file of text from which other text is extracted, such as a page of HTML: as it was written.
fn written(host: &dyn Host, request: &Request, shown: &Shown<'_>) -> Result<Markup, shelf_tools::ErrorReply> {
    let asked = json!({ "hash": shown.hash_or_present(), "name": shown.path(),
        "collection": shown.document.text("collection"), "include_content": true, "offset": 0, "length": WRITTEN });
    let got = ask(host, "get", asked)?;
    if got.text("encoding") == "base64" {
        return Ok(frame::empty("No text", html! { p { "This file is not text." } }));
    }
    let lines: Vec<&str> = got.text("content").lines().collect();
    let first = first_line(request, shown).clamp(1, lines.len().max(1) as u64);
    let here = lines.get(first as usize - 1..).unwrap_or_default();
    let here = &here[..here.len().min(LINES as usize)];
    let part = json!({ "text": here.join("\n"), "first_line": first, "as_stored": true,
        "last_line": first + here.len() as u64 - u64::from(!here.is_empty()), "total_lines": lines.len() });
    Ok(html! {
        (by_lines(shown, &part, request))
        @if got.flag("truncated") { p.note { "Only the first " (words::bytes(WRITTEN)) " are shown. " a href=(links::raw(shown.id, shown.hash)) { "The file itself" } " has all of it." } }
    })
}

/// A page of the rows of a table.
fn rows_of(shown: &Shown<'_>, request: &Request, text: &str) -> Markup {
    let from = request.query("row").and_then(|row| row.parse::<usize>().ok()).unwrap_or(1).max(1);
    let to = |row: usize| {
        let row = if row <= 1 { String::new() } else { row.to_string() };
        links::with(&links::document(shown.id), &[("version", shown.hash.unwrap_or_default()), ("row", &row)])
    };
    table::page(text, shown.mime(), from, &to)
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

/// The definitions of a file with code, beside it.
fn symbols(host: &dyn Host, shown: &Shown<'_>) -> Markup {
    if shown.hash.is_some() {
        return html! {};
    }
    let Ok(structure) = ask(host, "getStructure", json!({ "resource_id": shown.id })) else {
        return html! {};
    };
    let mut found = Vec::new();
    around::nodes(structure.list("nodes"), 0, &mut found);
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

/// Some lines around a hit.
pub(super) fn preview(
    host: &dyn Host,
    request: &Request,
    shown: &Shown<'_>,
) -> Result<Markup, shelf_tools::ErrorReply> {
    let mime = shown.mime();
    let first = shown.marked.as_ref().map_or(1, |marked| marked.start().saturating_sub(AROUND).max(1));
    let most =
        shown.marked.as_ref().map_or(40, |marked| marked.end().saturating_sub(first) + AROUND + 1).min(400);
    let body = if mime.starts_with("image/") {
        html! { figure.picture { img src=(links::raw(shown.id, None)) alt=""; } }
    } else if mime.starts_with("audio/") || mime.starts_with("video/") {
        player::player(&links::raw(shown.id, None), mime, None)
    } else {
        let text = shown.read(host, first, most)?;
        let page =
            shown.marked.as_ref().and_then(|marked| sheets::pages_of(&text, marked)).map(|(page, _)| page);
        if mime == "application/pdf"
            && host.may("page_image")
            && let Some(page) = page
        {
            sheets::sheet(shown.id, shown.hash_or_present(), page, sheets::region(request.query("box")))
        } else if mime == "text/markdown" {
            let marked =
                shown.marked.as_ref().map(|marked| marked.start() + 1 - first..=marked.end() + 1 - first);
            html! { div.prose { (markdown::page(text.text("text"), &home(request, shown), marked.as_ref()).body) } }
        } else {
            code::lines(text.text("text"), first, (mime, shown.path()), shown.marked.as_ref())
        }
    };
    Ok(html! {
        p.where { a href=(links::document(shown.id)) { (words::plain(title(shown.document))) } " " span.note { (words::plain(shown.path())) } }
        (body)
    })
}
