//! `grep`: finds lines by regular expression, with complete results and exact counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::{Filter, GrepOutput, GrepReply, GrepRequest, GrepShow, SearchKind, SearchRequest};

use super::{common::json_chars, grep_output, search_output};
use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "grep",
    title: "Search by pattern",
    description: "Search for regex patterns within document contents (similar to grep command): ripgrep's syntax and flags over \
                  the text of all your documents, or of those selected by paths. Counts are exact, and a cursor leads \
                  through all matches. Use list to find documents by name, type or tag.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"pattern": "print.*", "paths": ["notes/"], "line_numbers": true, "context": 2}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let style = grep_output::Style {
            line_numbers: arguments.line_numbers,
            with_filename: arguments.with_filename,
            color: grep_output::wants_color(arguments.color.as_deref())?,
            context: arguments.context.max(arguments.before_context).max(arguments.after_context) > 0,
        };
        let (fast_first, wants_text) = (arguments.fast_first, arguments.output);
        let mut request = request(arguments)?;
        request.output =
            wants_text.then_some(GrepOutput { with_path: style.with_filename, color: style.color });
        let suggestions = if fast_first { Some(suggest(context, &request)?) } else { None };
        let taken = suggestions.as_ref().map_or(0, json_chars);
        request.page_chars = context.page_chars.saturating_sub(taken).max(context.page_chars / 2);
        let found = context.library.grep(context.caller, &request, context.call)?;
        let text = wants_text.then(|| grep_output::text(&found, &request, &style));
        reply(&view(found, text, suggestions))
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Regular expression pattern to search for
    pattern: String,
    /// Files or directories to search (default: all indexed files): globs, folders or names
    #[serde(default)]
    paths: Vec<String>,
    /// Show N lines after match
    #[serde(default)]
    after_context: usize,
    /// Show N lines before match
    #[serde(default)]
    before_context: usize,
    /// Show N lines before and after match
    #[serde(default)]
    context: usize,
    /// Case-insensitive search
    #[serde(default)]
    ignore_case: bool,
    /// Match whole words only
    #[serde(default)]
    word: bool,
    /// Invert match (show non-matching lines)
    #[serde(default)]
    invert: bool,
    /// Show line numbers
    #[serde(default)]
    line_numbers: bool,
    /// Show filename with matches
    #[serde(default)]
    with_filename: bool,
    /// Show only count of matching lines
    #[serde(default)]
    count: bool,
    /// Show only filenames with matches
    #[serde(default)]
    files_with_matches: bool,
    /// Show only filenames without matches
    #[serde(default)]
    files_without_match: bool,
    /// Color mode: always, never, auto
    #[schemars(extend("default" = "never"))]
    color: Option<String>,
    /// Stop after N matches per file; 0 for no limit
    #[serde(default)]
    max_count: u64,
    /// Return a quick semantic suggestions burst first, in addition to the complete matches
    #[serde(default)]
    fast_first: bool,
    /// Also return the page as text, as a terminal would show it
    #[serde(default)]
    output: bool,
    /// Only this collection
    collection: Option<String>,
    /// next_cursor of the previous page
    cursor: Option<String>,
}

fn request(arguments: Arguments) -> Result<GrepRequest, ToolError> {
    if arguments.files_with_matches && arguments.files_without_match {
        return Err(ToolError::argument("files_with_matches and files_without_match cannot both be true"));
    }
    let show = match (arguments.files_with_matches, arguments.files_without_match, arguments.count) {
        (true, _, _) => GrepShow::FilesWithMatches,
        (_, true, _) => GrepShow::FilesWithoutMatch,
        (_, _, true) => GrepShow::Counts,
        _ => GrepShow::Lines,
    };
    let most = |own: usize| if own > 0 { own } else { arguments.context }.min(CONTEXT_LINES);
    Ok(GrepRequest {
        before: most(arguments.before_context),
        after: most(arguments.after_context),
        pattern: arguments.pattern,
        paths: arguments.paths,
        collection: arguments.collection,
        ignore_case: arguments.ignore_case,
        word: arguments.word,
        invert: arguments.invert,
        max_count: (arguments.max_count > 0).then_some(arguments.max_count),
        show,
        parts: false,
        output: None,
        page_chars: 0,
        cursor: arguments.cursor,
    })
}

/// Most lines of context; more would not fit on a page.
const CONTEXT_LINES: usize = 4_000;

/// Most suggestions.
const SUGGESTIONS: usize = 5;

/// Documents that are similar in meaning to the words of the pattern.
fn suggest(context: &crate::Context<'_>, request: &GrepRequest) -> Result<Vec<SuggestionView>, ToolError> {
    let words = |character: char| if character.is_alphanumeric() { character } else { ' ' };
    let query: String = request.pattern.chars().map(words).collect();
    if query.trim().is_empty() {
        return Ok(Vec::new());
    }
    let search = SearchRequest {
        kind: SearchKind::Semantic,
        limit: SUGGESTIONS,
        patterns: request.paths.clone(),
        filter: Filter { collection: request.collection.clone(), ..Filter::default() },
        ..SearchRequest::new(query)
    };
    let found = context.library.search(context.caller, &search, context.call)?;
    let style = search_output::Style { line_numbers: false, color: false };
    let views = found.hits.iter().map(|hit| SuggestionView {
        path: hit.document.path.clone(),
        score: f64::from(hit.score),
        address: hit.address.clone(),
        snippet: search_output::snippet(&hit.snippet, &style),
    });
    Ok(views.collect())
}

fn view(found: GrepReply, output: Option<String>, suggestions: Option<Vec<SuggestionView>>) -> Reply {
    let lines = found.lines.into_iter().map(|line| LineView {
        path: line.path,
        hash: line.hash.to_string(),
        line_number: line.number,
        line: without_return(line.text),
        before: line.before.into_iter().map(without_return).collect(),
        after: line.after.into_iter().map(without_return).collect(),
        truncated: line.shortened.then_some(true),
    });
    Reply {
        matches: lines.collect(),
        total_matches: found.total_matches,
        files: found.files.into_iter().map(|file| FileView { path: file.path, count: file.count }).collect(),
        total_files: found.total_files,
        files_searched: found.searched,
        output,
        failed: found
            .failed
            .into_iter()
            .map(|file| FailedView { path: file.path, reason: file.reason })
            .collect(),
        next_cursor: found.next_cursor,
        suggestions,
    }
}

/// Removes a carriage return from the end of a line. `output` keeps it, because a terminal does not show it.
fn without_return(mut line: String) -> String {
    if line.ends_with('\r') {
        line.pop();
    }
    line
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Matching lines on this page
    matches: Vec<LineView>,
    /// Total number of matching lines
    total_matches: u64,
    /// Documents on this page, with their numbers of matching lines
    files: Vec<FileView>,
    /// Total number of documents with a match, or without one when files_without_match is set
    total_files: u64,
    /// Number of documents searched
    files_searched: u64,
    /// This page as a terminal would show it, when output is set
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    /// Documents that could not be read
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failed: Vec<FailedView>,
    /// Cursor of the next page; null on the last page
    #[schemars(extend("x-or-null" = true))]
    next_cursor: Option<String>,
    /// Semantic suggestions, when fast_first is set
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestions: Option<Vec<SuggestionView>>,
}

#[derive(Serialize, JsonSchema)]
struct SuggestionView {
    /// Path of the document
    path: String,
    /// Similarity in meaning, from 0 to 1
    score: f64,
    /// Citation address of the passage
    address: String,
    /// Lines of the passage
    snippet: String,
}

#[derive(Serialize, JsonSchema)]
struct LineView {
    /// Path of the document
    path: String,
    /// SHA-256 of its content
    hash: String,
    /// Line number, from 1
    line_number: u64,
    /// The line, without its line ending
    line: String,
    /// Lines before it
    before: Vec<String>,
    /// Lines after it
    after: Vec<String>,
    /// True when the line or its context was shortened; a long line is cut to the part around its first match
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct FailedView {
    /// Path of the document
    path: String,
    /// Why it could not be read
    reason: String,
}

#[derive(Serialize, JsonSchema)]
struct FileView {
    /// Path of the document
    path: String,
    /// Number of matching lines
    count: u64,
}
