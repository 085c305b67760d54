//! Messages one after the other on one connection, and the metrics that a host remembers of closed connections.

use flow::{
    AckHeader, DestinationMetrics, FlowConfig, IdleConnection, LoadBalancing, SendState, Sender, TcpConfig, UnoLb,
};
use laws::{Ack, ControlLaw, LawActions, Loss, Notification, SendLimits};
use units::{Bytes, Span, Time};

const MSS: u32 = 1_000;
const RTT: Span = Span::from_us(100);

/// A window in packets that only a test changes, with a threshold.
#[derive(Clone, Copy)]
struct FixedWindow {
    window: u64,
    ssthresh: Option<u64>,
    acked: u64,
}

impl ControlLaw for FixedWindow {
    fn on_ack(&mut self, ack: &Ack) {
        self.acked += 1;
        assert!(ack.delivered_at_send < Bytes::new(1_000 * self.acked), "what was delivered counts for the connection");
    }

    fn on_loss(&mut self, _: &Loss) {
        self.window /= 2;
    }

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Remembered { ssthresh } = *notification {
            self.ssthresh = Some(ssthresh.get() / 1_000);
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::new(self.window * 1_000))
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.ssthresh.map(|packets| Bytes::new(packets * 1_000))
    }

    fn actions(&self) -> LawActions {
        LawActions { increases: self.acked, ..LawActions::default() }
    }
}

fn config(packets: u64, number: u32, subflows: u8) -> FlowConfig {
    let unolb = UnoLb { subflows, recent: None, random: false, own_laws: true };
    let paths = if subflows > 1 { LoadBalancing::UnoLb(unolb) } else { LoadBalancing::PerFlow };
    FlowConfig { number, paths, ..FlowConfig::new(Bytes::new(packets * 1_000 - 1), MSS, RTT) }
}

/// Sends a whole message. Each packet is acknowledged a round trip after it was sent, and every seventh is lost at first.
fn transfer(sender: &mut Sender<FixedWindow>, now: &mut Time, loses: bool) {
    let mut in_flight = std::collections::VecDeque::new();
    let (mut received, mut cumulative) = (std::collections::BTreeSet::new(), 0);
    while !sender.is_complete() {
        while sender.poll(*now) == SendState::Now {
            let segment = sender.send(*now);
            if !(loses && segment.attempt == 1 && segment.seq % 7 == 3) {
                in_flight.push_back((*now + RTT, segment));
            }
            *now += Span::from_us(1);
        }
        let timer = sender.next_timer();
        if let Some((at, segment)) = in_flight.pop_front() {
            *now = at.max(*now);
            received.insert(segment.seq);
            while received.contains(&cumulative) {
                cumulative += 1;
            }
            let (seq, attempt) = (segment.seq, segment.attempt);
            sender.on_ack(*now, &AckHeader { seq, covers: 1, cumulative, marked: false, attempt }, &[]);
        } else {
            *now = timer.max(*now);
            sender.on_timer(*now);
        }
    }
}

/// Ten messages of different sizes, with losses or without, on one subflow or four: each is counted from zero, and the law's
/// state continues.
#[test]
fn messages_follow_each_other() {
    for (subflows, loses) in [(1, false), (1, true), (4, false), (4, true)] {
        let law = FixedWindow { window: 1 << 20, ssthresh: None, acked: 0 };
        let mut now = Time::from_us(5);
        let first = config(40, 0, subflows);
        let mut connection = IdleConnection::new(&first, law, now);
        for number in 0..10u32 {
            let packets = 40 + u64::from(number * 37 % 50);
            let mut sender = connection.send(config(packets, number, subflows));
            if number == 0 && subflows > 1 {
                sender = sender.with_laws((1..subflows).map(|_| law), now);
            }
            assert_eq!((sender.delivered(), sender.actions(), sender.in_flight()), Default::default());
            transfer(&mut sender, &mut now, loses);
            assert_eq!(sender.delivered(), Bytes::new(packets * 1_000 - 1));
            let stats = *sender.stats();
            let lost = if loses { (0..packets).filter(|seq| seq % 7 == 3).count() as u64 } else { 0 };
            assert_eq!((stats.packets_sent, stats.retransmits), (packets + lost, lost), "message {number}");
            assert!((packets / 2..=packets).contains(&sender.actions().increases));
            connection = sender.into_connection();
            now += RTT.times(number);
        }
    }
}

/// The law of a message that ends without losses is used for the next one, with all of its state.
#[test]
fn the_law_state_survives_a_message() {
    let law = FixedWindow { window: 8, ssthresh: None, acked: 0 };
    let mut now = Time::ZERO;
    let mut sender = Sender::new(config(20, 0, 1), law, now);
    transfer(&mut sender, &mut now, false);
    let mut sender = sender.into_connection().send(config(12, 1, 1));
    assert_eq!(sender.law().acked, 20);
    transfer(&mut sender, &mut now, false);
    assert_eq!((sender.law().acked, sender.actions().increases), (32, 12));
}

/// Behaviour of Linux 4.9 (`tcp_update_metrics`), in packets: window and threshold at the end, and the remembered value
/// before and after.
#[test]
fn thresholds_are_remembered_as_linux_does() {
    let cases = [
        // Congestion avoidance: the threshold, or half the window.
        (30, Some(20), None, Some(20)),
        (50, Some(20), None, Some(25)),
        (30, Some(20), Some(90), Some(20)),
        // The first slow start: half the window raises the remembered value.
        (30, None, None, None),
        (30, None, Some(10), Some(15)),
        (30, None, Some(40), Some(40)),
        // A later one: the threshold raises the remembered value.
        (10, Some(20), None, None),
        (10, Some(20), Some(12), Some(20)),
        (10, Some(20), Some(30), Some(30)),
    ];
    for (window, ssthresh, before, after) in cases {
        let ended = |window, ssthresh| {
            let mut now = Time::ZERO;
            let law = FixedWindow { window, ssthresh, acked: 0 };
            let mut sender = Sender::new(FlowConfig { tcp: TcpConfig::NONE, ..config(9, 0, 1) }, law, now);
            transfer(&mut sender, &mut now, false);
            sender
        };
        let mut remembered = DestinationMetrics::default();
        if before.is_some() {
            remembered.learn(&ended(before.unwrap_or(0), before));
        }
        remembered.learn(&ended(window, ssthresh));
        let mut next = Sender::new(config(9, 1, 1), FixedWindow { window: 10, ssthresh: None, acked: 0 }, Time::ZERO);
        next.remember(remembered);
        assert_eq!(next.law().ssthresh, after, "{window} {ssthresh:?} {before:?}");
    }
}
