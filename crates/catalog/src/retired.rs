//! Packs that garbage collection has marked on a store that several machines use.

use shelf_base::Moment;

/// A pack that garbage collection has marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetiredPack {
    /// Its name.
    pub name: String,
    /// The last journal record when it was marked.
    pub sequence: u64,
    /// When.
    pub at: Moment,
    /// How far it is.
    pub state: PackState,
}

/// How far a pack is that garbage collection has marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackState {
    /// Nobody relies on it any more; whoever writes the same content again takes the mark off.
    Retired,
    /// It is being deleted.
    Going,
    /// It has been deleted.
    Gone,
}
