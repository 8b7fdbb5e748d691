//! What an entry must be before it becomes a line.

use serde_json::{Map, Value};

use super::{WorkspaceError, spelling, stamp::is_date_time};
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
        let what = "The entry, as compact JSON,";
        return Err(WorkspaceError::EntryTooLarge { what, bytes: line.len(), limit: ENTRY_BYTES });
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
            "2026-01-07T14:00:00,5Z",
            "2024-02-29T00:00:00Z",
            "2026-01-07T24:00:00Z",
            "9999-12-31T23:59:59Z",
            "0001-01-01T00:00:00Z",
            "2026-06-30T23:59:60Z",
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
            " 2026-01-07T14:00:00Z",
            "2026-01-07T14:00:00Z ",
            "2026-01-07T14:00:00+01:00[Europe/Berlin]",
            "2026-01-07T24:00:01Z",
            "2026-02-29T14:00:00Z",
            "2026-01-07T14:60:00Z",
            "2026-01-07T14:00:00+01:60",
            "2026-01-07T14:00:00+",
            "2026-01-07T14:00:00.Z",
            "2026-01-07T",
            "٢٠٢٦-01-07T14:00:00Z",
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
            Err(WorkspaceError::EntryTooLarge { bytes: 10_241, limit: ENTRY_BYTES, .. })
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
