//! The roles of the styles in a Word document.
//!
//! A paragraph refers to a style by an identifier in the author's language. The style's name is always English
//! (`heading 1`); a custom style inherits its role from its parent.

use std::collections::HashMap;

use quick_xml::events::{BytesStart, Event};

pub(super) use crate::archive::attribute as value;
use crate::archive::xml;

/// The role of a paragraph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    #[default]
    Text,
    /// A heading, with its level from 1.
    Heading(usize),
    /// A list item.
    Item,
}

#[derive(Default)]
pub(super) struct Styles {
    styles: HashMap<String, Style>,
}

#[derive(Default)]
struct Style {
    role: Role,
    parent: Option<String>,
}

/// Maximum number of styles to follow from child to parent, since they may form a cycle.
const GENERATIONS: usize = 10;

impl Styles {
    pub(super) fn read(part: &str) -> Self {
        let mut styles = HashMap::new();
        let mut current: Option<(String, Style)> = None;
        let mut reader = xml(part);
        while let Ok(event) = reader.read_event() {
            match event {
                Event::Start(tag) if tag.local_name().as_ref() == "style" => {
                    current = value(&tag, "styleId").map(|id| (id, Style::default()));
                }
                Event::Start(tag) | Event::Empty(tag) => {
                    if let Some((_, style)) = &mut current {
                        style.learn(&tag);
                    }
                }
                Event::End(tag) if tag.local_name().as_ref() == "style" => styles.extend(current.take()),
                Event::Eof => break,
                _ => {}
            }
        }
        Self { styles }
    }

    /// The role of a paragraph with this style.
    pub(super) fn role(&self, id: &str) -> Role {
        let mut next = Some(id);
        for _ in 0..GENERATIONS {
            let Some(style) = next.and_then(|id| self.styles.get(id)) else { break };
            if style.role != Role::Text {
                return style.role;
            }
            next = style.parent.as_deref();
        }
        // For an undefined style, only the identifier is left to go by.
        if self.styles.contains_key(id) { Role::Text } else { role_of_name(id) }
    }
}

impl Style {
    fn learn(&mut self, tag: &BytesStart<'_>) {
        match tag.local_name().as_ref() {
            "name" => self.role = value(tag, "val").map_or(self.role, |name| role_of_name(&name)),
            "basedOn" => self.parent = value(tag, "val"),
            "outlineLvl" if self.role == Role::Text => self.role = outline_role(tag),
            "numPr" if self.role == Role::Text => self.role = Role::Item,
            _ => {}
        }
    }
}

fn role_of_name(name: &str) -> Role {
    let name: String = name.to_lowercase().split_whitespace().collect();
    if name == "title" {
        return Role::Heading(1);
    }
    if name.starts_with("listbullet") || name.starts_with("listnumber") {
        return Role::Item;
    }
    match name.strip_prefix("heading").and_then(|level| level.parse().ok()) {
        Some(level @ 1..=9) => Role::Heading(level),
        _ => Role::Text,
    }
}

/// The role for an outline level. Levels are counted from 0, and 9 is body text.
pub(super) fn outline_role(tag: &BytesStart<'_>) -> Role {
    match value(tag, "val").and_then(|level| level.parse::<usize>().ok()) {
        Some(level @ 0..=8) => Role::Heading(level + 1),
        _ => Role::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parents_and_identifiers() {
        let styles = Styles::read(
            "<w:styles><w:style w:styleId='berschrift2'><w:name w:val='heading 2'/></w:style>\
             <w:style w:styleId='Mine'><w:name w:val='My own'/><w:basedOn w:val='berschrift2'/></w:style>\
             <w:style w:styleId='A'><w:basedOn w:val='B'/></w:style><w:style w:styleId='B'><w:basedOn w:val='A'/></w:style>\
             <w:style w:styleId='Out'><w:name w:val='x'/><w:pPr><w:outlineLvl w:val='2'/></w:pPr></w:style></w:styles>",
        );
        assert_eq!(styles.role("berschrift2"), Role::Heading(2));
        assert_eq!(styles.role("Mine"), Role::Heading(2));
        assert_eq!(styles.role("A"), Role::Text);
        assert_eq!(styles.role("Out"), Role::Heading(3));
        assert_eq!(styles.role("Heading4"), Role::Heading(4));
        assert_eq!(styles.role("Title"), Role::Heading(1));
        assert_eq!(styles.role("ListBullet2"), Role::Item);
        assert_eq!(styles.role("Heading99"), Role::Text);
    }
}
