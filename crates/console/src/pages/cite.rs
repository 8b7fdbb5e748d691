//! Evidence beside its source: what an address or a node stands for, and whether the source has changed since.

use std::ops::RangeInclusive;

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_base::{Address, address::Place};

use super::{Answer, around, ask, player, sheets};
use crate::{Host, Request, fields::Fields, frame, links, render::code, words};

/// Lines around the evidence.
const AROUND: u64 = 8;
/// Pages that are shown as images.
const PAGES: usize = 6;
/// Resources that are listed.
const LISTED: usize = 200;

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
        None if resource.is_some() => nodes_of(host, resource.unwrap_or_default()),
        None => entrance(host),
        Some(arguments) => match ask(host, "resolve", arguments) {
            Ok(found) => {
                let names_content = is_hash(resource_of(address, resource));
                evidence(host, request, &found, names_content)
            }
            Err(error) => frame::empty(
                "No evidence",
                html! { p { (frame::told(&error.message)) } @for hint in &error.hints { p { (words::plain(hint)) } } },
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
        @if all.is_empty() { p.note { "Every document has a map whose parts can be cited: open a document and choose Map." } }
        @else { h2 { "Or pick a part of a resource" } ul.plain { @for id in all.iter().filter_map(Value::as_str).take(LISTED) {
            li { a href=(links::with("/cite", &[("resource", id)])) { (words::plain(id)) } }
        } } }
        @if all.len() > LISTED { p.note { "Only the first " (LISTED) " resources are listed." } }
    }
}

/// What can be cited of a resource: each part, and the whole by the address of its modality.
fn nodes_of(host: &dyn Host, resource: &str) -> Markup {
    let structure = match ask(host, "getStructure", json!({ "resource_id": resource })) {
        Ok(structure) => structure,
        Err(error) => return frame::empty("No such resource", html! { p { (frame::told(&error.message)) } }),
    };
    let mut found = Vec::new();
    around::nodes(structure.list("nodes"), 0, &mut found);
    let resource = structure.text("resource_id");
    let scheme = match structure.text("type") {
        "document" | "virtual" | "" => "doc",
        modality => modality,
    };
    let whole = format!("{scheme}://{resource}");
    html! {
        h2 { (words::plain(structure.text("title"))) }
        p.where { a href=(links::with("/cite", &[("address", &whole)])) { code { (whole) } } (frame::copy("Copy address", &whole)) " " span.note { "the whole" } }
        @if found.is_empty() { p.note { "It has no parts." } }
        ul.map { @for (depth, node) in &found { li class={ "d" (depth.min(&5)) } {
            a href=(links::with("/cite", &[("resource", resource), ("node", node.text("id"))])) { (words::plain(node.text("title"))) }
            " " span.note { (node.text("type")) }
        } } }
    }
}

/// The resource that an address names, as it stands there; or the one that was picked.
fn resource_of<'a>(address: Option<&'a str>, resource: Option<&'a str>) -> &'a str {
    let Some(address) = address else { return resource.unwrap_or_default() };
    let rest = address.trim().split_once("://").map_or("", |(_, rest)| rest);
    rest.split('#').next().unwrap_or_default()
}

/// Whether a resource is named by its content, which cannot change.
fn is_hash(resource: &str) -> bool {
    resource.len() == 64 && resource.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether what is cited is what is stored now, as far as that is known.
fn freshness(found: &Value, source: Option<&Source>, names_content: bool) -> Markup {
    html! {
        @match source {
            _ if found.flag("source_changed") => p.notice role="status" { strong.bad { "The source has changed" } " since it was mapped. The evidence is of the content that was mapped." },
            Some(source) if names_content && source.document.flag("is_current") => p.note { span.good { "✓" } " The source still has the content that is cited." },
            Some(_) if names_content => p.notice role="status" { strong.bad { "The source has changed" } " since. The evidence is of the version that is cited." },
            _ => p.note { "The present version is shown: the address names no version, so it is not known whether the source has changed since it was cited." },
        }
    }
}

fn evidence(host: &dyn Host, request: &Request, found: &Value, names_content: bool) -> Markup {
    let (node, address) = (&found["node"], found.text("address"));
    let source = source_of(host, found.text("resource_id"));
    let url = found.maybe("evidence_url").map(|url| links::local(url, &request.base_url));
    let mime = found.text("mime_type");
    html! {
        p.where { code { (address) } (frame::copy("Copy address", address)) @if let Some(text) = found.maybe("content") { (frame::copy("Copy quotation", &format!("> {}\n\n— {address}", text.trim().replace('\n', "\n> ")))) } }
        (freshness(found, source.as_ref(), names_content))
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
                    @if let Some(source) = &source { dt { "Hash" } dd { code { (source.hash) } } }
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

/// The document behind a resource, and the hash of what is cited of it.
struct Source {
    document: Value,
    hash: String,
}

/// The document behind a resource, and the hash of what was mapped.
fn source_of(host: &dyn Host, resource: &str) -> Option<Source> {
    let structure = ask(host, "getStructure", json!({ "resource_id": resource })).ok()?;
    let hash = structure["metadata"].maybe("source_hash")?.to_owned();
    let find = |asked: Value| ask(host, "get", asked).ok().filter(|got| got.flag("found"));
    // Other documents may have the same content, so that the hash says which version is cited, but not of which document.
    let named = if is_hash(resource) { None } else { find(json!({ "name": format!("doc://{resource}") })) };
    let document = named.or_else(|| find(json!({ "hash": hash })))?;
    Some(Source { document, hash })
}

/// Where the evidence stands: the page with its region, the lines in their file, the time in the recording.
fn context(host: &dyn Host, source: Option<&Source>, location: &Value) -> Markup {
    let Some(Source { document, hash }) = source else {
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
        lines_around(host, (document, id, hash), marked)
    } else {
        html! { p.note { "The address stands for the whole document." } }
    };
    html! {
        p.where { a href=(way) { (words::plain(title)) } " " span.note { (words::plain(document.text("document_path"))) } (caption(&pages)) }
        (body)
    }
}

/// The pages that are cited, for people.
fn caption(pages: &[u64]) -> Markup {
    html! {
        @match (pages.first(), pages.last()) {
            (Some(first), Some(last)) if first < last => { " · pages " (first) "–" (last) }
            (Some(page), _) => { " · page " (page) }
            _ => {}
        }
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
fn lines_around(
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
