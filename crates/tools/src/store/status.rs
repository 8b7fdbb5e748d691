//! `status`: statistics about the library.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shelf_engine::{StatusReply, TypeFigures};

use crate::{
    Family, Hints, Tool, arguments,
    policy::{Access, Audience},
    registry::reply,
    schema,
};

pub(crate) const TOOL: Tool = Tool {
    name: "status",
    title: "Library status",
    description: "Get storage statistics with optional file type breakdown: documents, bytes, distinct blocks and bytes saved \
                  by deduplication, counted over your own documents. Use list to see the documents themselves.",
    family: Family::Store,
    audience: Audience::Personal,
    access: Access::Read,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
    example: r#"{"detailed": true}"#,
    input: schema::of::<Arguments>,
    output: schema::of::<Reply>,
    run: |context, arguments| {
        let arguments: Arguments = arguments::read(arguments)?;
        let status =
            context.library.status(context.caller, arguments.detailed, arguments.file_types, context.call)?;
        let snapshots = status.collections.iter().map(|summary| summary.snapshots).sum();
        let figures = status.figures;
        reply(&Reply {
            total_objects: figures.total_objects,
            total_bytes: figures.total_bytes,
            unique_blocks: figures.unique_blocks,
            deduplicated_bytes: figures.deduplicated_bytes,
            dedup_ratio: figures.dedup_ratio(),
            details: arguments.detailed.then(|| details(&status, snapshots)),
            file_types: arguments.file_types.then(|| FileTypes::of(&status.types)),
        })
    },
};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// Include collections, snapshots, journal and, for the owner, storage
    #[serde(default)]
    detailed: bool,
    /// Include detailed file type analysis
    #[serde(default)]
    file_types: bool,
}

fn details(status: &StatusReply, snapshots: u64) -> Details {
    Details {
        collections: status.collections.len() as u64,
        snapshots,
        journal_sequence: status.storage.is_some().then_some(status.sequence),
        index: status.storage.and_then(|storage| storage.index).map(|index| IndexView {
            documents: index.documents,
            passages: index.passages,
            segments: index.segments,
            journal_sequence: index.sequence,
            pending: status.sequence.saturating_sub(index.sequence),
            word_bytes: index.sizes.words,
            vector_bytes: index.sizes.vectors,
            trigram_bytes: index.sizes.trigrams,
            text_bytes: status.storage.map_or(0, |storage| storage.derived_bytes),
            graph_bytes: index.sizes.graph,
            table_bytes: index.sizes.tables,
            deep_passages: index.deepening.map(|figures| figures.deep),
            deepening_seconds: index.deepening.map(|figures| figures.remaining.as_secs()),
        }),
        queue: status.storage.map(|storage| QueueView { pending: storage.loose.0 }),
        compression: status.storage.map(|storage| CompressionView {
            raw_bytes: storage.packs.raw_bytes,
            stored_bytes: storage.packs.stored_bytes,
            ratio: ratio(storage.packs.stored_bytes, storage.packs.raw_bytes),
        }),
        disk: status.storage.map(|storage| DiskView {
            packs: storage.packs.packs,
            pack_bytes: storage.packs.stored_bytes,
            loose_blocks: storage.loose.0,
            loose_bytes: storage.loose.1,
            catalog_bytes: storage.catalog_bytes,
            total_bytes: storage.packs.stored_bytes + storage.catalog_bytes,
        }),
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[derive(Serialize, JsonSchema)]
struct Reply {
    /// Number of documents
    total_objects: u64,
    /// Total size of the documents in bytes
    total_bytes: u64,
    /// Number of distinct blocks in the documents
    unique_blocks: u64,
    /// Bytes saved by sharing blocks
    deduplicated_bytes: u64,
    /// deduplicated_bytes / total_bytes
    dedup_ratio: f64,
    /// More statistics, when detailed is set
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    /// Breakdown by type, when file_types is set
    #[serde(skip_serializing_if = "Option::is_none")]
    file_types: Option<FileTypes>,
}

#[derive(Serialize, JsonSchema)]
struct Details {
    /// Number of collections
    collections: u64,
    /// Number of snapshots
    snapshots: u64,
    /// Sequence number of the last change in the journal, of all accounts (owner only)
    #[serde(skip_serializing_if = "Option::is_none")]
    journal_sequence: Option<u64>,
    /// Search index (owner only)
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<IndexView>,
    /// Pending work (owner only)
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<QueueView>,
    /// Compression of packs (owner only)
    #[serde(skip_serializing_if = "Option::is_none")]
    compression: Option<CompressionView>,
    /// Disk usage (owner only)
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<DiskView>,
}

#[derive(Serialize, JsonSchema)]
struct IndexView {
    /// Number of indexed documents
    documents: u64,
    /// Number of indexed passages
    passages: u64,
    /// Number of segments
    segments: u64,
    /// Sequence number of the last journal change that is indexed
    journal_sequence: u64,
    /// Number of changes that the next search will index
    pending: u64,
    /// Bytes of words, positions and stems
    word_bytes: u64,
    /// Bytes of vectors
    vector_bytes: u64,
    /// Bytes of trigram lists
    trigram_bytes: u64,
    /// Bytes of extracted texts
    text_bytes: u64,
    /// Bytes of facts for the knowledge graph and what documents mention
    graph_bytes: u64,
    /// Bytes of tables
    table_bytes: u64,
    /// Number of passages with vectors of the deep model, unless it is off
    #[serde(skip_serializing_if = "Option::is_none")]
    deep_passages: Option<u64>,
    /// Seconds that the other passages would take on one processor
    #[serde(skip_serializing_if = "Option::is_none")]
    deepening_seconds: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct QueueView {
    /// Number of blocks in the catalog that are waiting to be packed
    pending: u64,
}

#[derive(Serialize, JsonSchema)]
struct CompressionView {
    /// Bytes of blocks before compression
    raw_bytes: u64,
    /// Bytes of packs
    stored_bytes: u64,
    /// stored_bytes / raw_bytes
    ratio: f64,
}

#[derive(Serialize, JsonSchema)]
struct DiskView {
    /// Number of pack files
    packs: u64,
    /// Bytes of packs
    pack_bytes: u64,
    /// Number of blocks in the catalog that are waiting to be packed
    loose_blocks: u64,
    /// Bytes of loose blocks
    loose_bytes: u64,
    /// Bytes of the catalog, including loose blocks
    catalog_bytes: u64,
    /// Total bytes
    total_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
struct FileTypes {
    /// By extension
    by_extension: Vec<TypeView>,
    /// By MIME type
    by_mime: Vec<TypeView>,
    /// Number of text documents
    text: u64,
    /// Number of binary documents
    binary: u64,
}

#[derive(Serialize, JsonSchema)]
struct TypeView {
    /// Extension or MIME type
    r#type: String,
    /// Number of documents
    count: u64,
    /// Total size of the documents in bytes
    bytes: u64,
}

impl FileTypes {
    fn of(types: &[TypeFigures]) -> Self {
        let text = types.iter().filter(|figures| figures.is_text).map(|figures| figures.count).sum();
        let all: u64 = types.iter().map(|figures| figures.count).sum();
        Self {
            by_extension: group(types, |figures| &figures.extension),
            by_mime: group(types, |figures| &figures.mime),
            text,
            binary: all - text,
        }
    }
}

fn group(types: &[TypeFigures], key: impl Fn(&TypeFigures) -> &String) -> Vec<TypeView> {
    let mut sums: BTreeMap<&String, (u64, u64)> = BTreeMap::new();
    for figures in types {
        let sum = sums.entry(key(figures)).or_default();
        *sum = (sum.0 + figures.count, sum.1 + figures.bytes);
    }
    let mut views: Vec<TypeView> = sums
        .into_iter()
        .map(|(name, (count, bytes))| TypeView { r#type: name.clone(), count, bytes })
        .collect();
    views.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.r#type.cmp(&b.r#type)));
    views
}
