//! What follows the journal: data that is derived from the catalog and the packs, and catches up with them.
//!
//! A write only tells followers that something was written. Each follower knows the last journal record that it covers,
//! catches up when somebody needs it to, can be thrown away and built again, and writes its files under a lease, so that
//! processes share the work. The search index is the first; a new kind of derived data implements this trait and is
//! named in [`Library::followers`].

use shelf_base::CallContext;

use crate::{Idle, Library, Result};

/// Derived data that follows the journal.
pub(crate) trait Follower {
    /// What `check` calls it.
    fn name(&self) -> &'static str;
    /// The last journal record that its files cover: no process needs to be told again of what was before.
    fn position(&self) -> u64;
    /// Takes in what was written up to a journal record.
    fn catch_up(&self, target: u64, call: &CallContext) -> Result<()>;
    /// Throws everything away, so that catching up starts from the beginning.
    fn discard(&self, call: &CallContext) -> Result<()>;
    /// Compares its files with their hashes; what is wrong, if anything is.
    fn damage(&self) -> Option<String>;
    /// Documents were written; it may catch up in the background.
    fn wake(&self, documents: u64);
    /// Gives back memory that can be had again.
    fn release_memory(&self, idle: Idle);
    /// Ends its work in the background.
    fn stop(&self);
}

impl Library {
    /// Everything that follows the journal.
    pub(crate) fn followers(&self) -> impl Iterator<Item = &dyn Follower> {
        [&self.indexing as &dyn Follower].into_iter()
    }

    /// The last journal record that every follower covers.
    pub(crate) fn followed(&self) -> u64 {
        self.followers().map(Follower::position).min().unwrap_or(0)
    }
}
