//! Every byte is reported to the law, also if an acknowledgement repeats its newest packet.

use flow::{AckHeader, FlowConfig, SendState, Sender};
use laws::{Ack, ControlLaw, LawActions, Loss, SendLimits};
use units::{Bytes, Span, Time};

/// Counts the bytes reported to it.
#[derive(Default)]
struct AckedTotals {
    acked: Bytes,
    marked: Bytes,
}

impl ControlLaw for AckedTotals {
    fn on_ack(&mut self, ack: &Ack) {
        self.acked += ack.acked;
        self.marked += ack.marked;
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::MAX)
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// The receiver holds back the acknowledgement of 0 to 2, acknowledges a copy of 2 at once, and then the three together,
/// marked.
#[test]
fn an_ack_with_a_known_newest_packet_counts() {
    let rtt = Span::from_us(100);
    let config = FlowConfig::new(Bytes::new(4_000), 1_000, rtt);
    let mut sender = Sender::new(config, AckedTotals::default(), Time::ZERO);
    while sender.poll(Time::ZERO) == SendState::Now {
        sender.send(Time::ZERO);
    }
    let now = Time::ZERO + rtt;
    sender.on_ack(now, &AckHeader { seq: 2, covers: 1, cumulative: 3, marked: false, attempt: 1 }, &[]);
    sender.on_ack(now, &AckHeader { seq: 2, covers: 3, cumulative: 3, marked: true, attempt: 1 }, &[]);
    assert_eq!((sender.law().acked, sender.law().marked), (Bytes::new(3_000), Bytes::new(2_000)));
    assert_eq!((sender.delivered(), sender.stats().spurious), (Bytes::new(3_000), 0));
}
