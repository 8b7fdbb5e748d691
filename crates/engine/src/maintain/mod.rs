//! Upkeep by the owner of the data directory: check, collect, explain.

mod check;
mod collect;
mod doctor;

pub use check::{CheckReport, Finding};
pub use collect::{CollectPlan, Retention};
pub use doctor::{Advice, Diagnosis};
