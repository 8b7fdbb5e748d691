//! Best practices: a page for people, to which agents may add sections and in which they change nothing.

use std::io::Write;

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag};
use rustix::fs::{FlockOperation, OFlags};
use shelf_base::Moment;

use crate::{
    Workspace, WorkspaceError,
    memory::{open_locked, read_all},
    secrets,
};

/// The page of best practices.
pub const FILE: &str = "best_practices.md";
/// Bytes of a section at most, as with entries.
const SECTION_BYTES: usize = 10_240;
/// Bytes of a title or a category at most.
const TITLE_BYTES: usize = 200;

/// A practice to write down.
#[derive(Clone, Debug)]
pub struct Practice {
    /// One line.
    pub title: String,
    /// The text, in Markdown.
    pub text: String,
    /// What it is about, one line.
    pub category: Option<String>,
}

impl Workspace {
    /// Appends a section to the page of best practices; how many it has then.
    pub fn add_practice(&self, practice: &Practice, now: Moment) -> Result<u64, WorkspaceError> {
        let whole_seconds = now.micros().div_euclid(1_000_000) * 1_000_000;
        self.append_section(&practice.section(Moment::from_micros(whole_seconds))?)
    }

    fn append_section(&self, section: &str) -> Result<u64, WorkspaceError> {
        let folder = self.memory_folder(true)?;
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::APPEND;
        let mut open = open_locked(&folder, FILE, flags, FlockOperation::LockExclusive)?;
        let before = read_all(&mut open)?;
        let start = match &before[..] {
            [] => "# Best practices\n\n",
            [.., b'\n', b'\n'] => "",
            [.., b'\n'] => "\n",
            _ => "\n\n",
        };
        open.write_all(format!("{start}{section}").as_bytes())?;
        open.sync_data()?;
        if before.is_empty() {
            self.sync_memory_folders()?;
        }
        let page = String::from_utf8_lossy(&before);
        let sections = headings(&page).filter(|(level, _)| *level == HeadingLevel::H2).count();
        Ok(sections as u64 + 1)
    }
}

impl Practice {
    fn section(&self, at: Moment) -> Result<String, WorkspaceError> {
        let invalid = |text: String| Err(WorkspaceError::Invalid(text));
        let (title, text) = (self.title.trim(), self.text.trim());
        let category = self.category.as_deref().map(str::trim).filter(|category| !category.is_empty());
        for (field, line) in [("title", Some(title)), ("category", category)] {
            if line.is_some_and(|line| {
                line.is_empty() || line.len() > TITLE_BYTES || line.chars().any(char::is_control)
            }) {
                return invalid(format!("{field} must be one line of 1 to {TITLE_BYTES} bytes"));
            }
        }
        if text.is_empty() {
            return invalid("practice must not be empty".into());
        }
        if headings(text).any(|(level, _)| level <= HeadingLevel::H2) {
            return invalid(
                "practice must not hold headings of level 1 or 2, which would begin another section; use ###"
                    .into(),
            );
        }
        if !is_closed(text) {
            return invalid(
                "practice must close what it opens (a block of code between ``` or ~~~, a comment, a tag): the sections \
                 after it would be taken for a part of it"
                    .into(),
            );
        }
        for (field, value) in
            [("title", title), ("practice", text), ("category", category.unwrap_or_default())]
        {
            if secrets::is_secret(value) {
                return invalid(format!("{field} looks like a secret; leave it out"));
            }
        }
        let category = category.map_or(String::new(), |category| format!(" · {category}"));
        let section = format!("## {title}\n\n*{at}{category}*\n\n{text}\n");
        if section.len() > SECTION_BYTES {
            let what = "The section with its title";
            return Err(WorkspaceError::EntryTooLarge { what, bytes: section.len(), limit: SECTION_BYTES });
        }
        Ok(section)
    }
}

/// The headings of a text that stand in nothing else, and where each begins: what looks like one within a block of code is
/// none.
fn headings(text: &str) -> impl Iterator<Item = (HeadingLevel, usize)> {
    let mut depth = 0;
    Parser::new(text).into_offset_iter().filter_map(move |(event, place)| {
        let around = depth;
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
        match event {
            Event::Start(Tag::Heading { level, .. }) if around == 0 => Some((level, place.start)),
            _ => None,
        }
    })
}

/// Whether a section that comes after a text begins there as it should.
fn is_closed(text: &str) -> bool {
    let whole = format!("{text}\n\n## Next\n");
    headings(&whole).any(|(_, start)| start == text.len() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_practice_is_one_section() {
        let refused = |text: &str| {
            let practice = Practice { title: "a".into(), text: text.into(), category: None };
            matches!(practice.section(Moment::default()), Err(WorkspaceError::Invalid(_)))
        };
        for wrong in
            ["# One", "## Two", "Two\n---", "One\n===", "```\nx", "~~~ sh\n# x", "<!-- x", "<pre>\nx"]
        {
            assert!(refused(wrong), "{wrong}");
        }
        for fine in [
            "### Three",
            "```sh\n# code\n## code\n```",
            "a\n\n    # code",
            "> ## Two",
            "#tag",
            "a `# b`\n\n---",
            "- x",
        ] {
            assert!(!refused(fine), "{fine}");
        }
    }

    #[test]
    fn what_is_too_long_is_a_section() {
        let practice = Practice { title: "a".into(), text: "x".repeat(SECTION_BYTES), category: None };
        let message = practice.section(Moment::default()).unwrap_err().to_string();
        assert!(message.starts_with("The section with its title has 10"), "{message}");
    }
}
