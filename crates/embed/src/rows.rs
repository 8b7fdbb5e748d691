//! The rows of the built-in model and their sum, computed with the widest available instructions.
//!
//! A sum reads 384 bytes per token. The same loop is compiled twice: once for any processor, and once for AVX2 with
//! fused multiply-add, which is about four times as fast and used when the processor supports it. The two round
//! differently in the last digits, but a given machine always uses the same one.
#![expect(unsafe_code, reason = "calls a function compiled for CPU features beyond the baseline")]

use crate::{
    builtin::DIMENSIONS,
    vocabulary::{SIZE, UNKNOWN},
};

/// Dimensions that are summed together: twelve registers of eight values, so that the sum stays in registers.
const STRIPE: usize = 96;

/// Rows are six cache lines long; alignment keeps them from touching a seventh.
#[repr(C, align(64))]
struct Aligned<T>(T);

static ROWS: Aligned<[u8; SIZE * DIMENSIONS]> = Aligned(*include_bytes!("../model/static384.i8"));
static SCALES: [u8; SIZE * 4] = *include_bytes!("../model/static384.scale.f32");

/// The sum of the tokens' rows, without unknown words.
pub(crate) fn sum(ids: &[u16]) -> [f32; DIMENSIONS] {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor supports both features that the function is compiled for.
        return unsafe { sum_with_avx2(ids) };
    }
    sum_with_anything(ids)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn sum_with_avx2(ids: &[u16]) -> [f32; DIMENSIONS] {
    sum_with(ids, f32::mul_add)
}

fn sum_with_anything(ids: &[u16]) -> [f32; DIMENSIONS] {
    sum_with(ids, |scale, value, sum| scale * value + sum)
}

#[inline(always)]
fn sum_with(ids: &[u16], multiply_add: impl Fn(f32, f32, f32) -> f32) -> [f32; DIMENSIONS] {
    let mut sums = [0.0; DIMENSIONS];
    let (rows, _) = ROWS.0.as_chunks::<DIMENSIONS>();
    let (scales, _) = SCALES.as_chunks::<4>();
    for (number, sums) in sums.as_chunks_mut::<STRIPE>().0.iter_mut().enumerate() {
        let mut stripe = [0.0; STRIPE];
        for &id in ids {
            // An invalid id is skipped like an unknown word.
            let (Some(row), Some(scale)) = (rows.get(id as usize), scales.get(id as usize)) else { continue };
            if id == UNKNOWN {
                continue;
            }
            let scale = f32::from_le_bytes(*scale);
            let values = &row.as_chunks::<STRIPE>().0[number];
            for (sum, &value) in stripe.iter_mut().zip(values) {
                *sum = multiply_add(scale, f32::from(value as i8), *sum);
            }
        }
        *sums = stripe;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_implementations_agree() {
        let ids: Vec<u16> = (0..SIZE as u32).step_by(7).map(|id| id as u16).collect();
        for (left, right) in sum(&ids).iter().zip(sum_with_anything(&ids)) {
            let allowed = 1e-4 * right.abs().max(1.0);
            assert!((left - right).abs() < allowed, "{left} {right}");
        }
    }

    #[test]
    fn ids_without_a_row_add_nothing() {
        assert_eq!(sum(&[UNKNOWN, 2_129, u16::MAX]), sum(&[2_129]));
        assert_eq!(sum(&[]), [0.0; DIMENSIONS]);
    }
}
