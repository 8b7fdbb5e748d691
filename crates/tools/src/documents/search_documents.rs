//! `search_documents_tool`: finds passages by meaning and words, within a token budget.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::{FoundPassage, PassageRequest};

use crate::{
    Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "search_documents_tool",
    title: "Search documents",
    description: "Semantic search across documents: returns the best passages for a question, ready to read in \
                  formatted_context, which never exceeds max_tokens. Use search to find files with line numbers and \
                  filters, and grep for exact patterns.",
    family: Family::Documents,
    audience: Audience::Anyone,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"query": "how is authentication configured?", "max_results": 5, "max_tokens": 2000}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let request = request(arguments)?;
        let found = context.library.search_passages(context.caller, &request, context.call)?;
        reply(&Reply {
            results: found.passages.iter().map(view).collect(),
            total_results: found.total,
            tokens_used: found.tokens as u64,
            formatted_context: found.context,
        })
    },
};

/// Most passages in one reply.
const MOST_RESULTS: u64 = 1_000;
/// Most tokens in one reply.
const MOST_TOKENS: u64 = 200_000;

fn request(arguments: Arguments) -> Result<PassageRequest, ToolError> {
    if arguments.max_results == 0 {
        return Err(ToolError::argument("max_results must be at least 1"));
    }
    if arguments.max_results > MOST_RESULTS {
        return Err(ToolError::argument(format!("max_results must be at most {MOST_RESULTS}")));
    }
    if arguments.max_tokens == 0 {
        return Err(ToolError::argument("max_tokens must be at least 1"));
    }
    Ok(PassageRequest {
        query: arguments.query,
        limit: arguments.max_results as usize,
        tokens: arguments.max_tokens.min(MOST_TOKENS) as usize,
        collection: arguments.collection_id,
    })
}

fn view(passage: &FoundPassage) -> Passage {
    Passage {
        document_id: passage.document.id.to_string(),
        title: passage.document.title.clone(),
        chunk_index: passage.ordinal,
        content: passage.content.clone(),
        score: (f64::from(passage.score) * 10_000.0).round() / 10_000.0,
        collection: passage.document.collection_name.clone(),
        collection_id: passage.document.collection.to_string(),
        address: passage.address.clone(),
        truncated: passage.is_cut.then_some(true),
    }
}

const fn five() -> u64 {
    5
}

const fn two_thousand() -> u64 {
    2_000
}

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Search query
    #[schemars(length(min = 1))]
    query: String,
    /// Maximum results
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1_000))]
    max_results: u64,
    /// Token budget for response
    #[serde(default = "two_thousand")]
    #[schemars(range(min = 1))]
    max_tokens: u64,
    /// Only documents in the collection with this UUID
    collection_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// The passages in formatted_context, best first
    results: Vec<Passage>,
    /// Total number of matching passages, regardless of max_results and max_tokens
    total_results: u64,
    /// Number of tokens in formatted_context
    tokens_used: u64,
    /// The passages grouped by document, with score and citation address
    formatted_context: String,
}

#[derive(Serialize, JsonSchema)]
struct Passage {
    /// Document UUID
    document_id: String,
    /// Title of the document
    title: String,
    /// Index of the passage in the document, from 0
    chunk_index: u32,
    /// Text of the passage
    content: String,
    /// From 0 to 1; comparable only within this reply
    score: f64,
    /// Name of the collection
    collection: String,
    /// Collection UUID
    collection_id: String,
    /// Citation address
    address: String,
    /// True when the text was truncated to fit the budget
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
}
