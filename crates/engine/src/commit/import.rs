//! Writes documents that come with all that is known of them: their blocks into one pack, themselves in one transaction.

use std::io::Read;

use shelf_blocks::{Trust, cut};
use shelf_catalog::{Actor, PutResult, Shelf};

use super::{Draft, Writing, put::document};
use crate::{
    Error, ImportItem, Result,
    ingest::{AddOptions, Facts},
};

/// Documents to import.
pub(crate) struct ImportDraft<'a> {
    pub actor: &'a Actor,
    pub shelf: Shelf,
    pub items: &'a [ImportItem],
}

impl Draft for ImportDraft<'_> {
    type Receipt = Vec<PutResult>;

    fn write(self, writing: &mut Writing<'_>) -> Result<Vec<PutResult>> {
        let batch = writing.blocks().batch(Trust::Bytes);
        let mut writer = batch.writer()?;
        let mut documents = Vec::with_capacity(self.items.len());
        for item in self.items {
            writing.call.check()?;
            let mut input = item.content.open().map_err(|error| Error::reading(&item.path, error))?;
            let mut sample = Vec::new();
            let failed = |error| Error::reading(&item.path, error);
            (&mut input).take(shelf_reading::SAMPLE as u64).read_to_end(&mut sample).map_err(failed)?;
            let cut = cut::stream::<Error>(sample.as_slice().chain(input), |block, bytes| {
                writing.call.check()?;
                Ok(writer.put(block, bytes)?)
            })?;
            if item.hash.is_some_and(|expected| expected != cut.hash) {
                let why = format!(
                    "of '{}' is not the one that the manifest gives: the file was changed",
                    item.path
                );
                return Err(Error::invalid("the hash", why));
            }
            let options = AddOptions {
                tags: item.tags.iter().cloned().collect(),
                metadata: item.metadata.clone(),
                mime: item.mime.clone(),
                resource_id: item.resource_id.clone(),
                ..AddOptions::default()
            };
            let modified_at = item.modified_at.unwrap_or_else(|| writing.now());
            let facts = Facts { mode: item.mode, ..Facts::of_content(cut.size, modified_at) };
            let mut made = document(&options, item.path.clone(), &cut, &sample, &facts);
            made.title = item.title.clone().unwrap_or(made.title);
            made.is_text = item.is_text.unwrap_or(made.is_text);
            made.document_type = item.document_type.clone();
            documents.push(made);
        }
        writer.finish()?;
        let _sealed = batch.seal()?;
        let put = writing.transaction(self.actor, self.shelf, documents, None);
        Ok(writing.put(put)?.0)
    }
}
