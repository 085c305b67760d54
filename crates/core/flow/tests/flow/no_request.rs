//! Missing requests for blocks double no timeout.

use flow::{AckHeader, FlowCoding, FlowConfig, SendState, Sender, SenderCoding};
use laws::{Ack, ControlLaw, LawActions, Loss, SendLimits};
use units::{Bytes, Span, Time};

/// Permits everything until the first loss, and then one packet at a time.
struct OnePacketAfterLoss(Bytes);

impl ControlLaw for OnePacketAfterLoss {
    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, _: &Loss) {
        self.0 = Bytes::new(1);
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(self.0)
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// Twelve blocks are found to miss too many packets, one after another, while the flight far exceeds the window; nothing more
/// arrives. Each waits for a request for the length of a timeout. Packets still in flight time out after the last
/// acknowledgement nevertheless.
#[test]
fn missing_block_requests_do_not_delay_timeouts() {
    let rtt = Span::from_us(100);
    let config = FlowConfig {
        reordering: Span::from_us(10),
        coding: Some(SenderCoding {
            code: FlowCoding { data: 8, parity: 2, tail: None },
            eager: false,
            longest_wait: Span::ZERO,
            history: 0,
        }),
        ..FlowConfig::new(Bytes::new(8 * 40 * 1_000), 1_000, rtt)
    };
    let mut sender = Sender::new(config, OnePacketAfterLoss(Bytes::MAX), Time::ZERO);
    let mut now = Time::ZERO;
    while sender.poll(now) == SendState::Now {
        sender.send(now);
        now += Span::from_us(1);
    }
    // The last packet of each of the first twelve blocks and one later one are acknowledged, in turn.
    for block in 0..14u32 {
        let seq = 10 * block + 9;
        now = Time::ZERO + rtt + Span::from_us(u64::from(seq).cast_signed());
        sender.on_ack(now, &AckHeader { seq, covers: 1, cumulative: 0, marked: false, attempt: 1 }, &[]);
    }
    let (last_ack_at, in_flight) = (now, sender.in_flight());
    assert!(in_flight > Bytes::new(200_000), "{in_flight}");
    while sender.in_flight() == in_flight && sender.poll(now) != SendState::Now {
        now = sender.next_timer();
        assert!(now < last_ack_at + rtt.times(10), "nothing leaves until {now}, {:?}", sender.stats());
        sender.on_timer(now);
    }
    assert!(sender.stats().timeouts > 5, "{:?}", sender.stats());
}
