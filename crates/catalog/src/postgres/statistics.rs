//! Statistics for the planner of the database, when it has none that fit.
//!
//! PostgreSQL looks at its tables by itself, but only now and then, and a folder of ten thousand files is added in seconds.
//! Until it has looked, it takes a collection for one of a few documents, and reads all of them to find one. Whoever finds
//! that the journal has doubled since the tables were looked at has that done.

use std::sync::atomic::{AtomicU64, Ordering};

use super::pool::Pool;
use crate::{
    Result,
    sql::{Connection, params},
};

/// Libraries with fewer journal records are small enough to be read in any way.
const LEAST_RECORDS: u64 = 1_000;
/// Journal records when the tables were last looked at; -1 when that was never done.
const SEEN: &str = "SELECT reltuples::bigint FROM pg_class WHERE oid = 'journal'::regclass";
/// The tables that grow with the library.
const LOOK: &str = "ANALYZE documents, versions, blobs, tags, maps, account_blocks, loose_blocks, snapshots, \
    journal, buried, collections, accounts";

/// When this process asks next whether the tables were looked at.
#[derive(Default)]
pub(super) struct Statistics {
    next: AtomicU64,
    /// The end of the journal when it turned out that somebody should look; zero when somebody has.
    due: AtomicU64,
}

impl Statistics {
    /// Notes that the journal ends with `sequence` now.
    pub(super) fn note(&self, sequence: u64) {
        if sequence >= self.next.load(Ordering::Relaxed).max(LEAST_RECORDS) {
            self.next.store(sequence.saturating_mul(2), Ordering::Relaxed);
            self.due.store(sequence, Ordering::Relaxed);
        }
    }

    /// The end of the journal if it may have outgrown what is known of the tables; whoever gets it has them looked at.
    pub(super) fn take_due(&self) -> Option<u64> {
        // Looked at first without writing: nearly always there is nothing.
        (self.due.load(Ordering::Relaxed) > 0)
            .then(|| self.due.swap(0, Ordering::Relaxed))
            .filter(|due| *due > 0)
    }

    /// Has the tables looked at if the journal has outgrown what is known of them, which takes a second or two in a large
    /// library. A failure costs speed, nothing else.
    pub(super) fn refresh(&self, pool: &Pool, sequence: u64) {
        let _ = look(pool, sequence);
    }
}

fn look(pool: &Pool, sequence: u64) -> Result<()> {
    let lent = pool.take()?;
    let session = lent.session()?;
    let seen: i64 = Connection::Postgres(session).query_row(SEEN, params![], |row| row.get(0))?;
    if u64::try_from(seen).unwrap_or(0).saturating_mul(2) > sequence {
        return Ok(());
    }
    session.batch(LOOK)
}
