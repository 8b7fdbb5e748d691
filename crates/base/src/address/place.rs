//! Places without a duration: pages, lines, regions and nodes. Each is validated when it is created, so no value runs
//! backwards or starts at zero.

use std::{fmt, str::FromStr};

use super::{NotAnAddress, Unit, decimal, error::excerpt};
use crate::bounds::ADDRESS_PAGES;

/// A set of pages of a document, counted from 1. Neither order nor repetition makes a different address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pages(Kept);

/// Consecutive pages are always stored as a range; a list has at least one gap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kept {
    Range(u32, u32),
    List(Vec<u32>),
}

impl Pages {
    /// One page.
    pub fn single(page: u32) -> Result<Self, NotAnAddress> {
        Self::range(page, page)
    }

    /// The pages `first` to `last`, inclusive.
    pub fn range(first: u32, last: u32) -> Result<Self, NotAnAddress> {
        forwards(Unit::Page, first, last).map(|(first, last)| Self(Kept::Range(first, last)))
    }

    /// Exactly these pages.
    pub fn list(mut pages: Vec<u32>) -> Result<Self, NotAnAddress> {
        if pages.len() > ADDRESS_PAGES {
            return Err(NotAnAddress::TooManyPages { count: pages.len() });
        }
        pages.sort_unstable();
        pages.dedup();
        let (Some(first), Some(last)) = (pages.first().copied(), pages.last().copied()) else {
            return Err(NotAnAddress::NoPages);
        };
        let gap = pages.iter().zip(pages.iter().skip(1)).any(|(page, next)| next - page > 1);
        let range = Self::range(first, last)?;
        Ok(if gap { Self(Kept::List(pages)) } else { range })
    }

    /// The lowest page.
    pub fn first(&self) -> u32 {
        match &self.0 {
            Kept::Range(first, _) => *first,
            Kept::List(pages) => pages.first().copied().unwrap_or_default(),
        }
    }

    /// The highest page; the address is valid only if the document has it.
    pub fn last(&self) -> u32 {
        match &self.0 {
            Kept::Range(_, last) => *last,
            Kept::List(pages) => pages.last().copied().unwrap_or_default(),
        }
    }

    /// First and last page when no page between them is missing.
    pub fn as_range(&self) -> Option<(u32, u32)> {
        match &self.0 {
            Kept::Range(first, last) => Some((*first, *last)),
            Kept::List(_) => None,
        }
    }

    /// Whether every one of the other's pages is one of these.
    pub fn contains(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kept::Range(first, last), _) => *first <= other.first() && other.last() <= *last,
            (Kept::List(_), Kept::Range(first, last)) if last - first >= ADDRESS_PAGES as u32 => false,
            (Kept::List(pages), _) => other.iter().all(|page| pages.binary_search(&page).is_ok()),
        }
    }

    /// Every page, in ascending order. A range may span up to `u32::MAX` pages, so check [`Pages::last`] before
    /// collecting.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (range, list) = match &self.0 {
            Kept::Range(first, last) => (Some(*first..=*last), &[][..]),
            Kept::List(pages) => (None, pages.as_slice()),
        };
        range.into_iter().flatten().chain(list.iter().copied())
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kept::Range(first, last) => write_range(formatter, *first, *last),
            Kept::List(pages) => {
                let pages: Vec<String> = pages.iter().map(u32::to_string).collect();
                formatter.write_str(&pages.join(","))
            }
        }
    }
}

impl FromStr for Pages {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        if text.contains(',') {
            let pages: Result<_, _> = text.split(',').map(|page| number(Unit::Page, page)).collect();
            return Self::list(pages?);
        }
        let (first, last) = range(Unit::Page, text)?;
        Self::range(first, last)
    }
}

/// Lines of a text, counted from 1, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lines {
    first: u32,
    last: u32,
}

impl Lines {
    /// The lines `first` to `last`.
    pub fn new(first: u32, last: u32) -> Result<Self, NotAnAddress> {
        forwards(Unit::Line, first, last).map(|(first, last)| Self { first, last })
    }

    /// The first line.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// The last line.
    pub const fn last(self) -> u32 {
        self.last
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_range(formatter, self.first, self.last)
    }
}

impl FromStr for Lines {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let (first, last) = range(Unit::Line, text)?;
        Self::new(first, last)
    }
}

/// A rectangle in an image. Its corners are fractions of the image's width and height, measured from the top left and
/// stored in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region([u32; 4]);

impl Region {
    const PLACES: usize = 6;
    const WHOLE: u32 = 1_000_000;

    /// The rectangle `[x1, y1, x2, y2]`, each from 0 to 1 and rounded to the nearest millionth.
    pub fn nearest(corners: [f64; 4]) -> Result<Self, NotAnAddress> {
        let mut millionths = [0; 4];
        for (kept, corner) in millionths.iter_mut().zip(corners) {
            let value = decimal::nearest(corner, Self::PLACES, Self::WHOLE.into());
            *kept = coordinate(value, || corner.to_string())?;
        }
        Self::from_millionths(millionths)
    }

    /// The rectangle `[x1, y1, x2, y2]`, each from 0 to 1,000,000.
    pub fn from_millionths(corners: [u32; 4]) -> Result<Self, NotAnAddress> {
        if let Some(&beyond) = corners.iter().find(|&&corner| corner > Self::WHOLE) {
            return Err(NotAnAddress::Coordinate { found: Self::spell(beyond) });
        }
        let [x1, y1, x2, y2] = corners;
        for (axis, first, second) in [('x', x1, x2), ('y', y1, y2)] {
            if first >= second {
                return Err(NotAnAddress::EmptyRegion { axis, first, second });
            }
        }
        Ok(Self(corners))
    }

    /// `[x1, y1, x2, y2]` in millionths.
    pub const fn millionths(self) -> [u32; 4] {
        self.0
    }

    /// `[x1, y1, x2, y2]` from 0 to 1, as used in locations.
    pub fn corners(self) -> [f64; 4] {
        self.0.map(|corner| f64::from(corner) / f64::from(Self::WHOLE))
    }

    pub(super) fn spell(millionths: u32) -> String {
        decimal::spell(millionths.into(), Self::PLACES)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.map(Self::spell).join(","))
    }
}

impl FromStr for Region {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let corners: Result<Vec<u32>, _> = text
            .split(',')
            .map(|corner| coordinate(decimal::read(corner, Self::PLACES), || excerpt(corner)))
            .collect();
        let corners = corners?.try_into().map_err(|found: Vec<u32>| found.len());
        Self::from_millionths(corners.map_err(|count| NotAnAddress::Corners { count })?)
    }
}

/// The id of a node in a resource's map; any non-empty text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(String);

impl Node {
    /// The node with this id.
    pub fn new(id: impl Into<String>) -> Result<Self, NotAnAddress> {
        let id = id.into();
        if id.is_empty() { Err(NotAnAddress::NoNode) } else { Ok(Self(id)) }
    }

    /// The id, as it appears in the map.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn coordinate(value: Option<u64>, found: impl FnOnce() -> String) -> Result<u32, NotAnAddress> {
    value
        .and_then(|value| u32::try_from(value).ok())
        .filter(|value| *value <= Region::WHOLE)
        .ok_or_else(|| NotAnAddress::Coordinate { found: found() })
}

fn forwards(unit: Unit, first: u32, last: u32) -> Result<(u32, u32), NotAnAddress> {
    match (first, last) {
        (0, _) | (_, 0) => Err(NotAnAddress::Zero { unit }),
        _ if last < first => Err(NotAnAddress::Backwards { unit, first, last }),
        range => Ok(range),
    }
}

fn range(unit: Unit, text: &str) -> Result<(u32, u32), NotAnAddress> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Ok((number(unit, first)?, number(unit, last)?))
}

fn number(unit: Unit, text: &str) -> Result<u32, NotAnAddress> {
    decimal::whole(text).ok_or_else(|| NotAnAddress::Number { unit, found: excerpt(text) })
}

fn write_range(formatter: &mut fmt::Formatter<'_>, first: u32, last: u32) -> fmt::Result {
    if first == last { write!(formatter, "{first}") } else { write!(formatter, "{first}-{last}") }
}
