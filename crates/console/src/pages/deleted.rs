//! After a deletion: what is gone, and the way back.

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_tools::ErrorReply;

use super::{Answer, ask, invalid, now};
use crate::{Host, Reply, Request, fields::Fields, frame, links, words};

/// The folder of a document, ending with a slash, or nothing.
fn folder_of(path: &str) -> String {
    path.rsplit_once('/').map_or_else(String::new, |(folder, _)| format!("{folder}/"))
}

/// What a form carries to bring a document back as it was, also when garbage collection has forgotten its row meanwhile.
fn remembered(document: &Value) -> Value {
    json!({
        "document_id": document.text("document_id"),
        "tags": document["tags"],
        "metadata": document["metadata"],
    })
}

/// What coming back means for those who know a document by its id.
const AS_IT_WAS: &str =
    "A document comes back as it was: at its path, under its id, and with all of its versions.";

/// The page that follows a deletion.
pub(super) fn done(host: &dyn Host, request: &Request, described: &[Value]) -> Reply {
    let documents: Vec<&Value> = described.iter().map(|found| &found["document"]).collect();
    let first = documents.first().copied().unwrap_or(&Value::Null);
    let folder = links::collection(first.text("collection"), &folder_of(first.text("path")));
    frame::page(
        host,
        request,
        "Deleted",
        html! {
            h1 { "Deleted" }
            p role="status" { (words::counted(documents.len() as u64, "document is", "documents are")) " gone from lists and searches." }
            (undo(host, &documents, "Undo"))
            @if host.may("undelete_document") { p.note { (AS_IT_WAS) } }
            ul { @for document in &documents { li { (words::plain(document.text("path"))) " " span.note { (words::bytes(document.number("size"))) } } } }
            p { a href=(folder) { "Back to the folder" } }
        },
    )
}

/// The form that brings documents back.
fn undo(host: &dyn Host, documents: &[&Value], label: &str) -> Markup {
    let id = documents.first().map_or("", |document| document.text("document_id"));
    html! {
        @if host.may("undelete_document") {
            form method="post" action={ (links::document(id)) "/undelete" } {
                (frame::proof(host))
                @for document in documents { input type="hidden" name="document" value=(remembered(document).to_string()); }
                p { button.primary { (label) } }
            }
        }
    }
}

/// Brings documents back.
pub(super) fn bring_back(host: &dyn Host, request: &Request) -> Answer {
    let mut last = None;
    for text in request.fields("document") {
        let arguments: Value = serde_json::from_str(text).map_err(|_| invalid("the form is not whole"))?;
        let mut asked = json!({ "document_id": arguments["document_id"] });
        for name in ["tags", "metadata"] {
            if !arguments[name].is_null() {
                asked[name] = arguments[name].clone();
            }
        }
        last = Some(ask(host, "undelete_document", asked)?);
    }
    let back = last.ok_or_else(|| invalid("the form names no document"))?;
    let is_one = request.fields("document").count() == 1;
    Ok(Reply::to(if is_one {
        links::document(back.text("document_id"))
    } else {
        links::collection(back.text("collection"), &folder_of(back.text("path")))
    }))
}

/// The id of the document that is at the path of a deleted one by now.
fn again(host: &dyn Host, event: &Value) -> Option<String> {
    let asked = json!({ "collection": event.text("collection"), "name": event.text("path"), "limit": 10 });
    let found = ask(host, "list", asked).ok()?;
    let is_same = |document: &&Value| document.text("path") == event.text("path");
    found.list("documents").iter().find(is_same).map(|document| document.text("document_id").to_owned())
}

/// The page of a document that is not there: deleted, or never there.
pub(super) fn page(host: &dyn Host, request: &Request, id: &str, error: ErrorReply) -> Answer {
    let asked = json!({ "document_id": id, "operations": ["delete"], "limit": 1 });
    let events = ask(host, "activity", asked).unwrap_or_default();
    let Some(event) = events.list("events").first() else { return Err(error) };
    let document = json!({ "document_id": id });
    let again = again(host, event);
    Ok(frame::with_status(
        host,
        request,
        410,
        "Deleted document",
        html! {
            h1 { (words::plain(event.text("path"))) }
            @if let Some(again) = &again {
                p.notice { strong { (words::plain(event.text("by"))) } " deleted the document with this id " (frame::when(event.text("at"), now())) ". "
                    "There is a document at its path again, under another id: " a href=(links::document(again)) { (words::plain(event.text("path"))) } }
            } @else {
                p.notice { strong { (words::plain(event.text("by"))) } " deleted this document " (frame::when(event.text("at"), now())) ". "
                    "It can be brought back until garbage collection frees its content." }
                (undo(host, &[&document], "Bring it back"))
            }
            @if let Some(collection) = event.maybe("collection") {
                p { a href=(links::collection(collection, &folder_of(event.text("path")))) { "Its folder" } }
            }
        },
    ))
}
