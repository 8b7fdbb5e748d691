//! Checking everything: blocks, manifests, references, snapshots and the journal's chain.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use shelf_base::{CallContext, Digest};
use shelf_blocks::{BlockId, Loose, Manifest};
use shelf_catalog::{Record, Snapshot, StoredListing, chunks};

use crate::{Error, Library, Result};

const DERIVED_DATA: &str = "derived data";
/// How long a repair waits for writers to finish.
const PATIENCE: Duration = Duration::from_secs(60);
/// Loose blocks that are looked at in one go.
const LOOSE_AT_ONCE: usize = 1_000;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where: a pack, a blob, a snapshot, a journal row.
    pub place: String,
    /// What does not fit.
    pub what: String,
    /// Documents and snapshots that it affects.
    pub affects: Vec<String>,
}

/// What a check looked at and found.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Packs read.
    pub packs: u64,
    /// Blocks compared with their hashes.
    pub blocks: u64,
    /// Blobs whose whole content was compared with its hash.
    pub blobs: u64,
    /// Versions; the catalog's own check follows each to its blob.
    pub versions: u64,
    /// Snapshots whose listing was read.
    pub snapshots: u64,
    /// Journal rows whose seal was recomputed.
    pub journal: u64,
    /// Everything wrong.
    pub findings: Vec<Finding>,
}

impl Library {
    /// Reads and verifies everything that the library holds.
    pub fn check(&self, call: &CallContext) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        self.check_engine(&mut report)?;
        self.check_journal(&mut report, call)?;
        self.check_packs(&mut report, call)?;
        // What refers is read before what is referred to: a write in between adds to the latter only.
        let snapshots = self.catalog.all_snapshots()?;
        report.versions = self.catalog.version_count()?;
        let known = self.check_blobs(&mut report, call)?;
        self.check_snapshots(&mut report, &snapshots, &known, call)?;
        report.findings.extend(self.broken_loose()?.into_iter().map(|what| finding("loose blocks", what)));
        for follower in self.followers() {
            report.findings.extend(follower.damage().map(|what| finding(follower.name(), what)));
        }
        if let Err(error) = self.blobs.readings.check() {
            report.findings.push(finding(DERIVED_DATA, error.to_string()));
        }
        Ok(report)
    }

    /// Takes damaged packs and a damaged search index out of use and makes the next add read again every file whose content was hit. What is
    /// lost is lost until its bytes are added again; everything else stays as it is.
    pub fn repair(&self, call: &CallContext) -> Result<CheckReport> {
        let before = self.check(call)?;
        let damaged: Vec<String> = before
            .findings
            .iter()
            .map(|finding| finding.place.clone())
            .filter(|place| place.ends_with(".pack"))
            .collect();
        if !damaged.is_empty() {
            // A backup that is being made must not lose packs.
            let _no_backup = self.locks.alone("gc", PATIENCE, call)?;
            let _alone = self.locks.exclusive(PATIENCE, call)?;
            self.blocks.salvage(&damaged)?;
        }
        for follower in self.followers() {
            if before.findings.iter().any(|finding| finding.place == follower.name()) {
                follower.discard(call)?;
            }
        }
        if before.findings.iter().any(|finding| finding.place == DERIVED_DATA) {
            self.blobs.readings.wipe()?;
        }
        self.catalog.forget_stats()?;
        self.check(call)
    }

    fn check_engine(&self, report: &mut CheckReport) -> Result<()> {
        let found = self.catalog.integrity()?;
        let is_whole = found.is_empty();
        report.findings.extend(found.into_iter().map(|what| finding("catalog", what)));
        if is_whole {
            report.findings.extend(self.catalog.audit()?.into_iter().map(|what| finding("catalog", what)));
        }
        Ok(())
    }

    /// How many records the journal has, and what is wrong with their chain: changed, lost at the end, or left out.
    pub(crate) fn audit_journal(&self, call: &CallContext) -> Result<(u64, Vec<Finding>)> {
        let mut report = CheckReport::default();
        self.check_journal(&mut report, call)?;
        Ok((report.journal, report.findings))
    }

    fn check_journal_end(&self, report: &mut CheckReport) -> Result<()> {
        report.findings.extend(self.lost_records()?.map(|what| finding("journal", what)));
        if let Some(followed) = self.indexing.is_ahead()? {
            let end = self.catalog.sequence()?;
            let what = format!("it ends at {end}, but the search index has followed it up to {followed}");
            report.findings.push(finding("journal", what));
        }
        Ok(())
    }

    fn check_journal(&self, report: &mut CheckReport, call: &CallContext) -> Result<()> {
        self.check_journal_end(report)?;
        let mut before = Record::genesis();
        let mut last = 0;
        loop {
            call.check()?;
            let records = self.catalog.journal(last, 10_000)?;
            if records.is_empty() {
                return Ok(());
            }
            for record in records {
                if record.sequence != last + 1 {
                    let what = format!("sequence {} follows {last}", record.sequence);
                    report.findings.push(finding("journal", what));
                }
                if record.seal != record.expected_seal(&before) {
                    let place = format!("journal row {}", record.sequence);
                    report
                        .findings
                        .push(finding(&place, "its seal does not fit the row and the row before".into()));
                }
                before = record.seal;
                last = record.sequence;
                report.journal += 1;
            }
            call.report(report.journal, None, "checking the journal");
        }
    }

    fn check_packs(&self, report: &mut CheckReport, call: &CallContext) -> Result<()> {
        let usage = self.blocks.usage()?;
        (report.packs, report.blocks) = (usage.packs, usage.blocks);
        let problems = self.blocks.verify(|done, total| {
            call.report(done as u64, Some(total as u64), "checking packs");
            call.check().is_ok()
        })?;
        call.check()?;
        report.findings.extend(problems.into_iter().map(|problem| {
            let block = problem.block.map_or(String::new(), |block| format!("block {block}: "));
            finding(&problem.object, format!("{block}{}", problem.what))
        }));
        Ok(())
    }

    /// Reads every blob whole and compares it with its hash. Gives the known hashes, and reports the broken ones with
    /// the paths that need them.
    fn check_blobs(&self, report: &mut CheckReport, call: &CallContext) -> Result<HashSet<Digest>> {
        let (mut known, mut broken) = (HashSet::new(), HashMap::new());
        chunks(
            |position| Ok(self.catalog.blobs_from(position)?),
            |blobs| {
                for (hash, row) in blobs {
                    call.check()?;
                    if known.len().is_multiple_of(512) {
                        call.report(known.len() as u64, None, "checking documents");
                    }
                    if let Some(what) = self.fault_of(call, &hash, row.size, &row.manifest)? {
                        broken.insert(hash, what);
                    }
                    known.insert(hash);
                }
                Ok::<_, Error>(())
            },
        )?;
        report.blobs = known.len() as u64;
        for (hash, what) in &broken {
            let needed = self.catalog.hashed(&shelf_catalog::Scope::Library, &hash.to_string(), 100)?;
            let affects = needed
                .into_iter()
                .map(|(document, version)| format!("{} (version {})", document.path, version.number));
            let place = format!("content {hash}");
            report.findings.push(Finding { place, what: what.clone(), affects: affects.collect() });
        }
        Ok(known)
    }

    fn fault_of(
        &self,
        call: &CallContext,
        hash: &Digest,
        size: u64,
        manifest: &[u8],
    ) -> Result<Option<String>> {
        let manifest = match Manifest::decode(manifest) {
            Ok(manifest) => manifest,
            Err(error) => return Ok(Some(error.to_string())),
        };
        if manifest.size() != size {
            return Ok(Some(format!("its manifest gives {} bytes instead of {size}", manifest.size())));
        }
        match self.blobs.stream_blob(call, hash, |_| Ok(())) {
            Ok(_) => Ok(None),
            Err(Error::Stopped(stopped)) => Err(stopped.into()),
            Err(error) => Ok(Some(error.to_string())),
        }
    }

    fn check_snapshots(
        &self,
        report: &mut CheckReport,
        snapshots: &[Snapshot],
        known: &HashSet<Digest>,
        call: &CallContext,
    ) -> Result<()> {
        let mut seen = HashSet::new();
        for snapshot in snapshots {
            report.snapshots += 1;
            let is_shared = matches!(snapshot.draft.stored, StoredListing::Blob { .. });
            if is_shared && !seen.insert(snapshot.draft.listing) {
                continue;
            }
            let place = format!("snapshot {}", snapshot.at.with_micros());
            match self.listing(snapshot, call) {
                Err(Error::Stopped(stopped)) => return Err(stopped.into()),
                Err(error) => report.findings.push(finding(&place, error.to_string())),
                Ok(listing) => {
                    for entry in listing.files().filter(|entry| !known.contains(&entry.hash)) {
                        report.findings.push(finding(
                            &place,
                            format!("content {} of {} is not there", entry.hash, entry.path),
                        ));
                    }
                    if listing.merkle_root() != snapshot.draft.merkle {
                        report.findings.push(finding(&place, "its files do not have its Merkle root".into()));
                    }
                }
            }
        }
        Ok(())
    }
}

fn finding(place: &str, what: String) -> Finding {
    Finding { place: place.to_owned(), what, affects: Vec::new() }
}

impl Library {
    /// Loose blocks that do not decode; part of a full check of the catalog's own bytes.
    pub(crate) fn broken_loose(&self) -> Result<Vec<String>> {
        let (mut broken, mut after) = (Vec::new(), None);
        loop {
            let blocks = self.catalog.loose_after(after, LOOSE_AT_ONCE)?;
            let Some(last) = blocks.last() else { return Ok(broken) };
            after = Some(last.id);
            broken.extend(blocks.into_iter().filter_map(|block| {
                let loose = Loose { id: BlockId::new(block.id), bytes: block.bytes };
                loose.decode().err().map(|error| error.to_string())
            }));
        }
    }
}
