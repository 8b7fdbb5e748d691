//! Why an address is invalid, with the offending values.

use std::fmt;

use super::{Region, Seconds, schemes};
use crate::bounds::{ADDRESS_BYTES, ADDRESS_PAGES};

/// Maximum number of characters of a caller's text that an error quotes.
const EXCERPT_CHARS: usize = 80;

/// What a number counts, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Pages of a document.
    Page,
    /// Lines of a text.
    Line,
}

impl fmt::Display for Unit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Page => "page",
            Self::Line => "line",
        })
    }
}

/// The text or the values do not form an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnAddress {
    /// The address is too long.
    #[error("the address has {bytes} bytes, but at most {ADDRESS_BYTES} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Leading or trailing whitespace.
    #[error("the address has leading or trailing whitespace: remove it")]
    Padded,
    /// A missing or unknown scheme.
    #[error("'{found}' is not an address: it must begin with one of {}", schemes())]
    Scheme {
        /// The beginning of the text.
        found: String,
    },
    /// Nothing between `://` and `#`.
    #[error("the address names no resource: write its id after '://'")]
    NoResource,
    /// A virtual address that ends at `#`.
    #[error("the address names no node: write its id after '#', or omit '#' for the whole resource")]
    NoNode,
    /// A kind of place that this scheme does not have.
    #[error(
        "'#{found}' is not a place in a {scheme}:// resource: write '#{key}…', or omit '#' for the whole resource"
    )]
    Key {
        /// The scheme.
        scheme: &'static str,
        /// The prefix of its places.
        key: &'static str,
        /// The beginning of the place that was given.
        found: String,
    },
    /// Not a page or line number.
    #[error("'{found}' is not a {unit} number: write digits only, for 1 to {}", u32::MAX)]
    Number {
        /// What the number should count.
        unit: Unit,
        /// The text found instead.
        found: String,
    },
    /// Page or line 0.
    #[error("there is no {unit} 0: {unit}s are counted from 1")]
    Zero {
        /// What is counted.
        unit: Unit,
    },
    /// A range that runs backwards.
    #[error("{unit}s {first}-{last} run backwards: write the smaller number first")]
    Backwards {
        /// What is counted.
        unit: Unit,
        /// The number before the dash.
        first: u32,
        /// The number after it.
        last: u32,
    },
    /// An empty list of pages.
    #[error("the list of pages is empty: name at least one")]
    NoPages,
    /// More pages than a list may have.
    #[error("{count} pages are listed, but at most {ADDRESS_PAGES} are allowed: write a range")]
    TooManyPages {
        /// The number of pages listed.
        count: usize,
    },
    /// Not a time.
    #[error(
        "'{found}' is not a time: write seconds with at most two decimals (145.5), MM:SS or HH:MM:SS, up to {} seconds",
        u32::MAX
    )]
    Time {
        /// The text found instead.
        found: String,
    },
    /// A clip that ends before it starts.
    #[error("the clip starts at {start} s and ends at {end} s: write the earlier time first")]
    ClipBackwards {
        /// The time before the dash.
        start: Seconds,
        /// The time after it.
        end: Seconds,
    },
    /// Too few or too many coordinates.
    #[error("a bbox has 4 numbers, x1,y1,x2,y2, but {count} were given")]
    Corners {
        /// The number of coordinates given.
        count: usize,
    },
    /// Not a coordinate.
    #[error("'{found}' is not a bbox coordinate: write a number from 0 to 1 with at most six decimals")]
    Coordinate {
        /// The text found instead.
        found: String,
    },
    /// A region without width or height, or with its corners swapped.
    #[error(
        "the bbox goes from {axis}1={} to {axis}2={}: {axis}1 must be smaller, measured from the top left",
        Region::spell(*.first),
        Region::spell(*.second)
    )]
    EmptyRegion {
        /// `x` or `y`.
        axis: char,
        /// The first coordinate, in millionths.
        first: u32,
        /// The second coordinate, in millionths.
        second: u32,
    },
    /// `%` without two hexadecimal digits.
    #[error("'{found}' is not an escape: write '%' and two hexadecimal digits, and '%25' for '%' itself")]
    Escape {
        /// The text found instead.
        found: String,
    },
    /// A character that must be escaped in an id.
    #[error("an id in an address cannot contain {found:?} unescaped: write {escaped}")]
    Unescaped {
        /// The character.
        found: char,
        /// Its escaped form.
        escaped: String,
    },
    /// Escapes that do not decode to UTF-8.
    #[error("the escapes in '{found}' are not UTF-8")]
    NotUtf8 {
        /// The id as written.
        found: String,
    },
}

/// The beginning of a caller's text, short enough to quote.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
