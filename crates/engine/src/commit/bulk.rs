//! Adding many files: those that are unchanged by what the file system says are not read, the rest is stored in rounds.
//!
//! A round is read, hashed and compressed by several threads, sealed with one sync, and committed by the catalog's
//! writer while the next round is under way.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use parking_lot::Mutex;
use shelf_base::{CallContext, Digest, Fence};
use shelf_blocks::{
    Batch, BlockId, Chosen, PackWriter, Trust,
    cut::{self, Cut},
    patch,
};
use shelf_catalog::{Actor, Put, PutDocument, PutResult, Snapshot, Source as Known};
use shelf_reading::detect;

use super::{
    Draft, Writing,
    put::{document, entry, snapshot_of},
};
use crate::{
    Entry, Error, FailedFile, Library, Listing, Result,
    ingest::{AddOptions, Facts, Source, counts, most_of, relative},
};

/// Files in one round at most.
const ROUND_FILES: usize = 8_192;
/// Raw bytes in one round, about.
const ROUND_BYTES: u64 = 96 * 1_024 * 1_024;
/// Files that a thread takes at once, so that neighbours share a frame.
const RUN: usize = 32;
/// Files from this size on get packs of their own, which are compressed with an earlier part of the file where that helps.
const OWN_PACKS: u64 = 8 << 20;
/// Files up to this size are read whole, and compared with what the library has under their path.
const WHOLE: u64 = 4 << 20;
/// Files of together at least so many bytes are compressed with a dictionary that is chosen from samples of them: of so many at
/// most, and of each so many bytes.
const SAMPLED: u64 = 16 << 20;
const SAMPLES: usize = 128;
const SAMPLE: usize = 16 << 10;
/// Samples of one large text, and the length from which a part of the text itself may be its dictionary.
const PARTS: u64 = 48;
const LONG: u64 = 64 << 20;
/// A file whose inode changed this shortly before it was last stored may have changed again within the clock's
/// resolution.
const GRAIN_MICROS: i64 = 2_000_000;

/// A file to be added.
pub(crate) struct Found {
    pub full: PathBuf,
    pub path: String,
    pub facts: Facts,
    /// What the library has under this path, when it has something else.
    pub earlier: Option<Digest>,
}

/// Adds the files of a folder and makes a snapshot of it.
pub(crate) struct FolderDraft<'a> {
    pub actor: &'a Actor,
    pub options: &'a AddOptions,
    pub source: &'a Source,
    /// The folder, as text.
    pub root: &'a str,
    /// Its files, in the order of their paths.
    pub files: Vec<Found>,
    /// Its symbolic links, which are part of the snapshot only.
    pub links: Vec<Entry>,
    pub git: (Option<String>, Option<String>),
    /// Make no snapshot when all files are as they were.
    pub only_changes: bool,
}

/// The snapshot of a folder, and what became of its files.
pub(crate) struct FolderReceipt {
    pub merkle: Digest,
    pub snapshot: Option<Snapshot>,
    pub tally: Tally,
}

/// What became of the files of a folder.
#[derive(Default)]
pub(crate) struct Tally {
    pub failed: Vec<FailedFile>,
    pub stored: u64,
    pub deduplicated: u64,
    pub added: u64,
    pub updated: u64,
    pub unchanged: u64,
    entries: Vec<Entry>,
}

impl Tally {
    fn count(&mut self, result: &PutResult) {
        let (added, updated, unchanged) = counts(result.state);
        self.added += added;
        self.updated += updated;
        self.unchanged += unchanged;
        self.stored += result.stored;
        self.deduplicated += result.deduplicated;
    }
}

impl Draft for FolderDraft<'_> {
    type Receipt = FolderReceipt;

    fn write(mut self, writing: &mut Writing<'_>) -> Result<FolderReceipt> {
        let mut tally = Tally { entries: std::mem::take(&mut self.links), ..Tally::default() };
        let total = self.files.len() as u64;
        let files = std::mem::take(&mut self.files);
        let changed = self.set_aside_unchanged(writing.library, files, &mut tally)?;
        writing.call.report(tally.unchanged, Some(total), "storing");
        self.store_rounds(writing, &changed, total, &mut tally)?;
        let listing = Listing::new(std::mem::take(&mut tally.entries));
        if self.only_changes && tally.added == 0 {
            return Ok(FolderReceipt { merkle: listing.merkle_root(), snapshot: None, tally });
        }
        let library: &Library = writing.library;
        let earlier = || match &self.options.collection {
            Some(collection) => Ok(library.catalog.newest_listing(collection.id, self.root)?),
            None => Ok(None),
        };
        let mut snapshot = snapshot_of(writing, &listing, self.root, self.options.label.clone(), earlier)?;
        (snapshot.git_commit, snapshot.git_branch) = self.git;
        let merkle = snapshot.merkle;
        let put = writing.transaction(self.actor, self.options.shelf(), Vec::new(), Some(snapshot));
        let (_, snapshot) = writing.put(put)?;
        Ok(FolderReceipt { merkle, snapshot, tally })
    }
}

impl FolderDraft<'_> {
    /// Files that are as they were need not be read. Tags and metadata ask for every document to be touched.
    fn set_aside_unchanged(
        &self,
        library: &Library,
        files: Vec<Found>,
        tally: &mut Tally,
    ) -> Result<Vec<Found>> {
        let options = self.options;
        if !options.tags.is_empty() || !options.metadata.is_empty() || options.mime.is_some() {
            return Ok(files);
        }
        let Some(collection) = &options.collection else { return Ok(files) };
        let known = library.catalog.sources(collection.id, self.root)?;
        if known.is_empty() {
            return Ok(files);
        }
        let known: HashMap<String, Known> =
            known.into_iter().map(|known| (known.path.clone(), known)).collect();
        let mut changed = Vec::new();
        for found in files {
            match known.get(&found.path) {
                Some(known) if is_same(known, &found.facts) => {
                    tally.unchanged += 1;
                    tally.deduplicated += known.size;
                    tally.entries.push(Entry {
                        path: relative(self.root, &found.path),
                        hash: known.hash,
                        size: known.size,
                        mode: found.facts.mode,
                        modified_at: found.facts.modified_at,
                        link: None,
                    });
                }
                known => changed.push(Found { earlier: known.map(|known| known.hash), ..found }),
            }
        }
        Ok(changed)
    }

    /// A dictionary for many files, chosen from the beginnings of some of them. What cannot be read is told when it is
    /// stored.
    fn dictionary(&self, files: &[Found]) -> Result<Option<Chosen>> {
        if files.iter().map(|found| found.facts.size).sum::<u64>() < SAMPLED {
            return Ok(None);
        }
        let read = |found: &Found| -> Option<Vec<u8>> {
            let (mut file, facts) = self.source.open_file(&found.full).ok()?;
            let mut sample = Vec::new();
            let wanted = (facts.size as usize).saturating_add(1).min(SAMPLE);
            read_up_to(&mut file, wanted, &mut sample).ok()?;
            Some(sample)
        };
        let step = files.len().div_ceil(SAMPLES);
        Ok(Chosen::for_documents(files.iter().step_by(step).filter_map(read).collect())?)
    }

    fn store_rounds(
        &self,
        writing: &mut Writing<'_>,
        files: &[Found],
        total: u64,
        tally: &mut Tally,
    ) -> Result<()> {
        let (library, call) = (writing.library, writing.call);
        let fence = writing.fence.clone();
        let dictionary = self.dictionary(files)?;
        let committed = Mutex::new(Vec::new());
        let outcome = thread::scope(|scope| {
            let (rounds, incoming) = mpsc::sync_channel::<Vec<PutDocument>>(1);
            let committer = scope.spawn(|| self.commit_rounds(library, fence.as_ref(), incoming, &committed));
            let mut rest = files;
            let stored = (|| {
                while !rest.is_empty() {
                    call.check()?;
                    let (round, after) = rest.split_at(round_length(rest));
                    rest = after;
                    let documents =
                        self.store_round(library, round, dictionary.as_ref(), call, &mut tally.failed)?;
                    tally.entries.extend(
                        documents
                            .iter()
                            .map(|document| entry(&relative(self.root, &document.path), document)),
                    );
                    if rounds.send(documents).is_err() {
                        break;
                    }
                    call.report(total - rest.len() as u64, Some(total), "storing");
                }
                Ok(())
            })();
            drop(rounds);
            let committed = committer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            stored.and(committed)
        });
        for result in committed.into_inner() {
            tally.count(&result);
        }
        writing.touched(tally.added);
        outcome
    }

    /// Commits round after round; what has been committed stays so when a later round fails.
    fn commit_rounds(
        &self,
        library: &Library,
        fence: Option<&Fence>,
        rounds: mpsc::Receiver<Vec<PutDocument>>,
        committed: &Mutex<Vec<PutResult>>,
    ) -> Result<()> {
        for documents in rounds {
            let put = Put {
                actor: self.actor.clone(),
                collection: self.options.shelf(),
                now: library.now(),
                documents,
                loose: Vec::new(),
                snapshot: None,
                upload: None,
                fence: fence.cloned(),
                may_wait: true,
            };
            let (results, _) = library.catalog.put(put)?;
            committed.lock().extend(results);
        }
        Ok(())
    }

    /// Stores the blocks of one round and gives the documents that may now be committed.
    fn store_round(
        &self,
        library: &Library,
        files: &[Found],
        dictionary: Option<&Chosen>,
        call: &CallContext,
        failed: &mut Vec<FailedFile>,
    ) -> Result<Vec<PutDocument>> {
        let batch = library.blocks.batch(Trust::Pack);
        let round = Round {
            library,
            options: self.options,
            source: self.source,
            files,
            call,
            next: AtomicUsize::new(0),
            done: Mutex::new(Vec::with_capacity(files.len())),
            failed: Mutex::default(),
        };
        if let Some(dictionary) = dictionary {
            batch.use_dictionary(dictionary);
        }
        let threads =
            thread::available_parallelism().map_or(1, usize::from).min(files.len().div_ceil(RUN)).max(1);
        thread::scope(|scope| {
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(|| round.store_runs(&batch))).collect();
            let own = round.store_runs(&batch);
            let others = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            others.fold(own, Result::and)
        })?;
        let _sealed = batch.seal()?;
        failed.extend(in_order(round.failed));
        Ok(in_order(round.done))
    }
}

fn in_order<T>(numbered: Mutex<Vec<(usize, T)>>) -> Vec<T> {
    let mut numbered = numbered.into_inner();
    numbered.sort_by_key(|(at, _)| *at);
    numbered.into_iter().map(|(_, value)| value).collect()
}

/// How many of the next files make a round.
fn round_length(files: &[Found]) -> usize {
    let mut bytes = 0;
    let fits = |found: &&Found| {
        bytes += found.facts.size;
        bytes <= ROUND_BYTES
    };
    files.iter().take(ROUND_FILES).take_while(fits).count().max(1)
}

fn is_same(known: &Known, facts: &Facts) -> bool {
    let settled = facts.changed_nanos / 1_000 + GRAIN_MICROS < known.checked_at.micros();
    settled && known.stat.is_some() && known.stat == facts.stat
}

/// What the threads of one round share.
struct Round<'a> {
    library: &'a Library,
    options: &'a AddOptions,
    source: &'a Source,
    files: &'a [Found],
    call: &'a CallContext,
    next: AtomicUsize,
    done: Mutex<Vec<(usize, PutDocument)>>,
    failed: Mutex<Vec<(usize, FailedFile)>>,
}

impl Round<'_> {
    /// One thread's work: runs of neighbouring files until none is left.
    fn store_runs(&self, batch: &Batch<'_>) -> Result<()> {
        let mut writer = batch.writer()?;
        let mut buffer = Vec::new();
        loop {
            let start = self.next.fetch_add(RUN, Ordering::Relaxed);
            if start >= self.files.len() {
                return Ok(writer.finish()?);
            }
            let mut stored = Vec::with_capacity(RUN);
            for (at, found) in self.files.iter().enumerate().skip(start).take(RUN) {
                self.call.check()?;
                match self.store_file(found, batch, &mut writer, &mut buffer) {
                    Ok(document) => stored.push((at, document)),
                    Err(Error::File { source: reason, .. }) => {
                        let failed = FailedFile { path: found.path.clone(), reason: reason.to_string() };
                        self.failed.lock().push((at, failed));
                    }
                    Err(error) => return Err(error),
                }
            }
            self.done.lock().append(&mut stored);
        }
    }

    fn store_file(
        &self,
        found: &Found,
        batch: &Batch<'_>,
        writer: &mut PackWriter<'_, '_>,
        buffer: &mut Vec<u8>,
    ) -> Result<PutDocument> {
        use std::io::Read as _;
        let failed = |error| Error::reading(found.path.clone(), error);
        let (mut file, facts) = self.source.open_file(&found.full).map_err(failed)?;
        // Large files are cut as they stream; the beginning is kept for telling the type.
        let whole = facts.size <= WHOLE;
        let wanted = if whole { facts.size as usize + 1 } else { shelf_reading::SAMPLE };
        read_up_to(&mut file, wanted, buffer).map_err(failed)?;
        if whole && buffer.len() == wanted {
            // It has grown since it was opened, or its content is generated as it is read.
            let rest = most_of(&facts).saturating_sub(buffer.len() as u64);
            (&mut file).take(rest).read_to_end(buffer).map_err(failed)?;
        }
        let cut = if whole {
            match self.patched(found, buffer, batch, writer)? {
                Some(cut) => cut,
                None => cut::slice(buffer, |block, bytes| writer.put(block, bytes))?,
            }
        } else {
            let own_batch = (facts.size >= OWN_PACKS).then(|| self.library.blocks.batch(Trust::Pack));
            // A new version of a large file stores little, for which a dictionary would not pay.
            if let Some(batch) = &own_batch
                && found.earlier.is_none()
                && facts.size < LONG
                && detect(&found.path, buffer).is_text
                && let Some(dictionary) = Chosen::for_large(parts(&file, facts.size))?
            {
                batch.use_dictionary(&dictionary);
            }
            let mut own = own_batch.as_ref().map(Batch::writer).transpose()?;
            let rest = most_of(&facts).saturating_sub(buffer.len() as u64);
            let stream = std::io::Cursor::new(buffer.clone()).chain(file.take(rest));
            let cut = cut::stream::<Error>(stream, |block, bytes| {
                self.call.check()?;
                match &mut own {
                    Some(own) => Ok(own.put(block, bytes)?),
                    None => Ok(writer.put(block, bytes)?),
                }
            });
            let cut = match cut {
                Err(Error::Blocks(shelf_blocks::Error::Source(error))) => return Err(failed(error)),
                other => other?,
            };
            if let (Some(own), Some(batch)) = (own, &own_batch) {
                own.finish()?;
                let _sealed = batch.seal()?;
            }
            cut
        };
        writer.end_document()?;
        Ok(document(self.options, found.path.clone(), &cut, buffer, &facts))
    }

    /// Stores a file as parts of what the library has under its path, when that saves most of it.
    fn patched(
        &self,
        found: &Found,
        bytes: &[u8],
        batch: &Batch<'_>,
        writer: &mut PackWriter<'_, '_>,
    ) -> Result<Option<Cut>> {
        let Some(earlier) = &found.earlier else { return Ok(None) };
        let (library, new) = (self.library, Digest::of(bytes));
        let holds = |id: &BlockId| batch.holds(id);
        if new == *earlier {
            // Touched, but the same. What has whole blocks is cut again, which finds them.
            let has_parts = library.blobs.manifest(earlier).is_ok_and(|manifest| manifest.has_parts());
            let known =
                if has_parts { library.blobs.earlier(self.call, earlier, WHOLE, holds)? } else { None };
            return Ok(known.map(|(manifest, bytes)| Cut { hash: new, size: bytes.len() as u64, manifest }));
        }
        // A content that the library has keeps what it consists of: other documents rely on it.
        if library.catalog.blob(&new)?.is_some() {
            return Ok(None);
        }
        let Some((manifest, earlier)) = library.blobs.earlier(self.call, earlier, WHOLE, holds)? else {
            return Ok(None);
        };
        let parts = patch::around_an_edit(&earlier, bytes);
        Ok(patch::patch(&manifest, &parts, bytes, patch::DOCUMENT, |block, bytes| writer.put(block, bytes))?)
    }
}

/// Samples from all over a large file.
fn parts(file: &std::fs::File, size: u64) -> Vec<Vec<u8>> {
    use std::os::unix::fs::FileExt as _;
    let read = |part: u64| -> Option<Vec<u8>> {
        let mut sample = vec![0; SAMPLE];
        let count = file.read_at(&mut sample, size / PARTS * part).ok()?;
        sample.truncate(count);
        Some(sample)
    };
    (0..PARTS).filter_map(read).collect()
}

/// Reads up to `wanted` bytes, which for most files is one call: a short read is the end of a regular file.
fn read_up_to(file: &mut std::fs::File, wanted: usize, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    use std::io::Read as _;
    buffer.resize(wanted, 0);
    let mut filled = 0;
    while filled < wanted {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => {
                filled += count;
                if filled + 1 == wanted {
                    break;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.truncate(filled);
    Ok(())
}
