//! Reading a file of the workspace.

use std::{
    io::{Read, Seek, SeekFrom},
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustix::fs::{Mode, OFlags, openat};
use shelf_base::nearest;

use crate::{Workspace, WorkspaceError, rules::is_denied};

/// Bytes of content in one reply.
const CONTENT_BYTES: u64 = 1 << 20;

/// Which lines are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct RepoWindow {
    /// First line, from 1.
    pub start_line: Option<u64>,
    /// Last line.
    pub end_line: Option<u64>,
    /// Only the last so many lines.
    pub tail: Option<u64>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoFile {
    /// Its content, or the wanted part of it.
    pub content: String,
    /// `base64` when the bytes are not text.
    pub encoding: Option<&'static str>,
    /// Its path, as it really is.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// Whether the content was cut at the bound of a reply.
    pub truncated: bool,
}

impl Workspace {
    /// Reads a file.
    pub fn read(&self, path: &str, window: RepoWindow) -> Result<RepoFile, WorkspaceError> {
        let refused =
            || WorkspaceError::PathNotAllowed { path: path.to_owned(), also: self.rules.also.clone() };
        let plain = plain(path).ok_or_else(refused)?;
        if !self.rules.allow(&plain) {
            return Err(refused());
        }
        let real = match self.folder.canonicalize(&plain) {
            Ok(real) => real,
            Err(error) if is_absence(&error) => {
                return Err(if self.is_openly_missing(&plain) { self.missing(&plain) } else { refused() });
            }
            // A link that leads out answers as any path that is not allowed does.
            Err(_) => return Err(refused()),
        };
        let real = real.to_str().ok_or_else(refused)?.to_owned();
        if !self.rules.allow(&real) {
            return Err(refused());
        }
        let file = match self.open_without_links(Path::new(&real)) {
            Ok(file) => std::fs::File::from(file),
            Err(rustix::io::Errno::NOENT) => return Err(self.missing(&plain)),
            Err(_) => return Err(refused()),
        };
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(WorkspaceError::Invalid(format!("'{path}' is not a file")));
        }
        cut(file, facts.len(), real, window)
    }

    /// Whether a path that leads nowhere would have led to a place that may be read. A link into a closed folder must
    /// not tell by its answer what is in there.
    fn is_openly_missing(&self, path: &str) -> bool {
        let mut at = Path::new(path);
        while let Some(parent) = at.parent() {
            if self.folder.symlink_metadata(at).is_ok() {
                // A link to nothing.
                return false;
            }
            let real = match parent.as_os_str().is_empty() {
                true => Ok(parent.to_owned()),
                false => self.folder.canonicalize(parent),
            };
            if let (Ok(real), Ok(rest)) = (real, Path::new(path).strip_prefix(parent)) {
                return real.join(rest).to_str().is_some_and(|real| self.rules.allow(real));
            }
            at = parent;
        }
        false
    }

    /// Opens step by step; a link anywhere on the way is refused.
    pub(super) fn open_without_links(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let parts: Vec<&std::ffi::OsStr> = path.iter().collect();
        let Some((name, folders)) = parts.split_last() else { return Err(rustix::io::Errno::NOENT) };
        let step = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder: Option<OwnedFd> = None;
        for part in folders {
            let from = folder.as_ref().map_or_else(|| self.folder.as_fd(), AsFd::as_fd);
            folder = Some(openat(from, *part, step | OFlags::DIRECTORY, Mode::empty())?);
        }
        let from = folder.as_ref().map_or_else(|| self.folder.as_fd(), AsFd::as_fd);
        // A pipe must not hold the call up.
        openat(from, *name, step | OFlags::NONBLOCK, Mode::empty())
    }

    /// What is not there, with names beside it that are near and may be read.
    fn missing(&self, path: &str) -> WorkspaceError {
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        let names = |folder: &str| -> Vec<String> {
            // Behind a link lies something else: even a hint would tell what is there.
            if self.open_without_links(Path::new(folder)).is_err() {
                return Vec::new();
            }
            let entries = self.folder.read_dir(folder).into_iter().flatten().flatten();
            entries
                .filter_map(|entry| entry.file_name().into_string().ok())
                .filter(|name| !is_denied(name))
                .collect()
        };
        let beside = names(folder);
        let mut near: Vec<String> = nearest(name, beside.iter().map(String::as_str), 3)
            .into_iter()
            .map(|name| format!("{folder}/{name}"))
            .collect();
        if near.is_empty() {
            near.extend(nearest_path(path, &names));
        }
        near.retain(|near| self.rules.allow(near) && near != path);
        WorkspaceError::NotFound { path: path.to_owned(), near }
    }
}

/// The path that is there and is nearest part by part: with other capitals, or with a name in it spelt right.
fn nearest_path(path: &str, names: &dyn Fn(&str) -> Vec<String>) -> Option<String> {
    let mut real = String::new();
    for part in path.split('/') {
        let beside = names(if real.is_empty() { "." } else { &real });
        let same = |name: &&String| **name == part;
        let other_case = |name: &&String| name.to_lowercase() == part.to_lowercase();
        let found = beside.iter().find(same).or_else(|| beside.iter().find(other_case)).cloned();
        let found = found.or_else(|| nearest(part, beside.iter().map(String::as_str), 1).pop())?;
        real = if real.is_empty() { found } else { format!("{real}/{found}") };
    }
    Some(real)
}

fn is_absence(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    // A name that is too long for any file is nobody's name.
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

/// A relative path of plain names; nothing else is even looked at.
fn plain(path: &str) -> Option<String> {
    if path.is_empty() || path.len() > 1_024 || path.contains(['\0', '\\']) {
        return None;
    }
    // Dots, separators and zeros in disguise are nobody's file names.
    let lower = path.to_lowercase();
    if ["%2e", "%2f", "%5c", "%00"].iter().any(|escape| lower.contains(escape)) {
        return None;
    }
    let mut parts = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn cut(
    mut file: std::fs::File,
    size: u64,
    path: String,
    window: RepoWindow,
) -> Result<RepoFile, WorkspaceError> {
    for (name, line) in [("start_line", window.start_line), ("end_line", window.end_line)] {
        if line == Some(0) {
            return Err(WorkspaceError::Invalid(format!(
                "{name} must be at least 1: lines are counted from 1"
            )));
        }
    }
    if window.tail.is_some() && (window.start_line.is_some() || window.end_line.is_some()) {
        return Err(WorkspaceError::Invalid(
            "tail cannot be combined with start_line or end_line: ask for the last lines, or for a range"
                .into(),
        ));
    }
    if let (Some(start), Some(end)) = (window.start_line, window.end_line)
        && end < start
    {
        return Err(WorkspaceError::Invalid(format!("end_line {end} is before start_line {start}")));
    }
    let wants_lines = window.start_line.is_some() || window.end_line.is_some() || window.tail.is_some();
    let most = if wants_lines { size.min(64 * CONTENT_BYTES) } else { CONTENT_BYTES };
    let mut bytes = Vec::new();
    // The last lines of a very large file are at its end, so that is what is read of it.
    let from_end = window.tail.is_some() && size > most;
    if from_end {
        file.seek(SeekFrom::End(-(most as i64)))?;
    }
    file.take(most).read_to_end(&mut bytes)?;
    if from_end {
        let first_whole = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.drain(..first_whole);
    }
    let mut truncated = !from_end && (bytes.len() as u64) < size;
    let (content, encoding) = match text_of(&bytes, truncated) {
        None => {
            truncated = size > CONTENT_BYTES;
            (STANDARD.encode(&bytes[..bytes.len().min(CONTENT_BYTES as usize)]), Some("base64"))
        }
        Some(text) if wants_lines => (lines(text, window), None),
        Some(text) => (text.to_owned(), None),
    };
    let mut content = content;
    if encoding.is_none() && content.len() as u64 > CONTENT_BYTES {
        let end = content.floor_char_boundary(CONTENT_BYTES as usize);
        content.truncate(end);
        truncated = true;
    }
    Ok(RepoFile { content, encoding, path, size_bytes: size, truncated })
}

/// The bytes as text; a character cut by the bound is left out.
fn text_of(bytes: &[u8], cut: bool) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

fn lines(text: &str, window: RepoWindow) -> String {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let first = window.start_line.unwrap_or(1).max(1) as usize - 1;
    let last = window.end_line.map_or(all.len(), |last| (last as usize).min(all.len()));
    let chosen = all.get(first.min(all.len())..last.max(first.min(all.len()))).unwrap_or_default();
    let skip = window.tail.map_or(0, |tail| chosen.len().saturating_sub(tail as usize));
    chosen[skip..].concat()
}
