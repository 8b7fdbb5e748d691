//! What writers of several machines must know of the packs that they share: where they are, and which of them garbage
//! collection has marked.

use shelf_base::Moment;

/// What a writer must know before it relies on a pack. A catalog that one machine uses has none of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Where the packs are, once it has been noted.
    pub objects: Option<String>,
    /// Packs that garbage collection has marked.
    pub retired: Vec<RetiredPack>,
}

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
