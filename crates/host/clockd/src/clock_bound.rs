//! Pages of `ClockBound` (<https://github.com/aws/clock-bound>), so that programs that read those know UTC with a bound.
//!
//! `shm0`, of version 2, bounds `CLOCK_REALTIME`: the bound is the error of UTC plus the distance of the system clock from it,
//! because the daemon does not set the clock. `shm1`, of version 3, maps the processor's counter to UTC and does not use the
//! system clock. Both have the status unknown while UTC is not known.
//!
//! Layouts are those of `ClockBound` 2.0.3 and 3.0.0-rc.0. Flags of support for disruptions are 0: with 1 clients open
//! `/dev/vmclock0`, which few hosts have.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use clocks::Skew;

use crate::shared_file::{Layout, PageError, SharedFile};
use crate::sys::{KernelClock, Mapping, clock_ns, clock_source, counter};

const MAGIC: [u32; 2] = [0x414d_5a4e, 0x4342_0200];

/// Time from an update to the end of the page's validity, in nanoseconds. Clients report free running 5 s after an update.
const VALIDITY: i64 = 10_000_000_000;

/// Status of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Unknown = 0,
    Synchronised = 1,
}

/// UTC at a reading of `CLOCK_MONOTONIC_RAW`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UtcReading {
    /// The reading.
    pub(crate) raw: i64,
    /// `CLOCK_REALTIME` at the same time.
    pub(crate) real: i64,
    /// UTC, in nanoseconds since 1970.
    pub(crate) utc: i64,
    /// Largest error, in nanoseconds.
    pub(crate) error: i64,
    /// Rate of UTC relative to `CLOCK_MONOTONIC_RAW`.
    pub(crate) rate: Skew,
}

/// Common parts of both pages.
#[derive(Debug)]
struct Page {
    mapping: Mapping,
    _file: File,
}

/// Words of version 2: 80 bytes.
const WORDS_0: usize = 10;

/// Words of version 3: 104 bytes.
const WORDS_1: usize = 13;

/// Returns the word with the length of the page, its version and its generation.
fn version_word(words: usize, version: u16, generation: u16) -> u64 {
    let [low, high] = [version, generation].map(u16::to_ne_bytes);
    pair_word(words as u32 * 8, u32::from_ne_bytes([low[0], low[1], high[0], high[1]]))
}

/// Returns the word with two fields, the first one at the lower address.
fn pair_word(first: u32, second: u32) -> u64 {
    let fields = [first, second].map(u32::to_ne_bytes);
    u64::from_ne_bytes(std::array::from_fn(|at| fields[at / 4][at % 4]))
}

/// Returns the word with three bytes at the lowest addresses.
fn bytes_word(first: [u8; 3]) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|at| first.get(at).copied().unwrap_or(0)))
}

fn has_magic(mapping: &Mapping) -> bool {
    mapping.word(0).load(Ordering::Relaxed) == pair_word(MAGIC[0], MAGIC[1])
}

fn initialise(mapping: &Mapping) {
    mapping.word(0).store(pair_word(MAGIC[0], MAGIC[1]), Ordering::Relaxed);
}

impl Page {
    fn open(path: &Path, words: usize) -> Result<Self, PageError> {
        let layout = Layout { length: words as u64 * 8, words, is_valid: has_magic, initialise };
        let SharedFile { file, mapping } = SharedFile::open(path, &layout)?;
        Ok(Self { mapping, _file: file })
    }

    fn generation(&self) -> u16 {
        let [.., a, b] = self.mapping.word(1).load(Ordering::Relaxed).to_ne_bytes();
        u16::from_ne_bytes([a, b])
    }

    /// Replaces the fields from word 2 on. The generation is odd meanwhile, and never 0 afterwards.
    fn write(&self, version: u16, fields: &[u64]) {
        let words = fields.len() + 2;
        // A writer that crashed in an update has left an odd number.
        let odd = self.generation() | 1;
        self.mapping.word(1).store(version_word(words, version, odd), Ordering::Relaxed);
        fence(Ordering::Release);
        for (index, &field) in fields.iter().enumerate() {
            self.mapping.word(2 + index).store(field, Ordering::Relaxed);
        }
        let even = if odd == u16::MAX { 2 } else { odd + 1 };
        self.mapping.word(1).store(version_word(words, version, even), Ordering::Release);
    }
}

/// A time as the pages have it: seconds and nanoseconds.
fn timespec(ns: i64) -> [u64; 2] {
    [ns.div_euclid(1_000_000_000) as u64, ns.rem_euclid(1_000_000_000) as u64]
}

/// The processor's counter and `CLOCK_MONOTONIC_RAW` at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CounterPair {
    counter: u64,
    raw: i64,
    /// Largest error of `raw`, in nanoseconds.
    error: i64,
}

impl CounterPair {
    fn read() -> Option<Self> {
        let read = |_| {
            let before = clock_ns(KernelClock::MonotonicRaw);
            let counter = counter()?;
            let width = clock_ns(KernelClock::MonotonicRaw).wrapping_sub(before);
            Some(Self { counter, raw: before + width / 2, error: width / 2 + 1 })
        };
        (0..4).filter_map(read).min_by_key(|pair| pair.error)
    }
}

/// Time over which the counter's period is measured, at least, in nanoseconds.
const MIN_BASELINE: i64 = 1_000_000_000;

/// The same, at most: products stay within 128 bits.
const MAX_BASELINE: i64 = 1_000_000_000_000;

/// Period of the processor's counter: `frac / 2^(64 + shift)` seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Period {
    frac: u64,
    shift: u8,
    /// Largest relative error, in 2^-64.
    error: u64,
}

/// Measures the counter's period against the host's clock. It is constant where the kernel uses the counter as its clock
/// source.
#[derive(Debug)]
struct CounterScale {
    is_clock_source: bool,
    /// Starts of baselines: the one in use, and its successor.
    starts: [Option<CounterPair>; 2],
}

impl CounterScale {
    fn new() -> Self {
        let is_clock_source = matches!(clock_source().as_str(), "tsc" | "arch_sys_counter");
        Self { is_clock_source, starts: [None; 2] }
    }

    /// Forgets what was measured.
    fn reset(&mut self) {
        self.starts = [None; 2];
    }

    /// Returns the period of the counter in seconds of a clock with this rate.
    fn period(&mut self, now: &CounterPair, rate: Skew) -> Option<Period> {
        if !self.is_clock_source {
            return None;
        }
        let [first, second] = &mut self.starts;
        let start = *first.get_or_insert(*now);
        if now.raw - start.raw > MAX_BASELINE / 2 {
            let next = *second.get_or_insert(*now);
            if now.raw - start.raw > MAX_BASELINE {
                (*first, *second) = (Some(next), None);
            }
        }
        let ticks = now.counter.checked_sub(start.counter)?;
        let run = now.raw - start.raw;
        (run >= MIN_BASELINE && ticks > 0).then(|| period(run, ticks, rate))?.map(|period| {
            let error = (i128::from(now.error + start.error) << 64) / i128::from(run);
            Period { error: error.clamp(0, u64::MAX.into()) as u64, ..period }
        })
    }
}

/// Returns the seconds a tick, if `ticks` take `run` nanoseconds of a clock that a better one gains `rate` on.
fn period(run: i64, ticks: u64, rate: Skew) -> Option<Period> {
    if run >= 1 << 50 {
        return None;
    }
    // Nanoseconds a tick, in 2^-77.
    let ns = (u128::from(run.unsigned_abs()) << 77) / u128::from(ticks);
    let gained = ((ns >> 32) as i128 * i128::from(rate.0)) >> 16;
    let ns = ns.checked_add_signed(gained)?;
    // Seconds a tick, in 2^-(77 + up).
    let up = ns.leading_zeros();
    let seconds = (ns << up) / 1_000_000_000;
    let bits = 128 - seconds.leading_zeros();
    let frac = (seconds >> (bits - 64)) as u64;
    let shift = u8::try_from((77 + up).checked_sub(bits)?).ok()?;
    Some(Period { frac, shift, error: 0 })
}

/// Writer of both pages.
#[derive(Debug)]
pub(crate) struct ClockBoundWriter {
    shm0: Page,
    shm1: Page,
    max_drift_ppb: u32,
    scale: CounterScale,
}

impl ClockBoundWriter {
    /// Opens both pages, with the status unknown.
    pub(crate) fn open(shm0: &Path, shm1: &Path, max_drift_ppb: u32) -> Result<Self, PageError> {
        let (shm0, shm1) = (Page::open(shm0, WORDS_0)?, Page::open(shm1, WORDS_1)?);
        let mut writer = Self { shm0, shm1, max_drift_ppb, scale: CounterScale::new() };
        writer.write(None, 0);
        Ok(writer)
    }

    /// Forgets the period of the counter, after a suspend.
    pub(crate) fn reset(&mut self) {
        self.scale.reset();
    }

    /// Writes both pages; without UTC as unknown.
    pub(crate) fn write(&mut self, utc: Option<&UtcReading>, disruptions: u64) {
        self.write_shm0(utc, disruptions);
        self.write_shm1(utc, disruptions);
    }

    fn write_shm0(&self, utc: Option<&UtcReading>, disruptions: u64) {
        // By the coarse clock, as clients read it: it may be behind.
        let as_of = clock_ns(KernelClock::MonotonicCoarse);
        let (status, bound) = match utc {
            Some(utc) => {
                let distance = utc.real.saturating_sub(utc.utc).saturating_abs();
                (Status::Synchronised, utc.error.saturating_add(distance))
            }
            None => (Status::Unknown, 0),
        };
        let ([s, ns], [void_s, void_ns]) = (timespec(as_of), timespec(as_of.saturating_add(VALIDITY)));
        let drift = pair_word(self.max_drift_ppb, status as u32);
        self.shm0.write(2, &[s, ns, void_s, void_ns, bound as u64, disruptions, drift, 0]);
    }

    fn write_shm1(&mut self, utc: Option<&UtcReading>, disruptions: u64) {
        let known = utc.and_then(|utc| {
            let pair = CounterPair::read()?;
            let period = self.scale.period(&pair, utc.rate)?;
            Some((utc, pair, period))
        });
        let Some((utc, pair, period)) = known else {
            let drift = pair_word(self.max_drift_ppb, Status::Unknown as u32);
            self.shm1.write(0x0303, &[0, 0, 0, 0, 0, 0, 0, 0, disruptions, drift, 0]);
            return;
        };
        let elapsed = pair.raw.saturating_sub(utc.raw);
        let now = utc.utc.saturating_add(elapsed).saturating_add(utc.rate.over(elapsed));
        let grown = Skew::from_ppb(self.max_drift_ppb.into()).over(elapsed.saturating_abs());
        let bound = utc.error.saturating_add(grown).saturating_add(pair.error).saturating_add(1);
        let ([s, ns], [void_s, void_ns]) = (timespec(now), timespec(now.saturating_add(VALIDITY)));
        let drift = pair_word(self.max_drift_ppb, Status::Synchronised as u32);
        let (frac, error) = (period.frac, period.error);
        let shifts = bytes_word([0, period.shift, 0]);
        let fields = [pair.counter, s, ns, void_s, void_ns, frac, error, bound as u64, disruptions, drift, shifts];
        self.shm1.write(0x0303, &fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        bytes[at..at + N].try_into().unwrap()
    }

    fn ns_at(bytes: &[u8], at: usize) -> i64 {
        let [s, ns] = [at, at + 8].map(|at| i64::from_ne_bytes(field(bytes, at)));
        s * 1_000_000_000 + ns
    }

    fn reading(utc_ahead: i64, error: i64) -> UtcReading {
        let (raw, real) = (clock_ns(KernelClock::MonotonicRaw), clock_ns(KernelClock::RealTime));
        UtcReading { raw, real, utc: real + utc_ahead, error, rate: Skew::ZERO }
    }

    /// Fields are where the layouts have them, and a client's arithmetic contains UTC.
    #[test]
    fn pages_have_the_stated_layout() {
        let directory = std::env::temp_dir().join(format!("narrows-clockd-bound-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let paths = ["shm0", "shm1"].map(|name| directory.join(name));
        let mut writer = ClockBoundWriter::open(&paths[0], &paths[1], 50_000).unwrap();
        let read = || paths.clone().map(|path| std::fs::read(path).unwrap());
        for page in read() {
            assert_eq!(u32::from_ne_bytes(field(&page, 0)), 0x414d_5a4e);
            assert_eq!(u32::from_ne_bytes(field(&page, 4)), 0x4342_0200);
            assert_eq!(u32::from_ne_bytes(field(&page, 8)) as usize, page.len());
            assert_eq!(u16::from_ne_bytes(field(&page, 14)) % 2, 0);
        }
        let [shm0, shm1] = read();
        assert_eq!((shm0.len(), u16::from_ne_bytes(field(&shm0, 12))), (80, 2));
        assert_eq!((shm1.len(), u16::from_ne_bytes(field(&shm1, 12))), (104, 0x0303));
        assert_eq!([i32::from_ne_bytes(field(&shm0, 68)), i32::from_ne_bytes(field(&shm1, 92))], [0, 0]);

        // The system clock is 7 us behind UTC.
        writer.write(Some(&reading(7_000, 1_000)), 5);
        std::thread::sleep(Duration::from_millis(1_100));
        writer.write(Some(&reading(7_000, 1_000)), 5);
        let [shm0, shm1] = read();
        assert_eq!(i32::from_ne_bytes(field(&shm0, 68)), 1);
        assert_eq!(i64::from_ne_bytes(field(&shm0, 48)), 8_000);
        assert_eq!(u64::from_ne_bytes(field(&shm0, 56)), 5);
        assert_eq!(u32::from_ne_bytes(field(&shm0, 64)), 50_000);
        assert_eq!(ns_at(&shm0, 32) - ns_at(&shm0, 16), VALIDITY);
        assert!(ns_at(&shm0, 16) <= clock_ns(KernelClock::MonotonicCoarse));

        if writer.scale.is_clock_source {
            assert_eq!(i32::from_ne_bytes(field(&shm1, 92)), 1);
            let frac = u64::from_ne_bytes(field(&shm1, 56)) as f64;
            let period = frac / 2f64.powi(64 + i32::from(shm1[97]));
            let at = u64::from_ne_bytes(field(&shm1, 16));
            let error = u64::from_ne_bytes(field(&shm1, 64)) as f64 / 2f64.powi(64 + i32::from(shm1[98]));
            let before = clock_ns(KernelClock::RealTime);
            let ticks = counter().unwrap() - at;
            let after = clock_ns(KernelClock::RealTime);
            let elapsed = (ticks as f64 * period * 1e9) as i64;
            let real = ns_at(&shm1, 24) + elapsed - 7_000;
            // The system clock is slewed by less than 1,000 ppm.
            let tolerance = 1_000 + elapsed / 1_000;
            assert!((before - tolerance..after + tolerance).contains(&real), "{before} {real} {after}");
            assert!((0.0..1e-5).contains(&error), "{error}");
        } else {
            testing::skipped_here("the counter is not the kernel's clock source");
        }
        writer.write(None, 6);
        let [shm0, shm1] = read();
        assert_eq!([i32::from_ne_bytes(field(&shm0, 68)), i32::from_ne_bytes(field(&shm1, 92))], [0, 0]);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn generations_skip_zero_and_odd_ones_are_taken_over() {
        let path = std::env::temp_dir().join(format!("narrows-clockd-generation-{}", std::process::id()));
        let page = Page::open(&path, WORDS_0).unwrap();
        for (left, expected) in [(0, 2), (2, 4), (7, 8), (u16::MAX - 1, 2), (u16::MAX, 2)] {
            page.mapping.word(1).store(version_word(WORDS_0, 2, left), Ordering::Relaxed);
            page.write(2, &[0; WORDS_0 - 2]);
            assert_eq!(page.generation(), expected, "{left}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    proptest! {
        #[test]
        fn periods_are_exact(run in MIN_BASELINE..=MAX_BASELINE, mhz in 20u64..6_000, ppb in -500_000i64..500_000) {
            let ticks = (u128::from(run.unsigned_abs()) * u128::from(mhz) / 1_000) as u64;
            let found = period(run, ticks, Skew::from_ppb(ppb)).unwrap();
            let seconds = found.frac as f64 / 2f64.powi(64 + i32::from(found.shift));
            let expected = run as f64 * 1e-9 / ticks as f64 * (1.0 + Skew::from_ppb(ppb).0 as f64 / 2f64.powi(48));
            prop_assert!((seconds / expected - 1.0).abs() < 1e-12, "{} and {}", seconds, expected);
            prop_assert!(found.frac >> 63 == 1);
        }
    }
}
