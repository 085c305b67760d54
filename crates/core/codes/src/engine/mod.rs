//! Engines that multiply packets by coefficients and add them up: a naive engine, and one for each vector type.
//!
//! All compute the same bytes. The fast ones are one algorithm ([`kernel`]) over different vectors; the file of an
//! engine defines only the operations of its vectors.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod gfni256;
#[cfg(target_arch = "x86_64")]
mod gfni512;
mod kernel;
pub(crate) mod naive;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

use alloc::vec::Vec;
use core::ops::DerefMut;

use crate::buffer::ParityBuffer;
use crate::error::Error;
use crate::field;
use crate::kind::Engine;

/// Special forms of a matrix, which cost less than general multiplication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pattern {
    General,
    /// The first row is all ones: a XOR.
    Plain,
    /// Two rows, ones and the powers of two: a XOR, and Horner's rule with doublings.
    Powers,
}

/// Treatment of the outputs' former contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WriteMode {
    /// They replace the outputs' contents.
    Overwrite,
    /// They are added to the outputs' contents.
    Accumulate,
}

/// A matrix of coefficients in the form that its engine wants, column by column.
///
/// A form is created only where its engine runs ([`Matrix::new`]), so a value proves that the instructions exist.
#[derive(Clone, Debug)]
enum Form {
    Naive(Vec<u8>),
    Portable(Vec<u8>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Vec<[u8; 32]>),
    #[cfg(target_arch = "x86_64")]
    Gfni256(Vec<u64>),
    #[cfg(target_arch = "x86_64")]
    Gfni512(Vec<u64>),
    #[cfg(target_arch = "aarch64")]
    Neon(Vec<[u8; 32]>),
}

/// Coefficients to multiply packets with: a row per output, a column per source.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    form: Form,
    rows: usize,
    columns: usize,
    pattern: Pattern,
}

/// Memory of an output. Implemented for these two only: unsafe code relies on their lengths not changing by themselves.
pub(crate) trait OutputBytes: DerefMut<Target = [u8]> {}

impl OutputBytes for &mut [u8] {}
impl OutputBytes for ParityBuffer {}

/// Sources and outputs of one multiplication, all of one length.
struct Multiplication<'a, T, B> {
    /// Coefficients of the sources, column by column.
    tables: &'a [T],
    rows: usize,
    pattern: Pattern,
    sources: &'a [&'a [u8]],
    outputs: &'a mut [B],
    mode: WriteMode,
}

impl Matrix {
    /// `rows` x `columns` of `coefficient(row, column)`, for an engine that must be available.
    pub(crate) fn new(
        engine: Engine,
        rows: usize,
        columns: usize,
        coefficient: impl Fn(usize, usize) -> u8,
    ) -> Result<Self, Error> {
        if !engine.is_available() {
            return Err(Error::Engine { engine });
        }
        let all = || (0..columns).flat_map(|column| (0..rows).map(move |row| (row, column)));
        let bytes = all().map(|(row, column)| coefficient(row, column));
        #[cfg(target_arch = "x86_64")]
        let affine = || all().map(|(row, column)| field::AFFINE[usize::from(coefficient(row, column))]).collect();
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        let nibbles = || all().map(|(row, column)| field::NIBBLES[usize::from(coefficient(row, column))]).collect();
        let form = match engine {
            Engine::Naive => Form::Naive(bytes.collect()),
            Engine::Portable => Form::Portable(bytes.collect()),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2 => Form::Avx2(nibbles()),
            #[cfg(target_arch = "x86_64")]
            Engine::Gfni256 => Form::Gfni256(affine()),
            #[cfg(target_arch = "x86_64")]
            Engine::Gfni512 => Form::Gfni512(affine()),
            #[cfg(target_arch = "aarch64")]
            Engine::Neon => Form::Neon(nibbles()),
            #[cfg(not(target_arch = "x86_64"))]
            Engine::Avx2 | Engine::Gfni256 | Engine::Gfni512 => return Err(Error::Engine { engine }),
            #[cfg(not(target_arch = "aarch64"))]
            Engine::Neon => return Err(Error::Engine { engine }),
        };
        let plain = rows > 0 && (0..columns).all(|column| coefficient(0, column) == 1);
        let powers = rows == 2 && (0..columns).all(|column| coefficient(1, column) == field::power_of_two(column));
        let pattern = match (plain, powers) {
            (true, true) => Pattern::Powers,
            (true, false) => Pattern::Plain,
            _ => Pattern::General,
        };
        Ok(Self { form, rows, columns, pattern })
    }

    /// Each output becomes the sum of the sources times its row. Numbers and lengths were checked by the caller.
    pub(crate) fn multiply(&self, sources: &[&[u8]], outputs: &mut [&mut [u8]]) {
        debug_assert_eq!(sources.len(), self.columns);
        self.run(0, self.pattern, sources, outputs, WriteMode::Overwrite);
    }

    /// Each output becomes, or grows by (`mode`), the source times its row's entry in `column`.
    pub(crate) fn multiply_column<B: OutputBytes>(
        &self,
        column: usize,
        source: &[u8],
        outputs: &mut [B],
        mode: WriteMode,
    ) {
        debug_assert!(column < self.columns);
        let pattern = if self.pattern == Pattern::General { Pattern::General } else { Pattern::Plain };
        self.run(column, pattern, &[source], outputs, mode);
    }

    fn run<B: OutputBytes>(
        &self,
        column: usize,
        pattern: Pattern,
        sources: &[&[u8]],
        outputs: &mut [B],
        mode: WriteMode,
    ) {
        let rows = self.rows;
        debug_assert_eq!(outputs.len(), rows);
        if rows == 0 {
            return;
        }
        macro_rules! job {
            ($tables:expr) => {
                Multiplication {
                    tables: $tables.get(column * rows..).unwrap_or(&[]),
                    rows,
                    pattern,
                    sources,
                    outputs,
                    mode,
                }
            };
        }
        match &self.form {
            Form::Naive(bytes) => naive::run(job!(bytes)),
            Form::Portable(bytes) => portable::run(job!(bytes)),
            #[cfg(target_arch = "x86_64")]
            Form::Avx2(nibbles) => avx2::run(job!(nibbles)),
            #[cfg(target_arch = "x86_64")]
            Form::Gfni256(affine) => gfni256::run(job!(affine)),
            #[cfg(target_arch = "x86_64")]
            Form::Gfni512(affine) => gfni512::run(job!(affine)),
            #[cfg(target_arch = "aarch64")]
            Form::Neon(nibbles) => neon::run(job!(nibbles)),
        }
    }
}
