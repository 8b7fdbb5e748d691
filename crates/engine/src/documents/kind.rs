//! The types that the documents family knows, and how content of each is understood.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use shelf_catalog::Document;

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

    /// The type of any document, also of one that came another way.
    pub fn of(document: &Document) -> Self {
        if let Some(known) = document.document_type.as_deref().and_then(Self::from_word) {
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
    pub mime: &'static str,
    pub is_text: bool,
}

/// The bytes that a caller means. PDF and DOCX files come as base64; whatever is not such a file is text.
pub(super) fn understand(kind: DocumentType, content: &str) -> Result<Understood> {
    if content.trim().is_empty() {
        return Err(Error::invalid("content", "must not be empty"));
    }
    Ok(as_file(kind, content).unwrap_or_else(|| Understood {
        bytes: content.as_bytes().to_vec(),
        mime: kind.mime_of_text(),
        is_text: true,
    }))
}

/// The file that a text is in base64, when it is one of this type.
pub(super) fn as_file(kind: DocumentType, content: &str) -> Option<Understood> {
    let (bytes, mime) = match kind {
        DocumentType::Pdf => (decode(content, b"%PDF-")?, "application/pdf"),
        DocumentType::Docx => (decode(content, b"PK\x03\x04")?, DOCX),
        DocumentType::Markdown | DocumentType::Html | DocumentType::Text | DocumentType::Json => return None,
    };
    Some(Understood { bytes, mime, is_text: false })
}

fn decode(content: &str, magic: &[u8]) -> Option<Vec<u8>> {
    let compact: String = content.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(compact).ok().filter(|bytes| bytes.starts_with(magic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_as_base64_and_text_as_text() {
        let pdf = STANDARD.encode(b"%PDF-1.7 rest");
        let file = understand(DocumentType::Pdf, &pdf).unwrap();
        assert_eq!(
            (file.bytes.as_slice(), file.mime, file.is_text),
            (&b"%PDF-1.7 rest"[..], "application/pdf", false)
        );
        let text = understand(DocumentType::Pdf, "Text of a PDF").unwrap();
        assert_eq!(
            (text.bytes.as_slice(), text.mime, text.is_text),
            (&b"Text of a PDF"[..], "text/plain", true)
        );
        // Four letters are valid base64, but of no PDF file.
        assert!(understand(DocumentType::Pdf, "word").unwrap().is_text);
        assert!(understand(DocumentType::Markdown, &pdf).unwrap().is_text);
        assert!(understand(DocumentType::Text, " \n").is_err());
    }
}
