//! Adding a folder: which of its entries are files to store, links to keep, or neither.

use std::path::Path;

use ignore::WalkBuilder;
use shelf_base::{CallContext, Moment};

use super::{AddOptions, AddReply, AddRequest, FailedFile, git, relative, source::Facts, source::Source};
use crate::{
    Caller, Entry, Error, Library, Result,
    commit::{FolderDraft, FolderReceipt, Found},
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
        let root = super::single::text_path(&source.path)?;
        let Walk { files, links, skipped, mut failed } = walk(request, source, &root, call)?;
        let link_count = links.len() as u64;
        let draft = FolderDraft {
            actor: caller.pass.actor(),
            options,
            source,
            root: &root,
            files,
            links,
            git: git::head(&source.path),
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
            links: link_count,
            skipped,
            failed,
        })
    }
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
