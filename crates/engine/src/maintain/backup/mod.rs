//! Backups: a library as one file, made while others write, and a library made from such a file.
//!
//! The catalog is copied first, at one position of its journal, and the packs after it: a pack is durable before a
//! record refers to it, and nothing deletes packs meanwhile, so everything that the copy refers to is found. Whatever
//! was written later and happens to be among the packs is unused until garbage collection removes it.
//!
//! A backup is verified before it gets its name, and again before what was restored from it becomes a library: a
//! catalog is rebuilt from it, and the same check that `shelf check` makes reads every block, content, snapshot and
//! journal record.

mod contents;
mod format;

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use shelf_base::{CallContext, Clock, Kind, MemoryLocks, SystemClock};
use shelf_blocks::objects::{ByteRange, Folder, Listed, Objects, pages};
use shelf_catalog::{CopyNote, sqlite::SqliteCatalog};

use self::{
    contents::Contents,
    format::{Found, Reader, Section, Summary, Writer},
};
use super::{CheckReport, recovery::short_blocks};
use crate::{
    Error, Library, ObjectsPlace, Options, Ports, Result, StorageSettings,
    locks::{FolderLocks, Locks},
    storage::note,
};

/// How long a backup waits for a garbage collection that is running.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of a pack that are read at once.
const PIECE: u64 = 4 << 20;
/// Where a library is put together before it is one.
const STAGE: &str = "restoring";

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// The last journal record in it.
    pub sequence: u64,
    /// Its packs.
    pub packs: u64,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Contents that were read whole and compared with their hashes.
    pub contents: u64,
    /// Versions of documents.
    pub versions: u64,
    /// Snapshots.
    pub snapshots: u64,
}

impl Library {
    /// Writes the whole library, as it is at one position of its journal, to a new file. Others may go on writing;
    /// garbage collection waits.
    pub fn backup(&self, target: &Path, call: &CallContext) -> Result<BackupReport> {
        must_not_exist(target)?;
        let _no_deletions = self.locks.alone("gc", PATIENCE, call)?;
        let scratch = Scratch::beside(target)?;
        let copy = scratch.0.join("catalog.copy");
        let note = self.catalog.write_backup(&copy)?;
        let packs = list_packs(self.blocks.objects())?;
        let unfinished = scratch.0.join("backup");
        let bytes = self.write_backup(&unfinished, &copy, &note, &packs, call)?;
        fs::remove_file(&copy).map_err(writing(&copy))?;
        let report = verify(&unfinished, &scratch.0, call)?;
        // Somebody may have made a file of that name in the meantime.
        must_not_exist(target)?;
        fs::rename(&unfinished, target).map_err(writing(target))?;
        sync_folder(target.parent())?;
        Ok(BackupReport { bytes, ..report })
    }

    fn write_backup(
        &self,
        path: &Path,
        copy: &Path,
        note: &CopyNote,
        packs: &[Listed],
        call: &CallContext,
    ) -> Result<u64> {
        let failed = writing(path);
        let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path).map_err(&failed)?;
        let mut writer = Writer::begin(file).map_err(&failed)?;
        let mut catalog = File::open(copy).map_err(reading(copy))?;
        let length = catalog.metadata().map_err(reading(copy))?.len();
        writer.begin_section(Section::Catalog, "catalog", length).map_err(&failed)?;
        let mut piece = vec![0; PIECE as usize];
        loop {
            match catalog.read(&mut piece).map_err(reading(copy))? {
                0 => break,
                read => writer.write(&piece[..read]).map_err(&failed)?,
            }
        }
        writer.end_section().map_err(&failed)?;
        for (done, pack) in packs.iter().enumerate() {
            call.report(done as u64, Some(packs.len() as u64), "copying packs");
            writer.begin_section(Section::Pack, &pack.name, pack.size).map_err(&failed)?;
            each_piece(self.blocks.objects(), pack, call, |piece| writer.write(piece).map_err(&failed))?;
            writer.end_section().map_err(&failed)?;
        }
        let (file, bytes) = writer.finish(note.sequence, &note.seal).map_err(&failed)?;
        file.sync_all().map_err(&failed)?;
        Ok(bytes)
    }

    /// Makes a library in `folder` from a backup, with its packs where the options say. A library that is there is not
    /// touched.
    pub fn restore_backup(
        backup: &Path,
        folder: &Path,
        storage: &StorageSettings,
        call: &CallContext,
    ) -> Result<BackupReport> {
        File::open(backup).map_err(reading(backup))?;
        let (existed, was_used) =
            (folder.exists(), fs::read_dir(folder).is_ok_and(|mut found| found.next().is_some()));
        let restored = Self::restore_into(backup, folder, storage, call);
        if restored.is_err() && !was_used {
            // Of a backup that could not be restored nothing stays; what this did not make is not touched.
            let _ = fs::remove_dir_all(folder.join("locks"));
            if !existed {
                let _ = fs::remove_dir(folder);
            }
        }
        restored
    }

    fn restore_into(
        backup: &Path,
        folder: &Path,
        storage: &StorageSettings,
        call: &CallContext,
    ) -> Result<BackupReport> {
        make_folder(folder)?;
        let locks = Locks::new(Arc::new(FolderLocks::new(folder)));
        let Some(_alone) = locks.try_alone("restore")? else {
            return Err(Error::Busy(format!(
                "another process is restoring a library into {}",
                folder.display()
            )));
        };
        let stage = folder.join(STAGE);
        let is_again = clear_interrupted(folder, &stage)?;
        if Self::is_in(folder) {
            return Err(refused(
                format!("there is a library in {}; it was not touched", folder.display()),
                "restore into an empty folder: --data-dir DIR",
            ));
        }
        make_folder(&stage)?;
        let stage = Scratch(stage);
        let place = storage.objects.clone().unwrap_or(ObjectsPlace::Folder);
        let objects: Arc<dyn Objects> = match &place {
            ObjectsPlace::Folder => Arc::new(Folder::new(stage.0.join("packs"))),
            bucket => storage.open(folder, bucket)?,
        };
        if !is_again && !list_packs(&*objects)?.is_empty() {
            return Err(refused(
                format!("there are packs of another library in {place}; nothing was restored"),
                "choose another prefix in library.objects",
            ));
        }
        let report = unpack(backup, &stage.0, objects, call)?;
        note(folder, &place)?;
        // The catalog comes last: packs without a catalog are refused, not taken for an empty library.
        for name in ["packs", "catalog.db-wal", "catalog.db"] {
            let from = stage.0.join(name);
            if from.exists() {
                fs::rename(&from, folder.join(name)).map_err(writing(&folder.join(name)))?;
            }
        }
        sync_folder(Some(folder))?;
        Ok(report)
    }
}

/// Removes what a restore left that was killed, including packs that it had already put in place; whether there was one.
fn clear_interrupted(folder: &Path, stage: &Path) -> Result<bool> {
    if !stage.exists() || folder.join("catalog.db").exists() {
        return Ok(false);
    }
    note(folder, &ObjectsPlace::Folder)?;
    for path in [folder.join("packs"), stage.to_owned()] {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(writing(&path)(error)),
            _ => {}
        }
    }
    Ok(true)
}

/// Reads a backup to its end, comparing its hashes, and checks the library in it.
fn verify(backup: &Path, scratch: &Path, call: &CallContext) -> Result<BackupReport> {
    let mut packs = BTreeMap::new();
    let copy = scratch.join("catalog.copy");
    let summary = each_section(backup, &copy, call, |reader, pack| {
        packs.insert(pack.name.clone(), (pack.offset, pack.length));
        reader.content(pack, |_| Ok(()))
    })?;
    let objects = Contents::open(backup, packs).map_err(reading(backup))?;
    check(backup, scratch, Arc::new(objects), &summary, call)
}

/// Puts the packs of a backup into `objects` and its catalog into a folder, comparing its hashes, and checks the library.
fn unpack(
    backup: &Path,
    stage: &Path,
    objects: Arc<dyn Objects>,
    call: &CallContext,
) -> Result<BackupReport> {
    let summary = each_section(backup, &stage.join("catalog.copy"), call, |reader, pack| {
        let mut bytes = Vec::new();
        reader.content(pack, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        let failed =
            |source| shelf_blocks::Error::Storage { action: "write", object: pack.name.clone(), source };
        Ok(objects.put(&pack.name, &[&bytes]).map_err(failed)?)
    })?;
    check(backup, stage, objects, &summary, call)
}

/// Goes through a backup: the catalog goes to the file `copy`, and every pack to `take`, which reads its content.
fn each_section(
    backup: &Path,
    copy: &Path,
    call: &CallContext,
    mut take: impl FnMut(&mut Reader, &Found) -> Result<()>,
) -> Result<Summary> {
    let mut reader = Reader::open(backup)?;
    let mut packs = 0;
    loop {
        call.check()?;
        match reader.next()? {
            Err(summary) => return Ok(summary),
            Ok(found) if found.section == Section::Catalog => {
                let open = OpenOptions::new().create_new(true).write(true).mode(0o600).open(copy);
                let mut file = open.map_err(writing(copy))?;
                reader.content(&found, |piece| file.write_all(piece).map_err(writing(copy)))?;
            }
            Ok(found) => {
                call.report(packs, None, "reading the backup");
                packs += 1;
                take(&mut reader, &found)?;
            }
        }
    }
}

/// Rebuilds the catalog in `folder` from its copy there, and checks the whole library.
fn check(
    backup: &Path,
    folder: &Path,
    objects: Arc<dyn Objects>,
    summary: &Summary,
    call: &CallContext,
) -> Result<BackupReport> {
    let copy = folder.join("catalog.copy");
    let unusable = |what: String| Error::Backup {
        what: format!("the backup '{}' cannot be used: {what}", backup.display()),
        kind: Kind::Corrupt,
        hint: "run `shelf check` on the library that it was made from".into(),
    };
    let note = CopyNote::read(&copy)?.ok_or_else(|| unusable("it has no catalog".into()))?;
    if (note.sequence, note.seal) != (summary.sequence, summary.seal) {
        return Err(unusable("its catalog is not the one that its end names".into()));
    }
    call.report(0, None, "rebuilding the catalog");
    SqliteCatalog::rebuild(folder, &copy, SystemClock.now(), short_blocks, || Ok(()))?;
    fs::remove_file(&copy).map_err(writing(&copy))?;
    let catalog = Arc::new(SqliteCatalog::open(folder)?);
    let ports = Ports { catalog, objects, coordination: Arc::new(MemoryLocks::default()) };
    let library = Library::over(folder, ports, Arc::new(SystemClock), Options::default())?;
    let CheckReport { findings, packs, blobs, versions, snapshots, .. } = library.check(call)?;
    match findings.first() {
        None => {
            let bytes = fs::metadata(backup).map_err(reading(backup))?.len();
            Ok(BackupReport { sequence: note.sequence, packs, bytes, contents: blobs, versions, snapshots })
        }
        Some(first) => Err(unusable(format!(
            "{} things in it are damaged, the first in {}: {}",
            findings.len(),
            first.place,
            first.what
        ))),
    }
}

/// All packs, in the order of their names.
pub(super) fn list_packs(objects: &dyn Objects) -> Result<Vec<Listed>> {
    let mut packs = Vec::new();
    for page in pages(objects) {
        let failed = |source| shelf_blocks::Error::Storage { action: "list", object: "packs".into(), source };
        packs.extend(page.map_err(failed)?.into_iter().filter(|found| found.name.ends_with(".pack")));
    }
    Ok(packs)
}

/// Reads a pack from the beginning to the end.
fn each_piece(
    objects: &dyn Objects,
    pack: &Listed,
    call: &CallContext,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut offset = 0;
    while offset < pack.size {
        call.check()?;
        let length = (pack.size - offset).min(PIECE);
        let range = ByteRange { offset, length: length as usize };
        let failed =
            |source| shelf_blocks::Error::Storage { action: "read", object: pack.name.clone(), source };
        let read = objects.read(&pack.name, &[range]).map_err(failed)?;
        read.iter().try_for_each(|piece| take(piece))?;
        offset += length;
    }
    Ok(())
}

/// A folder that is removed with all that is in it when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    /// A hidden folder beside a file that is going to be made: on the same disk, so that it can be moved there.
    fn beside(target: &Path) -> Result<Self> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{name}.{}.part", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).map_err(writing(&path))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn must_not_exist(target: &Path) -> Result<()> {
    match fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(writing(target)(error)),
        Ok(_) => Err(refused(
            format!("{} is there already; it was not touched", target.display()),
            "give the backup another name, such as one with the date",
        )),
    }
}

fn refused(what: String, hint: &str) -> Error {
    Error::Backup { what, kind: Kind::Conflict, hint: hint.into() }
}

fn make_folder(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(writing(path))
}

fn sync_folder(folder: Option<&Path>) -> Result<()> {
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(writing(folder))
}

fn reading(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    move |source| Error::reading(path.clone(), source)
}

fn writing(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.display().to_string();
    move |source| Error::writing(path.clone(), source)
}
