//! Replacing vectors of the built-in table by those of the deep model, segment by segment.
//!
//! A segment is sealed, so one with better vectors is a new file with the same parts otherwise. Which vectors are deep is
//! recorded with them, so that merging keeps them and searches can tell the two kinds apart.

use std::collections::{BTreeMap, HashSet};

use crate::{
    Filter, Index, Lease, Missing, Result, View,
    manifest::{FileStamp, Manifest},
    segment::with_vectors,
    vector::DIMENSIONS,
};

/// How many passages have deep vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Passages with text.
    pub passages: u64,
    /// Those with deep vectors.
    pub deep: u64,
}

/// A passage without a deep vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShallowPassage {
    /// Its row in the segment.
    pub row: u32,
    /// The words that count as its own although they stand elsewhere.
    pub lead: String,
    /// Its number of tokens.
    pub tokens: u32,
    /// Where its text is.
    pub text: Missing,
}

/// A segment on disk with passages without deep vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShallowSegment {
    /// The name of its file.
    pub name: String,
    /// The passages, in order.
    pub passages: Vec<ShallowPassage>,
}

impl View {
    /// How many of the passages within the filter have deep vectors.
    pub fn depth(&self, filter: &Filter) -> Depth {
        let mut depth = Depth::default();
        for (placed, allowed) in self.segments.iter().zip(self.allowed(filter)) {
            let segment = &placed.segment;
            for row in allowed.iter().map(|document| segment.document(document)) {
                for passage in row.first_passage as usize..(row.first_passage + row.passages) as usize {
                    let span = segment.passage(passage).span;
                    if span.end > span.start {
                        depth.passages += 1;
                        depth.deep += u64::from(segment.vectors.is_deep(passage));
                    }
                }
            }
        }
        depth
    }

    /// The first segment on disk, other than those in `done`, with live passages within the filter that have no deep
    /// vectors.
    pub fn shallow(&self, filter: &Filter, done: &HashSet<String>) -> Option<ShallowSegment> {
        let allowed = self.allowed(filter);
        for (at, placed) in self.segments.iter().enumerate() {
            let segment = &placed.segment;
            let Some(name) = segment.file_name().filter(|name| !done.contains(*name)) else { continue };
            if segment.vectors.deep_count() == segment.passages() {
                continue;
            }
            let mut passages = Vec::new();
            for document in allowed[at].iter() {
                let row = segment.document(document);
                for ordinal in 0..row.passages {
                    let passage = row.first_passage + ordinal;
                    let found = segment.passage(passage as usize);
                    let span = found.span;
                    if span.end == span.start || segment.vectors.is_deep(passage as usize) {
                        continue;
                    }
                    passages.push(ShallowPassage {
                        row: passage,
                        lead: segment.lead(passage as usize).to_owned(),
                        tokens: found.tokens,
                        text: Missing {
                            number: row.number,
                            hash: row.hash,
                            ordinal: row.first_ordinal + ordinal,
                            bytes: (span.start, span.end),
                            place: (at, document),
                        },
                    });
                }
            }
            if !passages.is_empty() {
                return Some(ShallowSegment { name: name.to_owned(), passages });
            }
        }
        None
    }
}

impl Index {
    /// Replaces vectors of a segment by those of the deep model; returns the segment's new name, or `None` if it is not
    /// part of the index any more.
    pub fn set_vectors(
        &self,
        lease: &Lease,
        name: &str,
        deep: &BTreeMap<u32, [f32; DIMENSIONS]>,
    ) -> Result<Option<String>> {
        let view = self.view()?;
        let Some(placed) = view.segments.iter().find(|placed| placed.segment.file_name() == Some(name))
        else {
            return Ok(None);
        };
        let written = self.write_segment(with_vectors(&placed.segment, deep)?)?;
        let before = Manifest::read(self.folder())?;
        let mut manifest = before.clone();
        let Some(note) = manifest.segments.iter_mut().find(|note| note.name == name) else {
            let _ = std::fs::remove_file(self.folder().join(&written.name));
            return Ok(None);
        };
        note.name.clone_from(&written.name);
        note.length = written.length;
        note.stamp = FileStamp::of(&self.folder().join(&written.name)).ok();
        self.replace(lease, &before, manifest)?;
        Ok(Some(written.name))
    }
}
