//! The forward pass of a batch of texts.
//!
//! The tokens of all texts are rows of the same matrices, one text after the other, so that each weight is widened
//! once for the batch. Only attention looks at one text at a time. Nothing is padded, so texts of different lengths can
//! share a batch at no cost.

use super::{
    kernel::Functions,
    multiply::PANEL,
    weights::{FEED, HIDDEN, Weights, word},
};
use crate::{DIMENSIONS, builtin::normalise};

/// Buffers for the activations of a batch, reused from batch to batch.
#[derive(Default)]
pub(crate) struct Scratch {
    hidden: Vec<f32>,
    /// What is added to `hidden` next.
    added: Vec<f32>,
    wide: Vec<f32>,
    mixed: Vec<f32>,
    panel: Vec<f32>,
    keys: Vec<f32>,
    scores: Vec<f32>,
}

impl Scratch {
    fn resize(&mut self, rows: usize) {
        self.hidden.resize(rows * HIDDEN, 0.0);
        self.added.resize(rows * HIDDEN, 0.0);
        self.mixed.resize(rows * HIDDEN, 0.0);
        self.wide.resize(rows * (3 * HIDDEN).max(FEED), 0.0);
        self.panel.resize(PANEL, 0.0);
    }
}

/// The vectors of texts whose tokens, with the marks of beginning and end, follow each other in `ids`.
pub(crate) fn forward(
    weights: &Weights,
    functions: &Functions,
    ids: &[u16],
    lengths: &[usize],
    scratch: &mut Scratch,
) -> Vec<[f32; DIMENSIONS]> {
    scratch.resize(ids.len());
    let Scratch { hidden, added, wide, mixed, panel, keys, scores } = scratch;
    let positions = lengths.iter().flat_map(|length| 0..*length);
    let rows = hidden.chunks_exact_mut(HIDDEN).zip(added.chunks_exact_mut(HIDDEN));
    for ((row, added), (id, position)) in rows.zip(ids.iter().zip(positions)) {
        word(*id, row);
        weights.position(position, added);
    }
    functions.add_and_normalise(hidden, added, &weights.embedded);
    for layer in &weights.layers {
        let projected = &mut wide[..ids.len() * 3 * HIDDEN];
        functions.linear(&layer.project, hidden, projected, panel);
        let mut start = 0;
        for length in lengths {
            let (from, to) = (start * HIDDEN, (start + length) * HIDDEN);
            functions.attention(&projected[3 * from..3 * to], &mut mixed[from..to], keys, scores);
            start += length;
        }
        functions.linear(&layer.merge, mixed, added, panel);
        functions.add_and_normalise(hidden, added, &layer.after_attention);
        let fed = &mut wide[..ids.len() * FEED];
        functions.linear(&layer.expand, hidden, fed, panel);
        functions.gelu(fed);
        functions.linear(&layer.contract, fed, added, panel);
        functions.add_and_normalise(hidden, added, &layer.after_feed);
    }
    let mut rows = hidden.as_slice();
    lengths
        .iter()
        .map(|length| {
            let (text, rest) = rows.split_at(length * HIDDEN);
            rows = rest;
            mean_direction(text)
        })
        .collect()
}

/// The mean of the rows, scaled to length one.
fn mean_direction(rows: &[f32]) -> [f32; DIMENSIONS] {
    let mut sum = [0.0; DIMENSIONS];
    for row in rows.chunks_exact(HIDDEN) {
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    normalise(&mut sum);
    sum
}
