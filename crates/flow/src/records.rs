//! What the sender remembers of each packet between its first departure and its acknowledgement: a ring of
//! 32-byte records over the unacknowledged part of the sequence space.

use alloc::vec::Vec;

use laws::Cookie;
use units::{Bytes, Span, Time};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Sent, not yet heard of.
    InFlight,
    /// Held for lost, waiting to be sent again.
    Lost,
    /// Held for lost, and sent again only if its block needs it.
    Missing,
    /// The receiver has it, or needs it no more.
    Acked,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) sent_at: Time,
    /// Payload delivered, and when that last grew, as known when this packet left.
    pub(crate) delivered: Bytes,
    pub(crate) delivered_time: Time,
    /// In units of 1,024 ps: 4.4 s at most, saturating.
    send_elapsed: u32,
    /// 1 for the first transmission; wraps after 255, which only an old duplicate could confuse.
    pub(crate) attempt: u8,
    pub(crate) state: State,
    pub(crate) app_limited: bool,
    /// Where each subflow has a law: that on which it left.
    pub(crate) subflow: u8,
}

impl Record {
    pub(crate) fn new(sent_at: Time, attempt: u8, delivered: Bytes, delivered_time: Time) -> Self {
        Self {
            sent_at,
            delivered,
            delivered_time,
            send_elapsed: 0,
            attempt,
            state: State::InFlight,
            app_limited: false,
            subflow: 0,
        }
    }

    pub(crate) fn set_send_elapsed(&mut self, span: Span) {
        self.send_elapsed = u32::try_from(span.unsigned_ps() >> 10).unwrap_or(u32::MAX);
    }

    pub(crate) fn send_elapsed(&self) -> Span {
        Span::from_ps(i64::from(self.send_elapsed) << 10)
    }
}

/// Records for the sequence numbers `first..end`, in a ring whose size is a power of two.
#[derive(Debug)]
pub(crate) struct Records {
    ring: Vec<Record>,
    /// Beside the ring, and empty until a law keeps something with its packets.
    cookies: Vec<Cookie>,
    first: u32,
    end: u32,
    /// How often a record was looked at: what work a test counts.
    #[cfg(test)]
    looks: core::cell::Cell<u64>,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self {
            ring: Vec::new(),
            cookies: Vec::new(),
            first: 0,
            end: 0,
            #[cfg(test)]
            looks: core::cell::Cell::new(0),
        }
    }

    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    #[cfg(test)]
    pub(crate) fn looks(&self) -> u64 {
        self.looks.get()
    }

    fn slot(&self, seq: u32) -> usize {
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
        debug_assert!(self.first <= seq && seq < self.end, "{seq} is not in {}..{}", self.first, self.end);
        seq as usize & (self.ring.len() - 1)
    }

    #[inline]
    pub(crate) fn get(&self, seq: u32) -> &Record {
        &self.ring[self.slot(seq)]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, seq: u32) -> &mut Record {
        let slot = self.slot(seq);
        &mut self.ring[slot]
    }

    /// Appends the record of sequence number `end`.
    #[inline]
    pub(crate) fn push(&mut self, record: Record) {
        if (self.end - self.first) as usize == self.ring.len() {
            self.grow();
        }
        self.end += 1;
        let slot = self.slot(self.end - 1);
        self.ring[slot] = record;
    }

    /// Forgets acknowledged records at the front.
    #[inline]
    pub(crate) fn trim(&mut self) {
        while self.first < self.end && self.ring[self.slot(self.first)].state == State::Acked {
            self.first += 1;
        }
    }

    pub(crate) fn cookie(&self, seq: u32) -> Cookie {
        if self.cookies.is_empty() { Cookie::NONE } else { self.cookies[self.slot(seq)] }
    }

    pub(crate) fn set_cookie(&mut self, seq: u32, cookie: Cookie) {
        if self.cookies.is_empty() {
            if cookie == Cookie::NONE {
                return;
            }
            self.cookies.resize(self.ring.len(), Cookie::NONE);
        }
        let slot = self.slot(seq);
        self.cookies[slot] = cookie;
    }

    fn grow(&mut self) {
        let size = (self.ring.len() * 2).max(16);
        let filler = Record::new(Time::ZERO, 0, Bytes::ZERO, Time::ZERO);
        let mut ring = alloc::vec![filler; size];
        let mut cookies = if self.cookies.is_empty() { Vec::new() } else { alloc::vec![Cookie::NONE; size] };
        for seq in self.first..self.end {
            ring[seq as usize & (size - 1)] = *self.get(seq);
            if !cookies.is_empty() {
                cookies[seq as usize & (size - 1)] = self.cookie(seq);
            }
        }
        self.ring = ring;
        self.cookies = cookies;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_in_flight_costs_32_bytes_here() {
        assert_eq!(size_of::<Record>(), 32);
    }

    #[test]
    fn records_survive_growth_and_trimming() {
        let mut records = Records::new();
        for seq in 0..1000u32 {
            records.push(Record::new(Time::from_ns(u64::from(seq)), 1, Bytes::ZERO, Time::ZERO));
            records.set_cookie(seq, Cookie(u64::from(seq)));
            if seq >= 20 {
                records.get_mut(seq - 20).state = State::Acked;
                records.trim();
            }
        }
        assert_eq!((records.first(), records.end()), (980, 1000));
        for seq in 980..1000 {
            assert_eq!(records.get(seq).sent_at, Time::from_ns(u64::from(seq)));
            assert_eq!(records.cookie(seq), Cookie(u64::from(seq)));
        }
        assert!(records.ring.len() <= 32);
    }
}
