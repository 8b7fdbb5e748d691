//! Lines of stored bytes, in whatever encoding they are.

use shelf_base::address::Lines;

/// Lines with their own bytes, and nothing else.
pub(super) fn cut_lines(bytes: &[u8], lines: Lines) -> &[u8] {
    // A line break of UTF-16 and UTF-32, in the order of bytes that the mark tells.
    let line_break: &[u8] = match bytes {
        [0xFF, 0xFE, 0, 0, ..] => &[b'\n', 0, 0, 0],
        [0xFF, 0xFE, ..] => &[b'\n', 0],
        [0, 0, 0xFE, 0xFF, ..] => &[0, 0, 0, b'\n'],
        [0xFE, 0xFF, ..] => &[0, b'\n'],
        _ => b"\n",
    };
    let (first, last) = (u64::from(lines.first()), u64::from(lines.last()));
    let (mut line, mut start, mut end) = (1, if first == 1 { Some(0) } else { None }, bytes.len());
    let mut passed = |after: usize| {
        line += 1;
        if line == first {
            start = Some(after);
        }
        if line == last + 1 {
            end = after;
        }
        line > last
    };
    let width = line_break.len();
    if width == 1 {
        for at in memchr::memchr_iter(b'\n', bytes) {
            if passed(at + 1) {
                break;
            }
        }
    } else {
        for (at, unit) in bytes.chunks_exact(width).enumerate() {
            if unit == line_break && passed(width * (at + 1)) {
                break;
            }
        }
    }
    bytes.get(start.unwrap_or(bytes.len())..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_bytes() {
        fn cut(bytes: &[u8], first: u32, last: u32) -> &[u8] {
            cut_lines(bytes, Lines::new(first, last).unwrap())
        }
        let text = b"one\r\ntwo\n\nfour";
        assert_eq!(cut(text, 1, 1), b"one\r\n");
        assert_eq!(cut(text, 2, 3), b"two\n\n");
        assert_eq!(cut(text, 4, 4), b"four");
        assert_eq!(cut(text, 1, 4), text);
        assert_eq!(cut(b"caf\xe9\nx\n", 1, 1), b"caf\xe9\n");
        let wide = [0xFF, 0xFE, b'a', 0, b'\n', 0, 0x0A, 0x0A, b'\n', 0, b'c', 0];
        assert_eq!(cut(&wide, 2, 2), [0x0A, 0x0A, b'\n', 0]);
        assert_eq!(cut(&wide, 1, 1), [0xFF, 0xFE, b'a', 0, b'\n', 0]);
        assert_eq!(cut(&wide, 3, 3), [b'c', 0]);
        let wider = [0xFF, 0xFE, 0, 0, 0, 0x0A, 0, 0, b'\n', 0, 0, 0, b'c', 0, 0, 0];
        assert_eq!(cut(&wider, 2, 2), [b'c', 0, 0, 0]);
    }
}
