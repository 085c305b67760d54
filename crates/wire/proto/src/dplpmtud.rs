//! Search for the longest packet of a path by bisection: RFC 8899.

use units::{Span, Time};

use crate::narrow::to_u16;

/// UDP payload that every path supports, in bytes (RFC 9000 §14).
pub(crate) const BASE_PLPMTU: u16 = 1_200;
/// Minimum UDP payload of packets with data, in bytes: 512 on the wire over IPv4.
pub(crate) const MIN_PACKET_SIZE: u16 = 484;
/// Lost probes after which a size is considered too long (RFC 8899 §5.1.2).
const MAX_PROBES: u8 = 3;
/// Remaining interval at which the search ends, in bytes.
const MIN_INTERVAL: u16 = 20;
/// Time from the end of a search to the next one (RFC 8899 §5.1.1).
const PMTU_RAISE_TIMER: Span = Span::from_s(600);
/// Time from the fall to the smallest size to the next search.
const RETRY_AFTER_FALL_BACK: Span = Span::from_s(5);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MtuProbe {
    size: u16,
    /// Its packet number, once it was sent, and the time after which it is declared lost.
    sent: Option<(u64, Time)>,
    losses: u8,
}

/// The search on one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Dplpmtud {
    /// Confirmed UDP payload of the path, in bytes.
    size: u16,
    /// The size at which the search begins: it needs no probe.
    base: u16,
    /// The maximum size that is probed.
    max_size: u16,
    /// The smallest size known to be lost, in bytes.
    too_long: u32,
    probe: Option<MtuProbe>,
    raise_at: Time,
}

impl Dplpmtud {
    /// Begins a search from 1,200 bytes up to `max_size`. Without a search if that is less: packets have that size then.
    pub(crate) fn new(max_size: u16) -> Self {
        let max_size = max_size.max(MIN_PACKET_SIZE);
        let base = max_size.min(BASE_PLPMTU);
        let mut search = Self { size: base, base, max_size, too_long: 0, probe: None, raise_at: Time::NEVER };
        search.begin();
        search
    }

    fn begin(&mut self) {
        self.too_long = u32::from(self.max_size) + 1;
        self.raise_at = Time::NEVER;
        // The longest first: if both ends and the network have the same limit, it arrives.
        self.probe = (self.size < self.max_size).then_some(MtuProbe { size: self.max_size, sent: None, losses: 0 });
    }

    /// Returns the confirmed UDP payload of the path, in bytes.
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Returns the size that needs no probe, in bytes.
    pub(crate) fn base(&self) -> u16 {
        self.base
    }

    /// Returns whether no longer packets are probed for the time being.
    pub(crate) fn is_done(&self) -> bool {
        self.probe.is_none()
    }

    /// Returns the size of the probe that should be sent now.
    pub(crate) fn due(&self) -> Option<u16> {
        self.probe.filter(|probe| probe.sent.is_none()).map(|probe| probe.size)
    }

    /// Notes that the probe was sent as packet `number`. It is declared lost after `wait`.
    pub(crate) fn on_probe_sent(&mut self, number: u64, now: Time, wait: Span) {
        if let Some(probe) = &mut self.probe {
            debug_assert!(probe.sent.is_none(), "a probe is in flight already");
            probe.sent = Some((number, now.saturating_add(wait)));
        }
    }

    /// Returns whether one of these packets is the probe. In that case the path's size has grown.
    pub(crate) fn acked(&mut self, now: Time, mut acked: impl FnMut(u64) -> bool) -> bool {
        let Some(MtuProbe { size, sent: Some((number, _)), .. }) = self.probe else { return false };
        if !acked(number) {
            return false;
        }
        self.size = size;
        self.advance(now);
        true
    }

    fn advance(&mut self, now: Time) {
        debug_assert!(u32::from(self.size) < self.too_long, "{} bytes get through, and do not", self.size);
        let between = self.too_long - u32::from(self.size);
        if between <= u32::from(MIN_INTERVAL) {
            self.probe = None;
            self.raise_at = now.saturating_add(PMTU_RAISE_TIMER);
        } else {
            let size = to_u16(u64::from(self.size) + u64::from(between / 2));
            self.probe = Some(MtuProbe { size, sent: None, losses: 0 });
        }
    }

    /// Returns the time of the next call of [`Dplpmtud::on_timer`].
    pub(crate) fn next_timer(&self) -> Time {
        match self.probe {
            Some(MtuProbe { sent: Some((_, until)), .. }) => until,
            Some(_) => Time::NEVER,
            None => self.raise_at,
        }
    }

    /// Declares the probe lost, or begins the next search, if that is due.
    pub(crate) fn on_timer(&mut self, now: Time) {
        if self.next_timer() > now {
            return;
        }
        match &mut self.probe {
            None => self.begin(),
            Some(probe) if probe.losses + 1 < MAX_PROBES => (probe.sent, probe.losses) = (None, probe.losses + 1),
            Some(probe) => {
                self.too_long = probe.size.into();
                self.advance(now);
            }
        }
    }

    /// Falls back to the smallest size: packets of the present size are lost.
    pub(crate) fn fall_back(&mut self, now: Time) {
        debug_assert!(self.size >= self.base, "a size of {} bytes", self.size);
        (self.size, self.probe) = (self.base, None);
        self.raise_at = now.saturating_add(RETRY_AFTER_FALL_BACK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the size at which the search ends if packets of up to `limit` bytes arrive, and the number of probes.
    fn search_result(limit: u16, max_size: u16) -> (u16, u32) {
        let (mut search, mut probes, mut now) = (Dplpmtud::new(max_size), 0, Time::ZERO);
        while let Some(size) = search.due() {
            probes += 1;
            search.on_probe_sent(u64::from(probes), now, Span::from_ms(10));
            if size <= limit {
                assert!(!search.acked(now, |number| number != u64::from(probes)));
                assert!(search.acked(now, |number| number == u64::from(probes)));
            } else {
                now = search.next_timer();
                search.on_timer(now);
            }
        }
        (search.size(), probes)
    }

    #[test]
    fn the_longest_packet_is_found() {
        assert_eq!(search_result(1_472, 1_472), (1_472, 1));
        assert_eq!(search_result(1_200, 1_200), (1_200, 0));
        assert_eq!(search_result(1_472, 484), (484, 0));
        assert_eq!(search_result(1_472, 0), (484, 0));
        for limit in (1_200..9_000).step_by(77) {
            let (size, probes) = search_result(limit, 8_972);
            assert!(
                size <= limit && limit.min(8_972) - size <= MIN_INTERVAL && probes < 36,
                "{limit}: {size} {probes}"
            );
        }
    }

    #[test]
    fn it_falls_back_and_searches_again() {
        let mut search = Dplpmtud::new(1_472);
        search.on_probe_sent(7, Time::ZERO, Span::from_ms(10));
        assert!(search.acked(Time::ZERO, |_| true));
        assert_eq!((search.size(), search.next_timer()), (1_472, Time::from_ms(600_000)));
        search.fall_back(Time::from_ms(5));
        assert_eq!((search.size(), search.due()), (1_200, None));
        search.on_timer(search.next_timer());
        assert_eq!(search.due(), Some(1_472));
    }
}
