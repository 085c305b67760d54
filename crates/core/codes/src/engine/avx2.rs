//! AVX2: a byte's product is that of its low half plus that of its high half, both looked up by `VPSHUFB`.
//! Plank, Greenan and Miller, Screaming Fast Galois Field Arithmetic Using Intel SIMD Instructions, FAST 2013, §4.

#![allow(unsafe_code, reason = "the processor's own instructions, behind a check that it has them")]

use core::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_add_epi8, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpgt_epi8,
    _mm256_loadu_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi64,
    _mm256_storeu_si256, _mm256_xor_si256,
};

use super::kernel::{self, Vector};
use super::{Multiplication, OutputBytes};
use crate::field::REDUCTION;

/// A vector. Values exist only where AVX2 is available: `load` creates them under that condition.
#[derive(Clone, Copy)]
struct Ymm(__m256i);

impl Vector for Ymm {
    const BYTES: usize = 32;
    type Table = [u8; 32];
    type Split = [Self; 2];

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
        // SAFETY: there is AVX2, as `self` exists.
        unsafe {
            let carries = _mm256_cmpgt_epi8(_mm256_setzero_si256(), self.0);
            let reduction = _mm256_and_si256(carries, _mm256_set1_epi8(REDUCTION as i8));
            Self(_mm256_xor_si256(_mm256_add_epi8(self.0, self.0), reduction))
        }
    }

    #[inline(always)]
    fn split(self) -> [Self; 2] {
        // SAFETY: there is AVX2, as `self` exists.
        unsafe {
            let low = _mm256_set1_epi8(0x0f);
            let high = _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), low);
            [Self(_mm256_and_si256(self.0, low)), Self(high)]
        }
    }

    #[inline(always)]
    fn times([low, high]: [Self; 2], table: [u8; 32]) -> Self {
        // SAFETY: there is AVX2, as `low` exists; both loads are within the table's 32 bytes.
        unsafe {
            let lows = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            let highs = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().add(16).cast()));
            Self(_mm256_xor_si256(_mm256_shuffle_epi8(lows, low.0), _mm256_shuffle_epi8(highs, high.0)))
        }
    }
}

pub(super) fn run<B: OutputBytes>(job: Multiplication<'_, [u8; 32], B>) {
    #[target_feature(enable = "avx2")]
    fn with_avx2<B: OutputBytes>(job: Multiplication<'_, [u8; 32], B>) {
        // SAFETY: there is AVX2 in here.
        unsafe { kernel::run::<Ymm, B, 4, 2>(job) }
    }
    // SAFETY: a job of this kind comes from a matrix of this form, which is made only where there is AVX2.
    unsafe { with_avx2(job) }
}
