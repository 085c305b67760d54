//! The quantities that every other crate computes with: [`Time`], [`Span`], [`Bytes`], [`Rate`], [`Frac`].
//!
//! Integers only. Time is counted in picoseconds, because a 64-byte packet lasts 5.12 ns at 100 Gb/s and a
//! nanosecond clock would distort it. Nothing here needs `u128` or a signed division, so all of it compiles
//! for the kernel's BPF machine. The ranges that the whole project relies on:
//!
//! | type | unit | range | what sets it |
//! |---|---|---|---|
//! | [`Time`] | ps since the start | 0 to 2^64 | 213 days |
//! | [`Span`] | ps, signed | -2^63 to 2^63 | 106 days |
//! | [`Bytes`] | bytes | 0 to 2^64; products stated for up to 2^40 | 400 Gb/s x 100 ms is 5 GB |
//! | [`Rate`] | bits per second | 1 to 2^43 | 8.8 Tb/s |
//! | [`Frac`] | 2^-32 | 0 to 2^32 | gains and marked fractions |

#![no_std]
#![forbid(unsafe_code)]

mod bytes;
mod exponential;
mod frac;
mod math;
mod mix;
mod rate;
mod tick;
mod time;

pub use bytes::Bytes;
pub use exponential::{EXPONENTIAL_BITS, exponential};
pub use frac::Frac;
pub use math::{cube_root, mul_checked, mul_div, mul_saturating, sqrt};
pub use mix::{below, mix64};
pub use rate::{PrecomputedRate, Rate};
pub use tick::Tick;
pub use time::{Span, Time};
