//! Fonts: the characters and widths of the codes in a string.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, SHIFT_JIS, UTF_16BE};
use lopdf::{Dictionary, Document, Object};

use super::cmap::CharacterMap;

/// Maximum unpacked size of the character map of a font.
const MOST_MAP: usize = 4 * 1_024 * 1_024;

/// The width assumed for a code without one, in thousandths: about that of a lowercase letter.
const USUAL_WIDTH: f32 = 500.0;

/// Name prefixes of PDF encodings that are also known outside PDF.
const KNOWN: &[(&str, &Encoding)] = &[
    ("90ms-RKSJ", SHIFT_JIS),
    ("90msp-RKSJ", SHIFT_JIS),
    ("EUC-", EUC_JP),
    ("GBK", GBK),
    ("GB-EUC", GBK),
    ("B5", BIG5),
    ("ETen-B5", BIG5),
    ("KSC", EUC_KR),
];

#[derive(Default)]
pub(super) struct Font {
    /// Whether codes have two bytes.
    wide: bool,
    map: CharacterMap,
    /// The characters of each one-byte code.
    table: Vec<String>,
    /// The encoding of strings that are encoded text.
    encoding: Option<&'static Encoding>,
    /// First code, last code and width; ascending.
    widths: Vec<(u32, u32, f32)>,
    default_width: f32,
    /// The size of a unit of width, relative to the font size.
    unit: f32,
}

impl Font {
    pub(super) fn read(document: &Document, font: &Dictionary) -> Self {
        let kind = font.get_deref(b"Subtype", document).and_then(Object::as_name).unwrap_or_default();
        let wide = kind == b"Type0";
        let mut read = Self {
            wide,
            map: character_map(document, font),
            unit: unit(document, font, kind),
            default_width: USUAL_WIDTH,
            ..Self::default()
        };
        if wide {
            read.encoding = encoding_of(document, font);
            read.take_wide_widths(document, font);
        } else {
            read.table = table(document, font);
            read.take_widths(document, font);
        }
        read.widths.sort_by_key(|(first, ..)| *first);
        read
    }

    /// Writes the characters of a string. Returns, for each code, its width relative to the font size and whether it is
    /// a space.
    pub(super) fn write(&self, bytes: &[u8], out: &mut String) -> Vec<(f32, bool)> {
        if let Some(encoding) = self.encoding.filter(|_| self.map.is_empty()) {
            let text = encoding.decode_without_bom_handling(bytes).0;
            text.chars().for_each(|each| push(each, out));
            return text.chars().map(|each| (if each.is_ascii() { 0.5 } else { 1.0 }, false)).collect();
        }
        let mut characters = String::new();
        let mut advances = Vec::new();
        for code in bytes.chunks(if self.wide { 2 } else { 1 }) {
            let code = code.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
            if !self.map.write(code, &mut characters) {
                characters.push_str(self.table.get(code as usize).map_or("", String::as_str));
            }
            advances.push((self.width(code), code == 32 && !self.wide));
        }
        characters.chars().for_each(|each| push(each, out));
        advances
    }

    fn width(&self, code: u32) -> f32 {
        let before = self.widths.partition_point(|(first, ..)| *first <= code);
        let width = match before.checked_sub(1).and_then(|index| self.widths.get(index)) {
            Some((_, last, width)) if code <= *last => *width,
            _ => self.default_width,
        };
        width * self.unit
    }

    fn take_widths(&mut self, document: &Document, font: &Dictionary) {
        let first = font.get_deref(b"FirstChar", document).and_then(Object::as_i64).unwrap_or(0);
        let widths = font.get_deref(b"Widths", document).and_then(Object::as_array);
        let codes = u32::try_from(first).unwrap_or(0)..=255;
        for (code, width) in codes.zip(widths.into_iter().flatten()) {
            self.take_width(document, code, code, width);
        }
    }

    /// Widths come as `first [width…]` or as `first last width`.
    fn take_wide_widths(&mut self, document: &Document, font: &Dictionary) {
        let descendants = font.get_deref(b"DescendantFonts", document).and_then(Object::as_array);
        let descendant = descendants.ok().and_then(|fonts| fonts.first());
        let Some(descendant) = descendant.and_then(|font| resolved(document, font).as_dict().ok()) else {
            return;
        };
        let default = descendant.get_deref(b"DW", document).and_then(Object::as_float);
        self.default_width = default.unwrap_or(1_000.0);
        let widths = descendant.get_deref(b"W", document).and_then(Object::as_array);
        let mut widths = widths.map_or([].as_slice(), Vec::as_slice);
        while let [first, second, rest @ ..] = widths {
            let Some(first) = code(document, first) else { return };
            let second = resolved(document, second);
            if let Ok(list) = second.as_array() {
                for (code, width) in (first..=u32::MAX).zip(list) {
                    self.take_width(document, code, code, width);
                }
                widths = rest;
            } else if let (Some(last), [width, rest @ ..]) = (code(document, second), rest) {
                self.take_width(document, first, last, width);
                widths = rest;
            } else {
                return;
            }
        }
    }

    fn take_width(&mut self, document: &Document, first: u32, last: u32, width: &Object) {
        if let Ok(width) = resolved(document, width).as_float() {
            self.widths.push((first, last, width));
        }
    }
}

/// Appends a character. Ligatures are expanded so that they can be searched; control characters are dropped.
fn push(character: char, out: &mut String) {
    match character {
        '\u{fb00}' => out.push_str("ff"),
        '\u{fb01}' => out.push_str("fi"),
        '\u{fb02}' => out.push_str("fl"),
        '\u{fb03}' => out.push_str("ffi"),
        '\u{fb04}' => out.push_str("ffl"),
        '\u{fb05}' | '\u{fb06}' => out.push_str("st"),
        '\t' | '\n' | '\r' | '\u{a0}' => out.push(' '),
        _ if character.is_control() => {}
        _ => out.push(character),
    }
}

fn resolved<'a>(document: &'a Document, object: &'a Object) -> &'a Object {
    document.dereference(object).map_or(&Object::Null, |(_, object)| object)
}

fn code(document: &Document, object: &Object) -> Option<u32> {
    resolved(document, object).as_i64().ok().and_then(|code| u32::try_from(code).ok())
}

fn unit(document: &Document, font: &Dictionary, kind: &[u8]) -> f32 {
    let matrix = font.get_deref(b"FontMatrix", document).and_then(Object::as_array);
    let scale = matrix.ok().and_then(|matrix| matrix.first()?.as_float().ok());
    scale.filter(|_| kind == b"Type3").unwrap_or(0.001)
}

fn character_map(document: &Document, font: &Dictionary) -> CharacterMap {
    let stream = font.get_deref(b"ToUnicode", document).and_then(Object::as_stream);
    let program = stream.and_then(|stream| stream.get_plain_content_with_limit(MOST_MAP));
    program.map_or_else(|_| CharacterMap::default(), |program| CharacterMap::read(&program))
}

fn encoding_of(document: &Document, font: &Dictionary) -> Option<&'static Encoding> {
    let name = font.get_deref(b"Encoding", document).and_then(Object::as_name).ok()?;
    let name = str::from_utf8(name).ok()?;
    if name.starts_with("Uni") {
        return (name.contains("UCS2") || name.contains("UTF16")).then_some(UTF_16BE);
    }
    KNOWN.iter().find(|(beginning, _)| name.starts_with(beginning)).map(|(_, encoding)| *encoding)
}

/// The characters of the 256 codes of a simple font: those of a named encoding, with the font's own differences.
fn table(document: &Document, font: &Dictionary) -> Vec<String> {
    let encoding = font.get_deref(b"Encoding", document).ok();
    let differences = encoding.and_then(|encoding| encoding.as_dict().ok());
    let base = match differences {
        Some(differences) => differences.get_deref(b"BaseEncoding", document).ok(),
        None => encoding,
    };
    let mut table = characters(document, base.filter(|base| base.as_name().is_ok()).cloned(), 0..=255);
    let list = differences.and_then(|dictionary| dictionary.get_deref(b"Differences", document).ok());
    let mut code = 0;
    for object in list.and_then(|list| list.as_array().ok()).into_iter().flatten().take(1_024) {
        match object {
            Object::Integer(next) => code = usize::try_from(*next).unwrap_or(usize::MAX - 1_024),
            Object::Name(_) => {
                if let Some(entry) = table.get_mut(code) {
                    *entry = glyph(document, object);
                }
                code += 1;
            }
            _ => {}
        }
    }
    table
}

/// The characters of a glyph name. The library resolves glyph names only as part of a font's differences.
fn glyph(document: &Document, name: &Object) -> String {
    let mut encoding = Dictionary::new();
    encoding.set("Differences", vec![Object::Integer(0), name.clone()]);
    characters(document, Some(encoding.into()), 0..=0).pop().unwrap_or_default()
}

fn characters(
    document: &Document,
    encoding: Option<Object>,
    codes: std::ops::RangeInclusive<u8>,
) -> Vec<String> {
    let mut font = Dictionary::new();
    font.set("Type", "Font");
    if let Some(encoding) = encoding {
        font.set("Encoding", encoding);
    }
    let encoding = font.get_font_encoding_with_limit(document, MOST_MAP);
    let character = |code| encoding.as_ref().ok().and_then(|known| known.bytes_to_string(&[code]).ok());
    codes.map(|code| character(code).unwrap_or_default()).collect()
}
