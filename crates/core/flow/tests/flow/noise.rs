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
fn rtt_noise_reaches_the_law_only() {
    let rtt = Span::from_us(100);
    let config = FlowConfig {
        rto_min: rtt,
        noise: Noise { max: Span::from_us(50), seed: 3 },
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
    let RttExtremes(min_rtt, max_rtt) = *sender.law();
    assert!(rtt <= min_rtt && min_rtt < rtt + Span::from_us(3), "{min_rtt}");
    assert!(rtt + Span::from_us(47) < max_rtt && max_rtt <= rtt + Span::from_us(50), "{max_rtt}");
    assert_eq!(sender.smoothed_rtt(), rtt);
    assert!(sender.is_complete());
}
