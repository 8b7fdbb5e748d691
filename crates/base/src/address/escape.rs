//! Percent-encoding of ids in addresses. Only ASCII letters, digits and `._~-` may be unescaped, both when encoding and
//! when decoding: an id has one canonical spelling, and a stray `?`, `/` or space is reported instead of becoming part
//! of an id.

use super::{NotAnAddress, error::excerpt};
use crate::hex;

/// Encodes a name, escaping all bytes that need it.
pub(super) fn encode(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if plain(byte) {
            text.push(char::from(byte));
        } else {
            text.extend(["%", &hex::encode(&[byte]).to_ascii_uppercase()]);
        }
    }
    text
}

/// Decodes a name; escapes may be in either case.
pub(super) fn decode(text: &str) -> Result<String, NotAnAddress> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let (byte, taken) = match next {
            '%' => (escaped(rest)?, 3),
            _ => (raw(next)?, 1),
        };
        bytes.push(byte);
        rest = rest.get(taken..).unwrap_or_default();
    }
    String::from_utf8(bytes).map_err(|_| NotAnAddress::NotUtf8 { found: excerpt(text) })
}

fn escaped(text: &str) -> Result<u8, NotAnAddress> {
    let bytes = text.get(1..3).and_then(hex::decode);
    match bytes.as_deref() {
        Some([byte]) => Ok(*byte),
        _ => Err(NotAnAddress::Escape { found: text.chars().take(3).collect() }),
    }
}

fn raw(character: char) -> Result<u8, NotAnAddress> {
    u8::try_from(character).ok().filter(|byte| plain(*byte)).ok_or_else(|| NotAnAddress::Unescaped {
        found: character,
        escaped: encode(character.encode_utf8(&mut [0; 4])),
    })
}

const fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-')
}
