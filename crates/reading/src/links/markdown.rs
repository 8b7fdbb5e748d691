//! Markdown: inline and reference links, wiki links, footnotes, images, headings, and the HTML in between.

use std::{borrow::Cow, collections::HashMap};

use pulldown_cmark::{BrokenLink, CowStr, Event, LinkType, MetadataBlockKind, Options, Parser, Tag, TagEnd};

use super::{Found, front_matter};
use crate::facts::{LineCounter, LinkKind, MOST_FACTS, beginning};
use crate::html;

/// Texts up to this size are parsed in one go, larger ones in pieces of it: a parser takes many times the memory of its
/// text.
const PIECE: usize = 1 << 20;

/// Reads a text.
pub(super) fn read(text: &str, found: &mut Found) {
    front_matter::read(text, found);
    if text.len() <= PIECE {
        return piece(text, 0, 1, &HashMap::new(), found);
    }
    let definitions = definitions(text);
    let (mut start, mut line) = (0, 1);
    while start < text.len() {
        let rest = &text[start..];
        let end = start + pause(rest);
        piece(&text[start..end], start, line, &definitions, found);
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[start..end]).count() as u32;
        start = end;
    }
}

/// Where a piece ends: at a blank line, else at a line's end, else anywhere.
fn pause(rest: &str) -> usize {
    if rest.len() <= PIECE {
        return rest.len();
    }
    let window = beginning(rest, PIECE);
    let blank = window.rfind("\n\n").map(|at| at + 2).filter(|at| *at > PIECE / 2);
    let line = || window.rfind('\n').map(|at| at + 1).filter(|at| *at > PIECE / 2);
    blank.or_else(line).unwrap_or(window.len())
}

/// Definitions of reference links in a text of several pieces, by name.
fn definitions(text: &str) -> HashMap<String, String> {
    let mut all = HashMap::new();
    for line in text.lines() {
        let line = line.trim_start();
        let Some((name, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]:")) else {
            continue;
        };
        let target = target.trim().trim_start_matches('<');
        let end = target.find(|letter: char| letter.is_whitespace() || letter == '>').unwrap_or(target.len());
        if all.len() < MOST_FACTS && name.len() < 256 && !target.is_empty() {
            all.entry(name.to_lowercase()).or_insert_with(|| target[..end].to_owned());
        }
    }
    all
}

/// The link or heading whose text is being read.
enum Open {
    Link { kind: LinkKind, target: String, title: String, start: usize },
    Heading { level: u8, anchor: Option<String>, start: usize },
}

fn piece(
    text: &str,
    offset: usize,
    first_line: u32,
    definitions: &HashMap<String, String>,
    found: &mut Found,
) {
    let options = Options::ENABLE_FOOTNOTES
        | Options::ENABLE_WIKILINKS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_TABLES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let lookup = |link: BrokenLink<'_>| {
        let target = definitions.get(&link.reference.to_lowercase())?;
        Some((CowStr::from(target.clone()), CowStr::from("")))
    };
    let parser = Parser::new_with_broken_link_callback(text, options, Some(lookup));
    let mut lines = LineCounter::new(text);
    let mut open: Vec<(Open, String)> = Vec::new();
    let mut in_metadata = false;
    // The link of a tag `<a>` whose words are being read.
    let mut tagged: Option<(usize, String)> = None;
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::MetadataBlock(
                MetadataBlockKind::YamlStyle | MetadataBlockKind::PlusesStyle,
            )) => in_metadata = true,
            Event::End(TagEnd::MetadataBlock(_)) => in_metadata = false,
            Event::Start(Tag::Link { link_type, dest_url, title, .. }) if link_type != LinkType::Email => {
                let link = Open::Link {
                    kind: kind_of(link_type),
                    target: dest_url.into_string(),
                    title: title.into_string(),
                    start: range.start,
                };
                open.push((link, String::new()));
            }
            Event::Start(Tag::Image { dest_url, title, .. }) => {
                let link = Open::Link {
                    kind: LinkKind::Image,
                    target: dest_url.into_string(),
                    title: title.into_string(),
                    start: range.start,
                };
                open.push((link, String::new()));
            }
            Event::Start(Tag::Heading { level, id, .. }) => {
                let anchor = id.map(CowStr::into_string);
                open.push((Open::Heading { level: level as u8, anchor, start: range.start }, String::new()));
            }
            Event::End(TagEnd::Link | TagEnd::Image | TagEnd::Heading(_)) => {
                let Some((ended, shown)) = open.pop() else { continue };
                if let Some((_, outer)) = open.last_mut() {
                    push(outer, &shown);
                }
                match ended {
                    Open::Link { kind, target, title, start } => {
                        let line = first_line + lines.line(start) - 1;
                        found.link(kind, &target, &shown, &title, line);
                    }
                    Open::Heading { level, anchor, start } => {
                        let line = first_line + lines.line(start) - 1;
                        found.heading(level, &shown, anchor.as_deref(), line, offset + start);
                    }
                }
            }
            Event::Text(words) | Event::Code(words) if !in_metadata => {
                if let Some((_, shown)) = &mut tagged {
                    push(shown, &words);
                }
                if let Some((_, shown)) = open.last_mut() {
                    push(shown, &words);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some((_, shown)) = open.last_mut() {
                    push(shown, " ");
                }
            }
            Event::FootnoteReference(name) => {
                let line = first_line + lines.line(range.start) - 1;
                found.link(LinkKind::Footnote, &format!("#fn-{name}"), &name, "", line);
            }
            Event::Start(Tag::FootnoteDefinition(name)) => found.anchor(&format!("fn-{name}")),
            Event::Html(source) | Event::InlineHtml(source) => {
                let line = first_line + lines.line(range.start) - 1;
                if let Some((at, words)) = tagged.take() {
                    found.name_link(at, &words);
                }
                let before = found.facts.links.len();
                html::inline_links(&source, line, found);
                let is_link = found.facts.links.len() == before + 1 && source.starts_with("<a");
                tagged = is_link.then(|| (before, String::new()));
            }
            Event::End(TagEnd::Paragraph) => tagged = None,
            _ => {}
        }
    }
}

/// Adds to a text that is shown; what is longer than is kept is not gathered.
fn push(shown: &mut String, words: &str) {
    if shown.len() < 1_024 {
        shown.push_str(beginning(words, 1_024));
    }
}

const fn kind_of(link: LinkType) -> LinkKind {
    match link {
        LinkType::WikiLink { .. } => LinkKind::Wiki,
        LinkType::Inline | LinkType::Autolink | LinkType::Email => LinkKind::Inline,
        _ => LinkKind::Reference,
    }
}

/// Only the headings of a text that was made of another format: it has no links, and nothing in it is escaped.
pub(super) fn headings(text: &str, found: &mut Found) {
    let (mut start, mut fence) = (0, None);
    for (number, line) in (1u32..).zip(text.split_inclusive('\n')) {
        let trimmed: Cow<'_, str> = line.trim().into();
        let ticks = trimmed.bytes().take_while(|byte| *byte == b'`').count();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            Some(open) if ticks >= open && trimmed.len() == ticks => fence = None,
            None => {
                let level = trimmed.bytes().take_while(|byte| *byte == b'#').count();
                if let Some(heading) = trimmed.get(level..).and_then(|rest| rest.strip_prefix(' '))
                    && (1..=6).contains(&level)
                {
                    found.heading(level as u8, heading, None, number, start);
                }
            }
            Some(_) => {}
        }
        start += line.len();
    }
}
