//! PDF documents, page by page.
//!
//! The file's structure is read with a library; what the pages say is worked out here, because a page is a drawing:
//! it puts strings of glyphs at positions, and words and lines have to be found from where they stand.
//!
//! The bounds below stop the reading and keep what was read until then: the first ten thousand pages of a longer
//! document are worth more than none.

mod chains;
mod cmap;
mod font;
mod matrix;
mod page;
mod rows;
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

/// Enough for the longest chain that [`chains`] lets through, at 2 KiB for each step; it is used only by one.
const STACK: usize = 64 * 1_024 * 1_024;

/// The text of a document.
pub(crate) fn text<'a>(bytes: &[u8]) -> Result<Text<'a>, Unreadable> {
    if chains::are_chained(bytes) {
        return Err(Unreadable::damaged("the lengths of its streams lead to each other"));
    }
    if rows::are_too_wide(bytes) {
        return Err(Unreadable::damaged("a stream has rows that are too wide"));
    }
    thread::scope(|scope| {
        let reader = thread::Builder::new().name("pdf".into()).stack_size(STACK);
        let reader = reader.spawn_scoped(scope, || read(bytes));
        let reader = reader.map_err(|error| Unreadable::damaged(format!("no thread to read it: {error}")))?;
        // A panic in the library ends that thread and no more.
        reader.join().unwrap_or_else(|_| Err(Unreadable::damaged("its parts contradict")))
    })
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
        Error::InvalidPassword | Error::Decryption(_) | Error::UnsupportedSecurityHandler(_) => {
            Unreadable::Encrypted
        }
        error => Unreadable::damaged(error.to_string()),
    }
}
