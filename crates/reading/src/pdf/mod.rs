//! PDF documents, page by page.
//!
//! The file's structure is read with a library; what the pages say is worked out here, because a page is a drawing:
//! it puts strings of glyphs at positions, and words and lines have to be found from where they stand.
//!
//! The bounds below stop the reading and keep what was read until then: the first ten thousand pages of a longer
//! document are worth more than none.

mod cmap;
mod font;
mod matrix;
mod page;
#[cfg(test)]
mod tests;

use std::thread;

use lopdf::{Document, Error, LoadOptions};

use crate::{Markup, Text, Unreadable};
use page::PageReader;

/// Pages that are read.
const MOST_PAGES: usize = 10_000;
/// Bytes of text that are kept.
const MOST_TEXT: usize = 32 * 1_024 * 1_024;
/// What any one stream may unpack to.
const MOST_STREAM: usize = 32 * 1_024 * 1_024;

/// Stack for reading any document.
const STACK: usize = 16 * 1_024 * 1_024;
/// Stack for each stream: the length of one may be kept in another, and the library follows such a chain by recursion.
/// Measured at under 2 KiB.
const STACK_OF_STREAM: usize = 8 * 1_024;
/// Streams in one file. The stack for all of them is reserved, but used only by a chain.
const MOST_STREAMS: usize = 128 * 1_024;

/// The text of a document.
pub(crate) fn text<'a>(bytes: &[u8]) -> Result<Text<'a>, Unreadable> {
    let streams = streams_in(bytes);
    if streams > MOST_STREAMS {
        return Err(Unreadable::TooLarge { what: "streams", limit: MOST_STREAMS as u64 });
    }
    let stack = STACK + streams * STACK_OF_STREAM;
    thread::scope(|scope| {
        let reader = thread::Builder::new().name("pdf".into()).stack_size(stack);
        let reader = reader.spawn_scoped(scope, || read(bytes)).map_err(|error| {
            Unreadable::damaged(format!("no thread with {stack} bytes of stack to read it: {error}"))
        })?;
        // A panic in the library ends that thread and no more.
        reader.join().unwrap_or_else(|_| Err(Unreadable::damaged("its parts contradict")))
    })
}

fn streams_in(bytes: &[u8]) -> usize {
    let mut count = 0;
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == b'm') {
        let (before, after) = rest.split_at(at + 1);
        count += usize::from(before.ends_with(b"stream") && !before.ends_with(b"endstream"));
        rest = after;
    }
    count
}

fn read<'a>(bytes: &[u8]) -> Result<Text<'a>, Unreadable> {
    let options = LoadOptions { max_decompressed_size: Some(MOST_STREAM), ..LoadOptions::default() };
    // Loading tries the empty password, with which most protected documents open.
    let document = Document::load_mem_with_options(bytes, options).map_err(unreadable)?;
    if document.is_encrypted() {
        return Err(Unreadable::Encrypted);
    }
    let mut text = String::new();
    let mut pages = Vec::new();
    let mut reader = PageReader::new(&document);
    for page in document.page_iter().take(MOST_PAGES) {
        pages.push(text.len() as u32);
        text.push_str(reader.read(page).trim());
        if text.len() >= MOST_TEXT || reader.is_exhausted() {
            text.truncate(text.floor_char_boundary(MOST_TEXT));
            text.push('\n');
            break;
        }
        text.push('\n');
    }
    if pages.is_empty() {
        return Err(Unreadable::damaged("it has no pages"));
    }
    Ok(Text { text: text.into(), as_stored: false, pages, markup: Markup::Plain })
}

fn unreadable(error: Error) -> Unreadable {
    match error {
        Error::InvalidPassword | Error::Decryption(_) | Error::UnsupportedSecurityHandler(_) => Unreadable::Encrypted,
        error => Unreadable::damaged(error.to_string()),
    }
}
