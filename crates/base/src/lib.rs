//! Types shared by all crates.
//!
//! Every other crate depends on this one, so it contains only what all of them must agree on: how content is named
//! ([`Digest`]), how objects are identified ([`ids`]), how times are written ([`Moment`]), how a place in a resource is
//! cited ([`Address`]), how failures are classified ([`Kind`], [`ErrorInfo`]), what accompanies a call
//! ([`CallContext`]), how often something may happen ([`RateWindow`]), and what is remembered ([`Recent`]). It has no I/O and no async code. A change here rebuilds every other crate, so it stays small and
//! stable.

pub mod address;
pub mod book_names;
pub mod bounds;
mod call_context;
mod coordination;
mod digest;
mod error_info;
pub mod hex;
pub mod ids;
mod moment;
mod near;
mod rate;
mod recent;
mod secret;

pub use address::{Address, NotAnAddress, Place};
pub use call_context::{CallContext, Progress, Slot, Stopped};
pub use coordination::{Coordination, Fence, Held, Lease, LockMode, MemoryLocks};
pub use digest::{Digest, DigestWriter, NotADigest};
pub use error_info::{ErrorInfo, Kind, Retry};
pub use moment::{Clock, ManualClock, Moment, NotAMoment, SystemClock};
pub use near::{clipped, distance, nearest};
pub use rate::RateWindow;
pub use recent::Recent;
pub use secret::Secret;
