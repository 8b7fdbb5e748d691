//! EPUB books: the chapters of the spine, one after another.

use std::collections::HashMap;

use quick_xml::events::Event;

use crate::archive::{Parts, attribute, joined, xml};
use crate::passages::Outline;
use crate::{Markup, Text, Unreadable, html};

/// Chapters that are read at most.
const MOST_CHAPTERS: usize = 5_000;

/// The text of a book.
pub(crate) fn text<'a>(bytes: &[u8]) -> Result<Text<'a>, Unreadable> {
    let mut parts = Parts::open(bytes)?;
    let chapters = spine(&mut parts)?;
    let encrypted = parts.read("META-INF/encryption.xml")?.unwrap_or_default();
    let mut text = String::new();
    for (number, name) in chapters.iter().enumerate() {
        if encrypted.contains(name.as_str()) {
            return Err(Unreadable::Encrypted);
        }
        let Some(page) = parts.read(name)? else { continue };
        // The title in the head is that of the book, or repeats the heading.
        let body = page.find("<body").map_or(page.as_str(), |at| &page[at..]);
        let chapter = html::to_markdown(body);
        let chapter = chapter.trim();
        if chapter.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let starts = Outline::of(chapter, Markup::Markdown).headings().first() == Some(&0);
        if !starts {
            text.push_str(&format!(
                "# {}\n\n",
                title_of(&page).unwrap_or_else(|| format!("Part {}", number + 1))
            ));
        }
        text.push_str(chapter);
    }
    if chapters.is_empty() {
        return Err(Unreadable::damaged("it has no chapters"));
    }
    text.push('\n');
    Ok(Text::made(text, Markup::Markdown))
}

fn title_of(page: &str) -> Option<String> {
    let title = page.split("<title>").nth(1)?.split("</title>").next()?;
    let title = html::to_markdown(title).split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then_some(title)
}

/// The parts of the chapters, in reading order.
fn spine(parts: &mut Parts<'_>) -> Result<Vec<String>, Unreadable> {
    let container = parts.read("META-INF/container.xml")?.unwrap_or_default();
    let package = first_attribute(&container, "rootfile", "full-path")
        .ok_or_else(|| Unreadable::damaged("it names no package"))?;
    let content = parts.read(&package)?.ok_or_else(|| Unreadable::damaged("its package is missing"))?;
    let folder = package.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut items: HashMap<String, String> = HashMap::new();
    let mut chapters = Vec::new();
    let mut reader = xml(&content);
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) | Event::Empty(tag) => match tag.local_name().as_ref() {
                "item" => {
                    let is_page = attribute(&tag, "media-type").is_some_and(|kind| kind.contains("html"));
                    if let (Some(id), Some(href)) = (attribute(&tag, "id"), attribute(&tag, "href"))
                        && is_page
                    {
                        items.insert(id, joined(folder, &unescaped(&href)));
                    }
                }
                "itemref" => chapters.extend(attribute(&tag, "idref").and_then(|id| items.get(&id).cloned())),
                _ => {}
            },
            Event::Eof => break,
            _ => {}
        }
        if chapters.len() == MOST_CHAPTERS {
            break;
        }
    }
    Ok(chapters)
}

fn first_attribute(part: &str, element: &str, name: &str) -> Option<String> {
    let mut reader = xml(part);
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == element => {
                return attribute(&tag, name);
            }
            Event::Eof => return None,
            _ => {}
        }
    }
    None
}

/// A reference without its fragment and percent signs.
fn unescaped(href: &str) -> String {
    let href = href.split('#').next().unwrap_or(href);
    let mut bytes = Vec::with_capacity(href.len());
    let mut rest = href.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let code = code
            .and_then(|code| str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
