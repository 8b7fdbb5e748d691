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

use std::collections::BTreeMap;

use serde_json::{Map, Value, value::RawValue};

/// The tools that keep the text of an argument, with the name of the argument.
const KEPT: &[(&str, &str)] = &[("write_memory_entry", "entry")];

/// The only key of a wrapper.
const KEY: &str = "$json";

/// Wraps the argument that `tool` keeps, in a JSON text that holds the tool's arguments under the keys of `path`.
/// `None` when there is nothing to wrap; the text can then be used unchanged.
pub fn wrap(tool: &str, text: &str, path: &[&str]) -> Option<String> {
    match path.split_first() {
        Some((step, rest)) => with_field(text, step, |inner| wrap(tool, inner, rest)),
        None => {
            let (_, argument) = KEPT.iter().find(|(name, _)| *name == tool)?;
            with_field(text, argument, wrapped)
        }
    }
}

/// A quick check whether a text may call a tool that keeps an argument. A negative answer is always right.
pub fn may_wrap(text: &str) -> bool {
    // The tool name may contain escapes.
    KEPT.iter().any(|(name, _)| text.contains(name)) || text.contains("\\u")
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
    fn what_keeps_nothing_is_left_alone() {
        assert_eq!(wrap("add", r#"{"entry": {}}"#, &[]), None);
        for text in ["{}", "[]", "{", r#"{"entry": 5}"#, r#"{"entry": null}"#, r#"{"entry": [1]}"#] {
            assert_eq!(wrap("write_memory_entry", text, &[]), None, "{text}");
        }
        let plain = serde_json::json!({ "timestamp": "x", "$json": "y" });
        assert_eq!(text_of(plain.as_object().unwrap().clone()), plain.to_string());
    }
}
