//! Search: by words and meaning, or by pattern; the address holds the whole question.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{Answer, ask};
use crate::{Host, Reply, Request, fields::Fields, frame, links, render::marks, words};

/// The ways to search, as the address names them, as people do, and as the search tool does.
const MODES: [(&str, &str, &str); 4] = [
    ("hybrid", "Words and meaning", "hybrid"),
    ("words", "Words", "keyword"),
    ("meaning", "Meaning", "semantic"),
    ("pattern", "Pattern", ""),
];
/// Hits on a page.
const HITS: u64 = 20;

/// The question that an address holds.
struct Question<'a> {
    text: &'a str,
    mode: &'static str,
    tool_word: &'static str,
    collection: &'a str,
    mime: &'a str,
    tag: &'a str,
}

impl<'a> Question<'a> {
    fn of(request: &'a Request) -> Self {
        let asked = request.query("mode").unwrap_or("hybrid");
        let (mode, _, tool_word) = MODES.into_iter().find(|(mode, ..)| *mode == asked).unwrap_or(MODES[0]);
        Self {
            text: request.query("q").unwrap_or_default(),
            mode,
            tool_word,
            collection: request.query("collection").unwrap_or_default(),
            mime: request.query("type").unwrap_or_default(),
            tag: request.query("tag").unwrap_or_default(),
        }
    }

    /// The address of this question with one thing changed.
    fn with(&self, name: &str, value: &str) -> String {
        let mode = if self.mode == "hybrid" { "" } else { self.mode };
        let mut pairs = vec![
            ("q", self.text),
            ("mode", mode),
            ("collection", self.collection),
            ("type", self.mime),
            ("tag", self.tag),
        ];
        match pairs.iter_mut().find(|(known, _)| *known == name) {
            Some(pair) => pair.1 = value,
            None => pairs.push((name, value)),
        }
        links::with("/search", &pairs)
    }
}

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    let question = Question::of(request);
    let cursor = request.query("cursor");
    if request.query("part") == Some("results") {
        return Ok(Reply::html(200, results(host, &question, cursor)?));
    }
    let found = if question.text.is_empty() { Ok(hints()) } else { results(host, &question, cursor) };
    // A pattern that is being written is often not valid yet: the form stays.
    let found = found
        .unwrap_or_else(|error| frame::empty("That did not work", html! { (words::plain(&error.message)) }));
    let title =
        if question.text.is_empty() { "Search".to_owned() } else { words::clipped(question.text, 60) };
    Ok(frame::page(
        host,
        request,
        &title,
        html! {
            h1.quiet { "Search" }
            form.search action="/search" role="search" data-search="" {
                input.big type="search" name="q" value=(question.text) aria-label="Search for" autocomplete="off" spellcheck="false" autofocus
                    placeholder="Words, a question, or a pattern";
                button.primary { "Search" }
                fieldset.modes {
                    legend.hidden { "How to search" }
                    @for (mode, name, _) in MODES {
                        label { input type="radio" name="mode" value=(mode) checked[mode == question.mode]; " " (name) }
                    }
                }
                @for (name, value) in [("collection", question.collection), ("type", question.mime), ("tag", question.tag)] {
                    @if !value.is_empty() { input type="hidden" name=(name) value=(value); }
                }
            }
            div.found {
                (facets(host, &question))
                div.results data-results="" aria-live="polite" { (found) }
                aside.preview data-preview-pane="" aria-label="Preview" hidden {}
            }
        },
    ))
}

fn hints() -> Markup {
    frame::empty(
        "What are you looking for?",
        html! {
            p { "Words find words, with typing errors corrected; a question finds passages that mean the same. "
                code { "\"quotes\"" } " find exact phrases, " code { "begin*" } " finds beginnings, and a pattern finds lines." }
        },
    )
}

/// Counts by which the results can be narrowed.
fn facets(host: &dyn Host, question: &Question<'_>) -> Markup {
    let mut filter = json!({});
    if !question.collection.is_empty() {
        filter["collection"] = json!(question.collection);
    }
    let Ok(counts) = ask(host, "facets", filter) else { return html! {} };
    let groups = [
        ("collection", "Collection", "collections", question.collection),
        ("type", "Type", "types", question.mime),
        ("tag", "Tag", "tags", question.tag),
    ];
    html! {
        aside.facets aria-label="Filters" {
            @for (name, heading, list, chosen) in groups {
                @let values = counts.list(list);
                @if values.len() > 1 || !chosen.is_empty() {
                    h2 { (heading) }
                    ul {
                        @if !chosen.is_empty() { li { a.chosen href=(question.with(name, "")) title="Remove this filter" { (show(name, chosen)) " ×" } } }
                        @for value in values.iter().filter(|value| value.text("value") != chosen).take(if chosen.is_empty() { 8 } else { 0 }) {
                            li { a href=(question.with(name, value.text("value"))) { (show(name, value.text("value"))) }
                                span.figure { (words::count(value.number("document_count"))) } }
                        }
                    }
                }
            }
        }
    }
}

fn show(name: &str, value: &str) -> String {
    if name == "type" { words::kind(value) } else { words::plain(value) }
}

fn results(
    host: &dyn Host,
    question: &Question<'_>,
    cursor: Option<&str>,
) -> Result<Markup, shelf_tools::ErrorReply> {
    if question.text.is_empty() {
        return Ok(hints());
    }
    if question.mode == "pattern" {
        return by_pattern(host, question, cursor);
    }
    let mut arguments = json!({
        "query": question.text, "type": question.tool_word, "limit": HITS, "line_numbers": true, "color": "always", "context": 1,
    });
    for (name, value) in [("collection", question.collection), ("mime", question.mime)] {
        if !value.is_empty() {
            arguments[name] = json!(value);
        }
    }
    if !question.tag.is_empty() {
        arguments["tags"] = json!([question.tag]);
    }
    if let Some(cursor) = cursor {
        arguments["cursor"] = json!(cursor);
    }
    let found = ask(host, "search", arguments)?;
    let hits = found.list("results");
    let next = found.maybe("next_cursor").map(|cursor| question.with("cursor", cursor));
    Ok(html! {
        p.tally { (words::counted(found.number("total"), "document", "documents")) ", "
            (found.number("execution_time_ms")) " ms"
            @for correction in found.list("corrections") {
                " · searched for " em { (words::plain(correction.text("meant"))) } " instead of " (words::plain(correction.text("asked")))
            }
            @if let Some(note) = found.maybe("note") { " · " (words::plain(note)) }
        }
        @if hits.is_empty() { (nothing(question)) }
        ol.hits { @for hit in hits { (one(hit)) } }
        @if let Some(next) = next { p { a.more href=(next) rel="next" { "More results" } } }
    })
}

fn nothing(question: &Question<'_>) -> Markup {
    frame::empty(
        "Nothing found",
        html! {
            p { "Nothing fits " em { (words::plain(question.text)) } "." }
            @if !(question.collection.is_empty() && question.mime.is_empty() && question.tag.is_empty()) {
                p { a href=(links::with("/search", &[("q", question.text)])) { "Search without filters" } }
            } @else if question.mode != "hybrid" {
                p { a href=(links::with("/search", &[("q", question.text)])) { "Search by words and meaning" } }
            }
        },
    )
}

/// Where a hit stands in its document, in words.
fn place(hit: &Value) -> String {
    let (page, line) = (hit.number("page_start"), hit.number("line_start"));
    match (page, line) {
        (1.., _) => format!("page {page}"),
        (0, 1..) => format!("lines {line}–{}", hit.number("line_end")),
        _ => String::new(),
    }
}

fn one(hit: &Value) -> Markup {
    let id = hit.text("document_id");
    let (first, last) = (hit.number("line_start"), hit.number("line_end"));
    let address = links::lines(id, first, last);
    let title = if hit.text("title").is_empty() { hit.text("path") } else { hit.text("title") };
    let lines: Vec<_> = marks::lines(hit.text("snippet")).collect();
    let quoted: Vec<String> = hit.text("snippet").lines().map(unmarked).collect();
    let quotation = format!("> {}\n\n— {title}, {}", quoted.join("\n> "), hit.text("address"));
    let preview =
        links::with(&links::document(id), &[("part", "preview"), ("lines", &format!("{first}-{last}"))]);
    html! {
        li.hit-item data-preview=(preview) {
            h2 { a href=(address) { (words::plain(title)) } }
            p.where {
                a href=(links::collection(hit.text("collection"), "")) { (words::plain(hit.text("collection"))) }
                " / " (words::plain(hit.text("path")))
                span.note { " · " (words::kind(hit.text("mime_type"))) @if !place(hit).is_empty() { " · " (place(hit)) } }
            }
            div.snippet {
                @for line in &lines { div.match[line.is_match] {
                    @if let Some(number) = line.number { span.number { (number) } }
                    span { (line.markup()) }
                } }
            }
            p.actions {
                a href=(links::with("/cite", &[("address", hit.text("address"))])) { code { (hit.text("address")) } }
                (frame::copy("Copy address", hit.text("address")))
                (frame::copy("Copy quotation", &quotation))
            }
        }
    }
}

/// A line of a snippet without its number and its colours.
fn unmarked(line: &str) -> String {
    let line = line
        .strip_prefix("\u{1b}[32m")
        .and_then(|rest| rest.split_once("\u{1b}[0m"))
        .map_or(line, |(_, rest)| rest.get(1..).unwrap_or_default());
    line.replace("\u{1b}[1;31m", "").replace("\u{1b}[0m", "")
}

/// The matching lines of one document, each with its place in the reply.
struct File<'a> {
    path: &'a str,
    hash: &'a str,
    lines: Vec<(usize, &'a Value)>,
}

fn by_pattern(
    host: &dyn Host,
    question: &Question<'_>,
    cursor: Option<&str>,
) -> Result<Markup, shelf_tools::ErrorReply> {
    let mut arguments = json!({ "pattern": question.text, "line_numbers": true, "output": true, "color": "always", "with_filename": false });
    if !question.collection.is_empty() {
        arguments["collection"] = json!(question.collection);
    }
    if let Some(cursor) = cursor {
        arguments["cursor"] = json!(cursor);
    }
    let found = ask(host, "grep", arguments)?;
    let matches = found.list("matches");
    // The same lines as a terminal would show them, which is where the matches are marked.
    let marked: Vec<_> = marks::lines(found.text("output").trim_end_matches('\n'))
        .filter(|line| line.number.is_some())
        .collect();
    let shown = |at: usize, line: &Value| match marked.get(at) {
        Some(mark) if marked.len() == matches.len() && mark.number == Some(line.number("line_number")) => {
            mark.markup()
        }
        _ => html! { (words::plain(line.text("line"))) },
    };
    let next = found.maybe("next_cursor").map(|cursor| question.with("cursor", cursor));
    let mut files: Vec<File<'_>> = Vec::new();
    for (at, line) in matches.iter().enumerate() {
        match files.last_mut() {
            Some(file) if file.path == line.text("path") => file.lines.push((at, line)),
            _ => {
                files.push(File { path: line.text("path"), hash: line.text("hash"), lines: vec![(at, line)] })
            }
        }
    }
    Ok(html! {
        p.tally { (words::counted(found.number("total_matches"), "line", "lines")) " in "
            (words::counted(found.number("total_files"), "document", "documents")) }
        @if matches.is_empty() { (nothing(question)) }
        ol.hits { @for File { path, hash, lines } in &files {
            @let to = |line: &str| links::with("/to", &[("path", path), ("hash", hash), ("collection", question.collection), ("line", line)]);
            li.hit-item {
                h2 { a href=(to("")) { (words::plain(path)) } }
                div.snippet { @for (at, line) in lines {
                    div.match { a.number href=(to(&line.number("line_number").to_string())) { (line.number("line_number")) } span { (shown(*at, line)) } }
                } }
            }
        } }
        @if let Some(next) = next { p { a.more href=(next) rel="next" { "More results" } } }
    })
}
