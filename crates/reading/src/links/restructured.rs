//! reStructuredText: references, roles and directives that lead to other documents, and headings.

use std::collections::HashMap;

use super::Found;
use crate::facts::{LinkKind, MOST_FACTS};

/// Roles whose text names a document or a file.
const DOCUMENT_ROLES: [&str; 2] = ["doc", "download"];
/// Directives whose argument names a file.
const FILE_DIRECTIVES: [(&str, LinkKind); 4] = [
    ("image", LinkKind::Image),
    ("figure", LinkKind::Image),
    ("include", LinkKind::Include),
    ("literalinclude", LinkKind::Include),
];

/// Reads a text.
pub(super) fn read(text: &str, found: &mut Found) {
    let targets = targets(text, found);
    let lines: Vec<&str> = text.lines().collect();
    let mut levels: Vec<(u8, bool)> = Vec::new();
    let mut tree_indent: Option<usize> = None;
    let mut start = 0;
    for (at, line) in lines.iter().enumerate() {
        let number = at as u32 + 1;
        let indent = line.len() - line.trim_start().len();
        if let Some(outer) = tree_indent {
            if !line.trim().is_empty() && indent <= outer {
                tree_indent = None;
            } else {
                entry(line.trim(), number, found);
                start += line.len() + 1;
                continue;
            }
        }
        if let Some(directive) = line.trim_start().strip_prefix(".. ") {
            if directive.starts_with("toctree::") {
                tree_indent = Some(indent);
            }
            self::directive(directive, number, found);
        } else {
            inline(line, number, &targets, found);
        }
        if let Some(level) = heading_level(&lines, at, &mut levels) {
            found.heading(level, line.trim(), None, number, start);
        }
        start += line.len() + 1;
    }
}

/// `.. _name: target`, and labels without a target.
fn targets<'a>(text: &'a str, found: &mut Found) -> HashMap<String, &'a str> {
    let mut targets = HashMap::new();
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix(".. _") else { continue };
        let Some((name, target)) = rest.split_once(':') else { continue };
        let (name, target) = (name.trim_matches('`'), target.trim());
        if target.is_empty() {
            found.anchor(name);
        } else if targets.len() < MOST_FACTS {
            targets.insert(name.to_lowercase(), target);
        }
    }
    targets
}

/// An entry of a table of contents: `path` or `title <path>`.
fn entry(line: &str, number: u32, found: &mut Found) {
    if line.is_empty() || line.starts_with(':') || line == "self" {
        return;
    }
    let (text, target) = named(line);
    found.link(LinkKind::Inline, target, text, "", number);
}

fn directive(text: &str, number: u32, found: &mut Found) {
    for (name, kind) in FILE_DIRECTIVES {
        if let Some(target) = text.strip_prefix(name).and_then(|rest| rest.strip_prefix("::")) {
            found.link(kind, target, "", "", number);
        }
    }
}

/// Roles and references within a line.
fn inline(line: &str, number: u32, targets: &HashMap<String, &str>, found: &mut Found) {
    let mut rest = line;
    while let Some(open) = rest.find('`') {
        let (before, after) = (&rest[..open], &rest[open + 1..]);
        if let Some(literal) = after.strip_prefix('`') {
            // A literal, which ends with two marks.
            rest = literal.find("``").map_or("", |end| &literal[end + 2..]);
            continue;
        }
        let Some(close) = after.find('`') else { break };
        let (inner, behind) = (&after[..close], &after[close + 1..]);
        let role = before.strip_suffix(':').and_then(|before| before.rsplit(':').next()).unwrap_or_default();
        let (text, target) = named(inner);
        if DOCUMENT_ROLES.contains(&role) {
            found.link(LinkKind::Inline, target, text, "", number);
        } else if role == "ref" || role == "numref" {
            found.link(LinkKind::Reference, &format!("#{target}"), text, "", number);
        } else if behind.starts_with('_') && inner.contains('<') {
            let target = target
                .strip_suffix('_')
                .and_then(|name| targets.get(&name.to_lowercase()).copied())
                .unwrap_or(target);
            found.link(LinkKind::Inline, target, text, "", number);
        } else if behind.starts_with('_') {
            reference(inner, number, targets, found);
        }
        rest = behind;
    }
    // `name_` without marks.
    for word in line.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '-')) {
        let name = word.strip_suffix('_').filter(|name| !name.is_empty() && !name.ends_with('_'));
        if let Some(name) = name.filter(|name| targets.contains_key(&name.to_lowercase())) {
            reference(name, number, targets, found);
        }
    }
}

fn reference(name: &str, number: u32, targets: &HashMap<String, &str>, found: &mut Found) {
    match targets.get(&name.to_lowercase()) {
        Some(target) => found.link(LinkKind::Reference, target, name, "", number),
        None => found.link(LinkKind::Reference, &format!("#{}", super::slug(name)), name, "", number),
    }
}

/// `text <target>`, or a target alone.
fn named(inner: &str) -> (&str, &str) {
    match inner.strip_suffix('>').and_then(|inner| inner.rsplit_once('<')) {
        Some((text, target)) => (text.trim(), target.trim()),
        None => ("", inner.trim()),
    }
}

/// A line with a rule below it (and perhaps above) is a heading; its level is the order in which such rules appear.
fn heading_level(lines: &[&str], at: usize, levels: &mut Vec<(u8, bool)>) -> Option<u8> {
    let title = lines[at].trim_end();
    let below = lines.get(at + 1)?.trim_end();
    let mark = below.bytes().next().filter(u8::is_ascii_punctuation)?;
    let is_rule = |line: &str| line.len() >= 2 && line.bytes().all(|byte| byte == mark);
    let is_heading = !title.trim().is_empty()
        && !is_rule(title)
        && is_rule(below)
        && below.len() >= title.trim().chars().count();
    if !is_heading {
        return None;
    }
    let is_overlined = at > 0 && lines[at - 1].trim_end() == below;
    let place = levels.iter().position(|known| *known == (mark, is_overlined)).unwrap_or_else(|| {
        levels.push((mark, is_overlined));
        levels.len() - 1
    });
    Some((place as u8).saturating_add(1))
}
