//! The trigram index for pattern search: which documents contain which three consecutive bytes, so that a pattern
//! search reads only documents that can match. ASCII letters are lowercased, so that the same lists serve
//! case-sensitive and case-insensitive searches.

mod build;
mod lists;
mod plan;
mod words;

pub(crate) use build::{MOST_DOCUMENTS, TrigramsBuilder};
pub(crate) use lists::Trigrams;
pub use plan::Needs;
pub use words::{Word, needed_words};

/// Encodes three bytes as a number.
const fn gram(a: u8, b: u8, c: u8) -> u32 {
    (a.to_ascii_lowercase() as u32) << 16
        | (b.to_ascii_lowercase() as u32) << 8
        | c.to_ascii_lowercase() as u32
}
