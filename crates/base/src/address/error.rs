//! What can be wrong with an address, with the values that are wrong.

use std::fmt;

use super::{Region, Seconds, schemes};
use crate::bounds::{ADDRESS_BYTES, ADDRESS_PAGES};

/// Most characters of a caller's text that an error repeats.
const EXCERPT_CHARS: usize = 80;

/// What is counted from 1.
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

/// The text or the values make no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnAddress {
    /// Longer than an address may be.
    #[error("the address has {bytes} bytes, and at most {ADDRESS_BYTES} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Space before or after.
    #[error("the address has space before or after it: leave that out")]
    Padded,
    /// No scheme, or one that is not ours.
    #[error("'{found}' is not an address: it must begin with one of {}", schemes())]
    Scheme {
        /// How the text begins.
        found: String,
    },
    /// Nothing between `://` and `#`.
    #[error("the address names no resource: write its id after '://'")]
    NoResource,
    /// A virtual address ends at `#`.
    #[error("the address names no node: write its id after '#', or leave '#' out for the whole resource")]
    NoNode,
    /// A place that this scheme does not have.
    #[error(
        "'#{found}' is not a place in a {scheme}:// resource: write '#{key}…', or leave '#' out for all of it"
    )]
    Key {
        /// The scheme.
        scheme: &'static str,
        /// How its places begin.
        key: &'static str,
        /// How this one begins.
        found: String,
    },
    /// Not a number of a page or a line.
    #[error("'{found}' is not a {unit} number: write digits only, for 1 to {}", u32::MAX)]
    Number {
        /// What was to be counted.
        unit: Unit,
        /// What stands there.
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
    /// A list without pages.
    #[error("the list of pages is empty: name at least one")]
    NoPages,
    /// More pages than a list may have.
    #[error("{count} pages are listed, and at most {ADDRESS_PAGES} are allowed: write a range")]
    TooManyPages {
        /// How many.
        count: usize,
    },
    /// Not a time.
    #[error(
        "'{found}' is not a time: write seconds with at most two decimals (145.5), MM:SS or HH:MM:SS, up to {} seconds",
        u32::MAX
    )]
    Time {
        /// What stands there.
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
    /// Too few or too many corners.
    #[error("a bbox has 4 numbers, x1,y1,x2,y2, and here are {count}")]
    Corners {
        /// How many.
        count: usize,
    },
    /// Not a coordinate.
    #[error("'{found}' is not a bbox coordinate: write a number from 0 to 1 with at most six decimals")]
    Coordinate {
        /// What stands there.
        found: String,
    },
    /// A region without width or height, or with its corners exchanged.
    #[error(
        "the bbox goes from {axis}1={} to {axis}2={}: {axis}1 must be the smaller, counted from the top left",
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
        /// What stands there.
        found: String,
    },
    /// A character that must be escaped in an id.
    #[error("an id in an address cannot hold {found:?} as it is: write {escaped}")]
    Unescaped {
        /// The character.
        found: char,
        /// How it is written.
        escaped: String,
    },
    /// Escapes that spell no text.
    #[error("the escapes in '{found}' are not UTF-8")]
    NotUtf8 {
        /// The id as written.
        found: String,
    },
}

/// The beginning of a caller's text, short enough to repeat.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
