//! Adding a folder: which of its entries are files to store, links to keep, or neither.

use std::{collections::HashSet, path::Path};

use ignore::WalkBuilder;
use shelf_base::{CallContext, Moment, ids::DocumentId};
use shelf_catalog::{Chosen, Filter};

use super::{AddOptions, AddReply, AddRequest, FailedFile, git, relative, source::Facts, source::Source};
use crate::{
    Caller, Entry, Error, Library, Result,
    commit::{DeleteDraft, FolderDraft, FolderReceipt, Found},
    file_names::{path_text, text_path},
    pattern::Patterns,
    validate,
};

/// What a walk found.
#[derive(Default)]
struct Walk {
    files: Vec<Found>,
    links: Vec<Entry>,
    skipped: Vec<FailedFile>,
    failed: Vec<FailedFile>,
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
        let root = super::single::stored_path(&source.path)?;
        let walked = walk(request, source, &root, call)?;
        let removed = if request.prune { self.prune(caller, options, &root, &walked, call)? } else { 0 };
        let Walk { files, links, skipped, mut failed } = walked;
        let link_count = links.len() as u64;
        let draft = FolderDraft {
            actor: caller.pass.actor(),
            options,
            source,
            root: &root,
            files,
            links,
            git: git::head(&source.path, !source.is_confined()),
            only_changes: request.only_changes && removed == 0,
        };
        let FolderReceipt { merkle, snapshot, tally } = self.commit(draft, call)?;
        failed.extend(tally.failed);
        Ok(AddReply {
            hash: merkle,
            bytes_stored: tally.stored,
            bytes_deduped: tally.deduplicated,
            document_id: None,
            path: root,
            collection: options.name.clone(),
            snapshot: snapshot.map_or(Moment::default(), |snapshot| snapshot.at),
            files_added: tally.added,
            files_updated: tally.updated,
            files_unchanged: tally.unchanged,
            files_removed: removed,
            links: link_count,
            skipped,
            failed,
        })
    }
}

impl Library {
    /// Deletes the documents below the folder whose files are gone. What could not be read is not gone, and a folder in
    /// which there is nothing at all is more likely a disk that is missing.
    fn prune(
        &self,
        caller: &Caller,
        options: &AddOptions,
        root: &str,
        walked: &Walk,
        call: &CallContext,
    ) -> Result<u64> {
        let Some(collection) = &options.collection else { return Ok(0) };
        let filter = Filter { collection: Some(collection.name.clone()), ..Filter::default() };
        let folder = format!("{}/", root.trim_end_matches('/'));
        let below = self.catalog.choose(caller.pass.scope(), &filter)?.into_iter();
        let below: Vec<Chosen> = below.filter(|document| document.path.starts_with(&folder)).collect();
        if !below.is_empty() && walked.files.is_empty() && walked.links.is_empty() {
            return Err(Error::Unavailable {
                what: format!(
                    "'{root}' is empty, but {} documents came from it; nothing was deleted",
                    below.len()
                ),
                hint: "if the files are really gone, delete their documents by name or pattern".into(),
            });
        }
        let stored: HashSet<&str> = walked.files.iter().map(|file| file.path.as_str()).collect();
        let is_unreadable = |path: &str| {
            walked.failed.iter().any(|failed| {
                path.strip_prefix(failed.path.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let is_gone = |document: &Chosen| {
            let path = document.path.as_str();
            !stored.contains(path) && !is_unreadable(path) && is_absent(&text_path(path))
        };
        let ids: Vec<DocumentId> =
            below.iter().filter(|document| is_gone(document)).map(|gone| gone.id).collect();
        if ids.is_empty() {
            return Ok(0);
        }
        let (actor, scope) = (caller.pass.actor(), caller.pass.scope());
        Ok(self.commit(DeleteDraft { actor, scope, ids: &ids }, call)?.len() as u64)
    }
}

fn is_absent(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    std::fs::symlink_metadata(path).is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory))
}

fn walk(request: &AddRequest, source: &Source, root: &str, call: &CallContext) -> Result<Walk> {
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
    let mut walk = Walk::default();
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
                walk.failed.push(FailedFile { path, reason });
                continue;
            }
        };
        // The folder itself may be reached through a link, which is no part of it.
        let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir() && entry.depth() > 0) else {
            continue;
        };
        let inside = path_text(entry.path().strip_prefix(&source.path).unwrap_or(entry.path()));
        if (!request.include.is_empty() && !include.fits(&inside)) || exclude.fits(&inside) {
            continue;
        }
        let named = |reason| FailedFile { path: entry.path().display().to_string(), reason };
        if kind.is_symlink() {
            match look_at_link(entry.path(), root, entry.metadata()) {
                Ok(link) => {
                    walk.links.push(link);
                }
                Err(reason) => walk.failed.push(named(reason)),
            }
            continue;
        }
        if !kind.is_file() {
            walk.skipped.push(named(format!("{}, not a file", special(kind))));
            continue;
        }
        match look(entry.path(), entry.metadata()) {
            Ok(file) => walk.files.push(file),
            Err(reason) => walk.failed.push(named(reason)),
        }
    }
    walk.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(walk)
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
    let text = path_text(path);
    validate::path("its path", &text).map_err(|error| error.to_string())?;
    let facts = Facts::of(&metadata.map_err(|error| error.to_string())?);
    Ok(Found { full: path.to_owned(), path: text, facts, earlier: None })
}

/// A symbolic link as an entry of the snapshot. It is not followed: where it leads is not part of the folder.
fn look_at_link(
    path: &Path,
    root: &str,
    metadata: std::result::Result<std::fs::Metadata, ignore::Error>,
) -> Result<Entry, String> {
    let text = path_text(path);
    validate::path("its path", &text).map_err(|error| error.to_string())?;
    let target = path_text(&std::fs::read_link(path).map_err(|error| error.to_string())?);
    let facts = Facts::of(&metadata.map_err(|error| error.to_string())?);
    Ok(Entry::link_to(relative(root, &text), target, facts.modified_at))
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
