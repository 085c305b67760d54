//! GFNI on processors without AVX-512: [as with it](super::gfni512), 32 bytes at a time.

#![allow(unsafe_code, reason = "the processor's own instructions, behind a check that it has them")]

use core::arch::x86_64::{
    __m256i, _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256, _mm256_set1_epi64x, _mm256_storeu_si256,
    _mm256_xor_si256,
};

use super::kernel::{self, Vector};
use super::{Multiplication, OutputBytes};
use crate::field::AFFINE;

/// A vector. Values exist only where GFNI and AVX2 are available: `load` creates them under that condition.
#[derive(Clone, Copy)]
struct Ymm(__m256i);

impl Vector for Ymm {
    const BYTES: usize = 32;
    type Table = u64;
    type Split = Self;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees that 32 bytes can be read and that there is AVX2.
        Self(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees that 32 bytes can be written; there is AVX2, as `self` exists.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: there is AVX2, as `self` exists.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn double(self) -> Self {
        Self::times(self, AFFINE[2])
    }

    #[inline(always)]
    fn split(self) -> Self {
        self
    }

    #[inline(always)]
    fn times(bytes: Self, table: u64) -> Self {
        // SAFETY: there are GFNI and AVX2, as `bytes` exists.
        Self(unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(bytes.0, _mm256_set1_epi64x(table as i64)) })
    }
}

pub(super) fn run<B: OutputBytes>(job: Multiplication<'_, u64, B>) {
    #[target_feature(enable = "gfni,avx2")]
    fn with_gfni<B: OutputBytes>(job: Multiplication<'_, u64, B>) {
        // SAFETY: there are GFNI and AVX2 in here.
        unsafe { kernel::run::<Ymm, B, 4, 2>(job) }
    }
    // SAFETY: a job of this kind comes from a matrix of this form, which is made only where there are both.
    unsafe { with_gfni(job) }
}
