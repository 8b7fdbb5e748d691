//! `facets`: how documents divide by collection, type, tag and day.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_base::Moment;
use shelf_engine::{Facet, Filter, SearchRequest};

use super::search::{kind_of, time};
use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "facets",
    title: "Count documents by value",
    description: "Count documents by collection, MIME type, tag and the day on which they were first stored: of all \
                  documents, of those that fit the filters, or with query of those that search finds. Use list to see the \
                  documents themselves, and status for storage.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"collection": "default"}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let now = context.library.now();
        let filter = Filter {
            collection: arguments.collection,
            mime: arguments.mime,
            tags: arguments.tags,
            created: (
                time("created_after", arguments.created_after, now)?,
                time("created_before", arguments.created_before, now)?,
            ),
            ..Filter::default()
        };
        let kind = kind_of(arguments.r#type.as_deref())?;
        let found = match arguments.query {
            Some(query) => {
                let request = SearchRequest { filter, kind, ..SearchRequest::new(query) };
                context.library.search_facets(context.caller, &request, context.call)?
            }
            None => context.library.facets(context.caller, &filter)?,
        };
        let views = |facets: Vec<Facet>| facets.into_iter().map(FacetView::of).collect();
        reply(&Reply {
            collections: views(found.collections),
            types: views(found.types),
            tags: views(found.tags),
            days: found
                .days
                .into_iter()
                .map(|(day, document_count, bytes)| DayView {
                    day: Moment::from_micros(day * DAY).to_string().chars().take(10).collect(),
                    document_count,
                    bytes,
                })
                .collect(),
        })
    },
};

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Only this collection
    collection: Option<String>,
    /// MIME type, such as text/markdown, or a family such as image/*
    mime: Option<String>,
    /// Only documents with one of these tags
    #[serde(default)]
    tags: Vec<String>,
    /// First stored at or after this time
    created_after: Option<String>,
    /// First stored before this time
    created_before: Option<String>,
    /// Only documents that search finds with this query; of more than 10,000 the best ones
    query: Option<String>,
    /// Search type with query: keyword, semantic, hybrid
    #[schemars(extend("default" = "hybrid"))]
    r#type: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// By collection, the most frequent first; at most 50
    collections: Vec<FacetView>,
    /// By MIME type, the most frequent first; at most 50
    types: Vec<FacetView>,
    /// By tag, the most frequent first; at most 50
    tags: Vec<FacetView>,
    /// By the day on which documents were first stored, in order
    days: Vec<DayView>,
}

#[derive(Serialize, JsonSchema)]
struct FacetView {
    /// The value
    value: String,
    /// Number of documents
    document_count: u64,
    /// Their size in bytes
    bytes: u64,
}

impl FacetView {
    fn of(facet: Facet) -> Self {
        Self { value: facet.value, document_count: facet.documents, bytes: facet.bytes }
    }
}

#[derive(Serialize, JsonSchema)]
struct DayView {
    /// The day, such as 2026-01-31
    day: String,
    /// Number of documents
    document_count: u64,
    /// Their size in bytes
    bytes: u64,
}
