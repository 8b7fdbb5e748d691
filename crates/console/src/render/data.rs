//! JSON that can be folded.

use maud::{Markup, html};
use serde_json::Value;

use crate::words;

/// Values that are shown; of data with more, only some of each list.
const VALUES: usize = 5_000;
/// Values of a list that are shown when there are too many in all.
const LISTED: usize = 100;

/// How much of the data is still to be shown, and of each list.
struct Room {
    values: usize,
    listed: usize,
}

/// Data as a tree, or nothing when it is not JSON.
pub(crate) fn page(text: &str) -> Option<Markup> {
    let value: Value = serde_json::from_str(text).ok()?;
    let is_whole = count(&value, &mut VALUES.clone()).is_some();
    let mut room = Room { values: VALUES, listed: if is_whole { usize::MAX } else { LISTED } };
    Some(html! {
        @if !is_whole { p.notice { "This is much data: only the first values of each list are shown. The source has all of them." } }
        div.json { (node(None, &value, 0, &mut room)) }
    })
}

fn count(value: &Value, left: &mut usize) -> Option<()> {
    *left = left.checked_sub(1)?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| count(item, left)),
        Value::Object(fields) => fields.values().try_for_each(|field| count(field, left)),
        _ => Some(()),
    }
}

/// The values of a list, as far as there is room for them.
fn inner<'a>(
    items: impl ExactSizeIterator<Item = (String, &'a Value)>,
    depth: usize,
    room: &mut Room,
) -> Markup {
    let all = items.len();
    let mut shown = Vec::new();
    for (name, item) in items.take(room.listed) {
        if room.values == 0 {
            break;
        }
        shown.push(node(Some(&name), item, depth + 1, room));
    }
    html! {
        @for item in &shown { (item) }
        @if shown.len() < all { div.leaf.note { "and " (words::counted((all - shown.len()) as u64, "more", "more")) } }
    }
}

fn node(name: Option<&str>, value: &Value, depth: usize, room: &mut Room) -> Markup {
    room.values = room.values.saturating_sub(1);
    let label = html! { @if let Some(name) = name { span.key { (words::plain(name)) } ": " } };
    match value {
        Value::Array(items) if !items.is_empty() => html! {
            details open[depth < 2 && items.len() <= 50] {
                summary { (label) span.note { (words::counted(items.len() as u64, "item", "items")) } }
                (inner(items.iter().enumerate().map(|(number, item)| (number.to_string(), item)), depth, room))
            }
        },
        Value::Object(fields) if !fields.is_empty() => html! {
            details open[depth < 2 && fields.len() <= 50] {
                summary { (label) span.note { (words::counted(fields.len() as u64, "field", "fields")) } }
                (inner(fields.iter().map(|(name, field)| (name.clone(), field)), depth, room))
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
        let html = page(&large).unwrap().into_string();
        assert!(html.contains("only the first values") && html.matches("leaf").count() < 200, "{html}");
    }
}
