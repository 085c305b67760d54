//! GFNI with AVX-512: multiplying by a constant is a linear map of a byte's bits, and `VGF2P8AFFINEQB` applies any,
//! so the field's polynomial need not be the instruction set's.

#![allow(unsafe_code, reason = "the processor's own instructions, behind a check that it has them")]

use core::arch::x86_64::{
    __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_set1_epi64, _mm512_storeu_si512,
    _mm512_xor_si512,
};

use super::kernel::{self, Vector};
use super::{Multiplication, OutputBytes};
use crate::field::AFFINE;

/// A vector. Values exist only where GFNI and AVX-512F are available: `load` creates them under that condition.
#[derive(Clone, Copy)]
struct Zmm(__m512i);

impl Vector for Zmm {
    const BYTES: usize = 64;
    type Table = u64;
    type Split = Self;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees that 64 bytes can be read and that there is AVX-512F.
        Self(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees that 64 bytes can be written; there is AVX-512F, as `self` exists.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: there is AVX-512F, as `self` exists.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
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
        // SAFETY: there are GFNI and AVX-512F, as `bytes` exists.
        Self(unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(bytes.0, _mm512_set1_epi64(table as i64)) })
    }
}

pub(super) fn run<B: OutputBytes>(job: Multiplication<'_, u64, B>) {
    #[target_feature(enable = "gfni,avx512f")]
    fn with_gfni<B: OutputBytes>(job: Multiplication<'_, u64, B>) {
        // SAFETY: there are GFNI and AVX-512F in here.
        unsafe { kernel::run::<Zmm, B, 8, 4>(job) }
    }
    // SAFETY: a job of this kind comes from a matrix of this form, which is made only where there are both.
    unsafe { with_gfni(job) }
}
