//! A sender and a receiver joined by a channel that reorders, duplicates and loses both ways, in virtual time.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use flow::{
    AckHeader, BlockNack, Blocks, DataHeader, FlowCoding, FlowConfig, FlowStats, LoadBalancing, LossTimer, Receiver,
    Recovery, SendState, Sender, SenderCoding,
};
use laws::catalog::{LawKind, ParamValue, build};
use laws::{Ack, ControlLaw, Cookie, Law, LawActions, Loss, Notification, PathInfo, SendLimits, Sent};
use proptest::prelude::*;
use units::{Bytes, Rate, Span, Time, mix64};

pub(crate) const MSS: u32 = 1_000;

/// Impairments of packets, data and acknowledgements alike. Probabilities are in parts of 1,000.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) base_rtt: Span,
    /// Each packet is up to this much late, each by its own chance: reordering.
    pub(crate) jitter: Span,
    pub(crate) loss: u64,
    /// Only acknowledgements are lost with that probability.
    pub(crate) acks_only: bool,
    /// Maximum number of packets lost of each block when they are sent for the first time; the minimum is one less.
    pub(crate) block_loss: u64,
    pub(crate) duplication: u64,
    pub(crate) marks: u64,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowParams {
    /// Data packets.
    pub(crate) packets: u32,
    pub(crate) last: u32,
    pub(crate) ack_every: u8,
    pub(crate) window: u64,
    pub(crate) paced: bool,
    pub(crate) kind: LawKind,
    pub(crate) recovery: Recovery,
    pub(crate) loss_timer: LossTimer,
    pub(crate) coding: Option<TestCoding>,
    pub(crate) paths: LoadBalancing,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TestCoding {
    pub(crate) code: FlowCoding,
    pub(crate) eager: bool,
    pub(crate) timer: Span,
    /// Number of subflows with requests triggered by gaps, or 0.
    pub(crate) subflows: u8,
    /// Number of subflows with a history in acknowledgements, or 0.
    pub(crate) history: u8,
}

impl TestCoding {
    /// The packets that an acknowledgement acknowledges.
    fn covered(coding: Option<Self>, seq: u32, covers: u8) -> Vec<u32> {
        let history = coding.map_or(0, |coding| u32::from(coding.history));
        if history == 0 {
            return (seq + 1 - u32::from(covers)..=seq).collect();
        }
        let before = (0..8).filter(|back| covers >> back & 1 != 0).map(|back| seq - (back + 1) * history);
        std::iter::once(seq).chain(before).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Data { seq: u32, attempt: u8, requests_ack: bool },
    Ack { seq: u32, covers: u8, cumulative: u32, marked: bool, attempt: u8, nack: bool },
    BlockNack { block: u32, missing: u64 },
}

/// Counts of events in addition to the sender's.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) stats: FlowStats,
    pub(crate) lost_data: u64,
    pub(crate) lost_acks: u64,
    /// Bytes reported to the law as lost.
    pub(crate) reported_losses: u64,
    pub(crate) ended: Time,
}

/// Events reported to all laws of a flow, in bytes.
#[derive(Clone, Copy, Default)]
struct EventTotals {
    sent: u64,
    lost: u64,
}

/// A law, with a record of the events reported to it.
struct RecordingLaw {
    law: Law,
    totals: Rc<Cell<EventTotals>>,
    /// Bytes in flight as last reported to this law. It can be less: packets assumed to have arrived are not reported.
    in_flight: Bytes,
}

impl RecordingLaw {
    fn record(&self, of: impl FnOnce(&mut EventTotals)) {
        let mut totals = self.totals.get();
        of(&mut totals);
        self.totals.set(totals);
    }
}

impl ControlLaw for RecordingLaw {
    fn on_sent(&mut self, sent: &Sent) -> Cookie {
        let (in_flight, window) = (sent.in_flight, self.law.send_limits().window);
        assert!(in_flight <= window || in_flight == sent.bytes, "{in_flight} in flight, {window} permitted");
        assert!(in_flight <= self.in_flight + sent.bytes, "{in_flight} in flight, and before {}", self.in_flight);
        self.in_flight = in_flight;
        self.record(|totals| totals.sent += sent.bytes.get());
        self.law.on_sent(sent)
    }

    fn on_ack(&mut self, ack: &Ack) {
        assert!(ack.in_flight <= self.in_flight, "{} in flight, and before {}", ack.in_flight, self.in_flight);
        self.in_flight = ack.in_flight;
        self.law.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        assert!(loss.in_flight + loss.lost <= self.in_flight, "{loss:?}, and before {}", self.in_flight);
        self.in_flight = loss.in_flight;
        self.record(|totals| totals.lost += loss.lost.get());
        self.law.on_loss(loss);
    }

    fn on_notification(&mut self, notification: &Notification) {
        self.law.on_notification(notification);
    }

    fn on_timer(&mut self, now: Time) {
        self.law.on_timer(now);
    }

    fn next_timer(&self) -> Time {
        self.law.next_timer()
    }

    fn send_limits(&self) -> SendLimits {
        self.law.send_limits()
    }

    fn rate_change_is_immediate(&self) -> bool {
        self.law.rate_change_is_immediate()
    }

    fn actions(&self) -> LawActions {
        self.law.actions()
    }
}

struct World {
    channel: Channel,
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    count: u64,
    tally: Tally,
    blocks: Option<Blocks>,
}

impl World {
    fn chance(&self, of: u64, salt: u64) -> bool {
        mix64(self.channel.seed ^ mix64(self.count << 8 | salt)) % 1_000 < of
    }

    /// Sends a packet one way, once or twice; each copy is lost or late by its own chance.
    fn transmit(&mut self, event: Event) {
        let copies = 1 + u64::from(self.chance(self.channel.duplication, 1));
        let mut arriving = 0;
        for _ in 0..copies {
            self.count += 1;
            let is_exempt = self.channel.acks_only && matches!(event, Event::Data { .. });
            if !is_exempt && self.chance(self.channel.loss, 2) || self.block_loses(event) {
                continue;
            }
            let jitter = self.channel.jitter.unsigned_ps();
            let late = mix64(self.channel.seed ^ mix64(self.count << 8 | 3)) % (jitter + 1);
            let arrives = self.now + self.channel.base_rtt.over(2) + Span::from_ps(late as i64);
            self.events.push(Reverse((arrives, self.count, event)));
            arriving += 1;
        }
        match event {
            Event::Data { .. } => self.tally.lost_data += u64::from(arriving == 0),
            Event::Ack { .. } | Event::BlockNack { .. } => self.tally.lost_acks += u64::from(arriving == 0),
        }
    }

    /// Returns whether a packet is one of those that its block loses.
    fn block_loses(&self, event: Event) -> bool {
        let (Event::Data { seq, attempt: 1, .. }, Some(blocks)) = (event, self.blocks) else { return false };
        let Some(block) = blocks.block_of(seq).filter(|_| self.channel.block_loss > 0) else { return false };
        let draw = |of: u64| mix64(self.channel.seed ^ mix64(u64::from(block) << 32 | of));
        let loses = self.channel.block_loss - draw(u64::MAX) % 2;
        let mut order: Vec<u32> = blocks.packets(block).collect();
        order.sort_by_key(|&seq| draw(u64::from(seq)));
        order.iter().take(loses as usize).any(|&lost| lost == seq)
    }
}

/// Runs a flow to its end.
pub(crate) fn transfer(flow: FlowParams, channel: Channel) -> Result<Tally, TestCaseError> {
    let size = Bytes::new(u64::from(flow.packets - 1) * u64::from(MSS) + u64::from(flow.last));
    let path = PathInfo {
        base_rtt: channel.base_rtt,
        intra_rtt: channel.base_rtt,
        line_rate: Rate::from_gbps(1),
        mss: Bytes::new(MSS.into()),
    };
    let fixed = [("window", ParamValue::Bytes(Bytes::new(flow.window))), ("paced", ParamValue::Switch(flow.paced))];
    let totals = Rc::new(Cell::new(EventTotals::default()));
    let law = || {
        let settings: &[_] = if flow.kind == LawKind::Fixed { &fixed } else { &[] };
        RecordingLaw {
            law: build(flow.kind, &path, settings).expect("the settings hold"),
            totals: totals.clone(),
            in_flight: Bytes::ZERO,
        }
    };
    let config = FlowConfig {
        // As on a host: no packet in the channel is later than this.
        reordering: channel.jitter.times(2) + channel.base_rtt.over(4),
        rto_min: channel.base_rtt.times(2) + channel.jitter.times(2),
        rto_max: Span::from_s(1),
        recovery: flow.recovery,
        loss_timer: flow.loss_timer,
        coding: flow.coding.map(|coding| SenderCoding {
            code: coding.code,
            eager: coding.eager,
            // The request, too, may be late.
            longest_wait: if coding.subflows == 0 { channel.jitter.times(2) } else { Span::ZERO },
            history: coding.history,
        }),
        paths: flow.paths,
        ..FlowConfig::new(size, MSS, channel.base_rtt)
    };
    let packets = config.packets() as usize;
    let blocks = flow.coding.map(|coding| Blocks::new(size, MSS, &coding.code));
    let mut sender = Sender::new(config, law(), Time::ZERO);
    if flow.paths.laws() > 1 {
        sender = sender.with_laws((1..flow.paths.laws()).map(|_| law()), Time::ZERO);
    }
    let mut receiver = match (flow.coding, blocks) {
        (Some(coding), Some(blocks)) => {
            Receiver::coded(blocks, flow.ack_every, coding.timer, coding.subflows, coding.history)
        }
        _ => Receiver::new(flow.packets, flow.ack_every, flow.recovery),
    };
    let (events, tally) = (BinaryHeap::new(), Tally::default());
    let mut world = World { channel, now: Time::ZERO, events, count: 0, tally, blocks };
    let (mut acked, mut received) = (vec![false; packets], vec![false; packets]);
    // Last transmission and size of each packet; bytes acknowledged while in flight.
    let mut last = vec![(0u8, 0u32); packets];
    let mut acked_in_flight = 0u64;
    // The receiver's delayed-ACK timer, a quarter of the base RTT as in the simulator, and the attempt that it answers.
    let (ack_delay, mut flush_at, mut held_attempt) = (channel.base_rtt.over(4), Time::NEVER, 1);
    let mut steps = 0u32;
    while !sender.is_complete() {
        steps += 1;
        prop_assert!(steps < 2_000_000, "the flow does not end: {:?}", sender.stats());
        let may_send = sender.poll(world.now);
        if may_send == SendState::Now {
            let segment = sender.send(world.now);
            prop_assert!(!acked[segment.seq as usize], "packet {} was sent again though acknowledged", segment.seq);
            last[segment.seq as usize] = (segment.attempt, segment.bytes);
            world.transmit(Event::Data {
                seq: segment.seq,
                attempt: segment.attempt,
                requests_ack: segment.requests_ack(),
            });
            continue;
        }
        let paced = if let SendState::At(time) = may_send { time } else { Time::NEVER };
        let timer = sender.next_timer();
        let arrival = world.events.peek().map_or(Time::NEVER, |Reverse((time, ..))| *time);
        let alarm = receiver.next_block_timer();
        let next = paced.min(timer).min(arrival).min(alarm).min(flush_at);
        prop_assert!(next.is_set(), "nothing will ever happen: {:?}", sender.stats());
        world.now = world.now.max(next);
        // In a head, packets may count as arrived although nothing acknowledged them.
        if blocks.is_some_and(|blocks| blocks.head() == 0) && sender.delivered() < size {
            let in_flight = sender.in_flight().get();
            prop_assert_eq!(totals.get().sent, acked_in_flight + totals.get().lost + in_flight, "conservation");
        }
        if arrival > next {
            if flush_at <= world.now {
                flush_at = Time::NEVER;
                if let Some(reply) = receiver.flush() {
                    let (seq, covers, cumulative, marked) = (reply.seq, reply.covers, reply.cumulative, reply.marked);
                    world.transmit(Event::Ack { seq, covers, cumulative, marked, attempt: held_attempt, nack: false });
                }
            }
            if alarm <= world.now {
                while let Some(nack) = receiver.next_nack(world.now) {
                    world.transmit(Event::BlockNack { block: nack.block, missing: nack.missing });
                }
            }
            if timer <= world.now {
                sender.on_timer(world.now);
                prop_assert!(sender.next_timer() > world.now, "the timer does not move on");
            }
            continue;
        }
        let Some(Reverse((_, _, event))) = world.events.pop() else { continue };
        match event {
            Event::Data { seq, attempt, requests_ack } => {
                world.count += 1;
                received[seq as usize] = true;
                let marked = world.chance(channel.marks, 4);
                for reply in receiver.on_data(world.now, DataHeader { seq, marked, requests_ack }).into_iter().flatten()
                {
                    let (seq, covers, cumulative, nack) = (reply.seq, reply.covers, reply.cumulative, reply.nack);
                    world.transmit(Event::Ack { seq, covers, cumulative, marked: reply.marked, attempt, nack });
                }
                if receiver.holds_back() {
                    (flush_at, held_attempt) = (flush_at.min(world.now + ack_delay), attempt);
                } else {
                    flush_at = Time::NEVER;
                }
                while let Some(nack) = receiver.next_nack(world.now) {
                    world.transmit(Event::BlockNack { block: nack.block, missing: nack.missing });
                }
            }
            Event::BlockNack { block, missing } => sender.on_block_nack(world.now, &BlockNack { block, missing }),
            Event::Ack { seq, covers, cumulative, marked, attempt, nack } => {
                let header = AckHeader { seq, covers, cumulative, marked, attempt };
                let before = sender.delivered();
                let covered = TestCoding::covered(flow.coding, seq, covers);
                let outstanding = covered.iter().map(|&seq| (seq, last[seq as usize]));
                let outstanding = outstanding.filter(|&(seq, (attempt, _))| sender.is_outstanding(seq, attempt));
                acked_in_flight += outstanding.map(|(_, (_, bytes))| u64::from(bytes)).sum::<u64>();
                if nack {
                    sender.on_nack(world.now, &header);
                } else {
                    sender.on_ack(world.now, &header, &[]);
                }
                let known = acked.iter().filter(|&&acked| acked).count();
                if flow.recovery == Recovery::Selective {
                    for &seq in &covered {
                        acked[seq as usize] = true;
                    }
                } else {
                    acked[..cumulative as usize].fill(true);
                    let progress = (known..cumulative as usize)
                        .map(|seq| if seq + 1 == flow.packets as usize { flow.last } else { MSS });
                    prop_assert_eq!(sender.delivered() - before, Bytes::new(progress.map(u64::from).sum()));
                }
            }
        }
    }
    prop_assert_eq!(sender.delivered(), size);
    prop_assert!(receiver.is_complete(), "acknowledged more than received");
    let stats = *sender.stats();
    if let Some(blocks) = blocks {
        prop_assert!(received[..blocks.head() as usize].iter().all(|&received| received));
        for block in 0..blocks.count() {
            let packets = blocks.packets(block);
            let of_block =
                received[packets.start as usize..packets.end as usize].iter().filter(|&&received| received).count();
            prop_assert!(of_block >= usize::from(blocks.data(block)), "block {block} cannot be recovered");
        }
    } else {
        prop_assert_eq!(sender.in_flight(), Bytes::ZERO);
        prop_assert_eq!(stats.packets_sent, u64::from(flow.packets) + stats.retransmits);
    }
    Ok(Tally { stats, ended: world.now, reported_losses: totals.get().lost, ..world.tally })
}

pub(crate) fn channel(loss: impl Strategy<Value = u64>) -> impl Strategy<Value = Channel> {
    let rtt = prop_oneof![Just(Span::from_us(14)), Just(Span::from_ms(2)), Just(Span::from_ms(100))];
    (rtt, 0..=200u32, loss, 0..200u64, 0..1_000u64, any::<u64>()).prop_map(
        |(base_rtt, jitter_percent, loss, duplication, marks, seed)| Channel {
            base_rtt,
            jitter: base_rtt.times(jitter_percent).over(100),
            loss,
            acks_only: false,
            block_loss: 0,
            duplication,
            marks,
            seed,
        },
    )
}

pub(crate) fn any_kind() -> impl Strategy<Value = LawKind> {
    (0..LawKind::ALL.len()).prop_map(|index| LawKind::ALL[index])
}

pub(crate) fn flow(kind: impl Strategy<Value = LawKind>) -> impl Strategy<Value = FlowParams> {
    (1..400u32, 1..=MSS, 1..=8u8, 1..100_000u64, any::<bool>(), kind).prop_map(
        |(packets, last, ack_every, window, paced, kind)| {
            let (recovery, loss_timer, paths) = (Recovery::Selective, LossTimer::Flow, LoadBalancing::PerFlow);
            FlowParams { packets, last, ack_every, window, paced, kind, recovery, loss_timer, coding: None, paths }
        },
    )
}
