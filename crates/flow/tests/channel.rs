//! A sender and a receiver joined by a channel that reorders, duplicates and loses both ways, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flow::{AckHeader, FlowConfig, FlowStats, Noise, Receiver, Recovery, Segment, SendState, Sender};
use laws::catalog::{Kind, Value, build};
use laws::{ControlLaw, Law, Path};
use proptest::prelude::*;
use units::{Bytes, Rate, Span, Time, mix64};

const MSS: u32 = 1_000;

/// What the channel does to packets, data and acknowledgements alike. Chances are in parts of 1,000.
#[derive(Clone, Copy, Debug)]
struct Channel {
    base_rtt: Span,
    /// Each packet is up to this much late, each by its own chance: reordering.
    jitter: Span,
    loss: u64,
    duplication: u64,
    marks: u64,
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    packets: u32,
    last: u32,
    ack_every: u8,
    window: u64,
    paced: bool,
    kind: Kind,
    recovery: Recovery,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Data { seq: u32, attempt: u8, ask: bool },
    Ack { seq: u32, covers: u8, cumulative: u32, marked: bool, attempt: u8, nack: bool },
}

/// What happened besides what the sender counts.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    stats: FlowStats,
    lost_data: u64,
    lost_acks: u64,
}

struct World {
    channel: Channel,
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    count: u64,
    tally: Tally,
}

impl World {
    fn chance(&self, of: u64, salt: u64) -> bool {
        mix64(self.channel.seed ^ mix64(self.count << 8 | salt)) % 1_000 < of
    }

    /// Sends a packet one way, once or twice; each copy is lost or late by its own chance.
    fn carry(&mut self, event: Event) {
        let copies = 1 + u64::from(self.chance(self.channel.duplication, 1));
        let mut arriving = 0;
        for _ in 0..copies {
            self.count += 1;
            if self.chance(self.channel.loss, 2) {
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
            Event::Ack { .. } => self.tally.lost_acks += u64::from(arriving == 0),
        }
    }
}

/// What one transmission may not do.
fn check_sent(sender: &Sender<Law>, segment: &Segment, acked: &[bool]) -> Result<(), TestCaseError> {
    prop_assert!(!acked[segment.seq as usize], "packet {} was sent again though acknowledged", segment.seq);
    let (in_flight, window) = (sender.in_flight(), sender.law().permit().window);
    let alone = in_flight == Bytes::new(segment.bytes.into());
    prop_assert!(in_flight <= window || alone, "{in_flight} in flight, {window} permitted");
    Ok(())
}

/// Runs a flow to its end.
fn transfer(flow: Flow, channel: Channel) -> Result<Tally, TestCaseError> {
    let size = Bytes::new(u64::from(flow.packets - 1) * u64::from(MSS) + u64::from(flow.last));
    let path = Path {
        base_rtt: channel.base_rtt,
        intra_rtt: channel.base_rtt,
        line_rate: Rate::from_gbps(1),
        mss: Bytes::new(MSS.into()),
    };
    let fixed = [("window", Value::Bytes(Bytes::new(flow.window))), ("paced", Value::Switch(flow.paced))];
    let law = build(flow.kind, &path, if flow.kind == Kind::Fixed { &fixed } else { &[] }).expect("the settings hold");
    let config = FlowConfig {
        size,
        mss: MSS,
        base_rtt: channel.base_rtt,
        // As a host has them: nothing in the channel is later than this.
        reordering: channel.jitter.times(2) + channel.base_rtt.over(4),
        rto_min: channel.base_rtt.times(2) + channel.jitter.times(2),
        rto_max: Span::from_s(1),
        timeouts_cut: true,
        recovery: flow.recovery,
        paced_header: 0,
        overshoots: false,
        catches_up: true,
        noise: Noise::NONE,
    };
    let mut sender = Sender::new(config, law, Time::ZERO);
    let mut receiver = Receiver::new(flow.packets, flow.ack_every, flow.recovery);
    let mut world = World { channel, now: Time::ZERO, events: BinaryHeap::new(), count: 0, tally: Tally::default() };
    let mut acked = vec![false; flow.packets as usize];
    let mut steps = 0u32;
    while !sender.is_complete() {
        steps += 1;
        prop_assert!(steps < 2_000_000, "the flow does not end: {:?}", sender.stats());
        let may_send = sender.poll(world.now);
        if may_send == SendState::Now {
            let segment = sender.send(world.now);
            check_sent(&sender, &segment, &acked)?;
            world.carry(Event::Data { seq: segment.seq, attempt: segment.attempt, ask: segment.ask });
            continue;
        }
        let paced = if let SendState::At(time) = may_send { time } else { Time::NEVER };
        let timer = sender.next_timer();
        let arrival = world.events.peek().map_or(Time::NEVER, |Reverse((time, ..))| *time);
        let next = paced.min(timer).min(arrival);
        prop_assert!(next.is_set(), "nothing will ever happen: {:?}", sender.stats());
        world.now = world.now.max(next);
        if arrival > next {
            if timer <= world.now {
                sender.on_timer(world.now);
                prop_assert!(sender.next_timer() > world.now, "the timer does not move on");
            }
            continue;
        }
        let Some(Reverse((_, _, event))) = world.events.pop() else { continue };
        match event {
            Event::Data { seq, attempt, ask } => {
                world.count += 1;
                let marked = world.chance(channel.marks, 4);
                for reply in receiver.on_data(world.now, seq, marked, ask).into_iter().flatten() {
                    let (seq, covers, cumulative, nack) = (reply.seq, reply.covers, reply.cumulative, reply.nack);
                    world.carry(Event::Ack { seq, covers, cumulative, marked: reply.marked, attempt, nack });
                }
            }
            Event::Ack { seq, covers, cumulative, marked, attempt, nack } => {
                let header = AckHeader { seq, covers, cumulative, marked, attempt };
                let before = sender.delivered();
                if nack {
                    sender.on_nack(world.now, &header);
                } else {
                    sender.on_ack(world.now, &header, &[]);
                }
                let came = acked.iter().filter(|&&came| came).count();
                if flow.recovery == Recovery::Selective {
                    acked[(seq + 1 - u32::from(covers)) as usize..=seq as usize].fill(true);
                } else {
                    acked[..cumulative as usize].fill(true);
                    let news = (came..cumulative as usize)
                        .map(|seq| if seq + 1 == flow.packets as usize { flow.last } else { MSS });
                    prop_assert_eq!(sender.delivered() - before, Bytes::new(news.map(u64::from).sum()));
                }
            }
        }
    }
    prop_assert_eq!(sender.delivered(), size);
    prop_assert_eq!(sender.in_flight(), Bytes::ZERO);
    prop_assert!(receiver.is_complete(), "acknowledged more than came");
    let stats = *sender.stats();
    prop_assert_eq!(stats.packets_sent, u64::from(flow.packets) + stats.retransmits);
    Ok(Tally { stats, ..world.tally })
}

fn channel(loss: impl Strategy<Value = u64>) -> impl Strategy<Value = Channel> {
    let rtt = prop_oneof![Just(Span::from_us(14)), Just(Span::from_ms(2)), Just(Span::from_ms(100))];
    (rtt, 0..=200u32, loss, 0..200u64, 0..1_000u64, any::<u64>()).prop_map(
        |(base_rtt, jitter_percent, loss, duplication, marks, seed)| Channel {
            base_rtt,
            jitter: base_rtt.times(jitter_percent).over(100),
            loss,
            duplication,
            marks,
            seed,
        },
    )
}

fn any_kind() -> impl Strategy<Value = Kind> {
    (0..Kind::ALL.len()).prop_map(|index| Kind::ALL[index])
}

fn flow(kind: impl Strategy<Value = Kind>) -> impl Strategy<Value = Flow> {
    (1..400u32, 1..=MSS, 1..=8u8, 1..100_000u64, any::<bool>(), kind).prop_map(
        |(packets, last, ack_every, window, paced, kind)| {
            let recovery = Recovery::Selective;
            Flow { packets, last, ack_every, window, paced, kind, recovery }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// Whatever the channel does (it loses up to two packets in five), under every law: the flow ends, all is
    /// delivered, nothing is in flight after, nothing acknowledged is sent again, the window holds.
    #[test]
    fn every_flow_ends_over_any_channel(flow in flow(any_kind()), channel in channel(0..400u64)) {
        let tally = transfer(flow, channel)?;
        // A window that shrinks can leave the receiver waiting for a packet that may not be sent, unless it
        // acknowledges every one.
        let lost = tally.lost_data + tally.lost_acks;
        prop_assert!(flow.ack_every > 1 || u64::from(tally.stats.timeouts) <= lost, "{tally:?}");
    }

    /// Under a constant window each timeout answers at least one loss: no storms. What is sent again was lost, or its
    /// acknowledgement was, or (a lost packet was to ask for it) is still held back by the receiver.
    #[test]
    fn timeouts_and_retransmissions_answer_losses(flow in flow(Just(Kind::Fixed)), channel in channel(0..200u64)) {
        let tally = transfer(flow, channel)?;
        let lost = tally.lost_data + tally.lost_acks;
        prop_assert!(u64::from(tally.stats.timeouts) <= lost, "{tally:?}");
        prop_assert!(tally.stats.retransmits <= lost * u64::from(flow.ack_every), "{tally:?}");
        prop_assert!(tally.stats.retransmits > 0 || tally.lost_data == 0, "{tally:?}");
    }

    /// Without a loss nothing is sent again and no timer strikes, whatever comes late or twice.
    #[test]
    fn reordering_and_duplicates_alone_cost_nothing(flow in flow(Just(Kind::Fixed)), channel in channel(Just(0u64))) {
        let tally = transfer(flow, channel)?;
        prop_assert_eq!((tally.stats.retransmits, tally.stats.timeouts, tally.stats.spurious), (0, 0, 0));
    }

    /// Go-back-N over a channel that loses and duplicates but keeps the order, under every law: the flow ends, and each
    /// byte is acknowledged once, when the cumulative number passes it.
    #[test]
    fn every_flow_ends_going_back(flow in flow(any_kind()), channel in channel(0..400u64), nack_us in 0..5_000i64) {
        let recovery = Recovery::GoBackN { nack_interval: Span::from_us(nack_us) };
        transfer(Flow { recovery, ..flow }, Channel { jitter: Span::ZERO, ..channel })?;
    }

    /// Without a loss nothing is asked for again and no timer strikes.
    #[test]
    fn in_order_nothing_is_asked_for_again(flow in flow(Just(Kind::Fixed)), channel in channel(Just(0u64))) {
        let recovery = Recovery::GoBackN { nack_interval: Span::ZERO };
        let tally = transfer(Flow { recovery, ..flow }, Channel { jitter: Span::ZERO, ..channel })?;
        prop_assert_eq!((tally.stats.retransmits, tally.stats.timeouts, tally.stats.nacks), (0, 0, 0));
    }
}
