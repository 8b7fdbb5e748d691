//! Addresses that are looked up: a path as one document writes it in a link, or a path and hash from a list of matches.

use maud::html;
use serde_json::{Value, json};
use shelf_base::Kind;

use super::{Answer, ask, invalid, missing};
use crate::{Host, Reply, Request, fields::Fields, links, words};

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    let path = request.query("path").ok_or_else(|| invalid("path is missing"))?;
    let (path, fragment) = path.split_once('#').unwrap_or((path, ""));
    let path = path.split('?').next().unwrap_or_default();
    let found = match request.query("from") {
        Some(from) => match from_document(host, from, path) {
            Err(error) if error.kind == Kind::NotFound && request.query("raw").is_some() => {
                return Ok(no_picture(path));
            }
            found => found?,
        },
        None => {
            let mut arguments = json!({ "name": path });
            for (argument, name) in [("hash", "hash"), ("collection", "collection")] {
                if let Some(value) = request.query(name) {
                    arguments[argument] = json!(value);
                }
            }
            ask(host, "get", arguments)?
        }
    };
    let id =
        found.maybe("document_id").ok_or_else(|| missing(format!("no document is stored as '{path}'")))?;
    if request.query("raw").is_some() {
        return Ok(Reply::to(links::raw(id, None)));
    }
    let line: u64 = request.query("line").and_then(|line| line.parse().ok()).unwrap_or(0);
    if request.query("part") == Some("preview") {
        let lines = if line == 0 { String::new() } else { format!("{line}-{line}") };
        return Ok(Reply::to(links::with(&links::document(id), &[("part", "preview"), ("lines", &lines)])));
    }
    let address = links::lines(id, line, line);
    let fragment =
        if fragment.is_empty() { String::new() } else { format!("#u-{}", links::encoded(fragment)) };
    Ok(Reply::to(format!("{address}{fragment}")))
}

/// What stands for a picture that a document shows and that the library does not have.
fn no_picture(path: &str) -> Reply {
    let text = format!("not in the library: {}", words::clipped(&words::plain(path), 60));
    let width = 24 + 8 * text.chars().count();
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height="36" viewBox={ "0 0 " (width) " 36" } {
            rect x="0.5" y="0.5" width=(width - 1) height="35" rx="4" fill="none" stroke="#8a8375" stroke-dasharray="4 3" {}
            text x="12" y="23" font-family="sans-serif" font-size="14" fill="#8a8375" { (text) }
        }
    };
    Reply { cache: None, ..Reply::image("image/svg+xml", picture.into_string().into_bytes()) }
}

/// The document that a link in another one means: beside it, from the top of the collection, or anywhere in it.
fn from_document(host: &dyn Host, from: &str, path: &str) -> Result<Value, shelf_tools::ErrorReply> {
    let described = ask(host, "describe_document", json!({ "document_id": from }))?;
    let document = &described["document"];
    let collection = document.text("collection");
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned();
    let mut tried = Vec::new();
    for name in [links::joined(document.text("path"), &decoded), decoded.trim_start_matches('/').to_owned()] {
        if name.is_empty() || tried.contains(&name) {
            continue;
        }
        let found = ask(host, "get", json!({ "name": name, "collection": collection }));
        match found {
            Ok(found) if found.flag("found") => return Ok(found),
            _ => tried.push(name),
        }
    }
    Err(missing(format!("'{collection}' has no document '{}'", tried.first().map_or(path, String::as_str))))
}
