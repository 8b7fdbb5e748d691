//! The deep model: a small transformer whose vectors are in the same space as those of the built-in table.
//!
//! It reads a text in its order and context, so it finds more than the table, but takes milliseconds for each text. It is
//! therefore meant for questions, and for passages in the background while the table's vectors already serve.
//! `model/DEEP_CARD.md` describes its origin and quality, and ADR 0025 the choice of the kernels.

mod forward;
mod kernel;
mod lanes;
mod math;
mod multiply;
mod weights;

use std::sync::Arc;

use parking_lot::Mutex;
use shelf_base::CallContext;

pub use kernel::Kernel;

use crate::{
    DIMENSIONS, Embedder, Result,
    builtin::normalise,
    tokenizer::{Tokens, tokenize_first},
};
use forward::{Scratch, forward};
use weights::{POSITIONS, Weights};

/// The deep model's id. It must change whenever the weights or the rules of the tokenizer change.
pub const DEEP: &str = "shelf-deep-384-1";

/// Tokens at the beginning and at the end of every text.
const MARKS: [u16; 2] = [101, 102];
/// Further tokens of a text are ignored.
const LONGEST: usize = POSITIONS - MARKS.len();
/// Parts of a long text that count; passages of a library have two at most.
const MOST_PARTS: usize = 8;
/// The most tokens of a batch: a text of full length fits. Passages of 128 tokens are no faster in pairs than alone, so
/// larger batches would only take more memory.
const BATCH: usize = POSITIONS;

/// The deep model.
///
/// Creating one costs nothing. The weights are unpacked when something is first encoded, which takes a few milliseconds
/// and 5 MB, and are kept until [`Deep::release`] or until it is dropped. While it runs, a call uses up to 3 MB for the
/// activations, whatever the number of texts, besides the tokens and vectors of its texts. Calls from several threads
/// run side by side.
pub struct Deep {
    kernel: Kernel,
    weights: Mutex<Option<Arc<Weights>>>,
}

impl Deep {
    /// The model, computed with the fastest kernel that this processor supports.
    pub fn new() -> Self {
        Self::with_kernel(Kernel::detect())
    }

    /// The model, computed with the given kernel, or with the portable one if this processor does not support it.
    pub fn with_kernel(kernel: Kernel) -> Self {
        let kernel = if kernel.is_available() { kernel } else { Kernel::Portable };
        Self { kernel, weights: Mutex::new(None) }
    }

    /// The kernel in use.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The vectors of texts, in order. Only the first 254 tokens of a text count; a text without any has a vector of
    /// zeros.
    pub fn encode(&self, texts: &[&str]) -> Vec<[f32; DIMENSIONS]> {
        let tokens: Vec<Vec<u16>> = texts.iter().map(|text| first_tokens(text)).collect();
        let tokens: Vec<&[u16]> = tokens.iter().map(Vec::as_slice).collect();
        self.encode_tokens(&tokens)
    }

    /// The vectors of token sequences, as [`tokenize`](crate::tokenize) returns them.
    pub fn encode_tokens(&self, texts: &[&[u16]]) -> Vec<[f32; DIMENSIONS]> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut scratch = Scratch::default();
        let mut rest = texts;
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch_length(rest));
            vectors.extend(self.encode_batch(batch, &mut scratch));
            rest = after;
        }
        vectors
    }

    /// Gives back the memory of the weights. The next call unpacks them again; calls that are running are not
    /// disturbed.
    pub fn release(&self) {
        *self.weights.lock() = None;
    }

    fn weights(&self) -> Arc<Weights> {
        self.weights.lock().get_or_insert_with(|| Arc::new(Weights::unpack())).clone()
    }

    fn encode_batch(&self, texts: &[&[u16]], scratch: &mut Scratch) -> Vec<[f32; DIMENSIONS]> {
        let worded: Vec<&[u16]> = texts.iter().filter(|ids| !ids.is_empty()).copied().collect();
        let mut encoded = self.encode_marked(&worded, scratch).into_iter();
        let vector = |ids: &&[u16]| if ids.is_empty() { None } else { encoded.next() };
        texts.iter().map(vector).map(|vector| vector.unwrap_or([0.0; DIMENSIONS])).collect()
    }

    /// The vectors of texts after the marks of beginning and end have been added, even to an empty text.
    fn encode_marked(&self, texts: &[&[u16]], scratch: &mut Scratch) -> Vec<[f32; DIMENSIONS]> {
        if texts.is_empty() {
            return Vec::new();
        }
        let mut ids = Vec::new();
        let mut lengths = Vec::with_capacity(texts.len());
        for text in texts {
            let before = ids.len();
            ids.push(MARKS[0]);
            ids.extend(text.iter().take(LONGEST));
            ids.push(MARKS[1]);
            lengths.push(ids.len() - before);
        }
        forward(&self.weights(), &self.kernel.functions(), &ids, &lengths, scratch)
    }
}

impl Default for Deep {
    fn default() -> Self {
        Self::new()
    }
}

impl Embedder for Deep {
    fn model(&self) -> &str {
        DEEP
    }

    fn dimensions(&self) -> Option<usize> {
        Some(DIMENSIONS)
    }

    /// A text that is longer than the model reads is read in parts of equal length, and its vector is their mean.
    fn embed(&self, texts: &[&str], call: &CallContext) -> Result<Vec<Vec<f32>>> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut scratch = Scratch::default();
        let mut tokens = Tokens::default();
        // Tokenized in portions, so that the tokens of a long list are never in memory at once.
        for portion in texts.chunks(BATCH / 2) {
            let (mut parts, mut counts): (Vec<Vec<u16>>, Vec<usize>) = (Vec::new(), Vec::new());
            for text in portion {
                tokenize_first(text, MOST_PARTS * LONGEST, &mut tokens);
                let ids = &tokens.ids[..tokens.ids.len().min(MOST_PARTS * LONGEST)];
                let count = ids.len().div_ceil(LONGEST).max(1);
                let before = parts.len();
                parts.extend(ids.chunks(ids.len().div_ceil(count).max(1)).map(<[u16]>::to_vec));
                counts.push(parts.len() - before);
            }
            let parts: Vec<&[u16]> = parts.iter().map(Vec::as_slice).collect();
            let mut encoded = Vec::with_capacity(parts.len());
            let mut rest = parts.as_slice();
            while !rest.is_empty() {
                call.check()?;
                let (batch, after) = rest.split_at(batch_length(rest));
                encoded.extend(self.encode_batch(batch, &mut scratch));
                rest = after;
            }
            let mut encoded = encoded.into_iter();
            vectors.extend(counts.into_iter().map(|count| mean(encoded.by_ref().take(count))));
        }
        Ok(vectors)
    }
}

/// The mean of vectors, scaled to length one; zero without any.
fn mean(vectors: impl Iterator<Item = [f32; DIMENSIONS]>) -> Vec<f32> {
    let mut sum = vec![0.0; DIMENSIONS];
    let mut count = 0;
    for vector in vectors {
        sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
        count += 1;
    }
    if count > 1 {
        normalise(&mut sum);
    }
    sum
}

/// How many of the texts fit into a batch; at least one.
fn batch_length(texts: &[&[u16]]) -> usize {
    let mut tokens = 0;
    let fits = texts.iter().take_while(|ids| {
        tokens += ids.len().min(LONGEST) + MARKS.len();
        tokens <= BATCH
    });
    fits.count().max(1)
}

fn first_tokens(text: &str) -> Vec<u16> {
    let mut tokens = Tokens::default();
    tokenize_first(text, LONGEST, &mut tokens);
    tokens.ids.truncate(LONGEST);
    tokens.ids
}

#[cfg(test)]
mod tests;
