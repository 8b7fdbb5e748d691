//! The two inner loops of the vector leg, compiled for several instruction sets. The best one is chosen at run time.
//! All but one are plain loops that the compiler vectorizes.
#![expect(unsafe_code, reason = "calling functions that need instruction sets detected at run time")]

use super::{CODED_BYTES, GROUP, PLANES, Query, RUN, WORDS, float_at};

/// The estimates for a run of groups.
type Estimates = [f32; RUN * GROUP];

/// The dot product of a query with a stored row of signed bytes.
pub(crate) fn dot(query: &[f32], row: &[u8]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the instructions.
        return unsafe { dot_avx2(query, row) };
    }
    dot_plain(query, row)
}

/// Estimates the cosines of at most a run of groups.
pub(super) fn estimate(groups: &[[u8; CODED_BYTES]], query: &Query, estimates: &mut Estimates) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            // SAFETY: the processor has the instructions.
            return unsafe { estimate_avx512(groups, query, estimates) };
        }
        if is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has the instruction.
            return unsafe { estimate_popcnt(groups, query, estimates) };
        }
    }
    estimate_plain(groups, query, estimates);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_avx2(query: &[f32], row: &[u8]) -> f32 {
    dot_plain(query, row)
}

/// Written with intrinsics, since the compiler vectorizes over the planes instead of the eight codes of a group, which
/// is four times slower. The floating-point operations and their order are those of the plain loop, so the results are
/// equal.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512vpopcntdq")]
fn estimate_avx512(groups: &[[u8; CODED_BYTES]], query: &Query, estimates: &mut Estimates) {
    use std::arch::x86_64::{
        _mm256_add_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_set1_ps, _mm256_storeu_ps, _mm256_sub_ps,
        _mm512_add_epi64, _mm512_and_si512, _mm512_cvtepi64_ps, _mm512_loadu_si512, _mm512_popcnt_epi64,
        _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64,
    };
    let mut planes = [[_mm512_setzero_si512(); WORDS]; PLANES];
    for (plane, words) in planes.iter_mut().zip(&query.planes) {
        for (lane, word) in plane.iter_mut().zip(words) {
            *lane = _mm512_set1_epi64(*word as i64);
        }
    }
    let (low, step) = (_mm256_set1_ps(query.low), _mm256_set1_ps(query.step));
    let (two, total) = (_mm256_set1_ps(2.0), _mm256_set1_ps(query.total));
    for (group, estimates) in groups.iter().zip(estimates.as_chunks_mut::<GROUP>().0) {
        let mut ones = _mm512_setzero_si512();
        let mut sums = [_mm512_setzero_si512(); PLANES];
        for word in 0..WORDS {
            // SAFETY: a group has `WORDS` times 64 bytes of codes.
            let code = unsafe { _mm512_loadu_si512(group.as_ptr().add(word * GROUP * 8).cast()) };
            ones = _mm512_add_epi64(ones, _mm512_popcnt_epi64(code));
            for (sum, plane) in sums.iter_mut().zip(&planes) {
                *sum = _mm512_add_epi64(*sum, _mm512_popcnt_epi64(_mm512_and_si512(code, plane[word])));
            }
        }
        let sum = _mm512_add_epi64(
            _mm512_add_epi64(sums[0], _mm512_slli_epi64::<1>(sums[1])),
            _mm512_add_epi64(_mm512_slli_epi64::<2>(sums[2]), _mm512_slli_epi64::<3>(sums[3])),
        );
        let (ones, sum) = (_mm512_cvtepi64_ps(ones), _mm512_cvtepi64_ps(sum));
        let inside = _mm256_add_ps(_mm256_mul_ps(low, ones), _mm256_mul_ps(step, sum));
        let product = _mm256_sub_ps(_mm256_mul_ps(two, inside), total);
        // SAFETY: after its codes a group has eight factors of four bytes, and there are eight estimates.
        unsafe {
            let factors = _mm256_loadu_ps(group.as_ptr().add(super::GROUP_BYTES).cast());
            _mm256_storeu_ps(estimates.as_mut_ptr(), _mm256_mul_ps(factors, product));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn estimate_popcnt(groups: &[[u8; CODED_BYTES]], query: &Query, estimates: &mut Estimates) {
    estimate_plain(groups, query, estimates);
}

/// Uses sixteen partial sums: a single sum would fix the order of additions and prevent vectorization.
#[inline(always)]
fn dot_plain(query: &[f32], row: &[u8]) -> f32 {
    let mut sums = [0.0_f32; 16];
    let ((queries, query_rest), (rows, row_rest)) = (query.as_chunks::<16>(), row.as_chunks::<16>());
    for (query, row) in queries.iter().zip(rows) {
        for lane in 0..16 {
            sums[lane] += query[lane] * f32::from(row[lane] as i8);
        }
    }
    let rest: f32 = query_rest.iter().zip(row_rest).map(|(query, row)| query * f32::from(*row as i8)).sum();
    sums.iter().sum::<f32>() + rest
}

#[inline(always)]
fn estimate_plain(groups: &[[u8; CODED_BYTES]], query: &Query, estimates: &mut Estimates) {
    let planes: [[u64; WORDS]; PLANES] = query.planes;
    for (group, estimates) in groups.iter().zip(estimates.as_chunks_mut::<GROUP>().0) {
        let (mut ones, mut sums) = ([0_u64; GROUP], [0_u64; GROUP]);
        for word in 0..WORDS {
            let mut code = [0_u64; GROUP];
            for (lane, bytes) in
                code.iter_mut().zip(group[word * GROUP * 8..][..GROUP * 8].as_chunks::<8>().0)
            {
                *lane = u64::from_le_bytes(*bytes);
            }
            for lane in 0..GROUP {
                ones[lane] += u64::from(code[lane].count_ones());
            }
            for (plane, bits) in planes.iter().enumerate() {
                for lane in 0..GROUP {
                    sums[lane] += u64::from((code[lane] & bits[word]).count_ones()) << plane;
                }
            }
        }
        let factors: [f32; GROUP] = std::array::from_fn(|lane| float_at(&group[super::GROUP_BYTES..], lane));
        for lane in 0..GROUP {
            let inside = query.low * ones[lane] as f32 + query.step * sums[lane] as f32;
            estimates[lane] = factors[lane] * (2.0 * inside - query.total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::VectorsBuilder;

    #[test]
    fn every_way_of_estimating_gives_the_same() {
        let vector = |seed: usize| std::array::from_fn(|at| ((at * 31 + seed * 17) as f32).sin() / 14.0);
        let mut builder = VectorsBuilder::default();
        (0..40).for_each(|seed| builder.add(&vector(seed)));
        let [_, _, (_, codes), _] = builder.finish();
        let groups = codes.as_chunks::<CODED_BYTES>().0;
        let query = Query::new(&vector(3));
        let (mut chosen, mut plain) = ([0.0; RUN * GROUP], [0.0; RUN * GROUP]);
        estimate(groups, &query, &mut chosen);
        estimate_plain(groups, &query, &mut plain);
        assert_eq!(chosen, plain);
    }
}
