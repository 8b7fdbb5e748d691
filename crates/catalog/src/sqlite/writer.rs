//! One connection a process writes. Whoever finds it free writes at once, on its own thread, because handing a small
//! write to another thread and back costs as much as half its sync. Jobs that arrive while a commit is being synced go
//! to a writer thread and share the next one: a group commit.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, ffi};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use super::{PATIENCE, connect, has_moved, is_read_only, joined_log, patiently};
use crate::{
    Error, Result,
    error::Engine,
    sql::{self, Turn, read},
};

/// The most jobs that share one commit.
const GROUP: usize = 128;
/// Page cache of the writer, in KiB.
const CACHE_KIB: i64 = 8 * 1_024;
/// The same once many documents were written at once: the random inserts of a large ingest stay in memory. It is given back
/// with the connection, when the server is idle.
const CACHE_OF_MANY_KIB: i64 = 24 * 1_024;

type Deliver = Box<dyn FnOnce(Option<ffi::Error>) + Send>;
/// Runs in the turn it is given, or not at all when there is none; gives back what tells its caller.
type Job = Box<dyn FnOnce(Option<&Turn<'_>>) -> Deliver + Send>;

/// The connection that writes, and the queue to the writer thread, which starts when a write finds it taken.
pub(super) struct Writer {
    path: PathBuf,
    lock: PathBuf,
    shared: Arc<Shared>,
    queue: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
}

/// What the writer thread and those who write at once share.
#[derive(Default)]
struct Shared {
    /// Opened by the first who needs it.
    connection: Mutex<Option<Connection>>,
    /// Jobs that the thread has been given and has not finished. Nobody overtakes them.
    queued: AtomicUsize,
    /// Whether the last commit of the thread was of several jobs. Then all jobs go to the thread: one that ran at once
    /// would have a sync to itself, and the others would wait for two.
    is_crowded: AtomicBool,
}

impl Drop for Writer {
    /// Closes the connection, so that the write-ahead log is folded into the database.
    fn drop(&mut self) {
        self.release_memory();
    }
}

impl Writer {
    pub(super) fn start(path: PathBuf, lock: PathBuf) -> Self {
        Self { path, lock, shared: Arc::default(), queue: Mutex::default() }
    }

    /// Lets the thread finish what it has and go, with its connection and all that the connection remembers. The next
    /// write starts another.
    pub(super) fn release_memory(&self) {
        let taken = self.queue.lock().take();
        if let Some((sender, thread)) = taken {
            drop(sender);
            let _ = thread.join();
        }
        drop(self.shared.connection.lock().take());
    }

    /// Runs `work` in a transaction; returns when it is durable.
    pub(super) fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Turn<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let work = match self.write_at_once(work) {
            Ok(outcome) => return outcome,
            Err(work) => work,
        };
        let (reply, outcome) = mpsc::sync_channel(1);
        // Set by whoever is first: the thread that begins with the job, or the caller who gave up waiting for it.
        let taken = Arc::new(AtomicBool::new(false));
        let taken_by_thread = taken.clone();
        let job: Job = Box::new(move |turn| {
            if taken_by_thread.swap(true, Ordering::AcqRel) {
                return Box::new(|_| {});
            }
            let result = turn.map_or(Err(Error::Closed), |turn| in_savepoint(turn, work));
            Box::new(move |failure| {
                let _ = reply.send(match failure {
                    None => result,
                    Some(failure) => Err(rusqlite::Error::SqliteFailure(failure, None).into()),
                });
            })
        });
        self.send(job)?;
        match outcome.recv_timeout(PATIENCE) {
            Err(mpsc::RecvTimeoutError::Timeout) if !taken.swap(true, Ordering::AcqRel) => Err(Error::Busy),
            Err(mpsc::RecvTimeoutError::Timeout) => outcome.recv().map_err(|_| Error::Closed)?,
            result => result.map_err(|_| Error::Closed)?,
        }
    }

    /// Runs `work` in a transaction if nobody else is writing, and otherwise not at all: [`Error::Busy`].
    pub(super) fn write_now<T>(&self, work: impl FnOnce(&Turn<'_>) -> Result<T>) -> Result<T> {
        self.write_at_once(work).unwrap_or(Err(Error::Busy))
    }

    /// Runs `work` on this thread if nobody else is writing; gives it back if somebody is.
    fn write_at_once<T, F: FnOnce(&Turn<'_>) -> Result<T>>(
        &self,
        work: F,
    ) -> std::result::Result<Result<T>, F> {
        let Shared { queued, is_crowded, .. } = &*self.shared;
        if is_crowded.load(Ordering::Relaxed) || queued.load(Ordering::Acquire) > 0 {
            return Err(work);
        }
        let Some(mut kept) = self.shared.connection.try_lock() else { return Err(work) };
        // Without it a waiting process would be waited for, and longer than a caller may have patience.
        let Ok(Some(_turn_of_process)) = try_turn(&self.lock) else { return Err(work) };
        // Taken out, so that a connection on which work ended by a defect is closed, and its transaction undone.
        let Ok(connection) = current(kept.take(), &self.path) else { return Err(work) };
        let outcome = append(&connection, work);
        *kept = Some(connection);
        Ok(outcome)
    }

    /// Runs `work` in one of the next transactions and does not wait for it; nobody hears of a failure.
    pub(super) fn post(&self, work: impl FnOnce(&Turn<'_>) -> Result<()> + Send + 'static) -> Result<()> {
        self.send(Box::new(move |turn| {
            let _ = turn.map(|turn| in_savepoint(turn, work));
            Box::new(|_| {})
        }))
    }

    /// Runs long work in a transaction on a connection of its own that does not look after every reference: whoever
    /// deletes parents by the thousand knows that they have no children left, and SQLite would look through whole
    /// tables for each of them.
    pub(super) fn alone<T>(&self, work: impl FnOnce(&Turn<'_>) -> Result<T>) -> Result<T> {
        if is_read_only(&self.path) {
            return Err(Error::ReadOnly);
        }
        let _turn_of_process = take_turn(&self.lock)?;
        let connection = connect(&self.path)?;
        connection.pragma_update(None, "foreign_keys", "off")?;
        append(&connection, work)
    }

    fn send(&self, job: Job) -> Result<()> {
        let mut queue = self.queue.lock();
        if queue.is_none() {
            // A catalog that cannot be opened is told to the first who writes.
            let mut kept = self.shared.connection.lock();
            *kept = Some(current(kept.take(), &self.path)?);
            drop(kept);
            let (sender, jobs) = mpsc::channel();
            let (path, lock, shared) = (self.path.clone(), self.lock.clone(), self.shared.clone());
            let thread = thread::Builder::new()
                .name("catalog-writer".into())
                .spawn(move || run(&shared, &path, &lock, &jobs))
                .map_err(Error::Files)?;
            *queue = Some((sender, thread));
        }
        self.shared.queued.fetch_add(1, Ordering::AcqRel);
        let sent = queue.as_ref().ok_or(Error::Closed)?.0.send(job);
        if sent.is_err() {
            // The thread died of a defect; the next write starts another.
            *queue = None;
            self.shared.queued.store(0, Ordering::Release);
        }
        sent.map_err(|_| Error::Closed)
    }
}

/// Runs `work` in a transaction on a connection that nobody else writes through.
pub(super) fn append<T>(connection: &Connection, work: impl FnOnce(&Turn<'_>) -> Result<T>) -> Result<T> {
    let turn = patiently(|| begin(connection))?;
    let outcome = work(&turn);
    let ended = match outcome {
        Ok(value) => commit(connection).map(|()| value),
        Err(error) => Err(error),
    };
    // A full disk has rolled back already.
    if ended.is_err() && !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    ended
}

/// A connection that writes.
fn open(path: &Path) -> Result<Connection> {
    if is_read_only(path) {
        return Err(Error::ReadOnly);
    }
    let connection = connect(path)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", 2_000)?;
    // What a savepoint may have to bring back stays in memory: a file for it would cost a tenth of a small write.
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(connection)
}

/// Makes the connection ready for many documents in one transaction.
pub(crate) fn expect_many(connection: &Connection) -> Result<()> {
    Ok(connection.pragma_update(None, "cache_size", -CACHE_OF_MANY_KIB)?)
}

/// The connection that is open, or another if a recovery has set its file aside: what is written to that file would be
/// lost.
fn current(kept: Option<Connection>, path: &Path) -> Result<Connection> {
    kept.filter(|connection| !has_moved(connection)).map_or_else(|| open(path), Ok)
}

fn run(shared: &Shared, path: &Path, lock: &Path, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let mut kept = shared.connection.lock();
        let mut waiting = Vec::new();
        let failure = match current(kept.take(), path) {
            Ok(connection) => {
                let failure = group(&connection, lock, first, jobs, &mut waiting).err();
                *kept = Some(connection);
                failure
            }
            Err(error) => {
                waiting.push(first(None));
                Some(code_of(&error))
            }
        };
        drop(kept);
        shared.is_crowded.store(waiting.len() > 1, Ordering::Relaxed);
        shared.queued.fetch_sub(waiting.len(), Ordering::AcqRel);
        for deliver in waiting {
            deliver(failure);
        }
    }
}

/// One transaction for the first job and all that are queued behind it.
fn group(
    connection: &Connection,
    lock: &Path,
    first: Job,
    jobs: &Receiver<Job>,
    waiting: &mut Vec<Deliver>,
) -> std::result::Result<(), ffi::Error> {
    let turn_of_process = take_turn(lock);
    let turn_of_process =
        turn_of_process.and_then(|guard| if has_moved(connection) { Err(Error::Busy) } else { Ok(guard) });
    let begun = turn_of_process.and_then(|guard| Ok((guard, patiently(|| begin(connection))?)));
    let (_guard, turn) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            waiting.push(first(None));
            return Err(code_of(&error));
        }
    };
    waiting.push(first(Some(&turn)));
    still_open(connection)?;
    while waiting.len() < GROUP
        && let Ok(next) = jobs.try_recv()
    {
        waiting.push(next(Some(&turn)));
        still_open(connection)?;
    }
    commit(connection).map_err(|error| {
        let _ = connection.execute_batch("ROLLBACK");
        code_of(&error)
    })
}

fn commit(connection: &Connection) -> Result<()> {
    joined_log::joined(connection, || run_cached(connection, "COMMIT"))
}

/// Runs a statement of every write, which is parsed only once.
fn run_cached(connection: &Connection, statement: &str) -> Result<()> {
    connection.prepare_cached(statement)?.execute([])?;
    Ok(())
}

/// Some failures (a full disk among them) make SQLite roll the whole transaction back by itself. Then nothing of the
/// group may count, and nothing more may run as if it were part of it.
fn still_open(connection: &Connection) -> std::result::Result<(), ffi::Error> {
    if connection.is_autocommit() {
        return Err(ffi::Error { code: ErrorCode::DiskFull, extended_code: ffi::SQLITE_FULL });
    }
    Ok(())
}

fn in_savepoint<T>(turn: &Turn<'_>, work: impl FnOnce(&Turn<'_>) -> Result<T>) -> Result<T> {
    let mark = turn.mark();
    let run = |statement: &str| turn.connection.prepare_cached(statement)?.execute(&[]).map(drop);
    run("SAVEPOINT job")?;
    let result = work(turn);
    if result.is_err() {
        turn.go_back(&mark);
        run("ROLLBACK TO job")?;
    }
    run("RELEASE job")?;
    result
}

fn begin(connection: &Connection) -> Result<Turn<'_>> {
    run_cached(connection, "BEGIN IMMEDIATE")?;
    let shared = sql::Connection::Sqlite(connection);
    match read::journal_end(shared) {
        Ok(end) => Ok(Turn::alone(shared, end)),
        Err(error) => {
            connection.execute_batch("ROLLBACK")?;
            Err(error)
        }
    }
}

fn code_of(error: &Error) -> ffi::Error {
    match error {
        Error::Engine(error) => match &error.0 {
            Engine::Sqlite(rusqlite::Error::SqliteFailure(code, _)) => *code,
            _ => ffi::Error { code: ErrorCode::SystemIoFailure, extended_code: ffi::SQLITE_IOERR },
        },
        _ => ffi::Error { code: ErrorCode::SystemIoFailure, extended_code: ffi::SQLITE_IOERR },
    }
}

/// Waits for this process's turn to write. The kernel lines waiters up; the lock falls when the file is dropped.
pub(super) fn take_turn(lock: &Path) -> Result<File> {
    let file = open_lock(lock)?;
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::Files(error.into())),
        }
    }
}

/// This process's turn, if no other process is writing.
fn try_turn(lock: &Path) -> Result<Option<File>> {
    let file = open_lock(lock)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(error) => Err(Error::Files(error.into())),
    }
}

fn open_lock(lock: &Path) -> Result<File> {
    let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(lock);
    opened.map_err(Error::Files)
}
