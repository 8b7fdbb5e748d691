//! Where a library keeps its packs: in its own folder, or in a bucket with copies on this machine.
//!
//! A library whose packs are in a bucket says so in the file `objects` of its data directory. Whoever opens it finds them
//! there, and nobody begins a second set of packs by forgetting a setting. Where several machines share the catalog, it is
//! the catalog that says so: a machine whose setting says something else is refused before it has written anything, and one
//! whose own note is older follows.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use shelf_base::{Digest, ErrorInfo, Fence, Secret};
pub use shelf_blocks::objects::BucketSettings;
use shelf_blocks::objects::{Bucket, ByteRange, Cached, Folder, Objects, pages};
use shelf_catalog::Catalog;

use crate::{Error, Library, Result};

/// The file that names the bucket.
const NOTE: &str = "objects";
/// The folder of index segments in a bucket, beside that of the packs.
const INDEX_FOLDER: &str = "index";
/// The object that says which library a bucket, or a prefix in it, belongs to.
const OWNER: &str = "library.id";
/// What precedes the id in that object when the library has been moved away.
const MOVED: &str = "moved ";
/// Bytes of that object at most.
const MOST_OWNER_BYTES: u64 = 1_000;

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
    /// Whether the machine has no role in its cloud that would give it keys.
    pub without_role: bool,
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

    /// The place of the packs of a library whose catalog several machines share; what the catalog says counts more than
    /// what this machine has noted.
    pub(crate) fn shared_place(&self, folder: &Path, catalog: &dyn Catalog) -> Result<ObjectsPlace> {
        let Some(stored) = catalog.standing()?.objects else { return self.place(folder) };
        let stored = read_place(&stored, || "what the catalog says of it".into())?;
        match &self.objects {
            Some(asked) if *asked != stored => Err(elsewhere(&stored, asked)),
            _ => Ok(stored),
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
        let BucketAccess { endpoint, region, keys, session_token, without_role } = self.access.clone();
        let settings = BucketSettings { endpoint, region, keys, session_token, without_role, ..settings };
        Bucket::new(&settings).map_err(|error| Error::Unavailable {
            what: format!("{settings} cannot be used: {error}"),
            hint: match error.kind() {
                io::ErrorKind::PermissionDenied => "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".into(),
                _ => "check library.objects, AWS_ENDPOINT_URL and AWS_REGION".into(),
            },
        })
    }
}

fn elsewhere(stored: &ObjectsPlace, asked: &ObjectsPlace) -> Error {
    let shown = match stored {
        ObjectsPlace::Folder => "its own folder".to_owned(),
        bucket => bucket.to_string(),
    };
    Error::Unavailable {
        what: format!("the packs of this library are in {shown}, not in {asked}"),
        hint: format!(
            "set library.objects to {stored} or leave it empty, or move the packs first: `shelf migrate --to {asked}`"
        ),
    }
}

/// The catalog says that the packs are in a folder, and this machine knows them elsewhere: that folder is another one's.
fn in_another_folder(folder: &Path, here: &ObjectsPlace) -> Error {
    Error::Unavailable {
        what: format!("the packs of this library have been moved from {here} into the folder of a machine"),
        hint: format!(
            "use the library on that machine; if it is this one, because the move was interrupted at its end, delete {}",
            folder.join(NOTE).display()
        ),
    }
}

fn read_place(text: &str, source: impl FnOnce() -> String) -> Result<ObjectsPlace> {
    ObjectsPlace::parse(text.trim()).ok_or_else(|| Error::Unavailable {
        what: format!("{} does not name a place for packs: '{}'", source(), text.trim()),
        hint: "it must say s3://bucket/prefix, or not be there".into(),
    })
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
    read_place(&text, || format!("the file {}", path.display())).map(Some)
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

/// Whose a bucket is, or a prefix in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    This,
    /// This library, before it was moved away.
    ThisBefore,
    Another,
}

impl Library {
    /// Settles where the packs of a library are that was just opened with them at `place`, and writes it down.
    pub(crate) fn settle(&mut self, place: ObjectsPlace) -> Result<()> {
        if self.catalog.is_shared() {
            self.settle_shared(&place)?;
        } else if place != ObjectsPlace::Folder && noted(&self.folder)?.is_none() {
            self.claim(self.blocks.truth(), &place)?;
        }
        note(&self.folder, &place)?;
        self.place = place;
        Ok(())
    }

    /// The catalog says where the packs are. The first who opens an empty library decides; a library from before the
    /// catalog said so is known by the object that names its owner.
    fn settle_shared(&self, place: &ObjectsPlace) -> Result<()> {
        // In this order: whoever finds the journal empty afterwards looks at a note that is at least as new.
        let is_new = self.catalog.sequence()? == 0;
        let is_noted = self.catalog.standing()?.objects.is_some();
        let here = noted(&self.folder)?.unwrap_or(ObjectsPlace::Folder);
        match place {
            ObjectsPlace::Folder if here != *place => return Err(in_another_folder(&self.folder, &here)),
            ObjectsPlace::Folder => {}
            ObjectsPlace::Bucket(..) if is_noted && here == *place => {}
            ObjectsPlace::Bucket(..) if is_new => self.claim(self.blocks.truth(), place)?,
            ObjectsPlace::Bucket(..) => self.must_be_owner(place)?,
        }
        if is_noted {
            return Ok(());
        }
        let noted = match self.catalog.claim_objects(&place.to_string()) {
            // Who only reads does not decide it.
            Err(shelf_catalog::Error::ReadOnly) => return Ok(()),
            outcome => outcome?,
        };
        let noted = read_place(&noted, || "what the catalog says of it".into())?;
        if noted == *place { Ok(()) } else { Err(elsewhere(&noted, place)) }
    }

    /// Makes a bucket this library's own. Two libraries in one place would take each other's packs for unneeded.
    pub(crate) fn claim(&self, objects: &dyn Objects, place: &ObjectsPlace) -> Result<()> {
        if *place == ObjectsPlace::Folder {
            return Ok(());
        }
        if matches!(self.owner(objects)?, Owner::Nobody | Owner::ThisBefore) {
            let id = self.owner_id()?;
            objects.put(OWNER, &[id.as_bytes()]).map_err(of_owner("write"))?;
        }
        match self.owner(objects)? {
            Owner::This => Ok(()),
            _ => Err(Error::Unavailable {
                what: format!("{place} belongs to another library"),
                hint: "choose another prefix: two libraries cannot share one".into(),
            }),
        }
    }

    /// Refuses a bucket that does not say that it is this library's: what is written there the other machines never find.
    fn must_be_owner(&self, place: &ObjectsPlace) -> Result<()> {
        let what = match self.owner(self.blocks.truth())? {
            Owner::This => return Ok(()),
            Owner::Nobody => format!("{place} holds nothing of this library"),
            Owner::ThisBefore => format!("the packs of this library have been moved away from {place}"),
            Owner::Another => format!("{place} belongs to another library"),
        };
        Err(Error::Unavailable {
            what,
            hint: "check library.objects and AWS_ENDPOINT_URL: they must be those of the machines that use the library; \
                   nothing was written"
                .into(),
        })
    }

    fn owner(&self, objects: &dyn Objects) -> Result<Owner> {
        let length = match objects.length(OWNER) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Owner::Nobody),
            outcome => outcome.map_err(of_owner("read"))?.min(MOST_OWNER_BYTES),
        };
        let whole = ByteRange { offset: 0, length: length as usize };
        let found = objects.read(OWNER, &[whole]).map_err(of_owner("read"))?.concat();
        let found = String::from_utf8_lossy(&found);
        let id = self.owner_id()?;
        Ok(match found.strip_prefix(MOVED) {
            _ if found.starts_with(&id) => Owner::This,
            Some(before) if before.starts_with(&id) => Owner::ThisBefore,
            _ => Owner::Another,
        })
    }

    fn owner_id(&self) -> Result<String> {
        Ok(Digest::of(&self.secret(OWNER)?).to_string())
    }

    /// Notes for all who use the library that its packs are at `to` now, as was brought about under this lock.
    pub(crate) fn moved_to(&self, to: &ObjectsPlace, fence: Option<&Fence>) -> Result<()> {
        if self.catalog.is_shared() {
            self.catalog.move_objects(&to.to_string(), fence)?;
        }
        note(&self.folder, to)
    }

    /// Says at the old place where the library has gone, for programs that look there only. Nothing depends on it, and an old
    /// place may be one that takes no writes any more.
    pub(crate) fn say_moved(&self, to: &ObjectsPlace) -> Result<()> {
        if self.place == ObjectsPlace::Folder {
            return Ok(());
        }
        let text = format!("{MOVED}{}\nto {to}\n", self.owner_id()?);
        if let Err(error) = self.blocks.truth().put(OWNER, &[text.as_bytes()]) {
            tracing::warn!(%error, place = %self.place, "the old place does not say that the library has moved");
        }
        Ok(())
    }

    /// Empties the old place of all that is this library's: packs, index segments, and the object that names the owner.
    pub(crate) fn empty_old_place(&self) -> Result<()> {
        if let Some(index) = self.options.storage.open_index(&self.place)?.filter(|_| self.is_shared()) {
            delete_all(&*index, |_| true)?;
        }
        delete_all(self.blocks.objects(), |name| name.ends_with(".pack") || name == OWNER)
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
        let catalog = timed(&|| self.catalog.ping().map_err(|error| error.to_string()));
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

fn of_owner(action: &'static str) -> impl Fn(io::Error) -> shelf_blocks::Error {
    move |source| shelf_blocks::Error::Storage { action, object: OWNER.into(), source }
}

fn delete_all(objects: &dyn Objects, is_ours: impl Fn(&str) -> bool) -> Result<()> {
    let failed = |object: &str| {
        let object = object.to_owned();
        move |source| shelf_blocks::Error::Storage { action: "delete", object, source }
    };
    for page in pages(objects) {
        for found in page.map_err(failed("the packs"))?.iter().filter(|found| is_ours(&found.name)) {
            objects.delete(&found.name).map_err(failed(&found.name))?;
        }
    }
    Ok(())
}
