//! JSON that can be folded.

use maud::{Markup, html};
use serde_json::Value;

use crate::words;

/// Values that are shown; what is larger is read as source.
const VALUES: usize = 5_000;

/// Data as a tree, or nothing when it is not JSON or too large for that.
pub(crate) fn page(text: &str) -> Option<Markup> {
    let value: Value = serde_json::from_str(text).ok()?;
    let mut left = VALUES;
    count(&value, &mut left)?;
    Some(html! { div.json { (node(None, &value, 0)) } })
}

fn count(value: &Value, left: &mut usize) -> Option<()> {
    *left = left.checked_sub(1)?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| count(item, left)),
        Value::Object(fields) => fields.values().try_for_each(|field| count(field, left)),
        _ => Some(()),
    }
}

fn node(name: Option<&str>, value: &Value, depth: usize) -> Markup {
    let label = html! { @if let Some(name) = name { span.key { (words::plain(name)) } ": " } };
    match value {
        Value::Array(items) if !items.is_empty() => html! {
            details open[depth < 2 && items.len() <= 50] {
                summary { (label) span.note { (words::counted(items.len() as u64, "item", "items")) } }
                @for (number, item) in items.iter().enumerate() { (node(Some(&number.to_string()), item, depth + 1)) }
            }
        },
        Value::Object(fields) if !fields.is_empty() => html! {
            details open[depth < 2] {
                summary { (label) span.note { (words::counted(fields.len() as u64, "field", "fields")) } }
                @for (name, field) in fields { (node(Some(name), field, depth + 1)) }
            }
        },
        Value::String(text) => {
            html! { div.leaf { (label) span.s { (format!("{:?}", words::plain(text))) } } }
        }
        Value::Number(_) | Value::Bool(_) => html! { div.leaf { (label) span.n { (value.to_string()) } } },
        other => html! { div.leaf { (label) span.c { (other.to_string()) } } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_a_tree_of_escaped_values() {
        let html = page(r#"{"<b>": ["</span><script>", 1, null]}"#).unwrap().into_string();
        assert!(!html.contains("<script>") && html.contains("&lt;b&gt;"), "{html}");
        assert!(page("{").is_none());
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert!(page(&deep).is_some());
        let large = serde_json::to_string(&vec![0; VALUES + 1]).unwrap();
        assert!(page(&large).is_none(), "read as source");
    }
}
