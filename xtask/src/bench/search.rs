//! `bench search`: the cost of indexing a library, and how long an agent waits for the best ten passages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use super::corpus::{self, Tree};
use super::engines::{Contender, TOP};
use super::full_text::FullText;
use super::index_parts;
use super::library::Library;
use super::line_client::{Call, LineClient};
use super::lookups;
use super::peak::{self, Made};
use super::queries::{Mistyped, Queries};
use super::report::{Report, Target};
use super::tantivy_direct::Tantivy;
use super::timing::Invocation;
use super::vocabulary::Vocabulary;
use super::words::Words;
use super::{Scale, timing};
use crate::places;

/// Target: MB of text stored and indexed per second of processor time.
const ADD_TARGET: f64 = 8.0;
/// Target: MB of memory while adding.
const PEAK_TARGET: f64 = 400.0;
/// Target: the size of what searching needs of the index, in percent of the text. Facts of the graph are measured by
/// `bench graph`.
const SIZE_TARGET: f64 = 110.0;
/// Targets: p50 and p95 of keyword searches in milliseconds.
const KEYWORD_TARGET: f64 = 3.0;
const KEYWORD_SLOW_TARGET: f64 = 10.0;
/// Targets: p50 of hybrid searches in milliseconds, with questions encoded by the deep model and without.
const HYBRID_TARGET: f64 = 10.0;
const HYBRID_SHALLOW_TARGET: f64 = 6.0;

/// How many times the library is created; only a few, since it takes long.
const ADDS: usize = 3;
/// Queries before anything is measured.
const WARM_UP: usize = 20;
/// Queries that are measured, all different.
const QUESTIONS: usize = 300;
/// The number of queries per turn: the programs alternate, so that a slow minute affects all of them.
const TURN: usize = 30;
/// Queries with a typing error.
const MISTYPED: usize = 50;
/// Documents that are deepened: all of them would take an hour.
const DEEPENED: usize = 300;
/// Target: MB of memory of a process that deepens, which an idle server has 30 of.
const DEEPEN_MEMORY_TARGET: f64 = 230.0;
/// New processes for measuring the first search.
const OPENINGS: usize = 10;

/// A kind of search and its targets.
struct Kind {
    name: &'static str,
    half: Target,
    slow: Target,
}

const KINDS: [Kind; 3] = [
    Kind { name: "keyword", half: Target::AtMost(KEYWORD_TARGET), slow: Target::AtMost(KEYWORD_SLOW_TARGET) },
    Kind { name: "semantic", half: Target::None, slow: Target::None },
    Kind { name: "hybrid", half: Target::AtMost(HYBRID_TARGET), slow: Target::None },
];

/// The measurements of searches of one kind.
#[derive(Default)]
struct Answers {
    /// The latency of each search in milliseconds.
    waits: Vec<f64>,
    /// The server's average processor time per search in milliseconds, for each turn.
    processor: Vec<f64>,
}

impl Answers {
    fn rows(&self, kind: &Kind, report: &mut Report) {
        let what = format!("{} search", kind.name);
        report.latencies(&what, "shelf", &self.waits, kind.half, kind.slow);
        report.average(&format!("{what}, CPU"), "shelf", "ms", &self.processor, Target::None);
    }
}

/// Creates the library and measures searches.
pub fn run(scale: Scale) -> Result<()> {
    let shelf = places::built_shelf()?;
    let work = places::root().join("bench").join("work").join(scale.folder());
    fs::create_dir_all(&work)?;
    let tree = Tree::text(scale).ensure(&work, &Words::new())?;
    let files = corpus::files_below(&tree)?;
    println!("== reading the words of the corpus");
    let vocabulary = Vocabulary::of(&files)?;
    let mut queries = Queries::new(&vocabulary)?;
    let mut report = Report::new("search", scale, &work);
    report.fact("words to ask for", queries.described());
    let library = make_library(shelf, &work, &tree, &mut report)?;
    index_size(&library, &tree, &mut report)?;
    println!("== measuring shelf serve");
    first_searches(&library, &mut queries, &mut report)?;
    searches(&library, &files, &work, &mut queries, &mut report)?;
    corpus::remove(&work.join("stores"))?;
    deepening(&library, &files, &work, &mut report)?;
    corpus::remove(&work.join("stores"))?;
    report.finish()
}

/// Adds the tree to a new library several times; the last one is kept.
fn make_library(shelf: PathBuf, work: &Path, tree: &Path, report: &mut Report) -> Result<Library> {
    println!("== creating the library, {ADDS} times");
    let mut rounds = Vec::new();
    let library = loop {
        let (library, made) = Library::make(shelf.clone(), work, tree)?;
        rounds.push(made);
        if rounds.len() == ADDS {
            break library;
        }
    };
    report.fact("shelf", library.version());
    let megabytes = corpus::bytes_below(tree)? as f64 / 1e6;
    let what = format!("add and index ({megabytes:.0} MB)");
    let of = |figure: fn(&Made) -> f64| rounds.iter().map(figure).collect::<Vec<f64>>();
    let speeds = rounds.iter().map(|made| megabytes / made.taken.processor.max(0.001)).collect();
    report.samples(&format!("{what}, wall"), "shelf", "s", of(|made| made.taken.wall), Target::None);
    report.samples("add and index, CPU", "shelf", "s", of(|made| made.taken.processor), Target::None);
    report.samples("add and index, speed", "shelf", "MB/CPU-s", speeds, Target::AtLeast(ADD_TARGET));
    let peaks = of(|made| made.peak);
    report.samples("add and index, most memory", "shelf", "MB", peaks, Target::AtMost(PEAK_TARGET));
    Ok(library)
}

/// Deepens a library of some of the files, as `shelf deepen` does.
fn deepening(library: &Library, files: &[(PathBuf, u64)], work: &Path, report: &mut Report) -> Result<()> {
    println!("== deepening {DEEPENED} documents");
    let some = work.join("stores").join("some");
    fs::create_dir_all(&some)?;
    for (at, (path, _)) in files.iter().step_by((files.len() / DEEPENED).max(1)).take(DEEPENED).enumerate() {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        fs::copy(path, some.join(format!("{at}-{name}")))?;
    }
    let (small, _) = Library::make(library.shelf.clone(), work, &some)?;
    let words = [small.shelf.as_os_str(), "--data-dir".as_ref(), small.data.as_os_str(), "deepen".as_ref()];
    let deepen = Invocation { words: words.map(Into::into).to_vec(), variables: Vec::new() };
    let made = peak::measure(&deepen, &work.join("figures"))?;
    let mut client = small.serve()?;
    let reply = client.call(&("status", json!({ "detailed": true })))?;
    let deep =
        reply["details"]["index"]["deep_passages"].as_f64().context("`status` names no deep passages")?;
    client.close()?;
    let speed = deep / made.taken.processor.max(0.001);
    report.single("deepening", "shelf", "passages/CPU-s", speed, Target::None);
    report.single("deepening, most memory", "shelf", "MB", made.peak, Target::AtMost(DEEPEN_MEMORY_TARGET));
    Ok(())
}

/// Reports the size of the index, in total and by part.
fn index_size(library: &Library, tree: &Path, report: &mut Report) -> Result<()> {
    let text = corpus::bytes_below(tree)? as f64;
    let sizes = index_parts::sizes(&library.data)?;
    report.fact("segments", sizes.segments.to_string());
    let share = |bytes: u64| bytes as f64 / text * 100.0;
    let facts = sizes.parts.get(index_parts::FACTS).copied().unwrap_or_default();
    let searched = share(sizes.total.saturating_sub(facts));
    report.single(
        "index on disk, without facts",
        "shelf",
        "% of text",
        searched,
        Target::AtMost(SIZE_TARGET),
    );
    for (part, bytes) in &sizes.parts {
        report.single(&format!("index on disk: {part}"), "shelf", "% of text", share(*bytes), Target::None);
    }
    Ok(())
}

/// Measures the first search of a new process, with files in the page cache.
fn first_searches(library: &Library, queries: &mut Queries, report: &mut Report) -> Result<()> {
    for kind in ["keyword", "hybrid"] {
        let mut samples = Vec::new();
        for query in queries.take(OPENINGS) {
            let mut client = library.serve()?;
            samples.push(client.timed(&search(&query, kind))?);
            client.close()?;
        }
        report.samples(&format!("first {kind} search after opening"), "shelf", "ms", samples, Target::None);
    }
    Ok(())
}

/// Runs the same queries with every program, in turns.
fn searches(
    library: &Library,
    files: &[(PathBuf, u64)],
    work: &Path,
    queries: &mut Queries,
    report: &mut Report,
) -> Result<()> {
    let mut tantivy = Contender::<Tantivy>::make(files, work, report)?;
    let mut full_text = Contender::<FullText>::make(files, work, report)?;
    println!("== running {QUESTIONS} queries");
    let mut client = library.serve()?;
    let warm_up = queries.take(WARM_UP);
    for kind in &KINDS {
        ask(&mut client, kind, &warm_up)?;
    }
    tantivy.warm_up(&warm_up)?;
    full_text.warm_up(&warm_up)?;
    let questions = queries.take(QUESTIONS);
    let mut answers = KINDS.map(|_| Answers::default());
    for turn in questions.chunks(TURN) {
        for (kind, answers) in KINDS.iter().zip(&mut answers) {
            let before = client.processor()?;
            answers.waits.extend(ask(&mut client, kind, turn)?);
            answers.processor.push((client.processor()? - before) * 1e3 / turn.len() as f64);
        }
        tantivy.ask(turn)?;
        full_text.ask(turn)?;
    }
    memory(&client, report)?;
    for (kind, answers) in KINDS.iter().zip(&answers) {
        answers.rows(kind, report);
    }
    let ratio = timing::median(&answers[0].waits) / tantivy.rows(report);
    report.single("keyword search, p50, shelf / tantivy", "shelf", "times", ratio, Target::None);
    full_text.rows(report);
    let asked = queries.take_plain_language(QUESTIONS);
    let what = "hybrid search, questions of 7 to 12 words";
    plain_language(&mut client, &asked, (what, HYBRID_TARGET), report)?;
    let mut shallow = library.serve_without_deep()?;
    let what = "hybrid search without the deep model, questions of 7 to 12 words";
    plain_language(&mut shallow, &asked, (what, HYBRID_SHALLOW_TARGET), report)?;
    shallow.close()?;
    lookups::measure(&mut client, report)?;
    found(&mut client, &questions, report)?;
    mistyped(&mut client, &queries.take_mistyped(MISTYPED), report)?;
    client.close()
}

fn search(query: &str, kind: &str) -> Call {
    ("search", json!({ "query": query, "type": kind, "limit": TOP }))
}

fn ask(client: &mut LineClient, kind: &Kind, queries: &[String]) -> Result<Vec<f64>> {
    queries.iter().map(|query| client.timed(&search(query, kind.name))).collect()
}

fn memory(client: &LineClient, report: &mut Report) -> Result<()> {
    let what = format!("memory after {} searches", KINDS.len() * (WARM_UP + QUESTIONS));
    report.single(&what, "shelf", "MB", client.resident()?, Target::None);
    report.single("of it, without mapped files", "shelf", "MB", client.own_memory()?, Target::None);
    Ok(())
}

/// Measures hybrid searches for questions as people write them, which have many frequent words.
fn plain_language(
    client: &mut LineClient,
    questions: &[String],
    (what, target): (&str, f64),
    report: &mut Report,
) -> Result<()> {
    let kind = Kind { name: "hybrid", half: Target::None, slow: Target::None };
    ask(client, &kind, &questions[..WARM_UP])?;
    let mut answers = Answers::default();
    for turn in questions.chunks(TURN) {
        let before = client.processor()?;
        answers.waits.extend(ask(client, &kind, turn)?);
        answers.processor.push((client.processor()? - before) * 1e3 / turn.len() as f64);
    }
    report.latencies(what, "shelf", &answers.waits, Target::AtMost(target), Target::None);
    report.average(&format!("{what}, CPU"), "shelf", "ms", &answers.processor, Target::None);
    Ok(())
}

/// Counts searches without a hit: there should be none, since every word occurs in the corpus.
fn found(client: &mut LineClient, queries: &[String], report: &mut Report) -> Result<()> {
    for kind in &KINDS {
        let mut empty = 0;
        for query in queries {
            let reply = client.call(&search(query, kind.name))?;
            let results = reply["results"].as_array().context("`search` gave no `results`")?;
            empty += usize::from(results.is_empty());
        }
        report.fact(&format!("{} searches without a hit", kind.name), empty.to_string());
    }
    Ok(())
}

/// Measures searches with a typing error, and how often the intended word is searched for instead.
fn mistyped(client: &mut LineClient, queries: &[Mistyped], report: &mut Report) -> Result<()> {
    let mut right = 0;
    let mut samples = Vec::new();
    for Mistyped { query, meant } in queries {
        let call = search(query, "keyword");
        samples.push(client.timed(&call)?);
        let reply = client.call(&call)?;
        let corrections = reply["corrections"].as_array().map_or(&[][..], Vec::as_slice);
        right += usize::from(corrections.iter().any(|correction| correction["meant"] == meant.as_str()));
    }
    let what = "keyword search with one typing error";
    report.latencies(what, "shelf", &samples, Target::None, Target::None);
    let share = right as f64 / queries.len() as f64 * 100.0;
    report.single("typing errors taken for the word meant", "shelf", "%", share, Target::None);
    Ok(())
}
