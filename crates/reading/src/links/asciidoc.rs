//! AsciiDoc: `link:`, `xref:`, `<<anchor>>`, `include::`, images, attributes, anchors and headings.

use super::Found;
use crate::facts::{LONGEST_NAME, LinkKind, beginning};

/// Macros that lead to another document or file, and how many colons follow their name.
const MACROS: [(&str, LinkKind); 7] = [
    ("include::", LinkKind::Include),
    ("image::", LinkKind::Image),
    ("image:", LinkKind::Image),
    ("link:", LinkKind::Inline),
    ("xref:", LinkKind::Inline),
    ("https://", LinkKind::Inline),
    ("http://", LinkKind::Inline),
];

/// Reads a text.
pub(super) fn read(text: &str, found: &mut Found) {
    let (mut start, mut fence): (usize, Option<&str>) = (0, None);
    let mut own_anchor: Option<&str> = None;
    for (number, whole) in (1u32..).zip(text.split_inclusive('\n')) {
        let line = whole.trim_end();
        if matches!(line, "----" | "...." | "++++" | "////") {
            fence = match fence {
                None => Some(line),
                Some(open) if open == line => None,
                open => open,
            };
        } else if fence.is_none_or(|open| line.starts_with("include::") && open == "----") {
            if let Some(anchor) = anchor_of(line) {
                own_anchor = Some(anchor);
            } else {
                if let Some((level, title)) = heading(line) {
                    found.heading(level, title, own_anchor.or(Some(&made_anchor(title))), number, start);
                } else if let Some(anchor) = own_anchor.filter(|_| !line.is_empty()) {
                    found.anchor(anchor);
                }
                if !line.is_empty() {
                    own_anchor = None;
                }
                if let Some(tags) = line.strip_prefix(":keywords:").or_else(|| line.strip_prefix(":tags:")) {
                    tags.split(',').for_each(|tag| found.tag(tag));
                }
                inline(line, number, found);
            }
        }
        start += whole.len();
    }
}

/// `[[anchor]]` or `[#anchor]` on a line of its own.
fn anchor_of(line: &str) -> Option<&str> {
    let double = line.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"));
    let short = || line.strip_prefix("[#").and_then(|rest| rest.strip_suffix(']'));
    let anchor = double.or_else(short)?;
    Some(anchor.split([',', '.']).next().unwrap_or(anchor))
}

fn heading(line: &str) -> Option<(u8, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'=').count();
    let title = line.get(level..)?.strip_prefix(' ')?.trim();
    ((1..=6).contains(&level) && !title.is_empty()).then_some((level as u8, title))
}

/// The anchor that AsciiDoc makes of a heading.
fn made_anchor(title: &str) -> String {
    let letters = title.chars().flat_map(char::to_lowercase);
    let mut anchor = String::from("_");
    for letter in letters {
        match letter {
            letter if letter.is_alphanumeric() => anchor.push(letter),
            ' ' | '-' | '_' | '.' if !anchor.ends_with('_') => anchor.push('_'),
            _ => {}
        }
    }
    anchor.truncate(anchor.trim_end_matches('_').len().max(1));
    anchor
}

fn inline(line: &str, number: u32, found: &mut Found) {
    let mut rest = line;
    while let Some(open) = rest.find("<<") {
        let after = &rest[open + 2..];
        let Some(close) = after.find(">>") else { break };
        let (target, text) = after[..close].split_once(',').unwrap_or((&after[..close], ""));
        let target = target.trim();
        let is_file = target.contains(['#', '.']);
        let target = if is_file { target.to_owned() } else { format!("#{target}") };
        found.link(LinkKind::Reference, &target, text.trim(), "", number);
        rest = &after[close + 2..];
    }
    let mut at = 0;
    while let Some((next, name, kind)) = next_macro(line, at) {
        let after = beginning(&line[next + name.len()..], 2 * LONGEST_NAME);
        let is_address = name.ends_with("//");
        let end = after.find(|letter: char| letter == '[' || letter.is_whitespace());
        let (target_end, text) = match end.map(|end| (end, &after[end..])) {
            Some((end, rest)) if rest.starts_with('[') => {
                (end, rest[1..].split(']').next().unwrap_or_default())
            }
            Some((end, _)) if is_address => (end, ""),
            None if is_address => (after.len(), ""),
            _ => {
                at = next + name.len();
                continue;
            }
        };
        let target = &after[..target_end];
        let text = text.split(',').next().unwrap_or(text);
        if is_address {
            let target = target.trim_end_matches(['.', ',', ';', ')']);
            found.link(kind, &format!("{name}{target}"), text, "", number);
        } else if name == "xref:" && !target.contains(['.', '#', '/']) {
            found.link(kind, &format!("#{target}"), text, "", number);
        } else {
            found.link(kind, target, text, "", number);
        }
        at = next + name.len() + target_end;
    }
}

/// The next macro at or after an offset. A name inside another word is none.
fn next_macro(line: &str, at: usize) -> Option<(usize, &'static str, LinkKind)> {
    let bytes = line.as_bytes();
    memchr::memchr_iter(b':', &bytes[at..]).find_map(|colon| {
        let colon = at + colon;
        MACROS.iter().find_map(|(name, kind)| {
            let start = colon.checked_sub(name.find(':')?).filter(|start| *start >= at)?;
            let before = start.checked_sub(1).map(|before| bytes[before]);
            let is_word = before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b':');
            (is_word && bytes[start..].starts_with(name.as_bytes())).then_some((start, *name, *kind))
        })
    })
}
