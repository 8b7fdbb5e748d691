//! Evidence beside its source: what an address or a node stands for, and whether the source has changed since.

use std::ops::RangeInclusive;

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_base::{Address, address::Place};

use super::{Answer, ask, player, sheets};
use crate::{Host, Request, fields::Fields, frame, links, render::code, words};

/// Lines around the evidence.
const AROUND: u64 = 8;
/// Pages that are shown as images.
const PAGES: usize = 6;

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
    let url = found.maybe("evidence_url").map(|url| links::local(url, &request.base_url));
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

/// The place that an address names itself, which may be less than that of the node around it.
fn place(address: &str, location: &Value) -> Value {
    let Ok(address) = address.parse::<Address>() else { return location.clone() };
    match address.place() {
        Place::Text(Some(lines)) => json!({ "lines": [lines.first(), lines.last()] }),
        // The region of a page is known to the node only.
        Place::Document(Some(pages)) => {
            json!({ "pages": [pages.first(), pages.last()], "bbox": location["bbox"] })
        }
        Place::Image(Some(region)) => json!({ "bbox": region.corners() }),
        Place::Video(Some(clip)) | Place::Audio(Some(clip)) => {
            json!({ "start": clip.start().as_f64(), "end": clip.end().map(|end| end.as_f64()) })
        }
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

/// Where the evidence stands: the page with its region, the lines in their file, the time in the recording.
fn context(host: &dyn Host, source: Option<&(Value, String)>, location: &Value) -> Markup {
    let Some((document, hash)) = source else {
        return html! { p.note { "The source is not there any more." } };
    };
    let id = document.text("document_id");
    let mime = document.text("mime_type");
    let numbers = |name: &str| -> Vec<u64> { location.list(name).iter().filter_map(Value::as_u64).collect() };
    let (lines, pages) = (numbers("lines"), numbers("pages"));
    let region: Vec<f64> = location.list("bbox").iter().filter_map(Value::as_f64).collect();
    let region: Option<[f64; 4]> = region.try_into().ok();
    let title = super::document::title(document);
    let title = if title.is_empty() { document.text("path") } else { title };
    let marked = lines.first().map(|first| *first..=lines.last().copied().unwrap_or(*first));
    let marked = marked.or_else(|| lines_of_pages(host, (id, hash), &pages));
    let way = match (&marked, pages.first()) {
        (_, Some(page)) => format!("{}#p{page}", links::document(id)),
        (Some(marked), None) => links::lines(id, *marked.start(), *marked.end()),
        (None, None) => links::document(id),
    };
    let span = location.get("start").and_then(Value::as_f64);
    let body = if mime == "application/pdf" && !pages.is_empty() && host.may("page_image") {
        let (first, last) = (pages[0], *pages.last().unwrap_or(&pages[0]));
        html! { @for page in (first..=last).take(PAGES) { (sheets::sheet(id, hash, page, region)) }
        @if last - first >= PAGES as u64 { p.note { "Further pages: " a href=(way) { "in the document" } } } }
    } else if let (true, Some(region)) = (mime.starts_with("image/"), region) {
        html! { figure.sheet { img src=(links::raw(id, Some(hash))) alt="The whole picture"; (sheets::region_of(region)) } }
    } else if let Some(start) = span {
        let end = location.get("end").and_then(Value::as_f64);
        let range = end.map_or_else(
            || player::clock(start),
            |end| format!("{}–{}", player::clock(start), player::clock(end)),
        );
        html! { (player::player(&links::raw(id, Some(hash)), mime, Some((start, end)))) p.note { "The whole recording, at " (range) "." } }
    } else if let Some(marked) = &marked {
        around(host, (document, id, hash), marked)
    } else {
        html! { p.note { "The address stands for the whole document." } }
    };
    html! {
        p.where { a href=(way) { (words::plain(title)) } " " span.note { (words::plain(document.text("document_path"))) } @if !pages.is_empty() { " · page " (pages[0]) } }
        (body)
    }
}

/// The lines of some pages.
fn lines_of_pages(host: &dyn Host, (id, hash): (&str, &str), pages: &[u64]) -> Option<RangeInclusive<u64>> {
    let page = *pages.first()? as usize;
    let last = *pages.last()? as usize;
    let asked = json!({ "document_id": id, "hash": hash, "first_line": 1, "max_lines": 1 });
    let text = ask(host, "read_text", asked).ok()?;
    let starts: Vec<u64> = text.list("pages").iter().filter_map(Value::as_u64).collect();
    let from = *starts.get(page.saturating_sub(1))?;
    Some(from..=starts.get(last).map_or(from + 60, |next| next.saturating_sub(1).max(from)))
}

/// Some lines with those around them.
fn around(
    host: &dyn Host,
    (document, id, hash): (&Value, &str, &str),
    marked: &RangeInclusive<u64>,
) -> Markup {
    let first = marked.start().saturating_sub(AROUND).max(1);
    let most = (marked.end() + AROUND + 1).saturating_sub(first).min(300);
    let asked = json!({ "document_id": id, "hash": hash, "first_line": first, "max_lines": most });
    match ask(host, "read_text", asked) {
        Ok(text) => {
            let of = (document.text("mime_type"), document.text("document_path"));
            code::lines(text.text("text"), first, of, Some(marked))
        }
        Err(error) => html! { p.note { (words::plain(&error.message)) } },
    }
}
