//! What a subflow's timer has done since its peer was last heard of. With [`LossTimer::Probe`](crate::LossTimer::Probe) probes leave
//! first, and at the third strike in a row what is in flight is given back to the work. Whether that is lost or only late, an
//! answer shows (RFC 9002 §7.6.2).

use units::{Bytes, Time};

/// How often a timer strikes in a row before what is in flight is given back to the work (RFC 9002 §7.6: three).
const PROBES: u8 = 2;

/// What timeouts took of a subflow, until an answer shows what became of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    /// Numbers of its first packet and its last one.
    pub(super) numbers: (u64, u64),
    /// Payload.
    lost: Bytes,
    /// Of that, what has come after all.
    pub(super) came: Bytes,
    /// Whether nothing has been heard of the first one or later ones. Until then only probes leave.
    lasts: bool,
}

impl Silence {
    /// Payload of which nothing is known: it may still be under way, and counts against the window.
    pub(super) fn open(&self) -> Bytes {
        self.lost - self.came.min(self.lost)
    }
}

/// What a timer has done since something was last acknowledged.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Strikes {
    /// How often in a row it struck.
    count: u8,
    /// When it struck first of these times.
    first_at: Option<Time>,
    /// Packets that may leave whatever the window says.
    probes: u8,
    /// What timeouts took, and no answer has shown yet what became of it.
    silence: Option<Silence>,
}

/// What an answer means for a timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// Whether the peer is not silent any more.
    pub(super) ends_silence: bool,
    /// What timeouts took, of which it is now known what has come.
    pub(super) over: Option<Silence>,
}

impl Strikes {
    pub(super) fn count(&self) -> u8 {
        self.count
    }

    pub(super) fn first_at(&self) -> Option<Time> {
        self.first_at
    }

    /// Whether a packet may leave whatever the window says.
    pub(super) fn allow_a_probe(&self) -> bool {
        self.probes > 0
    }

    /// Whether nothing but probes may leave.
    pub(super) fn hold_all_back(&self) -> bool {
        self.silence.is_some_and(|silence| silence.lasts)
    }

    /// What counts against the window beside what is in flight; none if nothing is open.
    pub(super) fn open(&self) -> Option<Bytes> {
        self.silence.map(|silence| silence.open())
    }

    /// A packet leaves.
    pub(super) fn sent(&mut self) {
        self.probes = self.probes.saturating_sub(1);
    }

    /// One packet may leave whatever the window says.
    pub(super) fn probe(&mut self) {
        self.probes = 1;
    }

    /// The timer strikes. Gives whether it is one of the first strikes in a row, at which nothing is lost if there are probes.
    pub(super) fn strike(&mut self, now: Time) -> bool {
        self.count = self.count.saturating_add(1);
        self.first_at = self.first_at.or(Some(now));
        self.count <= PROBES
    }

    /// A timeout takes packets of these numbers, and so much payload. If something was heard since the last one, what that took is
    /// given: no answer is waited for any more.
    pub(super) fn take(&mut self, numbers: (u64, u64), lost: Bytes) -> Option<Silence> {
        let new = Silence { numbers, lost, came: Bytes::ZERO, lasts: true };
        match self.silence.replace(new) {
            Some(before) if before.lasts => {
                let numbers = (before.numbers.0, numbers.1);
                self.silence = Some(Silence { numbers, lost: before.lost + lost, ..before });
                None
            }
            before => before,
        }
    }

    /// A packet that was held for lost has come. Gives whether a timeout took it.
    pub(super) fn came(&mut self, number: u64, bytes: Bytes) -> bool {
        let taken = self.silence.as_mut().filter(|it| (it.numbers.0..=it.numbers.1).contains(&number));
        match taken {
            Some(silence) => silence.came += bytes,
            None => return false,
        }
        true
    }

    /// This packet is the newest that an answer newly acknowledges.
    pub(super) fn heard(&mut self, number: u64) -> Answered {
        // What left before a silence says nothing of it.
        let ends_silence = self.silence.is_none_or(|silence| silence.numbers.0 <= number);
        if ends_silence {
            (self.count, self.first_at, self.probes) = (0, None, 0);
        }
        if let Some(silence) = &mut self.silence {
            silence.lasts &= !ends_silence;
        }
        Answered { ends_silence, over: self.silence.take_if(|silence| silence.numbers.1 <= number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: Bytes = Bytes::new(1_000);

    fn struck() -> Strikes {
        let mut strikes = Strikes::default();
        let probes = [1, 2, 3].map(|ms| strikes.strike(Time::from_ms(ms)));
        assert_eq!((probes, strikes.first_at()), ([true, true, false], Some(Time::from_ms(1))));
        assert!(strikes.take((10, 19), KB).is_none());
        strikes
    }

    #[test]
    fn what_left_before_a_silence_does_not_end_it() {
        let mut strikes = struck();
        strikes.probe();
        assert!(strikes.allow_a_probe() && strikes.hold_all_back());
        let heard = strikes.heard(9);
        assert!(!heard.ends_silence && heard.over.is_none());
        assert_eq!((strikes.count(), strikes.hold_all_back(), strikes.open()), (3, true, Some(KB)));
        strikes.sent();
        assert!(!strikes.allow_a_probe());
    }

    #[test]
    fn an_answer_to_part_of_it_opens_the_window_for_that_part() {
        let mut strikes = struck();
        assert!(strikes.came(12, Bytes::new(100)) && !strikes.came(9, Bytes::new(100)));
        let heard = strikes.heard(12);
        assert!(heard.ends_silence && heard.over.is_none() && !strikes.hold_all_back());
        assert_eq!((strikes.count(), strikes.first_at(), strikes.open()), (0, None, Some(Bytes::new(900))));
        // What is newer than all of it shows the rest.
        let over = strikes.heard(20).over.unwrap();
        assert_eq!((over.numbers, over.open(), strikes.open()), ((10, 19), Bytes::new(900), None));
    }

    #[test]
    fn two_timeouts_are_one_silence_unless_something_was_heard_between() {
        let mut strikes = struck();
        assert!(strikes.take((20, 24), KB).is_none());
        assert_eq!(strikes.open(), Some(Bytes::new(2_000)));
        assert_eq!(strikes.heard(24).over.unwrap().numbers, (10, 24));
        let mut strikes = struck();
        strikes.heard(15);
        let before = strikes.take((20, 24), KB).unwrap();
        assert_eq!((before.numbers, strikes.open()), ((10, 19), Some(KB)));
    }
}
