//! Adding a folder: walk, tell the unchanged by what the file system says of them, store the rest in rounds.
//!
//! A round is read, hashed and compressed by several threads, sealed with one sync, and committed by the catalog's
//! writer while the next round is under way.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use ignore::WalkBuilder;
use parking_lot::Mutex;
use shelf_base::{CallContext, Moment};
use shelf_blocks::{Batch, PackWriter, Trust, cut};
use shelf_catalog::{Put, PutDocument, PutResult, Source as Stored};

use super::{
    AddOptions, AddReply, AddRequest, FailedFile, counts, document, draft, entry, git, single::InlineBlocks,
    single::most_of, source::Facts, source::Source,
};
use crate::{Caller, Entry, Error, Library, Listing, Result, pattern::Patterns, validate};

/// Files in one round at most.
const ROUND_FILES: usize = 8_192;
/// Raw bytes in one round, about.
const ROUND_BYTES: u64 = 96 * 1_024 * 1_024;
/// Files that a thread takes at once, so that neighbours share a frame.
const RUN: usize = 32;
/// A file whose inode changed this shortly before it was last stored may have changed again within the clock's grain.
const GRAIN_MICROS: i64 = 2_000_000;

/// One file to look at.
struct Found {
    full: PathBuf,
    path: String,
    facts: Facts,
}

/// What has come of an add so far.
#[derive(Default)]
struct Tally {
    entries: Vec<Entry>,
    links: u64,
    skipped: Vec<FailedFile>,
    failed: Vec<FailedFile>,
    stored: u64,
    deduplicated: u64,
    added: u64,
    updated: u64,
    unchanged: u64,
}

impl Library {
    pub(super) fn add_folder(
        &self,
        caller: &Caller,
        request: &AddRequest,
        options: &AddOptions,
        source: &Source,
        call: &CallContext,
    ) -> Result<AddReply> {
        if request.resource_id.is_some() {
            return Err(Error::invalid("resource_id", "names one document; it cannot be given to a folder"));
        }
        let root = super::single::text_path(&source.path)?;
        let _writing = self.writing(call)?;
        let mut tally = Tally::default();
        let found = walk(request, source, &root, call, &mut tally)?;
        let total = found.len() as u64;
        let changed = self.set_aside_unchanged(options, &root, found, &mut tally)?;
        call.report(tally.unchanged, Some(total), "storing");
        self.store_rounds(caller, options, source, &root, changed, call, total, &mut tally)?;
        self.finish_folder(caller, options, source, &root, tally)
    }

    /// Files that are as they were need not be read. Tags and metadata ask for every document to be touched.
    fn set_aside_unchanged(
        &self,
        options: &AddOptions,
        root: &str,
        found: Vec<Found>,
        tally: &mut Tally,
    ) -> Result<Vec<Found>> {
        if !options.tags.is_empty() || !options.metadata.is_empty() || options.mime.is_some() {
            return Ok(found);
        }
        let Some(collection) = &options.collection else { return Ok(found) };
        let stored = self.catalog.sources(collection.id, root)?;
        if stored.is_empty() {
            return Ok(found);
        }
        let stored: HashMap<String, Stored> =
            stored.into_iter().map(|stored| (stored.path.clone(), stored)).collect();
        let mut changed = Vec::new();
        for found in found {
            match stored.get(&found.path) {
                Some(stored) if is_same(stored, &found.facts) => {
                    tally.unchanged += 1;
                    tally.deduplicated += stored.size;
                    tally.entries.push(Entry {
                        path: relative(root, &found.path),
                        hash: stored.hash,
                        size: stored.size,
                        mode: found.facts.mode,
                        modified_at: found.facts.modified_at,
                        link: None,
                    });
                }
                _ => changed.push(found),
            }
        }
        Ok(changed)
    }

    #[expect(clippy::too_many_arguments, reason = "one private step of one function")]
    fn store_rounds(
        &self,
        caller: &Caller,
        options: &AddOptions,
        source: &Source,
        root: &str,
        files: Vec<Found>,
        call: &CallContext,
        total: u64,
        tally: &mut Tally,
    ) -> Result<()> {
        thread::scope(|scope| {
            let (rounds, incoming) = mpsc::sync_channel::<Vec<PutDocument>>(1);
            let committer = scope.spawn(move || self.commit_rounds(caller, options, &incoming));
            let mut rest = &files[..];
            while !rest.is_empty() {
                call.check()?;
                let (round, after) = rest.split_at(round_length(rest));
                rest = after;
                let documents = self.store_round(options, source, round, call, &mut tally.failed)?;
                tally.entries.extend(
                    documents.iter().map(|document| entry(&relative(root, &document.path), document)),
                );
                if rounds.send(documents).is_err() {
                    break;
                }
                call.report(total - rest.len() as u64, Some(total), "storing");
            }
            drop(rounds);
            let results = committer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            for result in results {
                let (added, updated, unchanged) = counts(result.state);
                tally.added += added;
                tally.updated += updated;
                tally.unchanged += unchanged;
                tally.stored += result.stored;
                tally.deduplicated += result.deduplicated;
            }
            Ok(())
        })
    }

    fn commit_rounds(
        &self,
        caller: &Caller,
        options: &AddOptions,
        rounds: &mpsc::Receiver<Vec<PutDocument>>,
    ) -> Result<Vec<PutResult>> {
        let mut results = Vec::new();
        for documents in rounds {
            let put = Put {
                actor: caller.pass.actor().clone(),
                collection: options.shelf(),
                now: self.now(),
                documents,
                loose: Vec::new(),
                snapshot: None,
            };
            results.extend(self.catalog.put(put)?.0);
        }
        Ok(results)
    }

    /// Stores the blocks of one round and gives the documents that may now be committed.
    fn store_round(
        &self,
        options: &AddOptions,
        source: &Source,
        round: &[Found],
        call: &CallContext,
        failed: &mut Vec<FailedFile>,
    ) -> Result<Vec<PutDocument>> {
        let batch = self.blocks.batch(Trust::Pack);
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::with_capacity(round.len()));
        let faults = Mutex::new(Vec::new());
        let threads =
            thread::available_parallelism().map_or(1, usize::from).min(round.len().div_ceil(RUN)).max(1);
        let work = || store_runs(options, source, round, call, &batch, &next, &done, &faults);
        thread::scope(|scope| {
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
            others.fold(own, Result::and)
        })?;
        let _sealed = batch.seal()?;
        let mut documents: Vec<(usize, PutDocument)> = done.into_inner();
        documents.sort_by_key(|(at, _)| *at);
        let mut faults: Vec<(usize, FailedFile)> = faults.into_inner();
        faults.sort_by_key(|(at, _)| *at);
        failed.extend(faults.into_iter().map(|(_, fault)| fault));
        Ok(documents.into_iter().map(|(_, document)| document).collect())
    }

    fn finish_folder(
        &self,
        caller: &Caller,
        options: &AddOptions,
        source: &Source,
        root: &str,
        tally: Tally,
    ) -> Result<AddReply> {
        let listing = Listing::new(tally.entries);
        let mut inline = InlineBlocks::default();
        let cut = self.cut_listing(&listing.encode(), &mut inline)?;
        let mut snapshot = draft(&listing, root, options.label.clone(), &cut);
        (snapshot.git_commit, snapshot.git_branch) = git::head(&source.path);
        let hash = snapshot.merkle;
        let put = Put {
            actor: caller.pass.actor().clone(),
            collection: options.shelf(),
            now: self.now(),
            documents: Vec::new(),
            loose: inline.loose,
            snapshot: Some(snapshot),
        };
        let loose_bytes: usize = put.loose.iter().map(|block| block.bytes.len()).sum();
        let (_, snapshot) = self.catalog.put(put)?;
        self.fold_when_due(loose_bytes);
        self.indexing.wrote(tally.added);
        Ok(AddReply {
            hash,
            bytes_stored: tally.stored,
            bytes_deduped: tally.deduplicated,
            document_id: None,
            path: root.to_owned(),
            collection: options.name.clone(),
            snapshot: snapshot.map_or(Moment::default(), |snapshot| snapshot.at),
            files_added: tally.added,
            files_updated: tally.updated,
            files_unchanged: tally.unchanged,
            links: tally.links,
            skipped: tally.skipped,
            failed: tally.failed,
        })
    }
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

fn relative(root: &str, path: &str) -> String {
    path.strip_prefix(root).unwrap_or(path).trim_start_matches('/').to_owned()
}

fn is_same(stored: &Stored, facts: &Facts) -> bool {
    let settled = facts.changed_nanos / 1_000 + GRAIN_MICROS < stored.checked_at.micros();
    settled && stored.stat.is_some() && stored.stat == facts.stat
}

fn walk(
    request: &AddRequest,
    source: &Source,
    root: &str,
    call: &CallContext,
    tally: &mut Tally,
) -> Result<Vec<Found>> {
    let include = Patterns::with_folders("include", &request.include)?;
    let exclude = Patterns::with_folders("exclude", &request.exclude)?;
    let mut builder = WalkBuilder::new(&source.path);
    builder
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .parents(!source.is_confined());
    builder.max_depth(if request.recursive { None } else { Some(1) });
    builder.filter_entry(|entry| {
        entry.depth() == 0 || !matches!(entry.file_name().to_str(), Some(".git" | ".hg" | ".svn"))
    });
    let mut found = Vec::new();
    for (count, entry) in builder.build().enumerate() {
        if count.is_multiple_of(256) {
            call.check()?;
            call.report(0, None, "looking for files");
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = path_of(&error).unwrap_or(&source.path).display().to_string();
                let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                tally.failed.push(FailedFile { path, reason });
                continue;
            }
        };
        let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir()) else { continue };
        let inside =
            entry.path().strip_prefix(&source.path).unwrap_or(entry.path()).to_string_lossy().into_owned();
        if (!request.include.is_empty() && !include.fits(&inside)) || exclude.fits(&inside) {
            continue;
        }
        let named = |reason| FailedFile { path: entry.path().display().to_string(), reason };
        if kind.is_symlink() {
            match look_at_link(entry.path(), root, entry.metadata()) {
                Ok(link) => {
                    tally.entries.push(link);
                    tally.links += 1;
                }
                Err(reason) => tally.failed.push(named(reason)),
            }
            continue;
        }
        if !kind.is_file() {
            tally.skipped.push(named(format!("{}, not a file", special(kind))));
            continue;
        }
        match look(entry.path(), entry.metadata()) {
            Ok(file) => found.push(file),
            Err(reason) => tally.failed.push(named(reason)),
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// What could not be walked.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}

fn look(
    path: &Path,
    metadata: std::result::Result<std::fs::Metadata, ignore::Error>,
) -> Result<Found, String> {
    let text = path.to_str().ok_or("its name is not Unicode")?;
    validate::path("its path", text).map_err(|error| error.to_string())?;
    let facts = Facts::of(&metadata.map_err(|error| error.to_string())?);
    Ok(Found { full: path.to_owned(), path: text.to_owned(), facts })
}

/// A symbolic link as an entry of the snapshot. It is not followed: where it leads is not part of the folder.
fn look_at_link(
    path: &Path,
    root: &str,
    metadata: std::result::Result<std::fs::Metadata, ignore::Error>,
) -> Result<Entry, String> {
    let text = path.to_str().ok_or("its name is not Unicode")?;
    validate::path("its path", text).map_err(|error| error.to_string())?;
    let target = std::fs::read_link(path).map_err(|error| error.to_string())?;
    let target = target.into_os_string().into_string().map_err(|_| "its target is not Unicode")?;
    let facts = Facts::of(&metadata.map_err(|error| error.to_string())?);
    Ok(Entry::link_to(relative(root, text), target, facts.modified_at))
}

/// What a thing in a folder is that can neither be read nor walked.
fn special(kind: std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else {
        "something unknown"
    }
}

/// One thread's work: runs of neighbouring files until none is left.
#[expect(clippy::too_many_arguments, reason = "the state that the threads of one round share")]
fn store_runs(
    options: &AddOptions,
    source: &Source,
    round: &[Found],
    call: &CallContext,
    batch: &Batch<'_>,
    next: &AtomicUsize,
    done: &Mutex<Vec<(usize, PutDocument)>>,
    faults: &Mutex<Vec<(usize, FailedFile)>>,
) -> Result<()> {
    let mut writer = batch.writer()?;
    let mut buffer = Vec::new();
    loop {
        let start = next.fetch_add(RUN, Ordering::Relaxed);
        if start >= round.len() {
            return Ok(writer.finish()?);
        }
        let mut stored = Vec::with_capacity(RUN);
        for (at, found) in round.iter().enumerate().skip(start).take(RUN) {
            call.check()?;
            match store_file(options, source, found, &mut writer, &mut buffer, call) {
                Ok(document) => stored.push((at, document)),
                Err(Error::File { source: reason, .. }) => {
                    let fault = FailedFile { path: found.path.clone(), reason: reason.to_string() };
                    faults.lock().push((at, fault));
                }
                Err(error) => return Err(error),
            }
        }
        done.lock().append(&mut stored);
    }
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

fn store_file(
    options: &AddOptions,
    source: &Source,
    found: &Found,
    writer: &mut PackWriter<'_, '_>,
    buffer: &mut Vec<u8>,
    call: &CallContext,
) -> Result<PutDocument> {
    use std::io::Read as _;
    let failed = |error| Error::reading(found.path.clone(), error);
    let (mut file, facts) = source.open_file(&found.full).map_err(failed)?;
    // Large files are cut as they stream; the beginning is kept for telling the type.
    let whole = facts.size <= 4 * 1_024 * 1_024;
    let wanted = if whole { facts.size as usize + 1 } else { shelf_reading::SAMPLE };
    read_up_to(&mut file, wanted, buffer).map_err(failed)?;
    if whole && buffer.len() == wanted {
        // It has grown since it was opened, or the system makes it up as it is read.
        let rest = most_of(&facts).saturating_sub(buffer.len() as u64);
        (&mut file).take(rest).read_to_end(buffer).map_err(failed)?;
    }
    let cut = if whole {
        cut::slice(buffer, |block, bytes| writer.put(block, bytes))?
    } else {
        let rest = most_of(&facts).saturating_sub(buffer.len() as u64);
        let stream = std::io::Cursor::new(buffer.clone()).chain(file.take(rest));
        let cut = cut::stream::<Error>(stream, |block, bytes| {
            call.check()?;
            Ok(writer.put(block, bytes)?)
        });
        match cut {
            Err(Error::Blocks(shelf_blocks::Error::Source(error))) => return Err(failed(error)),
            other => other?,
        }
    };
    writer.end_document()?;
    Ok(document(options, found.path.clone(), &cut, buffer, &facts))
}
