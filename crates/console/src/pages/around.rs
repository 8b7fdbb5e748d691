//! What surrounds a document: its map, what it leads to, what leads to it, and what is like it.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::{
    ask,
    document::Shown,
    graph::{relation_word, told_back},
};
use crate::{Host, fields::Fields, frame, links, words};

/// Neighbours that are listed.
const LISTED: u64 = 200;
/// Similar documents that are listed.
const SIMILAR: u64 = 12;

/// The map of a document as a flat list: id, title, depth and node.
pub(super) fn nodes<'a>(nodes: &'a [Value], depth: usize, found: &mut Vec<(usize, &'a Value)>) {
    for node in nodes {
        if found.len() >= 1_000 {
            return;
        }
        found.push((depth, node));
        self::nodes(node.list("children"), depth + 1, found);
    }
}

/// The map of a document: what can be cited, with its address.
pub(super) fn map(host: &dyn Host, shown: &Shown<'_>) -> Markup {
    let structure = match ask(host, "getStructure", json!({ "resource_id": shown.id })) {
        Ok(structure) => structure,
        Err(error) => return frame::empty("No map", html! { p { (why(host, &error)) } }),
    };
    let mut found = Vec::new();
    nodes(structure.list("nodes"), 0, &mut found);
    let resource = structure.text("resource_id");
    html! {
        @if structure["metadata"].flag("source_changed") { p.notice { "The document has changed since this map was made." } }
        p.note { (words::counted(found.len() as u64, "part", "parts")) " can be cited. Each has an address that stays." }
        ul.map { @for (depth, node) in &found {
            li class={ "d" (depth.min(&5)) } {
                a href=(links::with("/cite", &[("resource", resource), ("node", node.text("id"))])) { (words::plain(node.text("title"))) }
                " " span.note { (node.text("type")) }
                @if !node.text("summary").is_empty() { div.note { (words::clipped(&words::plain(node.text("summary")), 160)) } }
            }
        } }
    }
}

/// What a document links to, what links to it, and what is like it.
pub(super) fn neighbours(host: &dyn Host, shown: &Shown<'_>) -> Markup {
    let key = format!("doc:{}", shown.id);
    let side = |reverse: bool| {
        ask(host, "graph", json!({ "node_key": key, "depth": 1, "reverse": reverse, "limit": LISTED }))
    };
    html! {
        h2 { "What it leads to" } (list(host, side(false), &key, "It links to, imports and calls nothing.", relation_word))
        h2 { "What leads here" } (list(host, side(true), &key, "Nothing links to it.", told_back))
        h2 { "Similar documents" } (similar(host, &key))
    }
}

/// Why there is nothing to show. Administrators see the documents of others, but only these see what surrounds them.
fn why(host: &dyn Host, error: &shelf_tools::ErrorReply) -> String {
    if host.visitor().may_administer && error.kind == shelf_base::Kind::NotFound {
        return "This document is somebody else's: what surrounds it is shown to its owner only.".to_owned();
    }
    frame::told(&error.message)
}

/// Neighbours behind the relation as it is told of this document: what it imports, and what it is imported by.
fn list(
    host: &dyn Host,
    found: Result<Value, shelf_tools::ErrorReply>,
    key: &str,
    none: &str,
    told: fn(&str) -> String,
) -> Markup {
    let found = match found {
        Ok(found) => found,
        Err(error) => return html! { p.note { (why(host, &error)) } },
    };
    let relation = |node: &Value| {
        let key = node.text("node_key");
        let edge =
            found.list("edges").iter().find(|edge| edge.text("source") == key || edge.text("target") == key);
        edge.map(|edge| edge.text("relation")).unwrap_or_default()
    };
    let nodes: Vec<(&str, &Value)> = found
        .list("connected_nodes")
        .iter()
        .map(|node| (relation(node), node))
        .filter(|(relation, _)| *relation != "SIMILAR_TO")
        .collect();
    html! {
        @if nodes.is_empty() { p.note { (none) } }
        ul.plain { @for (relation, node) in nodes {
            li { span.relation { (told(relation)) } " " (super::graph::node_link(node))
                @if let Some(path) = node.maybe("path") { span.note { " " (words::plain(path)) } } }
        } }
        @if found.flag("truncated") { p { a href=(links::with("/graph", &[("node", key)])) { "All of them" } } }
    }
}

fn similar(host: &dyn Host, key: &str) -> Markup {
    let asked = json!({ "node_key": key, "depth": 1, "relation": "SIMILAR_TO", "limit": SIMILAR });
    match ask(host, "graph", asked) {
        Err(error) => html! { p.note { (why(host, &error)) } },
        Ok(found) => html! {
            @if found.list("connected_nodes").is_empty() { p.note { "No other document is much like it." } }
            ul.plain { @for node in found.list("connected_nodes") {
                li { (super::graph::node_link(node)) @if let Some(path) = node.maybe("path") { span.note { " " (words::plain(path)) } } }
            } }
        },
    }
}
