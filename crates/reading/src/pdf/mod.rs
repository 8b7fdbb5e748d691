//! PDF documents, page by page.
//!
//! A library reads the structure of the file; the text of the pages is extracted here. A page is a drawing that puts
//! strings of glyphs at positions, so words and lines have to be derived from those positions.
//!
//! Reaching one of the limits below stops the reading but keeps what was read so far: the first ten thousand pages of a
//! longer document are worth more than none.

mod apart;
mod chains;
mod cmap;
mod cut;
mod destinations;
mod draw;
mod font;
mod frame;
mod lines;
mod matrix;
mod page;
mod rows;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, thread};

use lopdf::{Document, Error, LoadOptions};
use shelf_base::address::Pages;

use crate::{Layout, Markup, Text, Unreadable};
pub use apart::{DRAW_COMMAND, DRAW_MEMORY, DRAW_SECONDS, draw_alone};
pub use cut::CutError;
pub use draw::{DrawError, DrawnPage, PAGE_WIDTH, draw_page};
use frame::Frame;
use page::PageReader;

/// Maximum number of pages to read.
const MOST_PAGES: usize = 10_000;
/// Maximum bytes of text to keep.
const MOST_TEXT: usize = 32 * 1_024 * 1_024;
/// Maximum unpacked size of a single stream.
const MOST_STREAM: usize = 32 * 1_024 * 1_024;

/// Stack size: enough for the longest chain that [`chains`] lets through, at 2 KiB per step. Only such a chain uses it.
const STACK: usize = 64 * 1_024 * 1_024;

/// The text of a document.
pub(crate) fn text<'a>(bytes: &[u8]) -> Result<Text<'a>, Unreadable> {
    guarded(bytes, || read(bytes))
}

/// Some pages of a document, as a document of their own.
pub fn cut_pages(bytes: &[u8], pages: &Pages) -> Result<Vec<u8>, CutError> {
    guarded(bytes, || {
        let document = load(bytes)?;
        Ok(cut::cut(&document, pages))
    })?
}

/// The number of pages of a document.
pub fn page_count(bytes: &[u8]) -> Result<u32, Unreadable> {
    guarded(bytes, || Ok(load(bytes)?.page_iter().take(MOST_PAGES).count() as u32))
}

/// Does something with a document on a thread with enough room, unless the document is made to do harm.
fn guarded<T: Send>(
    bytes: &[u8],
    work: impl FnOnce() -> Result<T, Unreadable> + Send,
) -> Result<T, Unreadable> {
    if chains::are_chained(bytes) {
        return Err(Unreadable::damaged("the lengths of its streams refer to other streams"));
    }
    if rows::are_too_wide(bytes) {
        return Err(Unreadable::damaged("a stream has rows that are too wide"));
    }
    thread::scope(|scope| {
        let reader = thread::Builder::new().name("pdf".into()).stack_size(STACK);
        let reader = reader.spawn_scoped(scope, work);
        let reader =
            reader.map_err(|error| Unreadable::damaged(format!("cannot start a thread: {error}")))?;
        // A panic in the library ends only that thread.
        reader.join().unwrap_or_else(|_| Err(Unreadable::damaged("its parts are inconsistent")))
    })
}

fn load(bytes: &[u8]) -> Result<Document, Unreadable> {
    let options = LoadOptions { max_decompressed_size: Some(MOST_STREAM), ..LoadOptions::default() };
    // Loading tries the empty password, with which most protected documents open.
    let document = Document::load_mem_with_options(bytes, options).map_err(unreadable)?;
    if document.is_encrypted() { Err(Unreadable::Encrypted) } else { Ok(document) }
}

fn read<'a>(bytes: &[u8]) -> Result<Text<'a>, Unreadable> {
    let document = load(bytes)?;
    let mut text = String::new();
    let mut pages = Vec::new();
    let mut numbers = HashMap::new();
    let mut layout = Layout::default();
    let mut reader = PageReader::new(&document);
    for page in document.page_iter().take(MOST_PAGES) {
        pages.push(text.len() as u32);
        numbers.insert(page, pages.len() as u32);
        let (shown, runs) = reader.read(page);
        let before = shown.len() - shown.trim_start().len();
        let frame = Frame::of(&document, page);
        layout.lines.extend(lines::boxes(&shown, &runs, &frame, before, text.len()));
        text.push_str(shown.trim());
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
    layout.outline = destinations::bookmarks(&document, &numbers);
    Ok(Text { text: text.into(), as_stored: false, pages, markup: Markup::Plain, layout })
}

fn unreadable(error: Error) -> Unreadable {
    match error {
        Error::InvalidPassword | Error::Decryption(_) | Error::UnsupportedSecurityHandler(_) => {
            Unreadable::Encrypted
        }
        error => Unreadable::damaged(error.to_string()),
    }
}
