//! What an entry must be before it becomes a line.

use serde_json::{Map, Value};

use super::{WorkspaceError, spelling};
use crate::secrets;

/// Bytes of an entry as compact JSON.
const ENTRY_BYTES: usize = 10_240;
/// Bytes of a key at most.
const KEY_BYTES: usize = 200;

fn invalid(text: impl Into<String>) -> WorkspaceError {
    WorkspaceError::Invalid(text.into())
}

/// The line of an entry that fulfils the contract.
pub(super) fn line_of(text: &str) -> Result<String, WorkspaceError> {
    if !text.trim_start().starts_with('{') {
        return Err(invalid("entry must be an object"));
    }
    let entry: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| invalid(format!("entry is not valid JSON: {error}")))?;
    check(&entry)?;
    let line = spelling::compact(text)
        .map_err(|key| invalid(format!("entry has the key '{key}' twice; each may be there once")))?;
    if line.len() > ENTRY_BYTES {
        return Err(WorkspaceError::EntryTooLarge { bytes: line.len(), limit: ENTRY_BYTES });
    }
    Ok(line)
}

fn check(entry: &Map<String, Value>) -> Result<(), WorkspaceError> {
    let timestamp =
        entry.get("timestamp").ok_or_else(|| invalid("entry must include 'timestamp' (ISO 8601)"))?;
    if !timestamp.as_str().is_some_and(is_date_time) {
        return Err(invalid(
            "entry.timestamp must be an ISO 8601 date and time such as 2026-01-07T14:00:00Z",
        ));
    }
    let says = |key: &str| {
        entry.get(key).is_some_and(|value| match value {
            Value::Null => false,
            Value::String(text) => !text.trim().is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => true,
        })
    };
    if !says("event") && !says("decision") {
        return Err(invalid("entry must include a non-empty 'event' or 'decision'"));
    }
    match secrets::find(entry) {
        Some(field) => Err(invalid(format!("{field} looks like a secret; leave it out"))),
        None => Ok(()),
    }
}

/// A key is kept in the data directory, so it must be short and no secret.
pub(super) fn check_key(key: &str) -> Result<(), WorkspaceError> {
    if key.trim().is_empty() || key.len() > KEY_BYTES {
        return Err(invalid(format!("idempotency_key must have 1 to {KEY_BYTES} bytes")));
    }
    if secrets::is_secret(key) {
        return Err(invalid("idempotency_key looks like a secret; take another text"));
    }
    Ok(())
}

/// A date and a time of ISO 8601, zone optional.
fn is_date_time(text: &str) -> bool {
    let text = text.trim();
    // With or without dashes and colons.
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    let zoned = time.ends_with(['Z', 'z']) || time.contains(['+', '-']);
    let full = if zoned { text.to_owned() } else { format!("{text}Z") };
    matches!(date.len(), 8 | 10)
        && is_zone_of_a_day(time)
        && time.len() >= 4
        && shelf_base::Moment::parse(&full, shelf_base::Moment::default()).is_ok()
}

/// Whether the offset at the end of a time, if there is one, is less than a day.
fn is_zone_of_a_day(time: &str) -> bool {
    let Some((_, offset)) = time.rsplit_once(['+', '-']) else { return true };
    let hours = offset.get(..2).unwrap_or(offset);
    hours.parse::<u8>().is_ok_and(|hours| hours < 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_dates_with_times() {
        for fine in [
            "2026-01-07T14:00:00Z",
            "2026-01-07T14:00:00",
            "2026-01-07T14:00:00.25+02:00",
            "2026-01-07T14:00:00-05:00",
            "2026-01-07T14:00:00+0530",
            "2026-01-07T14:00:00+23:59",
            "2026-01-07T14:00Z",
            "20260107T140000Z",
            "20260107T140000",
        ] {
            assert!(is_date_time(fine), "{fine}");
        }
        for wrong in [
            "2026-01-07T14:00:00+24:00",
            "2026-01-07T14:00:00-25:30",
            "2026-01-07",
            "yesterday",
            "7d",
            "",
            "14:00",
            "2026-13-07T14:00:00Z",
            "1767794400",
        ] {
            assert!(!is_date_time(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_bound_is_on_compact_bytes() {
        let sized = |length: usize| {
            format!(
                "{{  \"timestamp\" : \"2026-01-07T14:00:00Z\",\n \"event\": \"{}\" }}",
                "x".repeat(length)
            )
        };
        let frame = line_of(&sized(1)).unwrap().len() - 1;
        assert_eq!(line_of(&sized(ENTRY_BYTES - frame)).unwrap().len(), ENTRY_BYTES);
        assert!(matches!(
            line_of(&sized(ENTRY_BYTES - frame + 1)),
            Err(WorkspaceError::EntryTooLarge { bytes: 10_241, limit: ENTRY_BYTES })
        ));
    }

    #[test]
    fn a_secret_cannot_hide_behind_a_second_key_of_the_same_name() {
        let text = r#"{"timestamp":"2026-01-07T14:00:00Z","event":"AKIAIOSFODNN7EXAMPLE","event":"x"}"#;
        assert!(
            matches!(line_of(text), Err(WorkspaceError::Invalid(message)) if message.contains("'event' twice"))
        );
    }
}
