//! `bench collection`: one collection with very many documents and snapshots. What is stored into it, and a page of its
//! snapshots, must cost what they cost in a small one.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::corpus::{self, Tree};
use super::library::Library;
use super::line_client::{Call, LineClient};
use super::report::{Report, Target};
use super::serve::TOGETHER;
use super::words::Words;
use super::{Scale, timing};
use crate::places;

/// Documents and snapshots at full scale.
const DOCUMENTS: usize = 100_000;
const SNAPSHOTS: usize = 10_000;
/// Calls of each kind that are measured.
const CALLS: usize = 300;

/// Fills a collection and measures before and after.
pub fn run(scale: Scale) -> Result<()> {
    let shelf = places::built_shelf()?;
    let work = places::root().join("bench").join("work").join(scale.folder());
    fs::create_dir_all(&work)?;
    let (documents, snapshots) = (scale.of(DOCUMENTS), scale.of(SNAPSHOTS));
    let words = Words::new();
    let few = Tree { name: "few", files: 20, bytes: 10_000, seed: 0x5eed_0070 }.ensure(&work, &words)?;
    let many = Tree { name: "many", files: documents, bytes: documents * 300, seed: 0x5eed_0071 };
    let many = many.ensure(&work, &words)?;
    let (library, _) = Library::make(shelf, &work, &few)?;
    let mut report = Report::new("collection", scale, &work);
    report.fact("shelf", library.version());
    let mut client = library.serve()?;
    let made = client.call(&("create_collection_tool", json!({ "name": "large" })))?;
    let id = made["id"].as_str().context("`create_collection_tool` gave no `id`")?.to_owned();
    let small = store(&mut client, &id, "early")?;
    println!("== adding {documents} documents and {snapshots} snapshots to one collection");
    client.call(&("add", json!({ "path": many, "collection": "large" })))?;
    let adds: Vec<Call> = (0..snapshots).map(small_add).collect();
    client.in_flight(&adds, TOGETHER)?;
    let listed = client.call(&("list_snapshots", json!({ "collection": "large" })))?;
    let total = listed["total"].as_u64().context("`list_snapshots` gave no `total`")?;
    ensure!(total as usize > snapshots, "the collection has {total} snapshots");
    report.fact("documents", documents.to_string());
    report.fact("snapshots", total.to_string());
    let large = store(&mut client, &id, "late")?;
    let growth = timing::median(&large) / timing::median(&small);
    report.samples("store by collection_id, empty, p50", "shelf", "ms", small, Target::None);
    report.samples("store by collection_id, full, p50", "shelf", "ms", large, Target::None);
    report.single("store by collection_id, full / empty", "shelf", "times", growth, Target::AtMost(2.0));
    pages(&mut client, &mut report)?;
    client.close()?;
    corpus::remove(&work.join("stores"))?;
    report.finish()
}

fn small_add(number: usize) -> Call {
    let name = format!("bench/note-{}.md", number % 500);
    ("add", json!({ "name": name, "content": format!("note {number}"), "collection": "large" }))
}

/// The latencies of storing documents by the collection's id.
fn store(client: &mut LineClient, id: &str, when: &str) -> Result<Vec<f64>> {
    let call = |number: usize| -> Call {
        let (title, content) = (format!("{when} {number}"), format!("a small {when} document, {number}"));
        ("store_document_tool", json!({ "title": title, "content": content, "collection_id": id }))
    };
    (0..CALLS).map(|number| client.timed(&call(number))).collect()
}

/// The first page of the snapshots, and one after many others.
fn pages(client: &mut LineClient, report: &mut Report) -> Result<()> {
    let first = json!({ "collection": "large", "limit": 50 });
    let mut cursor = serde_json::Value::Null;
    for _ in 0..20 {
        let mut arguments = first.clone();
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        cursor = client.call(&("list_snapshots", arguments))?["next_cursor"].take();
    }
    let mut later = first.clone();
    if !cursor.is_null() {
        later["cursor"] = cursor;
    }
    for (what, arguments) in [("first", first), ("21st", later)] {
        let call = ("list_snapshots", arguments);
        let waits = (0..CALLS).map(|_| client.timed(&call)).collect::<Result<Vec<_>>>()?;
        let what = format!("list_snapshots, the {what} page of 50");
        report.latencies(&what, "shelf", &waits, Target::AtMost(2.0), Target::None);
    }
    Ok(())
}
