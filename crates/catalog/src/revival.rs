//! What a document that comes back after a deletion is to be.

use std::collections::BTreeSet;

use shelf_base::Fence;

use crate::Metadata;

/// What to make of a deleted document when it comes back; `None` is as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Revival {
    /// Tags, in place of those that it had.
    pub tags: Option<BTreeSet<String>>,
    /// Metadata, in place of what it had.
    pub metadata: Option<Metadata>,
    /// The lock under which this happens; it fails when somebody has held the lock alone since.
    pub fence: Option<Fence>,
}
