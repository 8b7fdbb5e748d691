//! Ripgrep, the yardstick for patterns: it reads every file each time, and does that as fast as anyone.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::timing::{self, Invocation, Taken};
use crate::step;

/// Ripgrep ends with 1 when nothing matches, which is no failure here.
const SCRIPT: &str = "\"$@\" || test $? -eq 1";

/// What a pattern was found in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Lines with a match.
    pub lines: u64,
    /// Files with a match.
    pub files: u64,
}

/// What it says its version is; nothing when it is not installed.
pub fn version() -> Option<String> {
    step::first_line("rg", &["--version"])
}

/// Counts the matching lines of every file below `tree`; `folder` takes the small files this needs.
pub fn count(pattern: &str, tree: &Path, folder: &Path) -> Result<(Taken, Found)> {
    let mut words: Vec<OsString> =
        ["bash", "-c", SCRIPT, "count", "rg", "--count", "--no-config", "--no-ignore", "--regexp", pattern]
            .map(OsString::from)
            .to_vec();
    words.push(tree.into());
    let taken = timing::measure(&Invocation { words, variables: Vec::new() }, folder)?;
    Ok((taken, found(&fs::read_to_string(timing::said(folder))?)))
}

/// Reads lines of the form `path:count`.
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
