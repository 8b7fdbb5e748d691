//! Telling secrets that must not be written down, by the forms that only secrets have.

use std::sync::OnceLock;

use regex::RegexSet;
use serde_json::{Map, Value};

/// Forms of keys and tokens. Each is long and particular: ordinary words never fit.
const FORMS: [&str; 47] = [
    // Amazon
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r#"(?i)\baws_?secret_?access_?key["']?\s*[=:]\s*["']?[A-Za-z0-9/+]{40}(?:[^A-Za-z0-9/+]|$)"#,
    // GitHub, GitLab
    r"\bgh[pousr]_[A-Za-z0-9]{36,}\b",
    r"\bgithub_pat_[A-Za-z0-9_]{50,}\b",
    r"\bgl(?:pat|rt|dt)-[A-Za-z0-9_-]{20,}",
    // Models: OpenAI and those who took its form, Anthropic, OpenRouter, Hugging Face
    r"\bsk-[A-Za-z0-9]{32,}\b",
    r"\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,}",
    r"\bsk-ant-[a-z]+[0-9]{2}-[A-Za-z0-9_-]{24,}",
    r"\bsk-or-v1-[0-9a-f]{64}\b",
    r"\bhf_[A-Za-z0-9]{30,}\b",
    // Google
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\bya29\.[0-9A-Za-z_-]{30,}",
    r"\bGOCSPX-[0-9A-Za-z_-]{28}",
    // Slack
    r"\bxox[abceoprs]-[0-9]+-[A-Za-z0-9-]{16,}",
    r"\bxapp-[0-9]-[A-Z0-9]{8,}-[0-9]{8,}-[0-9a-f]{32,}",
    r"\bhooks\.slack\.com/services/T[0-9A-Z]{6,}/B[0-9A-Z]{6,}/[0-9A-Za-z]{20,}",
    // Payments, mail, messages
    r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}\b",
    r"\bwhsec_[A-Za-z0-9+/=]{24,}",
    r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b",
    // Registries and clouds
    r"\bnpm_[A-Za-z0-9]{36}\b",
    r"\bdckr_pat_[A-Za-z0-9_-]{20,}",
    r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{40,}",
    r"\bdo[op]_v1_[0-9a-f]{64}\b",
    r"\bAccountKey=[A-Za-z0-9+/]{86}==",
    // Our own
    r"\b[pc]at_live_[A-Za-z0-9_-]{32}",
    // JSON Web Tokens
    r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    // Keys as files
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
    r"\bPuTTY-User-Key-File-[23]: ",
    r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b",
    // Others: models
    r"\bgsk_[A-Za-z0-9]{52}\b",
    r"\bxai-[A-Za-z0-9]{80}\b",
    r"\bpplx-[A-Za-z0-9]{40,}\b",
    r"\br8_[A-Za-z0-9]{37}\b",
    // Databricks, Shopify, Vault, Linear, Supabase, Atlassian, Figma, Notion, New Relic, Square, Terraform, Discord
    r"\bdapi[0-9a-f]{32}(?:-[0-9])?\b",
    r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b",
    r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}",
    r"\blin_(?:api|oauth)_[A-Za-z0-9]{40,}\b",
    r"\bsbp_[0-9a-f]{40}\b",
    r"\bATATT3[A-Za-z0-9_=-]{60,}",
    r"\bfig[dour]_[A-Za-z0-9_-]{40,}",
    r"\bntn_[A-Za-z0-9]{40,}\b",
    r"\bNRAK-[A-Z0-9]{27}\b",
    r"\bsq0(?:atp-[A-Za-z0-9_-]{22}|csp-[A-Za-z0-9_-]{43})",
    r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
    r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}",
    // A password in a URL, unless a sign tells that one has to be put there
    r#"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@?#"']*:[^\s/@?#"'$<{*%\[][^\s/@?#"'<>{}]*@[^\s/@"']"#,
];

/// The form with its borders drawn by letters and digits of ASCII: `key_AKIA…` and a key between Chinese characters are
/// keys too, which the usual border of a word, drawn by Unicode and with `_` inside, would not say.
fn bounded(form: &str) -> String {
    let (flags, form) = form.strip_prefix("(?i)").map_or(("", form), |form| ("(?i)", form));
    let (before, form) = form.strip_prefix(r"\b").map_or(("", form), |form| ("(?:^|[^A-Za-z0-9])", form));
    let (form, after) = form.strip_suffix(r"\b").map_or((form, ""), |form| (form, "(?:[^A-Za-z0-9]|$)"));
    format!("{flags}{before}{form}{after}")
}

/// The first field of an entry that holds a secret, as a path of keys.
pub(super) fn find(entry: &Map<String, Value>) -> Option<String> {
    entry.iter().find_map(|(key, value)| within(&format!("entry.{}", shown(key)), key, value))
}

fn within(path: &str, key: &str, value: &Value) -> Option<String> {
    if is_secret(key) {
        return Some("a key of the entry".to_owned());
    }
    match value {
        // Some forms are told by the name before them, which may be the key.
        Value::String(text) if is_secret(text) || is_secret(&format!("{key}={text}")) => {
            Some(path.to_owned())
        }
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

/// Whether a text holds a secret.
pub(super) fn is_secret(text: &str) -> bool {
    static SET: OnceLock<Option<RegexSet>> = OnceLock::new();
    let set = SET.get_or_init(|| RegexSet::new(FORMS.iter().map(|form| bounded(form))).ok());
    set.as_ref().is_some_and(|set| set.is_match(text))
}

#[cfg(test)]
mod tests;
