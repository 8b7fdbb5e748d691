//! The functions of the encoder that are not matrix products: the exponential, GELU, softmax and layer normalisation.
#![expect(
    unsafe_code,
    reason = "uses registers of numbers, which need instructions that the processor may lack"
)]

use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

use super::lanes::Lanes;

/// Adding this number to a small one rounds it to an integer, which is then in the low bits.
const ROUND: f32 = 12_582_912.0;
/// The logarithm of two in two parts; a small integer times the first part is exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
/// The smallest argument whose exponential is an ordinary number.
const LOWEST: f32 = -87.0;
/// Added to the variance before dividing by its root.
const EPSILON: f32 = 1e-12;
/// The largest number of lanes.
const WIDEST: usize = 16;

/// The exponential of numbers that are at most zero, with a relative error of about 1e-7. Very small results are
/// replaced by a number around 1e-38.
#[inline(always)]
unsafe fn exp<V: Lanes>(value: V) -> V {
    // SAFETY: the caller promises the instructions of `V`.
    unsafe {
        let value = value.max(V::splat(LOWEST));
        let rounded = value.mul_add(V::splat(LOG2_E), V::splat(ROUND));
        let twos = rounded.sub(V::splat(ROUND));
        let rest = twos.mul_add(V::splat(-LN_2[0]), value);
        let rest = twos.mul_add(V::splat(-LN_2[1]), rest);
        let sum = V::splat(1.987_569_1e-4).mul_add(rest, V::splat(1.398_2e-3));
        let sum = sum.mul_add(rest, V::splat(8.333_452e-3));
        let sum = sum.mul_add(rest, V::splat(4.166_579_6e-2));
        let sum = sum.mul_add(rest, V::splat(1.666_666_5e-1));
        let sum = sum.mul_add(rest, V::splat(0.5));
        let sum = sum.mul_add(rest.mul(rest), rest).add(V::splat(1.0));
        sum.mul(rounded.power_of_two())
    }
}

/// Applies GELU, `x/2 · (1 + erf(x/√2))`, to each value; their number must be a multiple of the lanes.
///
/// The error function is approximated by formula 7.1.26 of Abramowitz and Stegun, with an error of at most 1.5e-7.
///
/// # Safety
///
/// The processor must have the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn gelu<V: Lanes>(values: &mut [f32]) {
    assert!(values.len().is_multiple_of(V::LANES));
    let mut at = 0;
    while at < values.len() {
        // SAFETY: the caller promises the instructions, and whole registers remain.
        unsafe {
            let to = values.as_mut_ptr().add(at);
            let value = V::load(to);
            let size = value.max(V::splat(0.0).sub(value));
            let t = V::splat(1.0).div(size.mul_add(V::splat(0.327_591_1 * FRAC_1_SQRT_2), V::splat(1.0)));
            let sum = V::splat(1.061_405_4).mul_add(t, V::splat(-1.453_152));
            let sum = sum.mul_add(t, V::splat(1.421_413_8));
            let sum = sum.mul_add(t, V::splat(-0.284_496_72));
            let sum = sum.mul_add(t, V::splat(0.254_829_6)).mul(t);
            // What is missing from the error function of the size to one.
            let missing = sum.mul(exp(value.mul(value).mul(V::splat(-0.5))));
            let half = size.mul(V::splat(-0.5));
            half.mul_add(missing, value.max(V::splat(0.0))).store(to);
        }
        at += V::LANES;
    }
}

/// Replaces scores by the exponentials of their scaled distances to the largest and returns the sum of these; the
/// number of scores must be a multiple of the lanes.
///
/// # Safety
///
/// The processor must have the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn exponentials<V: Lanes>(scores: &mut [f32], scale: f32) -> f32 {
    assert!(scores.len().is_multiple_of(V::LANES) && !scores.is_empty());
    let (start, end) = (scores.as_mut_ptr(), scores.len());
    // SAFETY: the caller promises the instructions, and only whole registers within the slice are accessed.
    unsafe {
        let mut largest = V::load(start);
        let mut at = V::LANES;
        while at < end {
            largest = largest.max(V::load(start.add(at)));
            at += V::LANES;
        }
        let largest = V::splat(fold(largest, |left, right| if left > right { left } else { right }));
        let mut sum = V::splat(0.0);
        let mut at = 0;
        while at < end {
            let to = start.add(at);
            let value = exp(V::load(to).sub(largest).mul(V::splat(scale)));
            value.store(to);
            sum = sum.add(value);
            at += V::LANES;
        }
        fold(sum, |left, right| left + right)
    }
}

/// Adds `added` to `values` and normalises each row of the sum to mean zero and variance one, then applies the learned
/// gain and bias of each column.
///
/// # Safety
///
/// The processor must have the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn add_and_normalise<V: Lanes>(
    values: &mut [f32],
    added: &[f32],
    gain: &[f32],
    bias: &[f32],
) {
    let width = gain.len();
    assert!(width > 0 && width.is_multiple_of(V::LANES) && bias.len() == width);
    assert!(values.len() == added.len() && values.len().is_multiple_of(width));
    let mut row = 0;
    while row < values.len() {
        // SAFETY: the caller promises the instructions; each access is to a whole register within a row.
        unsafe {
            let (to, added) = (values.as_mut_ptr().add(row), added.as_ptr().add(row));
            let mut sum = V::splat(0.0);
            let mut at = 0;
            while at < width {
                let value = V::load(to.add(at)).add(V::load(added.add(at)));
                value.store(to.add(at));
                sum = sum.add(value);
                at += V::LANES;
            }
            let mean = V::splat(fold(sum, |left, right| left + right) / width as f32);
            let mut squares = V::splat(0.0);
            let mut at = 0;
            while at < width {
                let distance = V::load(to.add(at)).sub(mean);
                squares = distance.mul_add(distance, squares);
                at += V::LANES;
            }
            let variance = fold(squares, |left, right| left + right) / width as f32;
            let factor = V::splat(1.0 / (variance + EPSILON).sqrt());
            let mut at = 0;
            while at < width {
                let distance = V::load(to.add(at)).sub(mean).mul(factor);
                let scaled = distance.mul_add(V::load(gain.as_ptr().add(at)), V::load(bias.as_ptr().add(at)));
                scaled.store(to.add(at));
                at += V::LANES;
            }
        }
        row += width;
    }
}

/// Combines the lanes of a register one after the other.
#[inline(always)]
unsafe fn fold<V: Lanes>(register: V, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; WIDEST];
    // SAFETY: the caller promises the instructions, and no register has more lanes.
    unsafe { register.store(lanes.as_mut_ptr()) };
    let mut result = lanes[0];
    let mut at = 1;
    while at < V::LANES {
        result = combine(result, lanes[at]);
        at += 1;
    }
    result
}
