//! Arguments whose exact JSON text a tool keeps, such as an entry that becomes a line of the user's file.
//!
//! Between a transport and a tool, arguments are `serde_json` values, in which `1.10` and `1.1` are the same number.
//! The `serde_json` mode that preserves the difference breaks the MCP library. Every transport has the text of a
//! request before it is parsed, so it puts the text of such an argument into a wrapper: an object with one reserved
//! key. The wrapper passes through the MCP library like any object, and the tool unwraps it.
//!
//! Only the spelling depends on the wrapper. Without one, the tool writes the parsed value. A client that sends a
//! wrapper itself merely sends the same argument in another form, because the tool checks the content. No valid entry
//! looks like a wrapper.
//!
//! Metadata is kept as values. A fraction may be of any size there, but an integer of more than 64 bits would silently
//! become a fraction that is only close to it. In place of such metadata stands a mark, for which the call is refused.

use std::collections::BTreeMap;

use serde_json::{Map, Value, value::RawValue};

/// The tools that keep the text of an argument, with the name of the argument.
const KEPT: &[(&str, &str)] = &[("write_memory_entry", "entry")];

/// The tools that store metadata, with the name of the argument.
const METADATA: &[(&str, &str)] = &[
    ("store_document_tool", "doc_metadata"),
    ("update_document_tool", "doc_metadata"),
    ("add", "metadata"),
    ("download", "metadata"),
    ("update", "metadata"),
    ("undelete_document", "metadata"),
];

/// The only key of a wrapper.
const KEY: &str = "$json";
/// The only key of what stands in place of metadata with an integer that is too large. Metadata has no such keys.
const MARK: &str = "\u{1}integer";
/// Digits from which on an integer may take more than 64 bits.
const MANY_DIGITS: usize = 19;

/// Wraps the argument that `tool` keeps, in a JSON text that holds the tool's arguments under the keys of `path`.
/// `None` when there is nothing to wrap; the text can then be used unchanged.
pub fn wrap(tool: &str, text: &str, path: &[&str]) -> Option<String> {
    match path.split_first() {
        Some((step, rest)) => with_field(text, step, |inner| wrap(tool, inner, rest)),
        None => {
            let argument = |table: &[(&str, &'static str)]| {
                table.iter().find(|(name, _)| *name == tool).map(|(_, argument)| *argument)
            };
            if let Some(argument) = argument(KEPT) {
                return with_field(text, argument, wrapped);
            }
            let argument = argument(METADATA).filter(|_| has_many_digits(text))?;
            with_field(text, argument, marked)
        }
    }
}

/// A quick check whether a text may call a tool that keeps an argument. A negative answer is always right.
pub fn may_wrap(text: &str) -> bool {
    // The tool name may contain escapes.
    KEPT.iter().any(|(name, _)| text.contains(name)) || text.contains("\\u") || has_many_digits(text)
}

/// The argument of a tool that held an integer which takes more than 64 bits.
pub(crate) fn too_wide(tool: &str, arguments: &Map<String, Value>) -> Option<&'static str> {
    let (_, argument) = METADATA.iter().find(|(name, _)| *name == tool)?;
    arguments.get(*argument)?.get(MARK).map(|_| *argument)
}

/// Whether a JSON text holds an integer that takes more than 64 bits.
pub fn has_wide_integer(json: &str) -> bool {
    let mut rest = json.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'"' => after_text(after),
            b'-' | b'0'..=b'9' => {
                let end = after.iter().position(|byte| !is_of_number(*byte)).unwrap_or(after.len());
                let number = std::str::from_utf8(&rest[..=end]).unwrap_or_default();
                let is_integer = !number.contains(['.', 'e', 'E']);
                if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return true;
                }
                &after[end..]
            }
            _ => after,
        };
    }
    false
}

/// What follows a text whose first quotation mark has been read.
fn after_text(json: &[u8]) -> &[u8] {
    let mut is_escaped = false;
    let end = json.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(&[], |end| &json[end + 1..])
}

const fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')
}

fn has_many_digits(text: &str) -> bool {
    let mut digits = 0;
    text.bytes().any(|byte| {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        digits == MANY_DIGITS
    })
}

/// A mark in place of metadata with an integer that is too large. Some clients send an object as a text.
fn marked(raw: &str) -> Option<String> {
    let is_wide = match raw.as_bytes().first()? {
        b'{' => has_wide_integer(raw),
        b'"' => serde_json::from_str::<String>(raw)
            .is_ok_and(|text| text.trim_start().starts_with('{') && has_wide_integer(&text)),
        _ => false,
    };
    is_wide.then(|| Value::Object(Map::from_iter([(MARK.to_owned(), Value::Bool(true))])).to_string())
}

/// The JSON text of an argument, wrapped or not.
pub(crate) fn text_of(argument: Map<String, Value>) -> String {
    match argument.get(KEY) {
        Some(Value::String(text)) if argument.len() == 1 => text.clone(),
        _ => Value::Object(argument).to_string(),
    }
}

/// Wraps an object, or a string that contains one, as some clients send it. Anything else is left to the type check.
fn wrapped(raw: &str) -> Option<String> {
    let text = match raw.as_bytes().first()? {
        b'{' => Value::from(raw).to_string(),
        b'"' => raw.to_owned(),
        _ => return None,
    };
    Some(format!("{{\"{KEY}\":{text}}}"))
}

fn with_field(object: &str, key: &str, change: impl FnOnce(&str) -> Option<String>) -> Option<String> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(object).ok()?;
    let changed = change(fields.get(key)?.get())?;
    fields.insert(key.to_owned(), RawValue::from_string(changed).ok()?);
    serde_json::to_string(&fields).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_survives_a_library_that_reads_numbers() {
        let entry = r#"{"b": 1.10, "a": [1e2, 123456789012345678901234567890], "t": "\"ü\""}"#;
        let message = format!(
            r#"{{"id": 7, "params": {{"name": "write_memory_entry", "arguments": {{"file": "x", "entry": {entry}}}}}}}"#
        );
        let wrapped = wrap("write_memory_entry", &message, &["params", "arguments"]).unwrap();
        let value: Value = serde_json::from_str(&wrapped).unwrap();
        assert_eq!(
            (&value["id"], &value["params"]["arguments"]["file"]),
            (&Value::from(7), &Value::from("x"))
        );
        let argument = value["params"]["arguments"]["entry"].as_object().unwrap().clone();
        assert_eq!(text_of(argument), entry);
        let in_quotes = Value::from(entry).to_string();
        let wrapped = wrap("write_memory_entry", &format!("{{\"entry\": {in_quotes}}}"), &[]).unwrap();
        let value: Value = serde_json::from_str(&wrapped).unwrap();
        assert_eq!(text_of(value["entry"].as_object().unwrap().clone()), entry);
    }

    #[test]
    fn integers_beyond_64_bits_are_noticed() {
        for (json, is_wide) in [
            ("18446744073709551615", false),
            ("-9223372036854775808", false),
            ("18446744073709551616", true),
            ("-9223372036854775809", true),
            (r#"{"a": [1, {"b": 123456789012345678901234567890}]}"#, true),
            (
                r#"{"a": 6.02214076e23, "b": 1e300, "c": 123456789012345678901234567890.5, "d": -1E+30}"#,
                false,
            ),
            (r#"{"123456789012345678901234567890": "\\\"123456789012345678901234567890"}"#, false),
            (r#"{"a": "\\", "b": 123456789012345678901234567890}"#, true),
        ] {
            assert_eq!(has_wide_integer(json), is_wide, "{json}");
        }
        let arguments = |text: &str| {
            let Ok(Value::Object(arguments)) = serde_json::from_str(text) else { panic!("{text}") };
            arguments
        };
        for metadata in [r#"{"n": 18446744073709551616}"#, r#""{\"n\": 18446744073709551616}""#] {
            let text = format!(r#"{{"title": "t", "doc_metadata": {metadata}}}"#);
            assert!(may_wrap(&text));
            let wrapped = wrap("store_document_tool", &text, &[]).unwrap();
            assert_eq!(too_wide("store_document_tool", &arguments(&wrapped)), Some("doc_metadata"));
            assert_eq!(wrap("add", &text, &[]), None, "it has no such argument");
        }
        let exact = r#"{"doc_metadata": {"n": 18446744073709551615, "x": 1e30}}"#;
        assert_eq!(wrap("store_document_tool", exact, &[]), None);
        assert_eq!(too_wide("store_document_tool", &arguments(exact)), None);
    }

    #[test]
    fn what_keeps_nothing_is_left_alone() {
        assert_eq!(wrap("add", r#"{"entry": {}}"#, &[]), None);
        for text in ["{}", "[]", "{", r#"{"entry": 5}"#, r#"{"entry": null}"#, r#"{"entry": [1]}"#] {
            assert_eq!(wrap("write_memory_entry", text, &[]), None, "{text}");
        }
        let plain = serde_json::json!({ "timestamp": "x", "$json": "y" });
        assert_eq!(text_of(plain.as_object().unwrap().clone()), plain.to_string());
    }
}
