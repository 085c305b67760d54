//! One transfer on a `Sender` and on a `Channel`: the simulator's host and a transport's must report the same events to the
//! law, at the same times, and send the same packets. So measurements on one apply to the other.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use flow::{
    AckEliciting, AckHeader, AckPolicy, Channel, ChannelConfig, Codepoint, CwndValidationConfig, DataHeader,
    DataSource, FlowConfig, LossTimer, PacketContent, ReceivedPackets, Receiver, Recovery, ReturnReason, SendState,
    Sender, TcpConfig, Timing, Validation,
};
use laws::catalog::{self, LawKind};
use laws::{Ack, ControlLaw, Cookie, Law, LawActions, Loss, Notification, PathInfo, SendLimits, Sent};
use proptest::prelude::*;
use units::{Bytes, Rate, Span, Time, mix64};

const MSS: u32 = 1_000;
const RTT: Span = Span::from_us(400);
const RULES: CwndValidationConfig = CwndValidationConfig { restart: true, validation: Validation::Rfc7661 };

/// A law, with a record of everything reported to it.
#[derive(Clone)]
struct RecordedLaw {
    law: Law,
    events: Rc<RefCell<Vec<String>>>,
}

impl RecordedLaw {
    fn note(&self, event: String) {
        self.events.borrow_mut().push(event);
    }
}

impl ControlLaw for RecordedLaw {
    fn on_sent(&mut self, sent: &Sent) -> Cookie {
        self.note(format!("{sent:?}"));
        self.law.on_sent(sent)
    }

    fn on_ack(&mut self, ack: &Ack) {
        // Each host has its own definition of an unused window: a channel marks packets sent while the window was not full, a
        // sender the last packet.
        let ack = &Ack { app_limited: false, ..*ack };
        self.note(format!("{ack:?}"));
        self.law.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.note(format!("{loss:?}"));
        self.law.on_loss(loss);
    }

    fn on_notification(&mut self, notification: &Notification) {
        self.note(format!("{notification:?}"));
        self.law.on_notification(notification);
    }

    fn on_timer(&mut self, now: Time) {
        self.note(format!("timer at {now:?}"));
        self.law.on_timer(now);
    }

    fn next_timer(&self) -> Time {
        self.law.next_timer()
    }

    fn send_limits(&self) -> SendLimits {
        self.law.send_limits()
    }

    fn actions(&self) -> LawActions {
        self.law.actions()
    }
}

/// The packets of one message, by number.
struct TestMessage {
    packets: u32,
    last_bytes: u32,
    next: u32,
    lost: VecDeque<u32>,
    acked: BTreeSet<u32>,
}

impl TestMessage {
    fn next(&self) -> Option<u32> {
        self.lost.front().copied().or((self.next < self.packets).then_some(self.next))
    }
}

impl DataSource for TestMessage {
    type Content = u32;

    fn next_bytes(&mut self, mss: u32) -> Option<u32> {
        self.next().map(|seq| if seq + 1 == self.packets { self.last_bytes } else { mss })
    }

    fn take(&mut self, _: u8, mss: u32) -> PacketContent<u32> {
        let bytes = self.next_bytes(mss).unwrap();
        let content = self.next().unwrap();
        let again = self.lost.pop_front().is_some();
        self.next += u32::from(!again);
        PacketContent { bytes, content, is_retransmission: again }
    }

    fn acked(&mut self, content: u32) {
        self.acked.insert(content);
    }

    fn lost(&mut self, content: u32, _: ReturnReason) {
        self.lost.push_back(content);
    }
}

/// Operations of both hosts.
trait TestHost {
    fn poll(&mut self, now: Time) -> SendState;
    fn send(&mut self, now: Time) -> (u32, u32);
    /// Delivers and acknowledges the oldest packet in flight, marked or not; or loses it.
    fn arrive(&mut self, now: Time, marked: Option<bool>);
    fn timer(&mut self) -> Time;
    fn on_timer(&mut self, now: Time);
    fn is_complete(&self) -> bool;
}

/// The simulator's, with its receiver. Packets are in sending order.
struct Simulated {
    sender: Sender<RecordedLaw>,
    receiver: Receiver,
    away: VecDeque<(u32, u8)>,
}

impl TestHost for Simulated {
    fn poll(&mut self, now: Time) -> SendState {
        self.sender.poll(now)
    }

    fn send(&mut self, now: Time) -> (u32, u32) {
        let segment = self.sender.send(now);
        self.away.push_back((segment.seq, segment.attempt));
        (segment.seq, segment.bytes)
    }

    fn arrive(&mut self, now: Time, marked: Option<bool>) {
        let (seq, attempt) = self.away.pop_front().unwrap();
        let Some(marked) = marked else { return };
        for reply in self.receiver.on_data(now, DataHeader { seq, marked, requests_ack: false }).into_iter().flatten() {
            let header = AckHeader {
                seq: reply.seq,
                covers: reply.covers,
                cumulative: reply.cumulative,
                marked: reply.marked,
                attempt,
            };
            self.sender.on_ack(now, &header, &[]);
        }
    }

    fn timer(&mut self) -> Time {
        self.sender.next_timer()
    }

    fn on_timer(&mut self, now: Time) {
        self.sender.on_timer(now);
    }

    fn is_complete(&self) -> bool {
        self.sender.is_complete()
    }
}

/// A transport's, with its receiver.
struct TransportHost {
    channel: Channel<RecordedLaw, TestMessage>,
    arrivals: ReceivedPackets,
    away: VecDeque<u64>,
}

impl TestHost for TransportHost {
    fn poll(&mut self, now: Time) -> SendState {
        self.channel.poll(now)
    }

    fn send(&mut self, now: Time) -> (u32, u32) {
        let departed = self.channel.send(now).unwrap();
        self.away.push_back(departed.number);
        (departed.parcel.content, departed.parcel.bytes)
    }

    fn arrive(&mut self, now: Time, marked: Option<bool>) {
        let number = self.away.pop_front().unwrap();
        let Some(marked) = marked else { return };
        let codepoint = if marked { Codepoint::Ce } else { Codepoint::Ect0 };
        assert!(self.arrivals.on_packet(now, number, codepoint, AckEliciting::Yes));
        assert_eq!(self.arrivals.ack_due_at(), now, "each packet is answered at once");
        let acks = self.arrivals.ack(now).unwrap();
        self.channel.acked(now, 0, &acks).unwrap();
    }

    fn timer(&mut self) -> Time {
        self.channel.next_timer()
    }

    fn on_timer(&mut self, now: Time) {
        self.channel.on_timer(now);
    }

    fn is_complete(&self) -> bool {
        let message = self.channel.work();
        message.acked.len() == message.packets as usize
    }
}

/// Sends everything over a link that takes a microsecond a packet, loses `loss` in a thousand and marks `marks` of those that
/// met more than twenty others. Returns the packets sent, with their times.
fn transfer(host: &mut impl TestHost, seed: u64, loss: u64, marks: u64) -> Vec<(Time, u32, u32)> {
    let mut left = Vec::new();
    // Time of each packet's return, in order; none for a lost one.
    let mut link: VecDeque<(Time, bool, bool)> = VecDeque::new();
    let (mut now, mut idle_at) = (Time::ZERO, Time::ZERO);
    while !host.is_complete() {
        assert!(left.len() < 100_000, "no end");
        let polled = host.poll(now);
        if polled == SendState::Now {
            let (seq, bytes) = host.send(now);
            left.push((now, seq, bytes));
            let chance = mix64(seed ^ left.len() as u64);
            let waits = idle_at.max(now).since(now);
            idle_at = idle_at.max(now) + Span::from_us(1);
            let marked = waits > Span::from_us(20) && chance % 1_000 < marks;
            link.push_back((idle_at + RTT, marked, (chance >> 20) % 1_000 < loss));
            continue;
        }
        let pace = if let SendState::At(time) = polled { time } else { Time::NEVER };
        let arrival = link.front().map_or(Time::NEVER, |arrival| arrival.0);
        let timer = host.timer();
        now = arrival.min(timer).min(pace).max(now);
        if arrival <= now {
            let (_, marked, is_lost) = link.pop_front().unwrap();
            host.arrive(now, (!is_lost).then_some(marked));
        } else if timer <= now {
            host.on_timer(now);
        }
    }
    left
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Under every law, with losses and marks, with either timer.
    #[test]
    fn sender_and_channel_report_the_same_events(
        kind in 0..8usize,
        seed in any::<u64>(),
        packets in 1..2_000u32,
        last_bytes in 1..=MSS,
        loss in prop_oneof![Just(0u64), 1..100u64],
        marks in 0..1_000u64,
        loss_timer in prop_oneof![Just(LossTimer::Flow), Just(LossTimer::Packet)],
    ) {
        let kinds =
            [LawKind::NewReno, LawKind::Cubic, LawKind::Dctcp, LawKind::Bbr, LawKind::UnoCc, LawKind::Gemini, LawKind::Copa, LawKind::Vegas];
        let path = PathInfo { base_rtt: RTT, intra_rtt: RTT, line_rate: Rate::from_gbps(8), mss: Bytes::new(MSS.into()) };
        let law = catalog::build(kinds[kind], &path, &[]).unwrap();
        let [sender_events, channel_events] = [(); 2].map(|()| Rc::new(RefCell::new(Vec::new())));
        let recorded = |events: &Rc<_>| RecordedLaw { law: law.clone(), events: Rc::clone(events) };
        let size = Bytes::new(u64::from(MSS) * u64::from(packets - 1) + u64::from(last_bytes));
        // Longer than every queue here: hosts differ in the handling of packets that arrive after they were declared lost.
        let rto_min = RTT.times(50);
        let timing = Timing { base_rtt: RTT, reordering: RTT.over(4), rto_min, rto_max: Span::from_s(4), loss_timer };

        let tcp = TcpConfig { usage: RULES, ..TcpConfig::NONE };
        let config = FlowConfig { loss_timer, rto_min, tcp, ..FlowConfig::new(size, MSS, RTT) };
        let mut simulated = Simulated {
            sender: Sender::new(config, recorded(&sender_events), Time::ZERO),
            receiver: Receiver::new(packets, 1, Recovery::Selective),
            away: VecDeque::new(),
        };
        let message = TestMessage { packets, last_bytes, next: 0, lost: VecDeque::new(), acked: BTreeSet::new() };
        let config = ChannelConfig { timing, usage: RULES, ..ChannelConfig::new(RTT, MSS) };
        let policy = AckPolicy { every: 1, delay: Span::ZERO, echo: Span::ZERO, timestamps: false };
        let mut transport = TransportHost {
            channel: Channel::new(config, recorded(&channel_events), message, Time::ZERO),
            arrivals: ReceivedPackets::new(policy),
            away: VecDeque::new(),
        };

        let left = transfer(&mut simulated, seed, loss, marks);
        let channel_packets = transfer(&mut transport, seed, loss, marks);
        for (at, (one, other)) in left.iter().zip(&channel_packets).enumerate() {
            prop_assert_eq!(one, other, "departure {}", at);
        }
        prop_assert_eq!(left.len(), channel_packets.len());
        prop_assert!(left.len() >= packets as usize);
        let (sender_events, channel_events) = (sender_events.borrow(), channel_events.borrow());
        for (at, (one, other)) in sender_events.iter().zip(channel_events.iter()).enumerate() {
            prop_assert_eq!(one, other, "call {}", at);
        }
        prop_assert_eq!(sender_events.len(), channel_events.len());
        prop_assert!(sender_events.len() >= left.len() + (packets as usize).min(left.len()));
    }
}
