//! UTC in the mesh: members with a source announce it by mesh time, and all combine the announcements.
//!
//! An announcement is a header as of all messages with the kind 129, and:
//!
//! | offset | field |
//! |---|---|
//! | 24 | origin, u16 |
//! | 26 | origin's session, u64 |
//! | 34 | number, u32, ascending within a session |
//! | 38 | mesh time, i64, in nanoseconds |
//! | 46 | UTC less mesh time, i64, in nanoseconds; UTC since 1970 as `CLOCK_REALTIME` |
//! | 54 | rate of UTC relative to mesh time, i64, in 2^-48 |
//! | 62 | largest error, i64, in nanoseconds |
//! | 70 | largest error of the rate, u32, in parts per billion |
//!
//! Members forward announcements to their successors in the mesh's rings, as they do reports. Around a leap second there is
//! none: `CLOCK_REALTIME` steps.

use clocks::{Header, Member, Reading, Session, Skew};
use units::{Span, Time};

use crate::inbox::{HEADER_LENGTH, UTC_KIND, write_header};
use crate::peers::UtcSource;
use crate::sys::{Discipline, discipline};

/// Time for which an announcement counts.
const LIFETIME: Span = Span::from_s(5);

/// Nanoseconds of a day of UTC without leap second.
const DAY: i64 = 86_400_000_000_000;

/// Time before and after a leap second without announcements, in nanoseconds.
const LEAP_MARGIN: i64 = 10_000_000_000;

/// Length of an announcement.
const LENGTH: usize = HEADER_LENGTH + 50;

/// Largest rate of UTC relative to mesh time: 1,000 ppm.
const MAX_RATE: Skew = Skew::from_ppb(1_000_000);

/// Returns the largest error of the system clock as UTC, in nanoseconds; none if it is not known at this reading.
pub(crate) fn system_error(source: UtcSource, real: i64) -> Option<i64> {
    match source {
        UtcSource::None => None,
        UtcSource::Kernel => kernel_error(&discipline().ok()?, real),
        UtcSource::Bound { error_ns } => (!is_leaping(&discipline().ok()?, real)).then_some(error_ns),
    }
}

fn kernel_error(discipline: &Discipline, real: i64) -> Option<i64> {
    let is_synchronised = discipline.state != libc::TIME_ERROR && discipline.status & libc::STA_UNSYNC == 0;
    let is_known = is_synchronised && discipline.max_error_us >= 0 && !is_leaping(discipline, real);
    is_known.then(|| discipline.max_error_us.saturating_mul(1_000))
}

/// Returns whether a leap second is near, so that the clock steps or has just stepped.
fn is_leaping(discipline: &Discipline, real: i64) -> bool {
    let in_day = real.rem_euclid(DAY);
    let is_midnight = !(LEAP_MARGIN..=DAY - LEAP_MARGIN).contains(&in_day);
    match discipline.state {
        libc::TIME_OOP => true,
        libc::TIME_INS | libc::TIME_DEL | libc::TIME_WAIT => is_midnight,
        _ => false,
    }
}

/// UTC by mesh time, as a member announces it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UtcLine {
    pub(crate) origin: Member,
    pub(crate) session: Session,
    pub(crate) number: u32,
    /// Mesh time of the anchor.
    pub(crate) at: Reading,
    /// UTC less mesh time at the anchor, in nanoseconds.
    pub(crate) offset: i64,
    pub(crate) skew: Skew,
    /// Largest error at the anchor, in nanoseconds.
    pub(crate) error: i64,
    pub(crate) drift_ppb: u32,
}

impl UtcLine {
    /// Returns the message that announces the line.
    pub(crate) fn encode(&self, header: &Header) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LENGTH);
        write_header(header, UTC_KIND, &mut bytes);
        bytes.extend(self.origin.0.to_be_bytes());
        bytes.extend(self.session.0.to_be_bytes());
        bytes.extend(self.number.to_be_bytes());
        for value in [self.at.0, self.offset, self.skew.0, self.error] {
            bytes.extend(value.to_be_bytes());
        }
        bytes.extend(self.drift_ppb.to_be_bytes());
        bytes
    }

    /// Returns the line in a message; none if it has another length or impossible values.
    pub(crate) fn decode(message: &[u8]) -> Option<Self> {
        let (_, body) = message.split_at_checked(HEADER_LENGTH)?;
        let (origin, rest) = body.split_first_chunk()?;
        let (session, rest) = rest.split_first_chunk()?;
        let (number, mut rest) = rest.split_first_chunk()?;
        let mut values = [0; 4];
        for value in &mut values {
            let (bytes, after) = rest.split_first_chunk()?;
            (*value, rest) = (i64::from_be_bytes(*bytes), after);
        }
        let [at, offset, skew, error] = values;
        let line = Self {
            origin: Member(u16::from_be_bytes(*origin)),
            session: Session(u64::from_be_bytes(*session)),
            number: u32::from_be_bytes(*number),
            at: Reading(at),
            offset,
            skew: Skew(skew),
            error,
            drift_ppb: u32::from_be_bytes(rest.try_into().ok()?),
        };
        let is_plausible = line.error >= 0 && line.skew.abs() <= MAX_RATE;
        is_plausible.then_some(line)
    }

    fn interval(&self, mesh: Reading) -> UtcInterval {
        let age = mesh.since(self.at);
        let drift = Skew::from_ppb(self.drift_ppb.into());
        let grown = drift.over(age.saturating_abs()).saturating_add(1);
        let utc = mesh.0.wrapping_add(self.offset).wrapping_add(self.skew.over(age));
        UtcInterval { utc, error: self.error.saturating_add(grown), skew: self.skew, drift }
    }
}

/// UTC at a point in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UtcInterval {
    /// UTC, in nanoseconds since 1970.
    pub(crate) utc: i64,
    /// Largest error, in nanoseconds.
    pub(crate) error: i64,
    /// Rate relative to mesh time.
    pub(crate) skew: Skew,
    /// Largest error of the rate.
    pub(crate) drift: Skew,
}

impl UtcInterval {
    fn low(&self) -> i64 {
        self.utc.saturating_sub(self.error)
    }

    fn high(&self) -> i64 {
        self.utc.saturating_add(self.error)
    }
}

#[derive(Clone, Copy, Debug)]
struct Known {
    line: UtcLine,
    arrived: Time,
}

/// The newest announcement of each member.
#[derive(Clone, Debug)]
pub(crate) struct UtcLines {
    known: Vec<Option<Known>>,
}

impl UtcLines {
    pub(crate) fn new(members: usize) -> Self {
        Self { known: vec![None; members] }
    }

    /// Takes an announcement. Returns whether it is newer than what was known, so that it is forwarded.
    pub(crate) fn take(&mut self, now: Time, line: UtcLine) -> bool {
        let Some(slot) = self.known.get_mut(line.origin.index()) else { return false };
        let is_newer = slot.is_none_or(|known| {
            (line.session.0, line.number) > (known.line.session.0, known.line.number)
                || now.saturating_since(known.arrived) > LIFETIME
        });
        if is_newer {
            *slot = Some(Known { line, arrived: now });
        }
        is_newer
    }

    /// Forgets all announcements: mesh time is another one.
    pub(crate) fn clear(&mut self) {
        self.known.fill(None);
    }

    /// Returns UTC at a mesh time: the time that most announcements agree on; none if they do not.
    pub(crate) fn at(&self, now: Time, mesh: Reading) -> Option<UtcInterval> {
        let recent = self.known.iter().flatten().filter(|known| now.saturating_since(known.arrived) <= LIFETIME);
        agreement(&recent.map(|known| known.line.interval(mesh)).collect::<Vec<_>>())
    }
}

/// Returns the intersection of the largest set of intervals with a common point, if these are most of them (Marzullo).
fn agreement(intervals: &[UtcInterval]) -> Option<UtcInterval> {
    let contains = |point: i64| move |it: &&UtcInterval| (it.low()..=it.high()).contains(&point);
    let count = |point: i64| intervals.iter().filter(contains(point)).count();
    let best = intervals.iter().map(UtcInterval::low).max_by_key(|&point| count(point))?;
    if 2 * count(best) <= intervals.len() {
        return None;
    }
    let agreeing = || intervals.iter().filter(contains(best));
    let low = agreeing().map(UtcInterval::low).max()?;
    let high = agreeing().map(UtcInterval::high).min()?;
    let narrowest = agreeing().min_by_key(|it| it.error)?;
    let error = high.saturating_sub(low).saturating_add(1) / 2;
    Some(UtcInterval { utc: low.saturating_add(error), error, skew: narrowest.skew, drift: narrowest.drift })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clocks::Era;
    use proptest::prelude::*;

    fn line(origin: u16, offset: i64, error: i64) -> UtcLine {
        let (session, at) = (Session(1), Reading(0));
        UtcLine { origin: Member(origin), session, number: 1, at, offset, skew: Skew::ZERO, error, drift_ppb: 50_000 }
    }

    #[test]
    fn most_announcements_outvote_a_wrong_one() {
        let mut lines = UtcLines::new(4);
        assert_eq!(lines.at(Time::ZERO, Reading(0)), None);
        assert!(lines.take(Time::ZERO, line(0, 1_000, 100)));
        assert!(lines.at(Time::ZERO, Reading(0)).is_some());
        assert!(lines.take(Time::ZERO, line(1, 90_000, 50)));
        assert_eq!(lines.at(Time::ZERO, Reading(0)), None, "two that disagree");
        assert!(lines.take(Time::ZERO, line(2, 1_150, 100)));
        let utc = lines.at(Time::ZERO, Reading(0)).unwrap();
        // From 1,050 - 1 to 1,100 + 1.
        assert_eq!((utc.low(), utc.high()), (1_049, 1_101));
        assert!(!lines.take(Time::ZERO, line(0, 1_000, 100)), "not newer");
        assert!(!lines.take(Time::ZERO, line(4, 1_000, 100)), "no member");
        assert_eq!(lines.at(Time::from_ms(5_001), Reading(0)), None);
    }

    #[test]
    fn errors_grow_with_age() {
        let interval = line(0, 0, 100).interval(Reading(2_000_000_000));
        assert_eq!((interval.utc, interval.error), (2_000_000_000, 100 + 100_000 + 1));
    }

    #[test]
    fn no_utc_near_a_leap_second_or_without_discipline() {
        let state = |state, status| Discipline { state, status, max_error_us: 30 };
        let noon = DAY / 2;
        assert_eq!(kernel_error(&state(libc::TIME_OK, 0), 0), Some(30_000));
        assert_eq!(kernel_error(&state(libc::TIME_OK, libc::STA_UNSYNC), noon), None);
        assert_eq!(kernel_error(&state(libc::TIME_ERROR, 0), noon), None);
        assert_eq!(kernel_error(&state(libc::TIME_INS, 0), noon), Some(30_000));
        for real in [DAY - 1, DAY, DAY + 5_000_000_000] {
            assert_eq!(kernel_error(&state(libc::TIME_INS, 0), real), None, "{real}");
            assert_eq!(kernel_error(&state(libc::TIME_WAIT, 0), real), None, "{real}");
        }
        assert_eq!(kernel_error(&state(libc::TIME_OOP, 0), noon), None);
    }

    proptest! {
        #[test]
        fn announcements_survive_encoding(values: [i64; 3], skew in -MAX_RATE.0..=MAX_RATE.0, number: u32, cut in 0usize..LENGTH) {
            let [at, offset, error] = values;
            let line = UtcLine {
                origin: Member(number as u16),
                session: Session(at as u64),
                number,
                at: Reading(at),
                offset,
                skew: Skew(skew),
                error: error & i64::MAX,
                drift_ppb: number,
            };
            let header = Header {
                sender: Member(1),
                receiver: Member(2),
                sender_session: Session(3),
                receiver_session: None,
                era: Era(0),
            };
            let bytes = line.encode(&header);
            prop_assert_eq!((bytes.len(), UtcLine::decode(&bytes)), (LENGTH, Some(line)));
            prop_assert_eq!(UtcLine::decode(&bytes[..cut]), None);
            // Evaluated without a panic, whatever it states.
            let _ = line.interval(Reading(offset));
        }

        /// The true time is in the result if it is in most intervals and all of these.
        #[test]
        fn agreement_contains_the_truth(errors in proptest::collection::vec((0i64..1_000, -1_000i64..1_000), 1..8)) {
            let intervals: Vec<UtcInterval> = errors
                .iter()
                .map(|&(error, off)| UtcInterval { utc: off.clamp(-error, error), error, skew: Skew::ZERO, drift: Skew::ZERO })
                .collect();
            let found = agreement(&intervals).unwrap();
            prop_assert!(found.low() <= 0 && found.high() >= 0, "{found:?}");
            prop_assert!(intervals.iter().all(|it| found.error <= it.error + 1));
        }
    }
}
