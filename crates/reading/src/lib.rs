//! Understanding a document from its bytes. So far: what type it is.
//!
//! Content decides first, the name second: a PNG called `notes.txt` is a PNG, and a text is told apart by its
//! extension only.

mod detect;

pub use detect::{Detected, SAMPLE, detect, extension_of};
