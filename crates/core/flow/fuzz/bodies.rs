//! The bodies of the fuzz targets. `tests/fuzzed.rs` runs them on the corpora, `tests/pair.rs` on random bytes.
//!
//! Two ends of a connection and the network between them, driven by bytes: each byte chooses the next event. Invariants:
//! nothing panics; the receiver reads every byte once; memory is bounded; and once the network and the peer are honest,
//! everything that was written arrives, in bounded time.

use std::collections::VecDeque;

use flow::{
    AckEliciting, AckError, AckPolicy, AckRanges, Channel, ChannelConfig, Codepoint, EcnCounts, LossTimer,
    PacketNumbers, Range, ReceivedPackets, SendState,
};
use laws::catalog::{self, LawKind};
use laws::{Law, PathInfo, on_ramp};
use units::{Bytes, Rate, Span, Time, mix64};

use crate::stream::{Covered, Stream, StreamRange};

const RTT: Span = Span::from_ms(2);
const MSS: u32 = 1_200;
/// Maximum number of subflows that are opened.
const SUBFLOWS: u8 = 8;
/// Maximum number of bytes written, so that a run ends soon.
const MAX_WRITTEN: u64 = 1 << 20;

/// A packet on its way to the receiver.
#[derive(Clone, Copy)]
struct PacketInTransit {
    subflow: u8,
    number: u64,
    content: StreamRange,
    wants: bool,
    marked: bool,
}

/// An answer on its way to the sender.
#[derive(Clone)]
struct AckInTransit {
    subflow: u8,
    ranges: Vec<Range>,
    ecn: Option<EcnCounts>,
    delay: Span,
    received: Vec<(u64, Time)>,
}

impl AckInTransit {
    fn acks(&self) -> AckRanges<'_> {
        AckRanges { ranges: &self.ranges, ecn: self.ecn, delay: self.delay, received: &self.received }
    }
}

struct BodiesWorld {
    now: Time,
    path: PathInfo,
    law: LawKind,
    channel: Channel<Law, Stream>,
    arrivals: Vec<ReceivedPackets>,
    closed: Vec<bool>,
    ack_policy: AckPolicy,
    /// The most packets that a subflow remembers.
    most: u64,
    packets: VecDeque<PacketInTransit>,
    acks_in_transit: VecDeque<AckInTransit>,
    read: Covered,
    /// Bytes read, counted each time.
    read_new: u64,
    /// A false ACK was accepted: packets that it acknowledged need not have arrived.
    accepted_false_ack: bool,
    /// The peer sent something that cannot be true: a transport would close the connection.
    refused: bool,
}

/// Input bytes, followed by zeros once they run out.
struct Script<'a>(std::slice::Iter<'a, u8>);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    /// Returns a number near a significant one, or any.
    fn number(&mut self, near: u64) -> u64 {
        match self.byte() {
            255 => self.word(),
            254 => u64::MAX,
            byte => near.wrapping_add(u64::from(byte)).wrapping_sub(100),
        }
    }
}

fn law(kind: LawKind, path: &PathInfo) -> Law {
    catalog::build(kind, path, &[]).unwrap_or_else(|error| panic!("{error:?}"))
}

impl BodiesWorld {
    fn new(script: &mut Script) -> Self {
        let path =
            PathInfo { base_rtt: RTT, intra_rtt: RTT, line_rate: Rate::from_mbps(400), mss: Bytes::new(MSS.into()) };
        let kinds = [
            LawKind::NewReno,
            LawKind::Cubic,
            LawKind::Dctcp,
            LawKind::Bbr,
            LawKind::UnoCc,
            LawKind::Gemini,
            LawKind::Copa,
            LawKind::Vegas,
        ];
        let kind = kinds[usize::from(script.byte()) % kinds.len()];
        let choices = script.byte();
        let most = [1 << 18, 1 << 18, 64, 7];
        let timers = [LossTimer::Probe, LossTimer::Flow, LossTimer::Probe, LossTimer::Packet];
        let mut config = ChannelConfig::new(RTT, MSS);
        config.timing.loss_timer = timers[usize::from(choices & 3)];
        config.timing.rto_max = Span::from_s(1);
        config.law_sees_timeouts = choices & 4 == 0;
        config.max_outstanding = most[usize::from(choices >> 6)];
        let threshold = Span::from_us(100);
        config.on_ramp = (choices & 9 == 9).then_some(on_ramp::OnRampParams {
            threshold,
            gain: on_ramp::OnRampParams::GAIN,
            strawman: choices & 2 == 0,
        });
        let every = u32::from(choices >> 4 & 3) + 1;
        let echo = Span::from_us(i64::from(choices & 32) * 100);
        let ack_policy = AckPolicy { every, delay: Span::from_us(500), echo, timestamps: choices & 8 != 0 };
        let channel = Channel::new(config, law(kind, &path), Stream::of(0), Time::ZERO);
        Self {
            now: Time::ZERO,
            path,
            law: kind,
            channel,
            arrivals: vec![ReceivedPackets::new(ack_policy)],
            closed: vec![false],
            ack_policy,
            most: config.max_outstanding,
            packets: VecDeque::new(),
            acks_in_transit: VecDeque::new(),
            read: Covered::default(),
            read_new: 0,
            accepted_false_ack: false,
            refused: false,
        }
    }

    /// Sends up to `most` packets that may be sent now.
    fn send(&mut self, most: u32) {
        for _ in 0..most {
            if self.channel.poll(self.now) != SendState::Now {
                break;
            }
            let departed = self.channel.send(self.now).expect("a packet may leave");
            assert!(departed.parcel.bytes > 0 && departed.parcel.bytes == departed.parcel.content.len);
            let marked = mix64(departed.number ^ u64::from(departed.subflow) << 32).is_multiple_of(7);
            let (subflow, number, content) = (departed.subflow, departed.number, departed.parcel.content);
            assert!(!self.closed[usize::from(subflow)], "subflow {subflow} is closed");
            self.packets.push_back(PacketInTransit { subflow, number, content, wants: true, marked });
        }
    }

    fn arrive(&mut self, packet: PacketInTransit) {
        let codepoint = if packet.marked { Codepoint::Ce } else { Codepoint::Ect0 };
        let arrivals = &mut self.arrivals[usize::from(packet.subflow)];
        let eliciting = if packet.wants { AckEliciting::Yes } else { AckEliciting::No };
        if arrivals.on_packet(self.now, packet.number, codepoint, eliciting) && packet.content.len > 0 {
            let new = self.read.add(packet.content);
            self.read_new += new;
        }
        self.ack_if_due(packet.subflow);
    }

    fn ack_if_due(&mut self, subflow: u8) {
        if self.arrivals[usize::from(subflow)].ack_due_at() <= self.now {
            self.send_ack(subflow);
        }
    }

    fn send_ack(&mut self, subflow: u8) {
        let arrivals = &mut self.arrivals[usize::from(subflow)];
        let answer = arrivals.ack(self.now).map(|acks| AckInTransit {
            subflow,
            ranges: acks.ranges.to_vec(),
            ecn: acks.ecn,
            delay: acks.delay,
            received: acks.received.to_vec(),
        });
        arrivals.on_ack_sent();
        self.acks_in_transit.extend(answer);
    }

    fn receive_ack(&mut self, answer: &AckInTransit, honest: bool) -> Result<(), AckError> {
        let before = (self.channel.in_flight(), self.channel.remembered(), *self.channel.stats());
        let result = self.channel.acked(self.now, answer.subflow, &answer.acks());
        match result {
            Ok(acked) => {
                assert!(acked.marked <= acked.bytes);
                self.accepted_false_ack |= !honest && acked.packets > 0;
                Ok(())
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                let after = (self.channel.in_flight(), self.channel.remembered(), *self.channel.stats());
                assert_eq!(before, after, "a rejected ACK changes nothing");
                // After a false ACK has raised the counts, true counts appear to decrease.
                assert!(!honest || self.refused || self.is_false_ecn_error(error), "a true ACK is rejected: {error}");
                self.refused = true;
                Err(error)
            }
        }
    }

    fn is_false_ecn_error(&self, error: AckError) -> bool {
        self.accepted_false_ack && matches!(error, AckError::EcnDecreased { .. })
    }

    fn step(&mut self, script: &mut Script) {
        let choice = script.byte();
        match choice % 20 {
            0 => {
                let bytes = u64::from(script.byte()) * u64::from(script.byte()) + 1;
                let stream = self.channel.work_mut();
                stream.written = (stream.written + bytes).min(MAX_WRITTEN);
            }
            1 | 2 => self.send(u32::from(script.byte()) + 1),
            3..=5 => {
                for _ in 0..=script.byte() % 32 {
                    let Some(packet) = self.packets.pop_front() else { break };
                    self.arrive(packet);
                }
            }
            6 => drop(self.packets.pop_front()),
            7 => self.packets.rotate_left((usize::from(script.byte()) + 1).min(self.packets.len())),
            8 => {
                if let Some(&packet) = self.packets.get(usize::from(script.byte())) {
                    self.arrive(packet);
                }
            }
            9..=11 => {
                if let Some(answer) = self.acks_in_transit.pop_front() {
                    let _ = self.receive_ack(&answer, true);
                }
            }
            12 => drop(self.acks_in_transit.pop_front()),
            13 => self.acks_in_transit.rotate_left(usize::from(script.byte() & 1).min(self.acks_in_transit.len())),
            14 => {
                if let Some(answer) = self.acks_in_transit.front().cloned() {
                    let _ = self.receive_ack(&answer, true);
                }
            }
            15 => {
                let span = 1 << (script.byte() % 40);
                self.now += Span::from_ps(span);
            }
            16 => self.on_timers(),
            17 => self.send_false_ack(script),
            18 => {
                let subflow = script.byte() % self.channel.subflows();
                match script.byte() % 5 {
                    0 => self.channel.set_mss(subflow, u32::from(script.byte()) * 16 + 256),
                    1 => {
                        let Some(number) = self.channel.number_apart(subflow, self.now) else { return };
                        let (content, wants) = (StreamRange::default(), false);
                        self.packets.push_back(PacketInTransit { subflow, number, content, wants, marked: false });
                    }
                    2 => drop(self.channel.skip_number(subflow, self.now)),
                    3 if !self.closed[usize::from(subflow)] => {
                        self.channel.reset_subflow(subflow, None, PacketNumbers::Continue, self.now);
                    }
                    _ => self.arrivals[usize::from(subflow)].forget_below(script.number(0)),
                }
            }
            _ => self.move_path(script),
        }
    }

    /// Closes one subflow, and opens another.
    fn move_path(&mut self, script: &mut Script) {
        if self.channel.subflows() >= SUBFLOWS {
            return;
        }
        let choices = script.byte();
        if choices & 1 == 0 {
            let subflow = script.byte() % self.channel.subflows();
            self.channel.close_subflow(subflow);
            self.closed[usize::from(subflow)] = true;
        }
        let own = (choices & 2 == 0).then(|| law(self.law, &self.path));
        let subflow = self.channel.add_subflow(own, self.now).expect("there are few");
        assert_eq!(usize::from(subflow), self.arrivals.len());
        self.arrivals.push(ReceivedPackets::new(self.ack_policy));
        self.closed.push(false);
    }

    fn send_false_ack(&mut self, script: &mut Script) {
        let subflow = script.byte() % (self.channel.subflows() + 1);
        let near = self.packets.back().map_or(0, |packet| packet.number);
        let count = match script.byte() {
            255 => 200,
            byte => byte % 5,
        };
        let ranges = (0..count).map(|_| Range { first: script.number(near), last: script.number(near) }).collect();
        let counts = script.byte().is_multiple_of(4);
        let ecn =
            counts.then(|| EcnCounts { ect0: script.number(near), ect1: script.number(0), ce: script.number(near) });
        let delay = Span::from_ps(script.word().cast_signed() >> (script.byte() % 64));
        let times = if script.byte() == 255 { 40 } else { script.byte() % 4 };
        let received = (0..times).map(|_| (script.number(near), Time::from_ps(script.word()))).collect();
        let _ = self.receive_ack(&AckInTransit { subflow, ranges, ecn, delay, received }, false);
    }

    fn on_timers(&mut self) {
        if self.channel.next_timer() <= self.now {
            self.channel.on_timer(self.now);
        }
        for subflow in 0..self.channel.subflows() {
            self.ack_if_due(subflow);
        }
    }

    /// Asserts the invariants that hold after each step.
    fn check(&self) {
        assert!(self.channel.remembered() <= self.most * u64::from(self.channel.subflows()));
        assert!(self.accepted_false_ack || self.read_new >= self.read.below());
        assert!(self.read_new <= self.channel.work().written, "a byte is read twice");
    }

    /// From now on every packet and every acknowledgement arrives, after half a round trip each. Everything must end.
    fn run_to_end(&mut self) {
        let began = self.now;
        for rounds in 0.. {
            assert!(rounds < 200_000, "no end after {} of {} bytes", self.read.below(), self.channel.work().written);
            self.send(64);
            if let Some(packet) = self.packets.pop_front() {
                self.arrive(packet);
                continue;
            }
            if let Some(answer) = self.acks_in_transit.pop_front() {
                self.now += RTT.over(64);
                if self.receive_ack(&answer, true).is_err() && self.refused {
                    return;
                }
                continue;
            }
            if self.channel.work().is_done() && self.channel.in_flight().is_zero() {
                break;
            }
            let pace = match self.channel.poll(self.now) {
                SendState::At(time) => time,
                _ => Time::NEVER,
            };
            let due = self.arrivals.iter().map(ReceivedPackets::ack_due_at).min().unwrap_or(Time::NEVER);
            let next = self.channel.next_timer().min(due).min(pace).max(self.now);
            assert!(next.is_set(), "nothing will happen any more");
            self.now = next;
            self.on_timers();
        }
        let took = self.now.since(began);
        assert!(took < Span::from_s(60), "the end took {took}");
        if !self.accepted_false_ack {
            let written = self.channel.work().written;
            assert_eq!((self.read.below(), self.read_new), (written, written));
        }
    }
}

/// Drives two ends by the bytes, and then lets them end.
pub(crate) fn pair(bytes: &[u8]) {
    let mut script = Script(bytes.iter());
    let mut world = BodiesWorld::new(&mut script);
    while !script.0.as_slice().is_empty() && !world.refused {
        world.step(&mut script);
        world.check();
    }
    // At least one subflow must be able to send.
    if world.closed.iter().all(|closed| *closed) {
        world.channel.add_subflow(Some(law(world.law, &world.path)), world.now).expect("there are few");
        world.arrivals.push(ReceivedPackets::new(world.ack_policy));
        world.closed.push(false);
    }
    if !world.refused {
        world.run_to_end();
        world.check();
    }
}
