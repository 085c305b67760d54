//! The progress of a test, in all and by interval.

use std::cell::{Cell, OnceCell, RefCell};
use std::time::Duration;

use proto::streams::StreamId;
use transport::Connection;
use units::Span;

use crate::exit::print;
use crate::interrupt::interrupted;
use crate::peer::quantity::{amount, rate};
use crate::peer::session_error::SessionError;
use study::Stopwatch;

/// The progress of a test.
pub(super) struct ThroughputMeter<'a> {
    pub(super) connection: &'a Connection,
    /// From when the connection was there.
    since_connected: Stopwatch,
    /// From the first byte on, and when the last one was through.
    clock: OnceCell<Stopwatch>,
    ended: Cell<Option<(Duration, Duration)>>,
    /// Bytes that were written to each stream, or read from it.
    counts: OnceCell<Vec<Cell<u64>>>,
    /// The streams that this end sends on; none if it receives.
    send_streams: RefCell<Vec<StreamId>>,
    /// The durations of the messages that this end has sent.
    pub(super) durations: RefCell<Vec<Duration>>,
    /// The present phase, named by the event that is waited for.
    pub(super) phase: Cell<&'static str>,
}

impl<'a> ThroughputMeter<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            since_connected: Stopwatch::start(),
            clock: OnceCell::new(),
            ended: Cell::new(None),
            counts: OnceCell::new(),
            send_streams: RefCell::new(Vec::new()),
            durations: RefCell::new(Vec::new()),
            phase: Cell::new("the test to begin"),
        }
    }

    /// Sets the number of streams that both ends agreed on.
    pub(super) fn plan(&self, streams: u16) {
        self.counts.get_or_init(|| (0..streams).map(|_| Cell::new(0)).collect());
    }

    /// Bytes of each stream.
    pub(super) fn counts(&self) -> &[Cell<u64>] {
        self.counts.get().map_or(&[], Vec::as_slice)
    }

    /// Starts the clock at the first byte. `send_streams` are a sender's streams.
    pub(super) fn begin(&self, send_streams: Vec<StreamId>) {
        self.send_streams.replace(send_streams);
        self.phase.set("data");
        self.clock.get_or_init(Stopwatch::start);
    }

    /// The last byte is through.
    pub(super) fn end(&self) {
        self.ended.set(self.clock.get().map(|clock| (clock.elapsed(), Duration::from_secs_f64(clock.times().cpu_s))));
        self.phase.set("the peer's totals");
    }

    /// Since the first byte, until the last one.
    pub(super) fn elapsed(&self) -> Duration {
        self.times().0
    }

    /// The same, and the processor time that it took this process.
    pub(super) fn times(&self) -> (Duration, Duration) {
        let now = || self.clock.get().map_or(Duration::ZERO, Stopwatch::elapsed);
        self.ended.get().unwrap_or_else(|| (now(), Duration::ZERO))
    }

    /// Since the connection was there.
    pub(super) fn time_since_connected(&self) -> Duration {
        self.since_connected.elapsed()
    }

    /// Bytes that were written, or read.
    pub(super) fn counted(&self) -> u64 {
        self.counts().iter().map(Cell::get).sum()
    }

    /// Bytes that the peer has for certain, or that were read.
    fn delivered(&self) -> u64 {
        let waiting: u64 = self.send_streams.borrow().iter().map(|&stream| self.connection.unacked(stream)).sum();
        self.counted().saturating_sub(waiting)
    }

    /// The smoothed round trip, the mean over open paths.
    pub(super) fn rtt(&self) -> Option<Span> {
        let open = self.connection.paths().into_iter().filter(|path| path.is_open && path.rtt > Span::ZERO);
        let (sum, count) = open.fold((0, 0), |(sum, count), path| (sum + path.rtt.ps(), count + 1));
        (count > 0).then(|| Span::from_ps(sum / count))
    }
}

/// The progress in an interval.
#[derive(Clone, Debug)]
pub(super) struct ProgressInterval {
    pub(super) from: Duration,
    pub(super) to: Duration,
    pub(super) bytes: u64,
    pub(super) rtt: Option<Span>,
    pub(super) lost: u64,
}

impl ProgressInterval {
    fn line(&self) -> String {
        let Self { from, to, bytes, rtt, lost } = self;
        let rtt = rtt.map_or_else(String::new, |rtt| format!("  rtt {}", in_ms(rtt)));
        let lost = if *lost > 0 { format!("  {lost} lost") } else { String::new() };
        format!(
            "[{:5.2}-{:.2} s] {:>8} {:>12}{rtt}{lost}",
            from.as_secs_f64(),
            to.as_secs_f64(),
            amount(*bytes),
            rate(*bytes, to.saturating_sub(*from))
        )
    }
}

/// Such as `0.4 ms`.
pub(super) fn in_ms(span: Span) -> String {
    let ms = span.ps() as f64 / 1e9;
    let digits = if ms < 0.095 { 3 } else { 1 + usize::from(ms < 0.95) };
    format!("{ms:.digits$} ms")
}

/// Monitors a test while it runs: its intervals, stalls, and Ctrl-C.
pub(super) struct TestMonitor<'a> {
    meter: &'a ThroughputMeter<'a>,
    /// None if intervals are not recorded.
    interval: Option<Duration>,
    /// Set if intervals are printed.
    prints: bool,
    pub(super) intervals: Vec<ProgressInterval>,
    /// The bytes delivered and the packets lost before the present interval.
    start_counts: (u64, u64),
    /// The maximum time without progress; then the test ends.
    stall_timeout: Duration,
    /// Bytes delivered, phase and time at the last progress.
    last: (u64, &'static str, Duration),
}

impl<'a> TestMonitor<'a> {
    /// The connection itself ends when the peer is silent for `idle`. A peer that answers and does nothing has twice as
    /// long, so that the one is not taken for the other.
    pub(super) fn new(meter: &'a ThroughputMeter<'a>, idle: Duration) -> Self {
        let last = (0, "", Duration::ZERO);
        Self {
            meter,
            interval: None,
            prints: false,
            intervals: Vec::new(),
            start_counts: (0, 0),
            stall_timeout: idle * 2,
            last,
        }
    }

    /// Records intervals of this length.
    pub(super) fn interval(self, interval: Duration) -> Self {
        Self { interval: Some(interval), ..self }
    }

    /// Prints intervals.
    pub(super) fn print_intervals(self) -> Self {
        Self { prints: true, ..self }
    }

    pub(super) fn poll(&mut self) -> Result<(), SessionError> {
        if interrupted() {
            return Err(SessionError::Interrupted);
        }
        while let Some(interval) = self.interval
            && self.interval_start() + interval <= self.meter.elapsed()
        {
            self.record_interval(self.interval_start() + interval);
        }
        let (now, phase) = (self.meter.time_since_connected(), self.meter.phase.get());
        // Acknowledged bytes are counted now and then only: each count takes a lock.
        if now >= self.last.2 + self.stall_timeout / 4 || phase != self.last.1 {
            let delivered = self.meter.delivered();
            if (delivered, phase) != (self.last.0, self.last.1) {
                self.last = (delivered, phase, now);
            } else if now >= self.last.2 + self.stall_timeout {
                return Err(SessionError::Stalled { phase, time: self.stall_timeout });
            }
        }
        Ok(())
    }

    /// The last interval ends with the test.
    pub(super) fn finish(&mut self) {
        let end = self.meter.elapsed();
        while let Some(interval) = self.interval
            && self.interval_start() + interval < end
        {
            self.record_interval(self.interval_start() + interval);
        }
        if self.interval.is_some() && self.meter.delivered() > self.start_counts.0 {
            self.record_interval(end);
        }
    }

    fn interval_start(&self) -> Duration {
        self.intervals.last().map_or(Duration::ZERO, |interval| interval.to)
    }

    fn record_interval(&mut self, to: Duration) {
        let (delivered, lost) = (self.meter.delivered(), self.meter.connection.stats().lost);
        let interval = ProgressInterval {
            from: self.interval_start(),
            to,
            bytes: delivered - self.start_counts.0,
            rtt: self.meter.rtt(),
            lost: lost.saturating_sub(self.start_counts.1),
        };
        self.start_counts = (delivered, lost);
        if self.prints {
            // A reader that has gone does not matter here: the final summary reports it.
            let _ = print(&interval.line());
        }
        self.intervals.push(interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_lines_match_the_documentation() {
        let (from, to) = (Duration::ZERO, Duration::from_secs(1));
        let mut interval = ProgressInterval { from, to, bytes: 120_625_000, rtt: Some(Span::from_us(400)), lost: 0 };
        assert_eq!(interval.line(), "[ 0.00-1.00 s]   121 MB   965 Mbit/s  rtt 0.40 ms");
        (interval.rtt, interval.lost) = (None, 3);
        assert_eq!(interval.line(), "[ 0.00-1.00 s]   121 MB   965 Mbit/s  3 lost");
        assert_eq!([30, 950, 12_340].map(|us| in_ms(Span::from_us(us))), ["0.030 ms", "0.9 ms", "12.3 ms"]);
    }
}
