//! Timestamps of entries: dates with times as ISO 8601 writes them, of every year that it knows.

use shelf_base::Moment;

const DAY_NANOS: i64 = 86_400 * 1_000_000_000;

/// A calendar date and a time of ISO 8601, zone optional, with or without dashes and colons.
pub(super) fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    let (time, zone) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, ""),
    };
    is_date(date) && is_time(time) && is_zone(zone)
}

/// The moment that a timestamp means. One before or after all that can be counted is the first or the last of them.
pub(super) fn moment(text: &str) -> Option<Moment> {
    if let Ok(moment) = text.parse() {
        return Some(moment);
    }
    let year = Some(text).filter(|text| is_date_time(text)).and_then(|text| number(text.get(..4)?))?;
    if !(1_700..2_200).contains(&year) {
        return Some(Moment::from_nanos(if year < 1_700 { i64::MIN } else { i64::MAX }));
    }
    // The end of a day is the beginning of the next.
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let midnight: Moment = format!("{date}T00{}", time.strip_prefix("24")?).parse().ok()?;
    Some(Moment::from_nanos(midnight.nanos().saturating_add(DAY_NANOS)))
}

/// A number of plain digits.
fn number(text: &str) -> Option<u32> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Numbers of two digits, with a sign between all of them or none.
fn pairs(text: &str, sign: char) -> Option<Vec<u32>> {
    let two = |part: &str| number(part).filter(|_| part.len() == 2);
    if text.contains(sign) {
        return text.split(sign).map(two).collect();
    }
    text.as_bytes().chunks(2).map(|pair| two(std::str::from_utf8(pair).ok()?)).collect()
}

fn is_date(date: &str) -> bool {
    let Some(year) = date.get(..4).and_then(number) else { return false };
    let rest = &date[4..];
    let parts = match rest.strip_prefix('-') {
        Some(rest) if rest.len() == 5 => pairs(rest, '-'),
        None if rest.len() == 4 => pairs(rest, '-'),
        _ => None,
    };
    let Some(&[month, day]) = parts.as_deref() else { return false };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

fn is_time(time: &str) -> bool {
    let (whole, fraction) = match time.split_once(['.', ',']) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (time, None),
    };
    let is_fraction =
        fraction.is_none_or(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    let Some(parts) = pairs(whole, ':') else { return false };
    let is_end_of_day = fraction.is_none_or(|digits| digits.bytes().all(|digit| digit == b'0'));
    is_fraction
        && match parts[..] {
            [24, 0] | [24, 0, 0] => is_end_of_day,
            [hour, minute] => hour < 24 && minute < 60 && fraction.is_none(),
            // A minute may have a second more.
            [hour, minute, second] => hour < 24 && minute < 60 && second <= 60,
            _ => false,
        }
}

fn is_zone(zone: &str) -> bool {
    if matches!(zone, "" | "Z" | "z") {
        return true;
    }
    let Some(parts) = zone.get(1..).and_then(|offset| pairs(offset, ':')) else { return false };
    zone.starts_with(['+', '-'])
        && match parts[..] {
            [hours] => hours < 24,
            [hours, minutes] => hours < 24 && minutes < 60,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_in_order_whatever_their_year() {
        let stamps = [
            "0001-01-01T00:00:00Z",
            "2026-01-07T23:59:59Z",
            "2026-01-07T24:00:00Z",
            "2026-01-08T00:00:01",
            "9999-12-31T23:59:59Z",
        ];
        let moments = stamps.map(|stamp| moment(stamp).unwrap());
        assert!(moments.is_sorted(), "{moments:?}");
        assert_eq!(moment("20260107T240000+01:00"), moment("2026-01-07T23:00:00Z"));
        assert_eq!(moment("yesterday"), None);
    }
}
