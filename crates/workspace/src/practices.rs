//! Best practices: a page for people, to which agents may add sections and in which they change nothing.

use std::io::Write;

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
        let sections = before.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"## ")).count();
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
        if text.lines().any(|line| line.starts_with("# ") || line.starts_with("## ")) {
            return invalid(
                "practice must not hold headings of level 1 or 2, which would begin another section; use ###"
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
            return Err(WorkspaceError::EntryTooLarge { bytes: section.len(), limit: SECTION_BYTES });
        }
        Ok(section)
    }
}
