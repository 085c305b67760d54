//! A switch's request for a lower rate reaches every law that receives marks.

use flow::{AckHeader, FlowConfig, SendState, Sender};
use laws::{Ack, ControlLaw, LawActions, Loss, Notification, SendLimits};
use units::{Bytes, Span, Time};

/// Records the marked bytes reported to it, and the number of notifications.
#[derive(Default)]
struct MarkRecorder {
    reads_cnps: bool,
    marked: u64,
    notifications: u32,
}

impl ControlLaw for MarkRecorder {
    fn on_ack(&mut self, ack: &Ack) {
        self.marked += ack.marked.get();
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn on_notification(&mut self, _: &Notification) {
        self.notifications += 1;
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::MAX)
    }

    fn reads_direct_cnps(&self) -> bool {
        self.reads_cnps
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// Returns the events that a law receives for a direct CNP after 150 us, if a packet is acknowledged every 10 us from 100 us
/// on.
fn notified(reads_cnps: bool) -> (u64, u32, Bytes) {
    let rtt = Span::from_us(100);
    let config = FlowConfig::new(Bytes::new(100_000), 1_000, rtt);
    let mut sender = Sender::new(config, MarkRecorder { reads_cnps, ..MarkRecorder::default() }, Time::ZERO);
    for packet in 0..100 {
        let now = Time::from_us(packet * 10);
        if packet == 15 {
            sender.on_notification(&Notification::DirectCnp { now });
        }
        if let Some(seq) = (packet as u32).checked_sub(10) {
            sender.on_ack(now, &AckHeader { seq, covers: 1, cumulative: seq + 1, marked: false, attempt: 1 }, &[]);
        }
        assert_eq!(sender.poll(now), SendState::Now);
        sender.send(now);
    }
    (sender.law().marked, sender.law().notifications, sender.stats().marked)
}

#[test]
fn an_unread_direct_cnp_becomes_a_round_trip_of_marks() {
    // Packets of 1,000 bytes that were acknowledged from 150 us on and before 250 us.
    assert_eq!(notified(false), (10_000, 1, Bytes::ZERO));
    assert_eq!(notified(true), (0, 1, Bytes::ZERO));
}
