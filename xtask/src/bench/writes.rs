//! Small durable writes, compared with their minimum cost: a synced SQLite commit on the same disk.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::Scale;
use super::library::Library;
use super::line_client::Call;
use super::report::{Report, Target};
use super::serve::TOGETHER;
use super::synced::SyncedCommits;
use super::text::Writer;
use super::timing;
use super::words::Words;

/// The size of a small document in bytes.
const BODY: usize = 1_000;

/// The number of rounds in which both sides alternate, so that a slow period of the disk affects both.
const ROUNDS: usize = 10;

/// Generates new documents, all different.
struct Documents<'words> {
    writer: Writer<'words>,
    serial: usize,
}

impl Documents<'_> {
    fn body(&mut self) -> String {
        let mut body = self.writer.prose(BODY);
        body.truncate(BODY);
        body
    }

    fn add(&mut self) -> Call {
        self.serial += 1;
        ("add", json!({ "content": self.body(), "name": format!("bench/note-{}.md", self.serial) }))
    }
}

/// Measures single writes, the baseline, and concurrent writes.
pub fn measure(library: &Library, work: &Path, scale: Scale, report: &mut Report) -> Result<()> {
    let words = Words::new();
    let mut documents = Documents { writer: Writer::new(&words, 0x5eed_0040), serial: 0 };
    let synced = SyncedCommits::open(work)?;
    let mut client = library.serve()?;
    for _ in 0..20 {
        client.timed(&documents.add())?;
        synced.commit(&documents.body())?;
    }
    let hash = client.call(&documents.add())?["hash"].take();
    let read: Call = ("get", json!({ "hash": hash, "include_content": true }));
    let (mut adds, mut commits, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for _ in 0..scale.of(1_000) / ROUNDS {
            adds.push(client.timed(&documents.add())?);
        }
        for _ in 0..scale.of(1_000) / ROUNDS {
            commits.push(synced.commit(&documents.body())?);
        }
        for _ in 0..scale.of(1_000) / ROUNDS {
            reads.push(client.timed(&read)?);
        }
    }
    let ratio = timing::median(&adds) / timing::median(&commits);
    let beyond = (timing::median(&adds) - timing::median(&reads)) / timing::median(&commits);
    report.samples("small durable write, p50", "shelf", "ms", adds, Target::None);
    report.samples("synced commit, p50", "sqlite", "ms", commits, Target::None);
    report.single("small durable write / synced commit", "shelf", "times", ratio, Target::None);
    let what = "(small durable write - small read) / synced commit";
    report.single(what, "shelf", "times", beyond, Target::AtMost(1.5));
    let mut rates = Vec::new();
    for _ in 0..5 {
        let calls: Vec<Call> = (0..scale.of(2_000)).map(|_| documents.add()).collect();
        rates.push(client.in_flight(&calls, TOGETHER)?);
    }
    report.samples("small durable writes, 16 in flight", "shelf", "/s", rates, Target::AtLeast(1_000.0));
    client.close()
}
