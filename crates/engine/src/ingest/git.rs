//! Commit and branch of a folder that is a git repository, read from its files.

use std::{fs, path::Path};

/// `(commit, branch)`, as far as they can be told. Only regular files inside a real `.git` folder are read: a link or
/// a crafted reference must not lead this elsewhere.
pub(super) fn head(folder: &Path) -> (Option<String>, Option<String>) {
    let git = folder.join(".git");
    if !git.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return (None, None);
    }
    let Some(head) = small_file(&git.join("HEAD")) else { return (None, None) };
    let head = head.trim();
    match head.strip_prefix("ref: ") {
        None => (commit(head), None),
        Some(reference) if !is_plain(reference) => (None, None),
        Some(reference) => {
            let loose = small_file(&git.join(reference)).and_then(|text| commit(text.trim()));
            let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
            (loose.or_else(|| packed(&git, reference)), Some(branch.to_owned()))
        }
    }
}

fn is_plain(reference: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    reference.starts_with("refs/") && reference.split('/').all(plain) && !reference.contains('\0')
}

fn small_file(path: &Path) -> Option<String> {
    let found = path.symlink_metadata().ok()?;
    if !found.is_file() || found.len() > 4 << 20 {
        return None;
    }
    fs::read_to_string(path).ok()
}

fn packed(git: &Path, reference: &str) -> Option<String> {
    let text = small_file(&git.join("packed-refs"))?;
    let line = text.lines().find(|line| line.ends_with(reference) && !line.starts_with(['#', '^']))?;
    let (hash, name) = line.split_once(' ')?;
    (name == reference).then(|| commit(hash)).flatten()
}

fn commit(text: &str) -> Option<String> {
    let whole = matches!(text.len(), 40 | 64) && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    whole.then(|| text.to_owned())
}
