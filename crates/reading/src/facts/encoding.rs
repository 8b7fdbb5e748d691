//! The record of facts: a table of strings, then each list as varints that refer to it, compressed. `FORMAT.md` of the
//! index gives the bytes.

use super::{
    Ancestor, Definition, Facts, Heading, Import, ImportKind, Language, Link, LinkKind, Sketch, SymbolKind,
    Use, UseKind,
};
use std::cell::RefCell;

use foldhash::HashMap;
use zstd::bulk::{Compressor, Decompressor};

/// The first byte of a record that is not compressed. Another layout has another one.
const PLAIN: u8 = 1;
/// The first byte of a record that is compressed.
const COMPRESSED: u8 = 2;
/// Records shorter than this are not worth compressing.
const WORTH_COMPRESSING: usize = 128;
/// How hard zstd tries: the names of a file repeat each other, and any level finds that.
const LEVEL: i32 = 1;
/// Bytes of a record at most; a damaged one cannot ask for more memory.
const LONGEST_RECORD: usize = 256 << 20;

const IMPORT_KINDS: [ImportKind; 7] = [
    ImportKind::Named,
    ImportKind::All,
    ImportKind::Reexport,
    ImportKind::ReexportAll,
    ImportKind::Child,
    ImportKind::File,
    ImportKind::SystemFile,
];
const USE_KINDS: [UseKind; 5] =
    [UseKind::Call, UseKind::PathCall, UseKind::MemberCall, UseKind::Construct, UseKind::Mention];
const LINK_KINDS: [LinkKind; 7] = [
    LinkKind::Inline,
    LinkKind::Reference,
    LinkKind::Wiki,
    LinkKind::Image,
    LinkKind::Footnote,
    LinkKind::Include,
    LinkKind::Citation,
];

impl Facts {
    /// The record of these facts.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.write(&mut writer);
        let mut record = vec![PLAIN];
        put(&mut record, writer.strings.len() as u64);
        writer.strings.iter().for_each(|string| put(&mut record, string.len() as u64));
        writer.strings.iter().for_each(|string| record.extend_from_slice(string.as_bytes()));
        record.extend_from_slice(&writer.body);
        if record.len() < WORTH_COMPRESSING {
            return record;
        }
        compressed(&record).unwrap_or(record)
    }

    fn write<'a>(&'a self, to: &mut Writer<'a>) {
        let language =
            self.language.and_then(|language| Language::ALL.iter().position(|one| *one == language));
        to.number(language.map_or(0, |at| at as u64 + 1));
        to.number(u64::from(self.is_cut));
        to.string(&self.package);
        to.number(self.definitions.len() as u64);
        let (mut start, mut line) = (0i64, 0i64);
        for definition in &self.definitions {
            to.number(place(&SymbolKind::ALL, &definition.kind));
            to.string(&definition.name);
            // Most qualified names are the parent's and the own name.
            let usual =
                usual_qualified(self.language, &self.definitions, definition.parent, &definition.name);
            if definition.qualified == usual {
                to.number(0);
            } else {
                to.number(1);
                to.string(&definition.qualified);
            }
            to.number(definition.parent.map_or(0, |parent| u64::from(parent) + 1));
            to.signed(i64::from(definition.bytes.start) - start);
            to.number(u64::from(definition.bytes.end.saturating_sub(definition.bytes.start)));
            to.signed(i64::from(definition.lines.0) - line);
            to.number(u64::from(definition.lines.1.saturating_sub(definition.lines.0)));
            (start, line) = (definition.bytes.start.into(), definition.lines.0.into());
        }
        to.number(self.imports.len() as u64);
        line = 0;
        for import in &self.imports {
            to.number(place(&IMPORT_KINDS, &import.kind));
            [&import.module, &import.item, &import.local].into_iter().for_each(|text| to.string(text));
            to.line(&mut line, import.line);
        }
        to.number(self.uses.len() as u64);
        let mut from = 0i64;
        line = 0;
        for one in &self.uses {
            to.number(place(&USE_KINDS, &one.kind) * 2 + u64::from(!one.receiver_type.is_empty()));
            let definition = one.from.map_or(0, |from| i64::from(from) + 1);
            to.signed(definition - from);
            from = definition;
            to.string(&one.name);
            if !matches!(one.kind, UseKind::Call | UseKind::Mention | UseKind::Construct) {
                to.string(&one.receiver);
            }
            if !one.receiver_type.is_empty() {
                to.string(&one.receiver_type);
            }
            to.line(&mut line, one.line);
            to.number(one.count.into());
        }
        to.number(self.ancestors.len() as u64);
        line = 0;
        for ancestor in &self.ancestors {
            to.number(ancestor.implements.into());
            to.string(&ancestor.of);
            to.string(&ancestor.name);
            to.line(&mut line, ancestor.line);
        }
        self.write_prose(to);
    }

    fn write_prose<'a>(&'a self, to: &mut Writer<'a>) {
        to.number(self.headings.len() as u64);
        let (mut line, mut start) = (0i64, 0i64);
        for heading in &self.headings {
            to.number(heading.level.into());
            to.string(&heading.text);
            to.string(&heading.anchor);
            to.line(&mut line, heading.line);
            to.signed(i64::from(heading.start) - start);
            start = heading.start.into();
        }
        to.number(self.anchors.len() as u64);
        self.anchors.iter().for_each(|anchor| to.string(anchor));
        to.number(self.links.len() as u64);
        line = 0;
        for link in &self.links {
            to.number(place(&LINK_KINDS, &link.kind));
            [&link.target, &link.text, &link.title].into_iter().for_each(|text| to.string(text));
            to.line(&mut line, link.line);
        }
        to.number(self.tags.len() as u64);
        self.tags.iter().for_each(|tag| to.string(tag));
        to.number(self.sketch.is_some().into());
        if let Some(sketch) = &self.sketch {
            to.body.extend_from_slice(&sketch.to_bytes());
        }
    }

    /// The facts of a record; `None` when it is damaged or of another layout.
    pub fn decode(record: &[u8]) -> Option<Self> {
        if let Some((&COMPRESSED, rest)) = record.split_first() {
            return Self::decode_plain(&decompressed(rest)?);
        }
        Self::decode_plain(record)
    }

    fn decode_plain(record: &[u8]) -> Option<Self> {
        let mut reader = Reader::open(record)?;
        let mut facts = Self {
            language: match reader.number()? {
                0 => None,
                at => Some(*Language::ALL.get(at as usize - 1)?),
            },
            is_cut: reader.number()? != 0,
            package: reader.string()?,
            ..Self::default()
        };
        facts.read_code(&mut reader)?;
        facts.read_prose(&mut reader)?;
        reader.rest.is_empty().then_some(facts)
    }

    fn read_code(&mut self, from: &mut Reader<'_>) -> Option<()> {
        let (mut start, mut line) = (0i64, 0i64);
        for at in 0..from.count()? {
            let kind = *SymbolKind::ALL.get(from.number()? as usize)?;
            let name = from.string()?;
            let qualified = if from.number()? == 0 { None } else { Some(from.string()?) };
            let parent = match from.number()? {
                0 => None,
                parent if parent <= at as u64 => Some(parent as u32 - 1),
                _ => return None,
            };
            let qualified =
                qualified.unwrap_or_else(|| usual_qualified(self.language, &self.definitions, parent, &name));
            start = start.checked_add(from.signed()?)?;
            let (first, length) = (u32::try_from(start).ok()?, u32::try_from(from.number()?).ok()?);
            line = line.checked_add(from.signed()?)?;
            let (first_line, lines) = (u32::try_from(line).ok()?, u32::try_from(from.number()?).ok()?);
            let bytes = first..first.checked_add(length)?;
            let lines = (first_line, first_line.checked_add(lines)?);
            self.definitions.push(Definition { kind, name, qualified, parent, bytes, lines });
        }
        line = 0;
        for _ in 0..from.count()? {
            self.imports.push(Import {
                kind: *IMPORT_KINDS.get(from.number()? as usize)?,
                module: from.string()?,
                item: from.string()?,
                local: from.string()?,
                line: from.line(&mut line)?,
            });
        }
        line = 0;
        let mut definition = 0i64;
        for _ in 0..from.count()? {
            let number = from.number()?;
            let kind = *USE_KINDS.get(number as usize / 2)?;
            definition = definition.checked_add(from.signed()?)?;
            let inside = match u32::try_from(definition).ok()? {
                0 => None,
                at if at as usize <= self.definitions.len() => Some(at - 1),
                _ => return None,
            };
            let name = from.string()?;
            let receiver = match kind {
                UseKind::Call | UseKind::Mention | UseKind::Construct => String::new(),
                UseKind::PathCall | UseKind::MemberCall => from.string()?,
            };
            let receiver_type = if number % 2 == 1 { from.string()? } else { String::new() };
            let line = from.line(&mut line)?;
            let count = u32::try_from(from.number()?).ok()?;
            self.uses.push(Use { kind, from: inside, name, receiver, receiver_type, line, count });
        }
        line = 0;
        for _ in 0..from.count()? {
            self.ancestors.push(Ancestor {
                implements: from.number()? != 0,
                of: from.string()?,
                name: from.string()?,
                line: from.line(&mut line)?,
            });
        }
        Some(())
    }

    fn read_prose(&mut self, from: &mut Reader<'_>) -> Option<()> {
        let (mut line, mut start) = (0i64, 0i64);
        for _ in 0..from.count()? {
            let (level, text, anchor) = (u8::try_from(from.number()?).ok()?, from.string()?, from.string()?);
            let line = from.line(&mut line)?;
            start = start.checked_add(from.signed()?)?;
            self.headings.push(Heading { level, text, anchor, line, start: u32::try_from(start).ok()? });
        }
        for _ in 0..from.count()? {
            self.anchors.push(from.string()?);
        }
        line = 0;
        for _ in 0..from.count()? {
            self.links.push(Link {
                kind: *LINK_KINDS.get(from.number()? as usize)?,
                target: from.string()?,
                text: from.string()?,
                title: from.string()?,
                line: from.line(&mut line)?,
            });
        }
        for _ in 0..from.count()? {
            self.tags.push(from.string()?);
        }
        if from.number()? != 0 {
            let (sketch, rest) = from.rest.split_first_chunk::<{ Sketch::BYTES }>()?;
            from.rest = rest;
            self.sketch = Some(Sketch::from_bytes(sketch));
        }
        Some(())
    }
}

/// The compressed form of a record; `None` when it is no shorter.
fn compressed(record: &[u8]) -> Option<Vec<u8>> {
    thread_local! {
        static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(LEVEL).ok());
    }
    let body = COMPRESSOR.with_borrow_mut(|compressor| compressor.as_mut()?.compress(record).ok())?;
    let mut whole = vec![COMPRESSED];
    put(&mut whole, record.len() as u64);
    whole.extend_from_slice(&body);
    (whole.len() < record.len()).then_some(whole)
}

fn decompressed(rest: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader { strings: Vec::new(), rest };
    let length = usize::try_from(reader.number()?).ok().filter(|length| *length <= LONGEST_RECORD)?;
    // zstd makes at most a few thousand bytes out of one.
    if length / 100_000 > reader.rest.len() {
        return None;
    }
    thread_local! {
        static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = RefCell::new(Decompressor::new().ok());
    }
    let record = DECOMPRESSOR
        .with_borrow_mut(|decompressor| decompressor.as_mut()?.decompress(reader.rest, length).ok())?;
    (record.len() == length).then_some(record)
}

fn usual_qualified(
    language: Option<Language>,
    definitions: &[Definition],
    parent: Option<u32>,
    name: &str,
) -> String {
    match parent.and_then(|parent| definitions.get(parent as usize)) {
        Some(parent) => {
            format!("{}{}{name}", parent.qualified, language.map_or(".", Language::separator))
        }
        None => name.to_owned(),
    }
}

fn place<T: PartialEq>(all: &[T], one: &T) -> u64 {
    all.iter().position(|known| known == one).unwrap_or(0) as u64
}

fn put(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Collects numbers, and each string once.
#[derive(Default)]
struct Writer<'a> {
    strings: Vec<&'a str>,
    places: HashMap<&'a str, u64>,
    body: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn number(&mut self, number: u64) {
        put(&mut self.body, number);
    }

    fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)) as u64);
    }

    fn line(&mut self, last: &mut i64, line: u32) {
        self.signed(i64::from(line) - *last);
        *last = line.into();
    }

    /// The empty string is number 0.
    fn string(&mut self, text: &'a str) {
        if text.is_empty() {
            return self.number(0);
        }
        let next = self.strings.len() as u64 + 1;
        let place = *self.places.entry(text).or_insert(next);
        if place == next {
            self.strings.push(text);
        }
        self.number(place);
    }
}

struct Reader<'a> {
    strings: Vec<&'a str>,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn open(record: &'a [u8]) -> Option<Self> {
        let (layout, rest) = record.split_first()?;
        if *layout != PLAIN {
            return None;
        }
        let mut reader = Self { strings: Vec::new(), rest };
        let count = reader.count()?;
        let mut lengths = Vec::with_capacity(count);
        for _ in 0..count {
            lengths.push(usize::try_from(reader.number()?).ok()?);
        }
        for length in lengths {
            let (string, rest) = reader.rest.split_at_checked(length)?;
            reader.strings.push(std::str::from_utf8(string).ok()?);
            reader.rest = rest;
        }
        Some(reader)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The length of a list. Each entry takes at least a byte, so a damaged record cannot ask for memory.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.rest.len()).then_some(count)
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn line(&mut self, last: &mut i64) -> Option<u32> {
        *last = last.checked_add(self.signed()?)?;
        u32::try_from(*last).ok()
    }

    fn string(&mut self) -> Option<String> {
        match self.number()? {
            0 => Some(String::new()),
            at => Some((*self.strings.get(usize::try_from(at).ok()? - 1)?).to_owned()),
        }
    }
}
