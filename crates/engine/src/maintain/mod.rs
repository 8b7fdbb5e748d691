//! Upkeep by the owner of the data directory: check, garbage collection, backups, moving, recovery, explanations.

mod backup;
mod check;
mod doctor;
mod gc;
mod migrate;
mod migrate_catalog;
mod recovery;
mod reserve;

pub use backup::BackupReport;
pub use check::{CheckReport, Finding};
pub use doctor::{Advice, Diagnosis};
pub use gc::{GcPlan, Retention};
pub use migrate::Migrated;
pub use migrate_catalog::{CatalogMoved, CatalogPlace};
pub use recovery::Recovered;
pub(crate) use recovery::{Copying, has_packs, must_have_catalog};
pub(crate) use reserve::Reserve;
