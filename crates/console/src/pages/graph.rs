//! The neighbourhood of a document, a symbol or a tag: as a picture and, for everybody, as a list.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use serde_json::{Value, json};
use shelf_base::Kind;

use super::{Answer, ask};
use crate::{Host, Reply, Request, fields::Fields, frame, links, words};

/// Nodes in a picture.
const NODES: usize = 300;
/// The kinds of nodes that can be listed.
const KINDS: [&str; 13] = [
    "function",
    "method",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "module",
    "heading",
    "reference",
    "collection",
    "tag",
    "snapshot",
];
/// Nodes of one kind on a page.
const LISTED: u64 = 200;
/// Rounds in which nodes find their places; fewer where there are many, because each looks at every pair.
const ROUNDS: (u32, u32) = (120, 50);
/// The picture is so wide and high.
const SIZE: f64 = 1_000.0;
/// Nodes whose neighbours are shown too, because somebody asked for them.
const OPENED: usize = 12;
/// Neighbours of such a node, in each direction.
const BESIDE: usize = 30;
/// Documents that are proposed for a name that none has.
const NEAR: u64 = 5;
/// Relations that can be shown alone.
const RELATIONS: [&str; 8] =
    ["LINKS_TO", "IMPORTS", "CALLS", "DEFINES", "INHERITS", "IMPLEMENTS", "REFERENCES", "CITES"];

/// Relations that are followed around a tag.
const WITH_TAGS: [&str; 9] =
    ["TAGGED", "LINKS_TO", "IMPORTS", "CALLS", "DEFINES", "INHERITS", "IMPLEMENTS", "REFERENCES", "CITES"];

/// A node with the page that shows it.
pub(super) fn node_link(node: &Value) -> Markup {
    let (key, name) = (node.text("node_key"), words::plain(node.text("name")));
    html! {
        @match document_of(key) {
            Some(id) => a href=(links::document(id)) { (name) },
            None => a href=(links::with("/graph", &[("node", key)])) { (name) },
        }
    }
}

/// The document that a key names.
fn document_of(key: &str) -> Option<&str> {
    key.strip_prefix("doc:").filter(|id| id.len() == 36)
}

/// What was found around a node.
#[derive(Default)]
struct Found {
    origin: Value,
    nodes: Vec<Value>,
    /// The keys of the nodes, the origin's too.
    keys: BTreeSet<String>,
    edges: BTreeSet<(String, String, String)>,
    truncated: bool,
}

impl Found {
    /// Takes in what a walk gave, until there are so many nodes.
    fn take(&mut self, side: &Value, most: usize) {
        self.truncated |= side.flag("truncated");
        for node in side.list("connected_nodes") {
            if self.keys.contains(node.text("node_key")) {
                continue;
            }
            if self.nodes.len() >= most {
                self.truncated |= most == NODES;
                break;
            }
            self.keys.insert(node.text("node_key").to_owned());
            self.nodes.push(node.clone());
        }
        for edge in side.list("edges") {
            self.edges.insert((
                edge.text("source").to_owned(),
                edge.text("target").to_owned(),
                edge.text("relation").to_owned(),
            ));
        }
    }
}

/// How a neighbourhood was asked for.
struct Asked<'a> {
    depth: u64,
    relation: Option<&'a str>,
    /// Nodes whose neighbours are shown too.
    opened: Vec<&'a str>,
}

impl Asked<'_> {
    /// The address of a neighbourhood.
    fn around(&self, key: &str, opened: &[&str]) -> String {
        let depth = if self.depth == 1 { String::new() } else { self.depth.to_string() };
        let mut pairs =
            vec![("node", key), ("depth", depth.as_str()), ("relation", self.relation.unwrap_or_default())];
        pairs.extend(opened.iter().map(|key| ("open", *key)));
        links::with("/graph", &pairs)
    }

    /// The same neighbourhood with the neighbours of one more node, or without those that were shown.
    fn turned(&self, origin: &str, key: &str) -> String {
        let mut opened: Vec<&str> = self.opened.iter().copied().filter(|known| *known != key).collect();
        if opened.len() == self.opened.len() && key != origin {
            opened.push(key);
        }
        self.around(origin, &opened)
    }
}

pub(super) fn page(host: &dyn Host, request: &Request) -> Answer {
    let (node, name) = (request.query("node"), request.query("name"));
    let depth = request.query("depth").and_then(|depth| depth.parse::<u64>().ok()).unwrap_or(1).clamp(1, 3);
    let relation = RELATIONS.into_iter().find(|known| request.query("relation") == Some(known));
    let asked = Asked { depth, relation, opened: request.all("open").take(OPENED).collect() };
    let body = match (node, name) {
        (None, None) => match request.query("type") {
            Some(kind) => of_kind(host, kind, request.query("offset"))?,
            None => entrance(host)?,
        },
        _ => {
            let found = match around(host, node, name, &asked) {
                Err(error)
                    if error.kind == Kind::NotFound && name.is_some() && request.query("part").is_none() =>
                {
                    let body = unknown(host, name.unwrap_or_default());
                    return Ok(whole(host, request, (node, name), &asked, &body));
                }
                found => found?,
            };
            if request.query("part") == Some("data") {
                let nodes: Vec<&Value> = std::iter::once(&found.origin).chain(&found.nodes).collect();
                let edges: Vec<Value> = found
                    .edges
                    .iter()
                    .map(|(from, to, word)| json!({ "source": from, "target": to, "relation": word }))
                    .collect();
                return Ok(Reply::json(
                    200,
                    &json!({ "nodes": nodes, "edges": edges, "truncated": found.truncated }),
                ));
            }
            neighbourhood(&found, &asked)
        }
    };
    Ok(whole(host, request, (node, name), &asked, &body))
}

/// The page with its form.
fn whole(
    host: &dyn Host,
    request: &Request,
    (node, name): (Option<&str>, Option<&str>),
    asked: &Asked<'_>,
    body: &Markup,
) -> Reply {
    let (depth, relation) = (asked.depth, asked.relation);
    frame::page(
        host,
        request,
        "Graph",
        html! {
            h1 { "Graph" }
            form.filters role="search" {
                label { "Around " input.around name="name" value=(name.unwrap_or_default()) placeholder="path or title of a document" size="28"; }
                @if let (Some(node), None) = (node, name) { input type="hidden" name="node" value=(node); @for key in &asked.opened { input type="hidden" name="open" value=(key); } }
                label { "Steps " select name="depth" { @for steps in 1..=3 { option value=(steps) selected[steps == depth] { (steps) } } } }
                label { "Relation " select name="relation" { option value="" { "all" } @for known in RELATIONS { option value=(known) selected[relation == Some(known)] { (relation_word(known)) } } } }
                button { "Show" }
            }
            (body)
        },
    )
}

/// Documents that may be meant by a name that none has.
fn unknown(host: &dyn Host, name: &str) -> Markup {
    let found = ask(host, "search", json!({ "query": name, "limit": NEAR })).unwrap_or_default();
    let mut near: Vec<(&str, &str)> =
        found.list("results").iter().map(|hit| (hit.text("document_id"), hit.text("path"))).collect();
    near.dedup();
    html! {
        (frame::empty("No such document or symbol", html! { p { "Nothing is called “" (words::plain(name)) "”. Write the path or title of a document, or the name of a symbol." } }))
        @if !near.is_empty() { h2 { "Perhaps one of these" } ul.plain { @for (id, path) in near {
            li { a href=(links::with("/graph", &[("node", &format!("doc:{id}"))])) { (words::plain(path)) } }
        } } }
    }
}

pub(super) fn relation_word(relation: &str) -> String {
    relation.to_lowercase().replace('_', " ")
}

/// A relation as it is told of the node that it leads to.
pub(super) fn told_back(relation: &str) -> String {
    let word = match relation {
        "LINKS_TO" => "linked from",
        "IMPORTS" => "imported by",
        "CALLS" => "called by",
        "DEFINES" => "defined in",
        "INHERITS" => "inherited by",
        "IMPLEMENTS" => "implemented by",
        "REFERENCES" => "referenced by",
        "CITES" => "cited by",
        "TAGGED" => "tag of",
        other => return relation_word(other),
    };
    word.to_owned()
}

/// Documents, tags and kinds of nodes, to begin with. How many nodes of a kind there are is not told, because that takes a
/// look at every document.
fn entrance(host: &dyn Host) -> Result<Markup, shelf_tools::ErrorReply> {
    let documents = ask(host, "list", json!({ "recent": 12, "limit": 12 }))?;
    let facets = ask(host, "facets", json!({})).unwrap_or_default();
    let tags = facets.list("tags");
    let to = |key: String| links::with("/graph", &[("node", &key)]);
    Ok(html! {
        p { "Links, imports, calls, tags and citations between documents. Begin with a document, a tag or a symbol." }
        div.halves {
            section { h2 { "Stored last" }
                @if documents.list("documents").is_empty() { p.note { "Nothing yet." } }
                ul.plain { @for document in documents.list("documents") {
                    li { a href=(to(format!("doc:{}", document.text("document_id")))) { (words::plain(super::document::title(document))) } " " span.note { (words::plain(document.text("path"))) } }
                } } }
            section {
                @if !tags.is_empty() { h2 { "Tags" } p.tags { @for tag in tags { span.tag { a href=(to(format!("tag:{}", tag.text("value")))) { (words::plain(tag.text("value"))) } " " span.figure { (words::count(tag.number("document_count"))) } } " " } } }
                h2 { "Everything of one kind" }
                p.tags { @for kind in KINDS { span.tag { a href=(links::with("/graph", &[("type", kind)])) { (kind) } } " " } }
            }
        }
    })
}

/// Nodes of one kind, to begin with: symbols have no page that one could come from.
fn of_kind(host: &dyn Host, kind: &str, offset: Option<&str>) -> Result<Markup, shelf_tools::ErrorReply> {
    let offset = offset.and_then(|offset| offset.parse::<u64>().ok()).unwrap_or(0);
    let found = ask(host, "graph", json!({ "list_type": kind, "limit": LISTED, "offset": offset }))?;
    let nodes = found.list("nodes");
    let to = |offset: u64| links::with("/graph", &[("type", kind), ("offset", &offset.to_string())]);
    Ok(html! {
        p.where { a href="/graph" { "All kinds" } " · " (words::plain(kind)) }
        @if nodes.is_empty() { (frame::empty("None of this kind", html! { p { a href="/graph" { "What there is" } } })) }
        ul.plain { @for node in nodes {
            li { a href=(links::with("/graph", &[("node", node.text("node_key"))])) { (words::plain(node.text("name"))) }
                @if let Some(path) = node.maybe("path") { " " span.note { (words::plain(path)) } } }
        } }
        p.pager {
            @if offset > 0 { a href=(to(offset.saturating_sub(LISTED))) rel="prev" { "Before" } }
            @if let Some(next) = found.get("next_offset").and_then(Value::as_u64) { a href=(to(next)) rel="next" { "After" } }
        }
    })
}

/// Walks in both directions, from the origin and from the nodes that were opened, and puts the results together.
fn around(
    host: &dyn Host,
    node: Option<&str>,
    name: Option<&str>,
    asked: &Asked<'_>,
) -> Result<Found, shelf_tools::ErrorReply> {
    let mut found = Found::default();
    let is_tag = name.is_none() && node.is_some_and(|key| key.starts_with("tag:"));
    let walk = |from: (&str, &str), (depth, limit): (u64, usize), reverse: bool| {
        let mut arguments = json!({ "depth": depth, "limit": limit, "reverse": reverse });
        arguments[from.0] = json!(from.1);
        if let Some(relation) = asked.relation {
            arguments["relation"] = json!(relation);
        } else if is_tag {
            // A walk without a filter leaves tags out; around a tag its documents are what there is to see.
            arguments["relation_filters"] = json!(WITH_TAGS);
        }
        ask(host, "graph", arguments)
    };
    let origin = match (name, node) {
        (Some(name), _) => ("name", name),
        (None, node) => ("node_key", node.unwrap_or_default()),
    };
    let [ahead, back] =
        [walk(origin, (asked.depth, NODES), false)?, walk(origin, (asked.depth, NODES), true)?];
    found.origin = ahead["origin"].clone();
    found.keys.insert(found.origin.text("node_key").to_owned());
    for (side, most) in sides(&ahead, &back) {
        found.take(side, most);
    }
    for opened in &asked.opened {
        for reverse in [false, true] {
            // What is gone by now has no neighbours, and is no reason to show nothing.
            if let Ok(side) = walk(("node_key", opened), (1, BESIDE), reverse) {
                found.take(&side, NODES);
            }
        }
    }
    let Found { keys, edges, .. } = &mut found;
    edges.retain(|(from, to, _)| keys.contains(from) && keys.contains(to));
    Ok(found)
}

/// The order in which both directions are taken in: half of the room is for each, and what one does not need is the other's.
fn sides<'a>(ahead: &'a Value, back: &'a Value) -> [(&'a Value, usize); 3] {
    [(ahead, NODES / 2), (back, NODES), (ahead, NODES)]
}

fn neighbourhood(found: &Found, asked: &Asked<'_>) -> Markup {
    let origin = found.origin.text("node_key");
    let relation = asked.relation;
    let to = |key: &str| asked.turned(origin, key);
    let is_open = |key: &str| asked.opened.contains(&key);
    let words_of = |key: &str| -> Vec<String> {
        let touching = found.edges.iter().filter(|(from, to, _)| from == key || to == key);
        let mut words: Vec<String> = touching
            .map(|(from, _, word)| if from == key { relation_word(word) } else { told_back(word) })
            .collect();
        words.sort();
        words.dedup();
        words.truncate(3);
        words
    };
    html! {
        p.where { "Around " strong { (words::plain(found.origin.text("name"))) } " · " (words::counted(found.nodes.len() as u64, "neighbour", "neighbours")) ", " (words::counted(found.edges.len() as u64, "edge", "edges"))
            @if let Some(id) = document_of(origin) { " · " a href=(links::document(id)) { "Open the document" } }
            @if !asked.opened.is_empty() { " · " a href=(asked.around(origin, &[])) { "Fold " (words::counted(asked.opened.len() as u64, "opened node", "opened nodes")) } }
            @if found.truncated { " · there are more than are shown" } }
        @if found.nodes.is_empty() { (frame::empty("No neighbours", html! { p { "Nothing is connected with it" @if relation.is_some() { " by this relation" } "." } })) }
        @else { div.graph {
            div.picture-of-graph { (picture(found, &to, &is_open))
                p.actions data-graph-tools="" hidden { button type="button" data-zoom="0.7" { "Closer" } button type="button" data-zoom="1.4" { "Further" } button type="button" data-zoom="whole" { "Whole picture" }
                    span.note { "Drag to move, turn the wheel to zoom, click a node to add its neighbours." } } }
            div.neighbours { h2 { "As a list" } ul.plain { @for node in &found.nodes {
                @let key = node.text("node_key");
                li { a href=(asked.around(key, &[])) { (words::plain(node.text("name"))) } " " span.note { (node.text("type")) " · " (words_of(key).join(", ")) " · "
                    a href=(to(key)) aria-label={ (if is_open(key) { "Fold " } else { "Expand " }) (words::plain(node.text("name"))) } { @if is_open(key) { "fold" } @else { "expand" } } }
                    @if let Some(path) = node.maybe("path") { br; span.note { (words::plain(path)) } } }
            } } }
        } }
    }
}

fn picture(found: &Found, to: &dyn Fn(&str) -> String, is_open: &dyn Fn(&str) -> bool) -> Markup {
    let all: Vec<&Value> = std::iter::once(&found.origin).chain(found.nodes.iter().take(NODES)).collect();
    let places = layout(&all, &found.edges);
    let at: BTreeMap<&str, (f64, f64)> =
        all.iter().zip(&places).map(|(node, place)| (node.text("node_key"), *place)).collect();
    // Names that would stand on each other are read by pointing at a node, or by looking closer.
    let is_named = |place: usize, node: &Value| {
        place == 0 || all.len() <= 60 || node.number("distance") <= 1 && all.len() <= 120
    };
    html! {
        svg data-graph="" viewBox=(view_box(&places)) role="group" aria-label="Picture of the neighbourhood; the list beside it says the same" {
            g { @for (from, target, word) in &found.edges {
                @if let (Some(a), Some(b)) = (at.get(from.as_str()), at.get(target.as_str())) {
                    line.edge data-from=(from) data-to=(target) x1=(round(a.0)) y1=(round(a.1)) x2=(round(b.0)) y2=(round(b.1)) { title { (relation_word(word)) } }
                }
            } }
            g { @for (place, (node, (x, y))) in all.iter().zip(&places).enumerate() {
                @let key = node.text("node_key");
                a class={ (if key.starts_with("doc:") { "doc" } else if key.starts_with("tag:") { "tag-node" } else { "other" }) @if place == 0 { " origin" } @if is_open(key) { " opened" } } href=(to(key)) data-node=(key) transform={ "translate(" (round(*x)) " " (round(*y)) ")" } {
                    title { (words::plain(node.text("name"))) " (" (node.text("type")) @if place > 0 { ": " (if is_open(key) { "fold" } else { "expand" }) } ")" }
                    circle r=(if place == 0 { 11 } else { 7 }) {}
                    text.far[!is_named(place, node)] x="12" y="4" { (words::clipped(&words::plain(node.text("name")), 26)) }
                }
            } }
        }
    }
}

/// The part of the picture that holds the nodes and their names, and never so little that they look large.
fn view_box(places: &[(f64, f64)]) -> String {
    let edge = |pick: fn(&(f64, f64)) -> f64, better: fn(f64, f64) -> f64, start: f64| {
        places.iter().map(pick).fold(start, better)
    };
    let (left, right) =
        (edge(|place| place.0, f64::min, SIZE) - 60.0, edge(|place| place.0, f64::max, 0.0) + 260.0);
    let (top, bottom) =
        (edge(|place| place.1, f64::min, SIZE) - 50.0, edge(|place| place.1, f64::max, 0.0) + 50.0);
    let (width, height) = ((right - left).max(480.0), (bottom - top).max(400.0));
    let (x, y) = ((left + right - width) / 2.0, (top + bottom - height) / 2.0);
    format!("{x:.0} {y:.0} {width:.0} {height:.0}")
}

fn round(value: f64) -> String {
    format!("{value:.1}")
}

/// Places on the picture: rings by distance, then a while of pulling and pushing. The same graph always looks the same.
fn layout(nodes: &[&Value], edges: &BTreeSet<(String, String, String)>) -> Vec<(f64, f64)> {
    let centre = SIZE / 2.0;
    let index: BTreeMap<&str, usize> =
        nodes.iter().enumerate().map(|(at, node)| (node.text("node_key"), at)).collect();
    let mut places: Vec<(f64, f64)> = nodes
        .iter()
        .enumerate()
        .map(|(at, node)| {
            let ring = if at == 0 { 0.0 } else { node.number("distance").max(1) as f64 };
            // The golden angle spreads neighbours of the list over the ring.
            let angle = at as f64 * 2.399_963;
            (centre + angle.cos() * ring * 190.0, centre + angle.sin() * ring * 190.0)
        })
        .collect();
    let links: Vec<(usize, usize)> = edges
        .iter()
        .filter_map(|(from, to, _)| Some((*index.get(from.as_str())?, *index.get(to.as_str())?)))
        .collect();
    let wanted = (SIZE * 0.9 / (nodes.len() as f64).sqrt()).clamp(50.0, 180.0);
    let rounds = if nodes.len() <= 120 { ROUNDS.0 } else { ROUNDS.1 };
    for round in 0..rounds {
        let heat = 24.0 * (1.0 - f64::from(round) / f64::from(rounds)) + 0.5;
        let mut forces = vec![(0.0, 0.0); places.len()];
        for a in 0..places.len() {
            for b in a + 1..places.len() {
                let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
                let distance = dx.hypot(dy).max(1.0);
                let push = wanted * wanted / (distance * distance) * 4.0;
                forces[a].0 += dx / distance * push;
                forces[a].1 += dy / distance * push;
                forces[b].0 -= dx / distance * push;
                forces[b].1 -= dy / distance * push;
            }
        }
        for (a, b) in &links {
            let (dx, dy) = (places[*b].0 - places[*a].0, places[*b].1 - places[*a].1);
            let distance = dx.hypot(dy).max(1.0);
            let pull = (distance - wanted) * 0.08;
            forces[*a].0 += dx / distance * pull;
            forces[*a].1 += dy / distance * pull;
            forces[*b].0 -= dx / distance * pull;
            forces[*b].1 -= dy / distance * pull;
        }
        for (at, (place, force)) in places.iter_mut().zip(&forces).enumerate() {
            if at == 0 {
                continue;
            }
            let length = force.0.hypot(force.1).max(0.01);
            let step = length.min(heat) / length;
            place.0 = (place.0 + force.0 * step).clamp(20.0, SIZE - 150.0);
            place.1 = (place.1 + force.1 * step).clamp(20.0, SIZE - 20.0);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_opened_and_folded_by_its_address() {
        let asked = Asked { depth: 2, relation: Some("CALLS"), opened: vec!["doc:b"] };
        assert_eq!(
            asked.turned("doc:a", "tag:c"),
            "/graph?node=doc%3Aa&depth=2&relation=CALLS&open=doc%3Ab&open=tag%3Ac"
        );
        assert_eq!(asked.turned("doc:a", "doc:b"), "/graph?node=doc%3Aa&depth=2&relation=CALLS");
        assert_eq!(asked.turned("doc:a", "doc:a"), asked.around("doc:a", &["doc:b"]));
    }

    #[test]
    fn both_directions_have_room() {
        let side = |name: &str, count: usize| {
            let nodes: Vec<Value> =
                (0..count).map(|at| json!({ "node_key": format!("{name}:{at}") })).collect();
            json!({ "connected_nodes": nodes, "edges": [] })
        };
        for (ahead, back, shown, is_cut) in [
            (300, 0, (300, 0), false),
            (0, 300, (0, 300), false),
            (300, 300, (150, 150), true),
            (200, 90, (200, 90), false),
            (290, 20, (280, 20), true),
        ] {
            let (ahead, back) = (side("a", ahead), side("b", back));
            let mut found = Found::default();
            for (side, most) in sides(&ahead, &back) {
                found.take(side, most);
            }
            let of = |name: &str| {
                found.nodes.iter().filter(|node| node.text("node_key").starts_with(name)).count()
            };
            assert_eq!(((of("a"), of("b")), found.truncated), (shown, is_cut));
        }
    }

    #[test]
    fn nodes_of_a_picture_keep_apart_and_inside() {
        for count in [40, 301] {
            keep_apart(count);
        }
    }

    fn keep_apart(count: usize) {
        let nodes: Vec<Value> = (0..count)
            .map(|at| json!({ "node_key": format!("doc:{at}"), "distance": u64::from(at > 0) }))
            .collect();
        let all: Vec<&Value> = nodes.iter().collect();
        let edges: BTreeSet<(String, String, String)> =
            (1..count).map(|at| ("doc:0".into(), format!("doc:{at}"), "LINKS_TO".into())).collect();
        let places = layout(&all, &edges);
        assert_eq!(places, layout(&all, &edges), "the same graph looks the same");
        for (at, a) in places.iter().enumerate() {
            assert!((0.0..=SIZE).contains(&a.0) && (0.0..=SIZE).contains(&a.1), "{a:?}");
            assert!(
                places[..at].iter().all(|b| (a.0 - b.0).hypot(a.1 - b.1) > 10.0),
                "{at} stands on another"
            );
        }
    }
}
