//! Makes a tree of a list of entries: nesting by level, ids, and parents that contain their children.

use std::collections::{HashMap, HashSet};

use super::{Entry, Location, MOST_NODES, Map, MapNode, hull};

/// How deep a tree gets at most. Deeper entries become siblings at this depth, so that ids stay short.
const MOST_DEPTH: usize = 12;
/// Characters of the part of an id that a title gives at most.
const PART_CHARS: usize = 40;
/// Characters of a title at most.
const TITLE_CHARS: usize = 200;

pub(super) fn assemble(entries: Vec<Entry>) -> Map {
    let mut map = Map::default();
    let mut ids = Ids::default();
    // The open nodes, each with its level.
    let mut open: Vec<(usize, u32)> = Vec::new();
    for entry in entries.into_iter().take(MOST_NODES) {
        while open.last().is_some_and(|(level, _)| *level >= entry.level) || open.len() >= MOST_DEPTH {
            open.pop();
        }
        let parent = open.last().map(|(_, parent)| *parent);
        let at = map.nodes.len() as u32;
        let before = parent.map_or("", |parent| map.nodes[parent as usize].id.as_str());
        let title = clean_title(&entry.title);
        let id = ids.give(before, &title);
        match parent {
            Some(parent) => map.nodes[parent as usize].children.push(at),
            None => map.roots.push(at),
        }
        open.push((entry.level, at));
        map.nodes.push(MapNode {
            id,
            title,
            kind: entry.kind.into(),
            location: Location::Here(entry.place),
            summary: entry.summary.filter(|summary| !summary.is_empty()),
            parent,
            children: Vec::new(),
        });
    }
    widen(&mut map);
    map
}

/// Makes every parent contain its children, from the leaves up. Bookmarks may lead anywhere.
fn widen(map: &mut Map) {
    for at in (0..map.nodes.len()).rev() {
        let Some(parent) = map.nodes[at].parent else { continue };
        let (before, after) = map.nodes.split_at_mut(at);
        let (parent, child) = (&mut before[parent as usize], &after[0]);
        if let (Location::Here(outer), Location::Here(inner)) = (&mut parent.location, &child.location) {
            *outer = hull(outer, inner);
        }
    }
}

fn clean_title(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    let title: String = words.join(" ").chars().filter(|each| !each.is_control()).take(TITLE_CHARS).collect();
    if title.is_empty() { "Untitled".into() } else { title }
}

/// Ids that have been given out, and the next number for those that were asked for again.
#[derive(Default)]
struct Ids {
    used: HashSet<String>,
    next: HashMap<String, usize>,
}

impl Ids {
    /// The parent's id, a dot, and a part made of the title; with a number when a sibling has the same.
    fn give(&mut self, parent: &str, title: &str) -> String {
        let part = part_of(title);
        let stem = if parent.is_empty() { part } else { format!("{parent}.{part}") };
        let mut id = stem.clone();
        while self.used.contains(&id) {
            let number = self.next.entry(stem.clone()).or_insert(1);
            *number += 1;
            id = format!("{stem}_{number}");
        }
        self.used.insert(id.clone());
        id
    }
}

fn part_of(title: &str) -> String {
    let mut part = String::new();
    for character in title.chars().flat_map(char::to_lowercase) {
        if part.chars().count() >= PART_CHARS {
            break;
        }
        if character.is_alphanumeric() {
            part.push(character);
        } else if !part.ends_with('_') && !part.is_empty() {
            part.push('_');
        }
    }
    let part = part.trim_end_matches('_');
    if part.is_empty() { "section".into() } else { part.into() }
}
