//! The past of a document: its versions, what changed between them, and bringing one back.

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_tools::ErrorReply;

use super::{Answer, ask, document::Shown, invalid, missing, now};
use crate::{Host, Reply, Request, fields::Fields, frame, links, render::diff, words};

/// Lines of a version that are compared.
const LINES: u64 = 100_000;

/// Everything that a document was, newest first, and who made it that.
pub(super) fn list(host: &dyn Host, shown: &Shown<'_>) -> Markup {
    let versions = shown.described.list("versions");
    let events = ask(host, "activity", json!({ "document_id": shown.id, "limit": 200 })).unwrap_or_default();
    let by = |hash: &str| {
        let made = |event: &&Value| {
            event.text("new_hash") == hash && matches!(event.text("operation"), "add" | "replace")
        };
        events.list("events").iter().find(made).map(|event| event.text("by"))
    };
    let current = shown.document.text("hash");
    html! {
        form id="bring-back" method="post" action={ (links::document(shown.id)) "/restore" } { (frame::proof(host)) }
        form.compare action={ (links::document(shown.id)) "/diff" } {
            div.scroll { table.data.stacked {
                thead { tr {
                    th scope="col" { "From" } th scope="col" { "To" } th scope="col" { "Version" } th scope="col" { "Stored" }
                    th scope="col" { "By" } th.figure scope="col" { "Size" } th scope="col" { "Hash" } th { span.hidden { "Actions" } }
                } }
                tbody { @for (at, version) in versions.iter().enumerate() {
                    @let hash = version.text("hash");
                    tr {
                        td data-label="From" { input type="radio" name="from" value=(hash) aria-label={ "From version " (version.number("version")) } checked[at == 1.min(versions.len() - 1)]; }
                        td data-label="To" { input type="radio" name="to" value=(hash) aria-label={ "To version " (version.number("version")) } checked[at == 0]; }
                        td data-label="Version" { a href=(links::with(&links::document(shown.id), &[("version", if at == 0 { "" } else { hash })])) { (version.number("version")) }
                            @if at == 0 { span.note { " present" } } }
                        td data-label="Stored" { (frame::when(version.text("indexed_at"), now())) }
                        td data-label="By" { (words::plain(by(hash).unwrap_or_default())) }
                        td.figure data-label="Size" { (words::bytes(version.number("size"))) }
                        td data-label="Hash" { code title=(hash) { (words::short(hash)) } }
                        td { @if hash != current && host.may("add") { button.link form="bring-back" name="hash" value=(hash) { "Bring back" } } }
                    }
                } }
            } }
            @if versions.len() > 1 { p { button name="side" value="" { "Compare" } " " button name="side" value="1" { "Compare side by side" } } }
        }
        h2 { "What happened" }
        (super::activity::table(events.list("events"), false))
    }
}

fn text_of(host: &dyn Host, id: &str, hash: &str) -> Result<Value, ErrorReply> {
    ask(host, "read_text", json!({ "document_id": id, "hash": hash, "max_lines": LINES }))
}

/// What changed from one version to another.
pub(super) fn difference(host: &dyn Host, request: &Request, id: &str) -> Answer {
    let described = ask(host, "describe_document", json!({ "document_id": id }))?;
    let versions = described.list("versions");
    let hash = |name: &str| {
        request.query(name).ok_or_else(|| invalid(format!("choose the version to compare {name}")))
    };
    let (from, to) = (hash("from")?, hash("to")?);
    let number = |hash: &str| {
        versions
            .iter()
            .find(|version| version.text("hash").starts_with(hash))
            .map_or(0, |version| version.number("version"))
    };
    let (before, after) = (text_of(host, id, from)?, text_of(host, id, to)?);
    let is_two = request.query("side").is_some();
    let compared = diff::page(before.text("text"), after.text("text"), is_two);
    let other = links::with(
        &format!("{}/diff", links::document(id)),
        &[("from", from), ("to", to), ("side", if is_two { "" } else { "1" })],
    );
    let name = super::document::title(&described["document"]);
    Ok(frame::page(
        host,
        request,
        &format!("Differences of {name}"),
        html! {
            nav.crumbs { a href=(links::document(id)) { (words::plain(name)) } " / "
                a href=(links::with(&links::document(id), &[("view", "versions")])) { "versions" } }
            h1 { "Version " (number(from)) " to " (number(to)) }
            @match compared {
                Some((markup, tally)) => {
                    p.where { span.added { "+" (tally.added) } " " span.removed { "−" (tally.removed) } " lines · "
                        a href=(other) { @if is_two { "In one column" } @else { "Side by side" } } }
                    @if before.flag("truncated") || after.flag("truncated") { p.notice { "Only the first " (words::count(LINES)) " lines are compared." } }
                    @if !before.flag("has_text") || !after.flag("has_text") { p.notice { "A version without text cannot be compared." } }
                    div.scroll { (markup) }
                }
                None => (frame::empty("Too large to compare", html! { p { "Both versions can be downloaded." } })),
            }
        },
    ))
}

/// Stores the content of an older version again, as the newest.
pub(super) fn restore(host: &dyn Host, request: &Request, described: &Value) -> Answer {
    let document = &described["document"];
    let hash = request.field("hash").ok_or_else(|| invalid("choose a version to bring back"))?;
    if !described.list("versions").iter().any(|version| version.text("hash") == hash) {
        return Err(missing("the document has no such version"));
    }
    let (path, collection) = (document.text("path"), document.text("collection"));
    let got = ask(
        host,
        "get",
        json!({ "hash": hash, "name": path, "collection": collection, "include_content": true }),
    )?;
    if got.flag("truncated") {
        return Err(super::problem(
            shelf_base::Kind::TooLarge,
            "this version is too large to be brought back here; download it, and store the file again",
        ));
    }
    let id = document.text("document_id");
    let mut arguments = json!({ "name": path, "collection": collection, "content": got.text("content"), "mime_type": document.text("mime_type") });
    if got.text("encoding") == "base64" {
        arguments["encoding"] = json!("base64");
    }
    ask(host, "add", arguments)?;
    Ok(Reply::to(links::with(&links::document(id), &[("view", "versions")])))
}
