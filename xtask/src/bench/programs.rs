//! The programs that are compared, and the command with which each stores a path.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::corpus;
use super::timing::Invocation;
use crate::step;

/// A program that stores files with deduplication.
pub enum Program {
    /// Shelf, at this path.
    Shelf(PathBuf),
    /// Restic with its defaults.
    Restic,
    /// Borg without encryption and with zstd, which the two others also use.
    Borg,
}

impl Program {
    /// The name used in the results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Shelf(_) => "shelf",
            Self::Restic => "restic",
            Self::Borg => "borg",
        }
    }

    /// The version that the program reports; `None` if it is not installed.
    pub fn version(&self) -> Option<String> {
        match self {
            Self::Shelf(path) => step::first_line(&path.to_string_lossy(), &["--version"]),
            Self::Restic => step::first_line("restic", &["version"]),
            Self::Borg => step::first_line("borg", &["--version"]),
        }
    }

    /// Creates an empty store in `place`, replacing whatever was there.
    pub fn prepare(&self, place: &Path) -> Result<()> {
        corpus::remove(place)?;
        fs::create_dir_all(place)?;
        let words: Vec<OsString> = match self {
            Self::Shelf(_) => return Ok(()),
            Self::Restic => vec!["restic".into(), "init".into()],
            Self::Borg => vec!["borg".into(), "init".into(), "--encryption=none".into(), store(place).into()],
        };
        let output = Command::new(&words[0])
            .args(&words[1..])
            .envs(self.variables(place))
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {}", self.name()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{} could not create an empty store; its output was:\n{said}", self.name());
        }
        Ok(())
    }

    /// The command that stores `path`; `label` must be unique for each call on the same store.
    pub fn add(&self, place: &Path, path: &Path, label: &str) -> Invocation {
        let mut invocation = self.store_only(place, path, label);
        invocation.words.retain(|word| word != "--no-index");
        invocation
    }

    /// Like [`add`](Self::add), but without indexing, as in the other programs.
    pub fn store_only(&self, place: &Path, path: &Path, label: &str) -> Invocation {
        let store = store(place);
        let words = match self {
            Self::Shelf(program) => vec![
                program.into(),
                "--data-dir".into(),
                store.into(),
                "add".into(),
                path.into(),
                "--json".into(),
                "--quiet".into(),
                "--no-index".into(),
            ],
            Self::Restic => vec!["restic".into(), "backup".into(), "--quiet".into(), path.into()],
            Self::Borg => {
                let mut archive = store.into_os_string();
                archive.push(format!("::{label}"));
                vec!["borg".into(), "create".into(), "--compression=zstd,3".into(), archive, path.into()]
            }
        };
        Invocation { words, variables: self.variables(place) }
    }

    /// Caches are placed next to the store: they do not count as stored, and do not end up in the home folder.
    fn variables(&self, place: &Path) -> Vec<(&'static str, OsString)> {
        match self {
            Self::Shelf(_) => Vec::new(),
            Self::Restic => vec![
                ("RESTIC_REPOSITORY", store(place).into()),
                ("RESTIC_PASSWORD", "benchmark".into()),
                ("RESTIC_CACHE_DIR", place.join("cache").into()),
            ],
            Self::Borg => vec![
                ("BORG_BASE_DIR", place.join("base").into()),
                ("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes".into()),
            ],
        }
    }
}

/// The folder whose bytes count as stored.
pub fn store(place: &Path) -> PathBuf {
    place.join("store")
}
