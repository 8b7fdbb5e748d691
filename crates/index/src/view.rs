//! A view: an immutable snapshot of the segments and of which of their documents are live.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use shelf_base::{Digest, ids::CollectionId};

use crate::{
    Followed, Result,
    bits::Bits,
    segment::Segment,
    trigram::{Needs, Word},
};

/// The number of segments that are searched before deciding whether to distribute the rest over threads.
const SAMPLE: usize = 3;
/// The expected work above which starting threads pays off: on a busy machine, waiting for a thread takes longer than
/// a small amount of work.
const WORTH_SHARING: Duration = Duration::from_millis(2);

/// A segment in a view.
#[derive(Clone)]
pub(crate) struct Placed {
    pub segment: Arc<Segment>,
    /// The live documents.
    pub live: Arc<Bits>,
}

impl Placed {
    /// Marks documents as dead by number; returns whether any of them were live.
    pub(crate) fn bury(&mut self, numbers: &[i64]) -> bool {
        let rows: Vec<usize> = numbers
            .iter()
            .flat_map(|number| self.segment.find(*number))
            .filter(|row| self.live.has(*row))
            .collect();
        if rows.is_empty() {
            return false;
        }
        let live = Arc::make_mut(&mut self.live);
        rows.into_iter().for_each(|row| live.clear(row));
        true
    }
}

/// Which documents a reader may see.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only documents of these collections; `None` for all.
    pub collections: Option<HashSet<CollectionId>>,
    /// Only documents with these numbers; `None` for all.
    pub numbers: Option<Bits>,
}

/// A snapshot of the index.
#[derive(Clone, Default)]
pub struct View {
    pub(crate) sequence: u64,
    pub(crate) written: Followed,
    pub(crate) segments: Vec<Placed>,
}

/// A document that a pattern may match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Its number.
    pub number: i64,
    /// Its path.
    pub path: &'a str,
    /// The SHA-256 of its content.
    pub hash: Digest,
}

impl View {
    /// How far the segments on disk have followed the journal.
    pub const fn written(&self) -> &Followed {
        &self.written
    }

    /// The last journal record that this view covers.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The number of live documents.
    pub fn documents(&self) -> u64 {
        self.segments.iter().map(|placed| placed.segment.count(&placed.live) as u64).sum()
    }

    /// The number of their passages.
    pub fn passages(&self) -> u64 {
        let of = |placed: &Placed| {
            placed.live.iter().map(|at| u64::from(placed.segment.document(at).passages)).sum::<u64>()
        };
        self.segments.iter().map(of).sum()
    }

    /// Whether the view contains the document with this content.
    pub fn holds(&self, number: i64, hash: &Digest) -> bool {
        self.segments.iter().rev().any(|placed| {
            let mut rows = placed.segment.find(number).filter(|row| placed.live.has(*row));
            rows.any(|row| placed.segment.document(row).hash == *hash)
        })
    }

    /// The live documents of each segment that pass the filter.
    pub(crate) fn allowed(&self, filter: &Filter) -> Vec<Bits> {
        let of = |placed: &Placed| {
            let mut bits = (*placed.live).clone();
            if let Some(allowed) = &filter.collections {
                placed.segment.keep_collections(&mut bits, |collection| allowed.contains(collection));
            }
            if let Some(allowed) = &filter.numbers {
                for at in placed.live.iter().filter(|at| !allowed.has(placed.segment.number(*at) as usize)) {
                    bits.clear(at);
                }
            }
            bits
        };
        self.segments.iter().map(of).collect()
    }

    /// Documents within the filter that a pattern with these needs may match, and the number of documents within the
    /// filter that can be searched by pattern at all.
    pub fn candidates(&self, needs: &Needs, filter: &Filter) -> Result<(Vec<Candidate<'_>>, u64)> {
        self.candidates_with(needs, &[], filter)
    }

    /// Like [`candidates`](Self::candidates), for a pattern that also needs these [words](crate::needed_words).
    pub fn candidates_with(
        &self,
        needs: &Needs,
        words: &[Word],
        filter: &Filter,
    ) -> Result<(Vec<Candidate<'_>>, u64)> {
        let allowed = self.allowed(filter);
        let next = AtomicUsize::new(0);
        // There are many small segments; each thread takes the next one.
        let work = |most: usize| -> Result<Vec<(usize, Bits)>> {
            let mut done = Vec::new();
            while done.len() < most {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(placed) = self.segments.get(at) else { break };
                let mut bits = placed.segment.candidates(needs, words)?;
                bits.intersect(&allowed[at]);
                done.push((at, bits));
            }
            Ok(done)
        };
        let begun = Instant::now();
        let mut chosen = work(SAMPLE)?;
        let rest = self.segments.len().saturating_sub(SAMPLE);
        let expected = begun.elapsed() * rest as u32 / SAMPLE as u32;
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = if expected > WORTH_SHARING { processors.min(rest) } else { 1 };
        thread::scope(|scope| {
            let workers: Vec<_> = (1..threads).map(|_| scope.spawn(|| work(usize::MAX))).collect();
            chosen.extend(work(usize::MAX)?);
            for worker in workers {
                chosen.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok::<_, crate::Error>(())
        })?;
        chosen.sort_by_key(|(at, _)| *at);
        let mut found = Vec::new();
        for (at, bits) in chosen {
            let segment = &self.segments[at].segment;
            found.extend(bits.iter().map(|at| {
                let row = segment.document(at);
                Candidate { number: row.number, path: segment.path(&row), hash: row.hash }
            }));
        }
        let searchable = self
            .segments
            .iter()
            .zip(&allowed)
            .map(|(placed, allowed)| placed.segment.searchable(allowed))
            .sum();
        Ok((found, searchable))
    }

    /// Documents within the filter that cannot be found by pattern, as the index holds no text of them, and whose path
    /// satisfies `fits`.
    pub fn without_text<'a>(
        &'a self,
        filter: &Filter,
        fits: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = Candidate<'a>> {
        let mut found = Vec::new();
        for (placed, mut silent) in self.segments.iter().zip(self.allowed(filter)) {
            placed.segment.keep_silent(&mut silent);
            found.extend(silent.iter().filter_map(|at| {
                let row = placed.segment.document(at);
                let path = placed.segment.path(&row);
                fits(path).then_some(Candidate { number: row.number, path, hash: row.hash })
            }));
        }
        found.into_iter()
    }

    /// The numbers of the documents within the filter whose path satisfies `fits`.
    pub fn numbers_where(&self, filter: &Filter, fits: &dyn Fn(&str) -> bool) -> Bits {
        let mut numbers = Vec::new();
        for (placed, allowed) in self.segments.iter().zip(self.allowed(filter)) {
            let rows = allowed.iter().map(|at| placed.segment.document(at));
            numbers.extend(rows.filter(|row| fits(placed.segment.path(row))).map(|row| row.number as usize));
        }
        numbers.into_iter().collect()
    }

    /// Bytes on disk and in memory, by part.
    pub fn sizes(&self) -> Sizes {
        let sum = |prefix: &str| self.segments.iter().map(|placed| placed.segment.sizes(prefix)).sum();
        let all: u64 = sum("");
        let (words, vectors, trigrams) = (sum("words/") + sum("stems"), sum("vector."), sum("trigrams"));
        let graph = sum("facts") + sum("mentions");
        Sizes { words, vectors, trigrams, graph, tables: all - words - vectors - trigrams - graph }
    }

    /// The number of segments.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Verifies every part of every segment against its hash.
    pub(crate) fn verify(&self) -> Result<()> {
        self.segments.iter().try_for_each(|placed| placed.segment.verify())
    }
}

/// Bytes by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Words, positions and stems.
    pub words: u64,
    /// Vectors and their codes.
    pub vectors: u64,
    /// Trigram lists.
    pub trigrams: u64,
    /// Facts of documents and what they mention.
    pub graph: u64,
    /// Tables of documents and passages.
    pub tables: u64,
}
