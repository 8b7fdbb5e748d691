//! Telling secrets that must not be written down, by the forms that only secrets have.

use std::sync::OnceLock;

use regex::RegexSet;
use serde_json::{Map, Value};

/// Forms of keys and tokens. Each is long and particular: ordinary words never fit.
const FORMS: [&str; 13] = [
    r"\bAKIA[0-9A-Z]{16}\b",
    r"\bASIA[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{36,}\b",
    r"\bgithub_pat_[A-Za-z0-9_]{50,}\b",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{24,}",
    r"\bsk_live_[A-Za-z0-9]{16,}\b",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{16,}",
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\b[pc]at_live_[A-Za-z0-9_-]{32}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    r"\bhf_[A-Za-z0-9]{30,}\b",
];

/// The first field of an entry that holds a secret, as a path of keys.
pub(super) fn find(entry: &Map<String, Value>) -> Option<String> {
    entry.iter().find_map(|(key, value)| within(&format!("entry.{}", shown(key)), key, value))
}

fn within(path: &str, key: &str, value: &Value) -> Option<String> {
    if is_secret(key) {
        return Some("a key of the entry".to_owned());
    }
    match value {
        Value::String(text) if is_secret(text) => Some(path.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| within(&format!("{path}[{at}]"), "", item))
        }
        Value::Object(fields) => {
            fields.iter().find_map(|(key, value)| within(&format!("{path}.{}", shown(key)), key, value))
        }
        _ => None,
    }
}

/// A key may be the secret itself, and is then not repeated.
fn shown(key: &str) -> &str {
    if is_secret(key) { "…" } else { key }
}

fn is_secret(text: &str) -> bool {
    static SET: OnceLock<Option<RegexSet>> = OnceLock::new();
    let set = SET.get_or_init(|| RegexSet::new(FORMS).ok());
    set.as_ref().is_some_and(|set| set.is_match(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(value: Value) -> Option<String> {
        find(value.as_object().unwrap())
    }

    #[test]
    fn secrets_are_named_by_field_and_never_repeated() {
        assert!(RegexSet::new(FORMS).is_ok());
        assert_eq!(found(json!({ "note": "key AKIAIOSFODNN7EXAMPLE" })).unwrap(), "entry.note");
        assert_eq!(
            found(json!({ "a": { "b": ["x", format!("ghp_{}", "a1".repeat(18))] } })).unwrap(),
            "entry.a.b[1]"
        );
        assert_eq!(found(json!({ "k": "-----BEGIN RSA PRIVATE KEY-----\nMII" })).unwrap(), "entry.k");
        let named = found(json!({ "AKIAIOSFODNN7EXAMPLE": 1 })).unwrap();
        assert!(!named.contains("AKIA"));
    }

    #[test]
    fn ordinary_words_are_no_secrets() {
        for harmless in [
            "token_count",
            "secretary",
            "the secret of good tea",
            "password reset flow",
            "api key rotation planned",
            "sk-learn pipeline",
            "task-1234567890",
            "AKIA is a prefix",
            "risk-assessment-of-the-new-feature",
            "ghp_short",
            "desk-organisation",
            "eyJ alone",
            "Bearer of bad news",
            "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "550e8400-e29b-41d4-a716-446655440000",
            "BEGIN PUBLIC KEY",
            "xoxo-hugs",
            "AIza",
            "hf_model",
        ] {
            assert_eq!(found(json!({ "event": harmless })), None, "{harmless}");
        }
    }
}
