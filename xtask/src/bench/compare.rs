//! `bench compare --before PROGRAM`: this program beside an earlier one, in turns within one run, so that a slow minute of
//! the machine affects both. What counts is the ratio of the medians, not the figures themselves.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::corpus::{self, Tree};
use super::library::Library;
use super::line_client::{Call, LineClient};
use super::patterns::Patterns;
use super::peak::Made;
use super::queries::Queries;
use super::report::{Report, Target};
use super::text::Writer;
use super::vocabulary::Vocabulary;
use super::words::Words;
use super::{Scale, timing};
use crate::places;

/// The names of both programs in the results.
const NAMES: [&str; 2] = ["before", "now"];
/// How often each program adds the tree.
const ADDS: usize = 3;
/// How often the programs take turns.
const TURNS: usize = 20;
/// Calls of each kind in a turn.
const CALLS: usize = 30;
/// Calls of each kind before anything is measured.
const WARM_UP: usize = 20;
/// The size of a small document in bytes.
const BODY: usize = 1_000;

/// The calls of one kind, the same for both programs.
struct Work {
    what: &'static str,
    calls: Vec<Call>,
}

impl Work {
    /// The calls of one turn; they are used again when there are too few.
    fn turn(&self, turn: usize) -> impl Iterator<Item = &Call> {
        self.calls.iter().cycle().skip(turn * CALLS % self.calls.len()).take(CALLS)
    }
}

/// Samples of both programs by what was measured, in the order in which it came up.
#[derive(Default)]
struct Samples {
    order: Vec<(String, &'static str)>,
    of: HashMap<String, [Vec<f64>; 2]>,
}

impl Samples {
    fn add(&mut self, what: &str, unit: &'static str, program: usize, sample: f64) {
        if !self.of.contains_key(what) {
            self.order.push((what.to_owned(), unit));
        }
        self.of.entry(what.to_owned()).or_default()[program].push(sample);
    }

    fn report(mut self, report: &mut Report) {
        for (what, unit) in self.order {
            let Some(samples) = self.of.remove(&what) else { continue };
            let ratio = timing::median(&samples[1]) / timing::median(&samples[0]);
            for (name, samples) in NAMES.iter().zip(samples) {
                report.samples(&what, name, unit, samples, Target::None);
            }
            // Processor time is counted in ticks, of which a quick call may take none.
            if ratio.is_finite() {
                report.single(&format!("{what}, now / before"), "ratio", "times", ratio, Target::None);
            }
        }
    }
}

/// Measures adding, starting, reading, searching, patterns and writing with both programs.
pub fn run(scale: Scale, before: &Path) -> Result<()> {
    if !before.is_file() {
        bail!("{} is no program: name a `shelf` of an earlier commit", before.display());
    }
    let shelf = [before.to_owned(), places::built_shelf()?];
    let work = places::root().join("bench").join("work").join(scale.folder());
    fs::create_dir_all(&work)?;
    let words = Words::new();
    let tree = Tree::text(scale).ensure(&work, &words)?;
    let files = corpus::files_below(&tree)?;
    let vocabulary = Vocabulary::of(&files)?;
    let mut report = Report::new("compare", scale, &work);
    report.fact("documents", files.len().to_string());
    let mut samples = Samples::default();
    let libraries = add(&shelf, &work, &tree, &mut samples)?;
    for (name, library) in NAMES.iter().zip(&libraries) {
        report.fact(name, library.version());
    }
    start(&libraries, &mut samples)?;
    let works = works(&files, &vocabulary, &words, &libraries[0])?;
    ask(&libraries, &works, &mut samples)?;
    samples.report(&mut report);
    corpus::remove(&work.join("stores"))?;
    report.finish()
}

/// Adds the tree with each program several times; the last libraries are kept.
fn add(shelf: &[PathBuf; 2], work: &Path, tree: &Path, samples: &mut Samples) -> Result<[Library; 2]> {
    let mut kept = [None, None];
    for round in 1..=ADDS {
        println!("== adding, round {round} of {ADDS}");
        for (at, program) in shelf.iter().enumerate() {
            let (library, made) = Library::make_named(NAMES[at], program.clone(), work, tree)?;
            let Made { taken, peak } = made;
            samples.add("add and index, wall", "s", at, taken.wall);
            samples.add("add and index, CPU", "s", at, taken.processor);
            samples.add("add and index, most memory", "MB", at, peak);
            kept[at] = Some(library);
        }
    }
    for (at, library) in kept.iter().flatten().enumerate() {
        samples.add("stored, with the index", "MB", at, corpus::bytes_below(&library.data)? as f64 / 1e6);
    }
    let [Some(first), Some(second)] = kept else { bail!("no library was made") };
    Ok([first, second])
}

fn start(libraries: &[Library; 2], samples: &mut Samples) -> Result<()> {
    println!("== starting");
    for _ in 0..TURNS {
        for (at, library) in libraries.iter().enumerate() {
            let start = std::time::Instant::now();
            let client = library.open()?;
            samples.add("cold start to first reply", "ms", at, start.elapsed().as_secs_f64() * 1e3);
            client.close()?;
        }
    }
    Ok(())
}

fn works(
    files: &[(PathBuf, u64)],
    vocabulary: &Vocabulary,
    words: &Words,
    library: &Library,
) -> Result<Vec<Work>> {
    let mut queries = Queries::new(vocabulary)?;
    let patterns = Patterns::choose(files, vocabulary)?;
    let search = |queries: Vec<String>, kind: &str| -> Vec<Call> {
        queries
            .into_iter()
            .map(|query| ("search", json!({ "query": query, "type": kind, "limit": 10 })))
            .collect()
    };
    let grep = |patterns: Vec<String>| -> Vec<Call> {
        patterns.into_iter().map(|pattern| ("grep", json!({ "pattern": pattern }))).collect()
    };
    let mut writer = Writer::new(words, 0x5eed_0070);
    let writes = (0..TURNS * CALLS + WARM_UP).map(|at| {
        let content: String = writer.prose(BODY).chars().take(BODY).collect();
        ("add", json!({ "content": content, "name": format!("bench/note-{at}.md") }))
    });
    Ok(vec![
        Work { what: "small read", calls: reads(library)? },
        Work { what: "small durable write", calls: writes.collect() },
        Work { what: "keyword search", calls: search(queries.take(TURNS * CALLS), "keyword") },
        Work { what: "hybrid search", calls: search(queries.take(TURNS * CALLS), "hybrid") },
        Work {
            what: "hybrid search, 7 to 12 words",
            calls: search(queries.take_plain_language(TURNS * CALLS), "hybrid"),
        },
        Work { what: "grep, rare identifier", calls: grep(patterns.rare) },
        Work { what: "grep, many hits", calls: grep(patterns.many) },
        Work { what: "list, a page of 50", calls: vec![("list", json!({ "limit": 50 }))] },
    ])
}

/// Reads of small documents by hash, which is the same in both libraries.
fn reads(library: &Library) -> Result<Vec<Call>> {
    let mut client = library.serve()?;
    let reply = client.call(&("list", json!({ "limit": 1000 })))?;
    client.close()?;
    let documents = reply["documents"].as_array().context("`list` gave no `documents`")?;
    let small =
        documents.iter().filter(|document| document["size"].as_u64().is_some_and(|size| size <= 8_000));
    let calls: Vec<Call> =
        small.map(|document| ("get", json!({ "hash": document["hash"], "include_content": true }))).collect();
    if calls.is_empty() {
        bail!("`list` named no small document");
    }
    Ok(calls)
}

/// Has both servers answer the same calls in turns; which of them begins alternates.
fn ask(libraries: &[Library; 2], works: &[Work], samples: &mut Samples) -> Result<()> {
    let mut clients = [libraries[0].serve()?, libraries[1].serve()?];
    for work in works {
        println!("== measuring: {}", work.what);
        for client in &mut clients {
            // From the end, so that nothing is written twice.
            for call in work.calls.iter().rev().take(WARM_UP) {
                client.timed(call)?;
            }
        }
        for turn in 0..TURNS {
            for at in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
                one_turn(&mut clients[at], work, turn, at, samples)?;
            }
        }
    }
    clients.into_iter().try_for_each(LineClient::close)
}

fn one_turn(
    client: &mut LineClient,
    work: &Work,
    turn: usize,
    program: usize,
    samples: &mut Samples,
) -> Result<()> {
    let before = client.processor()?;
    for call in work.turn(turn) {
        samples.add(&format!("{}, p50", work.what), "ms", program, client.timed(call)?);
    }
    let processor = (client.processor()? - before) * 1e3 / CALLS as f64;
    samples.add(&format!("{}, CPU", work.what), "ms", program, processor);
    Ok(())
}
