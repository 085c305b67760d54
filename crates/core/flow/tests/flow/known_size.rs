//! Remaining size reported to a law, and data that a sender reports as waiting to be sent.

use std::cell::RefCell;
use std::rc::Rc;

use flow::{
    AckHeader, AckRanges, Channel, ChannelConfig, FlowCoding, FlowConfig, IdleConnection, Range, SendState, Sender,
    SenderCoding,
};
use laws::{Ack, ControlLaw, LawActions, Loss, SendLimits};
use units::{Bytes, Span, Time};

use crate::stream::Stream;

const MSS: u32 = 1_000;
const RTT: Span = Span::from_us(100);

/// Permits everything, and records the remaining bytes reported to it.
#[derive(Clone, Default)]
struct RemainingRecorder(Rc<RefCell<Vec<Bytes>>>);

impl RemainingRecorder {
    fn reports(&self) -> Vec<u64> {
        self.0.borrow().iter().map(|left| left.get()).collect()
    }
}

impl ControlLaw for RemainingRecorder {
    fn on_ack(&mut self, ack: &Ack) {
        self.0.borrow_mut().push(ack.bytes_remaining);
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::MAX)
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

fn send_all(sender: &mut Sender<RemainingRecorder>, now: Time) {
    while sender.poll(now) == SendState::Now {
        sender.send(now);
    }
}

fn acknowledge(sender: &mut Sender<RemainingRecorder>, now: Time, seq: u32, covers: u8) {
    sender.on_ack(now, &AckHeader { seq, covers, cumulative: 0, marked: false, attempt: 1 }, &[]);
}

fn reports(sender: &Sender<RemainingRecorder>) -> Vec<u64> {
    sender.law().reports()
}

/// 3,500 bytes: packet 3 has 500. Packets 0 and 1 are acknowledged last, together.
#[test]
fn acks_report_the_remaining_bytes() {
    let config = |reports_size| FlowConfig { reports_size, ..FlowConfig::new(Bytes::new(3_500), MSS, RTT) };
    let mut sender = Sender::new(config(true), RemainingRecorder::default(), Time::ZERO);
    assert_eq!(sender.unsent(), Bytes::new(4_000));
    send_all(&mut sender, Time::ZERO);
    assert_eq!(sender.unsent(), Bytes::ZERO);
    let (now, mut without_size) =
        (Time::ZERO + RTT, Sender::new(config(false), RemainingRecorder::default(), Time::ZERO));
    send_all(&mut without_size, Time::ZERO);
    for sender in [&mut sender, &mut without_size] {
        for (seq, covers) in [(3, 1), (2, 1), (1, 2)] {
            acknowledge(sender, now, seq, covers);
        }
        assert!(sender.is_complete());
    }
    assert_eq!(reports(&sender), [3_000, 2_000, 0]);
    assert_eq!(reports(&without_size), [u64::MAX; 3]);
}

/// The second flow of a connection has a length of its own, under the law that received the events of the first.
#[test]
fn each_flow_of_a_connection_has_its_own_length() {
    let config = |size| FlowConfig { reports_size: true, ..FlowConfig::new(Bytes::new(size), MSS, RTT) };
    let first = IdleConnection::new(&config(2_000), RemainingRecorder::default(), Time::ZERO);
    let mut sender = first.send(config(2_000));
    send_all(&mut sender, Time::ZERO);
    acknowledge(&mut sender, Time::ZERO + RTT, 1, 2);
    let now = Time::ZERO + RTT;
    let mut sender = sender.into_connection().send(config(5_000));
    send_all(&mut sender, now);
    acknowledge(&mut sender, now + RTT, 0, 1);
    assert_eq!(reports(&sender), [0, 4_000]);
}

/// A block of 8 packets and 2 of parity is complete once any 8 of them have arrived: then nothing of it is left.
#[test]
fn a_complete_block_has_no_remaining_bytes() {
    let code = FlowCoding { data: 8, parity: 2, tail: None };
    let coding = Some(SenderCoding { code, eager: false, longest_wait: Span::ZERO, history: 0 });
    let config = FlowConfig { reports_size: true, coding, ..FlowConfig::new(Bytes::new(16_000), MSS, RTT) };
    let mut sender = Sender::new(config, RemainingRecorder::default(), Time::ZERO);
    assert_eq!(sender.unsent(), Bytes::new(20_000));
    send_all(&mut sender, Time::ZERO);
    for seq in 2..10 {
        acknowledge(&mut sender, Time::ZERO + RTT, seq, 1);
    }
    assert_eq!(reports(&sender), [15_000, 14_000, 13_000, 12_000, 11_000, 10_000, 10_000, 8_000]);
}

/// A channel reports the remaining bytes stated by its work, including those not written yet. A work with an unknown size
/// reports none.
#[test]
fn a_channel_reports_the_remaining_bytes_of_its_data_source() {
    for (known, expected) in [(Some(9_000), [8_000, 6_000]), (None, [u64::MAX; 2])] {
        let law = RemainingRecorder::default();
        let mut work = Stream::of(5_000);
        work.known = known;
        let mut channel = Channel::new(ChannelConfig::new(RTT, MSS), law.clone(), work, Time::ZERO);
        while channel.send(Time::ZERO).is_some() {}
        for (first, last) in [(0, 0), (1, 2)] {
            let ranges = [Range { first, last }];
            let acks = AckRanges { ranges: &ranges, ecn: None, delay: Span::ZERO, received: &[] };
            channel.acked(Time::ZERO + RTT, 0, &acks).unwrap();
        }
        assert_eq!(law.reports(), expected);
    }
}
