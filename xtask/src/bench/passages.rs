//! Passages for the other search engines: pieces of files, split at line ends.

/// A piece ends with the line that reaches this many bytes.
const BYTES: usize = 1_600;

/// The pieces of a text, in order.
pub fn of(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(end(rest));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let line_end = bytes.iter().skip(BYTES - 1).position(|byte| *byte == b'\n');
    line_end.map_or(text.len(), |at| BYTES + at)
}

#[cfg(test)]
mod tests {
    use super::{BYTES, of};

    #[test]
    fn pieces_end_with_lines_and_make_up_the_text() {
        let text = "a line of twenty one\n".repeat(500) + "no end";
        let pieces: Vec<&str> = of(&text).collect();
        assert_eq!(pieces.concat(), text);
        let (last, whole) = pieces.split_last().unwrap();
        assert!(
            whole.iter().all(|piece| piece.ends_with('\n') && (BYTES..BYTES + 21).contains(&piece.len()))
        );
        assert!(last.ends_with("no end"));
        assert_eq!(of("").count(), 0);
    }
}
