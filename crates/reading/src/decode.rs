//! From bytes in whatever encoding to UTF-8.
//!
//! Almost every document is UTF-8 already and is lent unchanged. For the others the order of trust is: a mark at the
//! beginning, what the document says of itself, the pattern of a UTF-8 text with a few broken bytes, a guess.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

/// Bytes of the beginning in which a document may declare its encoding.
const DECLARATION: usize = 1_024;

/// Bytes that the guess looks at, counted from the first one that tells encodings apart. The guess does not become
/// better with more, and it is slow.
const EVIDENCE: usize = 256 * 1_024;

/// The text of `bytes`, and whether it is those bytes as they are.
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

/// The encoding that a web page or XML document names near its beginning.
pub(crate) fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(DECLARATION)].to_ascii_lowercase();
    [b"charset=".as_slice(), b"encoding="].into_iter().find_map(|key| {
        let at = head.windows(key.len()).position(|window| window == key)? + key.len();
        let label = head[at..].trim_ascii_start();
        let label = label.strip_prefix(b"\"").or(label.strip_prefix(b"'")).unwrap_or(label);
        let end = label.iter().position(|byte| !is_label(*byte)).unwrap_or(label.len());
        // A page that is read as bytes and says UTF-16 does not speak of these bytes.
        Encoding::for_label(&label[..end]).filter(|found| found.is_ascii_compatible())
    })
}

fn is_label(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_:.".contains(&byte)
}

/// Whether this is UTF-8 that something damaged in a few places. One torn character must not turn the accents of a
/// whole log into pairs of odd letters, which is what a guess among the other encodings would do.
fn is_broken_utf8(bytes: &[u8]) -> bool {
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        // Every character beyond ASCII begins with a byte from 0xC0.
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
    fn marks_tell_the_wide_ones() {
        let units: Vec<u16> = "Grüße 日本 𝄞\n".encode_utf16().collect();
        let little = units.iter().flat_map(|unit| unit.to_le_bytes());
        let big = units.iter().flat_map(|unit| unit.to_be_bytes());
        check(&[0xFF, 0xFE].into_iter().chain(little).collect::<Vec<_>>(), "Grüße 日本 𝄞\n");
        check(&[0xFE, 0xFF].into_iter().chain(big).collect::<Vec<_>>(), "Grüße 日本 𝄞\n");
        check(&[0xFF, 0xFE, 0x41, 0x00, 0x42], "A\u{fffd}");
    }

    #[test]
    fn a_torn_character_stays_one() {
        let mut bytes = "Größe, Maß, Übung, Äpfel, Öl, süß, früh, spät, schön, für ".as_bytes().to_vec();
        bytes.push(0xC3);
        let (text, _) = decode(&bytes, None);
        assert!(text.starts_with("Größe") && text.ends_with("für \u{fffd}"), "{text}");
    }

    #[test]
    fn declarations_are_believed() {
        let page = b"<meta charset=\"windows-1251\"><p>\xcf\xf0\xe8\xe2\xe5\xf2</p>";
        assert!(decode(page, declared(page)).0.contains("Привет"));
        let page = b"<?xml version='1.0' encoding='iso-8859-2'?><p>\xb1</p>";
        assert!(decode(page, declared(page)).0.contains('ą'));
        assert_eq!(declared(b"charset="), None);
        assert_eq!(declared(b"charset=utf-16"), None);
    }
}
