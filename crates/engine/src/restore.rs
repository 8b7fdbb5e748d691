//! Restoring a collection or snapshot into a folder, never outside it.
//!
//! The output folder is opened once; everything below is reached through that handle, so that no `..`, absolute name,
//! symbolic link or race with another program leads out.

use std::{
    collections::HashSet,
    io::{self, ErrorKind},
    path::{Component, Path, PathBuf},
};

use cap_std::{ambient_authority, fs::Dir};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use shelf_base::CallContext;
use shelf_catalog::Version;

use crate::{
    Caller, Entry, Error, FileAccess, Library, Listing, Result, file_names::text_path, pattern::Patterns,
    validate,
};

/// A request to restore.
#[derive(Clone, Debug)]
pub struct RestoreRequest {
    /// From this collection.
    pub collection: Option<String>,
    /// From this snapshot.
    pub snapshot_id: Option<String>,
    /// From the newest snapshot with this label.
    pub snapshot_label: Option<String>,
    /// Into this folder.
    pub output_directory: PathBuf,
    /// How target paths are made.
    pub layout_template: String,
    /// Only these.
    pub include_patterns: Vec<String>,
    /// Not these.
    pub exclude_patterns: Vec<String>,
    /// Replace files that exist.
    pub overwrite: bool,
    /// Make missing folders.
    pub create_dirs: bool,
    /// Only tell.
    pub dry_run: bool,
}

/// One file and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Its path in the snapshot.
    pub path: String,
    /// Where it went, relative to the output folder.
    pub target: String,
    /// Its length.
    pub size: u64,
    /// Why it was skipped or failed.
    pub reason: Option<String>,
}

/// What a restore did, or would do.
#[derive(Clone, Debug, Default)]
pub struct RestoreReply {
    /// Written.
    pub restored: Vec<Restored>,
    /// Left as they are.
    pub skipped: Vec<Restored>,
    /// Not written.
    pub failed: Vec<Restored>,
}

/// What the placeholders stand for beside the file's own facts.
struct Names<'a> {
    collection: &'a str,
    snapshot_id: String,
    snapshot_label: &'a str,
}

const PLACEHOLDERS: &[&str] =
    &["{path}", "{name}", "{stem}", "{ext}", "{hash}", "{collection}", "{snapshot_id}", "{snapshot_label}"];

impl Library {
    /// Restores files of a collection or snapshot.
    pub fn restore(
        &self,
        caller: &Caller,
        request: &RestoreRequest,
        call: &CallContext,
    ) -> Result<RestoreReply> {
        caller.must_read()?;
        check_template(&request.layout_template)?;
        let include = Patterns::with_folders("include_patterns", &request.include_patterns)?;
        let exclude = Patterns::with_folders("exclude_patterns", &request.exclude_patterns)?;
        let (listing, collection, id, label) = self.chosen_listing(caller, request, call)?;
        let names = Names { collection: &collection, snapshot_id: id, snapshot_label: &label };
        let output = self.output_folder(caller, request)?;
        let mut reply = RestoreReply::default();
        let mut planned = Planned::default();
        let total = listing.entries.len() as u64;
        for (done, entry) in listing.entries.iter().enumerate() {
            call.check()?;
            if done.is_multiple_of(64) {
                call.report(done as u64, Some(total), "restoring");
            }
            let wanted = request.include_patterns.is_empty() || include.fits(&entry.path);
            if !wanted || exclude.fits(&entry.path) {
                continue;
            }
            let target = render(&request.layout_template, entry, &names);
            let fate = self.restore_one(request, output.as_ref(), entry, &target, &mut planned, call);
            reply.note(entry, target, fate?);
        }
        Ok(reply)
    }

    fn chosen_listing(
        &self,
        caller: &Caller,
        request: &RestoreRequest,
        call: &CallContext,
    ) -> Result<(Listing, String, String, String)> {
        let (collection, id, label) = (
            request.collection.as_deref(),
            request.snapshot_id.as_deref(),
            request.snapshot_label.as_deref(),
        );
        match (collection, id.or(label)) {
            (_, Some(_)) => {
                let snapshot = self.one_snapshot(caller, collection, id, label)?;
                let listing = self.listing(&snapshot, call)?;
                let label = snapshot.draft.label.clone().unwrap_or_default();
                Ok((listing, snapshot.collection_name.clone(), snapshot.at.with_micros(), label))
            }
            (Some(name), None) => {
                self.known_collection(caller, name)?;
                Ok((self.present_listing(caller, name)?, name.to_owned(), String::new(), String::new()))
            }
            (None, None) => Err(Error::invalid(
                "collection",
                "or snapshot_id or snapshot_label is needed to say what to restore",
            )),
        }
    }

    /// Whether there is a folder that the caller may restore into, or what to set.
    pub fn can_restore(&self, caller: &Caller) -> Result<()> {
        match caller.file_access {
            FileAccess::OperatingSystem => Ok(()),
            FileAccess::Configured => some_root(&self.options.export_roots),
        }
    }

    /// The open output folder; `None` on a dry run into a folder that does not exist yet.
    fn output_folder(&self, caller: &Caller, request: &RestoreRequest) -> Result<Option<Dir>> {
        let path = &request.output_directory;
        let shown = path.display().to_string();
        let failed = |error| refused_place("output_directory", &shown, error);
        if path.as_os_str().is_empty() {
            return Err(Error::invalid("output_directory", "must be the path of a folder"));
        }
        validate::file_path("output_directory", path)?;
        match caller.file_access {
            FileAccess::OperatingSystem => {
                if !path.exists() {
                    if !request.create_dirs {
                        return Err(Error::invalid(
                            "output_directory",
                            "does not exist, and create_dirs is false",
                        ));
                    }
                    if request.dry_run {
                        return could_be_made(path).map(|()| None).map_err(failed);
                    }
                    std::fs::create_dir_all(path).map_err(failed)?;
                }
                Dir::open_ambient_dir(path, ambient_authority()).map(Some).map_err(failed)
            }
            FileAccess::Configured => {
                let (root, inside) = export_place(&self.options.export_roots, path)?;
                let nearest = nearest_folder(&root, &inside).map_err(failed)?;
                if nearest != inside && request.create_dirs {
                    if request.dry_run {
                        return must_be_writable(&root, nearest).map(|()| None).map_err(failed);
                    }
                    root.create_dir_all(&inside).map_err(failed)?;
                }
                root.open_dir(&inside).map(Some).map_err(failed)
            }
        }
    }

    /// Decides for one file and, unless it is a dry run, writes it.
    fn restore_one(
        &self,
        request: &RestoreRequest,
        output: Option<&Dir>,
        entry: &Entry,
        target: &str,
        planned: &mut Planned,
        call: &CallContext,
    ) -> Result<Fate> {
        if let Err(reason) = check_target(target) {
            return Ok(Fate::Failed(reason.into()));
        }
        if let Err(reason) = planned.take(target) {
            return Ok(Fate::Failed(reason.into()));
        }
        let path = &*text_path(target);
        if entry.link.as_deref().is_some_and(|link| !stays_below(path, link)) {
            return Ok(Fate::Failed("the link would lead outside the output folder".into()));
        }
        if let Some(folder) = output {
            match folder.symlink_metadata(path) {
                Ok(found) if found.is_dir() => return Ok(Fate::Failed("a folder stands there".into())),
                Ok(_) if !request.overwrite => return Ok(Fate::Skipped("exists".into())),
                Err(error) if !is_absent(&error) => return Ok(Fate::Failed(explain(&error))),
                _ => {}
            }
            if let Err(reason) = check_parent(folder, path, request) {
                return Ok(Fate::Failed(reason));
            }
        }
        let Some(folder) = output.filter(|_| !request.dry_run) else { return Ok(Fate::Restored) };
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty())
            && let Err(error) = folder.create_dir_all(parent)
        {
            return Ok(Fate::Failed(explain(&error)));
        }
        if let Some(link) = &entry.link {
            return Ok(make_link(folder, path, link));
        }
        let version = Version {
            number: 0,
            hash: entry.hash,
            size: entry.size,
            modified_at: entry.modified_at,
            indexed_at: entry.modified_at,
            mode: entry.mode,
        };
        match self.write_atomic(folder, path, &version, call, target) {
            Ok(()) => Ok(Fate::Restored),
            Err(Error::Stopped(stopped)) => Err(stopped.into()),
            Err(Error::File { source, .. }) => Ok(Fate::Failed(explain(&source))),
            Err(error) => Ok(Fate::Failed(error.to_string())),
        }
    }
}

/// Targets that this restore has spoken for, so that a preview decides as the restore itself will.
#[derive(Default)]
struct Planned {
    files: HashSet<String>,
    folders: HashSet<String>,
}

impl Planned {
    fn take(&mut self, target: &str) -> Result<(), &'static str> {
        let parents: Vec<&str> = target.match_indices('/').map(|(at, _)| &target[..at]).collect();
        if self.files.contains(target) {
            return Err("another file of this restore has the same target");
        }
        if self.folders.contains(target) {
            return Err("another file of this restore needs a folder of this name");
        }
        if parents.iter().any(|parent| self.files.contains(*parent)) {
            return Err("another file of this restore stands where its folder should be");
        }
        self.folders.extend(parents.into_iter().map(str::to_owned));
        self.files.insert(target.to_owned());
        Ok(())
    }
}

enum Fate {
    Restored,
    Skipped(String),
    Failed(String),
}

impl RestoreReply {
    fn note(&mut self, entry: &Entry, target: String, fate: Fate) {
        let (list, reason) = match fate {
            Fate::Restored => (&mut self.restored, None),
            Fate::Skipped(reason) => (&mut self.skipped, Some(reason)),
            Fate::Failed(reason) => (&mut self.failed, Some(reason)),
        };
        list.push(Restored { path: entry.path.clone(), target, size: entry.size, reason });
    }
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            "refused: the path leads outside the output folder or may not be written".into()
        }
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_lowercase(),
    }
}

/// Refuses a file whose folder is missing and may not be made, or cannot be one. On a dry run the folder, or the one that it
/// would be made in, is asked what the restore itself finds out by writing.
fn check_parent(folder: &Dir, path: &Path, request: &RestoreRequest) -> Result<(), String> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let nearest = match nearest_folder(folder, parent) {
        Ok(nearest) => nearest,
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Err("its folder is a file".into()),
        Err(error) => return Err(explain(&error)),
    };
    if nearest != parent && !request.create_dirs {
        return Err("its folder does not exist, and create_dirs is false".into());
    }
    if request.dry_run {
        return must_be_writable(folder, nearest).map_err(|error| explain(&error));
    }
    Ok(())
}

/// The nearest folder on the way to `path` that is there. An error when something else stands in the way.
pub(crate) fn nearest_folder<'p>(folder: &Dir, path: &'p Path) -> io::Result<&'p Path> {
    for place in path.ancestors().filter(|place| !place.as_os_str().is_empty()) {
        match folder.symlink_metadata(place) {
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error),
            Ok(found) if found.is_symlink() => {
                return must_be_folder(folder.metadata(place)?.is_dir(), place);
            }
            Ok(found) => return must_be_folder(found.is_dir(), place),
        }
    }
    Ok(Path::new("."))
}

fn must_be_folder(is_folder: bool, place: &Path) -> io::Result<&Path> {
    if is_folder { Ok(place) } else { Err(ErrorKind::NotADirectory.into()) }
}

/// Whether files can be made in a folder.
fn must_be_writable(folder: &Dir, place: &Path) -> io::Result<()> {
    Ok(accessat(folder, place, Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())?)
}

/// Whether a folder that is not there could be made.
fn could_be_made(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    for place in path.ancestors() {
        match std::fs::symlink_metadata(place) {
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error),
            Ok(_) => {
                must_be_folder(std::fs::metadata(place)?.is_dir(), place)?;
                return Ok(accessat(CWD, place, Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())?);
            }
        }
    }
    Ok(())
}

/// Why nothing can be written to a place that an argument names.
pub(crate) fn refused_place(argument: &'static str, shown: &str, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            Error::invalid(argument, format!("leads through something that is not a folder: {shown}"))
        }
        ErrorKind::IsADirectory => Error::invalid(argument, format!("names a folder: {shown}")),
        _ => Error::writing(shown, error),
    }
}

/// Whether a link at `path` leads to a place in the output folder: decided on the texts. A `..` after a name could mean
/// another folder than it says, when the name is a link too.
fn stays_below(path: &Path, link: &str) -> bool {
    let depth = path.components().count().saturating_sub(1);
    let parts: Vec<Component<'_>> = Path::new(link).components().collect();
    let ups = parts.iter().take_while(|part| matches!(part, Component::ParentDir)).count();
    let is_plain = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    !link.is_empty() && ups <= depth && parts[ups..].iter().all(is_plain)
}

/// Makes a symbolic link under a temporary name and renames it.
fn make_link(folder: &Dir, path: &Path, link: &str) -> Fate {
    // A link that goes up counts on its own folder being where it seems to be.
    let mut above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let is_link = |path: &Path| folder.symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if link.starts_with("..") && above.any(is_link) {
        return Fate::Failed("the link would lead outside the output folder".into());
    }
    let temporary = path.with_file_name(format!(".link.{}.shelf", std::process::id()));
    let _ = folder.remove_file(&temporary);
    let made =
        folder.symlink(text_path(link), &temporary).and_then(|()| folder.rename(&temporary, folder, path));
    match made {
        Ok(()) => Fate::Restored,
        Err(error) => {
            let _ = folder.remove_file(&temporary);
            Fate::Failed(explain(&error))
        }
    }
}

/// A target must stay below: decided on the text, before any file is touched.
fn check_target(target: &str) -> Result<(), &'static str> {
    if target.is_empty() {
        return Err("the template gives it no name");
    }
    if target.contains('\0') {
        return Err("the target holds a NUL");
    }
    if target.len() > 4_096 || target.split('/').any(|segment| segment.len() > 255) {
        return Err("the target's name is too long");
    }
    let plain = Path::new(target).components().all(|part| matches!(part, Component::Normal(_)));
    if plain { Ok(()) } else { Err("the target would lie outside the output folder") }
}

fn check_template(template: &str) -> Result<()> {
    let mut rest = template.to_owned();
    for placeholder in PLACEHOLDERS {
        rest = rest.replace(placeholder, "");
    }
    if template.is_empty() || template.len() > 1_024 {
        return Err(Error::invalid("layout_template", "must be 1 to 1,024 characters"));
    }
    if template.starts_with('/') || template.ends_with('/') {
        return Err(Error::invalid(
            "layout_template",
            "must be a relative path of a file: no '/' at its beginning or end",
        ));
    }
    if rest.contains(['{', '}']) {
        let known = PLACEHOLDERS.join(" ");
        return Err(Error::invalid("layout_template", format!("knows only these placeholders: {known}")));
    }
    Ok(())
}

/// Fills the placeholders in one pass, so that a file's own name cannot bring in another.
fn render(template: &str, entry: &Entry, names: &Names<'_>) -> String {
    let name = entry.path.rsplit('/').next().unwrap_or(&entry.path);
    let (stem, extension) = match name.rfind('.') {
        Some(dot) if dot > 0 => (&name[..dot], &name[dot + 1..]),
        _ => (name, ""),
    };
    let hash = entry.hash.to_string();
    let mut made = String::new();
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        made.push_str(&rest[..start]);
        let end = rest[start..].find('}').map_or(rest.len(), |end| start + end + 1);
        made.push_str(match &rest[start..end] {
            // Paths are relative to the snapshot's root, which may be the root of everything.
            "{path}" => entry.path.trim_start_matches('/'),
            "{name}" => name,
            "{stem}" => stem,
            "{ext}" => extension,
            "{hash}" => &hash,
            "{collection}" => names.collection,
            "{snapshot_id}" => &names.snapshot_id,
            "{snapshot_label}" => names.snapshot_label,
            other => other,
        });
        rest = &rest[end..];
    }
    made.push_str(rest);
    // A placeholder that stands for nothing leaves an empty segment; it and '.' mean nothing.
    let segments: Vec<&str> =
        made.split('/').filter(|segment| !segment.is_empty() && *segment != ".").collect();
    segments.join("/")
}

fn some_root(roots: &[PathBuf]) -> Result<()> {
    if roots.is_empty() {
        return Err(Error::Unavailable {
            what: "writing files of the server is off over HTTP".into(),
            hint: "ask for the content instead (include_content), or set http.export_roots in shelf.toml"
                .into(),
        });
    }
    Ok(())
}

/// The export root that holds `path`, opened, and the path beneath it.
pub(crate) fn export_place(roots: &[PathBuf], path: &Path) -> Result<(Dir, PathBuf)> {
    some_root(roots)?;
    let outside = || Error::Denied("the path is outside the configured export roots".into());
    for root in roots {
        let inside = if path.is_absolute() {
            let Ok(inside) = path.strip_prefix(root) else { continue };
            inside
        } else {
            path
        };
        if !inside.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(outside());
        }
        let folder = Dir::open_ambient_dir(root, ambient_authority()).map_err(|_| outside())?;
        let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        return Ok((folder, inside.to_owned()));
    }
    Err(outside())
}
