//! Per-packet records, kept until no acknowledgement can refer to the packet: a ring of records by packet number. A record
//! with a content of four bytes takes 32 bytes.

use alloc::boxed::Box;

use laws::Cookie;
use units::{Bytes, Span, Time};

use crate::law_state::Lack;
use crate::ring::SeqRing;

/// State of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Not yet acknowledged.
    InFlight,
    /// Declared lost; its content waits to be sent again.
    Lost,
    /// Declared lost; its content is sent again only if its block needs it.
    Missing,
    /// Its content arrived, is no longer needed, or has been sent again.
    Done,
}

impl State {
    const ALL: [Self; 4] = [Self::InFlight, Self::Lost, Self::Missing, Self::Done];
}

/// Record of one transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket<C> {
    pub(crate) sent_at: Time,
    /// From the lowest bit: [`State`] (2), payload (16), and the lowest 46 bits of the payload delivered as known when this
    /// packet was sent. 46 bits are 70 TB: more than is ever delivered while one packet has a record.
    packed_state_size_delivered: u64,
    /// From the lowest bit: window not filled (1), path (6), no bandwidth sample for lack of data (1), transmission (8), and
    /// the time from the last delivery to the departure of this packet, in picoseconds (48: 281 s, saturating).
    packed_flags_age: u64,
    /// Time from the beginning of this packet's flight to its departure, in units of 1,024 ps: 4.4 s at most, saturating.
    send_elapsed: u32,
    /// Content of the packet.
    pub(crate) content: C,
}

const STATE: u64 = 3;
const LIMITED: u64 = 1;
const SAMPLE_LIMITED: u64 = 1 << 7;
const MAX_AGE: u64 = (1 << 48) - 1;

/// A packet to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission<C> {
    pub(crate) now: Time,
    /// Payload, under 65,536.
    pub(crate) bytes: u32,
    pub(crate) content: C,
    /// 1 if its content is sent for the first time; 255 is followed by 2, which only an old duplicate could make ambiguous.
    pub(crate) attempt: u8,
    /// A number under 64 for the path that it takes.
    pub(crate) path: u8,
}

impl<C> SentPacket<C> {
    /// Creates the record of a packet that is sent when `delivered` is the delivered payload, which last grew at
    /// `delivered_time`.
    #[inline(always)]
    pub(crate) fn new(departure: Transmission<C>, delivered: Bytes, delivered_time: Time, send_elapsed: Span) -> Self {
        let Transmission { now, bytes, content, attempt, path } = departure;
        debug_assert!(bytes < 1 << 16 && path < 1 << 6, "{bytes}, {path}");
        let age = now.since(delivered_time).unsigned_ps().min(MAX_AGE);
        Self {
            sent_at: now,
            packed_state_size_delivered: delivered.get() << 18 | u64::from(bytes) << 2 | State::InFlight as u64,
            packed_flags_age: age << 16 | u64::from(attempt) << 8 | u64::from(path) << 1,
            send_elapsed: u32::try_from(send_elapsed.unsigned_ps() >> 10).unwrap_or(u32::MAX),
            content,
        }
    }

    #[inline(always)]
    pub(crate) fn state(&self) -> State {
        State::ALL[(self.packed_state_size_delivered & STATE) as usize]
    }

    #[inline(always)]
    pub(crate) fn is_in_flight(&self) -> bool {
        self.packed_state_size_delivered & STATE == State::InFlight as u64
    }

    #[inline(always)]
    pub(crate) fn become_state(&mut self, state: State) {
        self.packed_state_size_delivered = self.packed_state_size_delivered & !STATE | state as u64;
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::new(self.packed_state_size_delivered >> 2 & 0xffff)
    }

    /// Returns the payload delivered, as known when this packet was sent; `now` is that delivered by now.
    #[inline(always)]
    pub(crate) fn delivered(&self, now: Bytes) -> Bytes {
        let since = now.get().wrapping_sub(self.packed_state_size_delivered >> 18) & (u64::MAX >> 18);
        Bytes::new(now.get() - since)
    }

    /// Returns the time at which the delivered payload last grew.
    #[inline(always)]
    pub(crate) fn delivered_time(&self) -> Time {
        Time::from_ps(self.sent_at.ps() - (self.packed_flags_age >> 16))
    }

    #[inline(always)]
    pub(crate) fn attempt(&self) -> u8 {
        (self.packed_flags_age >> 8) as u8
    }

    #[inline(always)]
    pub(crate) fn path(&self) -> u8 {
        (self.packed_flags_age >> 1) as u8 & 63
    }

    #[inline(always)]
    pub(crate) fn is_app_limited(&self) -> bool {
        self.packed_flags_age & LIMITED != 0
    }

    pub(crate) fn mark_app_limited(&mut self) {
        self.packed_flags_age |= LIMITED;
    }

    #[inline(always)]
    pub(crate) fn is_sample_limited(&self) -> bool {
        self.packed_flags_age & SAMPLE_LIMITED != 0
    }

    /// Records the lack, if any, that limited the packet. Only a lack of data keeps it from measuring bandwidth.
    #[inline(always)]
    pub(crate) fn set_sample_limit(&mut self, lack: Option<Lack>) {
        self.packed_flags_age =
            self.packed_flags_age & !SAMPLE_LIMITED | if lack == Some(Lack::Data) { SAMPLE_LIMITED } else { 0 };
    }

    #[inline(always)]
    pub(crate) fn send_elapsed(&self) -> Span {
        Span::from_ps(i64::from(self.send_elapsed) << 10)
    }
}

/// Records of departures by packet number.
#[derive(Debug)]
pub(crate) struct SentPackets<C> {
    ring: SeqRing<SentPacket<C>>,
    /// Values of the law by packet, once it keeps any.
    cookies: Option<Box<SeqRing<Cookie>>>,
    /// Number of record accesses, for tests of the work done.
    #[cfg(test)]
    record_accesses: core::cell::Cell<u64>,
}

impl<C: Copy> SentPackets<C> {
    pub(crate) fn new() -> Self {
        Self {
            ring: SeqRing::starting_at(0),
            cookies: None,
            #[cfg(test)]
            record_accesses: core::cell::Cell::new(0),
        }
    }

    #[inline(always)]
    pub(crate) fn first(&self) -> u64 {
        self.ring.first()
    }

    /// Returns the number of the next packet to be sent.
    #[inline(always)]
    pub(crate) fn end(&self) -> u64 {
        self.ring.end()
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> u64 {
        self.ring.end() - self.ring.first()
    }

    #[cfg(test)]
    pub(crate) fn record_accesses(&self) -> u64 {
        self.record_accesses.get()
    }

    #[inline(always)]
    pub(crate) fn get(&self, number: u64) -> &SentPacket<C> {
        #[cfg(test)]
        self.record_accesses.set(self.record_accesses.get() + 1);
        self.ring.get(number)
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, number: u64) -> &mut SentPacket<C> {
        #[cfg(test)]
        self.record_accesses.set(self.record_accesses.get() + 1);
        self.ring.get_mut(number)
    }

    /// Appends the record of the next packet, and returns its number.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: SentPacket<C>) -> u64 {
        debug_assert!(self.cookies.as_ref().is_none_or(|cookies| cookies.end() == self.end()), "a cookie is missing");
        self.ring.push(record)
    }

    /// Forgets records at the front that are done.
    #[inline(always)]
    pub(crate) fn trim(&mut self) {
        self.ring.forget_while(|record| record.state() == State::Done);
    }

    /// Forgets the same, and records at the front of packets sent before `time` that are not in flight.
    pub(crate) fn forget_sent_before(&mut self, time: Time) {
        self.ring
            .forget_while(|record| record.state() == State::Done || !record.is_in_flight() && record.sent_at < time);
        debug_assert!(self.len() == 0 || self.ring.get(self.first()).state() != State::Done, "a done record is first");
    }

    /// Forgets all records, and frees their memory.
    pub(crate) fn abandon(&mut self) {
        self.ring = SeqRing::starting_at(self.ring.end());
        self.cookies = None;
        debug_assert_eq!(self.len(), 0, "records are left");
    }

    /// Returns the value that the law stored with a packet.
    #[inline(always)]
    pub(crate) fn cookie(&self, number: u64) -> Cookie {
        self.cookies.as_ref().map_or(Cookie::NONE, |cookies| *cookies.get(number))
    }

    /// Keeps the law's value for the packet that was sent last.
    #[inline(always)]
    pub(crate) fn set_cookie(&mut self, cookie: Cookie) {
        if cookie != Cookie::NONE || self.cookies.is_some() {
            self.store_cookie(cookie);
        }
    }

    #[inline(never)]
    fn store_cookie(&mut self, cookie: Cookie) {
        let (first, end) = (self.first(), self.end());
        let cookies = self.cookies.get_or_insert_with(|| Box::new(SeqRing::starting_at(first)));
        cookies.forget_below(first);
        while cookies.end() + 1 < end {
            cookies.push(Cookie::NONE);
        }
        cookies.push(cookie);
        debug_assert_eq!((cookies.first(), cookies.end()), (first, end), "cookies and records differ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departure(number: u64) -> Transmission<u32> {
        Transmission { now: Time::from_ns(number), bytes: 1_000, content: number as u32, attempt: 1, path: 0 }
    }

    #[test]
    fn a_sent_packet_takes_32_bytes() {
        assert_eq!(size_of::<SentPacket<u32>>(), 32);
    }

    #[test]
    fn a_record_round_trips() {
        let now = Time::from_ms(400_000);
        for (bytes, attempt, path) in [(1, 1, 0), (65_535, 255, 63), (4_096, 0, 5)] {
            let delivered = Bytes::new((1 << 50) - u64::from(bytes));
            let since = now - Span::from_ms(280_000);
            let departure = Transmission { now, bytes, content: 7u32, attempt, path };
            let mut record = SentPacket::new(departure, delivered, since, Span::from_ms(4_398));
            assert!(!record.is_app_limited());
            record.mark_app_limited();
            for state in State::ALL {
                record.become_state(state);
                assert_eq!((record.state(), record.is_in_flight()), (state, state == State::InFlight));
                assert_eq!((record.sent_at, record.bytes(), record.content), (now, Bytes::new(bytes.into()), 7));
                assert_eq!((record.delivered(delivered), record.delivered_time()), (delivered, since));
                let later = delivered + Bytes::new((1 << 46) - 1);
                assert_eq!(record.delivered(later), delivered);
                assert_eq!((record.attempt(), record.path(), record.is_app_limited()), (attempt, path, true));
                assert!(Span::from_ms(4_398) - record.send_elapsed() < Span::from_ns(2));
            }
        }
        // Times too long ago and durations too long saturate.
        let record = SentPacket::new(Transmission { now, ..departure(0) }, Bytes::ZERO, Time::ZERO, Span::from_s(9));
        assert_eq!(record.delivered_time(), Time::from_ps(now.ps() - MAX_AGE));
        assert_eq!(record.send_elapsed(), Span::from_ps(i64::from(u32::MAX) << 10));
    }

    #[test]
    fn cookies_may_start_late() {
        let mut records = SentPackets::new();
        for number in 0..1000 {
            let record = SentPacket::new(departure(number), Bytes::ZERO, Time::ZERO, Span::ZERO);
            assert_eq!(records.push(record), number);
            records.set_cookie(if number < 990 { Cookie::NONE } else { Cookie(number) });
            if number >= 20 {
                records.get_mut(number - 20).become_state(State::Done);
                records.trim();
            }
        }
        assert_eq!((records.first(), records.end()), (980, 1000));
        for number in 980..1000 {
            assert_eq!(records.get(number).sent_at, Time::from_ns(number));
            assert_eq!(records.cookie(number), if number < 990 { Cookie::NONE } else { Cookie(number) });
        }
    }
}
