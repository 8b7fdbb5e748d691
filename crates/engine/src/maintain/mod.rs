//! Upkeep by the owner of the data directory: check, garbage collection, recovery, explanations.

mod check;
mod doctor;
mod gc;
mod recovery;
mod reserve;

pub use check::{CheckReport, Finding};
pub use doctor::{Advice, Diagnosis};
pub use gc::{GcPlan, Retention};
pub use recovery::Recovered;
pub(crate) use recovery::{Copying, has_packs, must_have_catalog};
pub(crate) use reserve::Reserve;
