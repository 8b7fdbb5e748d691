//! One register of numbers, for each instruction set that the kernels are compiled for.
//!
//! The kernels are written once, for any [`Lanes`]. Every method is `unsafe` because it may only run on a processor
//! that has the instructions; all are inlined into a function that is compiled for exactly those, which `kernel.rs`
//! calls only after detecting them.
#![expect(unsafe_code, reason = "wraps instructions that the processor may lack, and reads through pointers")]

/// A register of `LANES` numbers.
///
/// # Safety
///
/// The methods may be called only where the processor has the instructions of the implementation. `load`, `widen` and
/// `store` access `LANES` values at the pointer, which needs no alignment.
pub(crate) trait Lanes: Copy {
    /// How many numbers there are in a register.
    const LANES: usize;
    /// How many rows a tile has at most, so that it stays in registers.
    const ROWS: usize;

    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    /// Loads signed bytes as numbers.
    unsafe fn widen(from: *const i8) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    unsafe fn max(self, other: Self) -> Self;
    /// `self * factor + addend`, rounded once where the processor can.
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// Two to the power of the integers that are in the low bits of the registers' numbers, as bits. See `math::exp`.
    unsafe fn power_of_two(self) -> Self;
}

/// Bits of the number one; the exponent is above bit 23.
const ONE: u32 = 0x3f80_0000;

/// Four numbers without any particular instructions; the compiler uses the baseline's, such as SSE2.
#[derive(Clone, Copy)]
pub(crate) struct Portable([f32; 4]);

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, combine: impl Fn(f32, f32) -> f32) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Self([combine(a, e), combine(b, f), combine(c, g), combine(d, h)])
    }
}

impl Lanes for Portable {
    const LANES: usize = 4;
    const ROWS: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; 4])
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller promises four readable values.
        Self(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn widen(from: *const i8) -> Self {
        // SAFETY: the caller promises four readable values.
        Self(unsafe { from.cast::<[i8; 4]>().read_unaligned() }.map(f32::from))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller promises four writable values.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, |left, right| left + right)
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, |left, right| left - right)
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.zip(other, |left, right| left * right)
    }
    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        self.zip(other, |left, right| left / right)
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        self.zip(other, |left, right| if left > right { left } else { right })
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
        // Not `f32::mul_add`: without the instruction, that is a function call.
        self.zip(factor, |left, right| left * right).zip(addend, |left, right| left + right)
    }
    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        Self(self.0.map(|value| f32::from_bits((value.to_bits() << 23).wrapping_add(ONE))))
    }
}

/// Implements the methods of [`Lanes`] that are one instruction with the same arguments on every processor. These are
/// functions and not closures, because only functions can be inlined before their instructions are resolved.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! instructions {
    ($splat:ident, $load:ident, $store:ident, $($name:ident = $instruction:ident),*) => {
        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: the caller promises that the processor has the instruction.
            Self(unsafe { arch::$splat(value) })
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: the caller promises the instruction and readable values.
            Self(unsafe { arch::$load(from) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: the caller promises the instruction and writable values.
            unsafe { arch::$store(to, self.0) }
        }
        $(#[inline(always)]
        unsafe fn $name(self, other: Self) -> Self {
            // SAFETY: the caller promises that the processor has the instruction.
            Self(unsafe { arch::$instruction(self.0, other.0) })
        })*
    };
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    //! AVX2 with fused multiply-add, and AVX-512.

    use std::arch::x86_64 as arch;

    use super::{Lanes, ONE};

    /// Eight numbers; needs the features `avx2` and `fma`.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(arch::__m256);

    impl Lanes for Avx2 {
        const LANES: usize = 8;
        const ROWS: usize = 6;

        instructions!(
            _mm256_set1_ps,
            _mm256_loadu_ps,
            _mm256_storeu_ps,
            add = _mm256_add_ps,
            sub = _mm256_sub_ps,
            mul = _mm256_mul_ps,
            div = _mm256_div_ps,
            max = _mm256_max_ps
        );
        #[inline(always)]
        unsafe fn widen(from: *const i8) -> Self {
            // SAFETY: the caller promises the instructions and eight readable values.
            unsafe {
                let bytes = arch::_mm_loadl_epi64(from.cast());
                Self(arch::_mm256_cvtepi32_ps(arch::_mm256_cvtepi8_epi32(bytes)))
            }
        }
        #[inline(always)]
        unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
            // SAFETY: the caller promises that the processor has the instruction.
            Self(unsafe { arch::_mm256_fmadd_ps(self.0, factor.0, addend.0) })
        }
        #[inline(always)]
        unsafe fn power_of_two(self) -> Self {
            // SAFETY: the caller promises that the processor has the instructions.
            unsafe {
                let exponents = arch::_mm256_slli_epi32::<23>(arch::_mm256_castps_si256(self.0));
                let powers = arch::_mm256_add_epi32(exponents, arch::_mm256_set1_epi32(ONE as i32));
                Self(arch::_mm256_castsi256_ps(powers))
            }
        }
    }

    /// Sixteen numbers; needs the feature `avx512f`.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(arch::__m512);

    impl Lanes for Avx512 {
        const LANES: usize = 16;
        const ROWS: usize = 8;

        instructions!(
            _mm512_set1_ps,
            _mm512_loadu_ps,
            _mm512_storeu_ps,
            add = _mm512_add_ps,
            sub = _mm512_sub_ps,
            mul = _mm512_mul_ps,
            div = _mm512_div_ps,
            max = _mm512_max_ps
        );
        #[inline(always)]
        unsafe fn widen(from: *const i8) -> Self {
            // SAFETY: the caller promises the instructions and sixteen readable values.
            unsafe {
                let bytes = arch::_mm_loadu_si128(from.cast());
                Self(arch::_mm512_cvtepi32_ps(arch::_mm512_cvtepi8_epi32(bytes)))
            }
        }
        #[inline(always)]
        unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
            // SAFETY: the caller promises that the processor has the instruction.
            Self(unsafe { arch::_mm512_fmadd_ps(self.0, factor.0, addend.0) })
        }
        #[inline(always)]
        unsafe fn power_of_two(self) -> Self {
            // SAFETY: the caller promises that the processor has the instructions.
            unsafe {
                let exponents = arch::_mm512_slli_epi32::<23>(arch::_mm512_castps_si512(self.0));
                let powers = arch::_mm512_add_epi32(exponents, arch::_mm512_set1_epi32(ONE as i32));
                Self(arch::_mm512_castsi512_ps(powers))
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod arm {
    //! NEON, which every 64-bit ARM processor has.

    use std::arch::aarch64 as arch;

    use super::{Lanes, ONE};

    /// Four numbers; needs the feature `neon`.
    #[derive(Clone, Copy)]
    pub(crate) struct Neon(arch::float32x4_t);

    impl Lanes for Neon {
        const LANES: usize = 4;
        const ROWS: usize = 6;

        instructions!(
            vdupq_n_f32,
            vld1q_f32,
            vst1q_f32,
            add = vaddq_f32,
            sub = vsubq_f32,
            mul = vmulq_f32,
            div = vdivq_f32,
            max = vmaxq_f32
        );
        #[inline(always)]
        unsafe fn widen(from: *const i8) -> Self {
            // SAFETY: the caller promises the instructions and four readable values; only those are read.
            unsafe {
                let bytes = arch::vcreate_s8(u64::from(from.cast::<u32>().read_unaligned()));
                let words = arch::vmovl_s16(arch::vget_low_s16(arch::vmovl_s8(bytes)));
                Self(arch::vcvtq_f32_s32(words))
            }
        }
        #[inline(always)]
        unsafe fn mul_add(self, factor: Self, addend: Self) -> Self {
            // SAFETY: the caller promises that the processor has the instruction.
            Self(unsafe { arch::vfmaq_f32(addend.0, self.0, factor.0) })
        }
        #[inline(always)]
        unsafe fn power_of_two(self) -> Self {
            // SAFETY: the caller promises that the processor has the instructions.
            unsafe {
                let exponents = arch::vshlq_n_u32::<23>(arch::vreinterpretq_u32_f32(self.0));
                Self(arch::vreinterpretq_f32_u32(arch::vaddq_u32(exponents, arch::vdupq_n_u32(ONE))))
            }
        }
    }
}
