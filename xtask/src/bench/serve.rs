//! `bench serve`: serving a library of 50,000 documents: startup, memory, small reads, many clients and durable writes.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::corpus::{self, Tree};
use super::library::Library;
use super::line_client::{Call, LineClient};
use super::random::Random;
use super::report::{Report, Target};
use super::words::Words;
use super::{Scale, many, writes};
use crate::places;
use crate::server::Server;

/// The number of requests in flight, or of clients, in concurrent measurements.
pub const TOGETHER: usize = 16;

/// The idle time after which a server has released memory.
const RESTED: Duration = Duration::from_secs(7);

/// The maximum size of a small document in bytes.
const SMALL: u64 = 8_000;

/// Creates the library and measures serving it.
pub fn run(scale: Scale) -> Result<()> {
    let shelf = places::built_shelf()?;
    let work = places::root().join("bench").join("work").join(scale.folder());
    fs::create_dir_all(&work)?;
    let files = scale.of(50_000);
    let tree = Tree { name: "library-tree", files, bytes: scale.of(250_000_000), seed: 0x5eed_0020 };
    let tree = tree.ensure(&work, &Words::new())?;
    println!("== creating a library of {files} documents");
    let (library, _) = Library::make(shelf, &work, &tree)?;
    let mut report = Report::new("serve", scale, &work);
    report.fact("shelf", library.version());
    println!("== measuring shelf serve");
    cold_start(&library, &mut report)?;
    let mut client = library.serve()?;
    thread::sleep(Duration::from_secs(1));
    report.single("idle memory", "shelf", "MB", client.resident()?, Target::AtMost(30.0));
    let hashes = small_documents(&mut client, files, &mut report)?;
    small_reads(&mut client, &hashes, scale, &mut report)?;
    memory_after_calls(&mut client, &hashes, scale, &mut report)?;
    client.close()?;
    let server = Server::start(&library.shelf, &library.data)?;
    for clients in [TOGETHER, 100] {
        many::measure(&server, &hashes, clients, scale, &mut report)?;
    }
    drop(server);
    writes::measure(&library, &work, scale, &mut report)?;
    corpus::remove(&work.join("stores"))?;
    report.finish()
}

/// Starts a new process each time, with files in the page cache, as when a user restarts an agent.
fn cold_start(library: &Library, report: &mut Report) -> Result<()> {
    let mut samples = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        let client = library.open()?;
        samples.push(start.elapsed().as_secs_f64() * 1e3);
        client.close()?;
    }
    report.samples("cold start to first reply", "shelf", "ms", samples, Target::AtMost(20.0));
    Ok(())
}

/// Hashes of small documents; fails if the library does not have the expected documents.
fn small_documents(client: &mut LineClient, files: usize, report: &mut Report) -> Result<Vec<String>> {
    let reply =
        client.call(&("list", json!({ "limit": 1000 }))).or_else(|_| client.call(&("list", json!({}))))?;
    let total = reply["total"].as_u64().context("`list` gave no `total`")?;
    if (total as usize) < files {
        bail!("the library has {total} documents, not {files}: `shelf add` left some out");
    }
    report.fact("documents", total.to_string());
    let documents = reply["documents"].as_array().context("`list` gave no `documents`")?;
    let small = documents.iter().filter(|document| size(document).is_none_or(|size| size <= SMALL));
    let hashes: Vec<String> =
        small.filter_map(|document| document["hash"].as_str()).take(1_000).map(str::to_owned).collect();
    if hashes.is_empty() {
        bail!("`list` named no small document with a `hash`");
    }
    Ok(hashes)
}

fn size(document: &Value) -> Option<u64> {
    ["size", "size_bytes", "bytes"].iter().find_map(|name| document[*name].as_u64())
}

fn small_read(hashes: &[String], random: &mut Random) -> Call {
    ("get", json!({ "hash": random.pick(hashes), "include_content": true }))
}

fn small_reads(client: &mut LineClient, hashes: &[String], scale: Scale, report: &mut Report) -> Result<()> {
    let mut random = Random::new(0x5eed_0030);
    let mut calls = |count| (0..count).map(|_| small_read(hashes, &mut random)).collect::<Vec<_>>();
    for call in calls(hashes.len()) {
        client.timed(&call)?;
    }
    let samples =
        calls(scale.of(10_000)).iter().map(|call| client.timed(call)).collect::<Result<Vec<_>>>()?;
    report.latencies("small read", "shelf", &samples, Target::AtMost(0.25), Target::None);
    let mut rates = Vec::new();
    for _ in 0..5 {
        rates.push(client.in_flight(&calls(scale.of(10_000)), TOGETHER)?);
    }
    report.samples("small reads, 16 in flight", "shelf", "/s", rates, Target::AtLeast(5_000.0));
    Ok(())
}

/// The memory after 10,000 calls of all reading tools, right after the last call and when the server is idle.
fn memory_after_calls(
    client: &mut LineClient,
    hashes: &[String],
    scale: Scale,
    report: &mut Report,
) -> Result<()> {
    let (mut random, words) = (Random::new(0x5eed_0031), Words::new());
    let count = scale.of(10_000);
    for _ in 0..count {
        let call = match random.below(100) {
            0..=54 => small_read(hashes, &mut random),
            55..=64 => ("search", json!({ "query": query(&words, &mut random) })),
            65..=69 => ("grep", json!({ "pattern": words.name(&mut random) })),
            70..=79 => ("list", json!({ "limit": 20 })),
            80..=84 => ("status", json!({})),
            85..=89 => ("list_collections", json!({})),
            90..=94 => ("list_snapshots", json!({})),
            _ => ("hello", json!({})),
        };
        client.timed(&call)?;
    }
    let what = format!("memory after {count} mixed calls");
    report.single(&format!("{what}, at the last"), "shelf", "MB", client.resident()?, Target::None);
    report.single(&format!("{what}, own at the last"), "shelf", "MB", client.own_memory()?, Target::None);
    thread::sleep(RESTED);
    report.single(&what, "shelf", "MB", client.resident()?, Target::AtMost(150.0));
    Ok(())
}

fn query(words: &Words, random: &mut Random) -> String {
    format!("{} {}", words.name(random), words.name(random))
}
