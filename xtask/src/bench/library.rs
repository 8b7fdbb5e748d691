//! A library on disk and the program that serves it: the starting point of every read benchmark.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::line_client::LineClient;
use super::peak::{self, Made};
use super::programs::{self, Program};

/// A library and the program that serves it.
pub struct Library {
    /// The program.
    pub shelf: PathBuf,
    /// The folder of the library.
    pub data: PathBuf,
    log: PathBuf,
}

impl Library {
    /// Creates a new library in `work` with everything below `tree`, and returns the cost.
    pub fn make(shelf: PathBuf, work: &Path, tree: &Path) -> Result<(Self, Made)> {
        Self::make_named("library", shelf, work, tree)
    }

    /// The same in a folder with this name, for more than one library.
    pub fn make_named(name: &str, shelf: PathBuf, work: &Path, tree: &Path) -> Result<(Self, Made)> {
        let place = work.join("stores").join(name);
        let program = Program::Shelf(shelf.clone());
        program.prepare(&place)?;
        let made = peak::measure(&program.add(&place, tree, "library"), &work.join("figures"))?;
        Ok((Self { shelf, data: programs::store(&place), log: place.join("serve.log") }, made))
    }

    /// Starts a server and waits for its first reply.
    pub fn open(&self) -> Result<LineClient> {
        LineClient::start(&self.shelf, &self.data, &self.log)
    }

    /// Starts a server that does without the deep model.
    pub fn serve_without_deep(&self) -> Result<LineClient> {
        let off = [("SHELF_EMBEDDING_DEEPEN", "off")];
        let mut client = LineClient::start_with(&self.shelf, &self.data, &self.log, &off)?;
        client.initialized()?;
        Ok(client)
    }

    /// Starts a server that is ready for calls.
    pub fn serve(&self) -> Result<LineClient> {
        let mut client = self.open()?;
        client.initialized()?;
        Ok(client)
    }

    /// The version that the program reports.
    pub fn version(&self) -> String {
        Program::Shelf(self.shelf.clone()).version().unwrap_or_else(|| "unknown".to_owned())
    }
}
