//! One reading of each document: the text that a reader makes of a content is made once and kept as derived data.
//!
//! Text that is stored as it reads needs no reader: its bytes are its text. Everything else (PDF, DOCX, HTML, older
//! encodings) is read when it is stored or indexed, whichever comes first, and taken from the derived data by whoever
//! needs its text afterwards. Without that data, a content is read again.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use shelf_base::{CallContext, Digest, ErrorInfo, Kind, Recent};
use shelf_index::{Derived, DerivedKey};
use shelf_reading::{Bookmark, Layout, LineBox, Markup, Text, extension_of};

use crate::{Result, blobs::Blobs};

/// Files of other types than text that are larger than this are not looked into.
pub(crate) const EXTRACTED_BYTES: u64 = 128 << 20;
/// Such files take a few times their size while they are read, so large ones are read one at a time.
const LARGE_FILE: u64 = 8 << 20;
static ONE_LARGE_FILE: Mutex<()> = Mutex::new(());
/// Bytes of a text at most; what unpacks to more is damaged.
const TEXT_BYTES: usize = 256 << 20;
/// Bytes of texts that are kept unpacked, for the next hit in the same document.
const UNPACKED: usize = 8 << 20;

/// What decides how a content is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    pub hash: Digest,
    pub path: &'a str,
    pub mime: &'a str,
    pub is_text: bool,
}

impl Origin<'_> {
    /// Whether the content may have text at all.
    pub(crate) fn may_have_text(&self) -> bool {
        self.is_text || shelf_reading::is_extracted(self.mime)
    }

    /// Where its reading is kept. Another version of the readers gives another key.
    pub(crate) fn key(&self) -> DerivedKey {
        let described = format!(
            "text {} {} {} {}",
            shelf_reading::VERSION,
            self.mime,
            extension_of(self.path),
            self.is_text
        );
        let hash = blake3::hash(described.as_bytes());
        let variant = hash.as_bytes().first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        DerivedKey { content: self.hash, variant }
    }
}

/// The readings of a library.
pub(crate) struct Readings {
    log: Derived,
    unpacked: Recent<DerivedKey, Arc<Text<'static>>>,
    /// Whether it was said that readings cannot be kept.
    is_said: AtomicBool,
}

impl Readings {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self {
            log: Derived::new(folder.join("derived.log")),
            unpacked: Recent::new(UNPACKED),
            is_said: AtomicBool::new(false),
        }
    }

    /// The text of a content whose bytes are at hand; `None` when it has none. A converted text comes with its key.
    pub(crate) fn text<'a>(
        &self,
        origin: &Origin<'_>,
        bytes: &'a [u8],
    ) -> Option<(Text<'a>, Option<DerivedKey>)> {
        if !origin.may_have_text() {
            return None;
        }
        // Most text is stored as it reads, which is found out faster than whether there is a record.
        if !origin.is_text
            && let Some(known) = self.known(&origin.key())
        {
            return known.map(|text| (text, Some(origin.key())));
        }
        self.convert(origin, bytes)
    }

    /// The text of a content that is not stored as it reads, without its bytes; `None` when that has to be found out.
    pub(crate) fn extracted(&self, origin: &Origin<'_>) -> Option<Option<Text<'static>>> {
        if origin.is_text { None } else { self.known(&origin.key()) }
    }

    /// The text behind a key, made again from the content when it is not there.
    pub(crate) fn text_at(
        &self,
        key: &DerivedKey,
        origin: &Origin<'_>,
        blobs: &Blobs,
        call: &CallContext,
    ) -> Result<Option<Arc<Text<'static>>>> {
        if let Some(text) = self.unpacked.get(key) {
            return Ok(Some(text));
        }
        let text = match self.known(key) {
            Some(text) => text,
            None => {
                let origin = Origin { hash: key.content, ..*origin };
                let bytes = blobs.read_range(call, &key.content, 0..EXTRACTED_BYTES)?;
                self.text(&origin, &bytes).map(|(text, _)| owned(text))
            }
        };
        let text = text.map(Arc::new);
        if let Some(text) = &text {
            self.unpacked.keep(*key, text.clone(), text.text.len());
        }
        Ok(text)
    }

    /// Another record that was derived from a content.
    pub(crate) fn derived(&self, key: &DerivedKey) -> Option<Vec<u8>> {
        self.log.get(key).ok().flatten()
    }

    /// Keeps another record that was derived from a content.
    pub(crate) fn keep_derived(&self, key: &DerivedKey, record: &[u8]) {
        self.keep(key, record);
    }

    /// Forgets texts that were unpacked.
    pub(crate) fn release_memory(&self) {
        self.unpacked.clear();
    }

    /// Drops the readings of contents that are not kept.
    pub(crate) fn retain(&self, keeps: impl Fn(&Digest) -> bool) -> Result<u64> {
        Ok(self.log.retain(keeps)?)
    }

    pub(crate) fn check(&self) -> Result<(), shelf_index::Error> {
        self.log.check()
    }

    pub(crate) fn wipe(&self) -> Result<()> {
        self.release_memory();
        Ok(self.log.wipe()?)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    fn convert<'a>(&self, origin: &Origin<'_>, bytes: &'a [u8]) -> Option<(Text<'a>, Option<DerivedKey>)> {
        let is_large = !origin.is_text && bytes.len() as u64 > LARGE_FILE;
        let _alone = is_large.then(|| ONE_LARGE_FILE.lock());
        let read = shelf_reading::text_of(origin.path, origin.mime, origin.is_text, bytes).ok().flatten();
        let key = origin.key();
        match &read {
            Some(text) if text.as_stored => return read.map(|text| (text, None)),
            // That a file cannot be read is worth remembering: finding out may take long.
            None if !origin.is_text => self.keep(&key, &[]),
            None => {}
            Some(text) => match encode(text) {
                Ok(record) => self.keep(&key, &record),
                Err(error) => tracing::warn!(path = origin.path, %error, "a text was not kept"),
            },
        }
        read.map(|text| (text, Some(key)))
    }

    /// A record that somebody else keeps beside the texts.
    pub(crate) fn record(&self, key: &DerivedKey) -> Option<Vec<u8>> {
        self.log.get(key).ok().flatten()
    }

    /// Derived data is a convenience: without room for it, contents are read again.
    pub(crate) fn keep(&self, key: &DerivedKey, record: &[u8]) {
        let Err(error) = self.log.put(key, record) else { return };
        if self.is_said.swap(true, Ordering::Relaxed) {
            return;
        }
        if error.kind() == Kind::Denied {
            tracing::debug!(%error, "texts of documents are not kept: the library is read-only");
        } else {
            tracing::warn!(%error, "texts of documents cannot be kept, so they are made again each time");
        }
    }

    /// What is known of a content: its text, or that it has none; `None` when nothing is.
    fn known(&self, key: &DerivedKey) -> Option<Option<Text<'static>>> {
        let record = self.log.get(key).ok().flatten()?;
        if record.is_empty() { Some(None) } else { decode(&record).map(Some) }
    }
}

fn owned(text: Text<'_>) -> Text<'static> {
    Text {
        text: text.text.into_owned().into(),
        as_stored: text.as_stored,
        pages: text.pages,
        markup: text.markup,
        layout: text.layout,
    }
}

/// Structure, where the pages begin, where the lines stand, the bookmarks, and the text, compressed.
fn encode(text: &Text<'_>) -> std::io::Result<Vec<u8>> {
    let mut plain = vec![match text.markup {
        Markup::Markdown => 0,
        Markup::Plain => 1,
        Markup::Code => 2,
    }];
    plain.extend_from_slice(&(text.pages.len() as u32).to_le_bytes());
    text.pages.iter().for_each(|page| plain.extend_from_slice(&page.to_le_bytes()));
    encode_layout(&text.layout, &mut plain);
    plain.extend_from_slice(text.text.as_bytes());
    zstd::bulk::compress(&plain, 3)
}

fn decode(record: &[u8]) -> Option<Text<'static>> {
    let plain = zstd::bulk::decompress(record, TEXT_BYTES).ok()?;
    let (markup, rest) = plain.split_first()?;
    let markup = match markup {
        0 => Markup::Markdown,
        1 => Markup::Plain,
        2 => Markup::Code,
        _ => return None,
    };
    let (count, rest) = rest.split_first_chunk::<4>()?;
    let (pages, mut rest) = rest.split_at_checked(4 * u32::from_le_bytes(*count) as usize)?;
    let pages = pages.as_chunks::<4>().0.iter().map(|page| u32::from_le_bytes(*page)).collect();
    let layout = decode_layout(&mut rest)?;
    let text = String::from_utf8(rest.to_vec()).ok()?;
    Some(Text { text: text.into(), as_stored: false, pages, markup, layout })
}

fn encode_layout(layout: &Layout, out: &mut Vec<u8>) {
    out.extend_from_slice(&(layout.lines.len() as u32).to_le_bytes());
    for line in &layout.lines {
        out.extend_from_slice(&line.start.to_le_bytes());
        line.bbox.iter().chain([&line.size]).for_each(|part| out.extend_from_slice(&part.to_le_bytes()));
    }
    out.extend_from_slice(&(layout.outline.len() as u32).to_le_bytes());
    for bookmark in &layout.outline {
        let title = &bookmark.title[..bookmark.title.floor_char_boundary(usize::from(u16::MAX))];
        out.push(bookmark.level);
        out.extend_from_slice(&bookmark.page.to_le_bytes());
        out.extend_from_slice(&bookmark.top.to_le_bytes());
        out.extend_from_slice(&(title.len() as u16).to_le_bytes());
        out.extend_from_slice(title.as_bytes());
    }
}

fn decode_layout(rest: &mut &[u8]) -> Option<Layout> {
    let mut layout = Layout::default();
    for _ in 0..number::<4>(rest)? {
        let start = number::<4>(rest)? as u32;
        let mut parts = [0; 5];
        for part in &mut parts {
            *part = number::<2>(rest)? as u16;
        }
        let [left, top, right, bottom, size] = parts;
        layout.lines.push(LineBox { start, bbox: [left, top, right, bottom], size });
    }
    for _ in 0..number::<4>(rest)? {
        let (level, page) = (number::<1>(rest)? as u8, number::<4>(rest)? as u32);
        let (top, length) = (number::<2>(rest)? as u16, number::<2>(rest)? as usize);
        let (title, after) = rest.split_at_checked(length)?;
        *rest = after;
        layout.outline.push(Bookmark { level, title: String::from_utf8(title.to_vec()).ok()?, page, top });
    }
    Some(layout)
}

/// The next number of so many bytes.
fn number<const BYTES: usize>(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk::<BYTES>()?;
    *rest = after;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_comes_back_as_it_was() {
        let line = |start| LineBox { start, bbox: [1, 2, 60_000, 65_535], size: 105 };
        let bookmark = |title: &str| Bookmark { level: 2, title: title.into(), page: 70_000, top: 300 };
        let text = Text {
            text: "Füße\nzwei\n".into(),
            as_stored: false,
            pages: vec![0, 7],
            markup: Markup::Plain,
            layout: Layout {
                lines: vec![line(0), line(7)], outline: vec![bookmark("Größe"), bookmark("")]
            },
        };
        let record = encode(&text).unwrap();
        assert_eq!(decode(&record), Some(text));
        let plain = zstd::bulk::decompress(&record, TEXT_BYTES).unwrap();
        for end in 0..plain.len() {
            let torn = zstd::bulk::compress(&plain[..end], 1).unwrap();
            // Only the text may be shorter without notice: its length is that of the record.
            let _ = decode(&torn);
        }
    }
}
