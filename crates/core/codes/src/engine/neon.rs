//! NEON: as with AVX2, a byte's product is that of its low half plus that of its high half, looked up by `TBL`.

#![allow(unsafe_code, reason = "the processor's own instructions, behind a check that it has them")]

use core::arch::aarch64::{
    uint8x16_t, vandq_u8, vcltzq_s8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vreinterpretq_s8_u8, vshlq_n_u8,
    vshrq_n_u8, vst1q_u8,
};

use super::kernel::{self, Vector};
use super::{Multiplication, OutputBytes};
use crate::field::REDUCTION;

/// A vector. Values exist only where NEON is available: `load` creates them under that condition.
#[derive(Clone, Copy)]
struct Quad(uint8x16_t);

impl Vector for Quad {
    const BYTES: usize = 16;
    type Table = [u8; 32];
    type Split = [Self; 2];

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees that 16 bytes can be read and that there is NEON.
        Self(unsafe { vld1q_u8(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees that 16 bytes can be written; there is NEON, as `self` exists.
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: there is NEON, as `self` exists.
        Self(unsafe { veorq_u8(self.0, other.0) })
    }

    #[inline(always)]
    fn double(self) -> Self {
        // SAFETY: there is NEON, as `self` exists.
        unsafe {
            let carries = vcltzq_s8(vreinterpretq_s8_u8(self.0));
            let reduction = vandq_u8(carries, vdupq_n_u8(REDUCTION));
            Self(veorq_u8(vshlq_n_u8::<1>(self.0), reduction))
        }
    }

    #[inline(always)]
    fn split(self) -> [Self; 2] {
        // SAFETY: there is NEON, as `self` exists.
        unsafe { [Self(vandq_u8(self.0, vdupq_n_u8(0x0f))), Self(vshrq_n_u8::<4>(self.0))] }
    }

    #[inline(always)]
    fn times([low, high]: [Self; 2], table: [u8; 32]) -> Self {
        // SAFETY: there is NEON, as `low` exists; both loads are within the table's 32 bytes.
        unsafe {
            let (lows, highs) = (vld1q_u8(table.as_ptr()), vld1q_u8(table.as_ptr().add(16)));
            Self(veorq_u8(vqtbl1q_u8(lows, low.0), vqtbl1q_u8(highs, high.0)))
        }
    }
}

pub(super) fn run<B: OutputBytes>(job: Multiplication<'_, [u8; 32], B>) {
    #[target_feature(enable = "neon")]
    fn with_neon<B: OutputBytes>(job: Multiplication<'_, [u8; 32], B>) {
        // SAFETY: there is NEON in here.
        unsafe { kernel::run::<Quad, B, 4, 2>(job) }
    }
    // SAFETY: a job of this kind comes from a matrix of this form, which is made only where there is NEON.
    unsafe { with_neon(job) }
}
