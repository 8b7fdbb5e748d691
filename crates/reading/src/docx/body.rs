//! Converts the body of a Word document to Markdown.
//!
//! This is a single pass over the XML events. Paragraphs occur inside paragraphs (text boxes) and tables inside cells,
//! so both are kept on stacks; an inner one is written where it ends.

use quick_xml::events::{BytesRef, BytesStart, Event};

use super::styles::{Role, Styles, outline_role, value};
use crate::{archive::xml, passages::escaped};

/// The kind of block written last. Consecutive items and rows are not separated by a blank line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Paragraph,
    Item,
    Row,
}

#[derive(Default)]
struct Paragraph {
    text: String,
    role: Role,
    /// The list depth, when the paragraph itself is numbered.
    depth: usize,
    in_properties: bool,
}

#[derive(Default)]
struct Table {
    cells: Vec<String>,
    cell: String,
}

/// Maximum depth of nested tables. The text of an inner table is copied into each outer one, so the depth must be
/// bounded.
const MOST_TABLES: usize = 32;

pub(super) struct Body {
    styles: Styles,
    text: String,
    last: Option<Block>,
    paragraphs: Vec<Paragraph>,
    tables: Vec<Table>,
    /// Whether character events are text of the document.
    in_text: bool,
    /// Depth inside `Fallback` elements, which repeat content for older programs.
    skipped: usize,
}

impl Body {
    pub(super) fn new(styles: Styles) -> Self {
        Self {
            styles,
            text: String::new(),
            last: None,
            paragraphs: Vec::new(),
            tables: Vec::new(),
            in_text: false,
            skipped: 0,
        }
    }

    /// Reads a part to its end or to the first error.
    pub(super) fn read(&mut self, part: &str) -> Result<(), String> {
        let mut reader = xml(part);
        let result = loop {
            match reader.read_event() {
                Ok(Event::Eof) => break Ok(()),
                Ok(event) => self.event(&event),
                Err(error) => break Err(error.to_string()),
            }
        };
        while !self.paragraphs.is_empty() {
            self.end_paragraph();
        }
        while !self.tables.is_empty() {
            self.end_table();
        }
        (self.in_text, self.skipped) = (false, 0);
        result
    }

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(tag) if tag.local_name().as_ref() == "Fallback" => self.skipped += 1,
            Event::End(tag) if tag.local_name().as_ref() == "Fallback" => {
                self.skipped = self.skipped.saturating_sub(1);
            }
            _ if self.skipped > 0 => {}
            Event::Start(tag) => self.start(tag),
            Event::Empty(tag) => {
                self.start(tag);
                self.end(tag.local_name().as_ref());
            }
            Event::End(tag) => self.end(tag.local_name().as_ref()),
            Event::Text(text) if self.in_text => self.push(&text.xml10_content()),
            Event::CData(text) if self.in_text => self.push(&text.xml10_content()),
            Event::GeneralRef(reference) if self.in_text => self.push_reference(reference),
            _ => {}
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>) {
        match tag.local_name().as_ref() {
            "p" => self.paragraphs.push(Paragraph::default()),
            "t" => self.in_text = true,
            "tbl" if self.tables.len() < MOST_TABLES => self.tables.push(Table::default()),
            name => self.start_in_paragraph(name, tag),
        }
    }

    fn start_in_paragraph(&mut self, name: &str, tag: &BytesStart<'_>) {
        let Some(paragraph) = self.paragraphs.last_mut() else { return };
        match (name, paragraph.in_properties) {
            ("pPr", _) => paragraph.in_properties = true,
            ("pStyle", true) => {
                paragraph.role = value(tag, "val").map_or(Role::Text, |style| self.styles.role(&style));
            }
            ("outlineLvl", true) if paragraph.role == Role::Text => paragraph.role = outline_role(tag),
            // A numbered heading remains a heading.
            ("numPr", true) if paragraph.role == Role::Text => paragraph.role = Role::Item,
            ("ilvl", true) => {
                paragraph.depth = value(tag, "val").and_then(|depth| depth.parse().ok()).unwrap_or(0).min(8);
            }
            ("tab" | "ptab", false) => paragraph.text.push('\t'),
            ("br" | "cr", false) => paragraph.text.push('\n'),
            ("noBreakHyphen", false) => paragraph.text.push('-'),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "p" => self.end_paragraph(),
            "t" => self.in_text = false,
            "pPr" => {
                if let Some(paragraph) = self.paragraphs.last_mut() {
                    paragraph.in_properties = false;
                }
            }
            "tc" => self.end_cell(),
            "tr" => self.end_row(),
            "tbl" => self.end_table(),
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        if let Some(paragraph) = self.paragraphs.last_mut() {
            paragraph.text.push_str(text);
        }
    }

    fn push_reference(&mut self, reference: &BytesRef<'_>) {
        match reference.resolve_char_ref() {
            Ok(Some(character)) => self.push(character.encode_utf8(&mut [0; 4])),
            _ => self.push(quick_xml::escape::resolve_xml_entity(reference).unwrap_or_default()),
        }
    }

    fn end_paragraph(&mut self) {
        let Some(paragraph) = self.paragraphs.pop() else { return };
        let text = paragraph.text.trim();
        if text.is_empty() {
            return;
        }
        if let Some(table) = self.tables.last_mut() {
            return push_words(&mut table.cell, text);
        }
        match paragraph.role {
            Role::Text => self.write(Block::Paragraph, &escaped(text)),
            Role::Heading(level) => {
                let mut line = "#".repeat(level.min(6));
                push_words(&mut line, text);
                self.write(Block::Paragraph, &line);
            }
            Role::Item => {
                self.write(Block::Item, &format!("{}- {}", "  ".repeat(paragraph.depth), escaped(text)))
            }
        }
    }

    fn end_cell(&mut self) {
        if let Some(table) = self.tables.last_mut() {
            let cell = std::mem::take(&mut table.cell);
            table.cells.push(cell);
        }
    }

    fn end_row(&mut self) {
        let Some(table) = self.tables.last_mut() else { return };
        let cells = std::mem::take(&mut table.cells);
        if cells.iter().all(String::is_empty) {
            return;
        }
        match self.tables.len() {
            1 => self.write(Block::Row, &format!("| {} |", cells.join(" | "))),
            // A table in a cell is part of that cell's text.
            depth => push_words(&mut self.tables[depth - 2].cell, &cells.join(" ")),
        }
    }

    fn end_table(&mut self) {
        self.end_cell();
        self.end_row();
        self.tables.pop();
        if self.tables.is_empty() {
            // A table that follows immediately is a separate one.
            self.last = self.last.map(|_| Block::Paragraph);
        }
    }

    fn write(&mut self, block: Block, text: &str) {
        match self.last {
            None => {}
            Some(last) if last == block && block != Block::Paragraph => self.text.push('\n'),
            Some(_) => self.text.push_str("\n\n"),
        }
        self.text.push_str(text);
        self.last = Some(block);
    }

    pub(super) fn finish(mut self) -> String {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text
    }
}

/// Appends words to a line, without their line breaks.
fn push_words(line: &mut String, text: &str) {
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
}
