//! The memory of the workspace: progress and decisions as a time line.

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_base::Kind;
use shelf_tools::ErrorReply;

use super::{Answer, ask, now};
use crate::{Host, Reply, Request, fields::Fields, frame, words};

const FILES: [(&str, &str); 2] = [("progress_log.jsonl", "Progress"), ("decisions.jsonl", "Decisions")];

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    let chosen = request.query("file").unwrap_or_default();
    let (contains, since) = (request.query("contains"), request.query("since"));
    let mut entries: Vec<(&str, Value)> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for (file, name) in FILES.into_iter().filter(|(file, _)| chosen.is_empty() || chosen == *file) {
        let mut arguments = json!({ "file": file, "last": 200 });
        for (argument, value) in [("contains", contains), ("since", since)] {
            if let Some(value) = value {
                arguments[argument] = json!(value);
            }
        }
        let found = match ask(host, "query_memory", arguments) {
            Err(error) if error.kind == Kind::Unavailable => return Ok(no_workspace(host, request, &error)),
            found => found?,
        };
        if let Some(wrong) = found.get("invalid_lines").and_then(Value::as_u64) {
            notes.push(format!(
                "{file} has {}.",
                words::counted(wrong, "line that is no entry", "lines that are no entries")
            ));
        }
        if found.flag("truncated") {
            notes.push(format!("Only the last entries of {file} are shown."));
        }
        entries.extend(found.list("entries").iter().map(|entry| (name, entry.clone())));
    }
    entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry["entry"].text("timestamp").to_owned()));
    Ok(frame::page(
        host,
        request,
        "Memory",
        html! {
            h1 { "Memory" }
            form.filters {
                label { "What " select name="file" { option value="" { "Everything" } @for (file, name) in FILES { option value=(file) selected[file == chosen] { (name) } } } }
                label { "With the text " input name="contains" value=(contains.unwrap_or_default()); }
                label { "Since " input name="since" value=(since.unwrap_or_default()) placeholder="7d or 2026-01-31" size="12"; }
                button { "Show" }
            }
            (chain(host))
            @for note in &notes { p.notice { (note) } }
            @if entries.is_empty() { (frame::empty("Nothing remembered", html! { p { "What agents write with " code { "write_memory_entry" } " appears here." } })) }
            ol.timeline { @for (name, entry) in &entries { (one(name, &entry["entry"])) } }
        },
    ))
}

/// The page of a server without a workspace.
fn no_workspace(host: &dyn Host, request: &Request, error: &ErrorReply) -> Reply {
    let text = html! { p { (words::plain(&error.message)) } p { "Agents keep their progress and decisions in it with " code { "write_memory_entry" } "." } };
    frame::page(host, request, "Memory", html! { h1 { "Memory" } (frame::empty("No workspace", text)) })
}

/// Whether what was written is still as it was written.
fn chain(host: &dyn Host) -> Markup {
    let Ok(found) = ask(host, "check_memory", json!({})) else { return html! {} };
    let findings: Vec<(&str, &str)> = found
        .list("files")
        .iter()
        .flat_map(|file| {
            file.list("findings").iter().filter_map(Value::as_str).map(|what| (file.text("file"), what))
        })
        .collect();
    let entries: u64 = found.list("files").iter().map(|file| file.number("chained")).sum();
    let count = findings.len() as u64;
    // A chain that holds knows nothing of the lines that are found beside it: they were written in another way.
    let is_sound = found.flag("sound");
    let told = if is_sound {
        words::counted(count, "line was", "lines were") + " not written through this library"
    } else {
        words::counted(count, "difference", "differences")
    };
    html! {
        @if is_sound && entries > 0 {
            p.note { span.good { "✓ The chain holds" } ": " (words::counted(entries, "line is", "lines are")) " as they were written." }
        } @else if is_sound {
            p.note { "No line was written through this library yet, so there is no chain to hold." }
        } @else { p.notice role="status" { strong.bad { "The chain is broken" } ": something that was written has been changed, moved or removed." } }
        @if !findings.is_empty() { details open[!is_sound] { summary { (told) }
            ul { @for (file, what) in &findings { li { code { (file) } " " (words::plain(what)) } } } } }
    }
}

fn one(name: &str, entry: &Value) -> Markup {
    let what = entry.maybe("decision").or_else(|| entry.maybe("event")).unwrap_or_default();
    let shown = ["timestamp", "event", "decision"];
    let others: Vec<(&String, &Value)> =
        entry.as_object().into_iter().flatten().filter(|(key, _)| !shown.contains(&key.as_str())).collect();
    html! {
        li {
            strong { (words::plain(what)) } " " span.note { (name) " · " (frame::when(entry.text("timestamp"), now())) }
            @if !others.is_empty() { dl.facts { @for (key, value) in others {
                dt { (words::plain(key)) } dd { (words::plain(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))) }
            } } }
        }
    }
}
