//! What a document costs in each store: the basis of every extrapolation.

use std::fs;
use std::io::ErrorKind;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Bench, LIBRARY, Node, SHARED};
use crate::bench::corpus;
use crate::bench::report::{Report, Target};

/// The size of every table of the library with its indexes, the largest first.
const TABLES: &str = "SELECT relname || ' ' || pg_total_relation_size(pg_class.oid) FROM pg_class \
    JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = 'bench' AND relkind = 'r' \
    ORDER BY pg_total_relation_size(pg_class.oid) DESC";
/// Tables that are named.
const NAMED: usize = 6;

/// The newest published view of the index.
pub struct PublishedView {
    /// The last journal record that it covers.
    pub sequence: u64,
    /// Bytes of its segments.
    pub segment_bytes: u64,
    /// The number of its segments.
    pub segments: usize,
    /// Bytes of the view itself.
    pub bytes: u64,
}

/// The newest view in the bucket; `None` before the first.
pub fn newest_view(bench: &Bench) -> Result<Option<PublishedView>> {
    let folder = bench.stores.objects(LIBRARY, "index");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("cannot list the published index"),
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let Some(newest) = names.filter(|name| name.starts_with("view-")).max() else { return Ok(None) };
    let text = fs::read_to_string(folder.join(newest)).context("cannot read the published view")?;
    let (_, body) = text.split_once('\n').context("the published view has no content")?;
    let view: Value = serde_json::from_str(body)?;
    let segments = view["index"]["segments"].as_array().context("the published view names no segments")?;
    Ok(Some(PublishedView {
        sequence: view["index"]["sequence"].as_u64().context("the published view names no record")?,
        segment_bytes: segments.iter().filter_map(|segment| segment["length"].as_u64()).sum(),
        segments: segments.len(),
        bytes: text.len() as u64,
    }))
}

/// Bytes of all tables of the library with their indexes.
pub fn database_bytes(bench: &Bench) -> f64 {
    tables(bench).iter().map(|(_, bytes)| *bytes as f64).sum()
}

fn tables(bench: &Bench) -> Vec<(String, u64)> {
    let text = bench.stores.sql(LIBRARY, TABLES);
    let rows = text.lines().filter_map(|line| line.split_once(' '));
    rows.filter_map(|(name, bytes)| Some((name.to_owned(), bytes.parse().ok()?))).collect()
}

/// Adds a row for each store: bytes for each document.
pub fn measure(bench: &Bench, node: &Node, files: usize, report: &mut Report) -> Result<()> {
    let packs = corpus::files_below(&bench.stores.objects(LIBRARY, "packs"))?;
    let is_pack = |path: &std::path::Path| path.extension().is_some_and(|extension| extension == "pack");
    let packs: Vec<u64> = packs.iter().filter(|(path, _)| is_pack(path)).map(|(_, size)| *size).collect();
    let view = newest_view(bench)?.context("there is no published index")?;
    let mut row = |what: &str, bytes: f64| {
        report.single(what, SHARED, "bytes/document", bytes / files as f64, Target::None);
    };
    row("database, with its indexes", database_bytes(bench));
    row("packs in the bucket", packs.iter().sum::<u64>() as f64);
    row("published index segments", view.segment_bytes as f64);
    report.single("published view", SHARED, "bytes", view.bytes as f64, Target::None);
    report.single("published view, segments", SHARED, "segments", view.segments as f64, Target::None);
    report.single("packs", SHARED, "objects", packs.len() as f64, Target::None);
    report.single("own memory of a node that follows", SHARED, "MB", node.own_memory()?, Target::None);
    let largest: Vec<String> = tables(bench)
        .iter()
        .take(NAMED)
        .map(|(name, bytes)| format!("{name} {}", bytes / files as u64))
        .collect();
    report.fact("largest tables, bytes/document", largest.join(", "));
    Ok(())
}
