//! The baseline for durable writes: a small synced SQLite commit on the same disk.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use rusqlite::Connection;

/// A separate database for synced commits.
pub struct SyncedCommits {
    connection: Connection,
}

impl SyncedCommits {
    /// Opens an empty database in `folder`, with a write-ahead log that is synced at each commit.
    pub fn open(folder: &Path) -> Result<Self> {
        let place = folder.join("synced.db");
        for ending in ["", "-wal", "-shm"] {
            let old = folder.join(format!("synced.db{ending}"));
            if old.exists() {
                fs::remove_file(old)?;
            }
        }
        let connection = Connection::open(&place).context("cannot open the database to compare with")?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.execute_batch("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")?;
        Ok(Self { connection })
    }

    /// Commits one row and returns the time in milliseconds.
    pub fn commit(&self, body: &str) -> Result<f64> {
        let start = Instant::now();
        self.connection.prepare_cached("INSERT INTO rows (body) VALUES (?1)")?.execute([body])?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }
}
