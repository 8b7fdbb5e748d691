//! A folder of a collection, or a snapshot, as a ZIP file.

use std::collections::HashSet;

use shelf_base::{CallContext, DigestWriter};
use shelf_catalog::Filter;

use crate::{
    Archive, Caller, Error, Library, Result,
    books::{PackedFile, Packing},
};

/// Bytes of the files of an archive at most.
const MOST_BYTES: u64 = 4 << 30;
/// Files of an archive at most.
const MOST_FILES: usize = 200_000;

/// What becomes an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveOf<'a> {
    /// A folder of a collection as it is now; the whole collection when the folder is empty.
    Folder {
        /// The collection.
        collection: &'a str,
        /// The folder.
        folder: &'a str,
    },
    /// A snapshot as it was.
    Snapshot(&'a str),
}

impl Library {
    /// The ZIP file of a folder or snapshot, made when there is none of exactly this state.
    pub fn archive(&self, caller: &Caller, of: ArchiveOf<'_>, call: &CallContext) -> Result<Archive> {
        caller.must_read()?;
        let (name, found) = match of {
            ArchiveOf::Folder { collection, folder } => self.folder_files(caller, collection, folder)?,
            ArchiveOf::Snapshot(id) => {
                let snapshot = self.one_snapshot(caller, None, Some(id), None)?;
                let listing = self.listing(&snapshot, call)?;
                let files = listing.files().map(|entry| PackedFile {
                    path: entry.path.clone(),
                    hash: entry.hash,
                    size: entry.size,
                    at: entry.modified_at,
                });
                let name = snapshot.draft.label.as_deref().unwrap_or("snapshot");
                (format!("{}-{name}", snapshot.collection_name), files.collect())
            }
        };
        let files = safe(found);
        if files.is_empty() {
            return Err(Error::invalid("the archive", "would be empty: there are no files in it"));
        }
        let bytes: u64 = files.iter().map(|file| file.size).sum();
        if bytes > MOST_BYTES || files.len() > MOST_FILES {
            let limit = format!("{} GiB or {MOST_FILES} files; use `shelf restore`", MOST_BYTES >> 30);
            return Err(Error::TooLarge { what: "the archive".into(), limit });
        }
        let mut state = DigestWriter::new();
        state.update(b"shelf-archive-1\0");
        for file in &files {
            state.update(file.path.as_bytes());
            state.update(b"\0");
            state.update(file.hash.as_bytes());
            state.update(&file.at.micros().to_le_bytes());
        }
        self.packed(
            &Packing { stem: stem(&name), state: state.finish(), files, made: None, book: None },
            call,
        )
    }

    fn folder_files(
        &self,
        caller: &Caller,
        collection: &str,
        folder: &str,
    ) -> Result<(String, Vec<PackedFile>)> {
        self.known_collection(caller, collection)?;
        let start = match folder.trim_end_matches('/') {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let filter = Filter { collection: Some(collection.to_owned()), ..Filter::default() };
        let chosen = self.catalog.choose(caller.pass.scope(), &filter)?;
        let files = chosen.into_iter().filter_map(|file| {
            let path = file.path.strip_prefix(start.as_str())?.to_owned();
            let version = file.version;
            Some(PackedFile { path, hash: version.hash, size: version.size, at: version.modified_at })
        });
        let last = start.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let name = if last.is_empty() { collection.to_owned() } else { format!("{collection}-{last}") };
        Ok((name, files.collect()))
    }
}

/// The same files with paths that lead nowhere else when they are unpacked, each once.
fn safe(files: Vec<PackedFile>) -> Vec<PackedFile> {
    let mut taken = HashSet::new();
    let mut kept = Vec::with_capacity(files.len());
    for mut file in files {
        let parts: Vec<String> = file
            .path
            .split(['/', '\\'])
            .filter(|part| !matches!(*part, "" | "." | ".."))
            .map(|part| part.chars().map(|sign| if sign.is_control() { '_' } else { sign }).collect())
            .collect();
        let path = parts.join("/");
        if path.is_empty() {
            continue;
        }
        file.path = path.clone();
        let mut number = 2;
        while !taken.insert(file.path.clone()) {
            file.path = format!("{path} ({number})");
            number += 1;
        }
        kept.push(file);
    }
    kept
}

/// How the name of an archive begins: what every file system takes, and not too much of it.
fn stem(name: &str) -> String {
    let plain = |sign: char| if sign.is_ascii_alphanumeric() || "._-".contains(sign) { sign } else { '_' };
    let text: String = name.chars().map(plain).take(80).collect();
    let text = text.trim_matches(['.', '_', '-']);
    if text.is_empty() { "archive".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use shelf_base::{Digest, Moment};

    use super::*;

    #[test]
    fn paths_in_archives_stay_below_where_they_are_unpacked() {
        let file = |path: &str| PackedFile {
            path: path.into(),
            hash: Digest::of(b""),
            size: 0,
            at: Moment::from_micros(0),
        };
        let paths = ["/etc/passwd", "../../a", "a", "b\\..\\c", "..", "x\ny"];
        let kept: Vec<String> = safe(paths.map(file).into()).into_iter().map(|file| file.path).collect();
        assert_eq!(kept, ["etc/passwd", "a", "a (2)", "b/c", "x_y"]);
        assert_eq!(stem("my notes/ä"), "my_notes");
        assert_eq!(stem("…"), "archive");
    }
}
