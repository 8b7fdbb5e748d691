//! How a file was spelt in base64, so that it is given back as it came.
//!
//! What is stored of a file is its bytes. Their base64 comes in one line, or in lines as `base64` and MIME write it, with
//! or without padding, and sometimes behind the beginning of a `data:` address. That is kept in a few characters behind the
//! type of the document: `pdf;76;lf;1;=;` is a file in lines of 76 characters that ended with one line end.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use shelf_catalog::Document;

/// Most characters of what stands before the base64.
const BEFORE_CHARS: usize = 128;

/// A way to write bytes in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spelling {
    /// What stands before it: nothing, or `data:…;base64,`.
    before: String,
    /// Characters of a line; 0 when it is one line.
    width: usize,
    /// Whether lines end as on Windows.
    has_carriage_returns: bool,
    /// Line ends at its end.
    ends: usize,
    /// Whether the padding at its end is left out.
    is_unpadded: bool,
}

impl Spelling {
    /// Reads base64; `None` when the text is none, or is none that could be written again exactly as it is.
    pub(super) fn read(text: &str) -> Option<(Self, Vec<u8>)> {
        let (before, rest) = parts(text)?;
        let has_carriage_returns = rest.contains("\r\n");
        let line_end = if has_carriage_returns { "\r\n" } else { "\n" };
        let body = rest.trim_end_matches(line_end);
        let compact: String = body.split(line_end).collect();
        let spelling = Self {
            before: before.to_owned(),
            width: body.find(line_end).unwrap_or(0),
            has_carriage_returns,
            ends: (rest.len() - body.len()) / line_end.len(),
            is_unpadded: !compact.len().is_multiple_of(4),
        };
        let decoded =
            if spelling.is_unpadded { STANDARD_NO_PAD.decode(&compact) } else { STANDARD.decode(&compact) };
        let bytes = decoded.ok().filter(|bytes| !bytes.is_empty())?;
        (spelling.write(&bytes) == text).then_some((spelling, bytes))
    }

    /// Writes bytes in this way.
    pub(super) fn write(&self, bytes: &[u8]) -> String {
        let line_end = if self.has_carriage_returns { "\r\n" } else { "\n" };
        let compact = if self.is_unpadded { STANDARD_NO_PAD.encode(bytes) } else { STANDARD.encode(bytes) };
        if self.before.is_empty() && self.width == 0 && self.ends == 0 {
            return compact;
        }
        let lines = compact.len() / self.width.max(1) + self.ends;
        let mut text = String::with_capacity(self.before.len() + compact.len() + 2 * lines);
        text.push_str(&self.before);
        let mut rest = compact.as_str();
        while self.width > 0 && rest.len() > self.width {
            let (line, after) = rest.split_at(self.width);
            text.push_str(line);
            text.push_str(line_end);
            rest = after;
        }
        text.push_str(rest);
        text.extend(std::iter::repeat_n(line_end, self.ends));
        text
    }

    /// A type with this spelling behind it, as the catalog keeps it.
    pub(super) fn behind(&self, word: &str) -> String {
        if *self == Self::default() {
            return word.to_owned();
        }
        let line_end = if self.has_carriage_returns { "crlf" } else { "lf" };
        let padding = if self.is_unpadded { "-" } else { "=" };
        format!("{word};{};{line_end};{};{padding};{}", self.width, self.ends, self.before)
    }

    /// How a document was spelt; in one line when nothing is said of it.
    pub(super) fn of(document: &Document) -> Self {
        document.document_type.as_deref().and_then(Self::parse).unwrap_or_default()
    }

    fn parse(kept: &str) -> Option<Self> {
        let mut fields = kept.splitn(6, ';').skip(1);
        Some(Self {
            width: fields.next()?.parse().ok()?,
            has_carriage_returns: fields.next()? == "crlf",
            ends: fields.next()?.parse().ok()?,
            is_unpadded: fields.next()? == "-",
            before: fields.next()?.to_owned(),
        })
    }
}

/// A type as its author gave it, without the spelling behind it.
pub(super) fn word_of(kept: &str) -> &str {
    kept.split_once(';').map_or(kept, |(word, _)| word)
}

/// The bytes of base64 with spaces and line ends anywhere.
pub(super) fn read_loosely(text: &str) -> Option<Vec<u8>> {
    let (_, rest) = parts(text.trim_start())?;
    let compact: String =
        rest.chars().filter(|character| !character.is_ascii_whitespace() && *character != '=').collect();
    STANDARD_NO_PAD.decode(compact).ok()
}

/// What stands before base64, and the base64. `None` for a `data:` address of another kind.
fn parts(text: &str) -> Option<(&str, &str)> {
    if !text.starts_with("data:") {
        return Some(("", text));
    }
    let (head, _) = text.split_once(";base64,")?;
    let end = head.len() + ";base64,".len();
    let is_plain = end <= BEFORE_CHARS && head.bytes().all(|byte| byte.is_ascii_graphic());
    is_plain.then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, width: usize, line_end: &str) -> String {
        let lines: Vec<&str> =
            text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
        lines.join(line_end)
    }

    #[test]
    fn what_was_read_is_written_again_as_it_was() {
        for length in [1, 2, 3, 47, 48, 57, 300] {
            let bytes: Vec<u8> = (0..length).map(|number| (number * 7) as u8).collect();
            let plain = STANDARD.encode(&bytes);
            let mut texts = vec![plain.clone(), STANDARD_NO_PAD.encode(&bytes)];
            texts.push(format!("data:application/pdf;base64,{plain}"));
            for width in [1, 4, 64, 76] {
                for line_end in ["\n", "\r\n"] {
                    let wrapped = lines(&plain, width, line_end);
                    texts.push(format!("{wrapped}{line_end}{line_end}"));
                    texts.push(format!("{wrapped}{line_end}"));
                    texts.push(wrapped);
                }
            }
            for text in texts {
                let (spelling, read) = Spelling::read(&text).unwrap_or_else(|| panic!("{text:?}"));
                assert_eq!((&read, spelling.write(&read)), (&bytes, text.clone()));
                let kept = spelling.behind("pdf");
                assert_eq!(word_of(&kept), "pdf");
                assert_eq!(Spelling::parse(&kept).unwrap_or_default(), spelling, "{kept}");
                assert_eq!(text == plain, kept == "pdf", "{kept}");
            }
        }
    }

    #[test]
    fn what_could_not_be_written_again_is_not_read() {
        let long = STANDARD.encode([5; 90]);
        let (first, second) = long.split_at(40);
        for text in [
            String::new(),
            "\n".into(),
            "no base64".into(),
            format!("{first}\n{}\n{}", &second[..10], &second[10..]),
            format!("{first}\n\n{second}"),
            format!("{first}\n{second}\r\n"),
            format!(" {long}"),
            format!("{long} "),
            format!("data:{long}"),
            "QQ=".into(),
            "QR==".into(),
        ] {
            assert_eq!(Spelling::read(&text), None, "{text:?}");
        }
        assert_eq!(read_loosely(&format!(" {first} \n\t{second}\r\n")).unwrap(), [5; 90]);
    }
}
