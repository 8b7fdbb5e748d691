//! Excel workbooks: each sheet is a section with its rows as a table.

use quick_xml::events::Event;

use crate::archive::{Parts, attribute, reference, relationships, xml};
use crate::{Markup, Text, Unreadable};

/// Bytes of text that are kept; a shared string may be used any number of times.
const MOST_TEXT: usize = 32 << 20;
/// Sheets that are read at most.
const MOST_SHEETS: usize = 1_000;

/// The text of a workbook.
pub(crate) fn text<'a>(bytes: &[u8]) -> Result<Text<'a>, Unreadable> {
    let mut parts = Parts::open(bytes)?;
    let sheets = sheets(&mut parts)?;
    if sheets.is_empty() {
        return Err(Unreadable::damaged("it has no sheets"));
    }
    let strings = parts.read("xl/sharedStrings.xml")?.map(|part| shared_strings(&part)).unwrap_or_default();
    let mut text = String::new();
    for (name, part) in sheets {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("# {}\n\n", name.split_whitespace().collect::<Vec<_>>().join(" ")));
        if let Some(part) = parts.read(&part)? {
            rows(&part, &strings, &mut text);
        }
        if text.len() >= MOST_TEXT {
            break;
        }
    }
    Ok(Text::made(text, Markup::Markdown))
}

fn sheets(parts: &mut Parts<'_>) -> Result<Vec<(String, String)>, Unreadable> {
    let targets = relationships(parts, "xl/", "workbook.xml");
    let workbook = parts.read("xl/workbook.xml")?.unwrap_or_default();
    let mut sheets = Vec::new();
    let mut reader = xml(&workbook);
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == "sheet" => {
                let part = attribute(&tag, "id").and_then(|id| targets.get(&id).cloned());
                sheets.extend(attribute(&tag, "name").zip(part));
            }
            Event::Eof => break,
            _ => {}
        }
        if sheets.len() == MOST_SHEETS {
            break;
        }
    }
    Ok(sheets)
}

fn shared_strings(part: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let (mut current, mut in_text, mut in_reading) = (String::new(), false, false);
    let mut reader = xml(part);
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) => match tag.local_name().as_ref() {
                "si" => current.clear(),
                "t" => in_text = !in_reading,
                // How a word is pronounced is no part of the text.
                "rPh" => in_reading = true,
                _ => {}
            },
            Event::Empty(tag) if tag.local_name().as_ref() == "si" => strings.push(String::new()),
            Event::Text(text) if in_text => current.push_str(&text.xml10_content()),
            Event::GeneralRef(name) if in_text => current.push_str(&reference(&name)),
            Event::End(tag) => match tag.local_name().as_ref() {
                "si" => strings.push(std::mem::take(&mut current)),
                "t" => in_text = false,
                "rPh" => in_reading = false,
                _ => {}
            },
            Event::Eof => break,
            _ => {}
        }
    }
    strings
}

fn rows(part: &str, strings: &[String], out: &mut String) {
    let (mut cells, mut value) = (Vec::<String>::new(), String::new());
    let (mut kind, mut in_value) = (String::new(), false);
    let mut reader = xml(part);
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) => match tag.local_name().as_ref() {
                "row" => cells.clear(),
                "c" => {
                    kind = attribute(&tag, "t").unwrap_or_default();
                    value.clear();
                }
                "v" | "t" => in_value = true,
                _ => {}
            },
            Event::Empty(tag) if tag.local_name().as_ref() == "c" => cells.push(String::new()),
            Event::Text(text) if in_value => value.push_str(&text.xml10_content()),
            Event::GeneralRef(name) if in_value => value.push_str(&reference(&name)),
            Event::End(tag) => match tag.local_name().as_ref() {
                "v" | "t" => in_value = false,
                "c" => {
                    let shared = value.trim().parse::<usize>().ok().filter(|_| kind == "s");
                    let cell = shared.map_or(value.as_str(), |at| strings.get(at).map_or("", String::as_str));
                    cells.push(cell.split_whitespace().collect::<Vec<_>>().join(" "));
                }
                "row" => {
                    while cells.last().is_some_and(String::is_empty) {
                        cells.pop();
                    }
                    if !cells.is_empty() {
                        out.push_str(&format!("| {} |\n", cells.join(" | ")));
                    }
                }
                _ => {}
            },
            Event::Eof => break,
            _ => {}
        }
        let kept: usize = if cells.len() > 1_000 { cells.iter().map(String::len).sum() } else { 0 };
        if out.len() + kept >= MOST_TEXT {
            break;
        }
    }
}
