//! Links, headings, anchors, tags and citation addresses of prose.
//!
//! Markdown is read by a parser of CommonMark; HTML by the reader that makes text of it; reStructuredText and AsciiDoc
//! by their lines. Targets are kept as they are written: what they mean is decided when somebody asks.

mod asciidoc;
mod citation;
mod front_matter;
mod markdown;
mod restructured;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub(crate) use citation::citations;

use crate::{
    Markup, Text, decode, extension_of,
    facts::{Facts, Heading, LONGEST_NAME, Link, LinkKind, MOST_FACTS, SHOWN_TEXT, beginning},
    html,
};

/// Bytes of a text in reStructuredText or AsciiDoc that are read.
const READ_BYTES: usize = 4 << 20;

/// Reads the links, headings and tags of prose. `page` is the source of an HTML page.
pub fn read(path: &str, mime: &str, text: &Text<'_>, page: Option<&[u8]>) -> Facts {
    let mut found = Found::default();
    let limited = beginning(&text.text, READ_BYTES);
    let mime = mime.split(';').next().unwrap_or(mime).trim();
    match (mime, extension_of(path).as_str()) {
        ("text/html" | "application/xhtml+xml", _) => match page {
            Some(page) => html::links(&decode::decode(page, decode::declared(page)).0, &mut found),
            None => markdown::headings(&text.text, &mut found),
        },
        (_, ".rst") | ("text/x-rst", _) => restructured::read(limited, &mut found),
        (_, ".adoc" | ".asciidoc") | ("text/asciidoc", _) => asciidoc::read(limited, &mut found),
        _ if text.markup == Markup::Markdown && text.as_stored => markdown::read(&text.text, &mut found),
        _ if text.markup == Markup::Markdown => markdown::headings(&text.text, &mut found),
        _ => {}
    }
    found.facts.is_cut |= limited.len() < text.text.len();
    found.facts
}

/// Collects facts within their bounds.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) facts: Facts,
    /// How often an anchor was asked for.
    anchors: HashMap<String, u32>,
}

impl Found {
    pub(crate) fn link(&mut self, kind: LinkKind, target: &str, text: &str, title: &str, line: u32) {
        let target = target.trim();
        if target.is_empty() || target.len() > LONGEST_NAME || target.starts_with("data:") {
            return;
        }
        if self.facts.links.len() >= MOST_FACTS {
            self.facts.is_cut = true;
            return;
        }
        self.facts.links.push(Link {
            kind,
            target: target.to_owned(),
            text: shown(text),
            title: shown(title),
            line,
        });
    }

    /// Gives a link the words that follow its tag.
    pub(crate) fn name_link(&mut self, at: usize, words: &str) {
        if let Some(link) = self.facts.links.get_mut(at).filter(|link| link.text.is_empty()) {
            link.text = shown(words);
        }
    }

    /// Adds a heading. Without an anchor of its own it gets one made of its text, as most sites do.
    pub(crate) fn heading(
        &mut self,
        level: u8,
        text: &str,
        own_anchor: Option<&str>,
        line: u32,
        start: usize,
    ) {
        if self.facts.headings.len() >= MOST_FACTS {
            self.facts.is_cut = true;
            return;
        }
        let text = shown(text);
        let wanted = match own_anchor.filter(|own| !own.is_empty() && own.len() <= LONGEST_NAME) {
            Some(own) => own.to_owned(),
            None => slug(&text),
        };
        let anchor = self.unique(wanted);
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        self.facts.headings.push(Heading { level, text, anchor, line, start });
    }

    fn unique(&mut self, wanted: String) -> String {
        let mut candidate = wanted.clone();
        loop {
            if !self.anchors.contains_key(&candidate) {
                self.anchors.insert(candidate.clone(), 0);
                return candidate;
            }
            let count = self.anchors.entry(wanted.clone()).or_default();
            *count += 1;
            candidate = format!("{wanted}-{count}");
        }
    }

    pub(crate) fn anchor(&mut self, anchor: &str) {
        let is_new = !anchor.is_empty() && anchor.len() <= LONGEST_NAME && !self.anchors.contains_key(anchor);
        if !is_new {
            return;
        }
        if self.facts.anchors.len() >= MOST_FACTS {
            self.facts.is_cut = true;
            return;
        }
        self.anchors.insert(anchor.to_owned(), 0);
        self.facts.anchors.push(anchor.to_owned());
    }

    pub(crate) fn tag(&mut self, tag: &str) {
        let tag = tag.trim().trim_matches(['"', '\'']).trim().trim_start_matches('#');
        let is_new = !tag.is_empty() && tag.len() <= 256 && !self.facts.tags.iter().any(|known| known == tag);
        if is_new && self.facts.tags.len() < 128 {
            self.facts.tags.push(tag.to_owned());
        }
    }
}

/// What is kept of a text that a reader sees.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for word in text.split_whitespace() {
        if !shown.is_empty() {
            shown.push(' ');
        }
        if shown.len() + word.len() > SHOWN_TEXT {
            shown.push_str(beginning(word, SHOWN_TEXT - shown.len().min(SHOWN_TEXT)));
            break;
        }
        shown.push_str(word);
    }
    shown.truncate(shown.trim_end().len());
    shown
}

/// The anchor that sites make of a heading: its letters and digits in lowercase, with dashes for spaces.
pub fn slug(heading: &str) -> String {
    let keeps = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    let letters = heading.trim().chars().flat_map(char::to_lowercase).filter(keeps);
    letters.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}
