//! Evidence beside its source: what an address or a node stands for, and whether the source has changed since.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{Answer, ask};
use crate::{Host, Request, fields::Fields, frame, links, render::code, words};

/// Lines around the evidence.
const AROUND: u64 = 8;

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    let (address, resource, node) =
        (request.query("address"), request.query("resource"), request.query("node"));
    let asked = match (address, resource, node) {
        (Some(address), ..) => Some(json!({ "address": address.trim(), "include_content": true })),
        (None, Some(resource), Some(node)) => {
            Some(json!({ "resource_id": resource, "node_id": node, "include_content": true }))
        }
        _ => None,
    };
    let body = match asked {
        None => entrance(host),
        Some(arguments) => match ask(host, "resolve", arguments) {
            Ok(found) => evidence(host, request, &found),
            Err(error) => frame::empty(
                "No evidence",
                html! { p { (words::plain(&error.message)) } @for hint in &error.hints { p { (words::plain(hint)) } } },
            ),
        },
    };
    Ok(frame::page(
        host,
        request,
        "Evidence",
        html! {
            h1 { "Evidence" }
            form.search { input.big name="address" value=(address.unwrap_or_default()) aria-label="Citation address" placeholder="text://id#lines=3-9" spellcheck="false" autocomplete="off"; button.primary { "Show" } }
            (body)
        },
    ))
}

fn entrance(host: &dyn Host) -> Markup {
    let found = ask(host, "listResources", json!({})).unwrap_or_default();
    let all = found.list("resources");
    html! {
        p { "Paste a citation address, such as one from a search hit or from an agent's answer, and see what it stands for." }
        @if !all.is_empty() { h2 { "Resources" } ul.plain { @for id in all.iter().filter_map(Value::as_str).take(200) {
            li { a href=(links::with("/cite", &[("address", &format!("doc://{id}"))])) { (words::plain(id)) } }
        } } }
    }
}

fn evidence(host: &dyn Host, request: &Request, found: &Value) -> Markup {
    let (node, address) = (&found["node"], found.text("address"));
    let source = source_of(host, found.text("resource_id"));
    // The address of the server may be another one for the browser than for the tool; the path is the same.
    let url =
        found.maybe("evidence_url").map(|url| url.strip_prefix(request.base_url.as_str()).unwrap_or(url));
    let mime = found.text("mime_type");
    let changed = found.flag("source_changed");
    html! {
        p.where { code { (address) } (frame::copy("Copy address", address)) @if let Some(text) = found.maybe("content") { (frame::copy("Copy quotation", &format!("> {}\n\n— {address}", text.trim().replace('\n', "\n> ")))) } }
        @if changed { p.notice role="status" { strong.bad { "The source has changed" } " since it was mapped. The evidence is of the content that was mapped." } }
        @else { p.note { span.good { "✓" } " The source still has the content that is cited." } }
        div.beside {
            section aria-labelledby="evidence" {
                h2 id="evidence" { (words::plain(node.maybe("title").filter(|title| !title.is_empty()).unwrap_or("Evidence"))) }
                @match (found.maybe("content"), url) {
                    (Some(text), _) => blockquote.evidence { (words::plain(text)) },
                    (None, Some(url)) if mime.starts_with("image/") => figure.picture { img src=(url) alt="The cited region"; },
                    (None, Some(url)) if mime.starts_with("audio/") => audio controls src=(url) {},
                    (None, Some(url)) if mime.starts_with("video/") => video controls src=(url) {},
                    (None, Some(url)) => p { a href=(url) { "Download the evidence" } " " span.note { (mime) " · " (words::bytes(found.number("size"))) } },
                    (None, None) => p.note { "There is nothing to cut out; the address stands for the whole." },
                }
                @if found.maybe("content").is_some() && let Some(url) = url { p.actions { a href=(url) { "The evidence as a file" } span.note { (mime) } } }
                dl.facts {
                    @if let Some(kind) = node.maybe("type") { dt { "Kind" } dd { (kind) } }
                    dt { "Modality" } dd { (found.text("modality")) }
                    @if let Some(summary) = node.maybe("summary") { dt { "Summary" } dd { (words::plain(summary)) } }
                    @if let Some((_, hash)) = &source { dt { "Hash" } dd { code { (hash) } } }
                }
            }
            section aria-labelledby="context" { h2 id="context" { "In its source" } (context(host, source.as_ref(), &place(address, &node["location"]))) }
        }
    }
}

/// The lines or pages that an address names itself, which may be fewer than those of the node around them.
fn place(address: &str, location: &Value) -> Value {
    let named = address.split_once('#').and_then(|(_, place)| place.split_once('='));
    let Some((name @ ("lines" | "pages"), range)) = named else { return location.clone() };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) => json!({ name: [first, last] }),
        _ => location.clone(),
    }
}

/// The document behind a resource, and the hash of what was mapped.
fn source_of(host: &dyn Host, resource: &str) -> Option<(Value, String)> {
    let structure = ask(host, "getStructure", json!({ "resource_id": resource })).ok()?;
    let hash = structure["metadata"].maybe("source_hash")?.to_owned();
    let got = ask(host, "get", json!({ "hash": hash })).ok().filter(|got| got.flag("found"))?;
    Some((got, hash))
}

fn context(host: &dyn Host, source: Option<&(Value, String)>, location: &Value) -> Markup {
    let Some((document, hash)) = source else {
        return html! { p.note { "The source is not there any more." } };
    };
    let id = document.text("document_id");
    let numbers = |name: &str| -> Vec<u64> { location.list(name).iter().filter_map(Value::as_u64).collect() };
    let (lines, pages) = (numbers("lines"), numbers("pages"));
    let read = |first: u64, most: u64| {
        ask(
            host,
            "read_text",
            json!({ "document_id": id, "hash": hash, "first_line": first, "max_lines": most }),
        )
    };
    let mut marked = lines.first().map(|first| *first..=lines.last().copied().unwrap_or(*first));
    if marked.is_none()
        && let Some(page) = pages.first()
    {
        let starts: Vec<u64> = read(1, 1)
            .ok()
            .map(|text| text.list("pages").iter().filter_map(Value::as_u64).collect())
            .unwrap_or_default();
        let (page, last) = (*page as usize, *pages.last().unwrap_or(page) as usize);
        let from = starts.get(page.saturating_sub(1)).copied();
        marked = from
            .map(|from| from..=starts.get(last).map_or(from + 60, |next| next.saturating_sub(1).max(from)));
    }
    let title = super::document::title(document);
    let title = if title.is_empty() { document.text("path") } else { title };
    let way = marked
        .as_ref()
        .map_or_else(|| links::document(id), |marked| links::lines(id, *marked.start(), *marked.end()));
    html! {
        p.where { a href=(way) { (words::plain(title)) } " " span.note { (words::plain(document.text("document_path"))) } @if !pages.is_empty() { " · page " (pages[0]) } }
        @if let Some(marked) = &marked {
            @let first = marked.start().saturating_sub(AROUND).max(1);
            @match read(first, (marked.end() + AROUND + 1).saturating_sub(first).min(300)) {
                Ok(text) => (code::lines(text.text("text"), first, (document.text("mime_type"), document.text("document_path")), Some(marked))),
                Err(error) => p.note { (words::plain(&error.message)) },
            }
        } @else { p.note { "The address stands for the whole document." } }
    }
}
