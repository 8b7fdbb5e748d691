//! Matrix products: the linear layers over quantised weights, and attention.
//!
//! A product is computed in tiles of a few rows by a few registers of columns that stay in registers from beginning to
//! end. One *panel*, a register or more of columns over the whole depth, serves all rows before the next is touched.
//! The panels of a linear layer are widened from the packed bytes just before that, so that weights travel through the
//! caches as bytes.
//!
//! A row's numbers do not depend on the rows beside it: a text has the same vector alone and in a batch.
#![expect(
    unsafe_code,
    reason = "tiles read through pointers and need instructions that the processor may lack"
)]

use super::{
    lanes::Lanes,
    math,
    weights::{GROUP, HEAD, HEADS, HIDDEN, Linear},
};

/// Inputs of the widest layer times the columns of the widest panel: the size of the buffer for a panel.
pub(crate) const PANEL: usize = 768 * 32;
/// The most rows that any kernel puts into a tile.
const TALLEST: usize = 8;
/// The scale of attention scores: one over the root of [`HEAD`].
const SCORE_SCALE: f32 = 0.176_776_7;
/// A score that adds nothing to a softmax, for the columns that fill up the last panel.
const NO_SCORE: f32 = -1e30;

/// Calls a function with the number of rows as its last constant argument.
macro_rules! with_rows {
    ($rows:expr, $function:ident::<$lanes:ident, $columns:ident>$arguments:tt) => {
        match $rows {
            1 => $function::<$lanes, $columns, 1>$arguments,
            2 => $function::<$lanes, $columns, 2>$arguments,
            3 => $function::<$lanes, $columns, 3>$arguments,
            4 => $function::<$lanes, $columns, 4>$arguments,
            5 if $lanes::ROWS >= 5 => $function::<$lanes, $columns, 5>$arguments,
            6 if $lanes::ROWS >= 6 => $function::<$lanes, $columns, 6>$arguments,
            7 if $lanes::ROWS >= 7 => $function::<$lanes, $columns, 7>$arguments,
            8 if $lanes::ROWS >= 8 => $function::<$lanes, $columns, 8>$arguments,
            _ => unreachable!("blocks have one to ROWS rows"),
        }
    };
}

/// The product of `R` rows with a panel of `C` registers of columns.
#[inline(always)]
unsafe fn tile<V: Lanes, const C: usize, const R: usize>(
    rows: *const f32,
    row_stride: usize,
    panel: *const f32,
    panel_stride: usize,
    depth: usize,
) -> [[V; C]; R] {
    // SAFETY: the caller promises the instructions, `R` rows of `depth` values and a panel of that depth.
    unsafe {
        let mut sums = [[V::splat(0.0); C]; R];
        let mut at = 0;
        while at < depth {
            let line = panel.add(at * panel_stride);
            let mut columns = [V::splat(0.0); C];
            let mut c = 0;
            while c < C {
                columns[c] = V::load(line.add(c * V::LANES));
                c += 1;
            }
            let mut r = 0;
            while r < R {
                let value = V::splat(*rows.add(r * row_stride + at));
                let mut c = 0;
                while c < C {
                    sums[r][c] = value.mul_add(columns[c], sums[r][c]);
                    c += 1;
                }
                r += 1;
            }
            at += 1;
        }
        sums
    }
}

/// Divides rows into as few blocks as possible that differ by at most one row, so that no tile is much smaller than
/// the others. Gives the first row of each block and its number of rows.
#[inline(always)]
fn blocks(rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = rows.div_ceil(most);
    (0..count).map(move |block| {
        let (start, end) = (block * rows / count, (block + 1) * rows / count);
        (start, end - start)
    })
}

/// A linear layer: multiplies each row of `inputs` with the weights, and adds the bias.
///
/// # Safety
///
/// The processor must have the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn linear<V: Lanes, const C: usize>(
    layer: &Linear,
    inputs: &[f32],
    outputs: &mut [f32],
    panel: &mut [f32],
) {
    let (depth, width, columns) = (layer.inputs, layer.outputs, C * V::LANES);
    let rows = inputs.len() / depth;
    assert!(inputs.len() == rows * depth && outputs.len() == rows * width);
    assert!(GROUP.is_multiple_of(columns) && width.is_multiple_of(GROUP) && panel.len() >= depth * columns);
    assert!(layer.weights.len() == depth * width && layer.scales.len() == width && layer.bias.len() == width);
    let mut column = 0;
    while column < width {
        // SAFETY: the caller promises the instructions. The layer has `width` columns, of which whole panels remain,
        // and by the checks above the panel holds `depth` lines and all rows lie within the slices.
        unsafe {
            let bytes = layer.weights.as_ptr().add(column / GROUP * GROUP * depth + column % GROUP);
            widen_panel::<V, C>(bytes, depth, panel.as_mut_ptr());
            let scales = layer.scales.as_ptr().add(column);
            let bias = layer.bias.as_ptr().add(column);
            for (first, count) in blocks(rows, V::ROWS) {
                let from = inputs.as_ptr().add(first * depth);
                let to = outputs.as_mut_ptr().add(first * width + column);
                with_rows!(count, linear_block::<V, C>(from, depth, panel.as_ptr(), scales, bias, to, width));
            }
        }
        column += columns;
    }
}

/// Turns the packed bytes of one panel into numbers.
#[inline(always)]
unsafe fn widen_panel<V: Lanes, const C: usize>(bytes: *const i8, depth: usize, panel: *mut f32) {
    let mut at = 0;
    while at < depth {
        let mut c = 0;
        while c < C {
            // SAFETY: the caller promises the instructions, `depth` lines of bytes and room for as many numbers.
            unsafe {
                let value = V::widen(bytes.add(at * GROUP + c * V::LANES));
                value.store(panel.add((at * C + c) * V::LANES));
            }
            c += 1;
        }
        at += 1;
    }
}

#[inline(always)]
unsafe fn linear_block<V: Lanes, const C: usize, const R: usize>(
    from: *const f32,
    depth: usize,
    panel: *const f32,
    scales: *const f32,
    bias: *const f32,
    to: *mut f32,
    width: usize,
) {
    // SAFETY: the caller promises the instructions, `R` rows of inputs and outputs, and whole panels.
    unsafe {
        let sums = tile::<V, C, R>(from, depth, panel, C * V::LANES, depth);
        let mut c = 0;
        while c < C {
            let at = c * V::LANES;
            let (scale, bias) = (V::load(scales.add(at)), V::load(bias.add(at)));
            let mut r = 0;
            while r < R {
                sums[r][c].mul_add(scale, bias).store(to.add(r * width + at));
                r += 1;
            }
            c += 1;
        }
    }
}

/// The attention of one text: `projected` holds the query, key and value of each of its tokens, `mixed` receives the
/// values of all tokens in the proportions that each token asks for.
///
/// # Safety
///
/// The processor must have the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn attention<V: Lanes, const C: usize>(
    projected: &[f32],
    mixed: &mut [f32],
    keys: &mut Vec<f32>,
    scores: &mut Vec<f32>,
) {
    let (stride, columns) = (3 * HIDDEN, C * V::LANES);
    let length = projected.len() / stride;
    assert!(projected.len() == length * stride && mixed.len() == length * HIDDEN);
    assert!(HEAD.is_multiple_of(columns) && V::ROWS <= TALLEST);
    let filled = length.next_multiple_of(columns);
    keys.clear();
    keys.resize(filled * HEAD, 0.0);
    scores.clear();
    scores.resize(filled * TALLEST, 0.0);
    for head in 0..HEADS {
        let offset = head * HEAD;
        for token in 0..length {
            let at = token * stride + HIDDEN + offset;
            let start = token / columns * columns * HEAD + token % columns;
            for (number, key) in projected[at..at + HEAD].iter().enumerate() {
                keys[start + number * columns] = *key;
            }
        }
        for (first, count) in blocks(length, V::ROWS) {
            let values = &projected[2 * HIDDEN + offset..];
            let queries = &projected[first * stride + offset..];
            let to = &mut mixed[first * HIDDEN + offset..];
            // SAFETY: the caller promises the instructions. By the checks above, `count` rows begin at `queries` and
            // `to`, `length` rows at `values`, and keys and scores have room for whole panels.
            unsafe {
                with_rows!(count, attention_block::<V, C>(queries, keys, values, scores, to, length));
            }
        }
    }
}

#[inline(always)]
unsafe fn attention_block<V: Lanes, const C: usize, const R: usize>(
    queries: &[f32],
    keys: &[f32],
    values: &[f32],
    scores: &mut [f32],
    to: &mut [f32],
    length: usize,
) {
    let (stride, columns) = (3 * HIDDEN, C * V::LANES);
    let filled = length.next_multiple_of(columns);
    let mut factors = [0.0; R];
    // SAFETY: the caller promises the instructions, `R` rows of queries, scores and results, and `length` values.
    unsafe {
        let mut column = 0;
        while column < filled {
            let panel = keys.as_ptr().add(column * HEAD);
            let sums = tile::<V, C, R>(queries.as_ptr(), stride, panel, columns, HEAD);
            store(&sums, scores.as_mut_ptr().add(column), filled, [1.0; R]);
            column += columns;
        }
        for (row, factor) in factors.iter_mut().enumerate() {
            let row = &mut scores[row * filled..(row + 1) * filled];
            row[length..].fill(NO_SCORE);
            *factor = 1.0 / math::exponentials::<V>(row, SCORE_SCALE);
        }
        let mut column = 0;
        while column < HEAD {
            let panel = values.as_ptr().add(column);
            let sums = tile::<V, C, R>(scores.as_ptr(), filled, panel, stride, length);
            store(&sums, to.as_mut_ptr().add(column), HIDDEN, factors);
            column += columns;
        }
    }
}

/// Stores a tile, each row multiplied with its factor.
#[inline(always)]
unsafe fn store<V: Lanes, const C: usize, const R: usize>(
    sums: &[[V; C]; R],
    to: *mut f32,
    stride: usize,
    factors: [f32; R],
) {
    let mut r = 0;
    while r < R {
        let mut c = 0;
        while c < C {
            // SAFETY: the caller promises the instructions and room for `R` rows.
            unsafe { sums[r][c].mul(V::splat(factors[r])).store(to.add(r * stride + c * V::LANES)) };
            c += 1;
        }
        r += 1;
    }
}
