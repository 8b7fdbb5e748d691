//! Names of files that are not Unicode, as text and back.
//!
//! The library names documents with text. A file system takes any bytes but `/` and NUL. A name that is not Unicode is
//! stored with each byte that fits nowhere written as U+FFFD and two hexadecimal digits, and a restored file gets its
//! very bytes back. Every other name is stored as it is, except one that looks as if it had been escaped: its U+FFFD are
//! escaped too, so that no two files share a name. Bytes below 0x80 are never escaped nor restored: no escape can stand
//! for a slash or a dot.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

const MARK: char = '\u{fffd}';

/// A path as text, each part for itself.
pub fn path_text(path: &Path) -> String {
    if let Some(text) = path.to_str().filter(|text| !text.contains(MARK)) {
        return text.to_owned();
    }
    let parts: Vec<String> = path.as_os_str().as_bytes().split(|byte| *byte == b'/').map(escaped).collect();
    parts.join("/")
}

/// The path that a text stands for.
pub fn text_path(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let after = &rest[at + MARK.len_utf8()..];
        match escaped_byte(after) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.extend_from_slice(MARK.to_string().as_bytes());
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    OsString::from_vec(bytes).into()
}

fn escaped(part: &[u8]) -> String {
    let chunks: Vec<_> = part.utf8_chunks().collect();
    let is_text = chunks.iter().all(|chunk| chunk.invalid().is_empty());
    let looks_escaped = |text: &str| {
        text.match_indices(MARK).any(|(at, _)| escaped_byte(&text[at + MARK.len_utf8()..]).is_some())
    };
    if let Some(text) = OsStr::from_bytes(part).to_str().filter(|text| is_text && !looks_escaped(text)) {
        return text.to_owned();
    }
    let escape = |bytes: &[u8]| bytes.iter().map(|byte| format!("{MARK}{byte:02X}")).collect::<String>();
    let own = escape(MARK.to_string().as_bytes());
    chunks.iter().map(|chunk| chunk.valid().replace(MARK, &own) + &escape(chunk.invalid())).collect()
}

/// The byte that two capital hexadecimal digits stand for, when it can be part of what is not Unicode.
fn escaped_byte(text: &str) -> Option<u8> {
    let digits = text.get(..2)?;
    let is_digit = |digit: u8| digit.is_ascii_digit() || (b'A'..=b'F').contains(&digit);
    let byte = u8::from_str_radix(digits, 16).ok()?;
    (digits.bytes().all(is_digit) && byte >= 0x80).then_some(byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_read_well_and_come_back() {
        let check = |bytes: &[u8], expected: &str| {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(path_text(path), expected);
            assert_eq!(text_path(expected), path);
        };
        check(b"/home/ada/notes.md", "/home/ada/notes.md");
        check("日本/ü.md".as_bytes(), "日本/ü.md");
        check(b"/old/caf\xe9.txt", "/old/caf\u{fffd}E9.txt");
        check("odd\u{fffd}name".as_bytes(), "odd\u{fffd}name");
        check("\u{fffd}E9".as_bytes(), "\u{fffd}EF\u{fffd}BF\u{fffd}BDE9");
    }

    #[test]
    fn no_escape_stands_for_a_slash_or_a_dot() {
        for text in ["a\u{fffd}2Fb", "\u{fffd}2E\u{fffd}2E/x", "\u{fffd}00"] {
            assert_eq!(text_path(text), Path::new(text));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in proptest::collection::vec(prop_oneof![
            any::<u8>(), Just(b'/'), Just(0xef), Just(0xbf), Just(0xbd), Just(b'E'), Just(b'9')], 0..24))
        {
            let path = PathBuf::from(OsString::from_vec(bytes.clone()));
            prop_assert_eq!(text_path(&path_text(&path)).into_os_string().into_vec(), bytes);
        }
    }
}
