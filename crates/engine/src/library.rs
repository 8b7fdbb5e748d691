//! One open library.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use shelf_accounts::Pass;
use shelf_base::{CallContext, Clock, Coordination, Digest, ErrorInfo, Kind, Moment, SystemClock};
use shelf_blocks::{Store, objects::Objects};
use shelf_catalog::Catalog;
use shelf_fetch::UnderWay;
use shelf_workspace::Workspace;

use crate::{
    Error, Result,
    accounts::TokenUse,
    blobs::Blobs,
    books::BookPaths,
    budget::Budget,
    catalog_place::{self, CatalogAddress},
    citations::{EvidenceStore, MapCache},
    commit::Folding,
    download::DownloadSettings,
    indexing::{Deepen, EndpointSettings, Indexing},
    locks::Locks,
    maintain::{Copying, Reserve},
    readings::Readings,
    remembered::Remembered,
    retired::{RetiredPacks, SharedPacks},
    signing,
    status::Counted,
    storage::{ObjectsPlace, StorageSettings},
    workspace::{self, WorkspaceSettings},
};

/// Where the library may read and write files on behalf of callers who are not the OS user.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folders that `add` may read from over HTTP.
    pub import_roots: Vec<PathBuf>,
    /// Folders that `get` and `restore` may write to over HTTP.
    pub export_roots: Vec<PathBuf>,
    /// The workspace whose files and memory agents may use.
    pub workspace: Option<WorkspaceSettings>,
    /// A model elsewhere that collections may be searched with.
    pub embedding: Option<EndpointSettings>,
    /// When vectors are made anew by the deep model.
    pub deepen: Deepen,
    /// Whether nobody may register by himself.
    pub registration_closed: bool,
    /// What downloads may do.
    pub download: DownloadSettings,
    /// Where addresses in replies lead, and how long they work.
    pub links: LinkSettings,
    /// The database that holds the catalog; the library's own folder does when it is not given.
    pub catalog: Option<CatalogAddress>,
    /// Where the packs are kept.
    pub storage: StorageSettings,
    /// The program that draws pages when it is asked with [`crate::DRAW_COMMAND`]; this process does when it is not given.
    pub page_program: Option<PathBuf>,
}

impl Options {
    /// Whether part of the library in `folder` is reached over a network.
    pub fn is_remote(&self, folder: &Path) -> bool {
        self.catalog.is_some() || !matches!(self.storage.place(folder), Ok(ObjectsPlace::Folder))
    }
}

/// Addresses in replies: where they lead, and how long they work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// The address under which callers reach this server, without a slash at its end; the one they used when not given.
    pub public_url: Option<String>,
    /// Where else the assets of books are served, without a slash at its end.
    pub cdn_base_url: Option<String>,
    /// Bytes of one upload at most.
    pub upload_bytes: u64,
    /// Seconds that addresses of uploads and archives work.
    pub seconds: u64,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self { public_url: None, cdn_base_url: None, upload_bytes: 5 << 30, seconds: 3_600 }
    }
}

/// Which files of the machine a caller reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// Whatever the OS user may: stdio and the command line.
    OperatingSystem,
    /// The configured roots only: HTTP.
    Configured,
}

/// What a library stands on.
pub struct Ports {
    /// The catalog.
    pub catalog: Arc<dyn Catalog>,
    /// The packs.
    pub objects: Arc<dyn Objects>,
    /// The locks.
    pub coordination: Arc<dyn Coordination>,
}

/// For how long nobody has asked for anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Some seconds: only what comes again at once is given back.
    Short,
    /// A minute: whatever can be had again.
    Long,
}

/// Who asks, and what of the machine it reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The checked identity.
    pub pass: Pass,
    /// The reach.
    pub file_access: FileAccess,
    /// The address under which it reached the server, without a slash at its end; `None` on stdio.
    pub base_url: Option<Arc<str>>,
}

impl Caller {
    /// The owner of the data directory, at the machine itself.
    pub const fn owner() -> Self {
        Self { pass: Pass::owner(), file_access: FileAccess::OperatingSystem, base_url: None }
    }

    pub(crate) fn must_read(&self) -> Result<()> {
        if self.pass.may_read() { Ok(()) } else { Err(denied("read")) }
    }

    pub(crate) fn must_write(&self) -> Result<()> {
        if self.pass.may_write() { Ok(()) } else { Err(denied("write")) }
    }
}

/// 32 random bytes.
pub(crate) fn random() -> Result<[u8; 32]> {
    let mut fresh = [0; 32];
    getrandom::fill(&mut fresh)
        .map_err(|_| Error::Lock(io::Error::other("the system gave no random bytes")))?;
    Ok(fresh)
}

/// Secrets of the library that readers need: of cursors, of nodes of the graph, and of addresses.
const READING_SECRETS: [&str; 4] = ["cursor", "graph", signing::CURRENT, signing::FORMER];

/// Whether a secret cannot be kept: nothing may be written, or there is no room for it.
fn cannot_keep(error: &shelf_catalog::Error) -> bool {
    matches!(error, shelf_catalog::Error::ReadOnly) || error.kind() == Kind::StorageFull
}

fn denied(access: &str) -> Error {
    Error::Denied(format!("Insufficient permissions: {access} access required"))
}

/// Folders of the data directory that other users have no business in. One that was made with a looser mode is mended.
fn keep_to_the_owner(folder: &Path) -> Result<()> {
    for name in [
        "packs",
        "index",
        "locks",
        "recovery",
        "memory",
        "downloads",
        "uploads",
        "archives",
        "exports",
        "evidence",
        "cache",
        "serving",
    ] {
        let path = folder.join(name);
        let is_loose = |facts: &fs::Metadata| facts.is_dir() && facts.permissions().mode() & 0o077 != 0;
        if fs::symlink_metadata(&path).is_ok_and(|facts| is_loose(&facts)) {
            match fs::set_permissions(&path, fs::Permissions::from_mode(0o700)) {
                // Somebody else's library, which this user may only read.
                Err(error) if is_refusal(&error) => {}
                outcome => outcome.map_err(|source| Error::File {
                    action: "cannot keep other users out of",
                    path: path.display().to_string(),
                    source,
                })?,
            }
        }
    }
    Ok(())
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// An open library.
pub struct Library {
    pub(crate) catalog: Arc<dyn Catalog>,
    pub(crate) blocks: Arc<Store>,
    pub(crate) blobs: Blobs,
    pub(crate) indexing: Arc<Indexing>,
    pub(crate) workspace: Option<Workspace>,
    pub(crate) token_use: TokenUse,
    pub(crate) locks: Locks,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    pub(crate) folding: Folding,
    pub(crate) copying: Copying,
    pub(crate) reserve: Reserve,
    pub(crate) budget: Budget,
    pub(crate) under_way: UnderWay,
    pub(crate) figures: Mutex<Option<Counted>>,
    pub(crate) remembered: Remembered,
    pub(crate) cursor_key: OnceLock<[u8; 32]>,
    local_secret: OnceLock<[u8; 32]>,
    pub(crate) archiving: Mutex<()>,
    pub(crate) book_paths: BookPaths,
    pub(crate) maps: MapCache,
    pub(crate) evidence: EvidenceStore,
    /// Where the packs were when the library was opened.
    pub(crate) place: ObjectsPlace,
    pub(crate) folder: PathBuf,
}

impl Library {
    /// Opens the library in `folder`, making it when it is not there. One whose catalog has lost records is refused: what
    /// would be written to it could not be joined with what it has lost.
    pub fn open(folder: &Path, options: Options) -> Result<Self> {
        let library = Self::open_anyway(folder, options)?;
        match library.lost_records()? {
            None => {
                library.import_registry();
                library.make_reading_secrets();
                Ok(library)
            }
            Some(what) => Err(Error::Unavailable {
                what: format!("the journal of this library is not whole: {what}"),
                hint: format!("{}; `shelf check` tells more", library.way_back()),
            }),
        }
    }

    /// Whether `folder` holds a library, whatever its state.
    pub fn is_in(folder: &Path) -> bool {
        let parts = ["catalog.db", "catalog.address", "packs", "recovery", "objects"];
        parts.iter().any(|name| folder.join(name).exists())
    }

    /// Opens a library whatever its state: for those who look at it or mend it.
    pub fn open_anyway(folder: &Path, options: Options) -> Result<Self> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| Error::File {
            action: "cannot make the data directory",
            path: folder.display().to_string(),
            source,
        })?;
        keep_to_the_owner(folder)?;
        let database =
            options.catalog.as_ref().map(|address| catalog_place::reach(folder, address)).transpose()?;
        let place = match &database {
            Some(catalog) => options.storage.shared_place(folder, catalog)?,
            None => options.storage.place(folder)?,
        };
        let objects = options.storage.open(folder, &place)?;
        let (catalog, coordination) = match database {
            Some(catalog) => catalog_place::settle(folder, &*objects, catalog)?,
            None => catalog_place::open(folder, &*objects, None)?,
        };
        let ports = Ports { catalog, objects, coordination };
        let mut library = Self::over(folder, ports, Arc::new(SystemClock), options)?;
        library.settle(place)?;
        // Machines that share a catalog have nothing else in common than the bucket.
        if library.catalog.is_shared()
            && let Some(objects) = library.options.storage.open_index(&library.place)?
        {
            library.share_index(objects);
        }
        library.locks = library.locks.clone().watching(folder, library.place.clone());
        Ok(library)
    }

    /// Opens the library in `folder` with its packs in `objects`, by another clock: for other storage and for tests.
    pub fn with(
        folder: &Path,
        objects: Arc<dyn Objects>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self> {
        let (catalog, coordination) = catalog_place::open(folder, &*objects, options.catalog.as_ref())?;
        let ports = Ports { catalog, objects, coordination };
        Self::over(folder, ports, clock, options)
    }

    /// Opens the library that lies behind these ports, with what is derived from it in `folder`.
    pub fn over(folder: &Path, ports: Ports, clock: Arc<dyn Clock>, options: Options) -> Result<Self> {
        let Ports { catalog, objects, coordination } = ports;
        let mut locks = Locks::new(coordination.clone());
        let mut objects = objects;
        if catalog.is_shared() {
            let retired = RetiredPacks::default();
            locks = locks.heeding(retired.clone(), catalog.clone());
            objects = Arc::new(SharedPacks { inner: objects, catalog: catalog.clone(), retired });
        }
        let blocks = Arc::new(Store::new(objects));
        let blobs = Blobs {
            catalog: catalog.clone(),
            blocks: blocks.clone(),
            manifests: Arc::default(),
            texts: Arc::default(),
            readings: Arc::new(Readings::in_folder(&folder.join("index"))),
        };
        Ok(Self {
            catalog,
            blocks,
            indexing: Arc::new(Indexing::new(
                folder.join("index"),
                blobs.clone(),
                options.embedding.clone(),
                options.deepen,
                coordination,
            )?),
            blobs,
            workspace: options.workspace.as_ref().map(workspace::open).transpose()?,
            token_use: TokenUse::default(),
            locks,
            clock,
            options,
            folding: Folding::default(),
            copying: Copying::default(),
            reserve: Reserve::in_folder(folder),
            budget: Budget::default(),
            under_way: UnderWay::default(),
            figures: Mutex::default(),
            remembered: Remembered::default(),
            cursor_key: OnceLock::new(),
            local_secret: OnceLock::new(),
            archiving: Mutex::default(),
            book_paths: BookPaths::default(),
            maps: MapCache::default(),
            evidence: EvidenceStore::in_folder(
                &std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()).join("evidence"),
            ),
            place: ObjectsPlace::Folder,
            folder: folder.to_owned(),
        })
    }

    /// Whether its catalog lies on another machine, so that every question to it takes a while.
    pub fn is_shared(&self) -> bool {
        self.catalog.is_shared()
    }

    /// The data directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The present moment by the clock of the library.
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// The last sequence number of the journal.
    pub fn sequence(&self) -> Result<u64> {
        Ok(self.catalog.sequence()?)
    }

    /// A 32-byte secret of this library, for signing what goes out and must come back unchanged.
    pub(crate) fn secret(&self, name: &str) -> Result<[u8; 32]> {
        let fresh = random()?;
        match self.catalog.secret(name, fresh) {
            // A library that cannot be written keeps no secret: one of this process's own does for as long as it runs.
            Err(error) if cannot_keep(&error) => {
                let own = self.local_secret.get_or_init(|| fresh);
                Ok(*Digest::of(&[&own[..], name.as_bytes()].concat()).as_bytes())
            }
            outcome => Ok(outcome?),
        }
    }

    /// Makes the secrets that readers need, so that reading never has to write. Whatever hinders that is met again, and
    /// reported, by what has to be written.
    pub(crate) fn make_reading_secrets(&self) {
        for name in READING_SECRETS {
            if let Err(error) = self.secret(name) {
                tracing::debug!(%error, name, "a secret could not be made in advance");
            }
        }
    }

    /// A task that one process at a time should do for this library; `None` while another does it.
    pub fn try_lease(&self, name: &str) -> Result<Option<shelf_base::Held>> {
        self.locks.try_alone(name)
    }

    /// What keeps the library from taking a write now, if anything does.
    pub fn hindrance(&self) -> Option<String> {
        for backend in self.backends() {
            if let Err(what) = backend.answer {
                return Some(format!("{}: {what}", backend.name));
            }
        }
        if self.reserve.is_disk_full() {
            return Some("the disk is full: reads work, writes fail".into());
        }
        let soon = CallContext::new().within(std::time::Duration::from_millis(50));
        match self.locks.write(&soon) {
            Ok(_) => None,
            Err(error) if matches!(error.kind(), Kind::Busy | Kind::TimedOut) => {
                Some("garbage collection keeps writers waiting".into())
            }
            // Where they are now is nobody's business who only asks whether this server is ready.
            Err(Error::Unavailable { .. }) => {
                Some("the packs of this library have been moved: restart this server".into())
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// Gives back memory: what was kept is read or made again when it is needed.
    pub fn release_memory(&self, idle: Idle) {
        self.followers().for_each(|follower| follower.release_memory(idle));
        self.blobs.texts.shrink();
        if idle == Idle::Long {
            self.blobs.texts.clear();
            self.blobs.readings.release_memory();
            self.maps.clear();
            self.book_paths.clear();
            self.remembered.clear();
            *self.figures.lock() = None;
            self.blobs.manifests.clear();
            self.blocks.release_memory();
            self.catalog.release_memory();
        }
    }
}
