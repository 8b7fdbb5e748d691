//! Merges the live documents of several segments into one segment.

use std::{collections::BTreeMap, os::unix::fs::DirBuilderExt, path::Path};

use tantivy::{
    Directory, Index,
    directory::{MmapDirectory, OwnedBytes, RamDirectory},
    fastfield::AliveBitSet,
    indexer::merge_filtered_segments,
};
use tempfile::TempDir;

use super::{
    Built, Segment,
    archive::{Content, Parts, words_from_folder, words_from_memory},
    build::{numbers, place, stems},
    leads::LeadsBuilder,
    mentions::Mentions,
    tables::DocumentRow,
    word_files,
};
use crate::{
    Error, Result,
    bits::Bits,
    text,
    trigram::Trigrams,
    vector::{DIMENSIONS, VectorsBuilder},
};

/// Word indexes up to this size are merged in memory: tantivy syncs every file that it writes to a folder, which takes
/// longer than merging a few small segments.
const IN_MEMORY: u64 = 16 << 20;

/// Merges the live documents of `segments`, in order. Large files are written below `folder`. Returns `None` if no
/// document is live.
pub(crate) fn merge(segments: &[(&Segment, &Bits)], folder: &Path) -> Result<Option<Built>> {
    let live: usize = segments.iter().map(|(_, live)| live.count()).sum();
    if live == 0 {
        return Ok(None);
    }
    let word_bytes: u64 = segments.iter().map(|(segment, _)| segment.sizes("words/")).sum();
    let scratch = (word_bytes > IN_MEMORY)
        .then(|| {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            tempfile::Builder::new().prefix("merge-").tempdir_in(folder)
        })
        .transpose()?;
    let mut parts = Parts::new();
    merge_words(segments, scratch.as_ref().map(TempDir::path), &mut parts)?;
    let tables = Merged::of(segments)?;
    let lists: Vec<&Trigrams> = segments.iter().map(|(segment, _)| &segment.trigrams).collect();
    let trigrams = Trigrams::merge(&lists, &tables.places, live as u32);
    let mentions: Vec<&Mentions> = segments.iter().map(|(segment, _)| &segment.mentions).collect();
    let mentions = Mentions::merge(&mentions, &tables.places);
    let mut keep = |name: &str, bytes| parts.insert(name.to_owned(), Content::Bytes(bytes));
    keep("trigrams", trigrams);
    keep("passages", tables.passages);
    keep("paths", tables.paths);
    keep("numbers", numbers(&tables.documents));
    let mut rows = Vec::new();
    tables.documents.iter().for_each(|row| row.write(&mut rows));
    keep("documents", rows);
    for (name, bytes) in tables.vectors.finish().into_iter().chain(mentions).chain(tables.leads.finish()) {
        keep(name, bytes);
    }
    Ok(Some(Built { parts, documents: live as u32, text_bytes: tables.text_bytes, folder: scratch }))
}

fn merge_words(segments: &[(&Segment, &Bits)], folder: Option<&Path>, parts: &mut Parts) -> Result<()> {
    let mut readers = Vec::new();
    let mut filters = Vec::new();
    for (segment, live) in segments {
        readers.extend(segment.index.searchable_segments()?);
        filters.push(Some(alive(segment, live)?));
    }
    let settings = segments.first().map(|(segment, _)| segment.index.settings().clone()).unwrap_or_default();
    let memory = RamDirectory::create();
    let directory: Box<dyn Directory> = match folder {
        Some(folder) => {
            Box::new(MmapDirectory::open(folder).map_err(|error| Error::Io(std::io::Error::other(error)))?)
        }
        None => Box::new(memory.clone()),
    };
    let mut merged: Index = merge_filtered_segments(&readers, settings, filters, directory)?;
    merged.set_tokenizers(text::tokenizers());
    parts.insert("stems".into(), Content::Bytes(stems(&text::only_segment(&merged)?, text::schema().1)?));
    let names = word_files(&merged)?;
    match folder {
        Some(folder) => words_from_folder(folder, &names, parts),
        None => words_from_memory(&memory, &names, parts)?,
    }
    Ok(())
}

/// The passages of the live documents.
fn alive(segment: &Segment, live: &Bits) -> Result<AliveBitSet> {
    let mut bits = tantivy::BitSet::with_max_value(segment.passages() as u32);
    for document in live.iter() {
        let row = segment.document(document);
        for passage in row.first_passage..row.first_passage + row.passages {
            bits.insert(passage);
        }
    }
    let mut bytes = Vec::new();
    tantivy::fastfield::write_alive_bitset(&bits, &mut bytes)?;
    Ok(AliveBitSet::open(OwnedBytes::new(bytes)))
}

/// The tables of the merged segment.
#[derive(Default)]
struct Merged {
    documents: Vec<DocumentRow>,
    passages: Vec<u8>,
    passage_count: u32,
    paths: Vec<u8>,
    vectors: VectorsBuilder,
    leads: LeadsBuilder,
    text_bytes: u64,
    /// The new row of each document of each segment, if it is live.
    places: Vec<Vec<Option<u32>>>,
}

impl Merged {
    fn of(segments: &[(&Segment, &Bits)]) -> Result<Self> {
        let mut merged = Self::default();
        for (segment, live) in segments {
            let mut places = vec![None; segment.documents()];
            for at in live.iter() {
                places[at] = Some(merged.documents.len() as u32);
                merged.add(segment, at)?;
            }
            merged.places.push(places);
        }
        Ok(merged)
    }

    fn add(&mut self, segment: &Segment, at: usize) -> Result<()> {
        let mut row = segment.document(at);
        let document = self.documents.len() as u32;
        let old_first = row.first_passage;
        row.first_passage = self.passage_count;
        for passage in old_first..old_first + row.passages {
            let mut passage_row = segment.passage(passage as usize);
            passage_row.document = document;
            passage_row.write(&mut self.passages);
            self.vectors.add_stored(&segment.vectors, passage as usize);
            self.leads.add(segment.lead(passage as usize));
            self.text_bytes += u64::from(passage_row.span.end - passage_row.span.start);
        }
        self.passage_count += row.passages;
        row.path = place(&mut self.paths, segment.path(&row).as_bytes());
        self.documents.push(row);
        Ok(())
    }
}

/// A segment with other vectors for some of its passages, all made by the deep model.
pub(crate) fn with_vectors(segment: &Segment, deep: &BTreeMap<u32, [f32; DIMENSIONS]>) -> Result<Built> {
    let mut vectors = VectorsBuilder::default();
    for passage in 0..segment.passages() {
        match deep.get(&(passage as u32)) {
            Some(vector) => vectors.add_deep(vector),
            None => vectors.add_stored(&segment.vectors, passage),
        }
    }
    let mut parts = segment.archive.shared()?;
    for (name, bytes) in vectors.finish() {
        parts.insert(name.to_owned(), Content::Bytes(bytes));
    }
    let text_bytes = (0..segment.passages())
        .map(|at| segment.passage(at).span)
        .map(|span| u64::from(span.end - span.start));
    Ok(Built { parts, documents: segment.documents() as u32, text_bytes: text_bytes.sum(), folder: None })
}
