//! A retransmission timer for each packet. It has a fixed length, starts at the packet's departure and applies to that packet
//! only.

use flow::{AckHeader, FlowConfig, LossTimer, SendState, Sender};
use laws::{Ack, ControlLaw, LawActions, Loss, LossCause, SendLimits};
use units::{Bytes, Span, Time};

const MSS: u32 = 1_000;
const RTT: Span = Span::from_us(100);
const RTO: Span = Span::from_us(150);

/// Permits everything, and records the last loss reported to it.
struct LossRecorder(Option<Loss>);

impl ControlLaw for LossRecorder {
    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, loss: &Loss) {
        self.0 = Some(*loss);
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::MAX)
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// Ten packets, a microsecond apart.
fn ten(loss_timer: LossTimer) -> Sender<LossRecorder> {
    of_ten(loss_timer, true)
}

fn of_ten(loss_timer: LossTimer, law_sees_timeouts: bool) -> Sender<LossRecorder> {
    let config =
        FlowConfig { loss_timer, law_sees_timeouts, rto_min: RTO, ..FlowConfig::new(Bytes::new(10_000), MSS, RTT) };
    let mut sender = Sender::new(config, LossRecorder(None), Time::ZERO);
    for us in 0..10 {
        assert_eq!(sender.poll(Time::from_us(us)), SendState::Now);
        sender.send(Time::from_us(us));
    }
    sender
}

/// Acknowledges all but the first packet, a round trip after it was sent.
fn acknowledge_the_rest(sender: &mut Sender<LossRecorder>) {
    for seq in 1..10 {
        let now = Time::from_us(u64::from(seq)) + RTT;
        sender.on_ack(now, &AckHeader { seq, covers: 1, cumulative: 0, marked: false, attempt: 1 }, &[]);
    }
}

/// The first packet of ten is lost, and no packet was sent late enough after it to prove that. The packet's own timer expires
/// 150 us after it was sent. The flow's timer restarts with each acknowledgement, the last time at 109 us. That of RACK expires a
/// round trip and the reordering window of a quarter after the packet was sent, because a later one has arrived.
#[test]
fn acks_do_not_restart_a_packet_timer() {
    for (loss_timer, expires_us) in [(LossTimer::Packet, 150), (LossTimer::Flow, 109 + 150), (LossTimer::Probe, 125)] {
        let mut sender = ten(loss_timer);
        acknowledge_the_rest(&mut sender);
        assert_eq!(sender.next_timer(), Time::from_us(expires_us), "{loss_timer:?}");
    }
}

/// All ten are lost. At the first two timeouts the oldest packet in flight alone is sent again, and the law is not notified. At
/// the third all packets are lost.
#[test]
fn two_probes_come_before_a_timeout() {
    let mut sender = ten(LossTimer::Probe);
    for oldest in 0..2 {
        let now = sender.next_timer();
        sender.on_timer(now);
        assert!(sender.law().0.is_none());
        assert_eq!(sender.poll(now), SendState::Now);
        let probe = sender.send(now);
        assert_eq!((probe.seq, probe.attempt, sender.poll(now)), (oldest, 2, SendState::Blocked));
        assert_eq!(sender.in_flight(), Bytes::new(10_000));
    }
    let now = sender.next_timer();
    sender.on_timer(now);
    let loss = sender.law().0.expect("a loss");
    assert_eq!((loss.cause, sender.stats().timeouts), (LossCause::Timeout, 1));
}

/// All ten are lost. Each timer applies to its own packet, counts as a timeout, and is reported to the law.
#[test]
fn a_packet_timer_expires_for_its_packet_only() {
    let mut sender = ten(LossTimer::Packet);
    for seq in 0..10 {
        let now = Time::from_us(seq) + RTO;
        assert_eq!(sender.next_timer(), now);
        sender.on_timer(now);
        assert_eq!(sender.in_flight(), Bytes::new(1_000 * (9 - seq)));
        let loss = sender.law().0.expect("a loss");
        assert_eq!((loss.lost, loss.sent_at, loss.cause), (Bytes::new(1_000), Time::from_us(seq), LossCause::Timeout));
    }
    assert_eq!((sender.stats().timeouts, sender.stats().loss_events), (10, 10));
}

/// The same if timeouts are not reported to the law: none is reported, and none counts as reported.
#[test]
fn packet_timeouts_are_not_reported_if_disabled() {
    let mut sender = of_ten(LossTimer::Packet, false);
    for seq in 0..10 {
        sender.on_timer(Time::from_us(seq) + RTO);
    }
    assert!(sender.law().0.is_none());
    assert_eq!((sender.stats().timeouts, sender.stats().loss_events), (10, 0));
}

/// A packet that is sent again has a timer as long as the first, regardless of the number of transmissions and of the
/// round trips.
#[test]
fn a_packet_timer_has_no_backoff() {
    let mut sender = ten(LossTimer::Packet);
    acknowledge_the_rest(&mut sender);
    for attempt in 1..20 {
        let now = Time::ZERO + RTO.times(attempt);
        assert_eq!(sender.next_timer(), now);
        sender.on_timer(now);
        let again = sender.send(now);
        assert_eq!((again.seq, u32::from(again.attempt)), (0, attempt + 1));
    }
    assert_eq!((sender.stats().timeouts, sender.stats().retransmits), (19, 19));
    assert_eq!(sender.min_rto_wait(), RTO);
}
