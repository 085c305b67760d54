//! Naive engine: computes byte by byte from the definition of the field, without tables. Every other engine is checked
//! against it.

use super::{Multiplication, OutputBytes, WriteMode};
use crate::field::REDUCTION;

pub(super) fn run<B: OutputBytes>(job: Multiplication<'_, u8, B>) {
    let Multiplication { tables, rows, sources, outputs, mode, .. } = job;
    for (row, output) in outputs.iter_mut().enumerate() {
        for (at, byte) in output.iter_mut().enumerate() {
            let columns = sources.iter().zip(tables.chunks_exact(rows));
            let sum = columns.fold(0, |sum, (source, column)| sum ^ multiply(column[row], source[at]));
            *byte = match mode {
                WriteMode::Overwrite => sum,
                WriteMode::Accumulate => *byte ^ sum,
            };
        }
    }
}

/// The product of two polynomials over GF(2), reduced: shift, add, take x^8 away.
pub(crate) fn multiply(a: u8, b: u8) -> u8 {
    let (mut product, mut shifted, mut rest) = (0, a, b);
    while rest != 0 {
        if rest & 1 != 0 {
            product ^= shifted;
        }
        let carries = shifted & 0x80 != 0;
        shifted <<= 1;
        if carries {
            shifted ^= REDUCTION;
        }
        rest >>= 1;
    }
    product
}
