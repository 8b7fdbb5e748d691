//! Checks the row widths of predictors. The library allocates two rows of the width that a stream declares before it
//! checks whether the stream contains any, so a file of a few kilobytes could request gigabytes.
//!
//! The dictionaries of streams are never compressed, so a scan over the names in the file finds them all.

/// Maximum number of samples in a row, more than in any real image.
const WIDEST: u64 = 1 << 20;
/// Maximum number of components in a sample.
const MOST_COLORS: u64 = 64;
/// Maximum number of bits in a component.
const MOST_BITS: u64 = 32;

/// Whether any stream declares implausibly wide rows.
pub(super) fn are_too_wide(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(slash) = memchr::memchr(b'/', rest) {
        rest = &rest[slash + 1..];
        let length = rest.iter().position(|byte| !is_regular(*byte)).unwrap_or(rest.len());
        let name = &rest[..length];
        rest = &rest[length..];
        let limit = match name.first() {
            // The first letter of one of the three names, or the start of an escaped letter.
            Some(b'C' | b'B' | b'#') => limit_of(&plain(name)),
            _ => None,
        };
        if limit.is_some_and(|limit| number_at(rest).is_some_and(|number| number > limit)) {
            return true;
        }
    }
    false
}

fn limit_of(name: &[u8]) -> Option<u64> {
    match name {
        b"Columns" => Some(WIDEST),
        b"Colors" => Some(MOST_COLORS),
        b"BitsPerComponent" => Some(MOST_BITS),
        _ => None,
    }
}

const fn is_regular(byte: u8) -> bool {
    !byte.is_ascii_whitespace()
        && byte != 0
        && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

/// A name with escapes such as `#4C` decoded.
fn plain(name: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(name.len().min(64));
    let mut rest = &name[..name.len().min(128)];
    while let Some((first, after)) = rest.split_first() {
        let code =
            after.get(..2).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match code.filter(|_| *first == b'#') {
            Some(letter) => {
                plain.push(letter);
                rest = &after[2..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

/// The next number, after whitespace and comments.
fn number_at(mut rest: &[u8]) -> Option<u64> {
    loop {
        let space = rest.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != 0)?;
        rest = &rest[space..];
        if rest.first() != Some(&b'%') {
            break;
        }
        rest = &rest[rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?..];
    }
    let rest = rest.strip_prefix(b"+").unwrap_or(rest);
    let length = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    let digits = std::str::from_utf8(&rest[..length]).ok()?;
    // A number that does not fit exceeds every limit.
    (!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_implausible_widths_are_rejected() {
        for fine in [
            "/Columns 5",
            "/Columns 99999 /Colors 3",
            "/Column 9999999999",
            "/Columns 7 0 R",
            "/Columns",
            "/",
        ] {
            assert!(!are_too_wide(fine.as_bytes()), "{fine}");
        }
        for wide in [
            "<</Predictor 12/Columns 2147483647>>",
            "/Col#75mns 2147483647",
            "/Columns % a comment\n 2147483647",
            "/Columns\u{0}99999999999999999999999",
            "/Colors 2147483647",
            "/BitsPerComponent 2147483647",
        ] {
            assert!(are_too_wide(wide.as_bytes()), "{wide}");
        }
    }
}
