//! Ripgrep, the baseline for pattern searches: it reads every file each time, as fast as possible.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::timing::{self, Invocation, Taken};
use crate::step;

/// Ripgrep exits with 1 when nothing matches, which is not a failure here.
const SCRIPT: &str = "\"$@\" || test $? -eq 1";

/// The number of matches of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Lines with a match.
    pub lines: u64,
    /// Files with a match.
    pub files: u64,
}

/// The version that ripgrep reports; `None` if it is not installed.
pub fn version() -> Option<String> {
    step::first_line("rg", &["--version"])
}

/// Counts the matching lines of every file below `tree`; `folder` is used for small temporary files.
pub fn count(pattern: &str, tree: &Path, folder: &Path) -> Result<(Taken, Found)> {
    let mut words: Vec<OsString> =
        ["bash", "-c", SCRIPT, "count", "rg", "--count", "--no-config", "--no-ignore", "--regexp", pattern]
            .map(OsString::from)
            .to_vec();
    words.push(tree.into());
    let taken = timing::measure(&Invocation { words, variables: Vec::new() }, folder)?;
    Ok((taken, found(&fs::read_to_string(timing::said(folder))?)))
}

/// Parses lines of the form `path:count`.
fn found(said: &str) -> Found {
    let counts = said.lines().filter_map(|line| line.rsplit_once(':')?.1.parse::<u64>().ok());
    counts.fold(Found { lines: 0, files: 0 }, |found, count| Found {
        lines: found.lines + count,
        files: found.files + 1,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_are_added_up() {
        let found = super::found("docs/a.md:3\nsrc/b:c.rs:4\n");
        assert_eq!((found.lines, found.files), (7, 2));
        assert_eq!(super::found("").files, 0);
    }
}
