//! Portable engine for any processor: a product is the sum of those doublings of a vector that the coefficient's bits select.

#![allow(unsafe_code, reason = "the kernel's vectors are read and written by address")]

use super::kernel::{self, Vector};
use super::{Multiplication, OutputBytes};
use crate::field::REDUCTION;

const BYTES: usize = 32;

#[derive(Clone, Copy)]
struct Array([u8; BYTES]);

impl Vector for Array {
    const BYTES: usize = BYTES;
    type Table = u8;
    type Split = [Self; 8];

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees that `BYTES` bytes can be read; the type has no alignment.
        Self(unsafe { from.cast::<[u8; BYTES]>().read() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees that `BYTES` bytes can be written; the type has no alignment.
        unsafe { to.cast::<[u8; BYTES]>().write(self.0) }
    }

    #[inline(always)]
    fn xor(mut self, other: Self) -> Self {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a ^= b;
        }
        self
    }

    #[inline(always)]
    fn double(mut self) -> Self {
        for byte in &mut self.0 {
            // The sign, shifted down, is all ones where x^7 becomes x^8.
            *byte = (*byte << 1) ^ (((*byte as i8) >> 7) as u8 & REDUCTION);
        }
        self
    }

    #[inline(always)]
    fn split(self) -> [Self; 8] {
        let mut doublings = [self; 8];
        for bit in 1..8 {
            doublings[bit] = doublings[bit - 1].double();
        }
        doublings
    }

    #[inline(always)]
    fn times(doublings: [Self; 8], coefficient: u8) -> Self {
        let mut product = Self([0; BYTES]);
        for (bit, doubling) in doublings.into_iter().enumerate() {
            if coefficient >> bit & 1 != 0 {
                product = product.xor(doubling);
            }
        }
        product
    }
}

pub(super) fn run<B: OutputBytes>(job: Multiplication<'_, u8, B>) {
    // SAFETY: any processor can.
    unsafe { kernel::run::<Array, B, 1, 1>(job) }
}
