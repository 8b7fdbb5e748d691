//! Decodes bytes in any encoding to UTF-8.
//!
//! Almost every document is already UTF-8 and is borrowed unchanged. For the others, the sources of the encoding in
//! order of trust are: a byte order mark, the document's own declaration, the pattern of UTF-8 with a few broken bytes,
//! and a guess.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

/// Number of bytes at the beginning in which a document may declare its encoding.
const DECLARATION: usize = 1_024;

/// Number of bytes that the guess examines, from just before the first non-ASCII byte. The guess is slow, and more
/// bytes do not improve it.
const EVIDENCE: usize = 256 * 1_024;

/// The text of `bytes`, and whether it consists of exactly those bytes.
pub(crate) fn decode<'a>(bytes: &'a [u8], declared: Option<&'static Encoding>) -> (Cow<'a, str>, bool) {
    match Encoding::for_bom(bytes) {
        Some((encoding, mark)) if encoding != UTF_8 => return (decoded(encoding, &bytes[mark..]), false),
        _ => {}
    }
    if let Ok(text) = str::from_utf8(bytes) {
        return (Cow::Borrowed(text), true);
    }
    let text = match declared {
        Some(encoding) if encoding != UTF_8 => decoded(encoding, bytes),
        _ if is_broken_utf8(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
        _ => decoded(guess(bytes), bytes),
    };
    (text, false)
}

fn decoded(encoding: &'static Encoding, bytes: &[u8]) -> Cow<'static, str> {
    encoding.decode_without_bom_handling(bytes).0.into_owned().into()
}

/// The encoding that a web page or XML document declares near its beginning.
pub(crate) fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(DECLARATION)].to_ascii_lowercase();
    [b"charset=".as_slice(), b"encoding="].into_iter().find_map(|key| {
        let at = head.windows(key.len()).position(|window| window == key)? + key.len();
        let label = head[at..].trim_ascii_start();
        let label = label.strip_prefix(b"\"").or(label.strip_prefix(b"'")).unwrap_or(label);
        let end = label.iter().position(|byte| !is_label(*byte)).unwrap_or(label.len());
        // A declaration that was found by searching for ASCII bytes cannot be right about UTF-16.
        Encoding::for_label(&label[..end]).filter(|found| found.is_ascii_compatible())
    })
}

fn is_label(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_:.".contains(&byte)
}

/// Whether this is UTF-8 that is damaged in a few places. One broken character must not garble every accented letter of
/// a whole log, which is what guessing another encoding would do.
fn is_broken_utf8(bytes: &[u8]) -> bool {
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        // Every non-ASCII character begins with a byte of at least 0xC0.
        whole += chunk.valid().bytes().filter(|byte| *byte >= 0xC0).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    broken * 10 <= whole
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let first = bytes.iter().position(|byte| *byte >= 128).unwrap_or(0).saturating_sub(64);
    let evidence = &bytes[first..];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&evidence[..evidence.len().min(EVIDENCE)], evidence.len() <= EVIDENCE);
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use encoding_rs::SHIFT_JIS;

    use super::*;

    fn check(bytes: &[u8], expect: &str) {
        let (text, as_stored) = decode(bytes, None);
        assert_eq!(text, expect);
        assert!(!as_stored);
    }

    #[test]
    fn older_encodings_are_recognised() {
        check(b"Un caf\xe9 au lait, s'il vous pla\xeet, et \xe0 bient\xf4t.", {
            "Un café au lait, s'il vous plaît, et à bientôt."
        });
        let text = "これは日本語の文章です。図書館で本を読みます。";
        check(&SHIFT_JIS.encode(text).0, text);
    }

    #[test]
    fn byte_order_marks_identify_utf_16() {
        let units: Vec<u16> = "Grüße 日本 𝄞\n".encode_utf16().collect();
        let little = units.iter().flat_map(|unit| unit.to_le_bytes());
        let big = units.iter().flat_map(|unit| unit.to_be_bytes());
        check(&[0xFF, 0xFE].into_iter().chain(little).collect::<Vec<_>>(), "Grüße 日本 𝄞\n");
        check(&[0xFE, 0xFF].into_iter().chain(big).collect::<Vec<_>>(), "Grüße 日本 𝄞\n");
        check(&[0xFF, 0xFE, 0x41, 0x00, 0x42], "A\u{fffd}");
    }

    #[test]
    fn a_broken_character_does_not_change_the_encoding() {
        let mut bytes = "Größe, Maß, Übung, Äpfel, Öl, süß, früh, spät, schön, für ".as_bytes().to_vec();
        bytes.push(0xC3);
        let (text, _) = decode(&bytes, None);
        assert!(text.starts_with("Größe") && text.ends_with("für \u{fffd}"), "{text}");
    }

    #[test]
    fn declared_encodings_are_used() {
        let page = b"<meta charset=\"windows-1251\"><p>\xcf\xf0\xe8\xe2\xe5\xf2</p>";
        assert!(decode(page, declared(page)).0.contains("Привет"));
        let page = b"<?xml version='1.0' encoding='iso-8859-2'?><p>\xb1</p>";
        assert!(decode(page, declared(page)).0.contains('ą'));
        assert_eq!(declared(b"charset="), None);
        assert_eq!(declared(b"charset=utf-16"), None);
    }
}
