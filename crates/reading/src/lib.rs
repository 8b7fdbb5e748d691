//! Understanding a document from its bytes: what type it is, what text it holds, and how that text is cut.
//!
//! **Type** ([`detect()`]). Content decides first, the name second: a PNG called `notes.txt` is a PNG, and a text is
//! told apart by its extension only.
//!
//! **Text** ([`text_of`]). A plain text in UTF-8 is lent as it is stored, so that an offset in it is an offset in the
//! document; everything else (older encodings, HTML, DOCX, PDF) is turned into a new text of its own.
//! A document comes from anywhere, so three rules hold: no input makes the program panic or overflow the stack,
//! what one document may unpack to is bounded, and a part that cannot be read costs that part only.
//!
//! **Passages** ([`passages()`]). The pieces that are searched and shown: of about four hundred tokens, cut where
//! an author would pause, and each knowing its exact lines.
//!
//! Nothing here reads files, keeps state or knows where a document is stored.

mod decode;
mod detect;
mod docx;
mod html;
mod passages;
mod pdf;
mod text;

pub use detect::{Detected, SAMPLE, detect, extension_of};
pub use passages::{Passage, passages};
pub use text::{Markup, Text, Unreadable, text_of};
