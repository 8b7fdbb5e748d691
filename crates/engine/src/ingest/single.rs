//! Adding one document: content, a file, or what was downloaded.

use std::{fs::File, io::Read, path::Path};

use shelf_base::{CallContext, Moment};

use super::{AddOptions, AddReply, AddRequest, What, counts, source::Facts, source::Source};
use crate::{
    Caller, Error, Library, Result,
    commit::{AddDraft, Content},
    file_names::path_text,
    validate,
};

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
        self.add_one(caller, options, name, facts, Content::Bytes(bytes), call)
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
        self.add_opened(caller, options, &path, (file, facts), call)
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
        self.add_opened(caller, &options, name, (file, facts), call)
    }

    fn add_opened(
        &self,
        caller: &Caller,
        options: &AddOptions,
        path: &str,
        (file, facts): (File, Facts),
        call: &CallContext,
    ) -> Result<AddReply> {
        let reader = Box::new(file.take(most_of(&facts)));
        let content = Content::Stream { reader, size: facts.size, name: path };
        self.add_one(caller, options, path, facts, content, call)
    }

    fn add_one(
        &self,
        caller: &Caller,
        options: &AddOptions,
        path: &str,
        facts: Facts,
        content: Content<'_>,
        call: &CallContext,
    ) -> Result<AddReply> {
        let draft = AddDraft { actor: caller.pass.actor(), options, path: path.to_owned(), facts, content };
        let added = self.commit(draft, call)?;
        let (files_added, files_updated, files_unchanged) = counts(added.result.state);
        Ok(AddReply {
            hash: added.hash,
            bytes_stored: added.result.stored,
            bytes_deduped: added.result.deduplicated,
            document_id: Some(added.result.id),
            path: path.to_owned(),
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
