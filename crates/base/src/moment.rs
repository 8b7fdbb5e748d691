//! Points in time: nanoseconds since 1970 in UTC, written as RFC 3339 with `Z`. [`SystemClock`] counts microseconds;
//! the finer digits preserve the exact times of files.

use std::{fmt, str::FromStr, time::SystemTime};

use jiff::{Span, Timestamp, civil, tz::TimeZone};
use parking_lot::Mutex;
use serde::{Serialize, Serializer};

/// A point in time, between the years 1678 and 2262.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(i64);

impl Moment {
    /// From microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// From nanoseconds since 1970.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since 1970.
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Converts a file system time, which may be before 1970.
    pub fn from_system(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Self(i64::try_from(after.as_nanos()).unwrap_or(i64::MAX)),
            Err(before) => Self(-i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX)),
        }
    }

    /// Formats the time with all six digits of the fraction, as in snapshot ids.
    pub fn with_micros(self) -> String {
        format!("{:.6}", self.timestamp())
    }

    /// Parses an ISO date, a date-time (UTC when no zone is given) or a relative time such as `7d`, counted back from
    /// `now`.
    pub fn parse(text: &str, now: Self) -> Result<Self, NotAMoment> {
        let text = text.trim();
        relative(text, now).or_else(|| absolute(text)).ok_or_else(|| NotAMoment(text.to_owned()))
    }

    fn timestamp(self) -> Timestamp {
        Timestamp::from_nanosecond(self.0.into()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

fn relative(text: &str, now: Moment) -> Option<Moment> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let amount: i64 = text[..split].parse().ok()?;
    let seconds: i64 = match text[split..].trim() {
        "s" | "sec" | "second" | "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3_600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 604_800,
        "mo" | "month" | "months" => 2_629_746,
        "y" | "year" | "years" => 31_556_952,
        _ => return None,
    };
    amount
        .checked_mul(seconds)?
        .checked_mul(1_000_000_000)
        .and_then(|back| now.0.checked_sub(back))
        .map(Moment)
}

fn absolute(text: &str) -> Option<Moment> {
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return of_timestamp(stamp);
    }
    let civil: civil::DateTime = text.parse().ok()?;
    TimeZone::UTC.to_timestamp(civil).ok().and_then(of_timestamp)
}

fn of_timestamp(stamp: Timestamp) -> Option<Moment> {
    i64::try_from(stamp.as_nanosecond()).ok().map(Moment)
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(formatter)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The text is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a time: write a date (2026-01-31), a date-time (2026-01-31T12:00:00Z) or an age (7d, 12h)"
)]
pub struct NotAMoment(pub String);

impl FromStr for Moment {
    type Err = NotAMoment;

    fn from_str(text: &str) -> Result<Self, NotAMoment> {
        absolute(text.trim()).ok_or_else(|| NotAMoment(text.to_owned()))
    }
}

/// A source of the current time, injected so that tests can control it.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Moment;
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        Moment::from_micros(Moment::from_system(SystemTime::now()).micros())
    }
}

/// A clock that tests advance manually.
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<Moment>);

impl ManualClock {
    /// A clock set to `moment`.
    pub fn at(moment: Moment) -> Self {
        Self(Mutex::new(moment))
    }

    /// Moves the clock forward.
    pub fn advance(&self, span: std::time::Duration) {
        let mut now = self.0.lock();
        now.0 += i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        *self.0.lock()
    }
}

impl Moment {
    /// The moment `days` earlier, for retention rules.
    pub fn days_before(self, days: i64) -> Self {
        let span = Span::new().try_hours(days.saturating_mul(24).min(87_600_000)).unwrap_or_default();
        self.timestamp().checked_sub(span).ok().and_then(of_timestamp).unwrap_or(Self(i64::MIN))
    }

    /// The calendar day in UTC, for "one per day" rules.
    pub fn day(self) -> String {
        TimeZone::UTC.to_datetime(self.timestamp()).date().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_reads_the_forms_callers_use() {
        let now: Moment = "2026-11-15T02:07:09.123456Z".parse().unwrap();
        assert_eq!(now.to_string(), "2026-11-15T02:07:09.123456Z");
        assert_eq!(now.with_micros(), "2026-11-15T02:07:09.123456Z");
        let whole: Moment = "2026-11-15T02:07:09Z".parse().unwrap();
        assert_eq!(whole.to_string(), "2026-11-15T02:07:09Z");
        assert_eq!(whole.with_micros(), "2026-11-15T02:07:09.000000Z");
        assert_eq!(Moment::parse("7d", now).unwrap().to_string(), "2026-11-08T02:07:09.123456Z");
        assert_eq!(Moment::parse("2026-01-01", now).unwrap().to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(
            Moment::parse("2026-01-01T10:00:00+02:00", now).unwrap().to_string(),
            "2026-01-01T08:00:00Z"
        );
        assert!(Moment::parse("yesterday-ish", now).is_err());
        assert!(Moment::parse("99999999999999999999d", now).is_err());
        assert_eq!(now.day(), "2026-11-15");
        assert_eq!(now.days_before(1).day(), "2026-11-14");
    }
}
