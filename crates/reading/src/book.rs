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
    let (chapters, contents) = spine(&mut parts)?;
    let titles = titles(&mut parts, contents.as_deref());
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
        let mut chapter = chapter.trim();
        if chapter.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let starts = Outline::of(chapter, Markup::Markdown).headings().first() == Some(&0);
        if !starts {
            let listed = titles.get(name).cloned();
            let title = listed.or_else(|| title_of(&page)).unwrap_or_else(|| format!("Part {}", number + 1));
            text.push_str(&format!("# {title}\n\n"));
            // Some programs write headings as paragraphs, and call them headings in the list of contents only.
            let rest = chapter.strip_prefix(&title).filter(|rest| rest.starts_with('\n'));
            chapter = rest.map_or(chapter, str::trim_start);
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

/// Titles of chapters by their parts, as the list of contents has them.
fn titles(parts: &mut Parts<'_>, contents: Option<&str>) -> HashMap<String, String> {
    let mut titles = HashMap::new();
    let Some(page) = contents.and_then(|name| parts.read(name).ok().flatten()) else { return titles };
    let folder = contents.and_then(|name| name.rsplit_once('/')).map_or("", |(folder, _)| folder);
    // The words of a link stand between its tag and the end of it; what marks them up is left out.
    for link in page.split("<a ").skip(1).take(MOST_CHAPTERS) {
        let Some((tag, rest)) = link.split_once('>') else { continue };
        let words = rest.split("</a>").next().unwrap_or_default();
        let href = first_attribute(&format!("<a {}/>", tag.trim_end_matches('/')), "a", "href");
        let title = html::to_markdown(words).split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(href) = href.filter(|_| !title.is_empty()) {
            titles.entry(joined(folder, &unescaped(&href))).or_insert(title);
        }
    }
    titles
}

/// The parts of the chapters, in reading order, and the part with the list of contents.
fn spine(parts: &mut Parts<'_>) -> Result<(Vec<String>, Option<String>), Unreadable> {
    let container = parts.read("META-INF/container.xml")?.unwrap_or_default();
    let package = first_attribute(&container, "rootfile", "full-path")
        .ok_or_else(|| Unreadable::damaged("it names no package"))?;
    let content = parts.read(&package)?.ok_or_else(|| Unreadable::damaged("its package is missing"))?;
    let folder = package.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut items: HashMap<String, String> = HashMap::new();
    let mut chapters = Vec::new();
    let mut contents = None;
    let mut reader = xml(&content);
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) | Event::Empty(tag) => match tag.local_name().as_ref() {
                "item" => {
                    let is_page = attribute(&tag, "media-type").is_some_and(|kind| kind.contains("html"));
                    if let (Some(id), Some(href)) = (attribute(&tag, "id"), attribute(&tag, "href"))
                        && is_page
                    {
                        let part = joined(folder, &unescaped(&href));
                        let words = attribute(&tag, "properties").unwrap_or_default();
                        if words.split_whitespace().any(|word| word == "nav") {
                            contents = Some(part.clone());
                        }
                        items.insert(id, part);
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
    Ok((chapters, contents))
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
