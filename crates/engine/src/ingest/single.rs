//! Adding one document: content, a file, or what was downloaded.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use shelf_base::{CallContext, Moment};

use shelf_reading::{is_named_as_recording, subtitles_beside};

use super::{AddOptions, AddReply, AddRequest, FailedFile, What, counts, source::Facts, source::Source};
use crate::{
    Caller, Error, Library, Result,
    commit::{AddDraft, AddedFile, Content},
    file_names::path_text,
    validate,
};

/// Bytes of subtitles that are stored with their recording; larger ones are something else.
const SUBTITLE_BYTES: u64 = 16 << 20;

impl Library {
    pub(super) fn add_content(
        &self,
        caller: &Caller,
        options: &AddOptions,
        name: &str,
        bytes: &[u8],
        call: &CallContext,
    ) -> Result<AddReply> {
        validate::path("name", name)?;
        let facts = Facts::of_content(bytes.len() as u64, self.now());
        let file = AddedFile { path: name.to_owned(), facts, content: Content::Bytes(bytes) };
        self.add_one(caller, options, file, Vec::new(), call)
    }

    pub(super) fn add_file(
        &self,
        caller: &Caller,
        options: &AddOptions,
        source: &Source,
        call: &CallContext,
    ) -> Result<AddReply> {
        let path = stored_path(&source.path)?;
        let (file, facts) =
            source.open_file(&source.path).map_err(|error| Error::reading(path.clone(), error))?;
        let Beside { files, failed } = Beside::of(source, &path);
        let beside = files.iter().map(|(path, file, facts)| opened(path, file, *facts)).collect();
        let added = self.add_one(caller, options, opened(&path, &file, facts), beside, call)?;
        Ok(AddReply { failed, ..added })
    }

    /// Whether a request could be added under its name.
    pub(crate) fn check_adding(&self, caller: &Caller, request: &AddRequest) -> Result<()> {
        if let What::Content { name, .. } = &request.what {
            validate::path("name", name)?;
        }
        self.options(caller, request).map(drop)
    }

    /// Adds what was fetched to a file, under a name of its own.
    pub(crate) fn add_fetched(
        &self,
        caller: &Caller,
        request: &AddRequest,
        name: &str,
        file: File,
        call: &CallContext,
    ) -> Result<AddReply> {
        let options = self.options(caller, request)?;
        let size = file.metadata().map_err(|error| Error::reading(name, error))?.len();
        let facts = Facts::of_content(size, self.now());
        self.add_one(caller, &options, opened(name, &file, facts), Vec::new(), call)
    }

    fn add_one(
        &self,
        caller: &Caller,
        options: &AddOptions,
        file: AddedFile<'_>,
        beside: Vec<AddedFile<'_>>,
        call: &CallContext,
    ) -> Result<AddReply> {
        let path = file.path.clone();
        if let Some(id) = &options.resource_id {
            let known = self.catalog.named(caller.pass.scope(), Some(&options.name), &path, 2)?;
            if let Some(known) = known.iter().find(|known| known.path == path) {
                self.keeps_its_name(known, id)?;
            }
        }
        let draft = AddDraft { actor: caller.pass.actor(), options, file, beside };
        let added = self.commit(draft, call)?;
        let (mut files_added, mut files_updated, mut files_unchanged) = (0, 0, 0);
        let (mut bytes_stored, mut bytes_deduped) = (0, 0);
        for result in added.beside.iter().chain([&added.result]) {
            let (added, updated, unchanged) = counts(result.state);
            files_added += added;
            files_updated += updated;
            files_unchanged += unchanged;
            bytes_stored += result.stored;
            bytes_deduped += result.deduplicated;
        }
        Ok(AddReply {
            hash: added.hash,
            bytes_stored,
            bytes_deduped,
            document_id: Some(added.result.id),
            path,
            collection: options.name.clone(),
            snapshot: added.snapshot.map_or(Moment::default(), |snapshot| snapshot.at),
            files_added,
            files_updated,
            files_unchanged,
            files_removed: 0,
            links: 0,
            skipped: Vec::new(),
            failed: Vec::new(),
        })
    }
}

/// A file that is stored as it is read.
fn opened<'a>(path: &'a str, file: &'a File, facts: Facts) -> AddedFile<'a> {
    let reader = Box::new(file.take(most_of(&facts)));
    let content = Content::Stream { reader, size: facts.size, name: path };
    AddedFile { path: path.to_owned(), facts, content }
}

/// The subtitles that stand beside a recording on disk.
#[derive(Default)]
struct Beside {
    files: Vec<(String, File, Facts)>,
    failed: Vec<FailedFile>,
}

impl Beside {
    fn of(source: &Source, path: &str) -> Self {
        let mut beside = Self::default();
        if !is_named_as_recording(path) {
            return beside;
        }
        for path in subtitles_beside(path) {
            let full = Path::new(&path);
            match source.open_file(full) {
                Ok((file, facts)) if facts.size <= SUBTITLE_BYTES => {
                    beside.files.push((path, file, facts));
                }
                Ok(_) => {
                    let reason = format!("larger than the {} MiB of subtitles", SUBTITLE_BYTES >> 20);
                    beside.failed.push(FailedFile { path, reason });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => beside.failed.push(FailedFile { path, reason: error.to_string() }),
            }
        }
        beside
    }
}

/// Bytes that are read of a file at most: its size when it was opened, so that one that grows has an end. Files that the
/// system makes up as they are read claim to be empty.
pub(crate) fn most_of(facts: &Facts) -> u64 {
    facts.size.max(1 << 20)
}

/// A path as the name of a document or snapshot.
pub(super) fn stored_path(path: &Path) -> Result<String> {
    let text = path_text(path);
    validate::path("path", &text)?;
    Ok(text)
}
