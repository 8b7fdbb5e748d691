//! The entry point from bytes to text: passes a document to the reader for its type.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use shelf_base::{ErrorInfo, Kind};

use crate::{Layout, book, decode, docx, extension_of, html, pdf, sheets, slides};

/// The structure of a text, which determines how it is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markup {
    /// Headings, paragraphs and fences.
    Markdown,
    /// Paragraphs and sentences.
    Plain,
    /// Lines, with blank lines between items.
    Code,
}

/// The searchable text of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// UTF-8, never longer than `u32::MAX` bytes.
    pub text: Cow<'a, str>,
    /// Whether `text` is the document's bytes as stored, so that offsets in it are offsets in the blob.
    pub as_stored: bool,
    /// Byte offset where each page begins; empty when there are no pages.
    pub pages: Vec<u32>,
    /// Its structure.
    pub markup: Markup,
    /// Where its lines stand on the pages, and its bookmarks.
    pub layout: Layout,
}

impl<'a> Text<'a> {
    /// Text that was made of a document, without pages.
    pub(crate) fn made(text: String, markup: Markup) -> Self {
        Self {
            text: Cow::Owned(text),
            as_stored: false,
            pages: Vec::new(),
            markup,
            layout: Layout::default(),
        }
    }
}

/// Why a document has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The bytes do not match the type.
    #[error("the document is damaged: {what}")]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// The document, or what it unpacks to, is larger than a bound.
    #[error("the document is too large: more than {limit} {what}")]
    TooLarge {
        /// What was measured.
        what: &'static str,
        /// The limit, in the unit of `what`.
        limit: u64,
    },
    /// It needs a password.
    #[error("the document is encrypted")]
    Encrypted,
}

impl Unreadable {
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }
}

impl ErrorInfo for Unreadable {
    fn kind(&self) -> Kind {
        match self {
            Self::Damaged { .. } | Self::Encrypted => Kind::Invalid,
            Self::TooLarge { .. } => Kind::TooLarge,
        }
    }

    fn hints(&self) -> Vec<String> {
        vec![match self {
            Self::Damaged { .. } => "open the document in the program that made it and save it again".into(),
            Self::TooLarge { .. } => "split the document and store its parts".into(),
            Self::Encrypted => "store a copy without the password to make it searchable".into(),
        }]
    }
}

const PDF: &str = "application/pdf";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const EPUB: &str = "application/epub+zip";

/// Whether documents of this type have text although their bytes are none.
pub fn is_extracted(mime: &str) -> bool {
    [PDF, DOCX, PPTX, XLSX, EPUB].contains(&mime.split(';').next().unwrap_or(mime).trim())
}

/// The text of a document, `None` when its type has none (images, archives, unknown binary).
pub fn text_of<'a>(
    path: &str,
    mime: &str,
    is_text: bool,
    bytes: &'a [u8],
) -> Result<Option<Text<'a>>, Unreadable> {
    fits(bytes.len())?;
    let mime = mime.split(';').next().unwrap_or(mime).trim();
    let text = match mime {
        PDF => pdf::text(bytes)?,
        DOCX => contained(|| docx::text(bytes))?,
        PPTX => contained(|| slides::text(bytes))?,
        XLSX => contained(|| sheets::text(bytes))?,
        EPUB => contained(|| book::text(bytes))?,
        _ if !is_text => return Ok(None),
        "text/html" | "application/xhtml+xml" => contained(|| Ok(web_page(bytes)))?,
        _ => stored(path, mime, bytes),
    };
    fits(text.text.len())?;
    Ok(Some(text))
}

fn fits(length: usize) -> Result<(), Unreadable> {
    match u32::try_from(length) {
        Ok(_) => Ok(()),
        Err(_) => Err(Unreadable::TooLarge { what: "bytes", limit: u32::MAX.into() }),
    }
}

/// Catches panics in the libraries that read formats, so that they affect only this document.
pub(crate) fn contained<T>(read: impl FnOnce() -> Result<T, Unreadable>) -> Result<T, Unreadable> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(Unreadable::damaged("its parts are inconsistent")))
}

fn web_page<'a>(bytes: &[u8]) -> Text<'a> {
    let (page, _) = decode::decode(bytes, decode::declared(bytes));
    Text::made(html::to_markdown(&page), Markup::Markdown)
}

fn stored<'a>(path: &str, mime: &str, bytes: &'a [u8]) -> Text<'a> {
    let declared = if mime.ends_with("xml") { decode::declared(bytes) } else { None };
    let (text, as_stored) = decode::decode(bytes, declared);
    Text { text, as_stored, pages: Vec::new(), markup: markup_of(path, mime), layout: Layout::default() }
}

/// Names of code files that their extension does not identify.
const CODE_NAMES: &[&str] = &[
    "brewfile",
    "cmakelists.txt",
    "containerfile",
    "dockerfile",
    "gemfile",
    "justfile",
    "makefile",
    "rakefile",
];

/// Extensions of code files whose type is plain text.
const CODE_EXTENSIONS: &[&str] = &[".cfg", ".conf", ".ini", ".lock", ".properties"];

fn markup_of(path: &str, mime: &str) -> Markup {
    match mime {
        "text/markdown" | "text/x-markdown" => Markup::Markdown,
        // Underlines in other markup languages would open fences that are never closed, so they are split as prose.
        "text/x-rst" | "text/asciidoc" | "text/x-tex" | "text/csv" | "text/rtf" | "text/troff" => {
            Markup::Plain
        }
        "text/plain" if is_code_by_name(path) => Markup::Code,
        "text/plain" => Markup::Plain,
        _ if mime.starts_with("text/") || mime.starts_with("application/") => Markup::Code,
        _ if mime.ends_with("+xml") || mime.ends_with("+json") => Markup::Code,
        _ => Markup::Plain,
    }
}

fn is_code_by_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    CODE_NAMES.contains(&name.as_str()) || CODE_EXTENSIONS.contains(&extension_of(path).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markup(path: &str, mime: &str) -> Markup {
        text_of(path, mime, true, b"x").unwrap().unwrap().markup
    }

    #[test]
    fn the_type_determines_how_a_text_is_split() {
        assert_eq!(markup("a.md", "text/markdown"), Markup::Markdown);
        assert_eq!(markup("a.md", "text/markdown; charset=utf-8"), Markup::Markdown);
        assert_eq!(markup("a.rs", "text/x-rust"), Markup::Code);
        assert_eq!(markup("a.js", "text/javascript"), Markup::Code);
        assert_eq!(markup("a.json", "application/json"), Markup::Code);
        assert_eq!(markup("a.toml", "application/toml"), Markup::Code);
        assert_eq!(markup("a.svg", "image/svg+xml"), Markup::Code);
        assert_eq!(markup("a.rst", "text/x-rst"), Markup::Plain);
        assert_eq!(markup("a.txt", "text/plain"), Markup::Plain);
        assert_eq!(markup("b/Makefile", "text/plain"), Markup::Code);
        assert_eq!(markup("a.html", "text/html"), Markup::Markdown);
    }

    #[test]
    fn plain_documents_are_borrowed() {
        let bytes = "\u{feff}Füße".as_bytes();
        let text = text_of("a.txt", "text/plain", true, bytes).unwrap().unwrap();
        assert!(text.as_stored && matches!(text.text, Cow::Borrowed(_)));
        assert_eq!(text.text.as_bytes(), bytes);
    }

    #[test]
    fn other_types_have_no_text() {
        assert_eq!(text_of("a.png", "image/png", false, b"\x89PNG"), Ok(None));
        assert_eq!(text_of("a.zip", "application/zip", false, b"PK"), Ok(None));
        assert_eq!(text_of("a.bin", "application/octet-stream", false, &[0, 1]), Ok(None));
    }

    #[test]
    fn content_that_does_not_match_its_type_is_damaged() {
        for mime in [PDF, DOCX, PPTX, XLSX, EPUB] {
            let found = text_of("a", mime, false, b"neither").unwrap_err();
            assert!(matches!(found, Unreadable::Damaged { .. }), "{mime}: {found}");
        }
    }
}
