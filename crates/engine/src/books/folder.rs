//! Books from and to folders: importing a tree of Markdown, and writing a book back as it came.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use cap_std::{ambient_authority, fs::Dir};
use ignore::{DirEntry, WalkBuilder};
use parking_lot::Mutex;
use serde_json::Value;
use shelf_base::{
    CallContext, Digest,
    book_names::{PATH_BYTES, asset_name, is_asset_char, is_book_path, is_plain},
};
use shelf_catalog::{Document, Filter, Metadata, PutState, Version};

use super::{Answer, BookError, check_book_id, failed, registry, stored_name, unpack::unpack};
use crate::{
    Caller, Error, Library, Result,
    commit::{BookFolderDraft, BookSource},
    ingest::Facts,
};

/// Files of a tree at most.
const FILES: usize = 1_000_000;
/// Files that one transaction writes.
const AT_ONCE: usize = 256;
/// Where a file stood in the tree that was imported.
pub(super) const ORIGINAL: &str = "original_path";
/// Characters of a part of a path that is made from a name outside the rule.
const PART: usize = 80;
/// Hexadecimal digits of the hash that tells files apart whose paths would be the same.
const MARK: usize = 16;

/// What became of the files of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderTally {
    /// New files.
    pub added: u64,
    /// Files with a new version.
    pub updated: u64,
    /// Files that were as they are.
    pub unchanged: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// What was left out, and why.
    pub skipped: Vec<(String, String)>,
}

impl Library {
    /// Makes a book of a folder, or of the folder in a ZIP file.
    pub fn import_book(
        &self,
        caller: &Caller,
        book: &str,
        source: &Path,
        call: &CallContext,
    ) -> Answer<FolderTally> {
        check_book_id(book)?;
        caller.must_write().map_err(|error| failed(book, "", error))?;
        if !source.is_file() {
            return self.import_folder(caller, book, source, call);
        }
        let unpacked = unpack(source, &self.folder().join("uploads"), call)?;
        self.import_folder(caller, book, unpacked.folder(), call)
    }

    /// Makes a book of a folder: Markdown becomes lessons, media become assets, everything else is kept as it is. Where a
    /// file stood is remembered, so that exporting the book gives the same tree.
    fn import_folder(
        &self,
        caller: &Caller,
        book: &str,
        folder: &Path,
        call: &CallContext,
    ) -> Answer<FolderTally> {
        let mut tally = FolderTally::default();
        let run = |tally: &mut FolderTally| -> Result<()> {
            let found = walk(folder, tally, call)?;
            let files = placed(found, self.places_of(caller, book, call)?);
            let total = files.len() as u64;
            for (done, share) in files.chunks(AT_ONCE).enumerate() {
                call.check()?;
                call.report((done * AT_ONCE) as u64, Some(total), "importing");
                let (actor, mut skipped) = (caller.pass.actor(), Vec::new());
                let draft = BookFolderDraft { actor, book, files: share, skipped: &mut skipped };
                for (state, size) in self.commit(draft, call)? {
                    match state {
                        PutState::Added => tally.added += 1,
                        PutState::Updated => tally.updated += 1,
                        PutState::Unchanged => tally.unchanged += 1,
                    }
                    tally.bytes += size;
                }
                tally.skipped.extend(skipped);
            }
            Ok(())
        };
        run(&mut tally).map_err(|error| failed(book, "", error))?;
        self.book_changed(caller.pass.actor(), book, (true, true));
        Ok(tally)
    }

    /// The places that files of a book have already.
    fn places_of(&self, caller: &Caller, book: &str, call: &CallContext) -> Result<Places> {
        let mut places = Places::default();
        let scope = caller.pass.scope();
        if self.catalog.collection(scope, book)?.is_none() {
            return Ok(places);
        }
        let filter = Filter { collection: Some(book.to_owned()), ..Filter::default() };
        for share in self.catalog.numbers(scope, &filter)?.chunks(AT_ONCE) {
            call.check()?;
            for document in self.catalog.numbered(scope, share)? {
                let original = document.metadata.get(ORIGINAL).and_then(Value::as_str);
                let origin = original.unwrap_or(&document.path).to_owned();
                places.keep(origin, document.path);
            }
        }
        Ok(places)
    }

    /// Writes a book to a folder, every file where it stood when it was imported. Files that are there are replaced;
    /// others stay.
    pub fn export_book(
        &self,
        caller: &Caller,
        book: &str,
        folder: &Path,
        call: &CallContext,
    ) -> Answer<FolderTally> {
        let path = format!("books/{book}");
        if self.own_book(caller, book)?.is_none() {
            return Err(BookError::NotFound { path });
        }
        let run = || -> Result<FolderTally> {
            let shown = folder.display().to_string();
            let denied = |error| Error::writing(&shown, error);
            std::fs::create_dir_all(folder).map_err(denied)?;
            let target = Dir::open_ambient_dir(folder, ambient_authority()).map_err(denied)?;
            let mut tally = FolderTally::default();
            self.each_place(caller, book, call, |document, place| {
                if let Some(parent) = place.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                    target.create_dir_all(parent).map_err(denied)?;
                }
                self.write_atomic(&target, place, &document.version, call, &document.path)?;
                tally.added += 1;
                tally.bytes += document.version.size;
                Ok(())
            })?;
            Ok(tally)
        };
        run().map_err(|error| BookError::Engine { path, error })
    }

    /// The files of a folder that an export of a book would replace with other content.
    pub fn files_before_export(
        &self,
        caller: &Caller,
        book: &str,
        folder: &Path,
        call: &CallContext,
    ) -> Answer<Vec<PathBuf>> {
        let path = format!("books/{book}");
        if self.own_book(caller, book)?.is_none() {
            return Err(BookError::NotFound { path });
        }
        // A folder that is not there, or that cannot be read, has no files that anybody could lose.
        let Ok(target) = Dir::open_ambient_dir(folder, ambient_authority()) else { return Ok(Vec::new()) };
        let mut others = Vec::new();
        let looked = self.each_place(caller, book, call, |document, place| {
            if holds_other(&target, place, &document.version) {
                others.push(place.to_owned());
            }
            Ok(())
        });
        looked.map(|()| others).map_err(|error| BookError::Engine { path, error })
    }

    /// Goes through the documents of a book with the places where their files stood.
    fn each_place(
        &self,
        caller: &Caller,
        book: &str,
        call: &CallContext,
        mut take: impl FnMut(&Document, &Path) -> Result<()>,
    ) -> Result<()> {
        let filter = Filter { collection: Some(book.to_owned()), ..Filter::default() };
        let numbers = self.catalog.numbers(caller.pass.scope(), &filter)?;
        for (done, share) in numbers.chunks(AT_ONCE).enumerate() {
            call.check()?;
            call.report((done * AT_ONCE) as u64, Some(numbers.len() as u64), "exporting");
            for document in self.catalog.numbered(caller.pass.scope(), share)? {
                let original = document.metadata.get(ORIGINAL).and_then(Value::as_str);
                let place = original.filter(|place| is_inside(place)).unwrap_or(&document.path);
                take(&document, Path::new(place))?;
            }
        }
        Ok(())
    }
}

/// Whether a file is there that does not hold this version.
fn holds_other(folder: &Dir, place: &Path, version: &Version) -> bool {
    let Ok(facts) = folder.metadata(place) else { return false };
    let is_same = || folder.read(place).is_ok_and(|bytes| Digest::of(&bytes) == version.hash);
    facts.len() != version.size || !is_same()
}

/// Whether a path stays below the folder that it is relative to. It comes from metadata, which anybody who may write can
/// set.
pub(super) fn is_inside(place: &str) -> bool {
    !place.is_empty() && Path::new(place).components().all(|part| matches!(part, Component::Normal(_)))
}

/// A file of a tree, and its path there.
struct Found {
    file: PathBuf,
    name: String,
}

/// The files of a tree. Links are not followed, and what Git keeps is left out.
fn walk(folder: &Path, tally: &mut FolderTally, call: &CallContext) -> Result<Vec<Found>> {
    let shown = folder.display().to_string();
    let mut files = Vec::new();
    let left_out = Arc::new(Mutex::new(Vec::new()));
    let noted = left_out.clone();
    let is_wanted = move |entry: &DirEntry| {
        let is_git = entry.file_name() == ".git";
        if is_git {
            noted.lock().push(entry.path().to_owned());
        }
        !is_git
    };
    let tree = WalkBuilder::new(folder)
        .standard_filters(false)
        .sort_by_file_path(Path::cmp)
        .filter_entry(is_wanted)
        .build();
    for entry in tree {
        call.check()?;
        let entry = entry.map_err(|error| Error::reading(&shown, std::io::Error::other(error)))?;
        let relative = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        let kind = entry.file_type();
        if kind.is_some_and(|kind| kind.is_dir()) || relative.as_os_str().is_empty() {
            continue;
        }
        let Some(name) = relative.to_str() else {
            tally.skipped.push((relative.display().to_string(), "its name is not valid UTF-8".into()));
            continue;
        };
        if !kind.is_some_and(|kind| kind.is_file()) {
            tally.skipped.push((name.to_owned(), "it is a link or a special file".into()));
            continue;
        }
        if files.len() == FILES {
            return Err(Error::TooLarge { what: shown, limit: format!("{FILES} files") });
        }
        files.push(Found { name: name.to_owned(), file: entry.into_path() });
    }
    for place in left_out.lock().iter() {
        let shown = place.strip_prefix(folder).unwrap_or(place).display().to_string();
        tally.skipped.push((shown, "it belongs to Git and is no part of the book".into()));
    }
    Ok(files)
}

/// Who has which path of a book. Two files never get the same one, nor a path that leads through another's.
#[derive(Default)]
struct Places {
    /// The path of the file that stood at a place of the tree.
    of: HashMap<String, String>,
    files: HashSet<String>,
    folders: HashSet<String>,
}

impl Places {
    fn keep(&mut self, origin: String, path: String) {
        self.folders.extend(folders_of(&path).map(str::to_owned));
        self.files.insert(path.clone());
        self.of.insert(origin, path);
    }

    fn is_free(&self, path: &str) -> bool {
        !self.files.contains(path)
            && !self.folders.contains(path)
            && folders_of(path).all(|folder| !self.files.contains(folder))
    }

    /// The path for the file that stands at a place of the tree: the one it has, or else one that is free.
    fn take(&mut self, origin: &str) -> String {
        if let Some(path) = self.of.get(origin) {
            return path.clone();
        }
        let wanted = path_in_book(origin);
        let others = (0_u32..).map(|number| told_apart(&wanted, origin, number));
        let mut choices = std::iter::once(wanted.clone()).chain(others);
        let path = choices.find(|path| self.is_free(path)).unwrap_or(wanted);
        self.keep(origin.to_owned(), path.clone());
        path
    }
}

fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// The files with the paths that they get. Those that stand where a book has them come first: they keep their path, and
/// another file that would get the same one gets one of its own.
fn placed(found: Vec<Found>, mut places: Places) -> Vec<BookSource> {
    let (mut own, others): (Vec<Found>, Vec<Found>) =
        found.into_iter().partition(|found| path_in_book(&found.name) == found.name);
    own.extend(others);
    let source = |Found { file, name }| {
        let path = places.take(&name);
        let mut metadata = Metadata::new();
        if path != name {
            metadata.insert(ORIGINAL.into(), Value::String(name));
        }
        BookSource { file, path, metadata }
    };
    own.into_iter().map(source).collect()
}

/// A path for a file whose path is taken: the same with a hash of where the file stood.
fn told_apart(path: &str, origin: &str, number: u32) -> String {
    let mark = &Digest::of(format!("{origin}\0{number}").as_bytes()).to_string()[..MARK];
    let (folder, last) = path.rsplit_once('/').map_or(("", path), |(folder, last)| (folder, last));
    let (stem, extension) = match last.rfind('.') {
        Some(dot) if dot > 0 && last.len() - dot <= 17 => last.split_at(dot),
        _ => (last, ""),
    };
    let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let room = PATH_BYTES.saturating_sub(start.len() + MARK + 1 + extension.len());
    let told = format!("{start}{}-{mark}{extension}", &stem[..stem.floor_char_boundary(room)]);
    if is_book_path(&told) { told } else { format!("files/{mark}") }
}

/// Where a file of a tree goes in the book. What already stands where a book has it stays there.
fn path_in_book(name: &str) -> String {
    let is_placed = ["lessons/", "chapters/", "files/"].iter().any(|start| name.starts_with(start))
        || asset_name(name).is_some()
        || name == registry::BOOK_FILE;
    if is_placed && is_book_path(name) {
        return name.to_owned();
    }
    let extension = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let (start, allows): (&str, fn(char) -> bool) = match extension.as_str() {
        "md" | "mdx" | "markdown" => ("lessons", is_plain),
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "svg" | "avif" | "ico" | "bmp" | "tiff" => {
            ("assets/images", is_asset_char)
        }
        "pdf" | "pptx" | "ppt" | "odp" | "key" => ("assets/slides", is_asset_char),
        "mp4" | "webm" | "mov" | "mkv" | "m4v" | "avi" => ("assets/videos", is_asset_char),
        "mp3" | "wav" | "ogg" | "flac" | "m4a" | "opus" => ("assets/audio", is_asset_char),
        _ => ("files", is_plain),
    };
    let parts: Vec<String> = name.split('/').map(|part| stored_name(part, allows)).collect();
    let whole = format!("{start}/{}", parts.join("/"));
    if is_book_path(&whole) {
        return whole;
    }
    // Too long in all: the last part tells files apart by a hash over the whole name.
    let last = parts.last().map(String::as_str).unwrap_or_default();
    let kept = &last[last.ceil_char_boundary(last.len().saturating_sub(PART))..];
    let mark = Digest::of(name.as_bytes()).to_string();
    let short = format!("{start}/{}-{kept}", &mark[..32]);
    debug_assert!(short.len() <= PATH_BYTES, "a shortened path fits");
    short
}

impl BookSource {
    /// Opens the file, as long as it is still one and not a link.
    pub(crate) fn open(&self) -> std::io::Result<(File, Facts)> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = std::fs::OpenOptions::new();
        let file = options
            .read(true)
            .custom_flags(i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0))
            .open(&self.file)?;
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        Ok((file, Facts::of(&facts)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_go_where_a_book_has_them() {
        for (name, path) in [
            ("book.yaml", "book.yaml"),
            ("lessons/a.md", "lessons/a.md"),
            ("docs/intro.md", "lessons/docs/intro.md"),
            ("README.md", "lessons/README.md"),
            ("static/img/logo.png", "assets/images/static/img/logo.png"),
            ("assets/images/größe.png", "assets/images/größe.png"),
            ("mkdocs.yml", "files/mkdocs.yml"),
            ("chapters/chapter-01/.summary.md", "chapters/chapter-01/.summary.md"),
        ] {
            assert_eq!(path_in_book(name), path);
        }
        assert!(path_in_book("docs/my page.md").starts_with("lessons/docs/my_page-"));
    }

    #[test]
    fn places_outside_the_folder_are_not_places() {
        for place in ["", "/etc/passwd", "../x", "a/../../x", "./a"] {
            assert!(!is_inside(place), "{place}");
        }
        assert!(is_inside("docs/my page.md"));
    }

    fn paths_of(names: &[&str], places: Places) -> Vec<(String, String)> {
        let found = names.iter().map(|name| Found { file: PathBuf::new(), name: (*name).to_owned() });
        let sources = placed(found.collect(), places);
        let origin = |source: &BookSource| {
            let original = source.metadata.get(ORIGINAL).and_then(Value::as_str);
            original.unwrap_or(&source.path).to_owned()
        };
        sources.iter().map(|source| (origin(source), source.path.clone())).collect()
    }

    #[test]
    fn two_files_never_get_one_path() {
        let names = [
            "README.md",
            "lessons/README.md",
            "img/a.png",
            "assets/images/img/a.png",
            "data.csv",
            "files/data.csv",
            "x",
            "files/x/y",
        ];
        let paths = paths_of(&names, Places::default());
        let mut distinct: Vec<&String> = paths.iter().map(|(_, path)| path).collect();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), names.len(), "{paths:?}");
        for (origin, path) in &paths {
            let is_own = ["lessons/", "assets/", "files/"].iter().any(|start| origin.starts_with(start));
            assert!(is_book_path(path) && (!is_own || origin == path), "{origin} {path}");
            assert!(folders_of(path).all(|folder| paths.iter().all(|(_, file)| file != folder)), "{path}");
        }
        // A second import of the same tree, or of a part of it, finds every file where it is.
        let mut known = Places::default();
        paths.iter().for_each(|(origin, path)| known.keep(origin.clone(), path.clone()));
        assert_eq!(paths_of(&["README.md", "x"], known), {
            let of = |name: &str| paths.iter().find(|(origin, _)| origin == name).cloned().unwrap();
            [of("README.md"), of("x")]
        });
    }

    proptest! {
        #[test]
        fn every_file_gets_a_path_of_a_book(name in "[^\\x00/]{1,40}(/[^\\x00/]{1,90}){0,6}(\\.md|\\.png|)") {
            let path = path_in_book(&name);
            prop_assert!(is_book_path(&path), "{}", path);
        }

        #[test]
        fn different_files_get_different_paths(one in "[ab é*/.-]{1,5}\\.md", other in "[ab é*/.-]{1,5}\\.md") {
            let is_name = |name: &str| name.split('/').all(|part| !matches!(part, "" | "." | ".."));
            if is_name(&one) && is_name(&other) && one != other {
                prop_assert_ne!(path_in_book(&one), path_in_book(&other));
            }
        }
    }
}
