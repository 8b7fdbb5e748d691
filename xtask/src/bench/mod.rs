//! `cargo xtask bench`: measures our performance targets in a reproducible way and records the results.

mod binary;
mod books;
mod cite;
mod cluster;
mod collection;
mod compare;
mod console;
mod corpus;
mod engines;
mod full_text;
mod gc;
mod generations;
mod graph;
mod grep;
mod hostile;
mod imports;
mod index_parts;
mod ingest;
mod library;
mod line_client;
mod lookups;
mod machine;
mod many;
mod passages;
mod patterns;
mod peak;
mod programs;
mod queries;
mod random;
mod report;
mod ripgrep;
mod search;
mod serve;
mod synced;
mod tantivy_direct;
mod text;
mod timing;
mod vocabulary;
mod words;
mod writes;

use std::path::Path;

use anyhow::{Context, Result, bail};

pub use machine::own_megabytes;
pub use random::Random;

use crate::arguments::Arguments;

/// The size of the corpora and the length of the runs.
#[derive(Clone, Copy)]
pub enum Scale {
    /// The sizes for published figures.
    Full,
    /// One twentieth of the full size.
    Quick,
}

impl Scale {
    /// Whether this is the quick scale.
    pub const fn is_quick(self) -> bool {
        matches!(self, Self::Quick)
    }

    /// `count` at this scale.
    pub fn of(self, count: usize) -> usize {
        match self {
            Self::Full => count,
            Self::Quick => (count / 20).max(1),
        }
    }

    /// The folder below `bench/work` for files of this scale.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Quick => "quick",
        }
    }

    /// The suffix of the names of runs.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Full => "",
            Self::Quick => "-quick",
        }
    }
}

/// Runs the benchmark named by the next argument.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let scale = if arguments.take_flag("--quick") { Scale::Quick } else { Scale::Full };
    let before = arguments.take_value("--before")?;
    let name = arguments.take_word();
    arguments.finish()?;
    if before.is_some() && name.as_deref() != Some("compare") {
        bail!("`--before` belongs to `cargo xtask bench compare`");
    }
    match name.as_deref() {
        Some("ingest") => ingest::run(scale),
        Some("serve") => serve::run(scale),
        Some("search") => search::run(scale),
        Some("grep") => grep::run(scale),
        Some("hostile") => hostile::run(scale),
        Some("gc") => gc::run(scale),
        Some("books") => books::run(scale),
        Some("cite") => cite::run(scale),
        Some("graph") => graph::run(scale),
        Some("collection") => collection::run(scale),
        Some("console") => console::run(scale),
        Some("cluster") => cluster::run(scale),
        Some("compare") => {
            let before = before.context("name an earlier program: `bench compare --before PROGRAM`")?;
            compare::run(scale, Path::new(&before))
        }
        _ => bail!(
            "name a benchmark: `cargo xtask bench ingest`, `serve`, `search`, `grep`, `hostile`, `gc`, `books`, `cite`, `graph`, `collection`, `console`, `cluster` or `compare`"
        ),
    }
}
