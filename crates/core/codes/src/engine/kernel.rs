//! The one algorithm of all fast engines: a few vectors of every output at a time, over all sources.
//!
//! Every source is read once for each four outputs, and every output is written once. The rest of a packet, if its length is
//! no multiple of a vector, is covered by vectors that end with the packet. These overlap others. So where sums are added to
//! the outputs, these vectors are computed before anything is written, and are written last.

#![allow(unsafe_code, reason = "vectors are read and written by address; checked lengths at every access cost a third")]

use super::{Multiplication, OutputBytes, Pattern, WriteMode};

/// The longest vector of any engine, in bytes.
const MAX: usize = 64;

/// Bytes that are processed at once. A value of this type exists only on a processor that has the instructions.
pub(super) trait Vector: Copy {
    /// Its length; at most [`MAX`].
    const BYTES: usize;
    /// Table for the multiplication by one coefficient.
    type Table: Copy;
    /// Part of a product that is common to several coefficients.
    type Split: Copy;

    /// # Safety
    /// `BYTES` bytes can be read there, and this processor has the engine's instructions.
    unsafe fn load(from: *const u8) -> Self;

    /// # Safety
    /// `BYTES` bytes can be written there.
    unsafe fn store(self, to: *mut u8);

    fn xor(self, other: Self) -> Self;
    /// Every byte times two.
    fn double(self) -> Self;
    fn split(self) -> Self::Split;
    fn times(split: Self::Split, table: Self::Table) -> Self;
}

/// Computation of `R` outputs from the sources, `U` vectors at a time.
trait KernelStep<V: Vector, const R: usize> {
    /// # Safety
    /// The processor has the engine's instructions. `U` vectors from `at` on lie within all sources and `outputs`, or,
    /// where they are `SHORT`, `U` is 1, `at` is 0, and all have `length` bytes, less than one vector.
    unsafe fn step<const U: usize, const SHORT: bool>(
        &self,
        outputs: [*mut u8; R],
        at: usize,
        length: usize,
    ) -> [[V; U]; R];
}

/// Any coefficients; the first row is all ones where it is `PLAIN`.
struct General<'a, T, const PLAIN: bool> {
    /// Coefficients from the first of these outputs on, column by column.
    tables: &'a [T],
    rows: usize,
    first: usize,
    sources: &'a [&'a [u8]],
    mode: WriteMode,
}

impl<V: Vector, const R: usize, const PLAIN: bool> KernelStep<V, R> for General<'_, V::Table, PLAIN> {
    #[inline(always)]
    unsafe fn step<const U: usize, const SHORT: bool>(
        &self,
        outputs: [*mut u8; R],
        at: usize,
        length: usize,
    ) -> [[V; U]; R] {
        let zero = [0; MAX];
        // SAFETY: every vector fits `zero`, and the caller guarantees that the processor can.
        let mut sums = [[unsafe { V::load(zero.as_ptr()) }; U]; R];
        if self.mode == WriteMode::Accumulate {
            for (sums, output) in sums.iter_mut().zip(outputs) {
                // SAFETY: guaranteed by the caller.
                *sums = unsafe { load::<V, U, SHORT>(output, at, length) };
            }
        }
        for (source, column) in self.sources.iter().zip(self.tables.chunks_exact(self.rows)) {
            let Some(column) = column.get(self.first..).and_then(|column| column.first_chunk::<R>()) else { continue };
            // SAFETY: guaranteed by the caller.
            let vectors = unsafe { load::<V, U, SHORT>(source.as_ptr(), at, length) };
            for u in 0..U {
                if PLAIN {
                    sums[0][u] = sums[0][u].xor(vectors[u]);
                }
                if !PLAIN || R > 1 {
                    let split = vectors[u].split();
                    for row in usize::from(PLAIN)..R {
                        sums[row][u] = sums[row][u].xor(V::times(split, column[row]));
                    }
                }
            }
        }
        sums
    }
}

/// Ones and powers of two: from the last source to the first, double and add.
struct Powers<'a> {
    sources: &'a [&'a [u8]],
}

impl<V: Vector> KernelStep<V, 2> for Powers<'_> {
    #[inline(always)]
    unsafe fn step<const U: usize, const SHORT: bool>(&self, _: [*mut u8; 2], at: usize, length: usize) -> [[V; U]; 2] {
        let zero = [0; MAX];
        // SAFETY: every vector fits `zero`, and the caller guarantees that the processor can.
        let mut sums = [[unsafe { V::load(zero.as_ptr()) }; U]; 2];
        for source in self.sources.iter().rev() {
            // SAFETY: guaranteed by the caller.
            let vectors = unsafe { load::<V, U, SHORT>(source.as_ptr(), at, length) };
            for u in 0..U {
                sums[0][u] = sums[0][u].xor(vectors[u]);
                sums[1][u] = sums[1][u].double().xor(vectors[u]);
            }
        }
        sums
    }
}

/// Runs the job. With one or two outputs `FEW` vectors are computed at a time, with more outputs `MANY`. These numbers fill
/// the registers, because sums of different vectors do not depend on each other.
///
/// # Safety
/// The processor has the engine's instructions.
#[inline(always)]
pub(super) unsafe fn run<V: Vector, B: OutputBytes, const FEW: usize, const MANY: usize>(
    job: Multiplication<'_, V::Table, B>,
) {
    let Multiplication { tables, rows, pattern, sources, outputs, mode } = job;
    let length = outputs.first().map_or(0, |output| output.len());
    // The unsafe code below relies on this; the creator of the job has checked it and reported errors.
    let equal = outputs.iter().all(|output| output.len() == length);
    if !equal || sources.iter().any(|source| source.len() != length) {
        debug_assert!(false, "packets of unequal lengths");
        return;
    }
    if pattern == Pattern::Powers && mode == WriteMode::Overwrite {
        if let Some((outputs, _)) = outputs.split_first_chunk_mut::<2>() {
            // SAFETY: all packets have `length` bytes, and the caller guarantees that the processor can.
            unsafe { sweep::<V, B, _, 2, FEW>(&Powers { sources }, outputs, length) };
        }
        return;
    }
    let mut first = 0;
    while first < outputs.len() {
        let rest = &mut outputs[first..];
        macro_rules! take {
            ($rows:literal, $plain:literal, $unroll:ident) => {{
                if let Some((outputs, _)) = rest.split_first_chunk_mut::<$rows>() {
                    let step = General::<_, $plain> { tables, rows, first, sources, mode };
                    // SAFETY: all packets have `length` bytes, and the caller guarantees that the processor can.
                    unsafe { sweep::<V, B, _, $rows, $unroll>(&step, outputs, length) };
                }
                $rows
            }};
        }
        let plain = first == 0 && pattern != Pattern::General;
        first += match (rest.len(), plain) {
            (1, false) => take!(1, false, FEW),
            (2, false) => take!(2, false, FEW),
            (3, false) => take!(3, false, MANY),
            (_, false) => take!(4, false, MANY),
            (1, true) => take!(1, true, FEW),
            (2, true) => take!(2, true, FEW),
            (3, true) => take!(3, true, MANY),
            (_, true) => take!(4, true, MANY),
        };
    }
}

/// The step for all of `length` bytes.
///
/// # Safety
/// The processor has the engine's instructions, and `outputs` and the step's sources all have `length` bytes.
#[inline(always)]
unsafe fn sweep<V: Vector, B: OutputBytes, S: KernelStep<V, R>, const R: usize, const U: usize>(
    step: &S,
    outputs: &mut [B; R],
    length: usize,
) {
    // Looked up once: the compiler must assume that a store to an output changes the pointer of the next one.
    let outputs = outputs.each_mut().map(|output| output.as_mut_ptr());
    // SAFETY: guaranteed by the caller; each stride fits, or all packets are shorter than a vector.
    unsafe {
        if length >= U * V::BYTES {
            stride::<V, S, R, U>(step, outputs, length);
        } else if length >= V::BYTES {
            stride::<V, S, R, 1>(step, outputs, length);
        } else if length > 0 {
            let sums = step.step::<1, true>(outputs, 0, length);
            for (sums, output) in sums.iter().zip(outputs) {
                let mut whole = [0; MAX];
                sums[0].store(whole.as_mut_ptr());
                output.copy_from_nonoverlapping(whole.as_ptr(), length);
            }
        }
    }
}

/// The step, `U` vectors at a time.
///
/// # Safety
/// As for [`sweep`], and `length` is at least `U` vectors.
#[inline(always)]
unsafe fn stride<V: Vector, S: KernelStep<V, R>, const R: usize, const U: usize>(
    step: &S,
    outputs: [*mut u8; R],
    length: usize,
) {
    let bytes = U * V::BYTES;
    let (whole, last) = (length - length % bytes, length - bytes);
    // SAFETY: `last` is `U` vectors before the end, `at` a multiple of that and under `whole`, within all packets.
    unsafe {
        let end = if whole < length { Some(step.step::<U, false>(outputs, last, length)) } else { None };
        let mut at = 0;
        while at < whole {
            let sums = step.step::<U, false>(outputs, at, length);
            store(&sums, outputs, at);
            at += bytes;
        }
        if let Some(sums) = end {
            store(&sums, outputs, last);
        }
    }
}

/// # Safety
/// `U` vectors from `at` on lie within the packet's `length` bytes, or it is `SHORT`er than one vector; and the
/// processor has the engine's instructions.
#[inline(always)]
unsafe fn load<V: Vector, const U: usize, const SHORT: bool>(packet: *const u8, at: usize, length: usize) -> [V; U] {
    if SHORT {
        let mut whole = [0; MAX];
        debug_assert!(length < V::BYTES);
        // SAFETY: the packet has `length` bytes, and every vector fits `whole`.
        return unsafe {
            packet.copy_to_nonoverlapping(whole.as_mut_ptr(), length);
            [V::load(whole.as_ptr()); U]
        };
    }
    debug_assert!(at + U * V::BYTES <= length);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let from = packet.add(at);
        let mut vectors = [V::load(from); U];
        for (u, vector) in vectors.iter_mut().enumerate().skip(1) {
            *vector = V::load(from.add(u * V::BYTES));
        }
        vectors
    }
}

/// # Safety
/// `U` vectors from `at` on lie within all `outputs`.
#[inline(always)]
unsafe fn store<V: Vector, const R: usize, const U: usize>(sums: &[[V; U]; R], outputs: [*mut u8; R], at: usize) {
    for (sums, output) in sums.iter().zip(outputs) {
        for (u, sum) in sums.iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe { sum.store(output.add(at + u * V::BYTES)) };
        }
    }
}
