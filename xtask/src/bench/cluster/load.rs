//! Load of many clients over HTTP, spread over the nodes, and what it costs each part in processor time.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;

use super::{Bench, Node};
use crate::bench::line_client::Call;
use crate::bench::many::Client;
use crate::bench::random::Random;
use crate::bench::report::{Report, Target};
use crate::bench::text::Writer;
use crate::bench::words::Words;
use crate::bench::{Scale, machine};

/// Clients at a time.
pub const CLIENTS: usize = 16;
/// The number of rounds, each of which gives one sample.
const ROUNDS: usize = 3;
/// The size of a small document in bytes.
const BODY: usize = 1_000;

/// Gives the next call of a client.
pub type Next<'run> = Box<dyn FnMut() -> Call + Send + 'run>;

/// Makes new documents, all different.
pub struct Documents<'words> {
    words: &'words Words,
    serial: AtomicUsize,
}

impl<'words> Documents<'words> {
    /// A source of documents.
    pub fn new(words: &'words Words) -> Self {
        Self { words, serial: AtomicUsize::new(0) }
    }

    /// The number of documents that were made so far.
    pub fn made(&self) -> usize {
        self.serial.load(Ordering::Relaxed)
    }

    /// A client that adds one small document after the other.
    pub fn writer(&self, client: usize) -> Next<'_> {
        let seed = 0x5eed_00a0 + ((self.made() as u64) << 16) + client as u64;
        let mut writer = Writer::new(self.words, seed);
        Box::new(move || {
            let serial = self.serial.fetch_add(1, Ordering::Relaxed);
            let mut body = format!("Note {serial}. {}", writer.prose(BODY));
            body.truncate(BODY);
            ("add", json!({ "content": body, "name": format!("notes/note-{serial}.md") }))
        })
    }
}

/// A client that reads small documents at random.
pub fn reader(hashes: &[String], client: usize) -> Next<'_> {
    let mut random = Random::new(0x5eed_00b0 + client as u64);
    Box::new(move || ("get", json!({ "hash": random.pick(hashes), "include_content": true })))
}

/// The latencies in milliseconds of a client that waits for each reply.
pub fn one_by_one(client: &mut Client, next: &mut Next, count: usize) -> Result<Vec<f64>> {
    (0..count).map(|_| timed(client, next)).collect()
}

fn timed(client: &mut Client, next: &mut Next) -> Result<f64> {
    let (tool, arguments) = next();
    let started = Instant::now();
    client.call(tool, &arguments)?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

/// Keeps all clients busy for a while; returns the number of calls and the seconds. Any error ends the run.
pub fn run<'run>(
    nodes: &[Node],
    scale: Scale,
    next: impl Fn(usize) -> Next<'run>,
) -> Result<(usize, f64, Vec<f64>)> {
    let length = Duration::from_secs(if scale.is_quick() { 1 } else { 4 });
    let addresses = nodes.iter().map(Node::address).collect::<Result<Vec<_>>>()?;
    let started = Instant::now();
    let waits = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (address, mut next) = (&addresses[number % addresses.len()], next(number));
                scope.spawn(move || -> Result<Vec<f64>> {
                    let (mut client, mut waits) = (Client::connect(address)?, Vec::new());
                    while started.elapsed() < length {
                        waits.push(timed(&mut client, &mut next)?);
                    }
                    Ok(waits)
                })
            })
            .collect();
        let joined = clients.into_iter().map(|client| {
            client.join().map_err(|_| anyhow::anyhow!("a client of the benchmark panicked"))?
        });
        joined.collect::<Result<Vec<_>>>()
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let waits: Vec<f64> = waits.into_iter().flatten().collect();
    Ok((waits.len(), seconds, waits))
}

/// What several rounds of load gave.
pub struct Load {
    per_second: Vec<f64>,
    waits: Vec<f64>,
    node_milliseconds: Vec<f64>,
    database_milliseconds: Option<Vec<f64>>,
}

impl Load {
    /// Measures several rounds.
    pub fn measure<'run>(
        bench: &Bench,
        nodes: &[Node],
        is_shared: bool,
        next: impl Fn(usize) -> Next<'run>,
    ) -> Result<Self> {
        let mut load = Self {
            per_second: Vec::new(),
            waits: Vec::new(),
            node_milliseconds: Vec::new(),
            database_milliseconds: is_shared.then(Vec::new),
        };
        for _ in 0..ROUNDS {
            let (nodes_before, database_before) = (processor(nodes)?, database_processor(bench)?);
            let (calls, seconds, waits) = run(nodes, bench.scale, &next)?;
            let each = |time: f64| time * 1e3 / calls.max(1) as f64;
            load.node_milliseconds.push(each(processor(nodes)? - nodes_before));
            if let Some(samples) = &mut load.database_milliseconds {
                samples.push(each(database_processor(bench)? - database_before));
            }
            load.per_second.push(calls as f64 / seconds);
            load.waits.extend(waits);
        }
        Ok(load)
    }

    /// Adds the rows.
    pub fn rows(self, what: &str, program: &str, report: &mut Report) {
        report.samples(what, program, "/s", self.per_second, Target::None);
        report.latencies(&format!("{what}: wait"), program, &self.waits, Target::None, Target::None);
        report.average(
            &format!("{what}: CPU of nodes"),
            program,
            "ms/call",
            &self.node_milliseconds,
            Target::None,
        );
        if let Some(samples) = &self.database_milliseconds {
            report.average(
                &format!("{what}: CPU of the database"),
                program,
                "ms/call",
                samples,
                Target::None,
            );
        }
    }
}

fn processor(nodes: &[Node]) -> Result<f64> {
    nodes.iter().map(Node::processor).sum()
}

/// The processor time of the database server: of its first process and of all that this one has started.
fn database_processor(bench: &Bench) -> Result<f64> {
    let first = bench.stores.database_process().context("the database does not run")?;
    let mut total = machine::processor_seconds(first).unwrap_or_default();
    for entry in fs::read_dir("/proc")?.flatten() {
        let process = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(process) = process else { continue };
        if machine::parent(process) == Some(first) {
            total += machine::processor_seconds(process).unwrap_or_default();
        }
    }
    Ok(total)
}
