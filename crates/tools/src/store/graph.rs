//! `graph`: what is connected to what, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shelf_engine::{GraphEdge, GraphNode, GraphReply, GraphRequest};

use super::common::DocumentView;
use crate::{
    Context, Family, Hints, Tool, arguments,
    family::ToolError,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "graph",
    title: "Query the knowledge graph",
    description: "Follow connections from a document, symbol, heading, tag or other node: LINKS_TO, IMPORTS, CALLS, DEFINES, \
                  INHERITS, IMPLEMENTS, REFERENCES, CITES; with reverse, who links to, imports or calls it. Or list node \
                  types, nodes of a type, or isolated nodes. Use search to find where to begin.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"name": "notes/monday.txt", "depth": 2, "relation": "LINKS_TO", "limit": 50}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        reply(&answer(context, &request(arguments))?)
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Document hash
    hash: Option<String>,
    /// Document name/path
    name: Option<String>,
    /// Direct KG node key, such as doc:UUID, sym:UUID#QUALIFIED_NAME or tag:NAME
    node_key: Option<String>,
    /// Direct KG node id
    node_id: Option<u64>,
    /// List available node types
    #[serde(default)]
    list_types: bool,
    /// List nodes by type; with a document or node, keep only connected nodes of this type
    list_type: Option<String>,
    /// List isolated nodes: documents without edges, or with list_type nodes of that type
    #[serde(default)]
    isolated: bool,
    /// Single relation filter
    relation: Option<String>,
    /// Relation filters
    #[serde(default)]
    relation_filters: Vec<String>,
    /// Traversal depth (1-5)
    #[schemars(range(min = 1, max = 5), extend("default" = 2))]
    depth: Option<u64>,
    /// Maximum results
    #[schemars(range(min = 1, max = 1_000), extend("default" = 100))]
    limit: Option<u64>,
    /// Pagination offset
    #[serde(default)]
    offset: u64,
    /// Traverse incoming edges
    #[serde(default)]
    reverse: bool,
    /// Include node properties JSON
    #[serde(default)]
    include_node_properties: bool,
    /// Include edge properties JSON
    #[serde(default)]
    include_edge_properties: bool,
    /// Hydrate metadata for nodes
    #[serde(default)]
    hydrate_fully: bool,
    /// Restrict traversal to a snapshot id
    scope_snapshot: Option<String>,
}

fn request(arguments: Arguments) -> GraphRequest {
    let mut relations = arguments.relation_filters;
    relations.extend(arguments.relation);
    GraphRequest {
        hash: arguments.hash,
        name: arguments.name,
        node_key: arguments.node_key,
        node_id: arguments.node_id,
        list_types: arguments.list_types,
        list_type: arguments.list_type,
        isolated: arguments.isolated,
        relations,
        depth: arguments.depth,
        limit: arguments.limit,
        offset: arguments.offset,
        reverse: arguments.reverse,
        node_properties: arguments.include_node_properties,
        edge_properties: arguments.include_edge_properties,
        hydrate: arguments.hydrate_fully,
        snapshot: arguments.scope_snapshot,
    }
}

/// Asks the engine for as many nodes as fit on a page together with their edges.
fn answer(context: &Context<'_>, request: &GraphRequest) -> Result<Reply, ToolError> {
    let mut request = request.clone();
    loop {
        let answer = context.library.graph(context.caller, &request, context.call)?;
        let reply = view(answer, request.offset);
        let shown = reply.connected_nodes.as_ref().or(reply.nodes.as_ref()).map_or(0, Vec::len) as u64;
        let size = serde_json::to_string(&reply).map_or(0, |text| text.len());
        if size <= context.page_chars || shown <= 1 {
            return Ok(reply);
        }
        let share = shown * context.page_chars as u64 / size as u64;
        request.limit = Some((share * 9 / 10).clamp(1, shown - 1));
    }
}

fn view(answer: GraphReply, offset: u64) -> Reply {
    let next = |truncated: bool, shown: usize| (truncated && shown > 0).then_some(offset + shown as u64);
    match answer {
        GraphReply::Walk { origin, nodes, edges, total, truncated } => Reply {
            origin: Some(NodeView::of(*origin)),
            next_offset: next(truncated, nodes.len()),
            connected_nodes: Some(nodes.into_iter().map(NodeView::of).collect()),
            edges: Some(edges.into_iter().map(EdgeView::of).collect()),
            total,
            truncated: Some(truncated),
            ..Reply::default()
        },
        GraphReply::Nodes { nodes, total, truncated } => Reply {
            next_offset: next(truncated, nodes.len()),
            nodes: Some(nodes.into_iter().map(NodeView::of).collect()),
            total: Some(total),
            truncated: Some(truncated),
            ..Reply::default()
        },
        GraphReply::Types(types) => Reply {
            types: Some(
                types.into_iter().map(|(name, count)| TypeView { r#type: name.into(), count }).collect(),
            ),
            ..Reply::default()
        },
    }
}

#[derive(Default, Serialize, JsonSchema)]
struct Reply {
    /// The node where the traversal began
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<NodeView>,
    /// Nodes that were reached, the nearest first
    #[serde(skip_serializing_if = "Option::is_none")]
    connected_nodes: Option<Vec<NodeView>>,
    /// Edges between the nodes of this page, earlier nodes and the origin
    #[serde(skip_serializing_if = "Option::is_none")]
    edges: Option<Vec<EdgeView>>,
    /// Nodes of a list
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<NodeView>>,
    /// Node types and their counts
    #[serde(skip_serializing_if = "Option::is_none")]
    types: Option<Vec<TypeView>>,
    /// Number of nodes on all pages; absent when a traversal was too large to count
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Whether nodes follow after this page, or a bound left something out
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// Offset of the next page
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct TypeView {
    /// Node type
    r#type: String,
    /// Number of nodes
    count: u64,
}

#[derive(Serialize, JsonSchema)]
struct NodeView {
    /// Number of the node; it survives a rebuild of the index
    node_id: u64,
    /// Key of the node
    node_key: String,
    /// Node type
    r#type: String,
    /// Name
    name: String,
    /// Path of its document
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// SHA-256 of the content of a document or version
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// Number of steps from the origin
    distance: u32,
    /// Lines, kind, language and counts
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<Map<String, Value>>,
    /// Details of a document, with hydrate_fully
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<DocumentView>,
}

impl NodeView {
    fn of(node: GraphNode) -> Self {
        Self {
            node_id: node.node_id,
            node_key: node.node_key,
            r#type: node.node_type,
            name: node.name,
            path: node.path,
            hash: node.hash,
            distance: node.distance,
            properties: node.properties,
            document: node.document.as_ref().map(DocumentView::from),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct EdgeView {
    /// Key of the node it leads from
    source: String,
    /// Key of the node it leads to
    target: String,
    /// Relation
    relation: String,
    /// Line, text, target as written, confidence (0-1), candidates, broken
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<Map<String, Value>>,
}

impl EdgeView {
    fn of(edge: GraphEdge) -> Self {
        Self {
            source: edge.source,
            target: edge.target,
            relation: edge.relation.to_owned(),
            properties: edge.properties,
        }
    }
}
