//! Extracts the type, the text and the passages of a document from its bytes.
//!
//! **Type** ([`detect()`]). Content takes precedence over the name: a PNG called `notes.txt` is a PNG. Kinds of text
//! are distinguished by their extension only.
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
//! This crate reads no files and keeps no state.

pub mod code;
mod decode;
mod detect;
mod docx;
pub mod facts;
mod html;
pub mod links;
mod passages;
mod pdf;
mod text;

/// Changes whenever a reader makes another text of the same bytes: what was kept of older readings is not used then.
pub const VERSION: u32 = 1;

pub use detect::{Detected, SAMPLE, detect, extension_of};
pub use passages::{Passage, passages};
pub use text::{Markup, Text, Unreadable, text_of};
