//! The types that the documents family knows, and how content of each is understood.

use shelf_catalog::Document;

use super::spelling::{self, Spelling};
use crate::{Error, Result};

/// A type of document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentType {
    /// Markdown, unless something else is said.
    #[default]
    Markdown,
    /// A PDF file, or text that came from one.
    Pdf,
    /// A DOCX file, or text that came from one.
    Docx,
    /// HTML.
    Html,
    /// Plain text.
    Text,
    /// JSON.
    Json,
}

const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

impl DocumentType {
    /// Every type.
    pub const ALL: [Self; 6] = [Self::Markdown, Self::Pdf, Self::Docx, Self::Html, Self::Text, Self::Json];

    /// The contract's word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Pdf => "pdf",
            Self::Docx => "docx",
            Self::Html => "html",
            Self::Text => "text",
            Self::Json => "json",
        }
    }

    /// Reads the contract's word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    pub(super) const fn extension(self) -> &'static str {
        match self {
            Self::Markdown => ".md",
            Self::Pdf => ".pdf",
            Self::Docx => ".docx",
            Self::Html => ".html",
            Self::Text => ".txt",
            Self::Json => ".json",
        }
    }

    pub(super) const fn mime_of_text(self) -> &'static str {
        match self {
            Self::Markdown => "text/markdown",
            Self::Html => "text/html",
            Self::Json => "application/json",
            Self::Text | Self::Pdf | Self::Docx => "text/plain",
        }
    }

    /// The type that the author of a document gave it.
    pub fn given(document: &Document) -> Option<Self> {
        Self::from_word(spelling::word_of(document.document_type.as_deref()?))
    }

    /// How a file of this type begins, and its MIME type; `None` for types of text.
    const fn magic(self) -> Option<(&'static [u8], &'static str)> {
        match self {
            Self::Pdf => Some((b"%PDF-", "application/pdf")),
            Self::Docx => Some((b"PK\x03\x04", DOCX)),
            Self::Markdown | Self::Html | Self::Text | Self::Json => None,
        }
    }

    /// The type of any document, also of one that came another way.
    pub fn of(document: &Document) -> Self {
        if let Some(known) = Self::given(document) {
            return known;
        }
        match document.mime.as_str() {
            "text/markdown" => Self::Markdown,
            "text/html" | "application/xhtml+xml" => Self::Html,
            "application/json" => Self::Json,
            "application/pdf" => Self::Pdf,
            DOCX => Self::Docx,
            _ => Self::Text,
        }
    }
}

/// Content as it is stored.
pub(super) struct Understood {
    pub bytes: Vec<u8>,
    pub mime: String,
    pub is_text: bool,
    /// The type and, of a file, how it was spelt.
    pub word: String,
    /// What it is, if it is not what its type says.
    pub other: Option<OtherContent>,
}

/// Content that its author calls a PDF or DOCX file, and that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherContent {
    /// What its author calls it.
    pub called: DocumentType,
    /// The MIME type of the file that it is instead; `None` for text.
    pub mime: Option<String>,
}

/// The bytes that a caller means. PDF and DOCX files come as base64; whatever is no file is text.
pub(super) fn understand(kind: DocumentType, content: &str) -> Result<Understood> {
    if content.is_empty() {
        return Err(Error::invalid("content", "must not be empty"));
    }
    if content.trim().is_empty() {
        return Err(Error::invalid("content", "must not be blank"));
    }
    Ok(as_file(kind, content)?.unwrap_or_else(|| Understood {
        bytes: content.as_bytes().to_vec(),
        mime: kind.mime_of_text().to_owned(),
        is_text: true,
        word: kind.word().to_owned(),
        other: kind.magic().map(|_| OtherContent { called: kind, mime: None }),
    }))
}

/// The file that a text is in base64, when its type is that of a file.
pub(super) fn as_file(kind: DocumentType, content: &str) -> Result<Option<Understood>> {
    let Some((magic, mime)) = kind.magic() else { return Ok(None) };
    let Some((spelling, bytes)) = Spelling::read(content) else {
        return match spelling::read_loosely(content) {
            Some(bytes) if bytes.starts_with(magic) => Err(Error::invalid("content", UNEVEN)),
            _ => Ok(None),
        };
    };
    let word = spelling.behind(kind.word());
    if bytes.starts_with(magic) {
        return Ok(Some(Understood { bytes, mime: mime.to_owned(), is_text: false, word, other: None }));
    }
    // Words are base64 too, but not of bytes like these.
    if bytes.len() < SURELY_A_FILE || std::str::from_utf8(&bytes).is_ok() {
        return Ok(None);
    }
    let mime = shelf_reading::detect("file", &bytes).mime;
    let other = Some(OtherContent { called: kind, mime: Some(mime.clone()) });
    Ok(Some(Understood { bytes, mime, is_text: false, word, other }))
}

const UNEVEN: &str = "must be base64 in one line or in lines of the same length, without other spaces, so that it can be \
                      given back as it came";
/// Bytes from which on something that is valid base64 of bytes that are no text is no text itself.
const SURELY_A_FILE: usize = 64;

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    #[test]
    fn files_come_as_base64_and_text_as_text() {
        let pdf = STANDARD.encode(b"%PDF-1.7 rest");
        let file = understand(DocumentType::Pdf, &pdf).unwrap();
        assert_eq!(
            (file.bytes.as_slice(), file.mime.as_str(), file.is_text, file.other),
            (&b"%PDF-1.7 rest"[..], "application/pdf", false, None)
        );
        let text = understand(DocumentType::Pdf, "Text of a PDF").unwrap();
        assert_eq!(
            (text.bytes.as_slice(), text.mime.as_str(), text.is_text),
            (&b"Text of a PDF"[..], "text/plain", true)
        );
        assert_eq!(text.other, Some(OtherContent { called: DocumentType::Pdf, mime: None }));
        // Four letters are valid base64, but of no PDF file.
        assert!(understand(DocumentType::Pdf, "word").unwrap().is_text);
        let markdown = understand(DocumentType::Markdown, &pdf).unwrap();
        assert!(markdown.is_text && markdown.other.is_none());
        assert!(understand(DocumentType::Text, " \n").is_err());
    }

    #[test]
    fn other_files_are_kept_as_what_they_are() {
        let picture = [&b"\x89PNG\r\n\x1a\n"[..], &[200; 100]].concat();
        let file = understand(DocumentType::Pdf, &STANDARD.encode(&picture)).unwrap();
        assert_eq!((file.bytes, file.is_text), (picture, false));
        assert_eq!(file.other.unwrap().mime.as_deref(), Some("image/png"));
        let words = STANDARD.encode("only words ".repeat(20));
        assert!(understand(DocumentType::Docx, &words).unwrap().is_text);
    }

    #[test]
    fn a_file_that_could_not_be_given_back_is_refused() {
        let pdf = STANDARD.encode([&b"%PDF-1.7 "[..], &[7; 60]].concat());
        let uneven = format!("{}\n{}\n {}", &pdf[..10], &pdf[10..15], &pdf[15..]);
        let error = understand(DocumentType::Pdf, &uneven).err().unwrap().to_string();
        assert!(error.contains("lines of the same length"), "{error}");
        assert!(understand(DocumentType::Text, &uneven).unwrap().is_text);
    }
}
