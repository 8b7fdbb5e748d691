//! Adding one document. Small ones cost a single sync: their blocks ride in the catalog's own transaction.

use std::{
    fs::File,
    io::{Read, Seek},
    path::Path,
};

use shelf_base::{CallContext, Moment};
use shelf_blocks::{
    Loose, Trust,
    cut::{self, Cut},
};
use shelf_catalog::{LooseBlock, Put, PutDocument};

use super::{
    AddOptions, AddReply, AddRequest, What, counts, document, draft, entry, source::Facts, source::Source,
};
use crate::{Caller, Error, Library, Listing, Result, validate};

/// Content up to this size is kept loose at first.
pub(crate) const SMALL: u64 = 128 * 1_024;

/// Blocks on their way into a transaction.
#[derive(Default)]
pub(crate) struct InlineBlocks {
    pub loose: Vec<LooseBlock>,
}

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
        let _writing = self.writing(call)?;
        let facts = Facts::of_content(bytes.len() as u64, self.now());
        let mut inline = InlineBlocks::default();
        let cut =
            if facts.size <= SMALL { self.cut_loose(bytes, &mut inline)? } else { self.cut_packed(bytes)? };
        let document = document(options, name.to_owned(), &cut, bytes, &facts);
        self.commit_single(caller, options, document, inline)
    }

    pub(super) fn add_file(
        &self,
        caller: &Caller,
        options: &AddOptions,
        source: &Source,
        call: &CallContext,
    ) -> Result<AddReply> {
        let path = text_path(&source.path)?;
        let _writing = self.writing(call)?;
        let (file, facts) =
            source.open_file(&source.path).map_err(|error| Error::reading(path.clone(), error))?;
        self.add_opened(caller, options, path, (file, facts), call)
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
        let _writing = self.writing(call)?;
        let size = file.metadata().map_err(|error| Error::reading(name, error))?.len();
        let facts = Facts::of_content(size, self.now());
        self.add_opened(caller, &options, name.to_owned(), (file, facts), call)
    }

    fn add_opened(
        &self,
        caller: &Caller,
        options: &AddOptions,
        path: String,
        (mut file, facts): (File, Facts),
        call: &CallContext,
    ) -> Result<AddReply> {
        let failed = |error| Error::reading(path.clone(), error);
        let mut inline = InlineBlocks::default();
        let (cut, sample) = if facts.size <= SMALL {
            let mut bytes = Vec::new();
            (&mut file).take(most_of(&facts)).read_to_end(&mut bytes).map_err(failed)?;
            (self.cut_loose(&bytes, &mut inline)?, bytes)
        } else {
            let mut sample = vec![0; shelf_reading::SAMPLE];
            file.read_exact(&mut sample).and_then(|()| file.rewind()).map_err(failed)?;
            (self.stream_packed(file.take(most_of(&facts)), facts.size, call)?, sample)
        };
        let document = document(options, path, &cut, &sample, &facts);
        self.commit_single(caller, options, document, inline)
    }

    fn commit_single(
        &self,
        caller: &Caller,
        options: &AddOptions,
        document: PutDocument,
        mut inline: InlineBlocks,
    ) -> Result<AddReply> {
        let listing = Listing::new([entry(&document.path, &document)]);
        let cut = self.cut_listing(&listing.encode(), &mut inline)?;
        let (hash, path) = (document.hash, document.path.clone());
        let loose_bytes: usize = inline.loose.iter().map(|block| block.bytes.len()).sum();
        let put = Put {
            actor: caller.pass.actor().clone(),
            collection: options.shelf(),
            now: self.now(),
            documents: vec![document],
            loose: inline.loose,
            snapshot: Some(draft(&listing, "/", options.label.clone(), &cut)),
        };
        let (results, snapshot) = self.catalog.put(put)?;
        self.fold_when_due(loose_bytes);
        self.indexing.wrote(1);
        let result = results.first().ok_or_else(|| Error::missing("document", path.clone()))?;
        let (files_added, files_updated, files_unchanged) = counts(result.state);
        Ok(AddReply {
            hash,
            bytes_stored: result.stored,
            bytes_deduped: result.deduplicated,
            document_id: Some(result.id),
            path,
            collection: options.name.clone(),
            snapshot: snapshot.map_or(Moment::default(), |snapshot| snapshot.at),
            files_added,
            files_updated,
            files_unchanged,
            links: 0,
            skipped: Vec::new(),
            failed: Vec::new(),
        })
    }

    /// Cuts into loose blocks. Those that a pack surely has are left out here, those that lie loose already when the row
    /// is written. Whoever sends a single document again may do so because it was damaged, so what is stored is read
    /// before it is relied on.
    pub(crate) fn cut_loose(&self, bytes: &[u8], inline: &mut InlineBlocks) -> Result<Cut> {
        let presence = self.blocks.presence(Trust::Bytes);
        cut::slice(bytes, |block, bytes| {
            let known = presence.holds(&block.id)?
                || inline.loose.iter().any(|loose| loose.id == *block.id.as_bytes());
            if !known {
                let loose = Loose::encode(block.id, bytes)?;
                inline.loose.push(LooseBlock { id: *block.id.as_bytes(), bytes: loose.bytes });
            }
            Ok(())
        })
    }

    /// Cuts into a pack of its own.
    pub(crate) fn cut_packed(&self, bytes: &[u8]) -> Result<Cut> {
        let batch = self.blocks.batch(Trust::Bytes);
        let mut writer = batch.writer()?;
        let cut = cut::slice(bytes, |block, bytes| writer.put(block, bytes))?;
        writer.finish()?;
        let _sealed = batch.seal()?;
        Ok(cut)
    }

    /// Stores the listing of a snapshot: small ones ride along, large ones get a pack.
    pub(crate) fn cut_listing(&self, bytes: &[u8], inline: &mut InlineBlocks) -> Result<Cut> {
        if bytes.len() as u64 <= SMALL {
            return self.cut_loose(bytes, inline);
        }
        let batch = self.blocks.batch(Trust::Bytes);
        let mut writer = batch.writer()?;
        let cut = cut::records(bytes, |block, bytes| writer.put(block, bytes))?;
        writer.finish()?;
        let _sealed = batch.seal()?;
        Ok(cut)
    }

    fn stream_packed(&self, file: impl Read, total: u64, call: &CallContext) -> Result<Cut> {
        let batch = self.blocks.batch(Trust::Bytes);
        let mut writer = batch.writer()?;
        let (mut done, mut reported) = (0, 0);
        let cut = cut::stream::<Error>(file, |block, bytes| {
            call.check()?;
            done += bytes.len() as u64;
            if done - reported >= 1 << 20 {
                reported = done;
                call.report(done, Some(total), "storing");
            }
            Ok(writer.put(block, bytes)?)
        })?;
        writer.finish()?;
        let _sealed = batch.seal()?;
        Ok(cut)
    }
}

/// Bytes that are read of a file at most: its size when it was opened, so that one that grows has an end. Files that the
/// system makes up as they are read claim to be empty.
pub(super) fn most_of(facts: &Facts) -> u64 {
    facts.size.max(1 << 20)
}

/// A path as text; names that are not Unicode cannot be stored under their own name.
pub(super) fn text_path(path: &Path) -> Result<String> {
    let text = path.to_str().ok_or_else(|| Error::invalid("path", "must be valid Unicode"))?;
    validate::path("path", text)?;
    Ok(text.to_owned())
}
