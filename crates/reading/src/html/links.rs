//! Links, headings and anchors of a page. Lines are those of the text that is made of it, as everywhere else.

use super::{
    Walk, level,
    tags::{Tags, Token, attribute},
};
use crate::{
    facts::{LineCounter, LinkKind},
    links::Found,
};

/// A link or heading that is open, and where its words begin in the text.
struct Open {
    name: String,
    target: String,
    title: String,
    at: usize,
}

/// What was found, with the offset at which its line can be counted.
struct Noted {
    open: Open,
    end: usize,
}

/// Reads a page.
pub(crate) fn links(page: &str, found: &mut Found) {
    let mut walk = Walk::default();
    let mut open: Vec<Open> = Vec::new();
    let mut noted: Vec<Noted> = Vec::new();
    for token in Tags::new(page) {
        match token {
            Token::Text(text) => walk.text(&text),
            Token::Open { name, alternative, tag } => {
                if name == "meta" {
                    keywords(tag, found);
                }
                let at = walk.writer.written().len();
                if let Some(anchor) = own_anchor(&name, tag).filter(|_| level(&name).is_none()) {
                    found.anchor(&anchor);
                }
                walk.open(&name, alternative.as_deref());
                match name.as_str() {
                    "a" => begin(&mut open, &mut noted, name, tag, "href", at),
                    "img" | "iframe" | "video" | "audio" | "source" | "embed" => {
                        let target = attribute(tag, "src").unwrap_or_default();
                        let title = attribute(tag, "title").unwrap_or_default();
                        let end = walk.writer.written().len();
                        noted.push(Noted { open: Open { name, target, title, at }, end });
                    }
                    _ if level(&name).is_some() => begin(&mut open, &mut noted, name, tag, "id", at),
                    _ => {}
                }
            }
            Token::Close { name } => {
                if (name == "a" || level(&name).is_some())
                    && let Some(place) = open.iter().rposition(|one| one.name == name)
                {
                    let end = walk.writer.written().len();
                    noted.push(Noted { open: open.remove(place), end });
                }
                walk.close(&name);
            }
        }
        // Elements that are never closed do not pile up.
        if open.len() > 64 {
            let end = walk.writer.written().len();
            noted.push(Noted { open: open.remove(0), end });
        }
    }
    let text = walk.finish_words();
    let end = text.len();
    noted.extend(open.into_iter().map(|open| Noted { open, end }));
    report(&text, noted, found);
}

fn begin(open: &mut Vec<Open>, noted: &mut Vec<Noted>, name: String, tag: &str, key: &str, at: usize) {
    // Links do not contain links: one that was not closed ends here.
    if let Some(place) = open.iter().rposition(|one| one.name == name) {
        noted.push(Noted { open: open.remove(place), end: at });
    }
    let (target, title) =
        (attribute(tag, key).unwrap_or_default(), attribute(tag, "title").unwrap_or_default());
    open.push(Open { name, target, title, at });
}

fn report(text: &str, noted: Vec<Noted>, found: &mut Found) {
    let mut lines = LineCounter::new(text);
    for Noted { open, end } in noted {
        let end = end.min(text.len());
        let words = text.get(open.at.min(end)..end).unwrap_or_default();
        let begins = open.at + (words.len() - words.trim_start().len());
        let line = lines.line(begins);
        let words = words.trim();
        match level(&open.name) {
            Some(level) => {
                let words = words.trim_start_matches('#').trim();
                if !words.is_empty() {
                    let own = Some(open.target.as_str()).filter(|own| !own.is_empty());
                    found.heading(level as u8, words, own, line, begins);
                }
            }
            None => {
                let kind = if open.name == "a" { LinkKind::Inline } else { LinkKind::Image };
                found.link(kind, &open.target, words, &open.title, line);
            }
        }
    }
}

/// The links in a piece of HTML within another text, all on one line.
pub(crate) fn inline_links(source: &str, line: u32, found: &mut Found) {
    for (row, part) in (line..).zip(source.split('\n')) {
        for token in Tags::new(part) {
            let Token::Open { name, tag, alternative } = token else { continue };
            if let Some(anchor) = own_anchor(&name, tag) {
                found.anchor(&anchor);
            }
            let (kind, key) = match name.as_str() {
                "a" => (LinkKind::Inline, "href"),
                "img" => (LinkKind::Image, "src"),
                _ => continue,
            };
            let target = attribute(tag, key).unwrap_or_default();
            found.link(kind, &target, &alternative.unwrap_or_default(), "", row);
        }
    }
}

fn own_anchor(name: &str, tag: &str) -> Option<String> {
    attribute(tag, "id").or_else(|| if name == "a" { attribute(tag, "name") } else { None })
}

fn keywords(tag: &str, found: &mut Found) {
    let is_keywords = attribute(tag, "name").is_some_and(|name| name.eq_ignore_ascii_case("keywords"));
    if let Some(list) = is_keywords.then(|| attribute(tag, "content")).flatten() {
        list.split(',').for_each(|tag| found.tag(tag));
    }
}
