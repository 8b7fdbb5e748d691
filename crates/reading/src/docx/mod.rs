//! Word documents: a ZIP archive of XML parts, of which the body, the notes and the styles are read.

mod body;
mod styles;

use std::borrow::Cow;
use std::io::{Cursor, Read};

use quick_xml::Reader;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::{Markup, Text, Unreadable, decode};
use body::Body;
use styles::Styles;

/// Maximum unpacked size of a document, counted while unpacking because an archive may lie about its sizes.
const MOST_BYTES: u64 = 64 * 1_024 * 1_024;

/// Maximum number of parts. Each picture is a part; an archive with more parts is not a document.
const MOST_PARTS: usize = 20_000;

/// The signature of the container of an encrypted document, which is not a ZIP archive.
const COMPOUND_FILE: &[u8] = &[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];

/// The text of a document.
pub(crate) fn text<'a>(bytes: &[u8]) -> Result<Text<'a>, Unreadable> {
    if bytes.starts_with(COMPOUND_FILE) {
        return Err(Unreadable::Encrypted);
    }
    let mut parts = Parts::open(bytes)?;
    let styles = parts.read("word/styles.xml")?.map(|part| Styles::read(&part)).unwrap_or_default();
    let name = parts.body_name();
    let main = parts.read(&name)?.ok_or_else(|| Unreadable::damaged("it has no body"))?;
    let mut body = Body::new(styles);
    let damage = body.read(&main);
    for notes in ["word/footnotes.xml", "word/endnotes.xml"] {
        // Notes are optional: errors in them must not discard the body.
        if let Ok(Some(part)) = parts.read(notes) {
            body.read(&part).ok();
        }
    }
    let text = body.finish();
    match damage {
        // The beginning of a damaged body is still useful.
        Err(what) if text.is_empty() => Err(Unreadable::Damaged { what }),
        _ => Ok(Text { text: text.into(), as_stored: false, pages: Vec::new(), markup: Markup::Markdown }),
    }
}

struct Parts<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    left: u64,
}

impl<'a> Parts<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(unreadable)?;
        if archive.len() > MOST_PARTS {
            return Err(Unreadable::TooLarge { what: "parts", limit: MOST_PARTS as u64 });
        }
        Ok(Self { archive, left: MOST_BYTES })
    }

    /// The usual name, or a numbered one, as some programs write.
    fn body_name(&self) -> String {
        const USUAL: &str = "word/document.xml";
        if self.archive.index_for_name_raw(USUAL.as_bytes()).is_some() {
            return USUAL.into();
        }
        let names = self.archive.file_names_raw().filter_map(|name| str::from_utf8(name).ok());
        let mut bodies = names.filter(|name| name.starts_with("word/document") && name.ends_with(".xml"));
        bodies.next().unwrap_or(USUAL).to_owned()
    }

    /// The text of a part, `None` when there is no such part.
    fn read(&mut self, name: &str) -> Result<Option<String>, Unreadable> {
        let Some(index) = self.archive.index_for_name_raw(name.as_bytes()) else { return Ok(None) };
        let part = self.archive.by_index(index).map_err(unreadable)?;
        let mut bytes = Vec::new();
        let taken = part.take(self.left + 1).read_to_end(&mut bytes);
        if bytes.len() as u64 > self.left {
            return Err(Unreadable::TooLarge { what: "unpacked bytes", limit: MOST_BYTES });
        }
        self.left -= bytes.len() as u64;
        if let Err(error) = taken
            && bytes.is_empty()
        {
            return Err(Unreadable::damaged(error.to_string()));
        }
        Ok(Some(match decode::decode(&bytes, None).0 {
            Cow::Borrowed(text) => text.to_owned(),
            Cow::Owned(text) => text,
        }))
    }
}

fn unreadable(error: ZipError) -> Unreadable {
    match error {
        ZipError::InvalidPassword => Unreadable::Encrypted,
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => Unreadable::Encrypted,
        error => Unreadable::damaged(error.to_string()),
    }
}

/// A reader that tolerates harmless errors.
fn xml(part: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(part.trim_start_matches('\u{feff}'));
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    reader
}

#[cfg(test)]
mod tests;
