//! Moving the catalog of a library between a file in its folder and a database that many machines use.
//!
//! Everything is copied in one transaction while readers go on and writers wait. The copy has the same row numbers and the
//! same journal, whose chain is verified where it has arrived; only then does the folder say where the catalog is. Whatever
//! breaks before that leaves the library as it was, and the command can be repeated.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use shelf_base::{CallContext, Kind, hex};
use shelf_catalog::{Catalog as _, Transferred, postgres::PostgresCatalog, sqlite::SqliteCatalog};

use crate::{
    CatalogAddress, Error, Library, Options, Result,
    catalog_place::{must_be_here, note_database, noted, remove_note},
    locks::Locks,
    storage,
};

/// How long moving waits for a garbage collection and for writers.
const PATIENCE: Duration = Duration::from_secs(120);
/// Where a file is put together before it is the catalog.
const STAGE: &str = "moving";
/// The files of a catalog. What SQLite makes again by itself is not among them.
const FILES: [&str; 2] = ["catalog.db-wal", "catalog.db"];

/// Where a catalog is moved to.
#[derive(Clone, Debug)]
pub enum CatalogPlace {
    /// A file in the library's folder.
    File,
    /// A database.
    Database(Box<CatalogAddress>),
}

impl CatalogPlace {
    /// Reads `sqlite` or `postgres://…`, with the password to use when the address has none; `None` when the text is neither.
    pub fn parse(text: &str, password: Option<&str>) -> Option<Result<Self>> {
        if text == "sqlite" {
            return Some(Ok(Self::File));
        }
        CatalogAddress::is_one(text)
            .then(|| Ok(Self::Database(Box::new(CatalogAddress::parse(text, password)?))))
    }
}

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogMoved {
    /// Where the catalog is now.
    pub to: String,
    /// Rows that were copied.
    pub rows: u64,
    /// Journal records whose seals were verified.
    pub journal: u64,
    /// Where the catalog was, if it is still there.
    pub old: Option<String>,
}

impl Library {
    /// Moves the catalog of the library in `folder` to another place. The old one stays, unless `remove_old`, but is not used
    /// any more.
    pub fn migrate_catalog(
        folder: &Path,
        to: &CatalogPlace,
        options: &Options,
        remove_old: bool,
        call: &CallContext,
    ) -> Result<CatalogMoved> {
        match to {
            CatalogPlace::Database(address) => to_database(folder, address, options, remove_old, call),
            CatalogPlace::File => to_file(folder, options, remove_old, call),
        }
    }
}

fn to_database(
    folder: &Path,
    address: &CatalogAddress,
    options: &Options,
    remove_old: bool,
    call: &CallContext,
) -> Result<CatalogMoved> {
    must_be_here(folder)?;
    put_back(folder).map_err(writing(folder))?;
    // A setting may name the place where the catalog is going to be.
    let library = Library::open(folder, Options { catalog: None, ..options.clone() })?;
    let (source, target) = (SqliteCatalog::open(folder)?, PostgresCatalog::open(address.clone())?);
    let _no_deletions = library.locks.alone("gc", PATIENCE, call)?;
    let _alone = library.locks.exclusive(PATIENCE, call)?;
    // From then on it is the catalog that says where the packs are.
    source.move_objects(&library.place.to_string(), None)?;
    let moved = target.take_over(&source, &|done, of| told(call, done, of), &|| {
        set_aside(folder).map_err(shelf_catalog::Error::Files)
    });
    let moved = stopped_or(moved, call)?;
    note_database(folder, &target)?;
    let old = aside(folder, "catalog.db");
    if remove_old {
        for name in FILES {
            remove(&aside(folder, name))?;
        }
    }
    let old = (!remove_old).then(|| old.display().to_string());
    Ok(report(target.address(), moved, old))
}

fn to_file(folder: &Path, options: &Options, remove_old: bool, call: &CallContext) -> Result<CatalogMoved> {
    let Some(address) = &options.catalog else {
        must_be_here(folder)?;
        return Err(refused("the catalog of this library is in its folder already", Kind::Conflict));
    };
    if remove_old {
        let what =
            "a database is not deleted by this command; drop its schema when you do not need it any more";
        return Err(refused(what, Kind::Invalid));
    }
    if folder.join("catalog.db").exists() {
        return Err(refused(
            "there is a catalog in this folder (catalog.db); it was not touched",
            Kind::Conflict,
        ));
    }
    // Not by way of the library: a database that was left by an attempt that was broken off takes no writes.
    let source = PostgresCatalog::open(address.clone())?;
    let id = hex::encode(&source.library_id());
    if let Some((known, other)) = noted(folder)?.filter(|(known, _)| *known != id) {
        return Err(refused(
            format!("this folder belongs to another library: {other} ({known})"),
            Kind::Conflict,
        ));
    }
    let place = options.storage.shared_place(folder, &source)?;
    let locks = Locks::new(Arc::new(source.locks()));
    let _no_deletions = locks.alone("gc", PATIENCE, call)?;
    let _alone = locks.exclusive(PATIENCE, call)?;
    let stage = folder.join(STAGE);
    clear(&stage)?;
    let target = SqliteCatalog::open(&stage)?;
    // When this returns the database takes no writes, so nothing is lost until the folder says where the catalog is.
    let moved = source.hand_over(&target, &|done, of| told(call, done, of), &|| Ok(()));
    drop(target);
    let moved = stopped_or(moved, call)?;
    for name in FILES {
        let (from, to) = (stage.join(name), folder.join(name));
        if from.exists() {
            fs::rename(&from, &to).map_err(writing(&to))?;
        }
    }
    storage::note(folder, &place)?;
    remove_note(folder)?;
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(writing(folder))?;
    clear(&stage)?;
    Ok(report("sqlite".into(), moved, Some(source.address())))
}

fn told(call: &CallContext, done: u64, of: u64) -> bool {
    call.report(done, Some(of), "copying the catalog");
    call.check().is_ok()
}

/// A copy that ended early because the caller wanted it to has failed for that reason.
fn stopped_or(
    moved: std::result::Result<Transferred, shelf_catalog::Error>,
    call: &CallContext,
) -> Result<Transferred> {
    if moved.is_err() {
        call.check()?;
    }
    Ok(moved?)
}

fn report(to: String, moved: Transferred, old: Option<String>) -> CatalogMoved {
    CatalogMoved { to, rows: moved.rows, journal: moved.sequence, old }
}

/// Where a file of a catalog that is not used any more is put.
fn aside(folder: &Path, name: &str) -> PathBuf {
    folder.join(name.replace("catalog.db", "catalog.db.moved"))
}

/// Takes the catalog out of its place: programs that have it open notice, and write to it no more.
fn set_aside(folder: &Path) -> io::Result<()> {
    for name in FILES {
        match fs::rename(folder.join(name), aside(folder, name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::File::open(folder)?.sync_all()
}

/// Puts a catalog back that an attempt which was broken off has set aside: nothing says yet that it is elsewhere.
fn put_back(folder: &Path) -> io::Result<()> {
    if folder.join("catalog.db").exists() {
        return Ok(());
    }
    for name in FILES {
        match fs::rename(aside(folder, name), folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn clear(stage: &Path) -> Result<()> {
    match fs::remove_dir_all(stage) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(writing(stage)(error)),
        _ => Ok(()),
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(writing(path)(error)),
        _ => Ok(()),
    }
}

fn writing(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    move |source| Error::writing(path.clone(), source)
}

fn refused(what: impl Into<String>, kind: Kind) -> Error {
    let hint = "`shelf config show` tells what is set, and `shelf doctor` where the catalog is".into();
    Error::Backup { what: what.into(), kind, hint }
}
