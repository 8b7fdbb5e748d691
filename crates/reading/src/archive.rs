//! Documents that are ZIP archives of XML parts: bounded, and with clear errors.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Cursor, Read};

use quick_xml::{
    Reader, XmlVersion,
    events::{BytesRef, BytesStart, Event},
};
use zip::{ZipArchive, result::ZipError};

use crate::{Unreadable, decode};

/// Maximum unpacked size of a document, counted while unpacking because an archive may lie about its sizes.
pub(crate) const MOST_BYTES: u64 = 64 * 1_024 * 1_024;

/// Maximum number of parts. Each picture is a part; an archive with more parts is not a document.
const MOST_PARTS: usize = 20_000;

/// The signature of the container of an encrypted document, which is not a ZIP archive.
pub(crate) const COMPOUND_FILE: &[u8] = &[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];

pub(crate) struct Parts<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    left: u64,
}

impl<'a> Parts<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        if bytes.starts_with(COMPOUND_FILE) {
            return Err(Unreadable::Encrypted);
        }
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(unreadable)?;
        if archive.len() > MOST_PARTS {
            return Err(Unreadable::TooLarge { what: "parts", limit: MOST_PARTS as u64 });
        }
        Ok(Self { archive, left: MOST_BYTES })
    }

    /// The names of all parts, in the order of the archive.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.archive.file_names_raw().filter_map(|name| str::from_utf8(name).ok());
        names.map(str::to_owned).collect()
    }

    /// The text of a part, `None` when there is no such part.
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<String>, Unreadable> {
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
pub(crate) fn xml(part: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(part.trim_start_matches('\u{feff}'));
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    reader
}

/// The value of an attribute, whatever its namespace.
pub(crate) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    // The check compares all pairs of attributes, and a duplicate does no harm here.
    attributes.with_checks(false);
    let found = attributes.flatten().find(|attribute| attribute.key.local_name().as_ref() == name)?;
    found.normalized_value(XmlVersion::Implicit1_0).ok().map(|value| value.into_owned())
}

/// The text of a reference such as `&amp;` or `&#8364;`.
pub(crate) fn reference(reference: &BytesRef<'_>) -> String {
    match reference.resolve_char_ref() {
        Ok(Some(character)) => character.to_string(),
        _ => quick_xml::escape::resolve_xml_entity(reference).unwrap_or_default().to_owned(),
    }
}

/// The targets of a part's relationships by id, as names of parts.
pub(crate) fn relationships(parts: &mut Parts<'_>, folder: &str, part: &str) -> HashMap<String, String> {
    let Ok(Some(xml_text)) = parts.read(&format!("{folder}_rels/{part}.rels")) else { return HashMap::new() };
    let mut found = HashMap::new();
    let mut reader = xml(&xml_text);
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == "Relationship" => {
                if let (Some(id), Some(target)) = (attribute(&tag, "Id"), attribute(&tag, "Target")) {
                    found.insert(id, joined(folder, &target));
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    found
}

/// A name that is relative to a folder of the archive.
pub(crate) fn joined(folder: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in target.split('/') {
        match name {
            "." | "" => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.join("/")
}
