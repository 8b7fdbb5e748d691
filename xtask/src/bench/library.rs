//! A library on disk and the program that serves it: what every benchmark of reading starts from.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::line_client::LineClient;
use super::peak::{self, Made};
use super::programs::{self, Program};

/// A library and how to serve it.
pub struct Library {
    /// The program.
    pub shelf: PathBuf,
    /// The folder of the library.
    pub data: PathBuf,
    log: PathBuf,
}

impl Library {
    /// Makes a new library in `work` with everything below `tree`, and says what that took.
    pub fn make(shelf: PathBuf, work: &Path, tree: &Path) -> Result<(Self, Made)> {
        let place = work.join("stores").join("library");
        let program = Program::Shelf(shelf.clone());
        program.prepare(&place)?;
        let made = peak::measure(&program.add(&place, tree, "library"), &work.join("figures"))?;
        Ok((Self { shelf, data: programs::store(&place), log: work.join("serve.log") }, made))
    }

    /// Starts a server and waits for its first reply.
    pub fn open(&self) -> Result<LineClient> {
        LineClient::start(&self.shelf, &self.data, &self.log)
    }

    /// A server that calls can be made to.
    pub fn serve(&self) -> Result<LineClient> {
        let mut client = self.open()?;
        client.initialized()?;
        Ok(client)
    }

    /// What the program says its version is.
    pub fn version(&self) -> String {
        Program::Shelf(self.shelf.clone()).version().unwrap_or_else(|| "unknown".to_owned())
    }
}
