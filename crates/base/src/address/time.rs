//! Places with a duration: clips of video and sound. Times are integers in hundredths of a second, so that they survive
//! the round trip through text unchanged.

use std::{fmt, str::FromStr};

use super::{NotAnAddress, decimal, error::excerpt};

const PLACES: usize = 2;
const HUNDREDTHS: u64 = 100;
const MOST: u64 = u32::MAX as u64 * HUNDREDTHS;

/// A time from the start of a recording, to the hundredth of a second, up to `u32::MAX` seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seconds(u64);

impl Seconds {
    /// Whole seconds.
    pub fn whole(seconds: u32) -> Self {
        Self(u64::from(seconds) * HUNDREDTHS)
    }

    /// Rounds to the nearest hundredth; fails below zero, above the maximum and for NaN.
    pub fn nearest(seconds: f64) -> Result<Self, NotAnAddress> {
        decimal::nearest(seconds, PLACES, MOST)
            .map(Self)
            .ok_or_else(|| NotAnAddress::Time { found: seconds.to_string() })
    }

    /// From hundredths of a second.
    pub fn from_hundredths(hundredths: u64) -> Result<Self, NotAnAddress> {
        if hundredths > MOST {
            return Err(NotAnAddress::Time { found: decimal::spell(hundredths, PLACES) });
        }
        Ok(Self(hundredths))
    }

    /// In hundredths of a second.
    pub const fn hundredths(self) -> u64 {
        self.0
    }

    /// In seconds, as used in locations.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / HUNDREDTHS as f64
    }

    const fn down(self) -> Self {
        Self(self.0 / HUNDREDTHS * HUNDREDTHS)
    }

    const fn up(self) -> Self {
        Self(self.0.div_ceil(HUNDREDTHS) * HUNDREDTHS)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&decimal::spell(self.0, PLACES))
    }
}

/// Parses `145.5`, `2:25.5` and `0:02:25.5`.
impl FromStr for Seconds {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        clock(text)
            .and_then(|hundredths| Self::from_hundredths(hundredths).ok())
            .ok_or_else(|| NotAnAddress::Time { found: excerpt(text) })
    }
}

/// Parses a clock time into hundredths. Only the seconds may have decimals, and every part except the first must have
/// two digits and be less than 60.
fn clock(text: &str) -> Option<u64> {
    let Some((before, seconds)) = text.rsplit_once(':') else { return decimal::read(text, PLACES) };
    let minutes = match before.split_once(':') {
        Some((hours, minutes)) => {
            u64::from(decimal::whole(hours)?) * 60 + u64::from(decimal::whole(sexagesimal(minutes)?)?)
        }
        None => u64::from(decimal::whole(before)?),
    };
    Some(minutes * 60 * HUNDREDTHS + decimal::read(sexagesimal(seconds)?, PLACES)?)
}

/// Returns `text` if its integer part has exactly two digits and is less than 60.
fn sexagesimal(text: &str) -> Option<&str> {
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    (whole.len() == 2 && decimal::whole(whole)? < 60).then_some(text)
}

/// A part of a recording, from `start` to `end` or to the end of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clip {
    start: Seconds,
    end: Option<Seconds>,
}

impl Clip {
    /// From `start` to `end`.
    pub fn new(start: Seconds, end: Seconds) -> Result<Self, NotAnAddress> {
        if end < start {
            return Err(NotAnAddress::ClipBackwards { start, end });
        }
        Ok(Self { start, end: Some(end) })
    }

    /// From `start` to the end of the recording, which is what a single time means in a media fragment.
    pub const fn starting(start: Seconds) -> Self {
        Self { start, end: None }
    }

    /// Where it starts.
    pub const fn start(self) -> Seconds {
        self.start
    }

    /// Where it ends; `None` is the end of the recording.
    pub const fn end(self) -> Option<Seconds> {
        self.end
    }

    /// The shortest clip of whole seconds that contains this one.
    #[must_use]
    pub fn outward(self) -> Self {
        Self { start: self.start.down(), end: self.end.map(Seconds::up) }
    }
}

impl fmt::Display for Clip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            Some(end) => write!(formatter, "{}-{end}", self.start),
            None => self.start.fmt(formatter),
        }
    }
}

/// Parses `a-b` and `a`, and the forms of W3C media fragments `a,b` and `,b`, each with an optional `npt:` prefix.
impl FromStr for Clip {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let text = text.strip_prefix("npt:").unwrap_or(text);
        match text.split_once(',').or_else(|| text.split_once('-')) {
            Some(("", end)) if text.starts_with(',') => Self::new(Seconds::default(), end.parse()?),
            Some((start, end)) => Self::new(start.parse()?, end.parse()?),
            None => text.parse().map(Self::starting),
        }
    }
}
