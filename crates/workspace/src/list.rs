//! Listing what may be read. Only names that `read_repo_file` would read are walked through; links are left out.

use std::path::Path;

use cap_std::fs::Dir;
use shelf_base::{CallContext, Moment};

use crate::{Workspace, WorkspaceError, rules::is_denied};

/// Names looked at in one call; a workspace with more is told to be narrowed.
const MOST_NAMES: usize = 200_000;
/// Folders below each other.
const MOST_DEPTH: usize = 64;

/// A file that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoEntry {
    /// Its path from the root of the workspace.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// When it was last changed.
    pub modified_at: Moment,
}

/// The files that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoList {
    /// Sorted by path.
    pub files: Vec<RepoEntry>,
    /// Whether every name was looked at.
    pub complete: bool,
}

impl Workspace {
    /// The files that may be read and whose path fits.
    pub fn list(&self, fits: &dyn Fn(&str) -> bool, call: &CallContext) -> Result<RepoList, WorkspaceError> {
        let mut walk = Walk { workspace: self, fits, call, files: Vec::new(), left: MOST_NAMES };
        walk.folder("", 0)?;
        let Walk { mut files, left, .. } = walk;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(RepoList { files, complete: left > 0 })
    }
}

struct Walk<'a> {
    workspace: &'a Workspace,
    fits: &'a dyn Fn(&str) -> bool,
    call: &'a CallContext,
    files: Vec<RepoEntry>,
    left: usize,
}

impl Walk<'_> {
    fn folder(&mut self, path: &str, depth: usize) -> Result<(), WorkspaceError> {
        self.call.check()?;
        // A folder that vanished, or became a link, has nothing to list.
        let Some(folder) = self.open(path) else { return Ok(()) };
        for entry in folder.entries().into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            if is_denied(&name) {
                continue;
            }
            if self.left == 0 {
                return Ok(());
            }
            self.left -= 1;
            let below = if path.is_empty() { name } else { format!("{path}/{name}") };
            let Ok(facts) = folder.symlink_metadata(entry.file_name()) else { continue };
            if facts.is_dir() {
                if depth < MOST_DEPTH && self.workspace.rules.may_hold(&below) {
                    self.folder(&below, depth + 1)?;
                }
            } else if facts.is_file() && self.wants(&below) {
                let modified = facts
                    .modified()
                    .map_or_else(|_| Moment::default(), |time| Moment::from_system(time.into_std()));
                self.files.push(RepoEntry { path: below, size_bytes: facts.len(), modified_at: modified });
            }
        }
        Ok(())
    }

    fn open(&self, path: &str) -> Option<Dir> {
        if path.is_empty() {
            return self.workspace.folder.try_clone().ok();
        }
        let open = self.workspace.open_without_links(Path::new(path)).ok()?;
        Some(Dir::from_std_file(open.into()))
    }

    fn wants(&self, path: &str) -> bool {
        self.workspace.rules.allow(path) && (self.fits)(path)
    }
}
