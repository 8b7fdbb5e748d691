//! Decimal numbers stored as integers in units of their last decimal place, so that equal values compare equal and
//! print the same. [`nearest`] is the only conversion from floating point.

/// Parses an unsigned integer made of digits only; `str::parse` would also accept a leading `+`.
pub(super) fn whole(text: &str) -> Option<u32> {
    all_digits(text).then(|| text.parse().ok()).flatten()
}

/// Parses the digits after the decimal point into units of the last of `places` decimals. Further trailing zeros are
/// ignored; other digits would be lost, so they are rejected.
fn fraction(text: &str, places: usize) -> Option<u64> {
    if !all_digits(text) {
        return None;
    }
    let digits = text.trim_end_matches('0');
    (digits.len() <= places).then(|| format!("{digits:0<places$}").parse().ok()).flatten()
}

/// Parses `12` or `12.5` into units of the last of `places` decimals.
pub(super) fn read(text: &str, places: usize) -> Option<u64> {
    let (units, rest) = match text.split_once('.') {
        Some((units, digits)) => (units, fraction(digits, places)?),
        None => (text, 0),
    };
    Some(u64::from(whole(units)?) * scale(places) + rest)
}

/// Formats units of the last of `places` decimals, without trailing zeros.
pub(super) fn spell(value: u64, places: usize) -> String {
    let (units, rest) = (value / scale(places), value % scale(places));
    if rest == 0 {
        return units.to_string();
    }
    format!("{units}.{rest:0places$}").trim_end_matches('0').to_owned()
}

/// Rounds to the nearest unit of the last of `places` decimals; `None` below zero, above `most` and for NaN.
pub(super) fn nearest(value: f64, places: usize, most: u64) -> Option<u64> {
    let units = (value * scale(places) as f64).round();
    (value >= 0.0 && units <= most as f64).then_some(units as u64)
}

/// The number of units in one.
fn scale(places: usize) -> u64 {
    (0..places).fold(1, |scale, _| scale * 10)
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
