//! Delivery rate samples around a lack of data. They measure the path again once a packet is delivered that was sent after
//! new data arrived (draft-ietf-ccwg-bbr, §4.1.2.4; Linux's `tcp_rate.c`), on the simulator's host and on a transport's
//! alike.

use std::cell::RefCell;
use std::rc::Rc;

use flow::{
    AckHeader, AckRanges, Channel, ChannelConfig, CwndValidationConfig, DataSource, FlowConfig, PacketContent, Range,
    ReturnReason, SendState, Sender, Validation,
};
use laws::{Ack, ControlLaw, LawActions, Loss, SendLimits};
use units::{Bytes, Span, Time};

const MSS: u32 = 1_000;
const RTT: Span = Span::from_us(400);
const WINDOW: u64 = 10;

/// A window of ten packets, with a record of whether each acknowledgement's sample was limited.
#[derive(Clone, Default)]
struct Sampled(Rc<RefCell<Vec<bool>>>);

impl ControlLaw for Sampled {
    fn on_ack(&mut self, ack: &Ack) {
        self.0.borrow_mut().push(ack.sample_limited);
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::new(WINDOW * u64::from(MSS)))
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// Full packets that wait.
#[derive(Default)]
struct Packets(u64);

impl DataSource for Packets {
    type Content = ();

    fn next_bytes(&mut self, _: u32) -> Option<u32> {
        (self.0 > 0).then_some(MSS)
    }

    fn take(&mut self, _: u8, _: u32) -> PacketContent<()> {
        self.0 -= 1;
        PacketContent { bytes: MSS, content: (), is_retransmission: false }
    }

    fn acked(&mut self, (): ()) {}

    fn lost(&mut self, (): (), _: ReturnReason) {
        self.0 += 1;
    }
}

/// Sends messages of these numbers of packets on one connection, each when the previous one is delivered. Packets are sent as
/// soon as permitted, and acknowledged one by one a round trip later.
fn on_a_channel(messages: &[u64]) -> Vec<bool> {
    let usage = CwndValidationConfig { restart: false, validation: Validation::Off };
    let config = ChannelConfig { usage, ..ChannelConfig::new(RTT, MSS) };
    let law = Sampled::default();
    let mut channel = Channel::new(config, law.clone(), Packets::default(), Time::ZERO);
    let (mut now, mut next) = (Time::ZERO, 0);
    for &packets in messages {
        channel.work_mut().0 += packets;
        let end = next + packets;
        while next < end {
            let burst = std::iter::from_fn(|| channel.send(now)).count() as u64;
            now += RTT;
            for number in next..next + burst {
                let ranges = [Range { first: number, last: number }];
                let acks = AckRanges { ranges: &ranges, ecn: None, delay: Span::ZERO, received: &[] };
                channel.acked(now, 0, &acks).unwrap();
            }
            next += burst;
        }
    }
    law.0.take()
}

fn on_a_sender(messages: &[u64]) -> Vec<bool> {
    let law = Sampled::default();
    let config = |packets: u64, number| FlowConfig { number, ..FlowConfig::new(Bytes::new(packets * 1_000), MSS, RTT) };
    let mut now = Time::ZERO;
    let mut connection = flow::IdleConnection::new(&config(1, 0), law.clone(), now);
    for (number, &packets) in messages.iter().enumerate() {
        let mut sender: Sender<Sampled> = connection.send(config(packets, number as u32));
        while !sender.is_complete() {
            let mut burst = Vec::new();
            while sender.poll(now) == SendState::Now {
                burst.push(sender.send(now));
            }
            now += RTT;
            for segment in burst {
                let (seq, attempt) = (segment.seq, segment.attempt);
                sender.on_ack(now, &AckHeader { seq, covers: 1, cumulative: seq + 1, marked: false, attempt }, &[]);
            }
        }
        connection = sender.into_connection();
    }
    law.0.take()
}

/// A run of acknowledgements with limited samples, or without.
struct AckRun {
    limited: bool,
    count: usize,
}

const fn limited(count: usize) -> AckRun {
    AckRun { limited: true, count }
}

const fn free(count: usize) -> AckRun {
    AckRun { limited: false, count }
}

#[test]
fn samples_are_limited_until_new_data_is_acked() {
    let cases: [(&[u64], &[AckRun]); 3] = [
        // A message of 25 packets fills the window twice. Its first window is sent before any acknowledgement of it, and after
        // its last packet no data is left.
        (&[4, 4, 4, 25], &[free(3), limited(1 + 4 + 4 + 10), free(14), limited(1)]),
        // A message that fills the window with its last packet lacks data only once it is acknowledged.
        (&[10, 4], &[free(10), limited(4)]),
        (&[20, 15], &[free(20), limited(10), free(4), limited(1)]),
    ];
    for (messages, runs) in cases {
        let expected: Vec<bool> = runs.iter().flat_map(|run| vec![run.limited; run.count]).collect();
        assert_eq!(on_a_channel(messages), expected, "{messages:?} on a channel");
        assert_eq!(on_a_sender(messages), expected, "{messages:?} on a sender");
    }
}
