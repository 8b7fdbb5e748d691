//! The catalog on SQLite: write-ahead log, full sync, one writer thread a process with group commit.
//!
//! Writers of all processes line up at a lock file before they begin a transaction, so that nobody polls and no
//! "database is locked" ever reaches a caller. Readers never wait.

mod accounts;
mod audit;
mod books;
mod browse;
mod documents;
mod maps;
mod put;
mod read;
mod recovery;
mod rows;
mod schema;
mod shelves;
mod state;
mod stored;
mod tokens;
mod upkeep;
mod who;
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
use shelf_base::{
    Digest, Moment,
    ids::{CollectionId, DocumentId},
};

use crate::{
    Actor, BlobRow, Catalog, Changes, Chosen, Chunk, Collection, CollectionSummary, Document, DocumentChange,
    Error, Filter, Listed, LooseBlock, Page, Position, Purge, Put, PutResult, PutState, Record, Result,
    Scope, Snapshot, SnapshotFilter, Source, TagChange, TypeFigures, Update, Version,
};
use writer::Writer;

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
    counts: documents::Counts,
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
            counts: documents::Counts::default(),
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

    /// Runs a query on a read connection.
    fn read<T>(&self, mut query: impl FnMut(&Connection) -> Result<T>) -> Result<T> {
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
        let outcome = patiently(|| query(&connection));
        let mut readers = self.readers.lock();
        if readers.len() < KEPT_READERS {
            readers.push(connection);
        }
        outcome
    }

    /// Runs several queries that must see one state.
    fn view<T>(&self, query: impl Fn(&Connection) -> Result<T>) -> Result<T> {
        self.read(|connection| {
            let transaction = connection.unchecked_transaction()?;
            let outcome = query(&transaction)?;
            transaction.finish()?;
            Ok(outcome)
        })
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
    let code = error.0.sqlite_error_code();
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
    let connection = Connection::open_with_flags(path, flags)?;
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

impl Catalog for SqliteCatalog {
    fn release_memory(&self) {
        self.writer.release_memory();
        // What the other connections remember goes with them.
        self.readers.lock().truncate(1);
    }

    fn collections(&self, scope: &Scope) -> Result<Vec<CollectionSummary>> {
        self.view(|connection| read::collections(connection, scope))
    }

    fn collection(&self, scope: &Scope, name: &str) -> Result<Option<Collection>> {
        self.read(|connection| read::collection(connection, scope, name))
    }

    fn collection_ids(&self, scope: &Scope, name: Option<&str>) -> Result<Vec<CollectionId>> {
        self.read(|connection| read::collection_ids(connection, scope, name))
    }

    fn ensure_collection(&self, actor: &Actor, name: &str, now: Moment) -> Result<Collection> {
        if let Some(found) = self.collection(&Scope::Account(actor.account), name)? {
            return Ok(found);
        }
        let (actor, name) = (actor.clone(), name.to_owned());
        self.writer.write(move |turn| put::make_collection(turn, &actor, &name, now))
    }

    fn known_collection(&self, scope: &Scope, id: CollectionId) -> Result<Option<Collection>> {
        self.read(|connection| read::known_collection(connection, scope, id))
    }

    fn collection_by_id(&self, scope: &Scope, id: CollectionId) -> Result<Option<CollectionSummary>> {
        self.read(|connection| read::collection_by_id(connection, scope, id))
    }

    fn active_tokens(&self, id: CollectionId, now: Moment) -> Result<u64> {
        self.read(|connection| shelves::active_tokens(connection, id, now))
    }

    fn create_collection(&self, actor: &Actor, name: &str, now: Moment) -> Result<Collection> {
        let (actor, name) = (actor.clone(), name.to_owned());
        self.writer.write(move |turn| shelves::create(turn, &actor, &name, now))
    }

    fn rename_collection(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: CollectionId,
        name: &str,
        now: Moment,
    ) -> Result<Option<Collection>> {
        let (actor, scope, name) = (actor.clone(), scope.clone(), name.to_owned());
        self.writer.write(move |turn| shelves::rename(turn, &actor, &scope, id, &name, now))
    }

    fn delete_collection(&self, actor: &Actor, scope: &Scope, id: CollectionId, now: Moment) -> Result<bool> {
        let (actor, scope) = (actor.clone(), scope.clone());
        self.writer.write(move |turn| shelves::delete(turn, &actor, &scope, id, now))
    }

    fn set_model(&self, actor: &Actor, id: CollectionId, model: Option<&str>, now: Moment) -> Result<()> {
        let (actor, model) = (actor.clone(), model.map(str::to_owned));
        self.writer.write(move |turn| shelves::set_model(turn, &actor, id, model.as_deref(), now))
    }

    fn models(&self, scope: &Scope) -> Result<Vec<(CollectionId, Option<String>)>> {
        self.read(|connection| read::models(connection, scope))
    }

    fn put(&self, put: Put) -> Result<(Vec<PutResult>, Option<Snapshot>)> {
        self.writer.write(move |turn| put::put(turn, &put))
    }

    fn store(&self, put: Put) -> Result<(DocumentId, PutState)> {
        self.writer.write(move |turn| stored::store(turn, &put))
    }

    fn change(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        change: DocumentChange,
        now: Moment,
    ) -> Result<Option<Document>> {
        let (actor, scope) = (actor.clone(), scope.clone());
        self.writer.write(move |turn| stored::change(turn, &actor, &scope, id, &change, now))
    }

    fn update(
        &self,
        actor: &Actor,
        scope: &Scope,
        id: DocumentId,
        update: &Update,
        now: Moment,
    ) -> Result<Option<Vec<TagChange>>> {
        let (actor, scope, update) = (actor.clone(), scope.clone(), update.clone());
        self.writer.write(move |turn| put::update(turn, &actor, &scope, id, &update, now))
    }

    fn delete(
        &self,
        actor: &Actor,
        scope: &Scope,
        ids: &[DocumentId],
        now: Moment,
    ) -> Result<Vec<DocumentId>> {
        let (actor, scope, ids) = (actor.clone(), scope.clone(), ids.to_vec());
        self.writer.write(move |turn| put::delete(turn, &actor, &scope, &ids, now))
    }

    fn document(&self, scope: &Scope, id: DocumentId) -> Result<Option<Document>> {
        self.read(|connection| documents::by_id(connection, scope, id))
    }

    fn named(
        &self,
        scope: &Scope,
        collection: Option<&str>,
        name: &str,
        most: usize,
    ) -> Result<Vec<Document>> {
        self.view(|connection| documents::named(connection, scope, collection, name, most))
    }

    fn hashed(&self, scope: &Scope, prefix: &str, most: usize) -> Result<Vec<(Document, Version)>> {
        self.view(|connection| documents::hashed(connection, scope, prefix, most))
    }

    fn list(&self, scope: &Scope, filter: &Filter, page: &Page) -> Result<Listed> {
        self.view(|connection| documents::list(connection, scope, filter, page, &self.counts))
    }

    fn choose_from(&self, scope: &Scope, filter: &Filter, position: &Position) -> Result<Chunk<Chosen>> {
        self.view(|connection| documents::choose(connection, scope, filter, position))
    }

    fn paths_from(&self, scope: &Scope, filter: &Filter, position: &Position) -> Result<Chunk<String>> {
        self.view(|connection| documents::paths(connection, scope, filter, position))
    }

    fn numbers_from(&self, scope: &Scope, filter: &Filter, position: &Position) -> Result<Chunk<i64>> {
        self.view(|connection| documents::numbers(connection, scope, filter, position))
    }

    fn numbered(&self, scope: &Scope, numbers: &[i64]) -> Result<Vec<Document>> {
        self.read(|connection| documents::numbered(connection, scope, numbers))
    }

    fn sources_from(
        &self,
        collection: CollectionId,
        folder: &str,
        position: &Position,
    ) -> Result<Chunk<Source>> {
        self.read(|connection| documents::sources(connection, collection, folder, position))
    }

    fn versions(&self, scope: &Scope, id: DocumentId) -> Result<Vec<Version>> {
        self.read(|connection| documents::versions(connection, scope, id))
    }

    fn type_figures(&self, scope: &Scope) -> Result<Vec<TypeFigures>> {
        self.read(|connection| read::type_figures(connection, scope))
    }

    fn live_manifests_from(&self, scope: &Scope, position: &Position) -> Result<Chunk<BlobRow>> {
        self.view(|connection| read::live_manifests(connection, scope, position))
    }

    fn blob(&self, hash: &Digest) -> Result<Option<BlobRow>> {
        self.read(|connection| read::blob(connection, hash))
    }

    fn blobs(&self, hashes: &[Digest]) -> Result<Vec<(Digest, BlobRow)>> {
        self.read(|connection| read::blobs_of(connection, hashes))
    }

    fn blobs_from(&self, position: &Position) -> Result<Chunk<(Digest, BlobRow)>> {
        self.read(|connection| read::blobs(connection, position))
    }

    fn loose(&self, ids: &[[u8; 32]]) -> Result<Vec<LooseBlock>> {
        self.read(|connection| read::loose(connection, ids))
    }

    fn loose_figures(&self) -> Result<(u64, u64)> {
        self.read(read::loose_figures)
    }

    fn loose_after(&self, after: Option<[u8; 32]>, most: usize) -> Result<Vec<LooseBlock>> {
        self.read(|connection| read::loose_after(connection, after, most))
    }

    fn drop_loose(&self, ids: &[[u8; 32]]) -> Result<()> {
        let ids = ids.to_vec();
        self.writer.write(move |turn| upkeep::drop_loose(turn, &ids))
    }

    fn snapshots(&self, scope: &Scope, filter: &SnapshotFilter<'_>, most: usize) -> Result<Vec<Snapshot>> {
        self.view(|connection| read::snapshots(connection, scope, filter, most))
    }

    fn snapshot_count(&self, scope: &Scope, filter: &SnapshotFilter<'_>) -> Result<u64> {
        self.view(|connection| read::snapshot_count(connection, scope, filter))
    }

    fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::Relaxed)
    }

    fn sequence(&self) -> Result<u64> {
        self.read(read::sequence)
    }

    fn journal(&self, after: u64, most: usize) -> Result<Vec<Record>> {
        self.read(|connection| read::journal(connection, after, most))
    }

    fn changes(&self, after: u64, until: u64) -> Result<Changes> {
        self.view(|connection| documents::changes(connection, after, until))
    }

    fn version_hashes_from(&self, position: &Position) -> Result<Chunk<(Digest, bool)>> {
        self.read(|connection| upkeep::version_hashes(connection, position))
    }

    fn version_count(&self) -> Result<u64> {
        self.read(upkeep::version_count)
    }

    fn purge(&self, actor: &Actor, purge: &Purge, now: Moment) -> Result<()> {
        self.writer.alone(|turn| upkeep::purge(turn, actor, purge, now))
    }

    fn forget_stats(&self) -> Result<()> {
        self.writer
            .write(|turn| Ok(turn.connection.execute("UPDATE documents SET stat = NULL", []).map(drop)?))
    }

    fn integrity(&self) -> Result<Vec<String>> {
        self.read(upkeep::integrity)
    }

    fn audit(&self) -> Result<Vec<String>> {
        self.view(audit::audit)
    }

    fn accept(&self, actor: &Actor, now: Moment) -> Result<u64> {
        self.writer.alone(|turn| audit::accept(turn, actor, now))
    }

    fn write_copy(&self, target: &Path) -> Result<CopyNote> {
        Self::write_copy(self, target)
    }

    fn bytes(&self) -> Result<u64> {
        let file = |suffix: &str| {
            fs::metadata(format!("{}{suffix}", self.path.display())).map_or(0, |found| found.len())
        };
        Ok(file("") + file("-wal"))
    }

    fn schema_version(&self) -> Result<u32> {
        self.read(schema::version)
    }
}
