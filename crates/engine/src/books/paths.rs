//! The paths of a book, kept in memory until the journal grows: globs look at all of them.

use std::sync::Arc;

use shelf_base::{CallContext, Recent, ids::CollectionId};
use shelf_catalog::{Collection, Filter, Scope};

use crate::{Error, Library, Result};

/// Bytes of paths that are kept.
const KEPT: usize = 32 << 20;
/// What a path takes beside its characters.
const EACH: usize = size_of::<Box<str>>() + 8;

/// The paths of a book and the sequence number at which they were read.
#[derive(Clone)]
struct Known {
    sequence: u64,
    paths: Arc<[Box<str>]>,
}

/// The paths of books that were looked at lately.
pub(crate) struct BookPaths(Recent<CollectionId, Known>);

impl Default for BookPaths {
    fn default() -> Self {
        Self(Recent::new(KEPT))
    }
}

impl BookPaths {
    /// Lets all go.
    pub(crate) fn clear(&self) {
        self.0.clear();
    }
}

impl Library {
    /// The paths of a book as they are now, in order.
    pub(super) fn book_paths(&self, book: &Collection, call: &CallContext) -> Result<Arc<[Box<str>]>> {
        // The number is read first, so that a write between the two readings makes the kept paths outdated.
        let sequence = self.catalog.sequence()?;
        if let Some(known) = self.book_paths.0.get(&book.id).filter(|known| known.sequence == sequence) {
            return Ok(known.paths);
        }
        let mut paths: Vec<Box<str>> = Vec::new();
        let scope = Scope::Collection(book.id);
        shelf_catalog::chunks::<_, Error>(
            |position| {
                call.check()?;
                Ok(self.catalog.paths_from(&scope, &Filter::default(), position)?)
            },
            |chunk: Vec<String>| {
                paths.extend(chunk.into_iter().map(String::into_boxed_str));
                Ok(())
            },
        )?;
        paths.sort_unstable();
        let weight = paths.iter().map(|path| path.len() + EACH).sum();
        let paths: Arc<[Box<str>]> = paths.into();
        self.book_paths.0.keep(book.id, Known { sequence, paths: paths.clone() }, weight);
        Ok(paths)
    }
}
