//! Addresses that are looked up: a path as one document writes it in a link, or a path and hash from a list of matches.

use serde_json::{Value, json};

use super::{Answer, ask, invalid, missing};
use crate::{Host, Reply, Request, fields::Fields, links};

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    let path = request.query("path").ok_or_else(|| invalid("path is missing"))?;
    let (path, fragment) = path.split_once('#').unwrap_or((path, ""));
    let path = path.split('?').next().unwrap_or_default();
    let found = match request.query("from") {
        Some(from) => from_document(host, from, path)?,
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
