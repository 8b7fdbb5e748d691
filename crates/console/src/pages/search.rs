//! Search: by words and meaning, or by pattern; the address holds the whole question.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{
    Answer, ask, now,
    search_filters::{self, MODES, Question},
};
use crate::{Host, Reply, Request, fields::Fields, frame, links, render::marks, words};

/// Hits on a page.
const HITS: u64 = 20;

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    let question = Question::of(request);
    let cursor = request.query("cursor");
    match request.query("part") {
        Some("results") => return Ok(Reply::html(200, results(host, &question, cursor)?)),
        Some("facets") => return Ok(Reply::html(200, search_filters::facets(host, &question))),
        _ => {}
    }
    let found = results(host, &question, cursor);
    // A pattern that is being written is often not valid yet: the form stays.
    let found = found
        .unwrap_or_else(|error| frame::empty("That did not work", html! { (frame::told(&error.message)) }));
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
                @for (name, value) in question.filters() { @if !value.is_empty() { input type="hidden" name=(name) value=(value); } }
            }
            div.found {
                aside.facets aria-label="Filters" data-facets="" { (search_filters::facets(host, &question)) }
                div.results data-results="" { (found) }
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

fn results(
    host: &dyn Host,
    question: &Question<'_>,
    cursor: Option<&str>,
) -> Result<Markup, shelf_tools::ErrorReply> {
    if question.text.is_empty() {
        return if question.has_filters() { listed(host, question, cursor) } else { Ok(hints()) };
    }
    if question.mode == "pattern" {
        return by_pattern(host, question, cursor);
    }
    let mut arguments = json!({
        "query": question.text, "type": question.tool_word, "limit": HITS, "line_numbers": true, "color": "always", "context": 1,
    });
    question.narrow(&mut arguments);
    if let Some(cursor) = cursor {
        arguments["cursor"] = json!(cursor);
    }
    let found = ask(host, "search", arguments)?;
    let hits = found.list("results");
    let next = found.maybe("next_cursor").map(|cursor| question.with("cursor", cursor));
    Ok(html! {
        p.tally role="status" { (words::counted(found.number("total"), "document", "documents")) ", "
            (found.number("execution_time_ms")) " ms"
            @for correction in found.list("corrections") {
                " · searched for " em { (words::plain(correction.text("meant"))) } " instead of " (words::plain(correction.text("asked")))
            }
            @if let Some(note) = found.maybe("note").filter(|_| !hits.is_empty()) { " · " (frame::told(note)) }
        }
        @if hits.is_empty() { (nothing(question)) }
        ol.hits { @for hit in hits { (one(hit)) } }
        @if let Some(next) = next { p { a.more href=(next) rel="next" { "More results" } } }
    })
}

/// Documents that fit the filters alone, the newest first.
fn listed(
    host: &dyn Host,
    question: &Question<'_>,
    cursor: Option<&str>,
) -> Result<Markup, shelf_tools::ErrorReply> {
    let mut arguments = json!({ "limit": HITS, "sort_by": "indexed", "sort_order": "desc" });
    question.narrow(&mut arguments);
    if let Some(cursor) = cursor {
        arguments["cursor"] = json!(cursor);
    }
    let found = ask(host, "list", arguments)?;
    let next = found.maybe("next_cursor").map(|cursor| question.with("cursor", cursor));
    Ok(html! {
        p.tally role="status" { (words::counted(found.number("total"), "document", "documents")) ", the newest first" }
        @if found.list("documents").is_empty() { (frame::empty("Nothing here", html! { p { a href="/search" { "Remove the filters" } } })) }
        ol.hits { @for document in found.list("documents") {
            @let id = document.text("document_id");
            li.hit-item data-preview=(links::with(&links::document(id), &[("part", "preview")])) {
                h2 { a href=(links::document(id)) { (words::plain(super::document::title(document))) } }
                p.where { a href=(links::collection(document.text("collection"), "")) { (words::plain(document.text("collection"))) }
                    " / " (words::plain(document.text("path")))
                    span.note { " · " (words::kind(document.text("mime_type"))) " · " (words::bytes(document.number("size"))) " · " (frame::when(document.text("indexed_at"), now())) } }
            }
        } }
        @if let Some(next) = next { p { a.more href=(next) rel="next" { "More documents" } } }
    })
}

fn nothing(question: &Question<'_>) -> Markup {
    frame::empty(
        "Nothing found",
        html! {
            p { "Nothing fits " em { (words::plain(question.text)) } "." @if question.mode != "pattern" { " Try other or fewer words, or Pattern for an exact piece of text." } }
            @if question.has_filters() {
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
    let region: Vec<String> =
        hit.list("bbox").iter().filter_map(Value::as_f64).map(|at| format!("{at:.4}")).collect();
    let region = region.join(",");
    let address = links::region(id, (first, last), &region);
    let title = if hit.text("title").is_empty() { hit.text("path") } else { hit.text("title") };
    let lines: Vec<_> = marks::lines(hit.text("snippet")).collect();
    let quoted: Vec<String> = hit.text("snippet").lines().map(unmarked).collect();
    let quotation = format!("> {}\n\n— {title}, {}", quoted.join("\n> "), hit.text("address"));
    let preview = links::with(
        &links::document(id),
        &[("part", "preview"), ("lines", &format!("{first}-{last}")), ("box", &region)],
    );
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

/// The address of a line that a pattern found: of the page that shows it, or of a part of that page.
fn found_at(question: &Question<'_>, (path, hash): (&str, &str), line: &str, part: &str) -> String {
    let pairs =
        [("path", path), ("hash", hash), ("collection", question.collection), ("line", line), ("part", part)];
    links::with("/to", &pairs)
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
        p.tally role="status" { (words::counted(found.number("total_matches"), "line", "lines")) " in "
            (words::counted(found.number("total_files"), "document", "documents")) }
        @if matches.is_empty() { (nothing(question)) }
        ol.hits { @for File { path, hash, lines } in &files {
            @let to = |line: &str| found_at(question, (path, hash), line, "");
            @let first = lines.first().map_or_else(String::new, |(_, line)| line.number("line_number").to_string());
            @let quoted: Vec<&str> = lines.iter().map(|(_, line)| line.text("line")).collect();
            li.hit-item data-preview=(found_at(question, (path, hash), &first, "preview")) {
                h2 { a href=(to("")) { (words::plain(path)) } }
                div.snippet { @for (at, line) in lines {
                    div.match { a.number href=(to(&line.number("line_number").to_string())) { (line.number("line_number")) } span { (shown(*at, line)) } }
                } }
                p.actions { (frame::copy("Copy link", &to(&first))) (frame::copy("Copy quotation", &format!("> {}\n\n— {path}, line {first}", quoted.join("\n> ")))) }
            }
        } }
        @if let Some(next) = next { p { a.more href=(next) rel="next" { "More results" } } }
    })
}
