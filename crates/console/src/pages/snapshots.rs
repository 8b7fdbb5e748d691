//! Snapshots over time, and what changed between two of them.

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_base::Moment;

use super::{Answer, ask, invalid, now};
use crate::{Host, Reply, Request, fields::Fields, frame, links, render::diff, words};

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    let collection = request.query("collection").unwrap_or_default();
    let mut arguments = json!({ "limit": 100 });
    for (name, value) in [
        ("collection", Some(collection).filter(|name| !name.is_empty())),
        ("cursor", request.query("cursor")),
    ] {
        if let Some(value) = value {
            arguments[name] = json!(value);
        }
    }
    let found = ask(host, "list_snapshots", arguments)?;
    let shelves = ask(host, "list_collections", json!({})).unwrap_or_default();
    let all = found.list("snapshots");
    Ok(frame::page(
        host,
        request,
        "Snapshots",
        html! {
            h1 { "Snapshots" }
            form.filters { label { "Collection " select name="collection" { option value="" { "All" }
                @for shelf in shelves.list("collections") { option value=(shelf.text("name")) selected[shelf.text("name") == collection] { (words::plain(shelf.text("name"))) } } } }
                button { "Show" } }
            p.note { (words::counted(found.number("total"), "snapshot", "snapshots")) ". Every add makes one, and nothing changes it later."
                @if frame::has_commands(host) { " " code { "shelf restore DIR --snapshot ID" } " writes one into a folder." } }
            (time_line(all))
            @if all.is_empty() { (frame::empty("No snapshots yet", html! { p { "The first add makes the first snapshot." } })) }
            @else { form action="/snapshots/compare" {
                div.scroll { table.data.stacked {
                    thead { tr { th scope="col" { "From" } th scope="col" { "To" } th scope="col" { "Made" } th scope="col" { "Label" } th scope="col" { "Collection" } th.figure scope="col" { "Files" } th.figure scope="col" { "Size" } th scope="col" { "Root" } th { span.hidden { "Actions" } } } }
                    tbody { @for (at, snapshot) in all.iter().enumerate() { @let id = snapshot.text("snapshot_id"); tr id={ "s" (id) } {
                        td data-label="From" { input type="radio" name="from" value=(id) aria-label={ "From " (id) } checked[at == 1]; }
                        td data-label="To" { input type="radio" name="to" value=(id) aria-label={ "To " (id) } checked[at == 0 && all.len() > 1]; }
                        td data-label="Made" { (frame::when(snapshot.text("created_at"), now())) br; code.note { (id) } }
                        td data-label="Label" { (words::plain(snapshot.text("label"))) @if let Some(commit) = snapshot.maybe("git_commit") { br; span.note { "git " (words::short(commit)) } } }
                        td data-label="Collection" { a href=(links::collection(snapshot.text("collection"), "")) { (words::plain(snapshot.text("collection"))) } }
                        td.figure data-label="Files" { (words::count(snapshot.number("file_count"))) }
                        td.figure data-label="Size" { (words::bytes(snapshot.number("bytes"))) }
                        td.note data-label="Root" { (words::plain(snapshot.text("root"))) }
                        td { @if host.may("archive") && snapshot.number("file_count") > 0 { a href=(links::with("/snapshots/zip", &[("id", id)])) { "ZIP" } } }
                    } } }
                } }
                @if host.may("compare_snapshots") { p { button { "Compare" } " " button name="now" value="1" { "Compare with the present" } } }
            } }
            @if let Some(cursor) = found.maybe("next_cursor") { p { a.more href=(links::with("/snapshots", &[("collection", collection), ("cursor", cursor)])) rel="next" { "Older" } } }
        },
    ))
}

/// Makes a ZIP file of a snapshot and goes to it.
pub(super) fn zip(host: &dyn Host, request: &Request) -> Answer {
    let id = request.query("id").ok_or_else(|| invalid("choose a snapshot"))?;
    let made = ask(host, "archive", json!({ "snapshot_id": id }))?;
    Ok(Reply::to(links::local(made.text("archive_url"), &request.base_url)))
}

/// Snapshots as dots on a line from the oldest to the newest, larger ones as larger dots; each leads to its row.
fn time_line(all: &[Value]) -> Markup {
    let at = |snapshot: &Value| snapshot.text("created_at").parse::<Moment>().map_or(0, |at| at.micros());
    let (Some(first), Some(last)) = (all.iter().map(at).min(), all.iter().map(at).max()) else {
        return html! {};
    };
    if all.len() < 3 || first == last {
        return html! {};
    }
    let place = |snapshot: &Value| 10.0 + (at(snapshot) - first) as f64 / (last - first) as f64 * 980.0;
    let size = |snapshot: &Value| 3.0 + (snapshot.number("file_count") as f64 + 1.0).log10() * 1.6;
    html! {
        figure.growth.dots {
            svg viewBox="0 0 1000 40" role="group" aria-label={ (words::counted(all.len() as u64, "snapshot", "snapshots")) " over time" } {
                line.axis x1="0" y1="20" x2="1000" y2="20" {}
                @for snapshot in all {
                    a href={ "#s" (snapshot.text("snapshot_id")) } aria-label={ "Snapshot of " (words::time(snapshot.text("created_at"))) } tabindex="-1" {
                        circle cx=(format!("{:.1}", place(snapshot))) cy="20" r=(format!("{:.1}", size(snapshot))) {
                            title { (words::time(snapshot.text("created_at"))) ", " (words::counted(snapshot.number("file_count"), "file", "files")) " " (words::plain(snapshot.text("label"))) } }
                    }
                }
            }
            figcaption.note.ends { span { (words::time(all.last().map_or("", |oldest| oldest.text("created_at")))) } span { (words::time(all.first().map_or("", |newest| newest.text("created_at")))) } }
        }
    }
}

pub(super) fn compare(host: &dyn Host, request: &Request) -> Answer {
    let from = request.query("from").ok_or_else(|| invalid("choose the snapshot to compare from"))?;
    let to = request.query("to").filter(|_| request.query("now").is_none());
    let mut arguments = json!({ "from": from });
    if let Some(to) = to {
        arguments["to"] = json!(to);
    }
    let found = ask(host, "compare_snapshots", arguments)?;
    Ok(frame::page(
        host,
        request,
        "What changed",
        html! {
            nav.crumbs { a href="/snapshots" { "Snapshots" } }
            h1 { "What changed" }
            p.where { "From " code { (from) } " to " @match to { Some(to) => code { (to) }, None => "the present state" } }
            p { span.added { (words::counted(found.number("added"), "file", "files")) " added" } ", " (words::count(found.number("changed"))) " changed, "
                span.removed { (words::count(found.number("removed"))) " removed" } ", " (words::count(found.number("unchanged"))) " as they were" }
            div.scroll { table.data { tbody { @for change in found.list("changes") {
                @let (before, after) = (change.text("previous_hash"), change.text("new_hash"));
                tr {
                    td { span class=(match change.text("change") { "added" => "added", "removed" => "removed", _ => "note" }) { (change.text("change")) } }
                    td { (words::plain(change.text("path"))) }
                    td.figure { @if !before.is_empty() { (words::bytes(change.number("previous_size"))) } }
                    td.figure { @if !after.is_empty() { (words::bytes(change.number("new_size"))) } }
                    td { a href=(links::with("/snapshots/diff", &[("before", before), ("after", after), ("path", change.text("path"))])) { "Differences" } }
                }
            } } } }
            @if found.flag("truncated") { p.note { "Only the first changes are listed." } }
        },
    ))
}

/// What changed in one file.
pub(super) fn difference(host: &dyn Host, request: &Request) -> Answer {
    let text = |name: &str| -> Result<String, shelf_tools::ErrorReply> {
        let Some(hash) = request.query(name) else { return Ok(String::new()) };
        let got = ask(
            host,
            "get",
            json!({ "hash": hash, "include_content": true, "offset": 0, "length": diff::MOST / 2 }),
        )?;
        if got.text("encoding") == "base64" {
            return Err(invalid("this file is not text, so there are no lines to compare"));
        }
        Ok(got.text("content").to_owned())
    };
    let (before, after) = (text("before")?, text("after")?);
    let is_two = request.query("side").is_some();
    let path = request.query("path").unwrap_or_default();
    let pairs = [
        ("before", request.query("before").unwrap_or_default()),
        ("after", request.query("after").unwrap_or_default()),
        ("path", path),
        ("side", if is_two { "" } else { "1" }),
    ];
    Ok(frame::page(
        host,
        request,
        "Differences",
        html! {
            nav.crumbs { a href="/snapshots" { "Snapshots" } }
            h1 { (words::plain(path)) }
            @match diff::page(&before, &after, is_two) {
                Some((markup, tally)) => {
                    p.where { span.added { "+" (tally.added) } " " span.removed { "−" (tally.removed) } " lines · " a href=(links::with("/snapshots/diff", &pairs)) { @if is_two { "In one column" } @else { "Side by side" } } }
                    div.scroll { (markup) }
                }
                None => (frame::empty("Too large to compare", html! {})),
            }
        },
    ))
}
