//! What a search page asks for, and the counts by which it can be narrowed.

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_base::Moment;

use super::{ask, now};
use crate::{Host, Request, fields::Fields, links, words};

/// The ways to search, as the address names them, as people do, and as the search tool does.
pub(super) const MODES: [(&str, &str, &str); 4] = [
    ("hybrid", "Words and meaning", "hybrid"),
    ("words", "Words", "keyword"),
    ("meaning", "Meaning", "semantic"),
    ("pattern", "Pattern", ""),
];
/// Times in which documents were first stored, as the address names them and as people do, and how many days that are.
const TIMES: [(&str, &str, i64); 4] = [
    ("day", "Today", 1),
    ("week", "Last 7 days", 7),
    ("month", "Last 30 days", 30),
    ("year", "Last 12 months", 365),
];
/// Anything before these.
const OLDER: (&str, &str) = ("older", "Older");
/// Values of a kind that are listed.
const VALUES: usize = 8;
const DAY_MICROS: i64 = 86_400_000_000;

/// The question that an address holds.
pub(super) struct Question<'a> {
    pub text: &'a str,
    pub mode: &'static str,
    pub tool_word: &'static str,
    pub collection: &'a str,
    mime: &'a str,
    tag: &'a str,
    time: &'a str,
}

impl<'a> Question<'a> {
    pub(super) fn of(request: &'a Request) -> Self {
        let asked = request.query("mode").unwrap_or("hybrid");
        let (mode, _, tool_word) = MODES.into_iter().find(|(mode, ..)| *mode == asked).unwrap_or(MODES[0]);
        let value = |name| request.query(name).unwrap_or_default();
        Self {
            text: value("q"),
            mode,
            tool_word,
            collection: value("collection"),
            mime: value("type"),
            tag: value("tag"),
            time: value("time"),
        }
    }

    /// The filters with their values, empty ones too. A pattern is searched for in a collection only.
    pub(super) fn filters(&self) -> Vec<(&'static str, &'a str)> {
        let all =
            [("collection", self.collection), ("type", self.mime), ("tag", self.tag), ("time", self.time)];
        all.into_iter().take(if self.mode == "pattern" { 1 } else { 4 }).collect()
    }

    pub(super) fn has_filters(&self) -> bool {
        self.filters().iter().any(|(_, value)| !value.is_empty())
    }

    /// The address of this question with one thing changed.
    pub(super) fn with(&self, name: &str, value: &str) -> String {
        let mode = if self.mode == "hybrid" { "" } else { self.mode };
        let mut pairs = vec![("q", self.text), ("mode", mode)];
        pairs.extend(self.filters());
        match pairs.iter_mut().find(|(known, _)| *known == name) {
            Some(pair) => pair.1 = value,
            None => pairs.push((name, value)),
        }
        links::with("/search", &pairs)
    }

    /// Adds the filters to the arguments of a tool.
    pub(super) fn narrow(&self, arguments: &mut Value) {
        for (name, value) in [("collection", self.collection), ("mime", self.mime)] {
            if !value.is_empty() {
                arguments[name] = json!(value);
            }
        }
        if !self.tag.is_empty() {
            arguments["tags"] = json!([self.tag]);
        }
        let today = now().micros().div_euclid(DAY_MICROS);
        if let Some((_, _, days)) = TIMES.into_iter().find(|(time, ..)| *time == self.time) {
            arguments["created_after"] = json!(date(today - days + 1));
        } else if self.time == OLDER.0 {
            arguments["created_before"] = json!(date(today - 364));
        }
    }
}

/// A day as a date.
fn date(day: i64) -> String {
    Moment::from_micros(day * DAY_MICROS).to_string().chars().take(10).collect()
}

/// Counts by which the results can be narrowed: of what the question finds, or of all documents without one.
pub(super) fn facets(host: &dyn Host, question: &Question<'_>) -> Markup {
    if question.mode == "pattern" && !question.text.is_empty() {
        return places(host, question);
    }
    let mut asked = json!({});
    question.narrow(&mut asked);
    if !question.text.is_empty() {
        asked["query"] = json!(question.text);
        asked["type"] = json!(question.tool_word);
    }
    let Ok(counts) = ask(host, "facets", asked) else { return html! {} };
    let groups =
        [("collection", "Collection", "collections"), ("type", "Type", "types"), ("tag", "Tag", "tags")];
    let filters = question.filters();
    // Every document was first stored on one day, so the days count all of them.
    let total: u64 = counts.list("days").iter().map(|day| day.number("document_count")).sum();
    // A value that all hits have narrows nothing.
    let narrows = |values: &[(&str, u64)]| values.iter().any(|(_, count)| *count < total);
    let chosen = |name: &str| filters.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    html! {
        @for (name, heading, list) in groups { @if let Some(chosen) = chosen(name) {
            @let values: Vec<(&str, u64)> = counts.list(list).iter().map(|value| (value.text("value"), value.number("document_count"))).collect();
            @if narrows(&values) || !chosen.is_empty() { (group(question, (name, heading), chosen, &values, &|value| shown(name, value))) }
        } }
        @if let Some(chosen) = chosen("time") {
            @let values = times(counts.list("days"));
            @if narrows(&values) || !chosen.is_empty() { (group(question, ("time", "First stored"), chosen, &values, &time_name)) }
        }
    }
}

/// Collections in which a pattern can be looked for. Its hits are not counted by them, so no counts are shown.
fn places(host: &dyn Host, question: &Question<'_>) -> Markup {
    let shelves = ask(host, "list_collections", json!({})).unwrap_or_default();
    let all = shelves.list("collections");
    html! {
        @if all.len() > 1 || !question.collection.is_empty() { section { h2 { "Only in" } ul {
            @if question.collection.is_empty() { @for shelf in all.iter().take(VALUES) {
                li { a href=(question.with("collection", shelf.text("name"))) { (words::plain(shelf.text("name"))) } }
            } }
            @else { li { a.chosen href=(question.with("collection", "")) title="Remove this filter" { (words::plain(question.collection)) " ×" } } }
        } } }
    }
}

fn group(
    question: &Question<'_>,
    (name, heading): (&str, &str),
    chosen: &str,
    values: &[(&str, u64)],
    shown: &dyn Fn(&str) -> String,
) -> Markup {
    html! {
        section { h2 { (heading) } ul {
            @if !chosen.is_empty() { li { a.chosen href=(question.with(name, "")) title="Remove this filter" { (shown(chosen)) " ×" } } }
            @else { @for (value, count) in values.iter().take(VALUES) {
                li { a href=(question.with(name, value)) { (shown(value)) } span.figure { (words::count(*count)) } }
            } }
        } }
    }
}

fn shown(name: &str, value: &str) -> String {
    if name == "type" { words::kind(value) } else { words::plain(value) }
}

fn time_name(value: &str) -> String {
    let known = TIMES.iter().map(|(key, name, _)| (*key, *name)).chain([OLDER]);
    known.into_iter().find(|(key, _)| *key == value).map_or(value, |(_, name)| name).to_owned()
}

/// Documents by how long ago they were first stored. A time in which nothing came to the one before is left out.
fn times(days: &[Value]) -> Vec<(&'static str, u64)> {
    let today = now().micros().div_euclid(DAY_MICROS);
    let since = |first: i64| -> u64 {
        let first = date(first);
        days.iter()
            .filter(|day| day.text("day") >= first.as_str())
            .map(|day| day.number("document_count"))
            .sum()
    };
    let mut found = Vec::new();
    let mut before = 0;
    for (key, _, length) in TIMES {
        let count = since(today - length + 1);
        if count > before {
            found.push((key, count));
        }
        before = count;
    }
    let all: u64 = days.iter().map(|day| day.number("document_count")).sum();
    if all > before {
        found.push((OLDER.0, all - before));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_what_is_in_them() {
        let today = now().micros().div_euclid(DAY_MICROS);
        let day = |ago: i64, count: u64| json!({ "day": date(today - ago), "document_count": count });
        let days = [day(900, 4), day(20, 2), day(0, 3)];
        assert_eq!(times(&days), [("day", 3), ("month", 5), ("older", 4)]);
        assert_eq!(times(&[]), []);
    }
}
