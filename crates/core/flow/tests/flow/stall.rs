//! A completely lost window is not resent one packet at a time.

use flow::{AckHeader, FlowConfig, SendState, Sender};
use laws::{Ack, ControlLaw, LawActions, Loss, SendLimits};
use units::{Bytes, Span, Time};

/// A thousand packets until the first acknowledgement, ten from then on.
struct ShrinkingWindow(u64);

impl ControlLaw for ShrinkingWindow {
    fn on_ack(&mut self, _: &Ack) {
        self.0 = 10;
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::new(1_000 * self.0))
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

#[test]
fn a_lost_window_is_declared_lost_within_two_timeouts() {
    let rtt = Span::from_us(100);
    let config = FlowConfig::new(Bytes::new(2_000_000), 1_000, rtt);
    let mut sender = Sender::new(config, ShrinkingWindow(1_000), Time::ZERO);
    let mut now = Time::ZERO;
    // A thousand packets over a round trip; only the first arrives.
    while sender.poll(now) == SendState::Now {
        sender.send(now);
        now += Span::from_ns(100);
    }
    assert_eq!(sender.stats().packets_sent, 1_000);
    sender.on_ack(now, &AckHeader { seq: 0, covers: 1, cumulative: 1, marked: false, attempt: 1 }, &[]);
    while sender.poll(now) == SendState::Blocked {
        now = sender.next_timer();
        sender.on_timer(now);
    }
    // The first timeout expires 2 RTT after the first lost packet was sent, the second at most 4 RTT after the last.
    assert!(sender.stats().timeouts <= 2, "{:?}", sender.stats());
    assert!(now < Time::ZERO + rtt.times(6), "{now}");
}
