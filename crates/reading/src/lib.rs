//! Extracts the type, the text and the passages of a document from its bytes.
//!
//! **Type** ([`detect()`]). Content takes precedence over the name: a PNG called `notes.txt` is a PNG. Kinds of text
//! are distinguished by their extension only; words with the extension of a picture or recording are taken for one, since
//! they say nothing to the contrary.
//!
//! **Text** ([`text_of`]). Plain UTF-8 text is borrowed as stored, so that an offset in it is an offset in the
//! document; everything else (older encodings, HTML, DOCX, PDF) is converted to new text. Documents are untrusted, so
//! three rules hold: no input makes the program panic or overflow the stack, the unpacked size of a document is
//! bounded, and a part that cannot be read does not affect the others.
//!
//! **Passages** ([`passages()`]). The pieces that are searched and shown: about four hundred tokens each, split at
//! natural boundaries, with exact line numbers.
//!
//! **Facts** ([`facts()`](facts::facts)). What a document defines, imports, calls and links to: definitions of ten
//! programming languages ([`code`]), links and headings of prose ([`links`]), as names that are resolved later.
//!
//! **Maps** ([`map`]). The tree of nodes of a document, made from its headings, symbols, keys, pages, chapters or cues,
//! each with its exact place. [`cut_pages`], [`crop`] and [`media::cut_clip`] cut out what is at a place, and
//! [`draw_page`] draws a page.
//!
//! This crate keeps no state, and reads no files except through `ffprobe` and `ffmpeg`.

mod archive;
mod book;
pub mod code;
mod decode;
mod detect;
mod docx;
pub mod facts;
mod html;
mod layout;
pub mod links;
pub mod map;
pub mod media;
#[cfg(test)]
mod office_tests;
mod passages;
mod pdf;
mod picture;
mod sheets;
mod slides;
mod subtitles;
mod text;

/// Changes whenever a reader makes another text of the same bytes: what was kept of older readings is not used then.
pub const VERSION: u32 = 4;

pub use detect::{Detected, SAMPLE, detect, extension_of};
pub use layout::{Bookmark, Layout, LineBox};
pub use media::{MediaFacts, Recording};
pub use passages::{Passage, passages};
pub use pdf::{
    CutError, DRAW_COMMAND, DRAW_MEMORY, DRAW_SECONDS, DrawError, DrawnPage, PAGE_WIDTH, cut_pages,
    draw_alone, draw_page, page_count,
};
pub use picture::{crop, image_size};
pub use subtitles::{Cue, cues, is_named_as_recording, subtitles_beside};
pub use text::{Markup, Text, Unreadable, is_extracted, text_of};
