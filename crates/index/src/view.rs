//! A view: the segments of one moment, and which of their documents live. It stays true while a reader looks.

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
    Result,
    bits::Bits,
    segment::Segment,
    trigram::{Needs, Word},
};

/// Segments that are looked through before it is decided whether to share the rest between threads.
const SAMPLE: usize = 3;
/// Work that is worth starting threads for: where others need the processors too, waiting for a thread takes longer.
const WORTH_SHARING: Duration = Duration::from_millis(2);

/// A segment in a view.
#[derive(Clone)]
pub(crate) struct Placed {
    pub segment: Arc<Segment>,
    /// Which of its documents live.
    pub live: Arc<Bits>,
}

impl Placed {
    /// Ends the life of documents by number; whether there were any.
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

/// The index as it was at one moment.
#[derive(Clone, Default)]
pub struct View {
    pub(crate) sequence: u64,
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
    /// The last journal record that this view covers.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// How many documents live.
    pub fn documents(&self) -> u64 {
        self.segments.iter().map(|placed| placed.segment.count(&placed.live) as u64).sum()
    }

    /// How many passages they have.
    pub fn passages(&self) -> u64 {
        let of = |placed: &Placed| {
            placed.live.iter().map(|at| u64::from(placed.segment.document(at).passages)).sum::<u64>()
        };
        self.segments.iter().map(of).sum()
    }

    /// Whether the document is in the view with this content.
    pub fn holds(&self, number: i64, hash: &Digest) -> bool {
        self.segments.iter().rev().any(|placed| {
            let mut rows = placed.segment.find(number).filter(|row| placed.live.has(*row));
            rows.any(|row| placed.segment.document(row).hash == *hash)
        })
    }

    /// Which documents of each segment a filter leaves.
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

    /// Documents within the filter that a pattern with these needs may match, and how many could be searched at all.
    pub fn candidates(&self, needs: &Needs, filter: &Filter) -> Result<(Vec<Candidate<'_>>, u64)> {
        self.candidates_with(needs, &[], filter)
    }

    /// The same for a pattern that also needs these [words](crate::needed_words).
    pub fn candidates_with(
        &self,
        needs: &Needs,
        words: &[Word],
        filter: &Filter,
    ) -> Result<(Vec<Candidate<'_>>, u64)> {
        let allowed = self.allowed(filter);
        let next = AtomicUsize::new(0);
        // Segments are small and many: each of the threads takes the next.
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

    /// Numbers of the documents within the filter whose path fits.
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
        let (words, vectors, trigrams, texts) =
            (sum("words/") + sum("stems"), sum("vector."), sum("trigrams"), sum("texts"));
        Sizes { words, vectors, trigrams, texts, tables: all - words - vectors - trigrams - texts }
    }

    /// How many segments there are.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Compares every part of every segment with its hash.
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
    /// Texts of documents whose stored bytes are not their text.
    pub texts: u64,
    /// Tables of documents and passages.
    pub tables: u64,
}
