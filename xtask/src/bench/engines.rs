//! Search engines for comparison: each indexes the same passages and answers the same queries, in this process.

use std::path::{Path, PathBuf};
use std::process;
use std::time::Instant;

use anyhow::{Context, Result};

use super::report::{Report, Target};
use super::{corpus, machine, passages, timing, vocabulary};

/// The number of hits to request.
pub const TOP: usize = 10;

/// A search engine that finds passages by their words.
pub trait Engine: Sized {
    /// An index under construction.
    type Maker;

    /// The name used in the results.
    const NAME: &'static str;

    /// The engine's version and configuration.
    fn version() -> String;

    /// Creates an empty index in a new folder.
    fn create(folder: &Path) -> Result<Self::Maker>;

    /// Adds one passage of the file at `path`.
    fn add(maker: &mut Self::Maker, path: &str, passage: &str) -> Result<()>;

    /// Writes the remaining data and opens the index.
    fn finish(maker: Self::Maker) -> Result<Self>;

    /// Finds the best passages with a snippet of each; returns the time in milliseconds.
    fn search(&mut self, query: &str) -> Result<f64>;
}

/// An engine and the latencies measured so far.
pub struct Contender<E> {
    engine: E,
    samples: Vec<f64>,
}

impl<E: Engine> Contender<E> {
    /// Indexes all files in a new folder below `work` and reports the cost.
    pub fn make(files: &[(PathBuf, u64)], work: &Path, report: &mut Report) -> Result<Self> {
        println!("== indexing with {}", E::NAME);
        report.fact(E::NAME, E::version());
        let folder = work.join("stores").join(E::NAME);
        corpus::remove(&folder)?;
        let (start, before) = (Instant::now(), processor()?);
        let mut maker = E::create(&folder)?;
        let mut count = 0_usize;
        for (path, _) in files {
            let text = vocabulary::text(path)?;
            for passage in passages::of(&text) {
                E::add(&mut maker, &path.to_string_lossy(), passage)?;
                count += 1;
            }
        }
        let engine = E::finish(maker)?;
        let (wall, spent) = (start.elapsed().as_secs_f64(), processor()? - before);
        report.fact(&format!("{} passages", E::NAME), count.to_string());
        let bytes = files.iter().map(|(_, size)| size).sum::<u64>() as f64;
        report.single("index, wall", E::NAME, "s", wall, Target::None);
        report.single("index, speed", E::NAME, "MB/CPU-s", bytes / 1e6 / spent.max(0.01), Target::None);
        let share = corpus::bytes_below(&folder)? as f64 / bytes * 100.0;
        report.single("index on disk", E::NAME, "% of text", share, Target::None);
        Ok(Self { engine, samples: Vec::new() })
    }

    /// Runs all queries and records their latencies.
    pub fn ask(&mut self, queries: &[String]) -> Result<()> {
        for query in queries {
            self.samples.push(self.engine.search(query)?);
        }
        Ok(())
    }

    /// Runs queries without recording them.
    pub fn warm_up(&mut self, queries: &[String]) -> Result<()> {
        queries.iter().try_for_each(|query| self.engine.search(query).map(drop))
    }

    /// Reports the latencies and returns their median.
    pub fn rows(&self, report: &mut Report) -> f64 {
        report.latencies("keyword search", E::NAME, &self.samples, Target::None, Target::None);
        timing::median(&self.samples)
    }
}

/// The processor time of this process so far.
fn processor() -> Result<f64> {
    machine::processor_seconds(process::id()).context("cannot read the processor time from /proc")
}
