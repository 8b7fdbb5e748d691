//! The catalog on SQLite: write-ahead log, full sync, one writer thread a process with group commit.
//!
//! Writers of all processes line up at a lock file before they begin a transaction, so that nobody polls and no
//! "database is locked" ever reaches a caller. Readers never wait.

mod columns;
mod joined_log;
mod recovery;
mod schema;
mod writer;

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
pub use recovery::CopyNote;
use rusqlite::{
    Connection, FileControl, OpenFlags,
    config::DbConfig,
    trace::{TraceEvent, TraceEventCodes},
};
use writer::Writer;
pub(crate) use writer::expect_many;

use crate::{
    Error, Result,
    error::Engine,
    sql::{self, Backend, Counts, Touches, Turn},
};

/// Idle read connections that are kept.
const KEPT_READERS: usize = 8;
/// How long SQLite itself may wait for a lock that the lock file did not already order.
const PATIENCE: Duration = Duration::from_secs(60);

/// A catalog in one SQLite file.
pub struct SqliteCatalog {
    path: PathBuf,
    /// Before the readers: the last connection to close tidies the write-ahead log away.
    writer: Writer,
    readers: Mutex<Vec<Connection>>,
    /// How often another file was found in the place of the one that was open.
    incarnation: AtomicU64,
    counts: Counts,
    /// Counts the statements of queries.
    counter: Option<Arc<AtomicU64>>,
}

impl SqliteCatalog {
    /// Opens or makes the catalog in `folder`.
    pub fn open(folder: &Path) -> Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(Error::Files)?;
        let path = folder.join("catalog.db");
        keep_to_the_owner(&path)?;
        let lock = folder.join("catalog.lock");
        let reader = match open_current(&path)? {
            Some(reader) => reader,
            None => {
                let _turn = writer::take_turn(&lock)?;
                let mut connection = connect(&path)?;
                patiently(|| schema::migrate(&mut connection))?;
                connect(&path)?
            }
        };
        let writer = Writer::start(path.clone(), lock);
        Ok(Self {
            path,
            readers: Mutex::new(vec![reader]),
            writer,
            incarnation: AtomicU64::new(0),
            counts: Counts::default(),
            counter: None,
        })
    }

    /// The same catalog, counting the statements that its queries run: what a test holds a use to.
    pub fn counting(mut self) -> (Self, Arc<AtomicU64>) {
        let counter = Arc::new(AtomicU64::new(0));
        self.counter = Some(counter.clone());
        self.readers.get_mut().clear();
        (self, counter)
    }

    /// A connection for queries.
    fn reader(&self) -> Result<Connection> {
        let mut connection = connect(&self.path)?;
        if let Some(counter) = self.counter.clone() {
            let count = move |_: TraceEvent<'_>| {
                counter.fetch_add(1, Ordering::Relaxed);
            };
            connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(count))?;
        }
        Ok(connection)
    }
}

/// A connection to a database that needs no migration, without waiting for anyone; `None` when it needs some.
fn open_current(path: &Path) -> Result<Option<Connection>> {
    if !path.exists() {
        return Ok(None);
    }
    let connection = connect(path)?;
    match patiently(|| schema::version(&connection))? {
        found if found == schema::KNOWN => Ok(Some(connection)),
        found if found > schema::KNOWN => Err(Error::TooNew { found, known: schema::KNOWN }),
        _ => Ok(None),
    }
}

/// Tries again while another process is opening, recovering or folding the log: moments in which SQLite says "busy"
/// without waiting itself.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match attempt() {
            Err(error) if is_momentary(&error) && started.elapsed() < PATIENCE => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            outcome => return outcome,
        }
    }
}

fn is_momentary(error: &Error) -> bool {
    use rusqlite::ErrorCode as Code;
    let Error::Engine(error) = error else { return false };
    let Engine::Sqlite(error) = &error.0 else { return false };
    let code = error.sqlite_error_code();
    matches!(code, Some(Code::DatabaseBusy | Code::DatabaseLocked | Code::FileLockingProtocolFailed))
}

/// Nobody but the owner may read hashes of passwords and keys; SQLite gives its other files the same mode.
fn keep_to_the_owner(path: &Path) -> Result<()> {
    let made = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            for suffix in ["", "-wal", "-shm"] {
                let file = PathBuf::from(format!("{}{suffix}", path.display()));
                if let Ok(facts) = fs::metadata(&file)
                    && facts.permissions().mode() & 0o077 != 0
                {
                    match fs::set_permissions(&file, fs::Permissions::from_mode(0o600)) {
                        // Somebody else's library, which this user may only read.
                        Err(error) if is_refusal(&error) => {}
                        outcome => outcome.map_err(Error::Files)?,
                    }
                }
            }
            Ok(())
        }
        Err(error) => Err(Error::Files(error)),
    }
}

fn connect(path: &Path) -> Result<Connection> {
    match patiently(|| try_connect(path)) {
        // Without its log and the right to make one, SQLite reads a database only when told that nobody writes to it.
        Err(Error::ReadOnly | Error::Engine(_)) if is_read_only(path) && !has_log(path) => open_still(path),
        outcome => outcome,
    }
}

/// Whether this user may not write the file: because of its mode, or because it lies on a read-only medium.
fn is_read_only(path: &Path) -> bool {
    use rustix::io::Errno;
    let refused = rustix::fs::access(path, rustix::fs::Access::WRITE_OK);
    matches!(refused, Err(Errno::ACCESS | Errno::ROFS | Errno::PERM))
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn has_log(path: &Path) -> bool {
    fs::metadata(format!("{}-wal", path.display())).is_ok_and(|log| log.len() > 0)
}

/// A connection to a database that nobody can write to, such as one on a read-only medium.
fn open_still(path: &Path) -> Result<Connection> {
    let escaped = path.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Whether another file has taken the place of the one that is open: a recovery has rebuilt the catalog.
fn has_moved(connection: &Connection) -> bool {
    let mut moved = 0;
    connection.file_control(None::<&str>, FileControl::HasMoved(&mut moved)).is_ok() && moved != 0
}

fn try_connect(path: &Path) -> Result<Connection> {
    // The file is made when the library is; one that has vanished since must not come back empty.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match joined_log::name() {
        Some(name) => Connection::open_with_flags_and_vfs(path, flags, name)?,
        None => Connection::open_with_flags(path, flags)?,
    };
    connection.busy_timeout(PATIENCE)?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        connection.pragma_update(None, "journal_mode", "wal")?;
    }
    // The log and its index stay when the last connection closes: with a full disk they could not be made again, and
    // nothing could be read.
    connection.file_control(None::<&str>, FileControl::PersistWal(&mut 1))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", "on")?;
    // Twice what the log holds when it is folded: a log that keeps its length is synced faster than one that grows.
    connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
    // Without this every new value bound to a cached statement makes SQLite plan the statement anew.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

impl Backend for SqliteCatalog {
    fn read<T>(&self, mut query: impl FnMut(sql::Connection<'_>) -> Result<T>) -> Result<T> {
        let kept = self.readers.lock().pop();
        let kept = if kept.as_ref().is_some_and(has_moved) {
            self.readers.lock().clear();
            self.incarnation.fetch_add(1, Ordering::Relaxed);
            self.counts.clear();
            None
        } else {
            kept
        };
        let connection = kept.map_or_else(|| self.reader(), Ok)?;
        let outcome = patiently(|| query(sql::Connection::Sqlite(&connection)));
        let mut readers = self.readers.lock();
        if readers.len() < KEPT_READERS {
            readers.push(connection);
        }
        outcome
    }

    fn view<T>(&self, query: impl Fn(sql::Connection<'_>) -> Result<T>) -> Result<T> {
        self.read(|connection| {
            let sql::Connection::Sqlite(raw) = connection else { return Err(Error::Closed) };
            let transaction = raw.unchecked_transaction()?;
            let outcome = query(connection)?;
            transaction.finish()?;
            Ok(outcome)
        })
    }

    fn write<T: Send + 'static>(
        &self,
        _touches: Touches,
        work: impl Fn(&Turn<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.writer.write(work)
    }

    fn write_now<T: Send + 'static>(
        &self,
        _: Touches,
        work: impl Fn(&Turn<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.writer.write_now(work)
    }

    fn post(&self, work: impl Fn(&Turn<'_>) -> Result<()> + Send + 'static) -> Result<()> {
        self.writer.post(work)
    }

    fn alone<T>(&self, work: impl Fn(&Turn<'_>) -> Result<T>) -> Result<T> {
        self.writer.alone(work)
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn release_memory(&self) {
        self.writer.release_memory();
        // What the other connections remember goes with them.
        self.readers.lock().truncate(1);
    }

    fn place(&self) -> String {
        "SQLite in the data directory".into()
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::Relaxed)
    }

    fn integrity(&self) -> Result<Vec<String>> {
        self.read(integrity)
    }

    fn write_copy(&self, target: &Path) -> Result<CopyNote> {
        Self::write_copy(self, target)
    }

    fn write_backup(&self, target: &Path) -> Result<CopyNote> {
        Self::write_copy(self, target)
    }

    fn bytes(&self) -> Result<u64> {
        let file = |suffix: &str| {
            fs::metadata(format!("{}{suffix}", self.path.display())).map_or(0, |found| found.len())
        };
        Ok(file("") + file("-wal"))
    }

    fn schema_version(&self) -> Result<u32> {
        self.read(|connection| match connection {
            sql::Connection::Sqlite(raw) => schema::version(raw),
            sql::Connection::Postgres(_) => Err(Error::Closed),
        })
    }
}

/// What the database's own check finds.
fn integrity(connection: sql::Connection<'_>) -> Result<Vec<String>> {
    let mut query = connection.prepare_cached("PRAGMA quick_check(100)")?;
    let mut found: Vec<String> = sql::rows::collect(query.query(&[])?, |row| row.get(0))?;
    found.retain(|line| line != "ok");
    let mut query = connection.prepare_cached("PRAGMA foreign_key_check")?;
    let broken: Vec<String> = sql::rows::collect(query.query(&[])?, |row| {
        Ok(format!("a row of {} refers to a missing row of {}", row.get::<String>(0)?, row.get::<String>(2)?))
    })?;
    found.extend(broken);
    Ok(found)
}
