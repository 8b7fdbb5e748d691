//! `search`: documents by words, by meaning, by both, or by hash.

use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_base::Moment;
use shelf_engine::{Filter, SearchHit, SearchKind, SearchReply, SearchRequest};

use super::{common::json_chars, grep_output, list, search_output};
use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "search",
    title: "Search documents",
    description: "Search for documents using keyword search, fuzzy matching, or hash lookup with enhanced LLM ergonomics. \
                  Hybrid by default: keywords (typos corrected, \"quotes\" for exact phrases, prefix*) and meaning \
                  together. One hit per document: its best passage, with lines and a citation address. Use grep for \
                  regular expressions and complete lists of lines, and list to find documents by type, tag or time.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"query": "database optimization", "limit": 5}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let began = Instant::now();
        let arguments: Arguments = arguments::read(arguments)?;
        let style = search_output::Style {
            line_numbers: arguments.line_numbers,
            color: grep_output::wants_color(arguments.color.as_deref())?,
        };
        let (paths_only, explain) = (arguments.paths_only, arguments.explain);
        let request = request(arguments, context.library.now())?;
        let mut found = context.library.search(context.caller, &request, context.call)?;
        let views = fit(context, &request, &mut found, &style, explain, paths_only)?;
        reply(&view(found, views, paths_only, began))
    },
};

const DEFAULT_LIMIT: usize = 10;
const MOST: usize = 1_000;
/// Most lines of context.
const CONTEXT_LINES: usize = 2_000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Search query
    query: String,
    /// Maximum results
    #[schemars(range(min = 1), extend("default" = 10))]
    limit: Option<u64>,
    /// Enable fuzzy search for approximate matching
    #[schemars(extend("default" = true))]
    fuzzy: Option<bool>,
    /// Minimum similarity for fuzzy search (0.0-1.0)
    #[schemars(range(min = 0.0, max = 1.0), extend("default" = 0.7))]
    similarity: Option<f64>,
    /// Only hits with at least this score (0.0-1.0)
    #[schemars(range(min = 0.0, max = 1.0), extend("default" = 0.0))]
    min_score: Option<f64>,
    /// Search by file hash (full or partial, minimum 8 characters)
    hash: Option<String>,
    /// Search type: keyword, semantic, hybrid
    #[schemars(extend("default" = "hybrid"))]
    r#type: Option<String>,
    /// Output only file paths (LLM-friendly format)
    #[serde(default)]
    paths_only: bool,
    /// Show line numbers with matches
    #[serde(default)]
    line_numbers: bool,
    /// Show N lines after match
    #[serde(default)]
    after_context: usize,
    /// Show N lines before match
    #[serde(default)]
    before_context: usize,
    /// Show N lines before and after match
    #[serde(default)]
    context: usize,
    /// Color highlighting: always, never, auto
    #[schemars(extend("default" = "never"))]
    color: Option<String>,
    /// Only documents whose path matches this pattern: *.md, src/, src/**/*.rs
    path_pattern: Option<String>,
    /// Only documents whose path matches one of these patterns
    #[serde(default)]
    include_patterns: Vec<String>,
    /// Only documents with one of these tags
    #[serde(default)]
    tags: Vec<String>,
    /// Only documents with all of the tags
    #[serde(default)]
    match_all_tags: bool,
    /// Only this collection
    collection: Option<String>,
    /// MIME type, such as text/markdown, or a family such as image/*
    mime: Option<String>,
    /// Extension, such as .py; several separated by commas
    extension: Option<String>,
    /// Only documents first stored at or after this time
    created_after: Option<String>,
    /// Only documents first stored before this time
    created_before: Option<String>,
    /// Include the keyword and semantic scores
    #[serde(default)]
    explain: bool,
    /// next_cursor of the previous page
    cursor: Option<String>,
}

/// The legs that a word means.
pub(super) fn kind_of(word: Option<&str>) -> Result<SearchKind, ToolError> {
    match word.map(str::to_lowercase).as_deref() {
        None | Some("hybrid") => Ok(SearchKind::Hybrid),
        Some("keyword" | "full-text" | "fulltext" | "text") => Ok(SearchKind::Keyword),
        Some("semantic") => Ok(SearchKind::Semantic),
        Some(other) => {
            Err(ToolError::argument(format!("type must be keyword, semantic or hybrid, not '{other}'")))
        }
    }
}

/// A time that an argument gives.
pub(super) fn time(field: &str, text: Option<String>, now: Moment) -> Result<Option<Moment>, ToolError> {
    text.map(|text| {
        Moment::parse(&text, now).map_err(|error| ToolError::argument(format!("{field}: {error}")))
    })
    .transpose()
}

fn request(arguments: Arguments, now: Moment) -> Result<SearchRequest, ToolError> {
    let kind = kind_of(arguments.r#type.as_deref())?;
    let limit = match arguments.limit {
        None => DEFAULT_LIMIT,
        Some(0) => return Err(ToolError::argument("limit must be at least 1")),
        Some(limit) => usize::try_from(limit).unwrap_or(MOST).min(MOST),
    };
    let similarity = arguments.similarity.unwrap_or(0.7);
    if !(0.0..=1.0).contains(&similarity) {
        return Err(ToolError::argument("similarity must be from 0.0 to 1.0"));
    }
    let min_score = arguments.min_score.unwrap_or(0.0);
    if !(0.0..=1.0).contains(&min_score) {
        return Err(ToolError::argument("min_score must be from 0.0 to 1.0"));
    }
    let lines = |own: usize| if own > 0 { own } else { arguments.context }.min(CONTEXT_LINES);
    Ok(SearchRequest {
        times: vec![arguments.created_after.clone(), arguments.created_before.clone()],
        kind,
        limit,
        similarity: arguments.fuzzy.unwrap_or(true).then_some(similarity as f32),
        min_score: min_score as f32,
        before: lines(arguments.before_context),
        after: lines(arguments.after_context),
        exact_lines: arguments.line_numbers,
        show: !arguments.paths_only,
        hash: arguments.hash.filter(|hash| !hash.is_empty()),
        filter: Filter {
            collection: arguments.collection,
            mime: arguments.mime,
            extensions: arguments.extension.map_or_else(Vec::new, |text| list::extensions(&text)),
            tags: arguments.tags,
            match_all_tags: arguments.match_all_tags,
            created: (
                time("created_after", arguments.created_after, now)?,
                time("created_before", arguments.created_before, now)?,
            ),
            ..Filter::default()
        },
        patterns: arguments.path_pattern.into_iter().collect(),
        include: arguments.include_patterns,
        cursor: arguments.cursor,
        query: arguments.query,
    })
}

/// Takes hits while they fit on the page, and leaves the rest to the next page.
fn fit(
    context: &crate::Context<'_>,
    request: &SearchRequest,
    found: &mut SearchReply,
    style: &search_output::Style,
    explain: bool,
    paths_only: bool,
) -> Result<Vec<HitView>, ToolError> {
    // A cursor grows with the pages before it.
    let cursor = request.cursor.as_ref().map_or(0, String::len);
    let mut room = context.page_chars.saturating_sub(2_000 + cursor);
    let mut views: Vec<HitView> = Vec::new();
    for hit in &found.hits {
        let view = hit_view(hit, style, explain);
        let size = if paths_only { json_chars(&view.path) } else { json_chars(&view) };
        if size > room && !views.is_empty() {
            break;
        }
        room = room.saturating_sub(size);
        views.push(view);
    }
    if found.hits.len() > views.len() {
        let shown = &found.hits[..views.len()];
        found.next_cursor = Some(context.library.search_cursor(context.caller, request, shown)?);
    }
    Ok(views)
}

fn hit_view(hit: &SearchHit, style: &search_output::Style, explain: bool) -> HitView {
    let document = &hit.document;
    let lines = hit.span.map(|span| (span.first_line, span.last_line));
    let pages = hit.span.filter(|span| span.first_page > 0).map(|span| (span.first_page, span.last_page));
    HitView {
        id: document.account_number,
        document_id: document.id.to_string(),
        hash: document.version.hash.to_string(),
        title: document.title.clone(),
        path: document.path.clone(),
        score: rounded(hit.score),
        snippet: search_output::snippet(&hit.snippet, style),
        collection: document.collection_name.clone(),
        mime_type: document.mime.clone(),
        address: hit.address.clone(),
        bbox: hit.bbox,
        line_number: hit.snippet.best,
        truncated: hit.snippet.truncated.then_some(true),
        line_start: lines.map(|(first, _)| first),
        line_end: lines.map(|(_, last)| last),
        page_start: pages.map(|(first, _)| first),
        page_end: pages.map(|(_, last)| last),
        keyword_score: hit.keyword.filter(|_| explain).map(rounded),
        semantic_score: hit.semantic.filter(|_| explain).map(rounded),
    }
}

/// Rounds to four decimals; more would suggest false precision.
fn rounded(score: f32) -> f64 {
    (f64::from(score) * 10_000.0).round() / 10_000.0
}

fn view(found: SearchReply, views: Vec<HitView>, paths_only: bool, began: Instant) -> Reply {
    let paths: Vec<String> = views.iter().map(|hit| hit.path.clone()).collect();
    Reply {
        total: found.total,
        r#type: found.searched.word().into(),
        execution_time_ms: began.elapsed().as_millis() as u64,
        results: if paths_only { Vec::new() } else { views },
        paths: paths_only.then_some(paths),
        corrections: found
            .corrections
            .into_iter()
            .map(|correction| CorrectionView {
                asked: correction.asked,
                meant: correction.meant,
                also: correction.also,
            })
            .collect(),
        model: found.model,
        note: found.note,
        next_cursor: found.next_cursor,
    }
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Total number of matching documents
    total: u64,
    /// The kind of search that ran: keyword, semantic, hybrid or hash
    r#type: String,
    /// Duration of the search in milliseconds
    execution_time_ms: u64,
    /// Hits on this page, best first; empty with paths_only
    results: Vec<HitView>,
    /// Paths of the hits, with paths_only
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<String>>,
    /// Words that were corrected
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    corrections: Vec<CorrectionView>,
    /// Embedding model whose vectors were compared; absent for keyword and hash searches
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Additional information, if any
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Cursor of the next page; null on the last page
    #[schemars(extend("x-or-null" = true))]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct CorrectionView {
    /// The word in the query
    asked: String,
    /// The word that was searched for instead
    meant: String,
    /// Other words that were searched for too
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    also: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct HitView {
    /// Number of the document in this library
    id: i64,
    /// Document UUID
    document_id: String,
    /// SHA-256 of the content that was found
    hash: String,
    /// Title
    title: String,
    /// Path of the document
    path: String,
    /// From 0 to 1; comparable only within this reply
    score: f64,
    /// Lines around the match
    snippet: String,
    /// Collection it belongs to
    collection: String,
    /// MIME type
    mime_type: String,
    /// Citation address of the passage
    address: String,
    /// Box of the passage on its first page: left, top, right and bottom from 0 to 1, from the top left
    #[serde(skip_serializing_if = "Option::is_none")]
    bbox: Option<[f64; 4]>,
    /// Line of the match, from 1
    #[serde(skip_serializing_if = "Option::is_none")]
    line_number: Option<u32>,
    /// True when not all of the requested context lines fit
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// First line of the passage
    #[serde(skip_serializing_if = "Option::is_none")]
    line_start: Option<u32>,
    /// Last line of the passage
    #[serde(skip_serializing_if = "Option::is_none")]
    line_end: Option<u32>,
    /// First page of the passage
    #[serde(skip_serializing_if = "Option::is_none")]
    page_start: Option<u32>,
    /// Last page of the passage
    #[serde(skip_serializing_if = "Option::is_none")]
    page_end: Option<u32>,
    /// Keyword score, with explain
    #[serde(skip_serializing_if = "Option::is_none")]
    keyword_score: Option<f64>,
    /// Semantic score (cosine similarity), with explain
    #[serde(skip_serializing_if = "Option::is_none")]
    semantic_score: Option<f64>,
}
