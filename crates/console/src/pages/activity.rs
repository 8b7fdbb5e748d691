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
    (
        "changed",
        "Changed details",
        &["update", "retitle", "set_map", "set_book", "rename_collection", "set_model"],
    ),
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

/// The families whose things the journal tells apart, and the one that has a record of its own.
const FAMILIES: [(&str, &str); 6] = [
    ("", "All families"),
    ("store", "Store: paths, snapshots"),
    ("documents", "Documents: titles, collections, access"),
    ("books", "Books"),
    ("citations", "Citations: maps"),
    (WORKSPACE, "Workspace"),
];
const WORKSPACE: &str = "workspace";

/// Which events are shown.
struct Asked<'a> {
    kind: &'static str,
    operations: &'static [&'static str],
    family: &'static str,
    collection: &'a str,
    by: &'a str,
}

impl<'a> Asked<'a> {
    fn of(request: &'a Request) -> Self {
        let word = |name| request.query(name).unwrap_or_default();
        let kind = word("kind");
        let told = ("told", "", &super::start::TOLD[..]);
        let alone = OPERATIONS.iter().find(|operation| **operation == kind);
        let alone = alone.map(|operation| (*operation, "", std::slice::from_ref(operation)));
        let (kind, _, operations) =
            KINDS.into_iter().chain([told]).chain(alone).find(|(key, ..)| *key == kind).unwrap_or(KINDS[0]);
        let family = FAMILIES.into_iter().find(|(key, _)| *key == word("family")).unwrap_or(FAMILIES[0]).0;
        Self { kind, operations, family, collection: word("collection"), by: word("by") }
    }

    /// The address of these events: of the page, or of what follows them.
    fn address(&self, path: &str, before: &str) -> String {
        let pairs = [
            ("kind", self.kind),
            ("family", self.family),
            ("collection", self.collection),
            ("by", self.by),
            ("before", before),
        ];
        links::with(path, &pairs)
    }

    /// The events, as the tool gives them.
    fn find(&self, host: &dyn Host, request: &Request) -> Result<Value, shelf_tools::ErrorReply> {
        if self.family == WORKSPACE {
            return Ok(json!({ "events": [], "complete": true }));
        }
        let mut arguments = json!({ "limit": EVENTS, "operations": self.operations });
        for (name, value) in [("collection", self.collection), ("by", self.by), ("family", self.family)] {
            if !value.is_empty() {
                arguments[name] = json!(value);
            }
        }
        for name in ["after", "before"] {
            if let Some(number) = request.query(name).and_then(|number| number.parse::<u64>().ok()) {
                arguments[name] = json!(number);
            }
        }
        ask(host, "activity", arguments)
    }

    /// Whether the charts of calls, which know tools only, show the same as the table.
    fn fits_charts(&self) -> bool {
        self.kind.is_empty() && self.collection.is_empty() && self.by.is_empty()
    }

    /// Why there are no events.
    fn nothing(&self) -> Markup {
        if self.family == WORKSPACE {
            return frame::empty(
                "Nothing in the journal",
                html! { p { "Tools of the workspace change no documents. What agents wrote down is in the workspace's own record: " a href="/memory" { "Memory" } "." } },
            );
        }
        if self.family.is_empty() && self.fits_charts() {
            return frame::empty(
                "Nothing yet",
                html! { p { "What is stored, changed and deleted is listed here." } },
            );
        }
        frame::empty(
            "Nothing fits",
            html! { p { "No event fits all of these filters. " a href="/activity" { "Show everything" } } },
        )
    }
}

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    let asked = Asked::of(request);
    let found = asked.find(host, request)?;
    let events = found.list("events");
    if request.query("part") == Some("rows") {
        return Ok(Reply::html(200, table(events, true)));
    }
    let newest = request.query("before").is_none();
    let stream = (newest && asked.family != WORKSPACE).then(|| asked.address("/activity/stream", ""));
    let is_complete = found.flag("complete");
    Ok(frame::page(
        host,
        request,
        "Activity",
        html! {
            h1 { "Activity" }
            (filters(host, &asked, events, stream.is_some()))
            @if newest && asked.fits_charts() { (charts::calls(host, asked.family)) }
            div data-live=[stream] {
                @if events.is_empty() && is_complete { (asked.nothing()) }
                (table(events, true))
            }
            @if !is_complete { p.note { "The journal is long, and only its newest part was looked at." } }
            @if let Some(before) = found.get("next_before").and_then(Value::as_u64) {
                p { a.more href=(asked.address("/activity", &before.to_string())) rel="next" { @if is_complete { "Older" } @else { "Look further back" } } }
            }
        },
    ))
}

fn filters(host: &dyn Host, asked: &Asked<'_>, events: &[Value], is_live: bool) -> Markup {
    let shelves = ask(host, "list_collections", json!({})).unwrap_or_default();
    html! {
        form.filters {
            label { "What " select name="kind" { @for (key, name, _) in KINDS { option value=(key) selected[key == asked.kind] { (name) } }
                optgroup label="One operation" { @for operation in OPERATIONS { option value=(operation) selected[operation == asked.kind] { (operation.replace('_', " ")) } } } } }
            label { "Family " select name="family" { @for (key, name) in FAMILIES { option value=(key) selected[key == asked.family] { (name) } } } }
            label { "Where " select name="collection" { option value="" { "All collections" }
                @for shelf in shelves.list("collections") { option value=(shelf.text("name")) selected[shelf.text("name") == asked.collection] { (words::plain(shelf.text("name"))) } } } }
            label { "Who " input name="by" value=(asked.by) size="14" list="people" placeholder="anybody"; }
            datalist id="people" { @for name in people(events) { option value=(name) {} } }
            button { "Show" }
            @if is_live { label.live hidden data-live-switch="" { input type="checkbox" checked; " Live" } }
        }
    }
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
        "update" => "changed the details of",
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

/// What an event concerns as people call it. Accounts, tokens and sessions are told by what stands after their id.
fn named<'a>(operation: &str, path: &'a str) -> &'a str {
    let has_id =
        operation.ends_with("_account") || operation.ends_with("_token") || operation == "revoke_session";
    match path.split_once(' ') {
        // A link to sign in ends like a token when it is used again.
        Some((_, "a refresh token was used twice")) => "what it was begun with was used twice",
        Some((_, name)) if has_id && !name.is_empty() => name,
        _ => path,
    }
}

fn subject(event: &Value) -> Markup {
    let path = words::plain(named(event.text("operation"), event.text("path")));
    html! {
        @match event.maybe("document_id") {
            Some(id) => a href=(links::document(id)) { (path) },
            None => span { (path) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_tokens_and_sessions_have_names() {
        let id = "01a1f634-0000-7000-8000-000000000000";
        assert_eq!(named("create_account", &format!("{id} bob")), "bob");
        assert_eq!(named("create_token", &format!("{id} the lab's agent")), "the lab's agent");
        assert_eq!(named("revoke_session", &format!("{id} signed out")), "signed out");
        assert_eq!(named("revoke_token", id), id);
        assert_eq!(named("add", "my notes.md"), "my notes.md");
        let twice =
            named("revoke_session", "00000000-0000-7000-8000-000000000000 a refresh token was used twice")
                .to_owned();
        assert!(!twice.contains("0000") && !twice.contains("refresh"), "{twice}");
    }
}
