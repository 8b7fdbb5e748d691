//! Checks arguments against the schema before a tool sees them.
//!
//! The checks are lenient where nothing is lost (a number in quotes, a list as JSON text, `null` for "not given"), and
//! strict where a mistake would go unnoticed (an unknown name).

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use shelf_base::{
    bounds::{ADDRESS_BYTES, ECHO_BYTES},
    clipped, nearest,
};

use crate::family::ToolError;

/// Checks names and types, and converts values of another type where possible.
pub(crate) fn prepare(
    schema: &Map<String, Value>,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, ToolError> {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let mut prepared = Map::new();
    for (name, value) in arguments {
        let Some(property) = properties.get(&name) else { return Err(unknown(&name, properties)) };
        if value.is_null() {
            continue;
        }
        prepared.insert(name.clone(), mend(&name, property, value)?);
    }
    let required = schema.get("required").and_then(Value::as_array);
    let missing: Vec<String> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| !prepared.contains_key(*name))
        .map(|name| format!("'{name}'"))
        .collect();
    match missing.as_slice() {
        [] => Ok(prepared),
        [one] => Err(ToolError::argument(format!("missing argument {one}"))),
        several => Err(ToolError::argument(format!("missing arguments {}", several.join(", ")))),
    }
}

/// Checks arguments by the same rules for something other than a tool. The error is a message with hints.
pub fn check_arguments(
    schema: &Map<String, Value>,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, (String, Vec<String>)> {
    prepare(schema, arguments).map_err(|error| match error {
        ToolError::Argument { message, hints } => (message, hints),
        _ => ("the arguments could not be read".into(), Vec::new()),
    })
}

/// Reads prepared arguments into their struct.
pub(crate) fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| ToolError::argument(error.to_string()))
}

/// A page begins where a cursor says or at an offset, not at both.
pub(crate) fn one_start(offset: u64, cursor: Option<&str>) -> Result<(), ToolError> {
    if offset > 0 && cursor.is_some() {
        return Err(ToolError::argument(
            "give cursor or offset, not both: a cursor says itself where its page begins",
        ));
    }
    Ok(())
}

/// Names of documents must be short enough to be one: replies repeat those that mean nothing. An address is a name too.
pub(crate) fn must_be_names<'a>(
    argument: &str,
    names: impl IntoIterator<Item = &'a String>,
) -> Result<(), ToolError> {
    if names.into_iter().any(|name| name.len() > ADDRESS_BYTES) {
        let bound = format!("{argument} may hold at most {ADDRESS_BYTES} bytes in each name");
        return Err(ToolError::argument(bound));
    }
    Ok(())
}

fn unknown(name: &str, properties: &Map<String, Value>) -> ToolError {
    let near = nearest(name, properties.keys().map(String::as_str), 3);
    let hint = if properties.is_empty() {
        "it takes no arguments".to_owned()
    } else if near.is_empty() {
        format!("known arguments: {}", properties.keys().cloned().collect::<Vec<_>>().join(", "))
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    ToolError::Argument {
        message: format!("unknown argument '{}'", clipped(name, ECHO_BYTES)),
        hints: vec![hint],
    }
}

fn mend(name: &str, property: &Value, value: Value) -> Result<Value, ToolError> {
    if let Some(branches) = property.get("anyOf").and_then(Value::as_array) {
        return mend_any(name, branches, value);
    }
    let wanted = property.get("type").and_then(Value::as_str);
    let mended = match (wanted, value) {
        (Some("integer"), Value::String(text)) => match whole_of_text(text.trim()) {
            None if is_whole(text.trim()) => return Err(beyond_64_bits(name)),
            whole => whole.ok_or(Value::String(text)),
        },
        (Some("integer"), Value::Number(number)) => match whole(&number) {
            None if number.as_f64().is_some_and(|value| value.abs() >= 2f64.powi(63)) => {
                return Err(beyond_64_bits(name));
            }
            whole => whole.ok_or(Value::Number(number)),
        },
        (Some("number"), Value::String(text)) => {
            text.trim().parse::<f64>().map(Value::from).map_err(|_| Value::String(text))
        }
        (Some("boolean"), Value::String(text)) => match text.trim() {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => Err(Value::String(text)),
        },
        (Some("array" | "object"), Value::String(text)) => match serde_json::from_str::<Value>(&text) {
            Ok(parsed) if is(wanted, &parsed) => Ok(parsed),
            _ if wanted == Some("array") => Ok(Value::Array(vec![Value::String(text)])),
            _ => Err(Value::String(text)),
        },
        (_, value) => Ok(value),
    };
    let value = mended.map_err(|found| wrong_type(name, wanted, &found))?;
    if !is(wanted, &value) {
        return Err(wrong_type(name, wanted, &value));
    }
    check_items(name, property, &value)?;
    in_bounds(name, property, &value)?;
    Ok(value)
}

/// Uses the first branch that accepts the value, as it is or converted.
fn mend_any(name: &str, branches: &[Value], value: Value) -> Result<Value, ToolError> {
    let as_it_is = branches.iter().find(|branch| is(branch.get("type").and_then(Value::as_str), &value));
    if let Some(branch) = as_it_is {
        return mend(name, branch, value);
    }
    let mended = branches.iter().find_map(|branch| mend(name, branch, value.clone()).ok());
    let kinds: Vec<&str> =
        branches.iter().map(|branch| word(branch.get("type").and_then(Value::as_str))).collect();
    mended.ok_or_else(|| ToolError::argument(format!("{name} must be {}", kinds.join(" or "))))
}

fn check_items(name: &str, property: &Value, value: &Value) -> Result<(), ToolError> {
    let wanted = property.get("items").and_then(|items| items.get("type")).and_then(Value::as_str);
    let wrong = value.as_array().and_then(|items| items.iter().find(|item| !is(wanted, item)));
    match wrong {
        Some(found) => Err(wrong_type(&format!("each of {name}"), wanted, found)),
        None => Ok(()),
    }
}

/// An integer that was sent as text, as parameters of a URL are.
fn whole_of_text(text: &str) -> Option<Value> {
    let signed = text.parse::<i64>().map(Value::from);
    signed.or_else(|_| text.parse::<u64>().map(Value::from)).ok()
}

/// Digits, with a sign or none, however many.
fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

fn beyond_64_bits(name: &str) -> ToolError {
    ToolError::argument(format!("{name} must be an integer of at most 64 bits"))
}

/// Accepts `5.0` as an integer too.
fn whole(number: &serde_json::Number) -> Option<Value> {
    if number.is_i64() || number.is_u64() {
        return Some(Value::Number(number.clone()));
    }
    let value = number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 9e15)?;
    Some(Value::from(value as i64))
}

fn is(wanted: Option<&str>, value: &Value) -> bool {
    match wanted {
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    }
}

fn wrong_type(name: &str, wanted: Option<&str>, found: &Value) -> ToolError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let wanted = word(wanted);
    ToolError::argument(format!("{name} must be {wanted}, not {found}"))
}

fn word(kind: Option<&str>) -> &'static str {
    match kind {
        Some("integer") => "an integer",
        Some("number") => "a number",
        Some("string") => "a string",
        Some("boolean") => "true or false",
        Some("array") => "an array",
        Some("object") => "an object",
        _ => "something else",
    }
}

fn in_bounds(name: &str, property: &Value, value: &Value) -> Result<(), ToolError> {
    let Some(number) = value.as_f64() else { return Ok(()) };
    let bound = |key: &str| property.get(key).and_then(Value::as_f64);
    if let Some(minimum) = bound("minimum").filter(|minimum| number < *minimum) {
        return Err(ToolError::argument(format!("{name} must be at least {minimum}")));
    }
    if let Some(maximum) = bound("maximum").filter(|maximum| number > *maximum) {
        return Err(ToolError::argument(format!("{name} must be at most {maximum}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(arguments: Value) -> Result<Value, String> {
        let schema = json!({
            "properties": {
                "limit": { "type": "integer", "minimum": 0 },
                "dry_run": { "type": "boolean" },
                "tags": { "type": "array" },
                "names": { "type": "array", "items": { "type": "string" } },
                "metadata": { "anyOf": [{ "type": "object" }, { "type": "array" }] },
            },
            "required": ["limit"],
        });
        let (schema, arguments) =
            (schema.as_object().unwrap().clone(), arguments.as_object().unwrap().clone());
        prepare(&schema, arguments).map(Value::Object).map_err(|error| match error {
            ToolError::Argument { message, hints } => format!("{message}|{}", hints.join("|")),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn mends_what_clients_send_and_refuses_slips() {
        assert_eq!(check(json!({ "limit": "5" })), Ok(json!({ "limit": 5 })));
        assert_eq!(check(json!({ "limit": 5.0 })), Ok(json!({ "limit": 5 })));
        assert_eq!(
            check(json!({ "limit": 1, "dry_run": "true" })),
            Ok(json!({ "limit": 1, "dry_run": true }))
        );
        assert_eq!(check(json!({ "limit": 1, "tags": "[\"a\"]" })), Ok(json!({ "limit": 1, "tags": ["a"] })));
        assert_eq!(check(json!({ "limit": 1, "tags": "a" })), Ok(json!({ "limit": 1, "tags": ["a"] })));
        assert_eq!(check(json!({ "limit": 1, "tags": null })), Ok(json!({ "limit": 1 })));
        assert_eq!(check(json!({ "limit": "x" })), Err("limit must be an integer, not a string|".into()));
        for beyond in [json!("99999999999999999999"), json!("9".repeat(60)), json!(1e30)] {
            let refused = check(json!({ "limit": beyond }));
            assert_eq!(refused, Err("limit must be an integer of at most 64 bits|".into()), "{beyond}");
        }
        let largest = json!({ "limit": u64::MAX });
        assert_eq!(check(json!({ "limit": u64::MAX.to_string() })), Ok(largest));
        assert_eq!(check(json!({ "limit": -1 })), Err("limit must be at least 0|".into()));
        assert_eq!(check(json!({ "limit": 1.5 })), Err("limit must be an integer, not a number|".into()));
        assert_eq!(
            check(json!({ "limit": 1, "dryrun": true })),
            Err("unknown argument 'dryrun'|did you mean dry_run?".into())
        );
        assert_eq!(check(json!({})), Err("missing argument 'limit'|".into()));
        assert_eq!(
            check(json!({ "limit": 1, "metadata": "a=b" })),
            Ok(json!({ "limit": 1, "metadata": ["a=b"] }))
        );
        assert_eq!(
            check(json!({ "limit": 1, "metadata": 5 })),
            Err("metadata must be an object or an array|".into())
        );
        let wrong = check(json!({ "limit": 1, "names": ["a", 1] }));
        assert_eq!(wrong, Err("each of names must be a string, not a number|".into()));
    }
}
