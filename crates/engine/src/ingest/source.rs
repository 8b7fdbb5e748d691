//! Where added files come from: the OS user's own files, or a configured import root that nothing leads out of.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};
use rustix::fs::OFlags;
use shelf_base::Moment;

use crate::{Error, FileAccess, Library, Result, file_names::text_path};

/// What the file system says of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub size: u64,
    pub modified_at: Moment,
    pub mode: u32,
    pub stat: Option<[u8; 32]>,
    /// When the inode last changed, in nanoseconds.
    pub changed_nanos: i64,
}

impl Facts {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        let modified = nanos(metadata.mtime(), metadata.mtime_nsec());
        let changed = nanos(metadata.ctime(), metadata.ctime_nsec());
        let mut stat = [0; 32];
        stat[..8].copy_from_slice(&modified.to_le_bytes());
        stat[8..16].copy_from_slice(&changed.to_le_bytes());
        stat[16..24].copy_from_slice(&metadata.ino().to_le_bytes());
        stat[24..].copy_from_slice(&metadata.len().to_le_bytes());
        Self {
            size: metadata.len(),
            modified_at: Moment::from_nanos(modified),
            mode: known_mode(metadata.permissions().mode()),
            stat: Some(stat),
            changed_nanos: changed,
        }
    }

    /// Facts of content that came without a file.
    pub(crate) const fn of_content(size: u64, now: Moment) -> Self {
        Self { size, modified_at: now, mode: 0, stat: None, changed_nanos: 0 }
    }
}

/// The permission bits. None at all are marked as those of a regular file, since 0 means that nobody knows.
const fn known_mode(mode: u32) -> u32 {
    match mode & 0o7777 {
        0 => 0o100_000,
        bits => bits,
    }
}

/// A file or folder to be added.
pub(crate) struct Source {
    /// Absolute path, without `.` and `..`.
    pub path: PathBuf,
    folder: bool,
    /// The root that files are opened beneath, over HTTP.
    confined: Option<(PathBuf, Dir)>,
}

impl Source {
    pub(crate) fn open(library: &Library, file_access: FileAccess, path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        if path.as_os_str().is_empty() || shown.contains('\0') {
            return Err(Error::invalid("path", "must be the path of a file or folder"));
        }
        match file_access {
            FileAccess::OperatingSystem => {
                let failed = |source| Error::reading(&shown, source);
                let mut absolute = absolute(path).map_err(failed)?;
                // The text may stand for a name that is not Unicode.
                let meant = text_path(&shown);
                if meant != path && fs::symlink_metadata(&absolute).is_err() {
                    absolute = self::absolute(&meant).map_err(failed)?;
                }
                Self::at(absolute.clone(), &fs::metadata(&absolute).map_err(failed)?, None)
            }
            FileAccess::Configured => Self::beneath_a_root(library, path),
        }
    }

    fn at(path: PathBuf, metadata: &Metadata, confined: Option<(PathBuf, Dir)>) -> Result<Self> {
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(Error::invalid("path", "must be a regular file or a folder"));
        }
        Ok(Self { path, folder: metadata.is_dir(), confined })
    }

    /// Finds the root that holds `path`. Whether a file outside exists is not told: the answer is the same. What is missing
    /// within a root is said to be missing.
    fn beneath_a_root(library: &Library, path: &Path) -> Result<Self> {
        if library.options.import_roots.is_empty() {
            return Err(Error::Unavailable {
                what: "adding files of the server by path is off over HTTP".into(),
                hint: "send `content` and `name` instead, or set http.import_roots in shelf.toml".into(),
            });
        }
        let outside = || Error::Denied("path is outside the configured import roots".into());
        if path.components().any(|part| matches!(part, std::path::Component::ParentDir)) {
            return Err(outside());
        }
        let mut is_missing = false;
        for root in &library.options.import_roots {
            let Ok(real_root) = root.canonicalize() else { continue };
            let relative = if path.is_absolute() {
                match path.strip_prefix(root).or_else(|_| path.strip_prefix(&real_root)) {
                    Ok(relative) => relative,
                    Err(_) => continue,
                }
            } else {
                path
            };
            let Ok(folder) = Dir::open_ambient_dir(&real_root, ambient_authority()) else { continue };
            let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
            let real = match folder.canonicalize(relative) {
                Ok(real) => real,
                Err(error) => {
                    is_missing |=
                        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
                    continue;
                }
            };
            let full = if real == Path::new(".") { real_root.clone() } else { real_root.join(&real) };
            let metadata = opened(&folder, &real).map_err(|_| outside())?;
            return Self::at(full, &metadata, Some((real_root, folder)));
        }
        if is_missing {
            let shown = path.display().to_string();
            return Err(Error::reading(shown, rustix::io::Errno::NOENT.into()));
        }
        Err(outside())
    }

    pub(crate) const fn is_folder(&self) -> bool {
        self.folder
    }

    pub(crate) const fn is_confined(&self) -> bool {
        self.confined.is_some()
    }

    /// Opens a regular file at or below the source, never through a symbolic link out of a confined root.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<(File, Facts)> {
        let file = match &self.confined {
            None => OpenOptions::new().read(true).custom_flags(UNHURRIED).open(path)?,
            Some((root, folder)) => {
                let relative = path.strip_prefix(root).map_err(|_| io::ErrorKind::PermissionDenied)?;
                open_beneath(folder, relative)?
            }
        };
        let metadata = file.metadata()?;
        if metadata.is_file() {
            Ok((file, Facts::of(&metadata)))
        } else {
            Err(io::Error::other("not a regular file"))
        }
    }
}

fn opened(folder: &Dir, relative: &Path) -> io::Result<Metadata> {
    if relative == Path::new(".") || folder.metadata(relative)?.is_dir() {
        return folder.open_dir(relative)?.into_std_file().metadata();
    }
    open_beneath(folder, relative)?.metadata()
}

/// Opening a pipe without this flag waits for somebody to write to it; for a regular file it means nothing.
const UNHURRIED: i32 = OFlags::NONBLOCK.bits() as i32;

fn open_beneath(folder: &Dir, relative: &Path) -> io::Result<File> {
    use cap_std::fs::OpenOptionsExt as _;
    let mut options = cap_std::fs::OpenOptions::new();
    Ok(folder.open_with(relative, options.read(true).custom_flags(UNHURRIED))?.into_std())
}

/// An absolute path without `.` and `..`; links are followed only where `..` makes that necessary.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    if path.components().any(|part| matches!(part, std::path::Component::ParentDir)) {
        return path.canonicalize();
    }
    let full = std::path::absolute(path)?;
    Ok(full.components().collect())
}
