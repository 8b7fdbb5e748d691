//! Commit and branch of a folder that is a git repository, read from its files.

use std::{fs, path::Path};

/// `(commit, branch)`, as far as they can be told.
pub(super) fn head(folder: &Path) -> (Option<String>, Option<String>) {
    let git = folder.join(".git");
    let Ok(head) = fs::read_to_string(git.join("HEAD")) else { return (None, None) };
    let head = head.trim();
    match head.strip_prefix("ref: ") {
        None => (commit(head), None),
        Some(reference) => {
            let loose = fs::read_to_string(git.join(reference)).ok().and_then(|text| commit(text.trim()));
            let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
            (loose.or_else(|| packed(&git, reference)), Some(branch.to_owned()))
        }
    }
}

fn packed(git: &Path, reference: &str) -> Option<String> {
    let text = fs::read_to_string(git.join("packed-refs")).ok()?;
    let line = text.lines().find(|line| line.ends_with(reference) && !line.starts_with(['#', '^']))?;
    let (hash, name) = line.split_once(' ')?;
    (name == reference).then(|| commit(hash)).flatten()
}

fn commit(text: &str) -> Option<String> {
    let whole = matches!(text.len(), 40 | 64) && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    whole.then(|| text.to_owned())
}
