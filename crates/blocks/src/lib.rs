//! Blocks: the cellar where bytes are kept.
//!
//! A blob is cut by its content into blocks ([`cut`]), so that two versions of a file share all blocks but those
//! around an edit. Blocks are named by BLAKE3 and grouped into compressed *frames*; frames are collected into *packs*,
//! immutable objects that carry their own index and checksums ([`pack`]). A [`Manifest`] lists a blob's blocks in
//! order. `FORMAT.md` gives the bytes of all three.
//!
//! Nothing here knows documents or accounts. Three rules hold everywhere:
//! - a pack is durable before [`Batch::seal`] returns, so whoever refers to its blocks afterwards never dangles;
//! - every block is compared with its name each time it is read;
//! - a block is deleted only through a [`gc::Plan`], which can be shown first.
//!
//! Very small writes need not make a pack each: a [`Loose`] block is encoded here but kept by the caller (in the
//! catalog's own transaction, one sync for both) until enough of them are folded into a pack.

mod cache;
pub mod cut;
mod dictionary;
mod error;
mod frame;
pub mod gc;
mod loose;
mod manifest;
pub mod objects;
pub mod pack;
mod presence;
mod reader;
mod store;
mod writing;

pub use error::Error;
pub use loose::Loose;
pub use manifest::{BlockId, BlockRef, Manifest};
pub use presence::{Presence, Trust};
pub use reader::{Place, Reader};
pub use store::{Problem, Store, Usage};
pub use writing::{Batch, PackWriter, Sealed};
