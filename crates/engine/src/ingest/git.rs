//! Commit and branch of a folder that is a git repository, read from its files.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// `(commit, branch)`, as far as they can be told. Only regular files inside a real folder of git are read: a link or a
/// crafted reference must not lead this elsewhere. Where that folder is, the `.git` of a worktree or submodule says in a line,
/// which is read only when `may_follow` it: it leads out of the added folder.
pub(super) fn head(folder: &Path, may_follow: bool) -> (Option<String>, Option<String>) {
    let Some(git) = git_folder(folder, may_follow) else { return (None, None) };
    let Some(head) = small_file(&git.join("HEAD")) else { return (None, None) };
    let head = head.trim();
    match head.strip_prefix("ref: ") {
        None => (commit(head), None),
        Some(reference) if !is_plain(reference) => (None, None),
        Some(reference) => {
            // The worktrees of a repository have their references in common.
            let common = linked_folder(&git, &git.join("commondir"), "").filter(|_| may_follow);
            let common = common.unwrap_or_else(|| git.clone());
            let loose = |folder: &Path| commit(small_file(&folder.join(reference))?.trim());
            let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
            let found = loose(&git).or_else(|| loose(&common)).or_else(|| packed(&common, reference));
            (found, Some(branch.to_owned()))
        }
    }
}

fn git_folder(folder: &Path, may_follow: bool) -> Option<PathBuf> {
    let git = folder.join(".git");
    if is_folder(&git) {
        return Some(git);
    }
    linked_folder(folder, &git, "gitdir: ").filter(|_| may_follow)
}

/// The folder that a file names in one line, from `folder` on.
fn linked_folder(folder: &Path, file: &Path, before: &str) -> Option<PathBuf> {
    let text = small_file(file)?;
    let name = text.strip_prefix(before)?.trim_end_matches(['\n', '\r']);
    let is_line = !name.is_empty() && !name.contains(['\n', '\0']);
    Some(folder.join(name)).filter(|found| is_line && is_folder(found))
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
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

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn worktrees_and_submodules_are_repositories() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        write(at, "main/.git/HEAD", "ref: refs/heads/main\n");
        write(at, "main/.git/refs/heads/main", HASH);
        write(at, "main/.git/packed-refs", &format!("{HASH} refs/heads/side\n"));
        write(at, "main/.git/worktrees/side/HEAD", "ref: refs/heads/side\n");
        write(at, "main/.git/worktrees/side/commondir", "../..\n");
        let git = at.join("main/.git/worktrees/side");
        write(at, "side/.git", &format!("gitdir: {}\n", git.display()));
        write(at, "main/.git/modules/part/HEAD", &format!("{HASH}\n"));
        write(at, "main/part/.git", "gitdir: ../.git/modules/part\n");
        write(at, "lost/.git", "gitdir: ../nowhere\n");
        let hash = Some(HASH.to_owned());
        assert_eq!(head(&at.join("main"), false), (hash.clone(), Some("main".into())));
        assert_eq!(head(&at.join("side"), true), (hash.clone(), Some("side".into())));
        assert_eq!(head(&at.join("main/part"), true), (hash, None));
        for (folder, may_follow) in [("lost", true), ("side", false), ("main/part", false)] {
            assert_eq!(head(&at.join(folder), may_follow), (None, None), "{folder}");
        }
    }
}
