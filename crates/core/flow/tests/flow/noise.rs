//! Measurement noise affects only the law.

use flow::{AckHeader, FlowConfig, Noise, SendState, Sender};
use laws::{Ack, ControlLaw, LawActions, Loss, SendLimits};
use units::{Bytes, Span, Time};

/// Records the shortest and the longest RTT reported to it.
struct RttExtremes(Span, Span);

impl ControlLaw for RttExtremes {
    fn on_ack(&mut self, ack: &Ack) {
        (self.0, self.1) = (self.0.min(ack.rtt), self.1.max(ack.rtt));
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::MAX)
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

#[test]
fn the_law_hears_noise_and_the_timer_does_not() {
    let rtt = Span::from_us(100);
    let config = FlowConfig {
        rto_min: rtt,
        noise: Noise { most: Span::from_us(50), seed: 3 },
        ..FlowConfig::new(Bytes::new(100_000), 1_000, rtt)
    };
    let mut sender = Sender::new(config, RttExtremes(Span::MAX, Span::ZERO), Time::ZERO);
    while sender.poll(Time::ZERO) == SendState::Now {
        sender.send(Time::ZERO);
    }
    let now = Time::ZERO + rtt;
    for seq in 0..100 {
        sender.on_ack(now, &AckHeader { seq, covers: 1, cumulative: seq + 1, marked: false, attempt: 1 }, &[]);
    }
    let RttExtremes(least, most) = *sender.law();
    assert!(rtt <= least && least < rtt + Span::from_us(3), "{least}");
    assert!(rtt + Span::from_us(47) < most && most <= rtt + Span::from_us(50), "{most}");
    assert_eq!(sender.smoothed_rtt(), rtt);
    assert!(sender.is_complete());
}
