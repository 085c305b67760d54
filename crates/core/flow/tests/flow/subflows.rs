//! Each subflow with a law of its own: the law decides for its own packets and receives their events only.

use std::cell::RefCell;
use std::rc::Rc;

use flow::{AckHeader, FlowConfig, LoadBalancing, Segment, SendState, Sender, UnoLb};
use laws::{Ack, ControlLaw, Cookie, LawActions, Loss, Notification, SendLimits, Sent};
use units::{Bytes, Rate, Span, Time};

const MSS: u32 = 1_000;
const RTT: Span = Span::from_us(100);

/// Events received by one law.
#[derive(Clone, Default)]
struct LawEvents {
    sent: Vec<u64>,
    delivered: u64,
    lost: u64,
    losses: u32,
    marked: u64,
    notifications: u32,
    /// Times at which its timer expired.
    timer_expirations: Vec<Time>,
}

/// A constant window and rate. It recognises its own packets.
struct FixedLaw {
    name: u64,
    permit: SendLimits,
    timer: Time,
    events: Rc<RefCell<Vec<LawEvents>>>,
}

impl FixedLaw {
    fn record(&self, of: impl FnOnce(&mut LawEvents)) {
        of(&mut self.events.borrow_mut()[self.name as usize]);
    }
}

impl ControlLaw for FixedLaw {
    fn on_sent(&mut self, sent: &Sent) -> Cookie {
        self.record(|events| events.sent.push(sent.in_flight.get()));
        Cookie(self.name)
    }

    fn on_ack(&mut self, ack: &Ack) {
        assert_eq!(ack.cookie, Cookie(self.name), "an acknowledgement of another law's packet");
        self.record(|events| {
            events.delivered += ack.acked.get();
            events.marked += ack.marked.get();
        });
        assert_eq!(ack.delivered.get(), self.events.borrow()[self.name as usize].delivered);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.record(|events| {
            events.lost += loss.lost.get();
            events.losses += 1;
        });
    }

    fn on_notification(&mut self, _: &Notification) {
        self.record(|events| events.notifications += 1);
    }

    fn on_timer(&mut self, now: Time) {
        self.timer = Time::NEVER;
        self.record(|events| events.timer_expirations.push(now));
    }

    fn next_timer(&self) -> Time {
        self.timer
    }

    fn send_limits(&self) -> SendLimits {
        self.permit
    }

    fn actions(&self) -> LawActions {
        LawActions { increases: self.name, ..LawActions::default() }
    }
}

/// Creates a flow with a law for each subflow, with these windows in packets.
fn flow(windows: &[u64], pacing: Rate) -> (Sender<FixedLaw>, Rc<RefCell<Vec<LawEvents>>>) {
    let events = Rc::new(RefCell::new(vec![LawEvents::default(); windows.len()]));
    let law = |name: usize| FixedLaw {
        name: name as u64,
        permit: SendLimits { window: Bytes::new(windows[name] * u64::from(MSS)), pacing },
        timer: Time::from_us(10 + 10 * name as u64),
        events: events.clone(),
    };
    let paths =
        LoadBalancing::UnoLb(UnoLb { subflows: windows.len() as u8, recent: None, random: false, own_laws: true });
    let config = FlowConfig { paths, ..FlowConfig::new(Bytes::new(100_000), MSS, RTT) };
    let sender = Sender::new(config, law(0), Time::ZERO).with_laws((1..windows.len()).map(law), Time::ZERO);
    (sender, events)
}

/// Sends all packets that may be sent now. Returns each packet with its path.
fn send_all(sender: &mut Sender<FixedLaw>, now: Time) -> Vec<(Segment, u16)> {
    let mut sent = Vec::new();
    while sender.poll(now) == SendState::Now {
        let segment = sender.send(now);
        sent.push((segment, sender.entropy(&segment)));
    }
    sent
}

fn acknowledge(sender: &mut Sender<FixedLaw>, now: Time, seq: u32) {
    acknowledge_marked(sender, now, seq, false);
}

/// Acknowledges the first transmission of a packet.
fn acknowledge_marked(sender: &mut Sender<FixedLaw>, now: Time, seq: u32, marked: bool) {
    sender.on_ack(now, &AckHeader { seq, covers: 1, cumulative: 0, marked, attempt: 1 }, &[]);
}

fn events_of<T>(events: &RefCell<Vec<LawEvents>>, of: impl Fn(&LawEvents) -> T) -> Vec<T> {
    events.borrow().iter().map(of).collect()
}

#[test]
fn a_full_subflow_is_skipped() {
    let (mut sender, events) = flow(&[1, 2, 3], Rate::MAX);
    let first = send_all(&mut sender, Time::ZERO);
    // In turn: 0 1 2, 1 2, 2.
    let paths: Vec<u16> = first.iter().map(|(_, path)| *path).collect();
    assert_eq!(paths, [0, 1, 2, 1, 2, 2].map(|subflow| paths[subflow]));
    assert_eq!(
        first.iter().map(|(segment, _)| segment.requests_ack()).collect::<Vec<_>>(),
        [false, false, false, false, false, true]
    );
    let sent = events_of(&events, |events| events.sent.clone());
    assert_eq!(sent, [vec![1_000], vec![1_000, 2_000], vec![1_000, 2_000, 3_000]]);
    assert_eq!((sender.in_flight(), sender.send_limits().window), (Bytes::new(6_000), Bytes::new(6_000)));
    assert_eq!((sender.actions().increases, sender.law().name), (3, 0));
    // An acknowledgement on a subflow permits that one to send, although it is not next in order.
    acknowledge(&mut sender, Time::from_us(100), 3);
    let next = send_all(&mut sender, Time::from_us(100));
    assert_eq!(next.iter().map(|(segment, path)| (segment.seq, *path)).collect::<Vec<_>>(), [(6, paths[1])]);
    assert_eq!((sender.delivered(), events.borrow()[1].delivered), (Bytes::new(1_000), 1_000));
}

#[test]
fn another_subflow_retransmits_a_loss() {
    let (mut sender, events) = flow(&[2, 3, 2], Rate::MAX);
    let first = send_all(&mut sender, Time::ZERO);
    assert_eq!(first.len(), 7);
    // Packets 1, 4 and 6 were sent on the second subflow, and so is the next.
    acknowledge(&mut sender, Time::from_us(30), 6);
    let later = send_all(&mut sender, Time::from_us(30));
    assert_eq!(later.iter().map(|(segment, path)| (segment.seq, *path)).collect::<Vec<_>>(), [(7, first[1].1)]);
    for seq in [0, 2, 3, 5] {
        acknowledge(&mut sender, Time::from_us(100), seq);
    }
    // Acknowledgements on other subflows are no evidence for it. A packet of its own sent 30 us later is: 1 and 4 are lost.
    assert_eq!(events_of(&events, |events| events.losses), [0; 3]);
    acknowledge(&mut sender, Time::from_us(130), 7);
    let losses = events_of(&events, |events| (events.lost, events.losses));
    assert_eq!(losses, [(0, 0), (2_000, 1), (0, 0)], "both at once, and to no other law");
    // All subflows may send. The second does not resend the packets that it lost.
    let again = send_all(&mut sender, Time::from_us(130));
    let lossy_path = first[1].1;
    let retransmitted: Vec<_> = again.iter().take_while(|(segment, _)| segment.attempt == 2).collect();
    assert_eq!(retransmitted.iter().map(|(segment, _)| segment.seq).collect::<Vec<_>>(), [1, 4]);
    assert!(retransmitted.iter().all(|(_, path)| *path != lossy_path));
    assert_eq!(events.borrow()[1].delivered, 2_000);
}

#[test]
fn each_subflow_has_its_own_pace() {
    // A packet each 10 us.
    let (mut sender, _) = flow(&[2, 9], Rate::from_mbps(800));
    assert_eq!(send_all(&mut sender, Time::ZERO).len(), 2);
    assert_eq!(sender.poll(Time::ZERO), SendState::At(Time::from_us(10)));
    assert_eq!(send_all(&mut sender, Time::from_us(10)).len(), 2);
    // The first subflow's window is full.
    assert_eq!(send_all(&mut sender, Time::from_us(20)).len(), 1);
    assert_eq!((sender.may_reschedule(), sender.next_send()), (true, Time::from_us(20)));
    acknowledge(&mut sender, Time::from_us(25), 0);
    assert_eq!(sender.poll(Time::from_us(25)), SendState::Now);
}

#[test]
fn signals_reach_the_law_of_their_packet_or_all_laws() {
    let (mut sender, events) = flow(&[1, 1, 1], Rate::MAX);
    send_all(&mut sender, Time::ZERO);
    let now = Time::from_us(50);
    sender.on_cnp(now, 1, 1);
    assert_eq!(events_of(&events, |events| events.notifications), [0, 1, 0]);
    sender.on_direct_int(now, 2, 1, &[]);
    assert_eq!(events_of(&events, |events| events.notifications), [0, 1, 1]);
    // For a transmission that is no longer known, all laws are notified.
    sender.on_cnp(now, 1, 2);
    sender.on_notification(&Notification::DirectCnp { now });
    assert_eq!((events_of(&events, |events| events.notifications), sender.stats().cnps), (vec![2, 3, 3], 3));
    // None of them reads that, so each receives a round trip of marks.
    for seq in 0..3 {
        acknowledge(&mut sender, Time::from_us(100), seq);
    }
    assert_eq!(events_of(&events, |events| events.marked), [1_000; 3]);
}

/// A packet was resent on another subflow, and then its first transmission arrives after all: its mark does not count for the
/// other one.
#[test]
fn marks_of_late_packets_are_dropped() {
    let (mut sender, events) = flow(&[2, 2], Rate::MAX);
    send_all(&mut sender, Time::ZERO);
    acknowledge(&mut sender, Time::from_us(30), 2);
    send_all(&mut sender, Time::from_us(30));
    for seq in [1, 3, 4] {
        acknowledge(&mut sender, Time::from_us(130), seq);
    }
    // Packet 0 was sent on the first subflow and is lost.
    assert_eq!(events_of(&events, |events| events.lost), [1_000, 0]);
    let again = send_all(&mut sender, Time::from_us(130))[0].0;
    assert_eq!((again.seq, again.attempt), (0, 2));
    acknowledge_marked(&mut sender, Time::from_us(131), 0, true);
    assert_eq!(events_of(&events, |events| events.marked), [0, 0]);
    assert_eq!((sender.stats().marked, sender.stats().spurious), (Bytes::new(1_000), 1));
}

#[test]
fn each_laws_timer_is_its_own() {
    let (mut sender, events) = flow(&[1, 1, 1], Rate::MAX);
    for us in [10, 20, 30] {
        let now = Time::from_us(us);
        assert_eq!((sender.law_timer(), sender.next_timer()), (now, now));
        sender.on_timer(now);
    }
    let timer_expirations = [10, 20, 30].map(|us| vec![Time::from_us(us)]);
    assert_eq!(
        (events_of(&events, |events| events.timer_expirations.clone()), sender.law_timer()),
        (timer_expirations.to_vec(), Time::NEVER)
    );
}

/// Packets and acknowledgements of other subflows do not postpone the timeout of a subflow that has lost one.
#[test]
fn a_timeout_runs_from_the_last_ack_of_its_subflow() {
    let (mut sender, events) = flow(&[1, 1, 1], Rate::MAX);
    for law in 0..3 {
        sender.on_timer(Time::from_us(10 + 10 * law));
    }
    assert_eq!(send_all(&mut sender, Time::from_us(30)).len(), 3);
    let timeout = sender.next_timer();
    assert_eq!(timeout, Time::from_us(30) + RTT.times(2));
    for seq in [1, 2] {
        acknowledge(&mut sender, Time::from_us(130), seq);
    }
    assert_eq!(send_all(&mut sender, Time::from_us(130)).len(), 2);
    assert_eq!(sender.next_timer(), timeout);
    sender.on_timer(timeout);
    assert_eq!(events_of(&events, |events| (events.lost, events.losses)), [(1_000, 1), (0, 0), (0, 0)]);
    assert_eq!(sender.stats().timeouts, 1);
    // It is resent on its own subflow, since the others are full, and only that one waits twice as long.
    assert_eq!(send_all(&mut sender, timeout).iter().map(|(segment, _)| segment.seq).collect::<Vec<_>>(), [0]);
    assert_eq!(sender.next_timer(), Time::from_us(130) + RTT.times(2));
    sender.on_timer(Time::from_us(330));
    assert_eq!((sender.stats().timeouts, sender.next_timer()), (3, timeout + RTT.times(4)));
}
