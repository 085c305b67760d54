//! Linux's TCP features between a flow and its law: PRR and the restart after idleness.

use std::cell::RefCell;
use std::rc::Rc;

use flow::{AckHeader, CwndValidationConfig, FlowConfig, SendState, Sender, TcpConfig, Validation};
use laws::{Ack, ControlLaw, LawActions, Loss, LossCause, Notification, SendLimits};
use units::{Bytes, Span, Time};

const MSS: u32 = 1_000;
const RTT: Span = Span::from_us(100);
const RESTART: CwndValidationConfig = CwndValidationConfig { restart: true, validation: Validation::Off };

/// Events received by the law.
#[derive(Default)]
struct TcpEvents {
    limited_elsewhere: Vec<bool>,
    idle: Vec<(Span, u32)>,
}

/// A window of 20 packets. A loss or a mark halves it.
struct Halves {
    window: u64,
    events: Rc<RefCell<TcpEvents>>,
}

impl ControlLaw for Halves {
    fn on_ack(&mut self, ack: &Ack) {
        self.events.borrow_mut().limited_elsewhere.push(ack.app_limited);
        if !ack.marked.is_zero() && self.window == 20 {
            self.window /= 2;
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window = if loss.cause == LossCause::Timeout { 1 } else { self.window / 2 };
    }

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Idle { idle, timeouts, .. } = *notification {
            self.events.borrow_mut().idle.push((idle, timeouts));
            self.window = 4;
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::new(u64::from(MSS) * self.window))
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

struct TcpFlow {
    sender: Sender<Halves>,
    events: Rc<RefCell<TcpEvents>>,
    now: Time,
}

impl TcpFlow {
    /// Sends twenty packets, a microsecond apart.
    fn new(tcp: TcpConfig) -> Self {
        let events = Rc::new(RefCell::new(TcpEvents::default()));
        let law = Halves { window: 20, events: Rc::clone(&events) };
        let config = FlowConfig { reordering: Span::ZERO, tcp, ..FlowConfig::new(Bytes::new(1_000_000), MSS, RTT) };
        let mut flow = Self { sender: Sender::new(config, law, Time::ZERO), events, now: Time::ZERO };
        while flow.sender.poll(flow.now) == SendState::Now {
            flow.sender.send(flow.now);
            flow.now += Span::from_us(1);
        }
        assert_eq!(flow.sender.stats().packets_sent, 20);
        flow.now = Time::ZERO + RTT;
        flow
    }

    /// Acknowledges a packet, a microsecond after the last. Returns the number of packets sent then.
    fn ack(&mut self, seq: u32, cumulative: u32, marked: bool) -> u32 {
        self.now += Span::from_us(1);
        self.sender.on_ack(self.now, &AckHeader { seq, covers: 1, cumulative, marked, attempt: 1 }, &[]);
        self.send_allowed()
    }

    fn send_allowed(&mut self) -> u32 {
        let before = self.sender.stats().packets_sent;
        while self.sender.poll(self.now) == SendState::Now {
            self.sender.send(self.now);
        }
        (self.sender.stats().packets_sent - before) as u32
    }
}

/// Ten packets are sent, a microsecond apart, into a window of 20. With RFC 7661's validation the acknowledgement of the first
/// does not count for the window, because the NIC was slower than it. Once the window has been full, acknowledgements count.
#[test]
fn a_window_that_the_nic_does_not_fill_is_unused() {
    for (validation, is_unused) in [(Validation::Off, false), (Validation::Rfc7661, true)] {
        let tcp = TcpConfig { usage: CwndValidationConfig { restart: false, validation }, ..TcpConfig::NONE };
        let events = Rc::new(RefCell::new(TcpEvents::default()));
        let law = Halves { window: 20, events: Rc::clone(&events) };
        let config = FlowConfig { tcp, ..FlowConfig::new(Bytes::new(1_000_000), MSS, RTT) };
        let mut sender = Sender::new(config, law, Time::ZERO);
        for us in 0..10 {
            sender.send(Time::from_us(us));
        }
        let ack = |sender: &mut Sender<Halves>, us, seq| {
            let header = AckHeader { seq, covers: 1, cumulative: seq + 1, marked: false, attempt: 1 };
            sender.on_ack(Time::from_us(us), &header, &[]);
        };
        ack(&mut sender, 100, 0);
        while sender.poll(Time::from_us(100)) == SendState::Now {
            sender.send(Time::from_us(100));
        }
        ack(&mut sender, 101, 1);
        assert_eq!(events.borrow().limited_elsewhere, [is_unused, false], "{validation:?}");
    }
}

const PRR: TcpConfig = TcpConfig { prr: true, ..TcpConfig::NONE };
const NONE: TcpConfig = TcpConfig::NONE;

/// The first of 20 packets is lost and the window halves. With PRR (RFC 6937) a packet is sent with about every second
/// acknowledgement; without it none until half of them have arrived, and then one with each.
#[test]
fn prr_spreads_a_cut_over_the_round_trip() {
    let sent = |tcp| {
        let mut flow = TcpFlow::new(tcp);
        let sent: Vec<u32> = (1..20).map(|seq| flow.ack(seq, 0, false)).collect();
        assert_eq!(flow.sender.in_flight(), Bytes::new(10_000));
        sent
    };
    assert_eq!(sent(PRR), [1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1]);
    let without: Vec<u32> = (1..20).map(|nth| u32::from(nth >= 10)).collect();
    assert_eq!(sent(NONE), without);
}

/// While a cut is spread, the law is notified that its window is not the limit. Once everything that was sent before the cut
/// is acknowledged, the law's window holds again.
#[test]
fn a_law_does_not_grow_while_its_cut_is_spread() {
    let mut flow = TcpFlow::new(PRR);
    (1..20).for_each(|seq| {
        flow.ack(seq, 0, false);
    });
    // The first of them reported the loss; after it the reduction was in progress.
    let limited = flow.events.borrow().limited_elsewhere.clone();
    assert_eq!(limited, (1..20).map(|seq| seq > 1).collect::<Vec<_>>());
    // The lost packet arrived: the cumulative number is past the 20 packets.
    flow.now += RTT;
    flow.sender.on_ack(flow.now, &AckHeader { seq: 0, covers: 1, cumulative: 20, marked: false, attempt: 2 }, &[]);
    assert_eq!(flow.events.borrow().limited_elsewhere.last(), Some(&false));
    assert_eq!(flow.sender.send_limits().window, Bytes::new(10_000));
}

/// Linux answers marks in the same way (CWR). Of 20 packets in flight one is acknowledged and 19 stay; each acknowledgement
/// permits half a packet.
#[test]
fn marks_are_spread_too() {
    let sent = |tcp| {
        let mut flow = TcpFlow::new(tcp);
        (0..12).map(|seq| flow.ack(seq, seq + 1, seq == 0)).collect::<Vec<u32>>()
    };
    assert_eq!(sent(PRR), [1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(sent(NONE), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
}

#[test]
fn a_timeout_ends_the_reduction() {
    let mut flow = TcpFlow::new(PRR);
    flow.ack(1, 0, false);
    while flow.sender.stats().timeouts == 0 {
        flow.now = flow.sender.next_timer();
        flow.sender.on_timer(flow.now);
    }
    assert_eq!(flow.sender.send_limits().window, Bytes::new(MSS.into()));
}

#[test]
fn a_flow_that_was_idle_restarts() {
    for (idle_restart, expected) in [(true, 4), (false, 20)] {
        let mut flow = TcpFlow::new(TcpConfig {
            usage: CwndValidationConfig { restart: idle_restart, ..RESTART },
            ..TcpConfig::NONE
        });
        for seq in 0..20 {
            flow.now += Span::from_us(1);
            let ack = AckHeader { seq, covers: 1, cumulative: seq + 1, marked: false, attempt: 1 };
            flow.sender.on_ack(flow.now, &ack, &[]);
        }
        // The last packet was sent at 19 us; the timeout is 200 us. Ten of them and one microsecond later: ten halvings.
        flow.now = Time::ZERO + Span::from_us(19 + 2_000 + 1);
        assert_eq!(flow.send_allowed(), expected);
        let events = if idle_restart { vec![(Span::from_us(2_001), 10)] } else { Vec::new() };
        assert_eq!(flow.events.borrow().idle, events);
    }
}

/// A flow with packets on the way is not idle, however long they take.
#[test]
fn a_flow_that_waits_is_not_idle() {
    let mut flow = TcpFlow::new(TcpConfig { usage: RESTART, ..TcpConfig::NONE });
    flow.now = Time::ZERO + Span::from_us(10_000);
    flow.ack(0, 1, false);
    assert!(flow.events.borrow().idle.is_empty());
}
