//! The two inner loops of the vector leg. They are plain loops that the compiler turns into vector instructions;
//! what is chosen at run time is only which instructions it may use.
#![expect(unsafe_code, reason = "calling a function compiled for instructions that were found at run time")]

use super::{CODED_BYTES, DIMENSIONS, GROUP, PLANES, Query, RUN, WORDS, float_at};

/// Estimates of a run of groups.
type Estimates = [f32; RUN * GROUP];

/// The product of a query with a stored row of signed bytes.
pub(super) fn dot(query: &[f32; DIMENSIONS], row: &[u8]) -> f32 {
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
fn dot_avx2(query: &[f32; DIMENSIONS], row: &[u8]) -> f32 {
    dot_plain(query, row)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512vpopcntdq")]
fn estimate_avx512(groups: &[[u8; CODED_BYTES]], query: &Query, estimates: &mut Estimates) {
    estimate_plain(groups, query, estimates);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn estimate_popcnt(groups: &[[u8; CODED_BYTES]], query: &Query, estimates: &mut Estimates) {
    estimate_plain(groups, query, estimates);
}

/// Sixteen sums side by side: a single one would have to be added in order, which no instruction does at once.
#[inline(always)]
fn dot_plain(query: &[f32; DIMENSIONS], row: &[u8]) -> f32 {
    let mut sums = [0.0_f32; 16];
    for (query, row) in query.as_chunks::<16>().0.iter().zip(row.as_chunks::<16>().0) {
        for lane in 0..16 {
            sums[lane] += query[lane] * f32::from(row[lane] as i8);
        }
    }
    sums.iter().sum()
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
