//! Paced packets on a clock that counts whole nanoseconds.

use flow::{AckHeader, FlowConfig, Pacing, SendState, Sender};
use laws::{Ack, ControlLaw, LawActions, Loss, SendLimits};
use units::{Bytes, Rate, Span, Tick, Time};

/// 100 Gb/s until the first acknowledgement, then 30, with packets already scheduled timed again.
struct SlowingLaw(Rate);

impl ControlLaw for SlowingLaw {
    fn on_ack(&mut self, _: &Ack) {
        self.0 = Rate::from_gbps(30);
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn rate_change_is_immediate(&self) -> bool {
        true
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits { window: Bytes::new(1 << 30), pacing: self.0 }
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// 1048 B on the wire last 83.84 ns at 100 Gb/s and 279.47 ns at 30.
#[test]
fn gaps_are_whole_ticks() {
    let config = FlowConfig {
        pacing: Pacing { tick: Tick::new(Span::from_ns(1)), header: 48, catches_up: false, ..Pacing::PLAIN },
        ..FlowConfig::new(Bytes::new(100_000), 1_000, Span::from_us(4))
    };
    let mut sender = Sender::new(config, SlowingLaw(Rate::from_gbps(100)), Time::ZERO);
    let mut sent = Vec::new();
    let mut now = Time::ZERO;
    for packet in 0..6 {
        if packet == 3 {
            // The third packet is sent; the fourth waits, and moves by the difference of two whole numbers.
            sender.on_ack(now, &AckHeader { seq: 0, covers: 1, cumulative: 1, marked: false, attempt: 1 }, &[]);
        }
        while let SendState::At(time) = sender.poll(now) {
            now = time;
        }
        sender.send(now);
        sent.push(now.ps());
    }
    assert_eq!(sent, [0, 83, 83 * 2, 83 * 2 + 279, 83 * 2 + 279 * 2, 83 * 2 + 279 * 3].map(|ns| ns * 1_000));
}
