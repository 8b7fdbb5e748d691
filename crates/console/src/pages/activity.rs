//! What happened in the library.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{Answer, ask, charts, now};
use crate::{Host, Reply, Request, fields::Fields, frame, links, words};

/// Groups of operations that people tell apart.
const KINDS: [(&str, &str, &[&str]); 5] = [
    ("", "Everything", &[]),
    ("stored", "Stored", &["add", "replace"]),
    ("deleted", "Deleted", &["delete", "delete_collection", "drop_snapshot"]),
    ("changed", "Described", &["update", "retitle", "set_map", "set_book", "rename_collection", "set_model"]),
    (
        "access",
        "Access",
        &[
            "create_account",
            "update_account",
            "delete_account",
            "revoke_session",
            "create_token",
            "revoke_token",
            "rotate_token",
        ],
    ),
];
/// Operations that can be looked at alone.
const OPERATIONS: [&str; 22] = [
    "add",
    "replace",
    "update",
    "retitle",
    "delete",
    "snapshot",
    "drop_snapshot",
    "create_collection",
    "rename_collection",
    "delete_collection",
    "set_book",
    "set_map",
    "set_model",
    "create_account",
    "update_account",
    "delete_account",
    "revoke_session",
    "create_token",
    "revoke_token",
    "rotate_token",
    "recover",
    "collect",
];
/// Events on a page.
const EVENTS: u64 = 100;

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    let kind = request.query("kind").unwrap_or_default();
    let told = ("told", "", &super::start::TOLD[..]);
    let alone = OPERATIONS.iter().find(|operation| **operation == kind);
    let alone = alone.map(|operation| (*operation, "", std::slice::from_ref(operation)));
    let (kind, _, operations) =
        KINDS.into_iter().chain([told]).chain(alone).find(|(key, ..)| *key == kind).unwrap_or(KINDS[0]);
    let collection = request.query("collection").unwrap_or_default();
    let by = request.query("by").unwrap_or_default();
    let mut arguments = json!({ "limit": EVENTS, "operations": operations });
    for (name, value) in [("collection", collection), ("by", by)] {
        if !value.is_empty() {
            arguments[name] = json!(value);
        }
    }
    if let Some(after) = request.query("after").and_then(|after| after.parse::<u64>().ok()) {
        arguments["after"] = json!(after);
    }
    if let Some(before) = request.query("before").and_then(|before| before.parse::<u64>().ok()) {
        arguments["before"] = json!(before);
    }
    let found = ask(host, "activity", arguments)?;
    let events = found.list("events");
    if request.query("part") == Some("rows") {
        return Ok(Reply::html(200, table(events, true)));
    }
    let shelves = ask(host, "list_collections", json!({})).unwrap_or_default();
    let to = |kind: &str, before: &str| {
        links::with(
            "/activity",
            &[("kind", kind), ("collection", collection), ("by", by), ("before", before)],
        )
    };
    let stream = links::with("/activity/stream", &[("kind", kind), ("collection", collection), ("by", by)]);
    let newest = request.query("before").is_none();
    Ok(frame::page(
        host,
        request,
        "Activity",
        html! {
            h1 { "Activity" }
            form.filters {
                label { "What " select name="kind" { @for (key, name, _) in KINDS { option value=(key) selected[key == kind] { (name) } }
                    optgroup label="One operation" { @for operation in OPERATIONS { option value=(operation) selected[operation == kind] { (operation.replace('_', " ")) } } } } }
                label { "Where " select name="collection" { option value="" { "All collections" }
                    @for shelf in shelves.list("collections") { option value=(shelf.text("name")) selected[shelf.text("name") == collection] { (words::plain(shelf.text("name"))) } } } }
                label { "Who " input name="by" value=(by) size="14" list="people" placeholder="anybody"; }
                datalist id="people" { @for name in people(events) { option value=(name) {} } }
                button { "Show" }
                @if newest { label.live hidden data-live-switch="" { input type="checkbox" checked; " Live" } }
            }
            @if newest && by.is_empty() && collection.is_empty() && kind.is_empty() { (charts::calls(host)) }
            div data-live=[newest.then_some(stream)] { (table(events, true)) }
            @if events.is_empty() { (frame::empty("Nothing yet", html! { p { "What is stored, changed and deleted is listed here." } })) }
            @if !found.flag("complete") { p.note { "Older events were not looked at." } }
            @if let Some(before) = found.get("next_before").and_then(Value::as_u64) { p { a.more href=(to(kind, &before.to_string())) rel="next" { "Older" } } }
        },
    ))
}

/// Whoever did something, each once.
fn people(events: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = events.iter().map(|event| words::plain(event.text("by"))).collect();
    names.sort();
    names.dedup();
    names
}

/// What an operation is called.
pub(super) fn word(operation: &str) -> &str {
    match operation {
        "add" => "stored",
        "replace" => "stored a new version of",
        "update" => "described",
        "retitle" => "renamed",
        "delete" => "deleted",
        "snapshot" => "made the snapshot",
        "create_collection" => "made the collection",
        "rename_collection" => "renamed the collection",
        "delete_collection" => "deleted the collection",
        "set_model" => "set the model of",
        "set_book" => "changed the book",
        "set_map" => "mapped",
        "create_account" => "made the account",
        "update_account" => "changed the account",
        "delete_account" => "deleted the account",
        "revoke_session" => "ended a session:",
        "create_token" => "made the token",
        "revoke_token" => "revoked the token",
        "rotate_token" => "rotated the token",
        "recover" => "recovered the catalog",
        "drop_snapshot" => "dropped the snapshot",
        "collect" => "freed storage",
        other => other,
    }
}

/// Events as a table.
pub(super) fn table(events: &[Value], with_place: bool) -> Markup {
    let now = now();
    html! {
        table.events { tbody { @for event in events {
            tr data-sequence=(event.number("sequence")) {
                td.when { (frame::when(event.text("at"), now)) }
                td { a.by href=(links::with("/activity", &[("by", event.text("by"))])) { (words::plain(event.text("by"))) } " " (word(event.text("operation"))) " "
                    @if with_place || event.maybe("document_id").is_none() { (subject(event)) } @else { code { (words::short(event.text("new_hash"))) } } }
                @if with_place { td.note { @if let Some(collection) = event.maybe("collection") { a href=(links::collection(collection, "")) { (words::plain(collection)) } } } }
            }
        } } }
    }
}

fn subject(event: &Value) -> Markup {
    let path = words::plain(event.text("path"));
    html! {
        @match event.maybe("document_id") {
            Some(id) => a href=(links::document(id)) { (path) },
            None => span { (path) },
        }
    }
}
