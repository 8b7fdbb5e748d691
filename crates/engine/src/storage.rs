//! Where a library keeps its packs: in its own folder, or in a bucket with copies on this machine.
//!
//! A library whose packs are in a bucket says so in the file `objects` of its data directory. Whoever opens it finds them
//! there, and nobody begins a second set of packs by forgetting a setting.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use shelf_base::{Digest, ErrorInfo, Secret};
pub use shelf_blocks::objects::BucketSettings;
use shelf_blocks::objects::{Bucket, ByteRange, Cached, Folder, Objects, pages};

use crate::{Error, Library, Result};

/// The file that names the bucket.
const NOTE: &str = "objects";
/// The folder of index segments in a bucket, beside that of the packs.
const INDEX_FOLDER: &str = "index";
/// The object that says which library a bucket, or a prefix in it, belongs to.
const OWNER: &str = "library.id";

/// Where packs are kept.
#[derive(Clone, Debug)]
pub struct StorageSettings {
    /// The place that was asked for; `None` for the one that the library has.
    pub objects: Option<ObjectsPlace>,
    /// How a bucket is reached.
    pub access: BucketAccess,
    /// Where copies of what is in a bucket are kept; `None` for the folder `cache` in the data directory.
    pub cache: Option<PathBuf>,
    /// Bytes of copies at most.
    pub cache_bytes: u64,
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self { objects: None, access: BucketAccess::default(), cache: None, cache_bytes: 4 << 30 }
    }
}

/// A place for packs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectsPlace {
    /// The folder `packs` of the data directory.
    Folder,
    /// A bucket, and a prefix in it.
    Bucket(String, String),
}

impl ObjectsPlace {
    /// Reads `folder` or `s3://bucket/prefix`; `None` when the text is neither.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "folder" {
            return Some(Self::Folder);
        }
        BucketSettings::parse(text).map(|found| Self::Bucket(found.bucket, found.prefix))
    }
}

impl std::fmt::Display for ObjectsPlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder => formatter.write_str("folder"),
            Self::Bucket(bucket, prefix) => BucketSettings::new(bucket, prefix).fmt(formatter),
        }
    }
}

/// How a bucket is reached: what programs for S3 take from their environment.
#[derive(Clone, Debug, Default)]
pub struct BucketAccess {
    /// The address of the store; `None` for that of the region.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// Key and secret.
    pub keys: Option<(String, Secret)>,
    /// The token that belongs to temporary keys.
    pub session_token: Option<Secret>,
}

/// One of the stores that a library stands on.
#[derive(Clone, Debug)]
pub struct Backend {
    /// `catalog` or `objects`.
    pub name: &'static str,
    /// Where it is.
    pub place: String,
    /// How long it took to answer, or why it did not.
    pub answer: std::result::Result<Duration, String>,
}

impl StorageSettings {
    /// The place of the packs of the library in `folder`.
    pub(crate) fn place(&self, folder: &Path) -> Result<ObjectsPlace> {
        let noted = noted(folder)?;
        match (&self.objects, noted) {
            (None, noted) => Ok(noted.unwrap_or(ObjectsPlace::Folder)),
            (Some(asked), Some(noted)) if *asked != noted => Err(elsewhere(&noted, asked)),
            (Some(asked @ ObjectsPlace::Bucket(..)), None)
                if has_packs(&Folder::new(folder.join("packs"))) =>
            {
                Err(elsewhere(&ObjectsPlace::Folder, asked))
            }
            (Some(asked), _) => Ok(asked.clone()),
        }
    }

    /// The packs at a place, with copies on this machine when it is a bucket.
    pub(crate) fn open(&self, folder: &Path, place: &ObjectsPlace) -> Result<Arc<dyn Objects>> {
        let ObjectsPlace::Bucket(bucket, prefix) = place else {
            return Ok(Arc::new(Folder::new(folder.join("packs"))));
        };
        let bucket = self.bucket(BucketSettings::new(bucket, prefix))?;
        let cache = self.cache.clone().unwrap_or_else(|| folder.join("cache"));
        Ok(Arc::new(Cached::new(Arc::new(bucket), cache.join("packs"), self.cache_bytes)))
    }

    /// Where machines that share a catalog and a bucket find each other's index segments; `None` for a folder.
    pub(crate) fn open_index(&self, place: &ObjectsPlace) -> Result<Option<Arc<dyn Objects>>> {
        let ObjectsPlace::Bucket(bucket, prefix) = place else { return Ok(None) };
        let settings = BucketSettings { folder: INDEX_FOLDER, ..BucketSettings::new(bucket, prefix) };
        Ok(Some(Arc::new(self.bucket(settings)?)))
    }

    fn bucket(&self, settings: BucketSettings) -> Result<Bucket> {
        let BucketAccess { endpoint, region, keys, session_token } = self.access.clone();
        let settings = BucketSettings { endpoint, region, keys, session_token, ..settings };
        Bucket::new(&settings).map_err(|error| Error::Unavailable {
            what: format!("{settings} cannot be used: {error}"),
            hint: "check library.objects, AWS_ENDPOINT_URL and AWS_REGION".into(),
        })
    }
}

fn elsewhere(stored: &ObjectsPlace, asked: &ObjectsPlace) -> Error {
    let stored = match stored {
        ObjectsPlace::Folder => "its own folder".to_owned(),
        bucket => bucket.to_string(),
    };
    Error::Unavailable {
        what: format!("the packs of this library are in {stored}, not in {asked}"),
        hint: format!("leave library.objects empty, or move the packs first: `shelf migrate --to {asked}`"),
    }
}

/// Whether there are packs in a place that can be looked at.
pub(crate) fn has_packs(objects: &dyn Objects) -> bool {
    pages(objects).map_while(io::Result::ok).flatten().any(|object| object.name.ends_with(".pack"))
}

/// The bucket that the library says its packs are in.
pub(crate) fn noted(folder: &Path) -> Result<Option<ObjectsPlace>> {
    let path = folder.join(NOTE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::reading(path.display().to_string(), error)),
    };
    match ObjectsPlace::parse(text.trim()) {
        Some(place) => Ok(Some(place)),
        None => Err(Error::Unavailable {
            what: format!("the file {} does not name a place for packs: '{}'", path.display(), text.trim()),
            hint: "it must say s3://bucket/prefix, or not be there".into(),
        }),
    }
}

/// Writes down where the packs are, durably.
pub(crate) fn note(folder: &Path, place: &ObjectsPlace) -> Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let path = folder.join(NOTE);
    let failed = |source| Error::writing(path.display().to_string(), source);
    if noted(folder)?.unwrap_or(ObjectsPlace::Folder) == *place {
        return Ok(());
    }
    if *place == ObjectsPlace::Folder {
        fs::remove_file(&path).map_err(failed)?;
    } else {
        let unfinished = folder.join(format!("{NOTE}.{}.part", std::process::id()));
        let mut options = fs::OpenOptions::new();
        let file = options.create(true).truncate(true).write(true).mode(0o600).open(&unfinished);
        let written = file.and_then(|mut file| {
            file.write_all(format!("{place}\n").as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&unfinished, &path)).map_err(failed)?;
    }
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

impl Library {
    /// Makes a bucket this library's own. Two libraries in one place would take each other's packs for unneeded.
    pub(crate) fn claim(&self, objects: &dyn Objects, place: &ObjectsPlace) -> Result<()> {
        if *place == ObjectsPlace::Folder {
            return Ok(());
        }
        let id = Digest::of(&self.secret(OWNER)?).to_string();
        let failed =
            |action| move |source| shelf_blocks::Error::Storage { action, object: OWNER.into(), source };
        let owner = || objects.read(OWNER, &[ByteRange { offset: 0, length: id.len() }]);
        let found = match owner() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                objects.put(OWNER, &[id.as_bytes()]).map_err(failed("write"))?;
                owner().map_err(failed("read"))?
            }
            outcome => outcome.map_err(failed("read"))?,
        };
        if found.first().is_some_and(|found| found == id.as_bytes()) {
            return Ok(());
        }
        Err(Error::Unavailable {
            what: format!("{place} belongs to another library"),
            hint: "choose another prefix: two libraries cannot share one".into(),
        })
    }

    /// Where the packs are.
    pub fn objects_place(&self) -> String {
        self.blocks.objects().describe()
    }

    /// Begins the counters of stores on a network at zero: whoever watches a node should see them before anything has failed.
    pub fn begin_counters(&self) {
        if self.catalog.is_shared() {
            shelf_catalog::postgres::begin_counters();
        }
        if self.blocks.objects().is_remote() {
            shelf_blocks::objects::begin_counters();
        }
        self.indexing.begin_counters();
    }

    /// Asks the stores that the library stands on whether they answer.
    pub fn backends(&self) -> Vec<Backend> {
        let timed = |ask: &dyn Fn() -> std::result::Result<(), String>| {
            let started = Instant::now();
            ask().map(|()| started.elapsed())
        };
        let told = |error: Error| {
            let hints = error.hints();
            hints.first().map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"))
        };
        let catalog = timed(&|| self.catalog.sequence().map(drop).map_err(|error| error.to_string()));
        let objects = timed(&|| self.ping_objects().map_err(told));
        vec![
            Backend { name: "catalog", place: self.catalog.place(), answer: catalog },
            Backend { name: "objects", place: self.objects_place(), answer: objects },
        ]
    }

    fn ping_objects(&self) -> Result<()> {
        let failed =
            |source| shelf_blocks::Error::Storage { action: "reach", object: "the packs".into(), source };
        Ok(self.blocks.objects().ping().map_err(failed)?)
    }
}
