//! The pattern leg: which documents hold which three bytes in a row, so that a pattern search reads only documents
//! that can match. Bytes are taken with ASCII letters in lower case, so that one list serves both kinds of search.

mod build;
mod lists;
mod plan;
mod words;

pub(crate) use build::{MOST_DOCUMENTS, TrigramsBuilder};
pub(crate) use lists::Trigrams;
pub use plan::Needs;
pub use words::{Word, needed_words};

/// Three bytes as a number.
const fn gram(a: u8, b: u8, c: u8) -> u32 {
    (a.to_ascii_lowercase() as u32) << 16
        | (b.to_ascii_lowercase() as u32) << 8
        | c.to_ascii_lowercase() as u32
}
