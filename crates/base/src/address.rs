//! Citation addresses: one line of text that names a resource and a place in it, such as `doc://textbook#pages=12-15`.
//!
//! Search produces them, people and models copy them around, and `resolve` parses them, perhaps years later. A place
//! therefore has one canonical spelling, whatever spelling was parsed, and every address that can be built can be
//! parsed: build, parse and build again yields the same text. Only times have two spellings: the plain form is rounded
//! outward to whole seconds, and [`Address::exact`] keeps the fractions.

use std::{fmt, str::FromStr};

mod decimal;
mod error;
mod escape;
mod place;
mod time;

pub use error::{NotAnAddress, Unit};
pub use place::{Lines, Node, Pages, Region};
pub use time::{Clip, Seconds};

use crate::bounds::ADDRESS_BYTES;

/// A resource and a place in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    resource: String,
    place: Place,
}

/// A place in a resource, by modality; `None` is the whole resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Pages of a document: `doc://ID#pages=12-15`.
    Document(Option<Pages>),
    /// A clip of a video: `video://ID#t=145-200`.
    Video(Option<Clip>),
    /// A clip of a sound recording: `audio://ID#t=145-200`.
    Audio(Option<Clip>),
    /// Lines of a text: `text://ID#lines=3-9`.
    Text(Option<Lines>),
    /// A part of an image: `image://ID#bbox=0.1,0.2,0.5,0.75`.
    Image(Option<Region>),
    /// A node of the resource's map, wherever it points: `virtual://ID#chapter_1.intro`.
    Virtual(Option<Node>),
}

/// The medium of a resource, which determines what places it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Modality {
    /// A document with pages.
    Document,
    /// A video.
    Video,
    /// A sound recording.
    Audio,
    /// A text with lines.
    Text,
    /// A still image.
    Image,
    /// Nodes that stand for places in other resources.
    Virtual,
}

impl Modality {
    /// Every modality, for parsing, messages and tests.
    pub const ALL: [Self; 6] =
        [Self::Document, Self::Video, Self::Audio, Self::Text, Self::Image, Self::Virtual];

    /// The name used in locations and replies.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The scheme, without `://`.
    pub const fn scheme(self) -> &'static str {
        self.row().1
    }

    /// The text between `#` and the value of a place; empty for nodes.
    const fn key(self) -> &'static str {
        self.row().2
    }

    /// The table: name, scheme, key.
    const fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Document => ("document", "doc", "pages="),
            Self::Video => ("video", "video", "t="),
            Self::Audio => ("audio", "audio", "t="),
            Self::Text => ("text", "text", "lines="),
            Self::Image => ("image", "image", "bbox="),
            Self::Virtual => ("virtual", "virtual", ""),
        }
    }

    /// Schemes are case-insensitive, as in every URI.
    fn of_scheme(scheme: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|modality| modality.scheme().eq_ignore_ascii_case(scheme))
    }
}

impl Place {
    /// The whole of a resource.
    pub const fn whole(modality: Modality) -> Self {
        match modality {
            Modality::Document => Self::Document(None),
            Modality::Video => Self::Video(None),
            Modality::Audio => Self::Audio(None),
            Modality::Text => Self::Text(None),
            Modality::Image => Self::Image(None),
            Modality::Virtual => Self::Virtual(None),
        }
    }

    /// The modality that this place belongs to.
    pub const fn modality(&self) -> Modality {
        match self {
            Self::Document(_) => Modality::Document,
            Self::Video(_) => Modality::Video,
            Self::Audio(_) => Modality::Audio,
            Self::Text(_) => Modality::Text,
            Self::Image(_) => Modality::Image,
            Self::Virtual(_) => Modality::Virtual,
        }
    }

    /// The value after the key, with clips converted by `spell`.
    fn value(&self, spell: fn(Clip) -> Clip) -> Option<String> {
        match self {
            Self::Document(pages) => pages.as_ref().map(Pages::to_string),
            Self::Video(clip) | Self::Audio(clip) => clip.map(|clip| spell(clip).to_string()),
            Self::Text(lines) => lines.map(|lines| lines.to_string()),
            Self::Image(region) => region.map(|region| region.to_string()),
            Self::Virtual(node) => node.as_ref().map(|node| escape::encode(node.as_str())),
        }
    }

    fn parse(modality: Modality, fragment: Option<&str>) -> Result<Self, NotAnAddress> {
        let Some(fragment) = fragment else { return Ok(Self::whole(modality)) };
        let value = fragment.strip_prefix(modality.key()).ok_or_else(|| NotAnAddress::Key {
            scheme: modality.scheme(),
            key: modality.key(),
            found: error::excerpt(fragment),
        })?;
        Ok(match modality {
            Modality::Document => Self::Document(Some(value.parse()?)),
            Modality::Video => Self::Video(Some(value.parse()?)),
            Modality::Audio => Self::Audio(Some(value.parse()?)),
            Modality::Text => Self::Text(Some(value.parse()?)),
            Modality::Image => Self::Image(Some(value.parse()?)),
            Modality::Virtual => Self::Virtual(Some(Node::new(escape::decode(value)?)?)),
        })
    }
}

impl Address {
    /// The address of a place in a resource. Fails when the resource id is empty or the address would be too long.
    pub fn new(resource: impl Into<String>, place: Place) -> Result<Self, NotAnAddress> {
        let address = Self { resource: resource.into(), place };
        if address.resource.is_empty() {
            return Err(NotAnAddress::NoResource);
        }
        // The exact form is never shorter than the plain one, so both fit if it does.
        within_bound(&address.spelled(|clip| clip))?;
        Ok(address)
    }

    /// The whole of a resource.
    pub fn whole(resource: impl Into<String>, modality: Modality) -> Result<Self, NotAnAddress> {
        Self::new(resource, Place::whole(modality))
    }

    /// Pages `first` to `last` of a document, inclusive and counted from 1.
    pub fn pages(resource: impl Into<String>, first: u32, last: u32) -> Result<Self, NotAnAddress> {
        Self::new(resource, Place::Document(Some(Pages::range(first, last)?)))
    }

    /// Lines `first` to `last` of a text, inclusive and counted from 1.
    pub fn lines(resource: impl Into<String>, first: u32, last: u32) -> Result<Self, NotAnAddress> {
        Self::new(resource, Place::Text(Some(Lines::new(first, last)?)))
    }

    /// The id of the resource, as stored in the catalog.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The place in the resource.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// The modality of the resource.
    pub const fn modality(&self) -> Modality {
        self.place.modality()
    }

    /// The address with fractions of a second; `None` when the plain form is already exact.
    pub fn exact(&self) -> Option<String> {
        let exact = self.spelled(|clip| clip);
        (exact != self.spelled(Clip::outward)).then_some(exact)
    }

    fn spelled(&self, spell: fn(Clip) -> Clip) -> String {
        let modality = self.modality();
        let mut text = format!("{}://{}", modality.scheme(), escape::encode(&self.resource));
        if let Some(value) = self.place.value(spell) {
            text.extend(["#", modality.key(), &value]);
        }
        text
    }
}

fn within_bound(text: &str) -> Result<(), NotAnAddress> {
    match text.len() {
        bytes if bytes > ADDRESS_BYTES => Err(NotAnAddress::TooLong { bytes }),
        _ => Ok(()),
    }
}

/// The plain form, with times rounded outward to whole seconds.
impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.spelled(Clip::outward))
    }
}

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        within_bound(text)?;
        if text.trim() != text {
            return Err(NotAnAddress::Padded);
        }
        let unknown = || NotAnAddress::Scheme { found: error::excerpt(text) };
        let (scheme, rest) = text.split_once("://").ok_or_else(unknown)?;
        let modality = Modality::of_scheme(scheme).ok_or_else(unknown)?;
        let (resource, fragment) = match rest.split_once('#') {
            Some((resource, fragment)) => (resource, Some(fragment)),
            None => (rest, None),
        };
        Self::new(escape::decode(resource)?, Place::parse(modality, fragment)?)
    }
}

/// The schemes as listed in messages: `doc://, video://, …`.
fn schemes() -> String {
    Modality::ALL.map(|modality| format!("{}://", modality.scheme())).join(", ")
}

#[cfg(test)]
mod tests;
