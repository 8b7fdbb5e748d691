//! Writes of a transaction to the write-ahead log, joined into one.
//!
//! SQLite writes each page of a transaction to its log in two calls, the header of the frame and the page. A small write of this
//! catalog changes about twenty pages, so a fifth of its time went to forty system calls that write to consecutive places. Here
//! those of a `COMMIT` are gathered, and go to the file in one call: with the last frame of the transaction, before the log is
//! synced, and before anything else is done with the file. All other writes, such as those of pages that leave the cache of a
//! large transaction, pass at once.
//!
//! SQLite has no setting for this and no crate offers it, but SQLite lets a program put itself between it and its files. What
//! stands here is as thin as possible: the log alone is wrapped, everything else is done by SQLite's own functions, and other
//! processes see the same files and the same locks.
//!
//! Why nobody can tell the difference: a frame is found by others only after the commit has moved the end of the log in shared
//! memory, which SQLite does after the write of the last frame, and that write is passed on at once with all before it. When a
//! commit has failed, what is still held is dropped: its place in the log belongs to whoever writes next.

#![expect(unsafe_code, reason = "SQLite's interface for files is one of C")]

use std::{
    ffi::{CStr, c_int, c_void},
    ptr, slice,
    sync::OnceLock,
};

use rusqlite::{
    Connection,
    ffi::{
        SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_OK, SQLITE_OPEN_WAL, sqlite3_file, sqlite3_file_control,
        sqlite3_filename, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find,
        sqlite3_vfs_register,
    },
};

/// The name by which a connection asks for it.
const NAME: &CStr = c"shelf";
/// Bytes that are held back at most: what SQLite's own function writes with one system call.
const MOST: usize = 0x1ffff;
/// The header of a frame: the page's number, then the size of the database if the frame ends a transaction, otherwise zero.
const FRAME_HEADER: usize = 24;

/// The name to open connections with; `None` when SQLite refuses, and its own way has to do.
pub(super) fn name() -> Option<&'static CStr> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    REGISTERED.get_or_init(register).then_some(NAME)
}

fn register() -> bool {
    // SAFETY: a null name asks for the default; SQLite initialises itself when it is called first.
    let original = unsafe { sqlite3_vfs_find(ptr::null()) };
    if original.is_null() {
        return false;
    }
    // SAFETY: SQLite's own description of its files, a plain structure that lives as long as the process.
    let mut copy: sqlite3_vfs = unsafe { ptr::read(original) };
    copy.zName = NAME.as_ptr();
    copy.pNext = ptr::null_mut();
    copy.szOsFile += OFFSET as c_int;
    copy.xOpen = Some(open);
    // SQLite keeps a pointer to it for as long as the process lives.
    let copy: &'static mut sqlite3_vfs = Box::leak(Box::new(copy));
    // SAFETY: the structure is complete and never freed.
    unsafe { sqlite3_vfs_register(copy, 0) == SQLITE_OK }
}

/// A wrapped log, at the beginning of the memory that SQLite gives for a file. SQLite's own structure follows.
#[repr(C)]
struct Log {
    /// What SQLite knows of any file: a pointer to its functions.
    file: sqlite3_file,
    /// Whether a commit is under way, whose writes are gathered.
    is_committing: bool,
    held: Vec<u8>,
    /// Where in the file what is held begins.
    at: sqlite3_int64,
    /// Whether the next page ends a transaction.
    ends: bool,
}

/// Where SQLite's own structure begins, aligned as SQLite aligns memory.
const OFFSET: usize = size_of::<Log>().next_multiple_of(8);

/// Gathers what `commit` writes to the log of a connection.
pub(super) fn joined<T, E>(connection: &Connection, commit: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let Some(log) = log_of(connection) else { return commit() };
    // SAFETY: the connection, which is borrowed, keeps its log open in a transaction, and is used by this thread alone.
    unsafe { (*log).is_committing = true };
    let outcome = commit();
    // A commit that failed may have closed nothing, but it may have opened the log anew.
    if let Some(log) = log_of(connection) {
        // SAFETY: as above.
        let log = unsafe { &mut *log };
        log.is_committing = false;
        log.ends = false;
        debug_assert!(outcome.is_err() || log.held.is_empty());
        log.held.clear();
    }
    outcome
}

/// The wrapped log of a connection, if it has one.
fn log_of(connection: &Connection) -> Option<*mut Log> {
    let mut file: *mut sqlite3_file = ptr::null_mut();
    // SAFETY: the connection is open, and gets the address of a pointer, as this question wants it. What comes back is a file
    // of SQLite's, and a wrapped log if it has the functions of one.
    unsafe {
        let asked = sqlite3_file_control(
            connection.handle(),
            ptr::null(),
            SQLITE_FCNTL_JOURNAL_POINTER,
            (&raw mut file).cast(),
        );
        let is_wrapped = asked == SQLITE_OK && !file.is_null() && ptr::eq((*file).pMethods, &METHODS);
        is_wrapped.then_some(file.cast())
    }
}

/// The functions of a wrapped log. Locks and shared memory belong to the database, not to its log.
static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// SQLite's own structure for a wrapped log.
///
/// # Safety
/// `file` is a log that [`open`] has wrapped.
unsafe fn own(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: `szOsFile` says that there is room for both.
    unsafe { file.cast::<u8>().add(OFFSET).cast() }
}

/// Calls a function of SQLite's own file; without that function, the answer is the last argument.
macro_rules! pass_on {
    ($file:expr, $method:ident($($argument:expr),*), $absent:expr) => {{
        let file = $file;
        match (*(*file).pMethods).$method {
            Some(method) => method(file, $($argument),*),
            None => $absent,
        }
    }};
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite calls with memory of `szOsFile` bytes, and with the arguments that its own function takes.
    unsafe {
        let original = sqlite3_vfs_find(ptr::null());
        let Some(open) = (*original).xOpen else { return rusqlite::ffi::SQLITE_CANTOPEN };
        if flags & SQLITE_OPEN_WAL == 0 {
            return open(original, name, file, flags, out_flags);
        }
        let own = own(file);
        ptr::write_bytes(own.cast::<u8>(), 0, (*original).szOsFile as usize);
        let outcome = open(original, name, own, flags, out_flags);
        // SQLite closes a file that could not be opened when it has functions.
        let methods = if (*own).pMethods.is_null() { ptr::null() } else { &raw const METHODS };
        let file_of_log = sqlite3_file { pMethods: methods };
        let log = Log { file: file_of_log, is_committing: false, held: Vec::new(), at: 0, ends: false };
        ptr::write(file.cast::<Log>(), log);
        outcome
    }
}

/// Passes on what is held.
///
/// # Safety
/// `file` is a log that [`open`] has wrapped.
unsafe fn flush(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite uses a file from one thread at a time, so nobody else has the log.
    unsafe {
        let log = &mut *file.cast::<Log>();
        log.ends = false;
        if log.held.is_empty() {
            return SQLITE_OK;
        }
        let (bytes, length) = (log.held.as_ptr().cast::<c_void>(), log.held.len() as c_int);
        let outcome = pass_on!(own(file), xWrite(bytes, length, log.at), rusqlite::ffi::SQLITE_IOERR_WRITE);
        // What could not be written belongs to a transaction that fails now.
        log.held.clear();
        outcome
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    at: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite gives `length` bytes.
    unsafe {
        let new = slice::from_raw_parts(bytes.cast::<u8>(), usize::try_from(length).unwrap_or(0));
        let log = &mut *file.cast::<Log>();
        let follows = !log.held.is_empty() && at == log.at + log.held.len() as sqlite3_int64;
        let is_last = log.ends;
        if !follows || log.held.len() + new.len() > MOST {
            let outcome = flush(file);
            if outcome != SQLITE_OK {
                return outcome;
            }
        }
        let log = &mut *file.cast::<Log>();
        if !log.is_committing || new.len() > MOST {
            return pass_on!(own(file), xWrite(bytes, length, at), rusqlite::ffi::SQLITE_IOERR_WRITE);
        }
        if log.held.is_empty() {
            log.at = at;
        }
        log.held.extend_from_slice(new);
        if is_last && new.len() != FRAME_HEADER {
            return flush(file);
        }
        log.ends = new.len() == FRAME_HEADER && new[4..8] != [0; 4];
        SQLITE_OK
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once, and does not use it afterwards. What is held belongs to no commit that was answered.
    unsafe {
        let closed = pass_on!(own(file), xClose(), SQLITE_OK);
        ptr::drop_in_place(file.cast::<Log>());
        (*file).pMethods = ptr::null();
        closed
    }
}

/// A function that passes on what is held, and then the call.
macro_rules! after_flush {
    ($name:ident, $method:ident($($argument:ident: $kind:ty),*), $absent:expr) => {
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $kind)*) -> c_int {
            // SAFETY: the arguments are those that SQLite's own function takes.
            unsafe {
                match flush(file) {
                    SQLITE_OK => pass_on!(own(file), $method($($argument),*), $absent),
                    failure => failure,
                }
            }
        }
    };
}

after_flush!(
    read,
    xRead(bytes: *mut c_void, length: c_int, at: sqlite3_int64),
    rusqlite::ffi::SQLITE_IOERR_READ
);
after_flush!(truncate, xTruncate(size: sqlite3_int64), rusqlite::ffi::SQLITE_IOERR_TRUNCATE);
after_flush!(sync, xSync(flags: c_int), rusqlite::ffi::SQLITE_IOERR_FSYNC);
after_flush!(file_size, xFileSize(size: *mut sqlite3_int64), rusqlite::ffi::SQLITE_IOERR_FSTAT);
after_flush!(lock, xLock(level: c_int), SQLITE_OK);
after_flush!(unlock, xUnlock(level: c_int), SQLITE_OK);
after_flush!(check_reserved_lock, xCheckReservedLock(taken: *mut c_int), SQLITE_OK);
after_flush!(
    file_control,
    xFileControl(operation: c_int, argument: *mut c_void),
    rusqlite::ffi::SQLITE_NOTFOUND
);

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    // SAFETY: a question about the medium, whatever is held.
    unsafe { pass_on!(own(file), xSectorSize(), 0) }
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    // SAFETY: a question about the medium, whatever is held.
    unsafe { pass_on!(own(file), xDeviceCharacteristics(), 0) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::{Connection, OpenFlags};

    use super::{joined, name};

    fn commit(connection: &Connection) {
        joined(connection, || connection.execute_batch("COMMIT")).unwrap();
    }

    fn connect(path: &Path, is_joined: bool) -> Connection {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = if is_joined {
            Connection::open_with_flags_and_vfs(path, flags, name().unwrap()).unwrap()
        } else {
            Connection::open_with_flags(path, flags).unwrap()
        };
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        connection
    }

    fn count(connection: &Connection) -> i64 {
        connection.query_row("SELECT COUNT(*) FROM rows", [], |row| row.get(0)).unwrap()
    }

    /// What one connection commits, the others see at once: with and without a sync of each commit, in small and in large
    /// transactions, through the joined log and through SQLite's own.
    #[test]
    fn commits_are_seen_at_once_by_every_connection() {
        for synchronous in ["full", "normal", "off"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("joined.db");
            let writer = connect(&path, true);
            writer.pragma_update(None, "synchronous", synchronous).unwrap();
            // Pages of a large transaction leave the cache before it commits, and are read back.
            writer.pragma_update(None, "cache_size", 10).unwrap();
            writer.execute_batch("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)").unwrap();
            let (joined, plain) = (connect(&path, true), connect(&path, false));
            let mut expected = 0;
            for round in 0..60_i64 {
                let rows = if round % 20 == 19 { 800 } else { round % 4 + 1 };
                writer.execute_batch("BEGIN IMMEDIATE").unwrap();
                for _ in 0..rows {
                    writer.execute("INSERT INTO rows (body) VALUES (randomblob(1500))", []).unwrap();
                }
                assert_eq!(count(&writer), expected + rows);
                assert_eq!((count(&joined), count(&plain)), (expected, expected));
                if round % 7 == 6 {
                    writer.execute_batch("ROLLBACK").unwrap();
                } else {
                    commit(&writer);
                    expected += rows;
                }
                assert_eq!((count(&joined), count(&plain)), (expected, expected), "{synchronous}, {round}");
                if round % 16 == 15 {
                    // Writers take turns, and one of them starts the log from its beginning.
                    plain.execute("INSERT INTO rows (body) VALUES (x'00')", []).unwrap();
                    expected += 1;
                    plain.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
                    assert_eq!(count(&writer), expected);
                }
            }
            let check: String = plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            assert_eq!(check, "ok");
        }
    }

    /// A commit that returned is in the files: a copy of them, as after a crash, has it.
    #[test]
    fn an_answered_commit_is_in_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("joined.db");
        let writer = connect(&path, true);
        writer.pragma_update(None, "synchronous", "full").unwrap();
        writer.execute_batch("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)").unwrap();
        let mut rows = 0;
        for round in 1..=20 {
            writer.execute_batch("BEGIN IMMEDIATE").unwrap();
            // Now and then more than is held at most.
            for _ in 0..round % 5 * 9 + 1 {
                writer.execute("INSERT INTO rows (body) VALUES (randomblob(9000))", []).unwrap();
                rows += 1;
            }
            commit(&writer);
            let copy = folder.path().join(format!("copy-{round}.db"));
            for ending in ["", "-wal"] {
                let from = format!("{}{ending}", path.display());
                std::fs::copy(from, format!("{}{ending}", copy.display())).unwrap();
            }
            assert_eq!(count(&connect(&copy, false)), rows);
        }
    }

    /// What a transaction wrote that was rolled back is not written once more over what others have committed since.
    #[test]
    fn a_transaction_that_failed_leaves_nothing_behind() {
        for synchronous in ["full", "off"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("joined.db");
            let writer = connect(&path, true);
            writer.pragma_update(None, "synchronous", synchronous).unwrap();
            writer.pragma_update(None, "cache_size", 10).unwrap();
            writer.execute_batch("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)").unwrap();
            let plain = connect(&path, false);
            let insert = |connection: &Connection, count: i64| {
                connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                for _ in 0..count {
                    connection.execute("INSERT INTO rows (body) VALUES (randomblob(3000))", []).unwrap();
                }
            };
            let mut expected = 0;
            for round in 0..12 {
                // The next transaction begins the log anew.
                plain.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
                insert(&writer, 15 + round);
                if round % 2 == 0 {
                    writer.execute_batch("ROLLBACK").unwrap();
                } else {
                    // The commit goes through, although what came with it fails.
                    let failed = joined(&writer, || writer.execute_batch("COMMIT; SELECT no_such_thing()"));
                    assert!(failed.is_err());
                    expected += 15 + round;
                }
                insert(&plain, 40);
                plain.execute_batch("COMMIT").unwrap();
                expected += 40;
                assert_eq!((count(&writer), count(&plain)), (expected, expected), "{synchronous}, {round}");
            }
            drop(writer);
            assert_eq!(count(&plain), expected);
            let check: String = plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            assert_eq!(check, "ok");
        }
    }
}
