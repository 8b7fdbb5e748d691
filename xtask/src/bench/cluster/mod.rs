//! `bench cluster`: one library on PostgreSQL and an S3 store, with one, two and three nodes, next to one node with SQLite and a
//! folder.
//!
//! Everything shares one machine, so more nodes do not mean more processors. What a call costs each part (the processor time of
//! the nodes and of the database) is therefore reported as well: it says what machines of their own would carry.

mod fresh;
mod load;
mod node;
mod sizes;
mod takeover;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::corpus::{self, Tree};
use super::queries::Queries;
use super::report::{Report, Target};
use super::vocabulary::Vocabulary;
use super::words::Words;
use super::{Scale, many};
use crate::places;
use crate::scratch::Scratch;
use crate::stores::Stores;
use load::{Documents, Load};
use node::Node;

/// The name of the library in the stores.
const LIBRARY: &str = "bench";
/// What the rows of the two kinds of library are called.
const SHARED: &str = "PostgreSQL + S3";
const SINGLE: &str = "SQLite + folder";
/// Documents and bytes of the library.
const DOCUMENTS: usize = 10_000;
const BYTES: usize = 50_000_000;
/// Fewer would not be published: followers index so few for themselves.
const LEAST_DOCUMENTS: usize = 1_000;
/// The number of nodes in the end.
const NODES: usize = 3;
/// The maximum size of a small document in bytes.
const SMALL: u64 = 8_000;
/// How long something may take that happens by itself.
const PATIENCE: Duration = Duration::from_secs(120);

/// What all parts of the run need.
struct Bench<'run> {
    shelf: &'run Path,
    folder: &'run Path,
    stores: &'run Stores,
    documents: &'run Documents<'run>,
    scale: Scale,
}

impl Bench<'_> {
    /// A node of the shared library with an empty disk.
    fn node(&self, name: &str) -> Node {
        let mut variables = self.stores.variables(LIBRARY);
        variables.push(("SHELF_CACHE", self.folder.join(format!("{name}-cache")).display().to_string()));
        Node::new(self.shelf, self.folder.join(name), variables)
    }
}

/// Makes both libraries and measures them.
pub fn run(scale: Scale) -> Result<()> {
    let shelf = places::built_shelf()?;
    let work = places::root().join("bench").join("work").join(scale.folder());
    fs::create_dir_all(&work)?;
    let mut report = Report::new("cluster", scale, &work);
    println!("== starting PostgreSQL and an S3 server");
    let Some(stores) = Stores::start() else {
        println!("   PostgreSQL is not installed: `apt-get install postgresql`");
        report.absent("PostgreSQL");
        return report.finish();
    };
    let words = Words::new();
    let files = scale.of(DOCUMENTS).max(LEAST_DOCUMENTS);
    let bytes = files * (BYTES / DOCUMENTS);
    let tree = Tree { name: "cluster-tree", files, bytes, seed: 0x5eed_0090 }.ensure(&work, &words)?;
    let listed = corpus::files_below(&tree)?;
    // Both databases are on the same disk.
    let folder = Scratch::new("cluster")?;
    let documents = Documents::new(&words);
    let bench = Bench { shelf: &shelf, folder: folder.path(), stores: &stores, documents: &documents, scale };
    facts(&bench, files, &mut report);
    corpus::warm(&tree)?;
    single(&bench, &tree, &mut report)?;
    let mut nodes = shared(&bench, &tree, files, &mut report)?;
    println!("== measuring fresh nodes");
    let vocabulary = Vocabulary::of(&listed)?;
    fresh::measure(&bench, &nodes[0], &mut Queries::new(&vocabulary)?, &mut report)?;
    println!("== killing the leading node");
    takeover::measure(&bench, &mut nodes, &mut report)?;
    sound(&bench)?;
    report.finish()
}

fn facts(bench: &Bench, files: usize, report: &mut Report) {
    let version = bench.stores.sql("public", "SHOW server_version");
    report.fact("shelf", Node::new(bench.shelf, PathBuf::new(), Vec::new()).version());
    report.fact("PostgreSQL", format!("{version}, fsync on, over TCP on this machine"));
    report.fact("S3 server", "s3s-fs on this machine, over TCP; it does not sync what it stores");
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    report.fact("load average before the run", load);
    report.fact("documents", files.to_string());
    report.fact("clients", format!("{}, on this machine too", load::CLIENTS));
}

/// One node with a library of its own, as the figures to compare with.
fn single(bench: &Bench, tree: &Path, report: &mut Report) -> Result<()> {
    println!("== one node with SQLite and a folder");
    let mut node = Node::new(bench.shelf, bench.folder.join("single"), Vec::new());
    add(&node, bench, tree, SINGLE, report)?;
    node.start()?;
    let hashes = small_documents(&node)?;
    one_by_one(bench, &node, &hashes, SINGLE, report)?;
    let nodes = [node];
    reads(bench, &nodes, &hashes, (SINGLE, false), report)?;
    writes(bench, &nodes, (SINGLE, false), report)
}

/// The shared library with one, two and three nodes, which are returned.
fn shared(bench: &Bench, tree: &Path, files: usize, report: &mut Report) -> Result<Vec<Node>> {
    println!("== nodes with PostgreSQL and S3");
    add(&bench.node("writer"), bench, tree, SHARED, report)?;
    let mut first = bench.node("node0");
    first.start()?;
    await_published(bench, files as u64)?;
    sizes::measure(bench, &first, files, report)?;
    let hashes = small_documents(&first)?;
    one_by_one(bench, &first, &hashes, SHARED, report)?;
    let mut nodes = vec![first];
    reads(bench, &nodes, &hashes, (SHARED, true), report)?;
    writes(bench, &nodes, (SHARED, true), report)?;
    for number in 1..NODES {
        let mut node = bench.node(&format!("node{number}"));
        node.start()?;
        nodes.push(node);
        reads(bench, &nodes, &hashes, (SHARED, true), report)?;
    }
    writes(bench, &nodes, (SHARED, true), report)?;
    Ok(nodes)
}

/// Adds the tree with `shelf add`, index included.
fn add(node: &Node, bench: &Bench, tree: &Path, program: &str, report: &mut Report) -> Result<()> {
    let made = node.add(tree, bench.folder)?;
    let (files, bytes) = (corpus::files_below(tree)?.len() as f64, corpus::bytes_below(tree)? as f64);
    let rate = files / made.taken.wall;
    report.single("adding a folder with its index", program, "documents/s", rate, Target::None);
    let rate = bytes / 1e6 / made.taken.wall;
    report.single("adding a folder with its index", program, "MB/s", rate, Target::None);
    report.single("adding a folder, most memory", program, "MB", made.peak, Target::None);
    Ok(())
}

/// Waits until the published index covers this many journal records.
fn await_published(bench: &Bench, records: u64) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while sizes::newest_view(bench)?.is_none_or(|view| view.sequence < records) {
        if Instant::now() > until {
            bail!("no node published an index with {records} records within {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Hashes of small documents.
fn small_documents(node: &Node) -> Result<Vec<String>> {
    let mut client = many::Client::connect(&node.address()?)?;
    let reply = client.call("list", &json!({ "limit": 1000, "sort_by": "name" }))?;
    let documents = reply["documents"].as_array().context("`list` gave no `documents`")?;
    let is_small = |document: &&Value| document["size"].as_u64().is_none_or(|size| size <= SMALL);
    let small = documents.iter().filter(is_small);
    let hashes: Vec<String> =
        small.filter_map(|document| document["hash"].as_str()).map(str::to_owned).collect();
    if hashes.is_empty() {
        bail!("`list` named no small document with a `hash`");
    }
    Ok(hashes)
}

/// One client that waits for each reply.
fn one_by_one(
    bench: &Bench,
    node: &Node,
    hashes: &[String],
    program: &str,
    report: &mut Report,
) -> Result<()> {
    let mut client = many::Client::connect(&node.address()?)?;
    let count = bench.scale.of(1_000).max(100);
    let mut read = load::reader(hashes, 0);
    let mut write = bench.documents.writer(0);
    for next in [&mut read, &mut write] {
        load::one_by_one(&mut client, next, count / 5)?;
    }
    let waits = load::one_by_one(&mut client, &mut read, count)?;
    report.latencies("small read", program, &waits, Target::None, Target::None);
    let waits = load::one_by_one(&mut client, &mut write, count)?;
    report.latencies("small durable write", program, &waits, Target::None, Target::None);
    Ok(())
}

fn named(what: &str, nodes: &[Node]) -> String {
    format!("{what}, {} node{}", nodes.len(), if nodes.len() == 1 { "" } else { "s" })
}

/// Reads of many clients that are spread over the nodes.
fn reads(
    bench: &Bench,
    nodes: &[Node],
    hashes: &[String],
    (program, is_shared): (&str, bool),
    report: &mut Report,
) -> Result<()> {
    let what = named("small reads, 16 clients", nodes);
    // Until every node has copies of what is read.
    load::run(nodes, bench.scale, |client| load::reader(hashes, client + 100))?;
    let load = Load::measure(bench, nodes, is_shared, |client| load::reader(hashes, client))?;
    load.rows(&what, program, report);
    Ok(())
}

/// Durable writes of many clients that are spread over the nodes.
fn writes(
    bench: &Bench,
    nodes: &[Node],
    (program, is_shared): (&str, bool),
    report: &mut Report,
) -> Result<()> {
    let what = named("small durable writes, 16 clients", nodes);
    let load = Load::measure(bench, nodes, is_shared, |client| bench.documents.writer(client))?;
    load.rows(&what, program, report);
    Ok(())
}

/// Figures of a library that is not whole are worth nothing.
fn sound(bench: &Bench) -> Result<()> {
    println!("== checking the library");
    bench.node("checker").run(&["check"])
}
