//! The two inner loops of the vector leg. They are plain loops that the compiler turns into vector instructions;
//! what is chosen at run time is only which instructions it may use.
#![expect(unsafe_code, reason = "calling a function compiled for instructions that were found at run time")]

use super::{DIMENSIONS, GROUP, GROUP_BYTES, PLANES, WORDS};

/// The product of a query with a stored row of signed bytes.
pub(super) fn dot(query: &[f32; DIMENSIONS], row: &[u8]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the instructions.
        return unsafe { dot_avx2(query, row) };
    }
    dot_plain(query, row)
}

/// For each of eight codes: the query's levels at its ones, summed, and the number of its ones.
pub(super) fn weigh(
    codes: &[u8; GROUP_BYTES],
    planes: &[[u64; WORDS]; PLANES],
    sums: &mut [u32; GROUP],
    ones: &mut [u32; GROUP],
) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512vpopcntdq") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the processor has the instructions.
            return unsafe { weigh_avx512(codes, planes, sums, ones) };
        }
        if is_x86_feature_detected!("popcnt") {
            // SAFETY: the processor has the instruction.
            return unsafe { weigh_popcnt(codes, planes, sums, ones) };
        }
    }
    weigh_plain(codes, planes, sums, ones);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_avx2(query: &[f32; DIMENSIONS], row: &[u8]) -> f32 {
    dot_plain(query, row)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512vpopcntdq")]
fn weigh_avx512(
    codes: &[u8; GROUP_BYTES],
    planes: &[[u64; WORDS]; PLANES],
    sums: &mut [u32; GROUP],
    ones: &mut [u32; GROUP],
) {
    weigh_plain(codes, planes, sums, ones);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn weigh_popcnt(
    codes: &[u8; GROUP_BYTES],
    planes: &[[u64; WORDS]; PLANES],
    sums: &mut [u32; GROUP],
    ones: &mut [u32; GROUP],
) {
    weigh_plain(codes, planes, sums, ones);
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
fn weigh_plain(
    codes: &[u8; GROUP_BYTES],
    planes: &[[u64; WORDS]; PLANES],
    sums: &mut [u32; GROUP],
    ones: &mut [u32; GROUP],
) {
    let mut all = [0_u64; GROUP];
    let mut by_plane = [[0_u64; GROUP]; PLANES];
    for word in 0..WORDS {
        let mut code = [0_u64; GROUP];
        for (lane, bytes) in code.iter_mut().zip(codes[word * GROUP * 8..][..GROUP * 8].as_chunks::<8>().0) {
            *lane = u64::from_le_bytes(*bytes);
        }
        for lane in 0..GROUP {
            all[lane] += u64::from(code[lane].count_ones());
        }
        for (plane, counts) in planes.iter().zip(&mut by_plane) {
            for lane in 0..GROUP {
                counts[lane] += u64::from((code[lane] & plane[word]).count_ones());
            }
        }
    }
    for lane in 0..GROUP {
        ones[lane] = all[lane] as u32;
        sums[lane] = by_plane.iter().enumerate().map(|(plane, counts)| (counts[lane] as u32) << plane).sum();
    }
}
