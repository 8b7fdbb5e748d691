//! The first page: what there is, what happened, and what to do next.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{Answer, activity, ask, setup};
use crate::{Host, Request, fields::Fields, frame, links, words};

/// Events on the first page.
const EVENTS: u64 = 12;
/// What is told on the first page: everything but snapshots, because every add makes one.
pub(super) const TOLD: [&str; 14] = [
    "add",
    "replace",
    "update",
    "retitle",
    "delete",
    "create_collection",
    "rename_collection",
    "delete_collection",
    "set_book",
    "set_map",
    "create_token",
    "revoke_token",
    "rotate_token",
    "create_account",
];
/// Collections on the first page.
const SHELVES: usize = 8;

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    let status = ask(host, "status", json!({ "detailed": true }))?;
    let shelves = ask(host, "list_collections", json!({})).unwrap_or_default();
    let events = ask(host, "activity", json!({ "limit": EVENTS, "operations": TOLD })).unwrap_or_default();
    let is_empty = status.number("total_objects") == 0;
    Ok(frame::page(
        host,
        request,
        "Overview",
        html! {
            h1.quiet { "Overview" }
            form.search action="/search" role="search" {
                input.big type="search" name="q" aria-label="Search for" placeholder="Search the library" autocomplete="off" autofocus;
                button.primary { "Search" }
            }
            @if is_empty { (nothing_yet(host, request)) } @else { (figures(host, &status)) }
            div.halves {
                section aria-labelledby="happened" {
                    h2 id="happened" { "What happened" }
                    div data-live=[host.may("activity").then_some("/activity/stream?kind=told")] data-most=(EVENTS) {
                        @if events.list("events").is_empty() { p.note.nothing { "Nothing yet." } }
                        (activity::table(events.list("events"), true))
                    }
                    @if host.may("activity") { p { a href="/activity" { "All activity" } } }
                }
                section aria-labelledby="shelves" {
                    h2 id="shelves" { "Collections" }
                    (shelf_list(&shelves))
                    (index(&status))
                }
            }
            @if !is_empty { details.more-setup { summary { "Connect an agent" } (connect(host, request)) } }
        },
    ))
}

fn connect(host: &dyn Host, request: &Request) -> Markup {
    let open = host.visitor().kind == "owner" && !host.visitor().can_sign_out;
    html! {
        @if open { p { "This server was started with " code { "--no-auth" } ": whoever reaches it on this machine acts as its owner, without a token." } }
        @else { p { "Every agent needs a token: " a href="/tokens" { "make one" } " and paste it where " code { "<your token>" } " stands." } }
        (setup::clients(&request.base_url, (!open).then_some("<your token>")))
    }
}

fn nothing_yet(host: &dyn Host, request: &Request) -> Markup {
    html! {
        section.welcome {
            h2 { "This library is empty" }
            p { "Connect an agent and let it store something, or store something yourself." }
            (connect(host, request))
            @if host.may("add") {
                (super::upload::area(host, "default", ""))
                @if frame::has_commands(host) { p.note { "From a shell: " code { "shelf add notes/" } } }
            }
        }
    }
}

fn figures(host: &dyn Host, status: &Value) -> Markup {
    let details = &status["details"];
    let figure = |value: String, label: &str| html! { div { dt { (label) } dd { (value) } } };
    html! {
        dl.figures {
            (figure(words::count(status.number("total_objects")), "documents"))
            (figure(words::count(details.number("collections")), "collections"))
            (figure(words::bytes(status.number("total_bytes")), "in documents"))
            (figure(words::bytes(status.number("deduplicated_bytes")), "saved by sharing"))
            (figure(words::count(details.number("snapshots")), "snapshots"))
        }
        (growth(host))
    }
}

/// Documents over time: how many there were at the end of each day.
fn growth(host: &dyn Host) -> Markup {
    let Ok(facets) = ask(host, "facets", json!({})) else { return html! {} };
    let days = facets.list("days");
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return html! {} };
    if days.len() < 2 {
        return html! {};
    }
    let mut sum = 0;
    let day_number = |day: &Value| {
        format!("{}T00:00:00Z", day.text("day"))
            .parse::<shelf_base::Moment>()
            .map_or(0, |at| at.micros() / 86_400_000_000)
    };
    let sums: Vec<(i64, u64)> = days
        .iter()
        .map(|day| {
            sum += day.number("document_count");
            (day_number(day), sum)
        })
        .collect();
    let (from, to) = (sums[0].0, sums[sums.len() - 1].0.max(sums[0].0 + 1));
    let place = |(day, count): &(i64, u64)| {
        let x = (day - from) as f64 / (to - from) as f64 * 600.0;
        let y = 76.0 - *count as f64 / sum.max(1) as f64 * 68.0;
        format!("{x:.1},{y:.1}")
    };
    let mut points = vec![];
    let mut before = 76.0;
    for point in &sums {
        let at = place(point);
        let (x, y) = at.split_once(',').unwrap_or(("0", "0"));
        points.push(format!("{x},{before}"));
        points.push(at.clone());
        before = y.parse().unwrap_or(before);
    }
    let line = points.join(" ");
    html! {
        figure.growth {
            svg viewBox="0 0 600 80" role="img" preserveAspectRatio="none" aria-label={ "Documents over time, " (words::count(sum)) " in all" } {
                polygon.area points={ "0,78 " (line) " 600,78" } {}
                polyline.line points=(line) {}
            }
            figcaption.note { span { (first.text("day")) } span { "documents over time" } span { (last.text("day")) } }
        }
    }
}

fn shelf_list(shelves: &Value) -> Markup {
    let mut all: Vec<&Value> = shelves.list("collections").iter().collect();
    all.sort_by_key(|shelf| std::cmp::Reverse(shelf.maybe("updated_at").unwrap_or_default().to_owned()));
    html! {
        @if all.is_empty() { p.note { "None yet." } }
        table.data { tbody { @for shelf in all.iter().take(SHELVES) {
            tr {
                td { a href=(links::collection(shelf.text("name"), "")) { (words::plain(shelf.text("name"))) } @if shelf.text("kind") == "book" { span.note { " book" } } }
                td.figure { (words::count(shelf.number("document_count"))) }
                td.figure { (words::bytes(shelf.number("bytes"))) }
            }
        } } }
        @if all.len() > SHELVES { p { a href="/c" { "All collections" } } }
    }
}

fn index(status: &Value) -> Markup {
    let index = &status["details"]["index"];
    if index.is_null() {
        return html! {};
    }
    html! {
        p.note {
            @if index.number("pending") == 0 { "The search index is up to date: " }
            @else { "The search index is " (words::counted(index.number("pending"), "change", "changes")) " behind and catches up with the next search: " }
            (words::counted(index.number("passages"), "passage", "passages")) " of " (words::counted(index.number("documents"), "document", "documents")) "."
        }
    }
}
