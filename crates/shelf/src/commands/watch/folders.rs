//! The folders that are watched. One of them may be moved away, replaced or not be there yet: it is followed again as soon
//! as it is back.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::mpsc::Sender,
};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use shelf_base::Kind;
use shelf_engine::Library;

use super::Signal;
use crate::outcome::{CliError, Outcome, reason};

/// A folder as the user named it, and where it is watched at present.
struct Folder {
    asked: PathBuf,
    followed: Option<Place>,
    /// Whether it was said that it cannot be followed.
    is_said: bool,
}

/// A folder that is watched: its path, and what it is, since another one may take its place.
#[derive(Clone, PartialEq, Eq)]
struct Place {
    path: PathBuf,
    device: u64,
    number: u64,
}

/// The folders and what the system reports of them.
pub(super) struct Watched<'a> {
    watcher: RecommendedWatcher,
    folders: Vec<Folder>,
    library: &'a Library,
}

impl<'a> Watched<'a> {
    /// Nothing is watched until the first `renew`.
    pub(super) fn new(folders: &[PathBuf], library: &'a Library, sender: &Sender<Signal>) -> Outcome<Self> {
        let (sender, own) = (sender.clone(), library.folder().to_owned());
        let told = move |event: notify::Result<notify::Event>| {
            let signal = match event {
                Ok(event) if event.need_rescan() => Signal::Changed(None),
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
                Ok(event) => match event.paths.into_iter().find(|path| matters(path, &own)) {
                    Some(path) => Signal::Changed(Some(path)),
                    None => return,
                },
                // Looking at everything again makes up for whatever was lost.
                Err(_) => Signal::Changed(None),
            };
            let _ = sender.send(signal);
        };
        let watcher =
            notify::recommended_watcher(told).map_err(|error| refused(&error, Path::new("folders")))?;
        let folder = |asked: &PathBuf| Folder { asked: asked.clone(), followed: None, is_said: false };
        Ok(Self { watcher, folders: folders.iter().map(folder).collect(), library })
    }

    /// Follows each folder that is there and was not followed as it is now; gives those. `warn` is told once of each that
    /// cannot be followed.
    pub(super) fn renew(&mut self, warn: &dyn Fn(&str)) -> Vec<PathBuf> {
        let mut renewed = Vec::new();
        for folder in &mut self.folders {
            let place = match place(&folder.asked, self.library) {
                Ok(place) if folder.followed.as_ref() == Some(&place) => continue,
                Ok(place) => Ok(place),
                Err(error) => Err(error),
            };
            if let Some(before) = folder.followed.take() {
                // What is gone may be forgotten already.
                let _ = self.watcher.unwatch(&before.path);
            }
            let watched = place.and_then(|place| {
                let outcome = self.watcher.watch(&place.path, RecursiveMode::Recursive);
                outcome.map(|()| place.clone()).map_err(|error| refused(&error, &place.path))
            });
            match watched {
                Ok(place) => {
                    renewed.push(place.path.clone());
                    folder.followed = Some(place);
                    folder.is_said = false;
                }
                Err(error) if !folder.is_said => {
                    warn(&format!("{}; it is followed as soon as that is possible", error.message));
                    folder.is_said = true;
                }
                Err(_) => {}
            }
        }
        renewed
    }

    /// The folders that are followed at present.
    pub(super) fn present(&self) -> Vec<PathBuf> {
        let followed = self.folders.iter().filter_map(|folder| folder.followed.as_ref());
        followed.map(|place| place.path.clone()).collect()
    }
}

fn place(folder: &Path, library: &Library) -> Outcome<Place> {
    let path = resolve(folder, library)?;
    let facts = fs::metadata(&path)
        .map_err(|error| CliError::new(Kind::of_io(&error), format!("cannot watch {}", path.display())))?;
    Ok(Place { path, device: facts.dev(), number: facts.ino() })
}

/// The folder without `.` and `..`. One that holds the library itself would change with every look at it.
pub(super) fn resolve(folder: &Path, library: &Library) -> Outcome<PathBuf> {
    let own = library.folder().canonicalize().unwrap_or_else(|_| library.folder().to_owned());
    let full = folder.canonicalize().map_err(|error| {
        CliError::new(Kind::of_io(&error), format!("cannot watch {}: {}", folder.display(), reason(&error)))
    })?;
    if !full.is_dir() {
        let message = format!("{} is not a folder", folder.display());
        return Err(CliError::new(Kind::Invalid, message).hint("`shelf add` stores single files"));
    }
    if own.starts_with(&full) {
        let message = format!("{} holds the library itself ({})", folder.display(), own.display());
        return Err(CliError::new(Kind::Invalid, message).hint("watch folders beside the library"));
    }
    Ok(full)
}

fn refused(error: &notify::Error, folder: &Path) -> CliError {
    CliError::new(Kind::Unavailable, format!("cannot watch {}: {error}", folder.display()))
        .hint("on Linux, fs.inotify.max_user_watches limits how many folders can be watched")
}

/// Whether a change may concern a stored file: the inside of version control and of the library does not.
fn matters(path: &Path, library: &Path) -> bool {
    let hidden = |part: &std::ffi::OsStr| [".git", ".hg", ".svn"].iter().any(|name| part == *name);
    !path.starts_with(library) && !path.iter().any(hidden)
}
