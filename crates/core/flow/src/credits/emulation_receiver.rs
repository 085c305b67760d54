//! Receiver of emulation packets: selects the packets to echo, and the time of the echo. `FlashPass` §III-B: it waits for
//! more credits of the same flow where the time stamps leave time.
//!
//! An echo names the newest emulation packet and, by a bit each, those of the 31 before it that arrived since the last echo,
//! so it needs no list; the sender knows the send times. Credits are held back for at most half of the oldest one's remaining
//! wait, after the delay of the way back is subtracted. The other half allows for delays of the echo.

use units::{Span, Time};

/// Content of an echo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo {
    /// The newest emulation packet.
    pub newest: u32,
    /// Bit `i`: emulation packet `newest - i` arrived.
    pub map: u32,
}

impl Echo {
    /// Returns the number of emulation packets that it echoes.
    pub fn count(&self) -> u32 {
        self.map.count_ones()
    }
}

/// Receiver state of a flow with sender-driven emulation.
#[derive(Debug)]
pub struct EmulationReceiver {
    /// `T_wait`; none: echoes go at once.
    wait: Option<Span>,
    held: Option<Echo>,
    flush_at: Time,
}

impl EmulationReceiver {
    /// Creates the state of a flow that sends data this long after its emulation packet; with none each emulation packet is
    /// echoed at once.
    pub fn new(wait: Option<Span>) -> Self {
        Self { wait, held: None, flush_at: Time::NEVER }
    }

    /// Returns the next time at which [`EmulationReceiver::flush`] must be called.
    pub fn next_action(&self) -> Time {
        self.flush_at
    }

    /// Processes an emulation packet that took `delay` by the hosts' clocks. Returns the echoes to send, in order.
    pub fn on_emulation(&mut self, now: Time, number: u32, delay: Span) -> [Option<Echo>; 2] {
        // Distance of its number from the newest one held back; an older or equal number never arrives on a path that keeps
        // order.
        let distance = self.held.map_or(Some(0), |held| number.checked_sub(held.newest));
        let full = match (self.held, distance) {
            (Some(held), Some(distance)) if distance > 0 && distance <= held.map.leading_zeros() => None,
            (held, _) => held,
        };
        if full.is_some() {
            self.flush();
        }
        let map = self.held.map_or(1, |held| held.map << (number - held.newest) | 1);
        self.held = Some(Echo { newest: number, map });
        let left = self.wait.map_or(Span::ZERO, |wait| wait - delay - delay);
        if left <= Span::ZERO || map >> 31 != 0 {
            return [full, self.flush()];
        }
        self.flush_at = self.flush_at.min(now + left.over(2));
        [full, None]
    }

    /// Returns the echo that is held back, to be sent now.
    pub fn flush(&mut self) -> Option<Echo> {
        self.flush_at = Time::NEVER;
        self.held.take()
    }
}
