//! Decimal numbers held as whole units of their last place, so that equal places compare equal and print alike.
//! Floating point comes in through [`nearest`] only.

/// Reads an unsigned whole number: digits and nothing else, where `str::parse` would let a `+` through.
pub(super) fn whole(text: &str) -> Option<u32> {
    all_digits(text).then(|| text.parse().ok()).flatten()
}

/// Reads the digits after a point as units of the last of `places`. Zeros beyond it say nothing new; other digits
/// would be lost, so they are refused.
fn fraction(text: &str, places: usize) -> Option<u64> {
    if !all_digits(text) {
        return None;
    }
    let digits = text.trim_end_matches('0');
    (digits.len() <= places).then(|| format!("{digits:0<places$}").parse().ok()).flatten()
}

/// Reads `12` or `12.5` as units of the last of `places`.
pub(super) fn read(text: &str, places: usize) -> Option<u64> {
    let (units, rest) = match text.split_once('.') {
        Some((units, digits)) => (units, fraction(digits, places)?),
        None => (text, 0),
    };
    Some(u64::from(whole(units)?) * scale(places) + rest)
}

/// Writes units of the last of `places` without zeros that say nothing.
pub(super) fn spell(value: u64, places: usize) -> String {
    let (units, rest) = (value / scale(places), value % scale(places));
    if rest == 0 {
        return units.to_string();
    }
    format!("{units}.{rest:0places$}").trim_end_matches('0').to_owned()
}

/// The nearest number of units of the last of `places`; `None` below zero, above `most` and for what is no number.
pub(super) fn nearest(value: f64, places: usize, most: u64) -> Option<u64> {
    let units = (value * scale(places) as f64).round();
    (value >= 0.0 && units <= most as f64).then_some(units as u64)
}

/// How many units make one.
fn scale(places: usize) -> u64 {
    (0..places).fold(1, |scale, _| scale * 10)
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
