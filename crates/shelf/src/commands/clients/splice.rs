//! Changes one member of an object in a JSON text and leaves every other character as it is: numbers that no program reads
//! exactly, the order of names, and the way somebody sets out the lines.
//!
//! The text has been read as JSON before, so that the scanner here only has to find where values begin and end.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Value, ser::PrettyFormatter};

/// An object in a text.
struct Object {
    /// Its braces.
    span: Range<usize>,
    members: Vec<Member>,
}

/// A member of an object.
struct Member {
    name: String,
    /// From its name to the end of its value.
    span: Range<usize>,
    value: usize,
}

/// Puts a value into the member `name` of the member `key` of the object that a text is; makes what is not there.
pub(super) fn set(text: &str, key: &str, name: &str, value: &Value) -> Option<String> {
    let Some(whole) = object(text, 0) else {
        return Some(format!("{}\n", pretty(&nested(key, nested(name, value.clone())), "  ", "")));
    };
    let unit = unit(text, &whole);
    let Some(servers) = member(&whole, key) else {
        return Some(inserted(text, &whole, key, &nested(name, value.clone()), &unit, ""));
    };
    let servers = object(text, servers.value)?;
    match member(&servers, name) {
        Some(own) => {
            let indent = if is_on_one_line(text, &servers) { None } else { Some(unit.repeat(2)) };
            let written = written(value, &unit, indent.as_deref());
            Some(format!("{}{written}{}", &text[..own.value], &text[own.span.end..]))
        }
        None => Some(inserted(text, &servers, name, value, &unit, &unit)),
    }
}

/// Takes the member `name` out of the member `key`; `None` when it is not there.
pub(super) fn removed(text: &str, key: &str, name: &str) -> Option<String> {
    let servers = object(text, member(&object(text, 0)?, key)?.value)?;
    let at = servers.members.iter().rposition(|member| member.name == name)?;
    let own = &servers.members[at].span;
    let gone = match (at.checked_sub(1).map(|before| &servers.members[before]), servers.members.get(at + 1)) {
        (_, Some(next)) => own.start..next.span.start,
        (Some(before), None) => before.span.end..own.end,
        (None, None) => servers.span.start + 1..servers.span.end - 1,
    };
    Some(format!("{}{}", &text[..gone.start], &text[gone.end..]))
}

fn nested(name: &str, value: Value) -> Value {
    Value::Object([(name.to_owned(), value)].into_iter().collect())
}

/// The text with one more member at the end of an object, which stands at this depth.
fn inserted(text: &str, object: &Object, name: &str, value: &Value, unit: &str, outer: &str) -> String {
    let name = Value::from(name);
    let last = object.members.last().map(|last| text.split_at(last.span.end));
    if let Some((before, after)) = last.filter(|_| is_on_one_line(text, object)) {
        return format!("{before}, {name}: {}{after}", written(value, unit, None));
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let indent = format!("{outer}{unit}");
    let member = format!("{newline}{indent}{name}: {}", written(value, unit, Some(&indent)));
    match last {
        Some((before, after)) => format!("{before},{member}{after}"),
        None => {
            let (before, after) = (&text[..=object.span.start], &text[object.span.end - 1..]);
            format!("{before}{member}{newline}{outer}{after}")
        }
    }
}

/// A value on one line, or on lines that are indented.
fn written(value: &Value, unit: &str, indent: Option<&str>) -> String {
    indent.map_or_else(|| value.to_string(), |indent| pretty(value, unit, indent))
}

fn pretty(value: &Value, unit: &str, indent: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(unit.as_bytes());
    // A value that is in memory can be written there.
    let _ = value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter));
    String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{indent}"))
}

/// By how much the lines of a text are indented.
fn unit(text: &str, whole: &Object) -> String {
    let first = whole.members.first().map_or("", |first| &text[whole.span.start + 1..first.span.start]);
    match first.rsplit_once('\n') {
        Some((_, indent)) if !indent.is_empty() => indent.to_owned(),
        _ => "  ".to_owned(),
    }
}

fn is_on_one_line(text: &str, object: &Object) -> bool {
    !object.members.is_empty() && !text[object.span.clone()].contains('\n')
}

/// The last member of a name, which is the one that counts.
fn member<'a>(object: &'a Object, name: &str) -> Option<&'a Member> {
    object.members.iter().rfind(|member| member.name == name)
}

/// The object that begins at or after a place of the text.
fn object(text: &str, from: usize) -> Option<Object> {
    let start = after_space(text, from);
    let mut at = after_space(text, start + text[start..].strip_prefix('{').map(|_| 1)?);
    let mut members = Vec::new();
    while !text[at..].starts_with('}') {
        let name_end = end_of_value(text, at)?;
        let name = serde_json::from_str(&text[at..name_end]).ok()?;
        let colon = after_space(text, name_end);
        let value = after_space(text, colon + text[colon..].strip_prefix(':').map(|_| 1)?);
        let end = end_of_value(text, value)?;
        members.push(Member { name, span: at..end, value });
        at = after_space(text, end);
        if text[at..].starts_with(',') {
            at = after_space(text, at + 1);
        }
    }
    Some(Object { span: start..at + 1, members })
}

fn after_space(text: &str, from: usize) -> usize {
    text[from..].find(|sign: char| !sign.is_ascii_whitespace()).map_or(text.len(), |length| from + length)
}

/// Where the value that begins here ends.
fn end_of_value(text: &str, start: usize) -> Option<usize> {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for (at, sign) in text[start..].bytes().enumerate() {
        let end = start + at;
        if is_text {
            is_text = is_escaped || sign != b'"';
            is_escaped = !is_escaped && sign == b'\\';
            if !is_text && depth == 0 {
                return Some(end + 1);
            }
            continue;
        }
        match sign {
            b'"' => is_text = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 1 => depth -= 1,
            b'}' | b']' if depth == 1 => return Some(end + 1),
            b',' | b'}' | b']' | b':' | b' ' | b'\n' | b'\r' | b'\t' if depth == 0 => return Some(end),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_else_stays_as_it_was_written() {
        let odd = "{\n    \"big\": 12345678901234567890123, \"price\": 1.50,\n    \"exact\": 1e3,\n\n    \"text\": \"a \\\"}\\\" b\\\\\",\n    \"servers\": {\n        \"other\": {\"x\": [1.0, {}]}\n    }\n}\n";
        let server = json!({ "command": "shelf", "args": ["serve"] });
        let added = set(odd, "servers", "own", &server).unwrap();
        let (start, end) = odd.split_at(odd.find("\n    }\n}").unwrap());
        assert!(added.starts_with(start) && added.ends_with(end), "{added}");
        assert!(added.contains("\n        \"own\": {\n            \"command\": \"shelf\",\n"), "{added}");
        assert_eq!(removed(&added, "servers", "own").unwrap(), odd);
        let changed = set(&added, "servers", "own", &json!({ "url": "http://x" })).unwrap();
        assert!(changed.contains("12345678901234567890123, \"price\": 1.50"), "{changed}");
        assert_eq!(removed(&changed, "servers", "own").unwrap(), odd);
        assert_eq!(removed(odd, "servers", "own"), None);
    }

    #[test]
    fn what_is_not_there_is_made_in_the_way_of_the_file() {
        let server = json!({ "url": "u" });
        for (before, after) in [
            ("", "{\n  \"servers\": {\n    \"own\": {\n      \"url\": \"u\"\n    }\n  }\n}\n"),
            ("{}", "{\n  \"servers\": {\n    \"own\": {\n      \"url\": \"u\"\n    }\n  }\n}"),
            ("{\"a\": 1.0}", "{\"a\": 1.0, \"servers\": {\"own\":{\"url\":\"u\"}}}"),
            (
                "{\n\t\"a\": 1.0,\n\t\"servers\": { }\n}",
                "{\n\t\"a\": 1.0,\n\t\"servers\": {\n\t\t\"own\": {\n\t\t\t\"url\": \"u\"\n\t\t}\n\t}\n}",
            ),
        ] {
            let found = set(before, "servers", "own", &server).unwrap();
            let [found_value, wanted]: [Value; 2] =
                [&found, after].map(|text| serde_json::from_str(text).unwrap());
            assert_eq!(found_value, wanted, "{found}");
            assert_eq!(found, after, "{before}");
        }
    }

    #[test]
    fn names_and_values_end_where_they_end() {
        let text = " {\"a\":-1.5e+3,\"b\":[\"]\",{}],\"c\\u0022\" : null , \"a\":\"last\"} ";
        let found = object(text, 0).unwrap();
        let values: Vec<(&str, &str)> = found
            .members
            .iter()
            .map(|member| (member.name.as_str(), &text[member.value..member.span.end]))
            .collect();
        assert_eq!(values, [("a", "-1.5e+3"), ("b", "[\"]\",{}]"), ("c\"", "null"), ("a", "\"last\"")]);
        assert_eq!(&text[member(&found, "a").unwrap().value..][..6], "\"last\"");
        assert!(set("{\"servers\": 3}", "servers", "own", &json!(1)).is_none());
    }
}
