//! The catalog in PostgreSQL, for libraries that many machines use.
//!
//! The queries are those of every database. What is here is what a network database needs: an address, connections with
//! limits, transactions of many writers at once, and locks that end with their holder. The tables are described in
//! `FORMAT.md`, and why they are as they are in ADR 0028.

mod address;
mod locks;
mod pool;
mod schema;
mod session;
mod statistics;
mod wire;
mod writer;

use std::{
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

pub use address::Address;
pub use locks::PostgresLocks;
pub(crate) use session::{Last, Session};
use shelf_base::{Digest, Moment};

use crate::{
    CopyNote, Error, Result, Transferred,
    sql::{Backend, Connection, Counts, Touches, Turn, copy, params, read, transfer},
    sqlite::SqliteCatalog,
};
use pool::{Lent, Pool};
use session::is_away;
use statistics::Statistics;
use writer::Writer;

/// How long a query goes on looking for a database that has gone away.
const AWAY: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(100);
/// How long a program that starts goes on looking for it.
const OPENING: Duration = Duration::from_secs(5);
/// A connection that breaks sooner than this was one that had been kept, and was cut long ago.
const AT_ONCE: Duration = Duration::from_secs(1);

/// One state for several queries. Those that go through whole tables take longer than others may.
const VIEW: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '10min'";

/// A catalog in a PostgreSQL database.
pub struct PostgresCatalog {
    shared: Arc<Shared>,
    counts: Counts,
}

/// What threads that outlive a call need.
struct Shared {
    pool: Pool,
    keys: Keys,
    writer: Writer,
}

/// The numbers of advisory locks: one a name, other ones in every library.
struct Keys {
    library: [u8; 16],
}

impl Keys {
    /// The lock of those who write to all of the library.
    fn library(&self) -> i64 {
        self.named("catalog")
    }

    fn named(&self, name: &str) -> i64 {
        let hash = Digest::of(&[b"shelf-lock\0", &self.library[..], name.as_bytes()].concat());
        let mut first = [0; 8];
        first.copy_from_slice(&hash.as_bytes()[..8]);
        i64::from_le_bytes(first)
    }
}

impl PostgresCatalog {
    /// Opens the catalog at an address, making its tables when they are not there.
    pub fn open(address: Address) -> Result<Self> {
        let pool = Pool::new(address)?;
        let until = Instant::now() + OPENING;
        let library = loop {
            match open_schema(&pool) {
                // A database that starts again takes a moment.
                Err(error) if is_away(&error) && Instant::now() < until => thread::sleep(PAUSE),
                outcome => break outcome.map_err(|error| located(error, pool.address()))?,
            }
        };
        let shared = Arc::new(Shared { pool, keys: Keys { library }, writer: Writer::default() });
        Ok(Self { shared, counts: Counts::default() })
    }

    /// The locks of all processes that use this catalog.
    pub fn locks(&self) -> PostgresLocks {
        PostgresLocks::new(self.shared.clone())
    }

    /// The id of the library, made with its tables.
    pub fn library_id(&self) -> [u8; 16] {
        self.shared.keys.library
    }

    /// Takes over a catalog from a file: all of it, or nothing. See [`Transferred`]; `switch` is called when it has arrived and
    /// before anybody may write to the file again, and `progress` meanwhile with the rows that were copied and all rows.
    pub fn take_over(
        &self,
        source: &SqliteCatalog,
        progress: &dyn Fn(u64, u64) -> bool,
        switch: &dyn Fn() -> Result<()>,
    ) -> Result<Transferred> {
        let transferred = transfer(source, self, progress, switch)?;
        if let Ok(sequence) = crate::Catalog::sequence(self) {
            Statistics::default().refresh(&self.shared.pool, sequence);
        }
        Ok(transferred)
    }

    /// Copies the catalog to a file in the same way; from then on the database takes no writes.
    pub fn hand_over(
        &self,
        target: &SqliteCatalog,
        progress: &dyn Fn(u64, u64) -> bool,
        switch: &dyn Fn() -> Result<()>,
    ) -> Result<Transferred> {
        transfer(self, target, progress, switch)
    }

    /// Whether the catalog was handed over to another place.
    pub fn is_moved(&self) -> Result<bool> {
        let count = "SELECT COUNT(*) FROM journal_head";
        self.read(|connection| connection.query_row(count, params![], |row| Ok(row.get::<u64>(0)? == 0)))
    }

    /// The address as it may be shown.
    pub fn address(&self) -> String {
        self.shared.pool.address().shown()
    }

    /// Runs a query in a transaction that begins with `begin`, or in none.
    fn query<T>(&self, begin: Option<&str>, mut query: impl FnMut(Connection<'_>) -> Result<T>) -> Result<T> {
        timed(if begin.is_some() { "view" } else { "read" }, || {
            let until = Instant::now() + AWAY;
            loop {
                let outcome = self.shared.pool.take().and_then(|lent| self.query_on(lent, begin, &mut query));
                match outcome {
                    Err(error) if is_away(&error) && Instant::now() < until => {
                        metrics::counter!("shelf_catalog_retries_total", "backend" => "postgres")
                            .increment(1);
                        thread::sleep(PAUSE);
                    }
                    outcome => return outcome,
                }
            }
        })
    }

    fn query_on<T>(
        &self,
        lent: Lent<'_>,
        begin: Option<&str>,
        query: &mut impl FnMut(Connection<'_>) -> Result<T>,
    ) -> Result<T> {
        let session = lent.session()?;
        if let Some(begin) = begin {
            session.is_slow();
            session.ahead(begin);
        }
        let found = query(Connection::Postgres(session));
        if found.as_ref().is_err_and(is_away) {
            lent.discard();
            // What else is idle was most likely cut with it.
            self.shared.pool.close_idle(0);
        } else if begin.is_some() {
            session.send("ROLLBACK");
        }
        found
    }
}

/// The id of the library, whose tables are made when they are not there.
fn open_schema(pool: &Pool) -> Result<[u8; 16]> {
    let lent = pool.take()?;
    let library = schema::open(lent.session()?, &pool.address().schema);
    if library.as_ref().is_err_and(is_away) {
        lent.discard();
    }
    library
}

/// An error with the address that it concerns: whoever opens the library may know it, and callers of a server need not.
fn located(error: Error, address: &Address) -> Error {
    let shown = address.shown();
    match error {
        Error::Away { reason, is_unsure } => Error::Away { reason: format!("{shown}: {reason}"), is_unsure },
        Error::Refused { what, hint } => Error::Refused { what: format!("{shown}: {what}"), hint },
        other => other,
    }
}

/// Begins the counter of repeated queries at zero, so that it can be watched before the first.
pub fn begin_counters() {
    metrics::counter!("shelf_catalog_retries_total", "backend" => "postgres").increment(0);
}

/// Measures an operation of the database, with the times that it was repeated.
fn timed<T>(operation: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let started = Instant::now();
    let outcome = work();
    let seconds = started.elapsed().as_secs_f64();
    let code = if outcome.as_ref().is_err_and(is_away) { "away" } else { "answered" };
    metrics::histogram!("shelf_catalog_seconds", "backend" => "postgres", "operation" => operation)
        .record(seconds);
    metrics::counter!("shelf_catalog_total", "backend" => "postgres", "operation" => operation, "outcome" => code)
        .increment(1);
    outcome
}

impl Backend for PostgresCatalog {
    fn read<T>(&self, query: impl FnMut(Connection<'_>) -> Result<T>) -> Result<T> {
        self.query(None, query)
    }

    fn view<T>(&self, query: impl Fn(Connection<'_>) -> Result<T>) -> Result<T> {
        self.query(Some(VIEW), query)
    }

    fn write<T: Send + 'static>(
        &self,
        touches: Touches,
        work: impl Fn(&Turn<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = &self.shared;
        let outcome = timed("write", || shared.writer.write(&shared.pool, &shared.keys, touches, work));
        if let Some(sequence) = shared.writer.statistics.take_due() {
            let shared = shared.clone();
            // Without another thread nobody looks, this time.
            let _ = thread::Builder::new()
                .name("catalog-look".into())
                .spawn(move || shared.writer.statistics.refresh(&shared.pool, sequence));
        }
        outcome
    }

    /// A database far away is always waited for.
    fn write_now<T: Send + 'static>(
        &self,
        touches: Touches,
        work: impl Fn(&Turn<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.write(touches, work)
    }

    fn post(&self, work: impl Fn(&Turn<'_>) -> Result<()> + Send + 'static) -> Result<()> {
        self.shared.writer.push(work);
        let shared = self.shared.clone();
        let flush = move || shared.writer.flush(&shared.pool, &shared.keys);
        thread::Builder::new().name("catalog-post".into()).spawn(flush).map_err(Error::Files)?;
        Ok(())
    }

    fn alone<T>(&self, work: impl Fn(&Turn<'_>) -> Result<T>) -> Result<T> {
        timed("alone", || writer::alone(&self.shared.pool, &self.shared.keys, work))
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn release_memory(&self) {
        self.shared.pool.release_memory();
    }

    fn place(&self) -> String {
        self.address()
    }

    fn is_shared(&self) -> bool {
        true
    }

    /// A database is restored while nobody has it open.
    fn incarnation(&self) -> u64 {
        0
    }

    fn clock(&self) -> Result<Option<Moment>> {
        let ask = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)";
        let micros = self.read(|connection| connection.query_row(ask, params![], |row| row.get(0)))?;
        Ok(Some(Moment::from_micros(micros)))
    }

    fn ping(&self) -> Result<()> {
        let mut ask = |connection: Connection<'_>| read::sequence(connection).map(drop);
        let started = Instant::now();
        match self.shared.pool.take().and_then(|lent| self.query_on(lent, None, &mut ask)) {
            Err(error) if is_away(&error) && started.elapsed() < AT_ONCE => {
                self.shared.pool.take().and_then(|lent| self.query_on(lent, None, &mut ask))
            }
            outcome => outcome,
        }
    }

    fn integrity(&self) -> Result<Vec<String>> {
        self.view(integrity)
    }

    fn write_copy(&self, target: &Path) -> Result<CopyNote> {
        let (sequence, seal) = self.read(read::journal_end)?;
        let note = CopyNote { schema: schema::KNOWN, sequence, seal };
        note.write_alone(target)?;
        Ok(note)
    }

    /// By way of a file, which is removed again.
    fn write_backup(&self, target: &Path) -> Result<CopyNote> {
        let folder = target.with_extension(format!("{}.part", std::process::id()));
        let outcome = SqliteCatalog::open(&folder).and_then(|file| {
            self.view(|from| file.alone(|to| copy(from, to.connection, &|_, _| true)))?;
            Backend::write_copy(&file, target)
        });
        let _ = std::fs::remove_dir_all(&folder);
        outcome
    }

    fn bytes(&self) -> Result<u64> {
        self.read(|connection| {
            connection.query_row(
                "SELECT CAST(COALESCE(SUM(pg_total_relation_size(c.oid)), 0) AS BIGINT) FROM pg_class c
                 WHERE c.relkind = 'r' AND c.relnamespace = CAST(current_schema() AS REGNAMESPACE)",
                params![],
                |row| row.get(0),
            )
        })
    }

    fn schema_version(&self) -> Result<u32> {
        self.read(|connection| match connection {
            Connection::Postgres(session) => schema::version(session),
            Connection::Sqlite(_) => Err(Error::Closed),
        })
    }
}

/// PostgreSQL keeps references itself; what it cannot know is whether the journal is whole.
fn integrity(connection: Connection<'_>) -> Result<Vec<String>> {
    let (count, last): (u64, u64) = connection.query_row(
        "SELECT COUNT(*), COALESCE(MAX(sequence), 0) FROM journal",
        params![],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (head, seal): (u64, Vec<u8>) =
        connection.query_row("SELECT sequence, seal FROM journal_head", params![], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let mut found = Vec::new();
    if count != last {
        found.push(format!("the journal has {count} records, but its last one is record {last}"));
    }
    let end = read::journal_end(connection)?;
    if head != end.0 || seal != end.1.as_bytes() {
        found.push(format!("the end of the journal is record {}, but its head says {head}", end.0));
    }
    Ok(found)
}
