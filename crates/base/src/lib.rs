//! the shared vocabulary.
//!
//! Every other crate stands on this one, so it holds only what all of them must agree about: how content is named
//! ([`Digest`]), how things are numbered ([`ids`]), how time is written ([`Moment`]), how a place in
//! a resource is cited ([`Address`]), how a failure is classed ([`Kind`], [`ErrorInfo`]), and what travels with a call
//! ([`Call`]). No files, no network, no async: when this crate changes everything is rebuilt, so it stays small and
//! quiet.

pub mod address;
pub mod bounds;
mod call_context;
mod digest;
mod error_info;
pub mod hex;
pub mod ids;
mod moment;
mod near;
mod secret;

pub use address::{Address, NotAnAddress, Place};
pub use call_context::{CallContext, Progress, Stopped};
pub use digest::{Digest, DigestWriter, NotADigest};
pub use error_info::{ErrorInfo, Kind, Retry};
pub use moment::{Clock, ManualClock, Moment, NotAMoment, SystemClock};
pub use near::{distance, nearest};
pub use secret::Secret;
