//! The search index: keyword, vector and pattern search over passages. It is derived state and can be rebuilt from the
//! journal at any time.

mod bits;
mod deepen;
mod derived;
mod error;
mod linked;
mod manifest;
mod pages;
mod remote_vectors;
mod search;
mod segment;
mod sharing;
mod store;
mod text;
mod trigram;
mod vector;
mod view;

pub use bits::Bits;
pub use deepen::{Depth, ShallowPassage, ShallowSegment};
pub use derived::{Derived, DerivedKey};
pub use error::Error;
pub use linked::{Known, Linked, Place};
pub use remote_vectors::{Cosines, Missing, RemoteVectors};
pub use search::{
    Correcting, Correction, Hit, Hits, Kind, Lexicon, Marker, Question, Resolved, Search, Unit, Wanted,
    folded,
};
pub use segment::{Builder, Built, Entry, EntryPassage, Grep, Part, Span};
pub use sharing::{SharedIndex, SharedSegment};
pub use store::{Change, Followed, Index, Lease, Staged};
pub use trigram::{Needs, Word, needed_words};
pub use vector::DIMENSIONS;
pub use view::{Candidate, Filter, Sizes, View};

/// Shorthand for this crate's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;
