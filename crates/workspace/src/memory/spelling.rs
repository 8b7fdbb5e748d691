//! Compact JSON that keeps the order of keys and the spelling of numbers: `1.10` does not become `1.1`, `1e2` stays, and
//! whole numbers keep all their digits.
//!
//! The JSON library reads numbers into machine numbers, and its mode that does not breaks the MCP library. So a text
//! that the JSON library has already found valid is gone through once, and numbers are copied as they stand.

use std::collections::HashSet;

/// The compact form of valid JSON. Fails with a key that an object has twice: the checks of an entry see only one of
/// the two values, so the other must not reach the file.
pub(super) fn compact(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    // For every open bracket the keys so far; an array has none.
    let mut open: Vec<HashSet<String>> = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let length = token_length(first, rest);
        let (token, after) = rest.split_at(length);
        rest = after.trim_start_matches(is_space);
        match first {
            '"' => {
                let plain: String = serde_json::from_str(token).unwrap_or_else(|_| token.to_owned());
                out.push_str(&serde_json::Value::from(plain.as_str()).to_string());
                if rest.starts_with(':') && open.last_mut().is_some_and(|keys| !keys.insert(plain.clone())) {
                    return Err(plain);
                }
            }
            '{' | '[' => open.push(HashSet::new()),
            '}' | ']' => drop(open.pop()),
            _ => {}
        }
        if first != '"' {
            out.push_str(token);
        }
    }
    Ok(out)
}

const fn is_space(sign: char) -> bool {
    matches!(sign, ' ' | '\n' | '\r' | '\t')
}

/// Bytes of the token that begins here.
fn token_length(first: char, rest: &str) -> usize {
    match first {
        '"' => {
            let mut escaped = false;
            let end = rest.bytes().skip(1).position(|byte| {
                let ends = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        }
        '{' | '}' | '[' | ']' | ',' | ':' => 1,
        _ => rest.find([',', ']', '}', ' ', '\n', '\r', '\t']).unwrap_or(rest.len()).max(first.len_utf8()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn numbers_and_order_are_kept() {
        for (text, expected) in [
            ("{ \"z\" : 1.10 , \"a\" : [ 1e2 , 1E+2, -0.0, -0 ] }", r#"{"z":1.10,"a":[1e2,1E+2,-0.0,-0]}"#),
            (
                "{\"n\":123456789012345678901234567890,\"m\":0.1000000000000000000001}",
                r#"{"n":123456789012345678901234567890,"m":0.1000000000000000000001}"#,
            ),
            (
                "{\"s\":\"1.10 , { } \\\" \\\\\",\n\t\"t\":true,\"u\":null}",
                r#"{"s":"1.10 , { } \" \\","t":true,"u":null}"#,
            ),
            (r#"{"\u00fc\u0041":"\u00fc\ud83d\ude42\/"}"#, "{\"üA\":\"ü🙂/\"}"),
            ("{}", "{}"),
        ] {
            assert_eq!(compact(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn a_key_stands_once_in_an_object() {
        for (text, key) in [
            (r#"{"a":1,"b":2,"a":3}"#, "a"),
            (r#"{"a":{"x":1,"x":2}}"#, "x"),
            (r#"[{"k":1},{"k":1,"\u006b":2}]"#, "k"),
        ] {
            assert_eq!(compact(text), Err(key.to_owned()), "{text}");
        }
        assert!(compact(r#"{"a":"a","b":{"a":["a","a"]}}"#).is_ok());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_writes_what_the_library_writes(value in any_json()) {
            prop_assert_eq!(compact(&serde_json::to_string_pretty(&value).unwrap()), Ok(value.to_string()));
        }
    }
}
