//! Writes files of a folder into a book: their blocks into one pack, their documents in one transaction.

use std::{io::Read, path::PathBuf};

use shelf_blocks::{Trust, cut};
use shelf_catalog::{Actor, Metadata, PutState};

use super::{Draft, Writing, put::document};
use crate::{Error, Result, ingest::AddOptions};

/// A file that becomes one of a book.
#[derive(Clone, Debug)]
pub(crate) struct BookSource {
    /// Where it is.
    pub file: PathBuf,
    /// Its path in the book.
    pub path: String,
    /// What is to be remembered of it.
    pub metadata: Metadata,
}

/// Files for a book.
pub(crate) struct BookFolderDraft<'a> {
    pub actor: &'a Actor,
    pub book: &'a str,
    pub files: &'a [BookSource],
    /// Files that could not be read, and why.
    pub skipped: &'a mut Vec<(String, String)>,
}

impl Draft for BookFolderDraft<'_> {
    type Receipt = Vec<(PutState, u64)>;

    fn write(self, writing: &mut Writing<'_>) -> Result<Self::Receipt> {
        let batch = writing.blocks().batch(Trust::Bytes);
        let mut writer = batch.writer()?;
        let mut documents = Vec::with_capacity(self.files.len());
        for source in self.files {
            writing.call.check()?;
            let (file, facts) = match source.open() {
                Ok(opened) => opened,
                Err(error) => {
                    self.skipped.push((source.path.clone(), error.to_string()));
                    continue;
                }
            };
            let mut sample = Vec::new();
            let mut input = file;
            let shown = source.file.display().to_string();
            let failed = |error| Error::reading(&shown, error);
            (&mut input).take(shelf_reading::SAMPLE as u64).read_to_end(&mut sample).map_err(failed)?;
            let cut = cut::stream::<Error>(sample.as_slice().chain(input), |block, bytes| {
                writing.call.check()?;
                Ok(writer.put(block, bytes)?)
            })?;
            let options = AddOptions { metadata: source.metadata.clone(), ..AddOptions::default() };
            documents.push(document(&options, source.path.clone(), &cut, &sample, &facts));
        }
        writer.finish()?;
        let _sealed = batch.seal()?;
        let sizes: Vec<u64> = documents.iter().map(|document| document.size).collect();
        let results = writing.put_in_book(self.actor, self.book, documents, None)?;
        Ok(results.iter().zip(sizes).map(|(result, size)| (result.state, size)).collect())
    }
}
