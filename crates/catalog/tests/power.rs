//! Power loss under the catalog. A layer below SQLite records what is written and what is synced; a power cut at any
//! moment is then played back: of each file what was synced is there, and of what was not, any part. Whatever had been
//! acknowledged by then must be found, and the rest must be whole.

#![expect(unsafe_code, reason = "SQLite's file layer is an interface of C")]

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char, c_int, c_void},
    path::Path,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rusqlite::ffi::{
    SQLITE_OK, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find,
    sqlite3_vfs_register,
};
use shelf_base::{Moment, ids::LOCAL_ACCOUNT};
use shelf_catalog::{Actor, Catalog, LooseBlock, Put, Record, Scope, Shelf, sqlite::SqliteCatalog, suite};

/// What happened, in order.
#[derive(Clone)]
enum Event {
    Write(String, u64, Vec<u8>),
    Truncate(String, u64),
    Sync(String),
    Delete(String),
    /// A document of this path was acknowledged.
    Acknowledged(String),
}

static LOG: Mutex<Vec<Event>> = Mutex::new(Vec::new());
static RECORDING: AtomicBool = AtomicBool::new(false);

fn note(event: Event) {
    if RECORDING.load(Ordering::Relaxed) {
        LOG.lock().unwrap().push(event);
    }
}

/// The system's own layer.
struct Real(*mut sqlite3_vfs);

// SAFETY: SQLite's layers are made to be used from any thread.
unsafe impl Send for Real {}
unsafe impl Sync for Real {}

static REAL: OnceLock<Real> = OnceLock::new();

/// An open file: what SQLite sees, its name, and behind it the real file.
#[repr(C)]
struct Shim {
    base: sqlite3_file,
    name: *mut String,
}

/// # Safety
/// `file` was opened by [`open`], so the real file lies behind its shim.
unsafe fn real(file: *mut sqlite3_file) -> (*mut sqlite3_file, &'static sqlite3_io_methods) {
    unsafe {
        let real = file.cast::<u8>().add(size_of::<Shim>()).cast::<sqlite3_file>();
        (real, &*(*real).pMethods)
    }
}

unsafe fn name(file: *mut sqlite3_file) -> String {
    unsafe { (*(*file.cast::<Shim>()).name).clone() }
}

macro_rules! forward {
    ($name:ident, $method:ident, ($($argument:ident: $kind:ty),*) -> $result:ty) => {
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $kind)*) -> $result {
            unsafe {
                let (real, methods) = real(file);
                (methods.$method.unwrap())(real $(, $argument)*)
            }
        }
    };
}

forward!(read, xRead, (to: *mut c_void, amount: c_int, offset: sqlite3_int64) -> c_int);
forward!(file_size, xFileSize, (size: *mut sqlite3_int64) -> c_int);
forward!(lock, xLock, (level: c_int) -> c_int);
forward!(unlock, xUnlock, (level: c_int) -> c_int);
forward!(check_reserved, xCheckReservedLock, (out: *mut c_int) -> c_int);
forward!(file_control, xFileControl, (operation: c_int, argument: *mut c_void) -> c_int);
forward!(sector_size, xSectorSize, () -> c_int);
forward!(characteristics, xDeviceCharacteristics, () -> c_int);
forward!(shm_map, xShmMap, (page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void) -> c_int);
forward!(shm_lock, xShmLock, (offset: c_int, count: c_int, flags: c_int) -> c_int);
forward!(shm_barrier, xShmBarrier, () -> ());
forward!(shm_unmap, xShmUnmap, (delete: c_int) -> c_int);

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    unsafe {
        let (real, methods) = real(file);
        let outcome = (methods.xClose.unwrap())(real);
        drop(Box::from_raw((*file.cast::<Shim>()).name));
        outcome
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    amount: c_int,
    offset: sqlite3_int64,
) -> c_int {
    unsafe {
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), amount as usize).to_vec();
        let (real, methods) = real(file);
        let outcome = (methods.xWrite.unwrap())(real, from, amount, offset);
        note(Event::Write(name(file), offset as u64, bytes));
        outcome
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    unsafe {
        let (real, methods) = real(file);
        note(Event::Truncate(name(file), size as u64));
        (methods.xTruncate.unwrap())(real, size)
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    unsafe {
        let (real, methods) = real(file);
        let outcome = (methods.xSync.unwrap())(real, flags);
        note(Event::Sync(name(file)));
        outcome
    }
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe fn file_name(name: *const c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    let path = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    Path::new(&path).file_name().map_or(path.clone(), |name| name.to_string_lossy().into_owned())
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    unsafe {
        let system = REAL.get().unwrap().0;
        let behind = file.cast::<u8>().add(size_of::<Shim>()).cast::<sqlite3_file>();
        (*file).pMethods = std::ptr::null();
        let outcome = ((*system).xOpen.unwrap())(system, name, behind, flags, out);
        if outcome == SQLITE_OK {
            (*file.cast::<Shim>()).name = Box::into_raw(Box::new(file_name(name)));
            (*file).pMethods = &raw const METHODS;
        }
        outcome
    }
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    unsafe {
        let system = REAL.get().unwrap().0;
        note(Event::Delete(file_name(name)));
        ((*system).xDelete.unwrap())(system, name, sync)
    }
}

/// Puts the recording layer below every connection of this process.
fn install() {
    // SAFETY: the layer is a copy of the system's own with two functions of ours, and lives as long as the process.
    unsafe {
        let system = sqlite3_vfs_find(std::ptr::null());
        REAL.get_or_init(|| Real(system));
        let mut layer = Box::new(*system);
        layer.zName = c"recording".as_ptr();
        layer.szOsFile += size_of::<Shim>() as c_int;
        layer.xOpen = Some(open);
        layer.xDelete = Some(delete);
        layer.pNext = std::ptr::null_mut();
        assert_eq!(sqlite3_vfs_register(Box::into_raw(layer), 1), SQLITE_OK);
    }
}

/// A file on a disk that may lose power: what is safe, and what was done since.
#[derive(Default)]
struct Lossy {
    safe: Vec<u8>,
    since: Vec<Event>,
}

fn apply(bytes: &mut Vec<u8>, event: &Event) {
    match event {
        Event::Write(_, offset, written) => {
            let end = *offset as usize + written.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*offset as usize..end].copy_from_slice(written);
        }
        Event::Truncate(_, size) => bytes.truncate(*size as usize),
        Event::Sync(_) | Event::Delete(_) | Event::Acknowledged(_) => {}
    }
}

/// Which of the writes that were not synced reach the disk all the same.
#[derive(Clone, Copy, Debug)]
enum Luck {
    None,
    All,
    Some(u64),
}

impl Luck {
    fn spares(&mut self) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(state) => {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                *state & 0x100 == 0
            }
        }
    }
}

/// The files after a power cut, and what had been acknowledged.
fn cut(events: &[Event], mut luck: Luck) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let mut files: BTreeMap<String, Lossy> = BTreeMap::new();
    let mut acknowledged = Vec::new();
    for event in events {
        match event {
            Event::Write(name, ..) | Event::Truncate(name, _) => {
                files.entry(name.clone()).or_default().since.push(event.clone());
            }
            Event::Sync(name) => {
                let file = files.entry(name.clone()).or_default();
                for event in std::mem::take(&mut file.since) {
                    apply(&mut file.safe, &event);
                }
            }
            Event::Delete(name) => drop(files.remove(name)),
            Event::Acknowledged(path) => acknowledged.push(path.clone()),
        }
    }
    let after = files.into_iter().map(|(name, mut file)| {
        let since: Vec<Event> = file.since.drain(..).filter(|_| luck.spares()).collect();
        since.iter().for_each(|event| apply(&mut file.safe, event));
        (name, file.safe)
    });
    (after.collect(), acknowledged)
}

fn add(catalog: &dyn Catalog, path: &str) {
    let block = LooseBlock { id: *shelf_base::Digest::of(path.as_bytes()).as_bytes(), bytes: vec![1; 9_000] };
    let put = Put {
        actor: Actor::local(),
        collection: Shelf::Named("default".into()),
        now: Moment::from_micros(1),
        documents: vec![suite::sample(path, path)],
        loose: vec![block],
        snapshot: None,
        upload: None,
        fence: None,
        may_wait: true,
    };
    catalog.put(put).unwrap();
    note(Event::Acknowledged(path.to_owned()));
}

/// Three writers at once, twice, with the log folded into the database in between.
fn record() -> Vec<Event> {
    let folder = tempfile::tempdir().unwrap();
    RECORDING.store(true, Ordering::Relaxed);
    for round in 0..2 {
        let catalog: Arc<dyn Catalog> = Arc::new(SqliteCatalog::open(folder.path()).unwrap());
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let catalog = catalog.clone();
                scope.spawn(move || {
                    (0..220).for_each(|number| add(&*catalog, &format!("{round}/{writer}/{number}")));
                });
            }
        });
    }
    RECORDING.store(false, Ordering::Relaxed);
    std::mem::take(&mut *LOG.lock().unwrap())
}

fn must_hold(files: &BTreeMap<String, Vec<u8>>, acknowledged: &[String], what: &str) {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files.iter().filter(|(name, _)| !name.ends_with("-shm")) {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let catalog = SqliteCatalog::open(folder.path()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let scope = Scope::Account(LOCAL_ACCOUNT);
    for path in acknowledged {
        let found = catalog.named(&scope, None, path, 2).unwrap();
        assert_eq!(found.len(), 1, "{what}: {path} was acknowledged");
    }
    assert_eq!(catalog.integrity().unwrap(), [""; 0], "{what}");
    assert_eq!(catalog.audit().unwrap(), [""; 0], "{what}");
    let mut before = Record::genesis();
    for record in catalog.journal(0, usize::MAX >> 1).unwrap() {
        assert_eq!(record.seal, record.expected_seal(&before), "{what}");
        before = record.seal;
    }
}

#[test]
fn what_was_acknowledged_survives_a_power_cut_at_any_moment() {
    install();
    let events = record();
    let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
    assert_eq!(count(|event| matches!(event, Event::Acknowledged(_))), 1_320);
    let writes_to_database =
        events.iter().filter(|event| matches!(event, Event::Write(name, ..) if name == "catalog.db")).count();
    assert!(writes_to_database > 500, "the log was folded while writers went on: {writes_to_database}");
    for part in 1..=40 {
        let moment = events.len() * part / 40;
        for luck in [Luck::None, Luck::All, Luck::Some(part as u64 * 7_919 + 1)] {
            let (files, acknowledged) = cut(&events[..moment], luck);
            must_hold(&files, &acknowledged, &format!("event {moment} of {}, {luck:?}", events.len()));
        }
    }
}
