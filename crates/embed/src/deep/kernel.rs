//! The kernels: the inner loops of the encoder, compiled for several instruction sets and chosen at run time.
#![expect(unsafe_code, reason = "calls functions compiled for CPU features beyond the baseline")]

use super::{
    lanes::{self, Lanes},
    math, multiply,
    weights::{Linear, Norm},
};

/// The instructions that the deep model is computed with.
///
/// Kernels round differently in the last digits, so vectors of different kernels agree to about six digits. A processor
/// always uses the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// No particular instructions; works everywhere.
    Portable,
    /// AVX2 and FMA, on x86-64.
    Avx2,
    /// AVX-512, on x86-64.
    Avx512,
    /// NEON, on 64-bit ARM.
    Neon,
}

impl Kernel {
    /// All kernels, the slowest first.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Neon, Self::Avx2, Self::Avx512];

    /// The fastest kernel that this processor has the instructions for.
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|kernel| kernel.is_available()).unwrap_or(Self::Portable)
    }

    /// Whether this processor has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            _ => false,
        }
    }

    /// The functions of this kernel, or the portable ones if it is not available.
    pub(crate) fn functions(self) -> Functions {
        match self {
            _ if !self.is_available() => portable::FUNCTIONS,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::FUNCTIONS,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::FUNCTIONS,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => neon::FUNCTIONS,
            _ => portable::FUNCTIONS,
        }
    }
}

type LinearFunction = unsafe fn(&Linear, &[f32], &mut [f32], &mut [f32]);
type AttentionFunction = unsafe fn(&[f32], &mut [f32], &mut Vec<f32>, &mut Vec<f32>);
type GeluFunction = unsafe fn(&mut [f32]);
type NormaliseFunction = unsafe fn(&mut [f32], &[f32], &[f32], &[f32]);

/// The functions of one kernel. They exist only for kernels that the processor has the instructions for.
#[derive(Clone, Copy)]
pub(crate) struct Functions {
    linear: LinearFunction,
    attention: AttentionFunction,
    gelu: GeluFunction,
    add_and_normalise: NormaliseFunction,
}

impl Functions {
    /// See [`multiply::linear`].
    pub(crate) fn linear(&self, layer: &Linear, inputs: &[f32], outputs: &mut [f32], panel: &mut [f32]) {
        // SAFETY: the processor has the instructions, or `functions` would not have returned these.
        unsafe { (self.linear)(layer, inputs, outputs, panel) }
    }

    /// See [`multiply::attention`].
    pub(crate) fn attention(
        &self,
        projected: &[f32],
        mixed: &mut [f32],
        keys: &mut Vec<f32>,
        scores: &mut Vec<f32>,
    ) {
        // SAFETY: as above.
        unsafe { (self.attention)(projected, mixed, keys, scores) }
    }

    /// See [`math::gelu`].
    pub(crate) fn gelu(&self, values: &mut [f32]) {
        // SAFETY: as above.
        unsafe { (self.gelu)(values) }
    }

    /// See [`math::add_and_normalise`].
    pub(crate) fn add_and_normalise(&self, values: &mut [f32], added: &[f32], norm: &Norm) {
        // SAFETY: as above.
        unsafe { (self.add_and_normalise)(values, added, &norm.gain, &norm.bias) }
    }
}

/// Compiles all functions for a type of registers, with the given features and registers per panel.
macro_rules! kernel {
    ($name:ident, $lanes:ty, $columns:literal $(, $features:literal)?) => {
        mod $name {
            use super::{Functions, Lanes, Linear, lanes, math, multiply};

            // The tiles rely on these; a kernel that breaks them does not compile.
            const _: () = assert!(<$lanes as Lanes>::LANES * $columns <= super::super::weights::GROUP);

            pub(super) const FUNCTIONS: Functions = Functions { linear, attention, gelu, add_and_normalise };

            $(#[target_feature(enable = $features)])?
            unsafe fn linear(layer: &Linear, inputs: &[f32], outputs: &mut [f32], panel: &mut [f32]) {
                // SAFETY: the function is compiled for the features of these registers, and called only if they exist.
                unsafe { multiply::linear::<$lanes, $columns>(layer, inputs, outputs, panel) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn attention(
                projected: &[f32],
                mixed: &mut [f32],
                keys: &mut Vec<f32>,
                scores: &mut Vec<f32>,
            ) {
                // SAFETY: as above.
                unsafe { multiply::attention::<$lanes, $columns>(projected, mixed, keys, scores) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn gelu(values: &mut [f32]) {
                // SAFETY: as above.
                unsafe { math::gelu::<$lanes>(values) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn add_and_normalise(values: &mut [f32], added: &[f32], gain: &[f32], bias: &[f32]) {
                // SAFETY: as above.
                unsafe { math::add_and_normalise::<$lanes>(values, added, gain, bias) }
            }
        }
    };
}

kernel!(portable, lanes::Portable, 2);
#[cfg(target_arch = "x86_64")]
kernel!(avx2, lanes::x86::Avx2, 2, "avx2,fma");
#[cfg(target_arch = "x86_64")]
kernel!(avx512, lanes::x86::Avx512, 2, "avx512f");
#[cfg(target_arch = "aarch64")]
kernel!(neon, lanes::arm::Neon, 4, "neon");
