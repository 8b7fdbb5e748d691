//! `cargo xtask tidy`: the project rules that no compiler or linter checks.

mod edges;
mod files;
mod links;
mod source;
mod text;

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::places;
use files::SourceFile;

/// A violation of a rule, and its location.
pub struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    /// A finding in a file, at a line number starting from one.
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

/// Checks every file of the checkout and prints the findings.
pub fn run(arguments: Arguments) -> Result<()> {
    arguments.finish()?;
    let root = places::root();
    let files = files::read_all(&root)?;
    let mut findings = edges::check(&files);
    findings.extend(missing_formats(&files));
    for file in &files {
        findings.extend(text::check(file));
        findings.extend(source::check(file));
        findings.extend(links::check(file, &root));
    }
    findings.sort_by(|left, right| (&left.path, left.line).cmp(&(&right.path, right.line)));
    for finding in &findings {
        println!("{}:{}: {}", finding.path, finding.line, finding.what);
    }
    if !findings.is_empty() {
        bail!("tidy: {} files, {} findings; fix the lines above", files.len(), findings.len());
    }
    println!("tidy: {} files, no findings", files.len());
    Ok(())
}

/// Crates that own an on-disk format must document it.
fn missing_formats(files: &[SourceFile]) -> Vec<Finding> {
    const OWNERS: [&str; 5] =
        ["crates/blocks", "crates/catalog", "crates/embed", "crates/engine", "crates/index"];
    let lacks = |owner: &&&str| {
        let page = format!("{owner}/FORMAT.md");
        !files.iter().any(|file| file.path == page)
    };
    let finding = |owner: &&str| {
        Finding::new(&format!("{owner}/FORMAT.md"), 1, "is missing: this crate owns an on-disk format")
    };
    OWNERS.iter().filter(lacks).map(finding).collect()
}
