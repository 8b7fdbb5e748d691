//! Content-addressed block storage.
//!
//! A blob is split into content-defined blocks ([`cut`]), so that two versions of a file share all blocks except those
//! around an edit. Blocks are identified by their BLAKE3 hash and grouped into compressed *frames*; frames are
//! collected into *packs*, immutable objects that carry their own index and checksums ([`pack`]). A [`Manifest`] lists
//! a blob's blocks in order. `FORMAT.md` specifies the byte layout of all three.
//!
//! This crate does not deal with documents or accounts. Three rules hold everywhere:
//! - a pack is durable before [`Batch::seal`] returns, so a reference made after that never dangles;
//! - every block is verified against its hash each time it is read;
//! - a block is deleted only through a [`gc::Plan`], which can be shown to the user first.
//!
//! Very small writes do not each create a pack: a [`Loose`] block is encoded here but stored by the caller (in the
//! catalog's transaction, so that one sync covers both) until there are enough of them to fold into a pack.

pub mod cut;
mod dictionary;
mod error;
mod frame;
pub mod gc;
mod loose;
mod manifest;
pub mod objects;
pub mod pack;
pub mod patch;
mod presence;
mod reader;
mod store;
mod writing;

pub use error::Error;
pub use loose::Loose;
pub use manifest::{BlockId, BlockRef, Manifest, Piece};
pub use presence::{Presence, Trust};
pub use reader::{Place, Reader};
pub use store::{Problem, Store, Usage};
pub use writing::{Batch, Chosen, PackWriter, Sealed};
