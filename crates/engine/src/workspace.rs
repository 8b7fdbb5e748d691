//! The workspace as a library offers it: who may use it, and where its side chains are kept.

use std::path::{Path, PathBuf};

use shelf_base::{CallContext, ErrorInfo};
use shelf_catalog::Account;
use shelf_workspace::{
    Appended, MemoryFile, MemoryMatches, MemoryQuery, MemoryReport, Practice, RepoFile, RepoList, RepoWindow,
    Workspace, WorkspaceError,
};

use crate::{Caller, Error, FileAccess, Library, Result, pattern::Patterns};

/// Where the workspace is, and what beyond the contract's folders may be read.
#[derive(Clone, Debug, Default)]
pub struct WorkspaceSettings {
    /// Its folder.
    pub root: PathBuf,
    /// Further globs that may be read.
    pub also: Vec<String>,
    /// Names of accounts that may use it over HTTP, beside administrators.
    pub accounts: Vec<String>,
}

pub(crate) fn open(settings: &WorkspaceSettings) -> Result<Workspace> {
    Workspace::open(&settings.root, &settings.also).map_err(|error| match error {
        WorkspaceError::Io(source) => Error::File {
            action: "cannot open the workspace",
            path: settings.root.display().to_string(),
            source,
        },
        other => Error::invalid("workspace", other.to_string()),
    })
}

type Answer<T> = Result<T, WorkspaceError>;

impl Library {
    /// The workspace, when there is one and the caller may use it: the user of this machine, administrators, and the
    /// accounts that are named for it.
    fn workspace(&self, caller: &Caller) -> Answer<&Workspace> {
        let workspace = self.workspace.as_ref().ok_or(WorkspaceError::Absent)?;
        if caller.file_access == FileAccess::OperatingSystem || caller.pass.may_administer() {
            return Ok(workspace);
        }
        let account = self
            .catalog
            .account(caller.pass.account())
            .map_err(|error| WorkspaceError::Unknown { kind: error.kind(), message: error.to_string() })?;
        let named = self.options.workspace.as_ref().map_or(&[][..], |settings| &settings.accounts);
        let may_use = |account: &Account| account.is_superuser || named.contains(&account.username);
        if account.as_ref().is_some_and(may_use) { Ok(workspace) } else { Err(WorkspaceError::NotOpen) }
    }

    /// Whether the caller can use the workspace, or what to set.
    pub fn can_use_workspace(&self, caller: &Caller) -> Answer<()> {
        self.workspace(caller).map(|_| ())
    }

    /// The folder of the workspace, when there is one.
    pub fn workspace_root(&self) -> Option<&Path> {
        self.workspace.as_ref().map(Workspace::root)
    }

    /// The files of the workspace that may be read and fit the pattern.
    pub fn list_repo_files(
        &self,
        caller: &Caller,
        pattern: Option<&str>,
        call: &CallContext,
    ) -> Answer<RepoList> {
        must_read(caller, pattern.unwrap_or("*"))?;
        let patterns = pattern.map(|pattern| Patterns::new("pattern", &[pattern.to_owned()])).transpose();
        let patterns = patterns.map_err(|error| WorkspaceError::Invalid(error.to_string()))?;
        let fits = |path: &str| patterns.as_ref().is_none_or(|patterns| patterns.fits(path));
        self.workspace(caller)?.list(&fits, call)
    }

    /// Reads a file of the workspace.
    pub fn read_repo_file(&self, caller: &Caller, path: &str, window: RepoWindow) -> Answer<RepoFile> {
        must_read(caller, path)?;
        self.workspace(caller)?.read(path, window)
    }

    /// Appends an entry, the JSON text of an object, to a memory file of the workspace.
    pub fn write_memory_entry(
        &self,
        caller: &Caller,
        file: MemoryFile,
        entry: &str,
        key: Option<&str>,
    ) -> Answer<Appended> {
        must_write(caller, file.name())?;
        self.workspace(caller)?.remember(file, entry, key, (&self.chains(), self.now()))
    }

    /// Looks for entries of a memory file.
    pub fn query_memory(
        &self,
        caller: &Caller,
        file: MemoryFile,
        query: &MemoryQuery,
    ) -> Answer<MemoryMatches> {
        must_read(caller, file.name())?;
        self.workspace(caller)?.query(file, query)
    }

    /// Compares every memory file of the workspace with its side chain. Changes nothing.
    pub fn check_memory(&self, caller: &Caller) -> Answer<Vec<MemoryReport>> {
        must_read(caller, shelf_workspace::MEMORY_FOLDER)?;
        self.workspace(caller)?.check_memory(&self.chains())
    }

    /// Appends a section to the page of best practices; how many it has then.
    pub fn add_best_practice(&self, caller: &Caller, practice: &Practice) -> Answer<u64> {
        must_write(caller, shelf_workspace::PRACTICES_FILE)?;
        self.workspace(caller)?.add_practice(practice, self.now())
    }

    fn chains(&self) -> PathBuf {
        self.folder().join("memory")
    }
}

fn must_read(caller: &Caller, path: &str) -> Answer<()> {
    caller.must_read().map_err(|_| WorkspaceError::PathNotAllowed { path: path.to_owned(), also: Vec::new() })
}

fn must_write(caller: &Caller, file: &str) -> Answer<()> {
    let why = "write access is required";
    caller.must_write().map_err(|_| WorkspaceError::WriteNotAllowed { file: file.to_owned(), why })
}
