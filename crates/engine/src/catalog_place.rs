//! Where the catalog of a library lies: in its folder, or in a database that many machines use.
//!
//! A folder belongs to one catalog. A note in it says which database that is, so that nobody opens it with another one, or
//! with none, and takes what it holds for garbage.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use shelf_base::{Coordination, Held, LockMode, hex};
use shelf_blocks::objects::Objects;
pub use shelf_catalog::postgres::Address as CatalogAddress;
use shelf_catalog::{
    Catalog,
    postgres::{PostgresCatalog, PostgresLocks},
    sqlite::SqliteCatalog,
};

use crate::{
    Error, Result,
    locks::{FolderLocks, INDEX},
    maintain::{has_packs, must_have_catalog},
};

/// Locks of what each machine has for itself: the index, the note of how far the journal was, the folders that it watches.
const LOCAL: [&str; 4] = [INDEX, "deepen", "recovery", "watch"];

/// Opens the catalog of the library in `folder`, and the locks that go with it.
pub(crate) fn open(
    folder: &Path,
    objects: &dyn Objects,
    address: Option<&CatalogAddress>,
) -> Result<(Arc<dyn Catalog>, Arc<dyn Coordination>)> {
    let Some(address) = address else {
        must_be_here(folder)?;
        must_have_catalog(folder, objects)?;
        return Ok((Arc::new(SqliteCatalog::open(folder)?), Arc::new(FolderLocks::new(folder))));
    };
    settle(folder, objects, reach(folder, address)?)
}

/// Opens the catalog in the database at an address, for the library in `folder`, in which nothing is changed.
pub(crate) fn reach(folder: &Path, address: &CatalogAddress) -> Result<PostgresCatalog> {
    if fs::metadata(folder.join("catalog.db")).is_ok_and(|found| found.len() > 0) {
        return Err(Error::Unavailable {
            what: "this folder holds a library with a catalog of its own (catalog.db)".into(),
            hint: "use another folder for the library in the database, or leave library.catalog empty".into(),
        });
    }
    let catalog = PostgresCatalog::open(address.clone())?;
    if catalog.is_moved()? {
        return Err(shelf_catalog::Error::Moved.into());
    }
    Ok(catalog)
}

/// Ties the folder to the library in the database; the catalog, and the locks that go with it.
pub(crate) fn settle(
    folder: &Path,
    objects: &dyn Objects,
    catalog: PostgresCatalog,
) -> Result<(Arc<dyn Catalog>, Arc<dyn Coordination>)> {
    claim(folder, objects, &catalog)?;
    let locks = SharedLocks { local: FolderLocks::new(folder), shared: catalog.locks() };
    Ok((Arc::new(catalog), Arc::new(locks)))
}

fn note_path(folder: &Path) -> PathBuf {
    folder.join("catalog.address")
}

/// What the note of a folder says: the id of the library, and where its catalog is.
pub(crate) fn noted(folder: &Path) -> Result<Option<(String, String)>> {
    let path = note_path(folder);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let (id, address) = text.trim_end().split_once('\n').unwrap_or((text.trim_end(), ""));
            Ok(Some((id.to_owned(), address.to_owned())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::reading(path.display().to_string(), source)),
    }
}

/// Whether a folder is that of a library whose catalog is in a database.
pub(crate) fn is_elsewhere(folder: &Path) -> bool {
    note_path(folder).exists()
}

/// Refuses to look for the catalog in a folder whose note says that it is elsewhere.
pub(crate) fn must_be_here(folder: &Path) -> Result<()> {
    noted(folder)?.map_or(Ok(()), |(_, address)| {
        Err(Error::Unavailable {
            what: format!("the catalog of this library is in a database: {address}"),
            hint: "give its address: [library] catalog in shelf.toml, SHELF_CATALOG, or --catalog".into(),
        })
    })
}

/// Notes in the folder which database it belongs to.
fn claim(folder: &Path, objects: &dyn Objects, catalog: &PostgresCatalog) -> Result<()> {
    let id = hex::encode(&catalog.library_id());
    match noted(folder)? {
        Some((known, _)) if known == id => return Ok(()),
        Some((_, address)) => {
            return Err(Error::Unavailable {
                what: format!("this folder belongs to another library: {address}"),
                hint: "use a folder of its own for each library, or the address that belongs to this one"
                    .into(),
            });
        }
        None => {}
    }
    // Everything that is stored would count as unneeded.
    if catalog.sequence()? == 0 && has_packs(objects)? {
        return Err(Error::Unavailable {
            what: format!("the catalog at {} is empty, but there is stored content", catalog.address()),
            hint: "check the address; if the database was lost, restore it from its backup".into(),
        });
    }
    if catalog.sequence()? > 0 && !objects.is_remote() && !has_packs(objects)? {
        return Err(Error::Unavailable {
            what: format!("the packs of the library at {} are not in this folder", catalog.address()),
            hint: "use the folder in which the library was made".into(),
        });
    }
    note_database(folder, catalog)
}

/// Writes down which database the folder belongs to, unless another process has.
pub(crate) fn note_database(folder: &Path, catalog: &PostgresCatalog) -> Result<()> {
    let path = note_path(folder);
    let text = format!("{}\n{}\n", hex::encode(&catalog.library_id()), catalog.address());
    let write = || -> io::Result<()> {
        let mut file = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    match write() {
        // Another process was faster, and its note is looked at with the next opening.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome.map_err(|source| Error::writing(path.display().to_string(), source)),
    }
}

/// Removes the note: the catalog is in the folder from now on.
pub(crate) fn remove_note(folder: &Path) -> Result<()> {
    let path = note_path(folder);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::writing(path.display().to_string(), error))
        }
        _ => Ok(()),
    }
}

/// The locks of a library whose catalog is shared by machines, each with a folder of its own.
struct SharedLocks {
    local: FolderLocks,
    shared: PostgresLocks,
}

impl Coordination for SharedLocks {
    fn attempt(&self, name: &str, mode: LockMode) -> io::Result<Option<Held>> {
        if LOCAL.contains(&name) { self.local.attempt(name, mode) } else { self.shared.attempt(name, mode) }
    }
}
