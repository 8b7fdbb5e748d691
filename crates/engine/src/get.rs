//! Getting a document back: whole, in part, or into a file.

use std::{
    fs::{self, File},
    io::Write,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cap_std::{ambient_authority, fs::Dir};
use shelf_base::{
    CallContext, Digest,
    address::{Address, Modality, Place},
    bounds,
    ids::DocumentId,
};
use shelf_catalog::{Document, Version};
use shelf_reading::Text;

use crate::{
    Caller, Error, FileAccess, Library, Result,
    readings::{EXTRACTED_BYTES, Origin},
    restore::{export_place, nearest_folder, refused_place},
    validate,
};

/// Candidates that an ambiguous name lists.
const CANDIDATES: usize = 10;
/// Files written by this process, so that no two have the same temporary name.
static WRITTEN: AtomicU64 = AtomicU64::new(0);
/// The most content that one reply carries.
const CONTENT_BYTES: u64 = bounds::REQUEST_BYTES as u64;

/// Which part of the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// First byte.
    pub offset: Option<u64>,
    /// Number of bytes.
    pub length: Option<u64>,
    /// First line, from 1.
    pub start_line: Option<u64>,
    /// Last line, included.
    pub end_line: Option<u64>,
}

/// A request for a document.
#[derive(Clone, Debug, Default)]
pub struct GetRequest {
    /// By content: whole hash or unique prefix.
    pub hash: Option<String>,
    /// By name, document id or citation address.
    pub name: Option<String>,
    /// Only in this collection.
    pub collection: Option<String>,
    /// Write the content here.
    pub output_path: Option<PathBuf>,
    /// Give the content back.
    pub include_content: bool,
    /// Only this part of it.
    pub window: Window,
}

/// Content in a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The text, or base64.
    pub text: String,
    /// `utf-8` or `base64`.
    pub encoding: &'static str,
    /// Whether the document goes on after this part.
    pub truncated: bool,
    /// Length of the whole.
    pub total_bytes: u64,
    /// Where to go on.
    pub next_offset: Option<u64>,
    /// Lines of the whole, when lines were asked for.
    pub total_lines: Option<u64>,
}

/// A document that was found.
#[derive(Clone, Debug)]
pub struct Got {
    /// The document.
    pub document: Document,
    /// The version that was asked for: the present one unless a hash named an older one.
    pub version: Version,
    /// Other paths with the same content.
    pub also_at: Vec<String>,
    /// The place that an address named, when it is not the whole document.
    pub place: Option<CitedPlace>,
    /// Where the content was written.
    pub written_to: Option<String>,
    /// The content.
    pub content: Option<Content>,
}

/// A place in a document that a citation address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedPlace {
    /// The address.
    pub address: String,
    /// The type of what stands there, when it differs from the document's.
    pub mime: Option<String>,
}

impl Library {
    /// Gets a document by hash, name, id or citation address; `None` when there is none.
    pub fn get(&self, caller: &Caller, request: &GetRequest, call: &CallContext) -> Result<Option<Got>> {
        caller.must_read()?;
        if let (None, Some(name)) = (&request.hash, &request.name)
            && name.contains("://")
            && let Ok(address) = name.parse::<Address>()
        {
            return self.get_cited(caller, &address, request, call);
        }
        let Some((document, version, also_at)) = self.find(caller, request)? else {
            return request.name.as_deref().map_or(Ok(None), not_an_address);
        };
        let written_to = match &request.output_path {
            Some(path) => Some(self.write_out(caller, path, &version, call)?),
            None => None,
        };
        let content = if request.include_content {
            Some(self.content(&document, &version.hash, version.size, request.window, call)?)
        } else {
            None
        };
        Ok(Some(Got { document, version, also_at, place: None, written_to, content }))
    }

    /// Gets what stands at a citation address: the whole document, its lines, or the evidence that `resolve` would cut.
    fn get_cited(
        &self,
        caller: &Caller,
        address: &Address,
        request: &GetRequest,
        call: &CallContext,
    ) -> Result<Option<Got>> {
        let Some((document, version)) = self.cited_document(caller, address.resource())? else {
            return Ok(None);
        };
        if request.collection.as_ref().is_some_and(|name| *name != document.collection_name) {
            return Ok(None);
        }
        let (window, mut place) = (request.window, None);
        let mut evidence = None;
        if !is_whole(address.place()) {
            if window != Window::default() {
                let why = "and citation addresses both say which part is meant: give one of them";
                return Err(Error::invalid("offset, length, start_line, end_line", why));
            }
            if request.output_path.is_some() {
                let why =
                    "takes whole documents; the tool resolve writes the evidence of an address to a file";
                return Err(Error::invalid("outputPath", why));
            }
            let mut mime = None;
            if let Place::Text(Some(lines)) = address.place() {
                let lines = u64::from(lines.first())..=u64::from(lines.last());
                let (found, is_converted) = self.cited_lines(&document, &version, lines, call)?;
                evidence = Some(found);
                mime = is_converted.then(|| "text/plain".to_owned()).filter(|found| *found != document.mime);
            } else if request.include_content {
                let (found, bytes) = self
                    .evidence(caller, &address.exact().unwrap_or_else(|| address.to_string()), call)
                    .map_err(not_there)?;
                let length = bytes.len() as u64;
                evidence = Some(encode(found.starts_with("text/"), bytes, 0, length));
                mime = Some(found).filter(|found| *found != document.mime);
            }
            place = Some(CitedPlace { address: address.to_string(), mime });
        }
        let written_to = match &request.output_path {
            Some(path) => Some(self.write_out(caller, path, &version, call)?),
            None => None,
        };
        let content = match evidence {
            _ if !request.include_content => None,
            None => Some(self.content(&document, &version.hash, version.size, window, call)?),
            evidence => evidence,
        };
        Ok(Some(Got { document, version, also_at: Vec::new(), place, written_to, content }))
    }

    /// The lines of an address, which are those of the text as it reads, and whether that is not how it is stored. Lines
    /// that the text does not have are an error.
    fn cited_lines(
        &self,
        document: &Document,
        version: &Version,
        lines: RangeInclusive<u64>,
        call: &CallContext,
    ) -> Result<(Content, bool)> {
        let (content, is_converted) = match self.text_as_read(document, version, call)? {
            Some(text) => (text_lines(&text.text, &lines), !text.as_stored),
            None => {
                let (start_line, end_line) = (Some(*lines.start()), Some(*lines.end()));
                let window = Window { start_line, end_line, ..Window::default() };
                (self.lines(document, (&version.hash, version.size), window, call)?, false)
            }
        };
        let count = content.total_lines.unwrap_or_default();
        if *lines.end() > count {
            let what = format!("the text has {count} lines, so there is no line {}", lines.end());
            return Err(not_there(crate::CitationError::NoPlace(what)));
        }
        Ok((content, is_converted))
    }

    /// The text of a document that is not too large to be read at once.
    fn text_as_read(
        &self,
        document: &Document,
        version: &Version,
        call: &CallContext,
    ) -> Result<Option<Arc<Text<'static>>>> {
        let Document { path, mime, is_text, .. } = document;
        let origin = Origin { hash: version.hash, path, mime, is_text: *is_text };
        let most = if *is_text { CONTENT_BYTES } else { EXTRACTED_BYTES };
        if version.size > most || !origin.may_have_text() {
            return Ok(None);
        }
        let _share = self.budget.take(version.size, call)?;
        self.blobs.readings.text_at(&origin.key(), &origin, &self.blobs, call)
    }

    /// One of the caller's documents by id.
    pub fn document(&self, caller: &Caller, id: DocumentId) -> Result<Option<Document>> {
        caller.must_read()?;
        Ok(self.catalog.document(caller.pass.scope(), id)?)
    }

    fn find(
        &self,
        caller: &Caller,
        request: &GetRequest,
    ) -> Result<Option<(Document, Version, Vec<String>)>> {
        match (&request.hash, &request.name) {
            (Some(hash), name) => {
                let prefix = validate::hash_prefix(hash)?;
                let mut found = self.catalog.hashed(caller.pass.scope(), &prefix, 2 * CANDIDATES)?;
                if let Some(collection) = &request.collection {
                    found.retain(|(document, _)| document.collection_name == *collection);
                }
                if let Some(name) = name {
                    keep_named(&mut found, hash, name)?;
                }
                one_content(hash, found)
            }
            (None, Some(name)) => {
                let found = self.one_named(caller, request.collection.as_deref(), name)?;
                Ok(found.map(|document| {
                    let version = document.version.clone();
                    (document, version, Vec::new())
                }))
            }
            (None, None) => Err(Error::invalid("hash", "or name is needed to say which document")),
        }
    }

    /// The one document a name or document id means.
    pub(crate) fn one_named(
        &self,
        caller: &Caller,
        collection: Option<&str>,
        name: &str,
    ) -> Result<Option<Document>> {
        if let Ok(id) = name.parse::<DocumentId>() {
            let found = self.catalog.document(caller.pass.scope(), id)?;
            let fits = |found: &Document| collection.is_none_or(|wanted| found.collection_name == wanted);
            if let Some(document) = found.filter(fits) {
                return Ok(Some(document));
            }
        }
        let mut found = self.catalog.named(caller.pass.scope(), collection, name, CANDIDATES + 1)?;
        match found.len() {
            0 => Ok(None),
            1 => Ok(found.pop()),
            _ => Err(Error::Ambiguous {
                name: name.to_owned(),
                candidates: found.iter().map(describe).collect(),
            }),
        }
    }

    fn content(
        &self,
        document: &Document,
        hash: &Digest,
        total: u64,
        window: Window,
        call: &CallContext,
    ) -> Result<Content> {
        if window.start_line.is_some() || window.end_line.is_some() {
            let content = self.lines(document, (hash, total), window, call)?;
            if !document.is_text || (content.encoding == "utf-8" && !content.text.contains('\0')) {
                return Ok(content);
            }
            // The bytes of another encoding have no lines; its text has them. Only UTF-16 is text and has zeros.
            let version = Version { hash: *hash, ..document.version.clone() };
            let text = self.text_as_read(document, &version, call)?;
            let lines = window.start_line.unwrap_or(1)..=window.end_line.unwrap_or(u64::MAX);
            return Ok(text.map_or(content, |text| text_lines(&text.text, &lines)));
        }
        let start = window.offset.unwrap_or(0).min(total);
        let end = start.saturating_add(window.length.unwrap_or(u64::MAX).min(CONTENT_BYTES)).min(total);
        let _share = self.budget.take(end - start, call)?;
        let whole = start == 0 && end == total;
        let bytes = if whole {
            self.blobs.read_blob(call, hash)?
        } else {
            self.blobs.read_range(call, hash, start..end)?
        };
        Ok(encode(document.is_text, bytes, start, total))
    }

    fn lines(
        &self,
        document: &Document,
        (hash, total): (&Digest, u64),
        window: Window,
        call: &CallContext,
    ) -> Result<Content> {
        if window.offset.is_some() || window.length.is_some() {
            return Err(Error::invalid(
                "start_line",
                "and end_line cannot be combined with offset and length",
            ));
        }
        let first = window.start_line.unwrap_or(1).max(1);
        let last = window.end_line.unwrap_or(u64::MAX);
        if last < first {
            return Err(Error::invalid("end_line", format!("must not be before start_line {first}")));
        }
        // Of a document of any size only the lines that are asked for are held, and of those as many as a reply takes.
        let _share = self.budget.take(total.min(CONTENT_BYTES), call)?;
        let (mut kept, mut start) = (Vec::new(), total);
        let (mut line, mut at, mut is_open) = (1, 0, false);
        self.blobs.stream_blob(call, hash, |piece| {
            for part in piece.split_inclusive(|byte| *byte == b'\n') {
                if (first..=last).contains(&line) {
                    start = start.min(at);
                    let room = (CONTENT_BYTES as usize).saturating_sub(kept.len());
                    kept.extend_from_slice(&part[..part.len().min(room)]);
                }
                at += part.len() as u64;
                is_open = !part.ends_with(b"\n");
                line += u64::from(!is_open);
            }
            Ok(())
        })?;
        let mut content = encode(document.is_text, kept, start, total);
        content.total_lines = Some(line - u64::from(!is_open));
        Ok(content)
    }

    /// Writes a version to a file: whole or not at all.
    fn write_out(
        &self,
        caller: &Caller,
        path: &Path,
        version: &Version,
        call: &CallContext,
    ) -> Result<String> {
        validate::file_path("outputPath", path)?;
        let shown = path.display().to_string();
        match caller.file_access {
            FileAccess::OperatingSystem => {
                let path = std::path::absolute(path).map_err(|error| Error::writing(&shown, error))?;
                let failed = |error| refused_place("outputPath", &shown, error);
                let path = real_target(path).map_err(failed)?;
                let parent = path.parent().ok_or_else(|| Error::invalid("outputPath", "must name a file"))?;
                if path.is_dir() {
                    return Err(Error::invalid("outputPath", "must name a file, not a folder"));
                }
                if path.exists() && !path.is_file() {
                    return Err(Error::invalid(
                        "outputPath",
                        "must name a regular file, not a device or pipe",
                    ));
                }
                fs::create_dir_all(parent).map_err(failed)?;
                let folder = Dir::open_ambient_dir(parent, ambient_authority()).map_err(failed)?;
                let name =
                    path.file_name().ok_or_else(|| Error::invalid("outputPath", "must name a file"))?;
                self.write_atomic(&folder, Path::new(name), version, call, &shown)?;
                Ok(path.display().to_string())
            }
            FileAccess::Configured => {
                let (folder, inside) = export_place(&self.options.export_roots, path)?;
                let failed = |error| refused_place("outputPath", &shown, error);
                if folder.symlink_metadata(&inside).is_ok_and(|found| found.is_dir()) {
                    return Err(failed(std::io::ErrorKind::IsADirectory.into()));
                }
                let parent = inside.parent().filter(|parent| !parent.as_os_str().is_empty());
                if let Some(parent) = parent {
                    nearest_folder(&folder, parent).map_err(failed)?;
                    folder.create_dir_all(parent).map_err(failed)?;
                }
                self.write_atomic(&folder, &inside, version, call, &shown)?;
                Ok(shown)
            }
        }
    }

    /// Writes a version beneath `folder` under a temporary name, syncs it and renames it.
    pub(crate) fn write_atomic(
        &self,
        folder: &Dir,
        path: &Path,
        version: &Version,
        call: &CallContext,
        shown: &str,
    ) -> Result<()> {
        let failed = |error| Error::writing(shown, error);
        let name =
            path.file_name().ok_or_else(|| Error::invalid("path", "must name a file"))?.to_string_lossy();
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let temporary =
            path.with_file_name(format!(".{}.{}-{number}.shelf", shorten(&name), std::process::id()));
        // Left by a killed process that had the same id.
        let _ = folder.remove_file(&temporary);
        let mut options = cap_std::fs::OpenOptions::new();
        let mut file: File =
            folder.open_with(&temporary, options.write(true).create_new(true)).map_err(failed)?.into_std();
        let written = self
            .blobs
            .stream_blob(call, &version.hash, |piece| file.write_all(piece).map_err(failed))
            .and_then(|_| keep_facts(&file, version).map_err(failed))
            .and_then(|()| file.sync_all().map_err(failed))
            .and_then(|()| folder.rename(&temporary, folder, path).map_err(failed));
        if written.is_err() {
            let _ = folder.remove_file(&temporary);
        }
        written
    }
}

const fn is_whole(place: &Place) -> bool {
    match place {
        Place::Document(pages) => pages.is_none(),
        Place::Video(clip) | Place::Audio(clip) => clip.is_none(),
        Place::Text(lines) => lines.is_none(),
        Place::Image(region) => region.is_none(),
        Place::Virtual(node) => node.is_none(),
    }
}

/// Refuses a name that was meant as a citation address and is none; `None` for any other name.
fn not_an_address(name: &str) -> Result<Option<Got>> {
    let scheme = name.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_meant = Modality::ALL.iter().any(|modality| modality.scheme().eq_ignore_ascii_case(scheme));
    match name.parse::<Address>() {
        Err(error) if is_meant => Err(Error::invalid("name", format!("is no citation address: {error}"))),
        _ => Ok(None),
    }
}

/// A place that cannot be shown, as an error about the argument that named it.
fn not_there(error: crate::CitationError) -> Error {
    match error {
        crate::CitationError::Engine(error) => error,
        other => Error::invalid("name", format!("is an address that cannot be read: {other}")),
    }
}

/// Where a write to `path` goes: a link that leads somewhere is followed, as any program would.
fn real_target(path: PathBuf) -> std::io::Result<PathBuf> {
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    if is_link && path.exists() { path.canonicalize() } else { Ok(path) }
}

fn shorten(name: &str) -> String {
    name.chars().take(40).collect()
}

/// Gives the file the mode and time of the version.
fn keep_facts(file: &File, version: &Version) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if version.mode != 0 {
        // Setuid and setgid bits do not come back: a restored file must not be more powerful than a copied one.
        file.set_permissions(fs::Permissions::from_mode(version.mode & 0o777))?;
    }
    let nanos = version.modified_at.nanos();
    let time = if nanos >= 0 {
        std::time::UNIX_EPOCH + std::time::Duration::from_nanos(nanos.unsigned_abs())
    } else {
        std::time::UNIX_EPOCH - std::time::Duration::from_nanos(nanos.unsigned_abs())
    };
    file.set_modified(time)
}

/// Of the documents with a hash, those that a name given beside it means too. When there is none, whoever asks means two
/// things at once, and neither is guessed.
pub(crate) fn keep_named(found: &mut Vec<(Document, Version)>, hash: &str, name: &str) -> Result<()> {
    let is_named = |document: &Document| {
        let rest = document.path.strip_suffix(name.trim_start_matches('/'));
        document.path == name || rest.is_some_and(|rest| rest.ends_with('/')) || document.title == name
    };
    let before = found.len();
    found.retain(|(document, _)| is_named(document));
    if found.is_empty() && before > 0 {
        return Err(Error::invalid(
            "name",
            format!("'{name}' is not the document with hash {hash}: give only one of the two"),
        ));
    }
    Ok(())
}

/// Several documents may share one content; several contents are ambiguous.
fn one_content(
    asked: &str,
    found: Vec<(Document, Version)>,
) -> Result<Option<(Document, Version, Vec<String>)>> {
    let mut found = found.into_iter();
    let Some((document, version)) = found.next() else { return Ok(None) };
    let rest: Vec<(Document, Version)> = found.collect();
    if rest.iter().any(|(_, other)| other.hash != version.hash) {
        let all = std::iter::once((&document, &version)).chain(rest.iter().map(|(d, v)| (d, v)));
        let candidates =
            all.take(CANDIDATES).map(|(document, version)| format!("{} {}", version.hash, document.path));
        return Err(Error::Ambiguous { name: asked.to_owned(), candidates: candidates.collect() });
    }
    let also_at = rest.into_iter().map(|(other, _)| other.path).collect();
    Ok(Some((document, version, also_at)))
}

/// Lines of a text that is at hand.
fn text_lines(text: &str, lines: &RangeInclusive<u64>) -> Content {
    let (mut kept, mut count, mut at, mut start) = (Vec::new(), 0, 0, text.len());
    for line in text.split_inclusive('\n') {
        count += 1;
        if lines.contains(&count) {
            start = start.min(at);
            kept.extend_from_slice(line.as_bytes());
        }
        at += line.len();
    }
    kept.truncate(CONTENT_BYTES as usize);
    let mut content = encode(true, kept, start as u64, text.len() as u64);
    content.total_lines = Some(count);
    content
}

fn describe(document: &Document) -> String {
    format!("{} (collection {}, hash {})", document.path, document.collection_name, document.version.hash)
}

fn encode(is_text: bool, mut bytes: Vec<u8>, start: u64, total: u64) -> Content {
    if is_text && start + (bytes.len() as u64) < total {
        // End on a character, so that the next part begins with one.
        let cut = std::str::from_utf8(&bytes).err().filter(|error| error.error_len().is_none());
        if let Some(error) = cut.filter(|error| error.valid_up_to() > 0) {
            bytes.truncate(error.valid_up_to());
        }
    }
    let end = start + bytes.len() as u64;
    let (text, encoding) = match String::from_utf8(bytes) {
        Ok(text) if is_text => (text, "utf-8"),
        Ok(text) => (STANDARD.encode(text), "base64"),
        Err(error) => (STANDARD.encode(error.into_bytes()), "base64"),
    };
    let truncated = end < total;
    let next_offset = truncated.then_some(end);
    Content { text, encoding, truncated, total_bytes: total, next_offset, total_lines: None }
}
