//! From a stored document to what the index takes of it: text, passages, vectors, bytes for patterns.

use shelf_base::Call;
use shelf_catalog::Changed;
use shelf_embed::Tokens;
use shelf_index::{Builder, Entry, EntryPassage, Grep, Span};
use shelf_reading::{Passage, Text};

use crate::{Result, blobs::Blobs};

/// Bytes of a document's text that are searched by words and meaning; what follows is found by pattern only.
const SEARCHED_BYTES: usize = 32 << 20;
/// Documents larger than this get no trigrams: they are always read.
const TRIGRAM_BYTES: u64 = 64 << 20;
/// Files of other types that are larger than this are not looked into.
const EXTRACTED_BYTES: u64 = 256 << 20;

/// Buffers that are used again for every document.
#[derive(Default)]
pub(super) struct Preparing {
    tokens: Tokens,
}

impl Preparing {
    /// Reads a document and adds it to a segment. A document that cannot be read or understood is found by its name.
    pub(super) fn add(
        &mut self,
        blobs: &Blobs,
        document: &Changed,
        builder: &mut Builder,
        call: &Call,
    ) -> Result<u64> {
        let extracted = !document.is_text && has_text(&document.mime) && document.size <= EXTRACTED_BYTES;
        let bytes = if document.is_text || extracted {
            match blobs.read_blocks(call, &document.hash, document.size) {
                Ok(bytes) => bytes,
                Err(crate::Error::Stopped(stopped)) => return Err(stopped.into()),
                // Damaged content is `check`'s to report; the index goes on without it.
                Err(error) => {
                    tracing_note(document, &error);
                    Vec::new()
                }
            }
        } else {
            Vec::new()
        };
        let looked_at = &bytes[..whole_characters(&bytes, SEARCHED_BYTES)];
        let looked_at = if document.is_text { looked_at } else { &bytes };
        let text = shelf_reading::text_of(&document.path, &document.mime, document.is_text, looked_at);
        let text = text.ok().flatten();
        let is_whole = looked_at.len() as u64 == document.size;
        self.add_text(document, text.as_ref(), &bytes, is_whole, builder)?;
        Ok(bytes.len() as u64)
    }

    fn add_text(
        &mut self,
        document: &Changed,
        text: Option<&Text<'_>>,
        bytes: &[u8],
        is_whole: bool,
        builder: &mut Builder,
    ) -> Result<()> {
        let passages = text.map(|text| self.passages(text)).unwrap_or_default();
        let kept = text.filter(|text| !text.as_stored);
        // Patterns see text in two-byte encodings as ripgrep shows it, decoded; its bytes say nothing then.
        let decoded = bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]);
        let grep = match document.is_text {
            false => Grep::Never,
            true if decoded || document.size > TRIGRAM_BYTES || bytes.len() as u64 != document.size => {
                Grep::Always
            }
            true => Grep::Bytes(bytes),
        };
        let entry = Entry {
            number: document.number,
            hash: document.hash,
            collection: document.collection,
            path: &document.path,
            name: &name_of(document),
            text: text.map_or("", |text| &text.text),
            keep_text: kept.is_some(),
            is_whole: is_whole && text.is_some(),
            passages,
            grep,
        };
        Ok(builder.add(&entry)?)
    }

    fn passages(&mut self, text: &Text<'_>) -> Vec<EntryPassage> {
        shelf_embed::tokenize(&text.text, &mut self.tokens);
        self.tokens.divide_unknown(&text.text);
        let passages = shelf_reading::passages(text, &self.tokens.starts);
        passages.iter().map(|passage| entry_passage(passage, &self.tokens.ids)).collect()
    }
}

/// How a document falls into passages and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    pub passages: usize,
    pub tokens: usize,
}

/// Measures a document as the index will cut it.
pub(crate) fn measure(path: &str, mime: &str, is_text: bool, bytes: &[u8]) -> Measured {
    let looked_at = if is_text { &bytes[..whole_characters(bytes, SEARCHED_BYTES)] } else { bytes };
    if !is_text && !has_text(mime) {
        return Measured::default();
    }
    let Ok(Some(text)) = shelf_reading::text_of(path, mime, is_text, looked_at) else {
        return Measured::default();
    };
    let mut tokens = Tokens::default();
    shelf_embed::tokenize(&text.text, &mut tokens);
    tokens.divide_unknown(&text.text);
    let passages = shelf_reading::passages(&text, &tokens.starts);
    Measured { passages: passages.len(), tokens: tokens.ids.len() }
}

fn entry_passage(passage: &Passage, ids: &[u16]) -> EntryPassage {
    let ids = &ids[passage.tokens.start as usize..passage.tokens.end as usize];
    let (first_page, last_page) = passage.pages.unwrap_or((0, 0));
    EntryPassage {
        span: Span {
            start: passage.bytes.start,
            end: passage.bytes.end,
            first_line: passage.lines.0,
            last_line: passage.lines.1,
            first_page,
            last_page,
        },
        tokens: ids.len() as u32,
        vector: shelf_embed::embed_tokens(ids),
    }
}

/// What a document is found by beside its text. A path that the library itself made says nothing.
fn name_of(document: &Changed) -> String {
    let is_made = document
        .path
        .strip_prefix("documents/")
        .is_some_and(|rest| rest.parse::<shelf_base::ids::DocumentId>().is_ok());
    if is_made { document.title.clone() } else { format!("{} {}", document.title, document.path) }
}

/// Types other than text that have text in them.
fn has_text(mime: &str) -> bool {
    matches!(
        mime,
        "application/pdf" | "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    )
}

/// At most so many bytes, ending between two characters where the bytes are UTF-8.
fn whole_characters(bytes: &[u8], most: usize) -> usize {
    if bytes.len() <= most {
        return bytes.len();
    }
    let is_inside = |at: usize| bytes[at] & 0xC0 == 0x80;
    (most - 3..=most).rev().find(|at| !is_inside(*at)).unwrap_or(most)
}

fn tracing_note(document: &Changed, error: &crate::Error) {
    tracing::warn!(path = %document.path, %error, "a document was indexed by its name only");
}
