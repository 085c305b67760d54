//! The impairments of one port: checks in front of its queue, and a stage between the port and its link.
//!
//! The stage holds packets and releases them in order of their release times, then of their departures. It only adds time
//! before the propagation delay, so a packet that leaves the port after a time is released after that time, too: once all
//! departures up to a time are known, so are the releases, and a link remains a FIFO.
//!
//! A copy of a packet follows it by the packet's own service time at the line rate. It takes no capacity from the link.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use units::{Frac, PrecomputedRate, Span, Time};

use crate::arrival::{Arrival, draw};
use crate::impairments::{AckAggregation, ImpairmentCounters, Impairments, JitterOrder, Policer};
use crate::item::QueueItem;
use crate::plain::PortTransit;
use crate::port::PortParams;
use crate::service::{long_service, service};

/// Salts of the random decisions about one packet.
const DUPLICATION: u64 = 0x4455_504c_4943_4154;
const CORRUPTION: u64 = 0x434f_5252_5550_5421;
const CORRUPTED_BITS: u64 = 0x434f_5252_4249_5453;
const JITTER: u64 = 0x4a49_5454_4552_2121;
const REORDERING: u64 = 0x5245_4f52_4445_5221;
/// Salt that separates the decisions about a copy from those about the packet.
const COPY: u64 = 0x0043_4f50_5900_0000;

/// Reason to drop a packet before the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryDrop {
    /// Too few tokens.
    Policed,
    /// Larger than the MTU.
    Oversized,
}

/// Packet that leaves the stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released<P> {
    pub(crate) item: P,
    pub(crate) passage: PortTransit,
}

/// Event of a packet that enters the stage.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Impaired<'a, P> {
    /// The packet is corrupted.
    Corrupted(&'a P),
    /// A copy of the packet was added.
    Duplicated(&'a P),
}

/// State of a port's impairments.
#[derive(Debug)]
pub(crate) struct ImpairmentStage<P> {
    settings: Arc<Impairments>,
    policer: Option<TokenBucket>,
    group: Option<Group<P>>,
    held: BinaryHeap<Reverse<HeldPacket<P>>>,
    /// Departures so far: the order of packets that are released at one time.
    departures: u64,
    /// Latest release so far, where the order is kept.
    last_release: Time,
    /// The number after that of the latest departure that was released.
    next_in_order: u64,
    counters: ImpairmentCounters,
}

/// Packet in the stage.
#[derive(Debug)]
struct HeldPacket<P> {
    release: Time,
    number: u64,
    item: P,
    marked: bool,
}

impl<P> HeldPacket<P> {
    fn key(&self) -> (Time, u64) {
        (self.release, self.number)
    }
}

impl<P> PartialEq for HeldPacket<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for HeldPacket<P> {}

impl<P> PartialOrd for HeldPacket<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for HeldPacket<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// A token bucket, as the time at which it is full (the virtual scheduling of GCRA, ITU-T I.371).
#[derive(Debug)]
struct TokenBucket {
    rate: PrecomputedRate,
    /// Time in which an empty bucket fills.
    depth: Span,
    full_at: Time,
}

impl TokenBucket {
    fn new(policer: Policer) -> Self {
        let rate = PrecomputedRate::new(policer.rate);
        Self { rate, depth: long_service(rate, policer.burst), full_at: Time::ZERO }
    }

    /// Takes tokens for a packet. Returns whether there were enough.
    fn takes(&mut self, packet: &Arrival) -> bool {
        let missing = self.full_at.saturating_since(packet.now) + service(self.rate, packet.size);
        let conforms = missing <= self.depth;
        if conforms {
            self.full_at = packet.now + missing;
        }
        conforms
    }
}

/// Packet that has left the port, with the port's mark.
#[derive(Clone, Copy, Debug)]
struct Departed<P> {
    item: P,
    marked: bool,
}

/// Small packets that are collected.
#[derive(Debug)]
struct Group<P> {
    due: Time,
    packets: Vec<Departed<P>>,
}

impl<P: QueueItem + Copy> ImpairmentStage<P> {
    pub(crate) fn new(settings: Arc<Impairments>) -> Self {
        Self {
            policer: settings.policer.map(TokenBucket::new),
            settings,
            group: None,
            held: BinaryHeap::new(),
            departures: 0,
            last_release: Time::ZERO,
            next_in_order: 0,
            counters: ImpairmentCounters::default(),
        }
    }

    /// Admits a packet to the queue. Returns the reason if it is dropped.
    pub(crate) fn admit(&mut self, packet: &Arrival) -> Option<EntryDrop> {
        if self.settings.mtu.is_some_and(|mtu| packet.size > mtu) {
            self.counters.oversized += 1;
            return Some(EntryDrop::Oversized);
        }
        if self.policer.as_mut().is_some_and(|bucket| !bucket.takes(packet)) {
            self.counters.policed += 1;
            return Some(EntryDrop::Policed);
        }
        None
    }

    /// Takes over a packet that leaves the port, in order of departure.
    pub(crate) fn enter(
        &mut self,
        item: P,
        passage: PortTransit,
        params: &PortParams,
        salt: u64,
        mut note: impl FnMut(Impaired<P>),
    ) {
        let departs = passage.arrives - params.delay;
        self.close_group(departs, params, salt, &mut note);
        let packet = Departed { item, marked: passage.marked };
        let Some(aggregation) = self.settings.ack_aggregation.filter(|it| item.arrival().size <= it.max_size) else {
            return self.duplicate(packet, departs, params, salt, &mut note);
        };
        let AckAggregation { period, packets, .. } = aggregation;
        let group = self.group.get_or_insert_with(|| Group { due: departs + period, packets: Vec::new() });
        group.packets.push(packet);
        if group.packets.len() >= packets as usize {
            group.due = departs;
            self.close_group(departs, params, salt, &mut note);
        }
    }

    /// Ends the collection of a group that is due by `now`.
    fn close_group(&mut self, now: Time, params: &PortParams, salt: u64, note: &mut impl FnMut(Impaired<P>)) {
        let Some(Group { due, packets }) = self.group.take_if(|group| group.due <= now) else { return };
        self.counters.groups += 1;
        for packet in packets {
            self.duplicate(packet, due, params, salt, note);
        }
    }

    /// Holds a packet, and perhaps a copy of it, from `departs` on.
    fn duplicate(
        &mut self,
        packet: Departed<P>,
        departs: Time,
        params: &PortParams,
        salt: u64,
        note: &mut impl FnMut(Impaired<P>),
    ) {
        let arrival = packet.item.arrival();
        let copied = happens(self.settings.duplication, salt ^ DUPLICATION, &arrival);
        self.hold(packet, departs, salt, note);
        if copied {
            self.counters.duplicates += 1;
            note(Impaired::Duplicated(&packet.item));
            let follows = departs + params.exact_service(arrival.size.max(1));
            self.hold(packet, follows, salt ^ COPY, note);
        }
    }

    fn hold(&mut self, packet: Departed<P>, departs: Time, salt: u64, note: &mut impl FnMut(Impaired<P>)) {
        let Departed { mut item, marked } = packet;
        let arrival = item.arrival();
        if !item.is_corrupted() && happens(self.settings.corruption, salt ^ CORRUPTION, &arrival) {
            self.counters.corrupted += 1;
            note(Impaired::Corrupted(&item));
            item = item.corrupted(draw(salt ^ CORRUPTED_BITS, &arrival));
        }
        let mut release = departs;
        if let Some(jitter) = self.settings.jitter {
            release += jitter.delay(draw(salt ^ JITTER, &arrival));
            if jitter.order == JitterOrder::Kept {
                release = release.max(self.last_release);
                self.last_release = release;
            }
        }
        if let Some(reordering) = self.settings.reordering
            && happens(reordering.probability, salt ^ REORDERING, &arrival)
        {
            release += reordering.delay;
        }
        self.held.push(Reverse(HeldPacket { release, number: self.departures, item, marked }));
        self.departures += 1;
    }

    /// Ends the collection of a group that is due before `until`; all departures before that time have entered.
    pub(crate) fn close_due_group(
        &mut self,
        until: Time,
        params: &PortParams,
        salt: u64,
        mut note: impl FnMut(Impaired<P>),
    ) {
        self.close_group(until.saturating_sub(Span::from_ps(1)), params, salt, &mut note);
    }

    /// Releases the next packet that is due before `until`; all departures before that time have entered.
    pub(crate) fn release(&mut self, until: Time, params: &PortParams) -> Option<Released<P>> {
        if self.held.peek().is_none_or(|Reverse(first)| first.release >= until) {
            return None;
        }
        let Reverse(HeldPacket { release, number, item, marked }) = self.held.pop()?;
        if number < self.next_in_order {
            self.counters.reordered += 1;
        } else {
            self.next_in_order = number + 1;
        }
        Some(Released { item, passage: PortTransit { arrives: release + params.delay, marked } })
    }

    /// Returns the time of the next release; [`Time::NEVER`] if no packet is held.
    pub(crate) fn next(&self) -> Time {
        let group = self.group.as_ref().map_or(Time::NEVER, |group| group.due);
        self.held.peek().map_or(group, |Reverse(first)| first.release.min(group))
    }

    /// Returns whether packets are held.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty() || self.group.is_some()
    }

    /// Returns the packets that are held, in no order.
    pub(crate) fn held(&self) -> impl Iterator<Item = &P> {
        let collected = self.group.iter().flat_map(|group| group.packets.iter().map(|packet| &packet.item));
        self.held.iter().map(|Reverse(held)| &held.item).chain(collected)
    }

    pub(crate) fn counters(&self) -> ImpairmentCounters {
        self.counters
    }

    /// Checks the state at a time at which it has released all that was due. Returns the number of entries examined.
    ///
    /// # Errors
    /// A description of the inconsistency.
    pub(crate) fn check(&self) -> Result<usize, String> {
        let held = self.held.len() as u64;
        if held > self.departures {
            return Err(format!("a link's impairments hold {held} packets of {} that entered", self.departures));
        }
        if let Some(Reverse(late)) = self.held.iter().find(|Reverse(held)| held.number >= self.departures) {
            return Err(format!("packet {} is held and {} packets entered", late.number, self.departures));
        }
        Ok(self.held.len())
    }
}

fn happens(probability: Frac, salt: u64, packet: &Arrival) -> bool {
    !probability.is_zero() && (draw(salt, packet) >> 32) < probability.bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impairments::{JitterDistribution, LinkJitter, Reordering};
    use crate::output::{DropCause, Port, PortExtras, PortMode, PortOutlet};
    use crate::port::PortConfig;
    use crate::rate_schedule::{RateSchedule, RateStep};
    use proptest::prelude::*;
    use units::{Bytes, Rate, mix64};

    const SIZE: u32 = 1_500;
    const COUNT: u64 = 100_000;

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Probe {
        arrived: Time,
        size: u32,
        id: u64,
        corrupted: bool,
    }

    impl QueueItem for Probe {
        fn arrival(&self) -> Arrival {
            Arrival {
                now: self.arrived,
                size: self.size,
                ecn_capable: true,
                control: self.size < 100,
                credit: false,
                expendable: false,
                identity: mix64(self.id),
            }
        }

        fn is_corrupted(&self) -> bool {
            self.corrupted
        }

        fn corrupted(self, _: u64) -> Self {
            Self { corrupted: true, ..self }
        }
    }

    #[derive(Default)]
    struct Log {
        sent: Vec<(Probe, Time)>,
        dropped: Vec<(Probe, DropCause)>,
        copies: u64,
    }

    impl PortOutlet<Probe> for Log {
        fn send(&mut self, item: Probe, passage: PortTransit) {
            self.sent.push((item, passage.arrives));
        }

        fn discard(&mut self, item: Probe, cause: DropCause) {
            self.dropped.push((item, cause));
        }

        fn lose(&mut self, _: Probe, _: PortTransit) {
            unreachable!("the link loses none");
        }

        fn duplicate(&mut self, _: &Probe) {
            self.copies += 1;
        }
    }

    /// A port of 1 Gb/s, where 1,500 bytes last 12 us, with a delay of 1 ms.
    struct Bench {
        port: Port,
        params: PortParams,
        extras: PortExtras<Probe>,
        log: Log,
    }

    const DELAY: Span = Span::from_ms(1);

    impl Bench {
        fn new(impairments: Impairments, control_priority: bool) -> Self {
            let config = PortConfig { control_priority, ..PortConfig::new(Rate::from_gbps(1), DELAY) };
            impairments.check(config.rate).unwrap();
            let mut extras = PortExtras::of_switch(&config, Some(&Arc::new(impairments)));
            extras.begin_schedule(Time::ZERO);
            let (port, params) = (Port::new(0, PortMode::Extended), PortParams::new(&config).unwrap());
            Self { port, params, extras, log: Log::default() }
        }

        fn offer(&mut self, arrived: Time, size: u32, id: u64) {
            let probe = Probe { arrived, size, id, corrupted: false };
            self.extras.enqueue(&mut self.port, &self.params, 7, probe, &mut self.log);
            self.extras.check().unwrap();
        }

        /// Offers a packet every 15 us, replays the rest, and returns the log.
        fn run(mut self, count: u64) -> (Log, ImpairmentCounters) {
            (0..count).for_each(|id| self.offer(Time::from_us(15 * id + 1), SIZE, id));
            self.finish()
        }

        fn finish(mut self) -> (Log, ImpairmentCounters) {
            // Only events that it announces are needed, and nothing is left out.
            while self.extras.has_waiting() {
                let next = self.extras.next_service(&self.params);
                assert!(next.is_set(), "packets are held for ever");
                self.extras.advance(&mut self.port, &self.params, 7, next.just_after(), &mut self.log);
            }
            assert_eq!(self.extras.waiting().count(), 0);
            assert!(self.log.sent.is_sorted_by_key(|&(_, arrives)| arrives), "a link is a FIFO");
            (self.log, self.extras.impaired_packets())
        }
    }

    /// Time in the stage: from the end of the service.
    fn held(&(probe, arrives): &(Probe, Time)) -> Span {
        (arrives - DELAY).since(probe.arrived + Span::from_us(12))
    }

    fn ids(log: &Log) -> Vec<u64> {
        log.sent.iter().map(|(probe, _)| probe.id).collect()
    }

    /// Returns whether a count is within four standard deviations of a binomial distribution.
    fn is_likely(count: u64, of: u64, probability: f64) -> bool {
        let (mean, variance) = (of as f64 * probability, of as f64 * probability * (1.0 - probability));
        (count as f64 - mean).abs() <= 4.0 * variance.sqrt()
    }

    #[test]
    fn probabilities_are_those_of_the_settings() {
        let (log, counters) = Bench::new(
            Impairments { duplication: Frac::ratio(1, 50), corruption: Frac::ratio(1, 100), ..Impairments::default() },
            false,
        )
        .run(COUNT);
        assert_eq!(log.copies, counters.duplicates);
        assert_eq!(log.sent.len() as u64, COUNT + counters.duplicates);
        assert!(is_likely(counters.duplicates, COUNT, 0.02), "{counters:?}");
        let corrupted = log.sent.iter().filter(|(probe, _)| probe.corrupted).count() as u64;
        assert_eq!(corrupted, counters.corrupted);
        assert!(is_likely(corrupted, COUNT + counters.duplicates, 0.01), "{counters:?}");
        // A copy and its packet are corrupted apart: both with one part in 10,000.
        let mut by_id = std::collections::BTreeMap::<u64, Vec<bool>>::new();
        log.sent.iter().for_each(|(probe, _)| by_id.entry(probe.id).or_default().push(probe.corrupted));
        let both = by_id.values().filter(|copies| copies.len() == 2 && copies.iter().all(|&it| it)).count() as u64;
        assert!(both <= 4, "{both} of {} copies are corrupted like their packets", counters.duplicates);
        assert!(by_id.values().all(|copies| copies.len() <= 2));
        // A copy follows its packet by the packet's service.
        let mut first = std::collections::BTreeMap::new();
        for (probe, arrives) in &log.sent {
            if let Some(before) = first.insert(probe.id, *arrives) {
                assert_eq!(arrives.since(before), Span::from_us(12));
            }
        }
    }

    #[test]
    fn jitter_has_its_mean_range_and_order() {
        let max = Span::from_us(100);
        for (distribution, deviation) in [(JitterDistribution::Uniform, 28.87), (JitterDistribution::Normal, 14.43)] {
            for order in [JitterOrder::Kept, JitterOrder::Free] {
                let jitter = Some(LinkJitter { max, distribution, order });
                let (log, counters) = Bench::new(Impairments { jitter, ..Impairments::default() }, false).run(COUNT);
                assert_eq!(log.sent.len() as u64, COUNT);
                assert!(log.sent.iter().all(|it| held(it) >= Span::ZERO && held(it) <= max));
                let ids = ids(&log);
                if order == JitterOrder::Kept {
                    assert!(ids.is_sorted() && counters.reordered == 0);
                    continue;
                }
                let mean = log.sent.iter().map(held).sum::<Span>().ps() as f64 / COUNT as f64 / 1e6;
                assert!((mean - 50.0).abs() < 4.0 * deviation / (COUNT as f64).sqrt(), "{distribution:?}: {mean} us");
                let (mut newest, mut reordered) = (0, 0);
                for &id in &ids {
                    reordered += u64::from(id < newest);
                    newest = newest.max(id);
                }
                assert!(counters.reordered == reordered && reordered > COUNT / 4, "{reordered}");
            }
        }
    }

    /// With a delay of 40 us and a packet every 15 us, a packet that is held back is overtaken by those among the next two
    /// that are not: all but one in 10,000.
    #[test]
    fn held_packets_are_overtaken() {
        let reordering = Some(Reordering { probability: Frac::ratio(1, 100), delay: Span::from_us(40) });
        let (log, counters) = Bench::new(Impairments { reordering, ..Impairments::default() }, false).run(COUNT);
        let late = log.sent.iter().filter(|it| held(it) == Span::from_us(40)).count() as u64;
        assert!(is_likely(late, COUNT, 0.01), "{late}");
        assert!(log.sent.iter().all(|it| held(it).is_zero() || held(it) == Span::from_us(40)));
        assert!(late - counters.reordered <= 4, "{late} were held back, {counters:?}");
    }

    /// Bursts of 20 packets every 10 ms: 30,000 bytes, with tokens for 10,000 and 1,250 of them in a burst.
    #[test]
    fn the_policer_passes_its_rate_and_its_burst() {
        let (rate, burst) = (Rate::from_mbps(8), Bytes::new(6_000));
        let policer = Some(Policer { rate, burst });
        let mut bench = Bench::new(Impairments { policer, mtu: Some(SIZE), ..Impairments::default() }, false);
        for nth in 0..1_000u64 {
            (0..20).for_each(|of_burst| bench.offer(Time::from_us(nth * 10_000 + of_burst), SIZE, nth * 20 + of_burst));
        }
        bench.offer(Time::from_ms(10_000), SIZE + 1, 0);
        let (log, counters) = bench.finish();
        // A full bucket holds four packets, and the tokens of 20 us are not one more. It is full again after 6 ms.
        assert_eq!(log.sent.len(), 4_000);
        assert!(log.sent.iter().all(|(probe, _)| probe.id % 20 < 4));
        assert_eq!((counters.policed, counters.oversized), (16_000, 1));
        assert_eq!(log.dropped.last().unwrap().1, DropCause::Oversized);
        // A steady overload: exactly the rate, and the burst once.
        let mut bench = Bench::new(Impairments { policer, ..Impairments::default() }, false);
        (0..COUNT).for_each(|id| bench.offer(Time::from_us(15 * id + 1), SIZE, id));
        let (log, counters) = bench.finish();
        let (bytes, tokens) =
            (log.sent.len() as u64 * u64::from(SIZE), rate.bytes_in(Span::from_us(15 * COUNT as i64)));
        assert!(bytes.abs_diff(tokens.get() + burst.get()) <= u64::from(SIZE), "{bytes} of {tokens}");
        assert_eq!(counters.policed + log.sent.len() as u64, COUNT);
    }

    /// ACKs of 64 bytes every 15 us. A group ends after 1 ms, or with its eighth ACK, 105 us after the first.
    #[test]
    fn small_packets_are_released_in_groups() {
        for (packets, groups) in [(8, COUNT / 8), (1_000, COUNT / 67)] {
            let aggregation = AckAggregation { period: Span::from_ms(1), packets, max_size: 64 };
            let impairments = Impairments { ack_aggregation: Some(aggregation), ..Impairments::default() };
            let mut bench = Bench::new(impairments, true);
            (0..COUNT).for_each(|id| bench.offer(Time::from_us(15 * id + 1), 64, id));
            let (log, counters) = bench.finish();
            assert!(ids(&log).is_sorted() && log.sent.len() as u64 == COUNT);
            assert!(counters.groups.abs_diff(groups) <= 1, "{counters:?}");
            let bursts = log.sent.chunk_by(|a, b| a.1 == b.1).map(<[_]>::len);
            let expected = packets.min(67) as usize;
            assert!(bursts.clone().take(1_000).all(|len| len == expected), "{:?}", bursts.collect::<Vec<_>>());
        }
        // Data is not held, and overtakes.
        let aggregation = AckAggregation { period: Span::from_ms(1), packets: 9, max_size: 64 };
        let mut bench = Bench::new(Impairments { ack_aggregation: Some(aggregation), ..Impairments::default() }, false);
        bench.offer(Time::from_us(1), 64, 0);
        bench.offer(Time::from_us(2), SIZE, 1);
        let (log, counters) = bench.finish();
        assert_eq!((ids(&log), counters.reordered), (vec![1, 0], 0));
        assert_eq!(log.sent[1].1, Time::from_us(1) + Span::from_ps(512_000) + Span::from_ms(1) + DELAY);
    }

    /// 3 packets in the first of every 10 ms. A queue that never falls idle: in 100 s exactly 30,000 packets.
    #[test]
    fn a_schedule_delivers_its_bytes() {
        let step = |at_ms, mbps| RateStep { at: Span::from_ms(at_ms), rate: Rate::from_mbps(mbps) };
        let schedule = RateSchedule::new(vec![step(0, 36), step(1, 0)], Some(Span::from_ms(10))).unwrap();
        let rate_schedule = Some(Arc::new(schedule));
        let mut bench = Bench::new(Impairments { rate_schedule, ..Impairments::default() }, false);
        (0..40_000).for_each(|id| bench.offer(Time::ZERO, SIZE, id));
        // The backlog is bytes, whatever the rate is now: the packet in service counts as a whole while the rate is 0.
        bench.extras.advance(&mut bench.port, &bench.params, 7, Time::from_ms(5), &mut bench.log);
        let queue = bench.extras.occupancy(&bench.port, &bench.params, Time::from_ms(5)).queue;
        assert_eq!(queue, Bytes::new((40_000 - 3) * u64::from(SIZE)));
        let (log, _) = bench.finish();
        let until = Time::from_ms(100_000) + DELAY;
        assert_eq!(log.sent.iter().filter(|(_, arrives)| *arrives <= until).count(), 30_000);
    }

    proptest! {
        /// All impairments together, at any time of replay: each packet is dropped or delivered, with its copy, and the
        /// time of replays changes nothing.
        #[test]
        fn packets_are_conserved_and_replays_change_nothing(
            steps in proptest::collection::vec((0..60u64, 1..1_501u32), 1..120),
            replays in proptest::collection::vec(0..2_000u64, 0..20),
            priority in any::<bool>(),
        ) {
            let step = |at_us, mbps| RateStep { at: Span::from_us(at_us), rate: Rate::from_mbps(mbps) };
            let schedule = RateSchedule::new(vec![step(0, 900), step(100, 0), step(130, 400)], Some(Span::from_us(500)));
            let impairments = Impairments {
                policer: Some(Policer { rate: Rate::from_mbps(300), burst: Bytes::new(20_000) }),
                mtu: Some(1_490),
                jitter: Some(LinkJitter {
                    max: Span::from_us(80),
                    distribution: JitterDistribution::Uniform,
                    order: JitterOrder::Free,
                }),
                reordering: Some(Reordering { probability: Frac::ratio(1, 10), delay: Span::from_us(99) }),
                duplication: Frac::ratio(1, 5),
                corruption: Frac::ratio(1, 5),
                ack_aggregation: Some(AckAggregation { period: Span::from_us(70), packets: 3, max_size: 99 }),
                rate_schedule: Some(Arc::new(schedule.unwrap())),
            };
            let run = |replays: &[u64]| {
                let mut bench = Bench::new(impairments.clone(), priority);
                let (mut now, mut replays) = (0, replays.iter().copied().peekable());
                for (&(gap, size), id) in steps.iter().zip(0..) {
                    now += gap;
                    while let Some(at) = replays.next_if(|&at| at <= now) {
                        bench.extras.advance(&mut bench.port, &bench.params, 7, Time::from_us(at), &mut bench.log);
                    }
                    bench.offer(Time::from_us(now), size, id);
                }
                bench.finish()
            };
            let mut replays = replays;
            replays.sort_unstable();
            let ((log, counters), (other, of_other)) = (run(&[]), run(&replays));
            prop_assert_eq!((&log.sent, &log.dropped, counters), (&other.sent, &other.dropped, of_other));
            let mut all: Vec<u64> = ids(&log).into_iter().chain(log.dropped.iter().map(|(probe, _)| probe.id)).collect();
            all.sort_unstable();
            prop_assert_eq!(all.len() as u64, steps.len() as u64 + counters.duplicates);
            all.dedup();
            prop_assert_eq!(all.len(), steps.len());
        }
    }
}
