//! Open streams of one direction that the peer opened, without an entry for each: RFC 9000 §2.1, §3, §4.6.
//!
//! A stream that the peer opens opens all of lower numbers. They have no state until they are used. Streams that are
//! done count as used, so they cost nothing.

use rangemap::RangeSet;

/// The most streams of a direction in a connection's life.
const MAX_STREAMS: u64 = 1 << 32;

/// State of a stream that the peer can open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admitted {
    /// The stream is used for the first time.
    First,
    /// The stream was used before, and may be forgotten since.
    Known,
}

#[derive(Debug)]
pub(super) struct StreamCountLimit {
    /// Maximum number of open streams.
    window: u64,
    /// Limit of the number of streams, as last sent to the peer.
    limit: u64,
    /// Streams below this number are open, or were.
    begun: u64,
    /// Streams below this number were accepted.
    accepted: u64,
    /// Number of streams that are done.
    closed: u64,
    /// Streams that are open and were not used. Not more than are open.
    unused: RangeSet<u64>,
}

impl StreamCountLimit {
    pub(super) fn new(window: u64) -> Self {
        let window = window.min(MAX_STREAMS);
        Self { window, limit: window, begun: 0, accepted: 0, closed: 0, unused: RangeSet::new() }
    }

    /// Handles the peer's use of a stream, and opens it if it was not open.
    ///
    /// # Errors
    /// If it may not: the number of streams that it may open.
    pub(super) fn admit(&mut self, nth: u64) -> Result<Admitted, u64> {
        if nth >= self.limit {
            return Err(self.limit);
        }
        if nth < self.begun {
            return Ok(self.first_use(nth));
        }
        if nth > self.begun {
            self.unused.insert(self.begun..nth);
        }
        self.begun = nth + 1;
        debug_assert!(self.accepted < self.begun && self.begun <= self.limit, "{} of {}", self.begun, self.limit);
        Ok(Admitted::First)
    }

    /// Handles the application's use of a stream. None if it is not open.
    pub(super) fn mark_used(&mut self, nth: u64) -> Option<Admitted> {
        (nth < self.begun).then(|| self.first_use(nth))
    }

    fn first_use(&mut self, nth: u64) -> Admitted {
        if !self.unused.contains(&nth) {
            return Admitted::Known;
        }
        self.unused.remove(nth..nth + 1);
        Admitted::First
    }

    /// Returns whether the stream was used, and so has state or is done.
    pub(super) fn was_used(&self, nth: u64) -> bool {
        nth < self.begun && !self.unused.contains(&nth)
    }

    /// Returns the number of the next stream that the application has not accepted.
    pub(super) fn accept(&mut self) -> Option<u64> {
        let nth = self.accepted;
        self.can_accept().then(|| {
            self.accepted += 1;
            nth
        })
    }

    pub(super) fn can_accept(&self) -> bool {
        self.accepted < self.begun
    }

    pub(super) fn closed(&mut self) {
        self.closed += 1;
        debug_assert!(self.closed <= self.begun);
    }

    /// Returns whether the peer should get a higher limit: it has opened most of the streams that its limit allows.
    pub(super) fn wants_raise(&self) -> bool {
        self.next_limit() > self.limit && self.limit - self.begun <= self.window / 2
    }

    /// Raises the limit as far as possible. Returns the limit.
    pub(super) fn raise(&mut self) -> u64 {
        debug_assert!(self.begun <= self.limit && self.limit <= self.next_limit(), "a limit falls from {}", self.limit);
        self.limit = self.next_limit();
        self.limit
    }

    fn next_limit(&self) -> u64 {
        (self.closed + self.window).min(MAX_STREAMS)
    }

    #[cfg(test)]
    pub(super) fn tracked_count(&self) -> usize {
        self.unused.iter().count()
    }
}
