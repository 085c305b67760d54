//! Full-pipe detection of BBR: three round trips in which the bandwidth grew by less than a quarter.

use units::{Frac, Rate};

/// Growth of the bandwidth from which on the pipe is not full.
const GROWTH: Frac = Frac::millionths(1_250_000);
const ROUNDS: u8 = 3;

/// State of the full-pipe detection.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct FullPipe {
    best: Rate,
    rounds: u8, // without enough growth
}

impl FullPipe {
    pub(super) const fn new() -> Self {
        Self { best: Rate::ZERO, rounds: 0 }
    }

    pub(super) const fn is_full(&self) -> bool {
        self.rounds >= ROUNDS
    }

    /// Restarts the comparison with the next round, after a timeout emptied the pipe (Linux's `bbr_set_state`).
    pub(super) fn forget(&mut self) {
        self.best = Rate::ZERO;
    }

    /// Records the end of a round with this bandwidth. The round was not limited by a lack of data.
    pub(super) fn end_round(&mut self, bandwidth: Rate) {
        if self.is_full() {
            return;
        }
        if bandwidth >= self.best.scaled(GROWTH) {
            self.best = bandwidth;
            self.rounds = 0;
        } else {
            self.rounds += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_flat_rounds_fill_the_pipe() {
        let mut pipe = FullPipe::new();
        for mbps in [100, 200, 400, 480, 490] {
            pipe.end_round(Rate::from_mbps(mbps));
            assert!(!pipe.is_full());
        }
        // 400, then three rounds under 500.
        pipe.end_round(Rate::from_mbps(499));
        assert!(pipe.is_full());
        pipe.end_round(Rate::from_mbps(10_000));
        assert!(pipe.is_full());
        pipe.forget();
        assert!(pipe.is_full());
    }

    #[test]
    fn a_timeout_restarts_the_round_count() {
        let mut pipe = FullPipe::new();
        for mbps in [400, 410, 420] {
            pipe.end_round(Rate::from_mbps(mbps));
        }
        pipe.forget();
        for mbps in [420, 430, 440] {
            pipe.end_round(Rate::from_mbps(mbps));
            assert!(!pipe.is_full());
        }
        pipe.end_round(Rate::from_mbps(450));
        assert!(pipe.is_full());
    }
}
