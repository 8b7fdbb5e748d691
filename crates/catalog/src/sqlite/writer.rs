//! One writer thread a process. Jobs that arrive while a commit is being synced share the next one: a group commit.

use std::{
    cell::RefCell,
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, ffi};
use rustix::fs::{FlockOperation, flock};
use shelf_base::Digest;

use super::{PATIENCE, connect, has_moved, patiently, read};
use crate::{Actor, EngineError, Error, Record, Result};

/// The most jobs that share one commit.
const GROUP: usize = 128;
/// Page cache of the writer, in KiB: enough that the random inserts of a large ingest stay in memory.
const CACHE_KIB: i64 = 24 * 1_024;

/// A transaction under way: the connection and the end of the journal.
pub(super) struct Turn<'a> {
    pub connection: &'a Connection,
    end: RefCell<(u64, Digest)>,
}

impl Turn<'_> {
    /// Appends a record; its sequence and seal are filled in here.
    pub(super) fn record(&self, mut record: Record) -> Result<u64> {
        let mut end = self.end.borrow_mut();
        record.sequence = end.0 + 1;
        record.seal = record.expected_seal(&end.1);
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO journal (sequence, at, account, token, operation, collection, document, path, previous, new,
                 state, seal)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        insert.execute(rusqlite::params![
            record.sequence,
            record.at.micros(),
            record.account.as_bytes(),
            record.token,
            record.operation.word(),
            record.collection.as_ref().map(|id| id.as_bytes()),
            record.document.as_ref().map(|id| id.as_bytes()),
            record.path,
            record.previous.as_ref().map(|hash| hash.as_bytes()),
            record.new.as_ref().map(|hash| hash.as_bytes()),
            record.state.as_ref().map(|hash| hash.as_bytes()),
            record.seal.as_bytes(),
        ])?;
        *end = (record.sequence, record.seal);
        Ok(record.sequence)
    }

    /// The number that the next record will have.
    pub(super) fn next_sequence(&self) -> u64 {
        self.end.borrow().0 + 1
    }

    /// The fields of a record that are the same for all of a call's records.
    pub(super) fn blank(actor: &Actor, at: shelf_base::Moment, operation: crate::Operation) -> Record {
        Record {
            sequence: 0,
            at,
            account: actor.account,
            token: actor.token.clone(),
            operation,
            collection: None,
            document: None,
            path: String::new(),
            previous: None,
            new: None,
            state: None,
            seal: Record::genesis(),
        }
    }
}

type Deliver = Box<dyn FnOnce(Option<ffi::Error>) + Send>;
/// Runs in the turn it is given, or not at all when there is none; gives back what tells its caller.
type Job = Box<dyn FnOnce(Option<&Turn<'_>>) -> Deliver + Send>;

/// The queue to the writer thread, which starts with the first write.
pub(super) struct Writer {
    path: PathBuf,
    lock: PathBuf,
    queue: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
}

impl Drop for Writer {
    /// Closes the connection, so that the write-ahead log is folded into the database.
    fn drop(&mut self) {
        self.release_memory();
    }
}

impl Writer {
    pub(super) fn start(path: PathBuf, lock: PathBuf) -> Self {
        Self { path, lock, queue: Mutex::default() }
    }

    /// Lets the thread finish what it has and go, with its connection and all that the connection remembers. The next
    /// write starts another.
    pub(super) fn release_memory(&self) {
        let taken = self.queue.lock().take();
        if let Some((sender, thread)) = taken {
            drop(sender);
            let _ = thread.join();
        }
    }

    /// Runs `work` in a transaction; returns when it is durable.
    pub(super) fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Turn<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
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
        let _turn_of_process = take_turn(&self.lock)?;
        let connection = connect(&self.path)?;
        connection.pragma_update(None, "foreign_keys", "off")?;
        append(&connection, work)
    }

    fn send(&self, job: Job) -> Result<()> {
        let mut queue = self.queue.lock();
        if queue.is_none() {
            let connection = open(&self.path)?;
            let (sender, jobs) = mpsc::channel();
            let (path, lock) = (self.path.clone(), self.lock.clone());
            let thread = thread::Builder::new()
                .name("catalog-writer".into())
                .spawn(move || run(connection, &path, &lock, &jobs))
                .map_err(Error::Files)?;
            *queue = Some((sender, thread));
        }
        let sent = queue.as_ref().ok_or(Error::Closed)?.0.send(job);
        if sent.is_err() {
            // The thread died of a defect; the next write starts another.
            *queue = None;
        }
        sent.map_err(|_| Error::Closed)
    }
}

/// Runs `work` in a transaction on a connection that nobody else writes through.
pub(super) fn append<T>(connection: &Connection, work: impl FnOnce(&Turn<'_>) -> Result<T>) -> Result<T> {
    let turn = patiently(|| begin(connection))?;
    let outcome = work(&turn);
    let ended = match outcome {
        Ok(value) => connection.execute_batch("COMMIT").map(|()| value).map_err(Error::from),
        Err(error) => Err(error),
    };
    // A full disk has rolled back already.
    if ended.is_err() && !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    ended
}

/// A connection for the writer thread.
fn open(path: &Path) -> Result<Connection> {
    let connection = connect(path)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", 2_000)?;
    // What a savepoint may have to bring back stays in memory: a file for it would cost a tenth of a small write.
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(connection)
}

fn run(mut connection: Connection, path: &Path, lock: &Path, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        // What is written to a file that a recovery has set aside would be lost.
        if has_moved(&connection)
            && let Ok(fresh) = open(path)
        {
            connection = fresh;
        }
        let mut waiting = Vec::new();
        let failure = group(&connection, lock, first, jobs, &mut waiting).err();
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
    connection.execute_batch("COMMIT").map_err(|error| {
        let _ = connection.execute_batch("ROLLBACK");
        code_of(&error.into())
    })
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
    let end = *turn.end.borrow();
    turn.connection.prepare_cached("SAVEPOINT job")?.execute([])?;
    let result = work(turn);
    if result.is_err() {
        *turn.end.borrow_mut() = end;
        turn.connection.prepare_cached("ROLLBACK TO job")?.execute([])?;
    }
    turn.connection.prepare_cached("RELEASE job")?.execute([])?;
    result
}

fn begin(connection: &Connection) -> Result<Turn<'_>> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    match read::journal_end(connection) {
        Ok(end) => Ok(Turn { connection, end: RefCell::new(end) }),
        Err(error) => {
            connection.execute_batch("ROLLBACK")?;
            Err(error)
        }
    }
}

fn code_of(error: &Error) -> ffi::Error {
    match error {
        Error::Engine(EngineError(rusqlite::Error::SqliteFailure(code, _))) => *code,
        _ => ffi::Error { code: ErrorCode::SystemIoFailure, extended_code: ffi::SQLITE_IOERR },
    }
}

/// Waits for this process's turn to write. The kernel lines waiters up; the lock falls when the file is dropped.
pub(super) fn take_turn(lock: &Path) -> Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(lock)
        .map_err(Error::Files)?;
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::Files(error.into())),
        }
    }
}
