//! From a stored document to what the index takes of it: text, passages, vectors, bytes for patterns.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
};

use shelf_base::{CallContext, Digest, ErrorInfo, Kind};
use shelf_catalog::Changed;
use shelf_embed::Tokens;
use shelf_index::{Builder, DerivedKey, Entry, EntryPassage, Grep, Part, Span};
use shelf_reading::{Passage, Text};

use super::lead;
use crate::{
    Result,
    blobs::Blobs,
    graph::keys,
    readings::{EXTRACTED_BYTES, Origin, Readings},
};

/// Texts up to this size are indexed in one go, larger ones in pieces of it: what indexing holds in memory does not
/// depend on how large a document is.
const PIECE: usize = 8 << 20;
/// Of a text that is not stored as it reads (another encoding, HTML) so many bytes are looked at; what follows is found
/// by pattern only.
const CONVERTED_BYTES: u64 = 32 << 20;

/// Buffers that are used again for every document.
#[derive(Default)]
pub(super) struct Preparing {
    tokens: Tokens,
    /// The lead that was tokenized last: the passages of a document often share it.
    lead: String,
    lead_tokens: Tokens,
}

/// Called after each piece of a large document; it may take what the builder holds and give it an empty one.
pub(super) type Full<'a> = &'a mut dyn FnMut(&mut Builder) -> Result<()>;

impl Preparing {
    /// Reads a document and adds it to a segment. A document that cannot be read or understood is found by its name.
    pub(super) fn add(
        &mut self,
        blobs: &Blobs,
        document: &Changed,
        builder: &mut Builder,
        full: Full<'_>,
        call: &CallContext,
    ) -> Result<u64> {
        if document.is_text && document.size > PIECE as u64 {
            return self.add_large(blobs, document, builder, full, call);
        }
        let origin = origin(document);
        if !origin.may_have_text() || (!document.is_text && document.size > EXTRACTED_BYTES) {
            self.add_text(document, None, &[], document.size == 0, builder)?;
            return Ok(0);
        }
        if let Some(known) = blobs.readings.extracted(&origin) {
            let known = known.map(|text| (text, Some(origin.key())));
            self.add_text(document, known, &[], document.size == 0, builder)?;
            return Ok(0);
        }
        let bytes = read(blobs, document, document.size, call)?;
        let is_whole = bytes.len() as u64 == document.size;
        // What could not be read whole is not what it seems: nothing may be remembered of it.
        let text = if is_whole { blobs.readings.text(&origin, &bytes) } else { None };
        self.add_text(document, text, &bytes, is_whole, builder)?;
        Ok(bytes.len() as u64)
    }

    /// Adds a large text piece by piece. Patterns always read it.
    fn add_large(
        &mut self,
        blobs: &Blobs,
        document: &Changed,
        builder: &mut Builder,
        full: Full<'_>,
        call: &CallContext,
    ) -> Result<u64> {
        let mut pieces = Pieces { start: 0, lines: 0, ordinal: 0, is_readable: true };
        let mut buffer: Vec<u8> = Vec::with_capacity(PIECE + (1 << 20));
        let streamed = blobs.stream_blob(call, &document.hash, |bytes| {
            buffer.extend_from_slice(bytes);
            while buffer.len() > PIECE && pieces.is_readable {
                let end = pause(&buffer[..PIECE]);
                self.add_piece(document, &buffer[..end], &mut pieces, builder)?;
                full(builder)?;
                buffer.drain(..end);
            }
            if pieces.is_readable {
                return Ok(());
            }
            Err(crate::Error::invalid("text", "is not stored as it reads"))
        });
        match streamed {
            Ok(_) => {
                self.add_piece(document, &buffer, &mut pieces, builder)?;
                return Ok(document.size);
            }
            Err(_) if !pieces.is_readable => {}
            Err(error) if !is_damage(&error) => return Err(error),
            Err(error) => tracing_note(document, &error),
        }
        if pieces.is_readable && pieces.start > 0 {
            return Ok(document.size);
        }
        // Not a piece of it could be added: its beginning as far as it can be converted, or its name.
        let bytes = read(blobs, document, CONVERTED_BYTES, call)?;
        let end = whole_characters(&bytes);
        let text = blobs.readings.text(&origin(document), &bytes[..end]);
        self.add_text(document, text, &bytes, false, builder)?;
        Ok(document.size)
    }

    fn add_piece(
        &mut self,
        document: &Changed,
        bytes: &[u8],
        pieces: &mut Pieces,
        builder: &mut Builder,
    ) -> Result<()> {
        let text = shelf_reading::text_of(&document.path, &document.mime, true, bytes).ok().flatten();
        let text = text.filter(|text| text.as_stored);
        let (Some(text), Ok(start), Ok(lines)) =
            (text, u32::try_from(pieces.start), u32::try_from(pieces.lines))
        else {
            // A later piece that cannot be read is left to patterns.
            pieces.is_readable &= pieces.start > 0;
            pieces.go_on(bytes, 0);
            return Ok(());
        };
        let mut passages = self.passages(document, &text);
        passages.retain(|passage| start.checked_add(passage.span.end).is_some());
        for passage in &mut passages {
            passage.span.start += start;
            passage.span.end += start;
            passage.span.first_line += lines;
            passage.span.last_line += lines;
        }
        let part = match start {
            0 => Part::First,
            text_start => Part::Later { text_start, first_ordinal: pieces.ordinal },
        };
        let count = passages.len() as u32;
        // The facts of a large text are those of its first piece.
        let (facts, mentions) = match start {
            0 => facts(document, Some(&text), bytes, true),
            _ => (Vec::new(), Vec::new()),
        };
        let entry = Entry {
            facts: &facts,
            mentions: &mentions,
            number: document.number,
            hash: document.hash,
            collection: document.collection,
            path: &document.path,
            name: &name_of(document, !passages.is_empty()),
            text: &text.text,
            text_variant: None,
            is_whole: false,
            passages,
            grep: if start == 0 { Grep::Always } else { Grep::Never },
            part,
        };
        builder.add(&entry)?;
        pieces.go_on(bytes, count);
        Ok(())
    }

    fn add_text(
        &mut self,
        document: &Changed,
        text: Option<(Text<'_>, Option<DerivedKey>)>,
        bytes: &[u8],
        is_whole: bool,
        builder: &mut Builder,
    ) -> Result<()> {
        let (text, key) = text.unzip();
        let passages = text.as_ref().map(|text| self.passages(document, text)).unwrap_or_default();
        // Patterns see text in two-byte encodings as ripgrep shows it, decoded; its bytes say nothing then.
        let decoded = bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]);
        let grep = match document.is_text {
            false => Grep::Never,
            true if decoded || bytes.len() as u64 != document.size => Grep::Always,
            true => Grep::Bytes(bytes),
        };
        let (facts, mentions) = facts(document, text.as_ref(), bytes, !is_whole);
        let entry = Entry {
            facts: &facts,
            mentions: &mentions,
            number: document.number,
            hash: document.hash,
            collection: document.collection,
            path: &document.path,
            name: &name_of(document, !passages.is_empty()),
            text: text.as_ref().map_or("", |text| &text.text),
            text_variant: key.flatten().map(|key| key.variant),
            is_whole: is_whole && text.is_some(),
            passages,
            grep,
            part: Part::Whole,
        };
        Ok(builder.add(&entry)?)
    }

    fn passages(&mut self, document: &Changed, text: &Text<'_>) -> Vec<EntryPassage> {
        shelf_embed::tokenize(&text.text, &mut self.tokens);
        self.tokens.divide_unknown(&text.text);
        let passages = shelf_reading::passages(text, &self.tokens.starts);
        let title = lead::given_title(&document.path, &document.title);
        passages.iter().map(|passage| self.entry_passage(title, passage, text)).collect()
    }

    fn entry_passage(&mut self, title: Option<&str>, passage: &Passage, text: &Text<'_>) -> EntryPassage {
        let own = &text.text[passage.bytes.start as usize..passage.bytes.end as usize];
        let lead = lead::of(title, &passage.headings, own);
        if lead != self.lead {
            shelf_embed::tokenize(&lead, &mut self.lead_tokens);
            self.lead.clone_from(&lead);
        }
        let ids = &self.tokens.ids[passage.tokens.start as usize..passage.tokens.end as usize];
        let (first_page, last_page) = passage.pages.unwrap_or((0, 0));
        let vector = if lead.is_empty() {
            shelf_embed::embed_tokens(ids)
        } else {
            shelf_embed::embed_tokens(&[&self.lead_tokens.ids, ids].concat())
        };
        let lead_tokens = if lead.is_empty() { 0 } else { self.lead_tokens.ids.len() };
        EntryPassage {
            span: Span {
                start: passage.bytes.start,
                end: passage.bytes.end,
                first_line: passage.lines.0,
                last_line: passage.lines.1,
                first_page,
                last_page,
            },
            tokens: (ids.len() + lead_tokens) as u32,
            lead,
            vector,
        }
    }
}

/// What a document says of itself and of others, and the keys by which that is found.
fn facts(document: &Changed, text: Option<&Text<'_>>, bytes: &[u8], is_cut: bool) -> (Vec<u8>, Vec<u32>) {
    let read = |text: &Text<'_>| {
        let facts = || shelf_reading::facts::facts(&document.path, &document.mime, text, Some(bytes));
        // A parser that fails takes the facts of this document with it, nothing else.
        catch_unwind(AssertUnwindSafe(facts)).unwrap_or_default()
    };
    let mut facts = text.map(read).unwrap_or_default();
    facts.is_cut |= is_cut && text.is_some();
    let keys = keys::of(&document.path, &document.title, &document.hash, &facts);
    (facts.encode(), keys)
}

/// How far a large document has been indexed.
struct Pieces {
    start: u64,
    lines: u64,
    ordinal: u32,
    /// Whether its text is its bytes as they are stored.
    is_readable: bool,
}

impl Pieces {
    fn go_on(&mut self, bytes: &[u8], passages: u32) {
        self.start += bytes.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.ordinal += passages;
    }
}

/// Reads the beginning of a document. Damaged content is `check`'s to report; the index goes on without it.
fn read(blobs: &Blobs, document: &Changed, most: u64, call: &CallContext) -> Result<Vec<u8>> {
    match blobs.read_range(call, &document.hash, 0..most.min(document.size)) {
        Err(error) if is_damage(&error) => {
            tracing_note(document, &error);
            Ok(Vec::new())
        }
        outcome => outcome,
    }
}

/// Whether content is lost or damaged, as far as anyone can tell. What only could not be reached now must not be indexed as
/// if it were empty: nobody would look at it again.
pub(super) fn is_damage(error: &crate::Error) -> bool {
    match error.kind() {
        Kind::Corrupt | Kind::NotFound => true,
        // A disk that cannot be read at one place, or a pack that is gone. What nobody has put into a class tells nothing.
        Kind::Io => match error {
            crate::Error::Blocks(shelf_blocks::Error::Storage { source, .. }) => {
                source.kind() != io::ErrorKind::Other
            }
            other => !matches!(other, crate::Error::Catalog(_)),
        },
        Kind::Invalid
        | Kind::Conflict
        | Kind::Denied
        | Kind::Unauthenticated
        | Kind::TooLarge
        | Kind::RateLimited
        | Kind::Busy
        | Kind::Cancelled
        | Kind::TimedOut
        | Kind::StorageFull
        | Kind::Unavailable
        | Kind::Internal => false,
    }
}

/// Where a large text is cut: at a blank line, else at a line's end, else between two words or characters.
fn pause(bytes: &[u8]) -> usize {
    let near = bytes.len().saturating_sub(256 << 10);
    let tail = &bytes[near..];
    let blank = memchr::memmem::rfind(tail, b"\n\n").map(|at| near + at + 2);
    let line = || memchr::memrchr(b'\n', bytes).map(|at| at + 1).filter(|at| *at > bytes.len() / 2);
    let word = || memchr::memrchr(b' ', tail).map(|at| near + at + 1);
    blank.or_else(line).or_else(word).unwrap_or_else(|| whole_characters(bytes))
}

/// How a document falls into passages and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    pub passages: usize,
    pub tokens: usize,
}

/// Measures a document as the index will cut it. What a reader makes of it is kept for the index.
pub(crate) fn measure(readings: &Readings, path: &str, mime: &str, is_text: bool, bytes: &[u8]) -> Measured {
    let (mut measured, mut rest) = (Measured::default(), bytes);
    while !rest.is_empty() {
        let end = if is_text && rest.len() > PIECE { pause(&rest[..PIECE]) } else { rest.len() };
        let text = if end == bytes.len() {
            readings
                .text(&Origin { hash: Digest::of(bytes), path, mime, is_text }, bytes)
                .map(|(text, _)| text)
        } else {
            shelf_reading::text_of(path, mime, is_text, &rest[..end]).ok().flatten()
        };
        let Some(text) = text else { break };
        let mut tokens = Tokens::default();
        shelf_embed::tokenize(&text.text, &mut tokens);
        tokens.divide_unknown(&text.text);
        measured.passages += shelf_reading::passages(&text, &tokens.starts).len();
        measured.tokens += tokens.ids.len();
        rest = &rest[end..];
    }
    measured
}

/// What a document is found by beside its text. A path that the library itself made says nothing.
fn name_of(document: &Changed, has_text: bool) -> String {
    let is_made = document
        .path
        .strip_prefix("documents/")
        .is_some_and(|rest| rest.parse::<shelf_base::ids::DocumentId>().is_ok());
    // A title that was given is part of the text's words; a document without text has no other place for it.
    let title = if has_text { lead::given_title(&document.path, &document.title).is_none() } else { true };
    match (title, is_made) {
        (true, true) => document.title.clone(),
        (true, false) => format!("{} {}", document.title, document.path),
        (false, true) => String::new(),
        (false, false) => document.path.clone(),
    }
}

fn origin(document: &Changed) -> Origin<'_> {
    let Changed { hash, path, mime, is_text, .. } = document;
    Origin { hash: *hash, path, mime, is_text: *is_text }
}

/// How many bytes of a beginning end between two characters, where they are UTF-8.
fn whole_characters(bytes: &[u8]) -> usize {
    let is_inside = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    let last = bytes.len().saturating_sub(1);
    // The last character may be torn: it begins at most three bytes before the end.
    let begin = (last.saturating_sub(3)..=last).rev().find(|at| !is_inside(*at)).unwrap_or(last);
    match std::str::from_utf8(bytes.get(begin..).unwrap_or_default()) {
        Err(error) if error.error_len().is_none() => begin,
        _ => bytes.len(),
    }
}

fn tracing_note(document: &Changed, error: &crate::Error) {
    tracing::warn!(path = %document.path, %error, "a document was indexed by its name only");
}
