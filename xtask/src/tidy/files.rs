//! Reads the files the rules apply to: what people write, not what tools leave behind.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Folders that hold nothing written by hand, as paths from the top.
const SKIPPED: [&str; 3] = [".git", "target", "bench/work"];

/// Folders of other tools that may turn up anywhere.
const SKIPPED_ANYWHERE: [&str; 2] = ["node_modules", "__pycache__"];

/// One text file with its path from the top, parts joined by `/`.
pub struct SourceFile {
    /// The path from the top of the checkout.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl SourceFile {
    /// Whether the path ends in `.` and this.
    pub fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// Whether the file lies somewhere below a folder of this name.
    pub fn is_below(&self, folder: &str) -> bool {
        Path::new(&self.path)
            .parent()
            .is_some_and(|parent| parent.iter().any(|component| component == folder))
    }
}

/// Every `.rs`, `.md` and `.toml` file of the checkout, in the order of their paths.
pub fn read_all(root: &Path) -> Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    collect(root, "", &mut files)?;
    files.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(files)
}

fn collect(root: &Path, folder: &str, files: &mut Vec<SourceFile>) -> Result<()> {
    let place = root.join(folder);
    let entries = fs::read_dir(&place).with_context(|| format!("cannot list {}", place.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.file_type()?.is_dir() {
            if !SKIPPED.contains(&path.as_str()) && !SKIPPED_ANYWHERE.contains(&name.as_str()) {
                collect(root, &path, files)?;
            }
        } else if is_watched(&name) {
            let text =
                fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path} as text"))?;
            files.push(SourceFile { path, text });
        }
    }
    Ok(())
}

fn is_watched(name: &str) -> bool {
    [".rs", ".md", ".toml"].iter().any(|ending| name.ends_with(ending))
}
