//! The neighbourhood of a document, a symbol or a tag.

use maud::{Markup, html};
use serde_json::Value;

use crate::{fields::Fields, links, words};

/// A node with the page that shows it.
pub(super) fn node_link(node: &Value) -> Markup {
    let (key, name) = (node.text("node_key"), words::plain(node.text("name")));
    let document = key.strip_prefix("doc:").filter(|id| id.len() == 36);
    html! {
        @match document {
            Some(id) => a href=(links::document(id)) { (name) },
            None => a href=(links::with("/graph", &[("node", key)])) { (name) },
        }
    }
}
