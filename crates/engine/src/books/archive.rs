//! Archives: a whole book, a folder or a snapshot as a ZIP file, made once for each state of it and kept for as long as
//! its address works.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use shelf_base::{CallContext, Digest, DigestWriter, Moment, ids::CollectionId};
use shelf_catalog::{Chosen, Filter, Scope};
use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

use super::{Answer, Book, BookError, check_book_id, registry};
use crate::{Caller, Error, Library, Result, signing::Purpose};

/// Text up to so many bytes in all is compressed; more would take longer than a caller should wait.
const COMPRESSED: u64 = 48 << 20;
/// Bytes of all archives that are kept at once.
const ALL_ARCHIVES: u64 = 16 << 30;
/// Archives of other processes that are being made may be this old.
const UNFINISHED: Duration = Duration::from_secs(3_600);

/// A file that whoever has its address may read.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: File,
    /// Its size in bytes.
    pub size: u64,
    /// Stands for exactly this content.
    pub state: String,
    /// Its name, which is also the last part of its address.
    pub name: String,
    /// Its MIME type.
    pub mime: String,
}

/// An archive that can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Its file name.
    pub name: String,
    /// Where it is.
    pub file: PathBuf,
    /// What its address proves the right with.
    pub proof: String,
    /// Until when its address works.
    pub expires_at: Moment,
    /// For how many seconds that is.
    pub seconds: u64,
    /// How many files it holds.
    pub files: u64,
    /// Their bytes, uncompressed.
    pub bytes: u64,
    /// The hash over the names and contents of its files.
    pub manifest: Digest,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    name: String,
    /// The name in the address, under which it is saved.
    #[serde(default)]
    shown: String,
    /// The book that it is of: the address works for as long as there is one.
    #[serde(default)]
    book: Option<CollectionId>,
    expires_at: i64,
}

/// Files that become an archive.
pub(crate) struct Packing {
    /// How the name of the archive begins: letters, digits, `.`, `_` and `-` only.
    pub stem: String,
    /// Stands for exactly these files.
    pub state: Digest,
    pub files: Vec<PackedFile>,
    /// A `book.yaml` to put before them.
    pub made: Option<String>,
    /// The book that they are.
    pub book: Option<CollectionId>,
}

/// One file of an archive.
pub(crate) struct PackedFile {
    /// Its path in the archive.
    pub path: String,
    pub hash: Digest,
    pub size: u64,
    /// The time that it gets.
    pub at: Moment,
}

/// The files of a book and the hash that stands for exactly this state of it.
pub(super) struct BookManifest {
    pub hash: Digest,
    pub files: Vec<Chosen>,
}

impl BookManifest {
    pub(super) fn new(book: &Book, files: Vec<Chosen>) -> Self {
        let mut writer = DigestWriter::new();
        writer.update(b"shelf-book-1\0");
        // Only what goes into a `book.yaml` that the book itself does not have.
        if !files.iter().any(|file| file.path == registry::BOOK_FILE) {
            writer.update(made_book_file(book).as_bytes());
        }
        for file in &files {
            writer.update(b"\0");
            writer.update(file.path.as_bytes());
            writer.update(b"\0");
            writer.update(file.version.hash.as_bytes());
        }
        Self { hash: writer.finish(), files }
    }
}

/// The `book.yaml` of a book that has none.
fn made_book_file(book: &Book) -> String {
    format!(
        "book_id: {}\ntitle: {}\nstorage_backend: fs\ncreated_at: {}\nstatus: {}\n",
        book.id,
        registry::quoted(&book.title),
        registry::quoted(&book.created_at.to_string()),
        book.status.word()
    )
}

impl Library {
    /// The state of a book of the caller's.
    pub(super) fn book_manifest(
        &self,
        caller: &Caller,
        book: &str,
        call: &CallContext,
    ) -> Answer<(Book, BookManifest)> {
        self.identified_manifest(caller, book, call).map(|(_, book, manifest)| (book, manifest))
    }

    fn identified_manifest(
        &self,
        caller: &Caller,
        book: &str,
        call: &CallContext,
    ) -> Answer<(CollectionId, Book, BookManifest)> {
        check_book_id(book)?;
        let path = format!("books/{book}");
        let Some(found) = self.own_book(caller, book)? else {
            return Err(BookError::NotFound { path });
        };
        let read = || -> Result<(CollectionId, Book, BookManifest)> {
            let id = found.id;
            let described = self.described(caller, found, call)?;
            let filter = Filter { collection: Some(book.to_owned()), ..Filter::default() };
            let files = self.catalog.choose(caller.pass.scope(), &filter)?;
            let manifest = BookManifest::new(&described, files);
            Ok((id, described, manifest))
        };
        read().map_err(|error| BookError::Engine { path, error })
    }

    /// The archive of a book, made when this state of the book has none.
    pub fn book_archive(&self, caller: &Caller, book: &str, call: &CallContext) -> Answer<Archive> {
        let (id, book, manifest) = self.identified_manifest(caller, book, call)?;
        let path = format!("books/{}", book.id);
        self.kept_archive((id, &book), &manifest, call).map_err(|error| BookError::Engine { path, error })
    }

    fn kept_archive(
        &self,
        (id, book): (CollectionId, &Book),
        manifest: &BookManifest,
        call: &CallContext,
    ) -> Result<Archive> {
        let made = made_book_file(book);
        let has_own = manifest.files.iter().any(|file| file.path == registry::BOOK_FILE);
        let files = manifest.files.iter().map(|file| PackedFile {
            path: file.path.clone(),
            hash: file.version.hash,
            size: file.version.size,
            at: file.version.indexed_at,
        });
        let packing = Packing {
            stem: book.id.clone(),
            state: manifest.hash,
            files: files.collect(),
            made: (!has_own).then_some(made),
            book: Some(id),
        };
        self.packed(&packing, call)
    }

    /// The archive of some files, made when there is none of exactly them.
    pub(crate) fn packed(&self, packing: &Packing, call: &CallContext) -> Result<Archive> {
        self.clear_archives();
        let folder = self.archives();
        let failed = |error| Error::writing("archives", error);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        let day = self.now().day();
        let (stem, state) = (&packing.stem, &packing.state.to_string()[..16]);
        let name = format!("{stem}-{state}.zip");
        let file = folder.join(&name);
        let made_bytes = packing.made.as_ref().map_or(0, |text| text.len() as u64);
        let bytes = packing.files.iter().map(|file| file.size).sum::<u64>() + made_bytes;
        let count = packing.files.len() as u64 + u64::from(packing.made.is_some());
        if !file.exists() {
            // One at a time: a second caller finds what the first one made.
            let _turn = loop {
                if let Some(turn) = self.archiving.try_lock_for(Duration::from_millis(50)) {
                    break turn;
                }
                call.check()?;
            };
            if !file.exists() {
                self.make_room_for(bytes);
                self.write_archive(&file, packing, call)?;
            }
        }
        let seconds = self.options.links.seconds;
        let expires_at = Moment::from_micros(
            self.now().micros().saturating_add(i64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000)),
        );
        keep_until(&file, expires_at).map_err(failed)?;
        // What a person sees in a download folder is the day; what the address proves is the very state.
        let shown = format!("{stem}-{day}-{state}.zip");
        let claims =
            Claims { name, shown: shown.clone(), book: packing.book, expires_at: expires_at.micros() };
        let proof = self.url_keys()?.sign(Purpose::Archive, &claims).unwrap_or_default();
        Ok(Archive {
            name: shown,
            file,
            proof,
            expires_at,
            seconds,
            files: count,
            bytes,
            manifest: packing.state,
        })
    }

    fn archives(&self) -> PathBuf {
        self.folder().join("archives")
    }

    fn write_archive(&self, file: &Path, packing: &Packing, call: &CallContext) -> Result<()> {
        let failed = |error| Error::writing("archives", error);
        let temporary = file.with_extension(format!("{}.part", std::process::id()));
        let _ = fs::remove_file(&temporary);
        let output = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
        let written = output
            .map_err(failed)
            .and_then(|output| self.fill_archive(output, packing, call))
            .and_then(|()| fs::rename(&temporary, file).map_err(failed));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn fill_archive(&self, output: File, packing: &Packing, call: &CallContext) -> Result<()> {
        let zipped = |error: zip::result::ZipError| Error::writing("archives", std::io::Error::other(error));
        let failed = |error| Error::writing("archives", error);
        let mut archive = ZipWriter::new(BufWriter::with_capacity(1 << 20, output));
        let is_text = |path: &str| {
            let ends = [".md", ".yaml", ".yml", ".txt", ".json", ".html", ".css", ".js", ".svg", ".csv"];
            ends.iter().any(|end| path.ends_with(end))
        };
        let texts = packing.files.iter().filter(|file| is_text(&file.path));
        let compress = texts.map(|file| file.size).sum::<u64>() <= COMPRESSED;
        if let Some(text) = &packing.made {
            archive.start_file(registry::BOOK_FILE, SimpleFileOptions::default()).map_err(zipped)?;
            archive.write_all(text.as_bytes()).map_err(failed)?;
        }
        let total = packing.files.len() as u64;
        for (done, file) in packing.files.iter().enumerate() {
            if done.is_multiple_of(16) {
                call.report(done as u64, Some(total), "archiving");
            }
            let method = match compress && is_text(&file.path) {
                true => CompressionMethod::Deflated,
                false => CompressionMethod::Stored,
            };
            let options = SimpleFileOptions::default()
                .compression_method(method)
                .compression_level((method == CompressionMethod::Deflated).then_some(1))
                .last_modified_time(zip_time(file.at))
                .large_file(file.size >= u64::from(u32::MAX))
                .unix_permissions(0o644);
            archive.start_file(file.path.as_str(), options).map_err(zipped)?;
            self.blobs.stream_blob(call, &file.hash, |piece| archive.write_all(piece).map_err(failed))?;
        }
        let mut output = archive.finish().map_err(zipped)?;
        output.flush().map_err(failed)
    }

    /// The file of an archive whose address was given, while it works.
    pub fn open_archive(&self, proof: &str) -> Result<Option<OpenFile>> {
        let Some(claims) = self.url_keys()?.read::<Claims>(Purpose::Archive, proof) else { return Ok(None) };
        if self.now().micros() >= claims.expires_at {
            return Ok(None);
        }
        if let Some(id) = claims.book
            && !self.catalog.books(&Scope::Library)?.iter().any(|book| book.id == id)
        {
            return Ok(None);
        }
        let Ok(file) = File::open(self.archives().join(&claims.name)) else { return Ok(None) };
        let size = file.metadata().map_err(|error| Error::reading("archives", error))?.len();
        let mime = "application/zip".to_owned();
        Ok(Some(OpenFile { file, size, state: claims.name, name: claims.shown, mime }))
    }

    /// Removes archives whose addresses do not work any more.
    pub fn clear_archives(&self) {
        let now = self.now();
        for (until, _, path) in self.kept() {
            let is_part = path.extension().is_some_and(|end| end == "part");
            let grace = if is_part { UNFINISHED } else { Duration::ZERO };
            let until = until.checked_add(grace).unwrap_or(until);
            if Moment::from_system(until).micros() <= now.micros() {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Archives with the time until which they are kept, and their size.
    fn kept(&self) -> impl Iterator<Item = (SystemTime, u64, PathBuf)> {
        let files = fs::read_dir(self.archives()).into_iter().flatten().flatten();
        files.filter_map(|file| {
            let facts = file.metadata().ok()?;
            Some((facts.modified().ok()?, facts.len(), file.path()))
        })
    }

    /// Removes the archives that end first until there is room for another.
    fn make_room_for(&self, bytes: u64) {
        let mut kept: Vec<_> = self.kept().collect();
        kept.sort();
        let mut total: u64 = kept.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in kept {
            if total.saturating_add(bytes) <= ALL_ARCHIVES {
                return;
            }
            if fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }
}

/// An archive carries the time until which it is kept as its modification time: no record of it can be lost or stay
/// behind.
fn keep_until(file: &Path, until: Moment) -> std::io::Result<()> {
    let since = Duration::from_micros(u64::try_from(until.micros()).unwrap_or(0));
    OpenOptions::new().append(true).open(file)?.set_modified(SystemTime::UNIX_EPOCH + since)
}

/// A time as ZIP files have it: two seconds exact, from 1980 on.
fn zip_time(at: Moment) -> DateTime {
    let text = at.with_micros();
    let number = |range: std::ops::Range<usize>| text.get(range).and_then(|part| part.parse::<u16>().ok());
    let parts = (number(0..4), number(5..7), number(8..10), number(11..13), number(14..16), number(17..19));
    let (Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)) = parts else {
        return DateTime::default();
    };
    DateTime::from_date_and_time(year, month as u8, day as u8, hour as u8, minute as u8, second as u8)
        .unwrap_or_default()
}
