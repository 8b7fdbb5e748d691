//! Reads the files that the rules apply to: those written by hand, not generated ones.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Folders without handwritten files, relative to the root.
const SKIPPED: [&str; 4] = [".git", "target", "bench/work", "fuzz/target"];

/// Folders of other tools that may occur at any level.
const SKIPPED_ANYWHERE: [&str; 2] = ["node_modules", "__pycache__"];

/// A text file and its path.
pub struct SourceFile {
    /// The path relative to the root of the checkout, with `/` as the separator.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl SourceFile {
    /// Whether the file has this extension.
    pub fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// Whether any parent folder has this name.
    pub fn is_below(&self, folder: &str) -> bool {
        Path::new(&self.path)
            .parent()
            .is_some_and(|parent| parent.iter().any(|component| component == folder))
    }
}

/// All `.rs`, `.md` and `.toml` files of the checkout, sorted by path.
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
