//! A connection over its lifetime: an unbounded stream, lost tails, subflows that are opened and closed, a silent peer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use flow::{
    AckError, AckRanges, Acked, Channel, ChannelConfig, CwndValidationConfig, DataSending, DataSource, EcnCounts,
    LossTimer, MAX_OUTSTANDING, MovedLaw, OutgoingPacket, PacketContent, PacketNumbers, Range, ReturnReason, SendState,
    Validation,
};
use laws::{Ack, ControlLaw, LawActions, Loss, LossCause, Notification, SendLimits, on_ramp};
use units::{Bytes, Rate, Span, Time};

use crate::stream::{Stream, StreamRange};

const MSS: u32 = 1_000;
const RTT: Span = Span::from_us(400);

/// Event received by a law.
#[derive(Clone, PartialEq, Debug)]
enum LawEvent {
    Ack { acked: u64, marked: u64, rtt: Span },
    Loss { lost: u64, cause: LossCause },
    Idle { timeouts: u32 },
}

/// A window that never changes, and the events that it received.
#[derive(Clone)]
struct FixedWindow {
    window: Bytes,
    events: Rc<RefCell<Vec<LawEvent>>>,
}

impl ControlLaw for FixedWindow {
    fn on_ack(&mut self, ack: &Ack) {
        let (acked, marked) = (ack.acked.get(), ack.marked.get());
        self.events.borrow_mut().push(LawEvent::Ack { acked, marked, rtt: ack.rtt });
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.events.borrow_mut().push(LawEvent::Loss { lost: loss.lost.get(), cause: loss.cause });
    }

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Idle { timeouts, .. } = *notification {
            self.events.borrow_mut().push(LawEvent::Idle { timeouts });
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(self.window)
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// Creates a channel with a window of `window` packets, and `written` bytes written.
fn channel(window: u64, written: u64) -> (Channel<FixedWindow, Stream>, Rc<RefCell<Vec<LawEvent>>>) {
    let events = Rc::new(RefCell::new(Vec::new()));
    let law = FixedWindow { window: Bytes::new(window * u64::from(MSS)), events: Rc::clone(&events) };
    (Channel::new(ChannelConfig::new(RTT, MSS), law, Stream::of(written), Time::ZERO), events)
}

/// Sends all packets that may be sent now.
fn send<L: ControlLaw>(channel: &mut Channel<L, Stream>, now: Time) -> Vec<OutgoingPacket<StreamRange>> {
    std::iter::from_fn(|| channel.send(now)).collect()
}

fn acks(ranges: &[Range]) -> AckRanges<'_> {
    AckRanges { ranges, ecn: None, delay: Span::ZERO, received: &[] }
}

fn range(first: u64, last: u64) -> [Range; 1] {
    [Range { first, last }]
}

/// One acknowledgement is one call of the law, however many packets it covers; marks are packets of the mean size, and the
/// receiver's delay is no part of the round trip.
#[test]
fn one_ack_frame_is_one_law_event() {
    let (mut channel, events) = channel(10, 9_500);
    let left = send(&mut channel, Time::ZERO);
    assert_eq!(left.iter().map(|it| (it.number, it.parcel.bytes)).collect::<Vec<_>>()[8..], [(8, 1_000), (9, 500)]);
    let early = Time::from_us(400);
    channel.acked(early, 0, &acks(&range(0, 0))).unwrap();
    let now = Time::from_us(460);
    let counts = EcnCounts { ect0: 7, ect1: 0, ce: 3 };
    let ranges = range(1, 9);
    let answer = AckRanges { ecn: Some(counts), delay: Span::from_us(50), ..acks(&ranges) };
    let acked = channel.acked(now, 0, &answer).unwrap();
    // 8,500 bytes in 9 packets: 3 of them are 2,833 bytes.
    assert_eq!((acked.packets, acked.bytes.get(), acked.marked.get()), (9, 8_500, 2_833));
    let [first, second] = [(1_000, 0, 400), (8_500, 2_833, 410)].map(|(acked, marked, us)| LawEvent::Ack {
        acked,
        marked,
        rtt: Span::from_us(us),
    });
    assert_eq!(*events.borrow(), [first, second]);
    // A repetition acknowledges nothing new.
    assert_eq!(channel.acked(now, 0, &answer).unwrap(), Acked::default());
    assert!(events.borrow().len() == 2 && channel.work().is_done());
}

/// A stream ends when its writer ends it. Until then it sends available data, and is idle in between.
#[test]
fn an_unbounded_stream_resumes_after_idle_periods() {
    let (mut channel, events) = channel(4, 0);
    assert_eq!(channel.poll(Time::ZERO), SendState::Blocked);
    let (mut now, mut next, mut sizes) = (Time::ZERO, 0, Vec::new());
    for burst in [2_500, 1, 4_000, 700] {
        channel.work_mut().written += burst;
        let left = send(&mut channel, now);
        sizes.extend(left.iter().map(|it| it.parcel.bytes));
        next += left.len() as u64;
        now += RTT;
        channel.acked(now, 0, &acks(&range(0, next - 1))).unwrap();
        assert!(channel.work().is_done() && !channel.next_timer().is_set());
        now += Span::from_ms(2);
    }
    assert_eq!(sizes, [1_000, 1_000, 500, 1, 1_000, 1_000, 1_000, 1_000, 700]);
    // 2.4 ms since the last transmission; the timeout is 600 us, a half more than the round trip.
    let idle = events.borrow().iter().filter(|it| **it == LawEvent::Idle { timeouts: 3 }).count();
    assert_eq!(idle, 3);
}

/// The last packet is lost: a probe is sent, and its acknowledgement shows the loss. No timeout expires, and one packet is
/// sent although the window is full.
#[test]
fn a_probe_detects_a_lost_tail() {
    let (mut channel, events) = channel(3, 5_000);
    send(&mut channel, Time::ZERO);
    channel.acked(Time::from_us(400), 0, &acks(&range(0, 1))).unwrap();
    assert_eq!(send(&mut channel, Time::from_us(400)).len(), 2);
    channel.acked(Time::from_us(450), 0, &acks(&range(0, 2))).unwrap();
    // Packets 3 and 4 are lost. The timer runs from the last acknowledgement: 1.5 round trips of 400 us at least.
    let expirations = channel.next_timer();
    assert!(Time::from_us(1_050) <= expirations && expirations <= Time::from_us(1_100), "{expirations:?}");
    channel.on_timer(expirations);
    let probe = send(&mut channel, expirations);
    assert_eq!(probe.len(), 1);
    assert_eq!((probe[0].number, probe[0].parcel.is_retransmission), (5, true));
    assert_eq!(channel.stats().probes, 1);
    let acked_at = expirations + RTT;
    channel.acked(acked_at, 0, &acks(&range(5, 5))).unwrap();
    // The others were sent more than a tolerance before the probe, so both are lost; the probe's content is acknowledged.
    let lost = LawEvent::Loss { lost: 2_000, cause: LossCause::Reordered };
    assert_eq!(events.borrow().last(), Some(&lost));
    let again = send(&mut channel, acked_at);
    assert_eq!(again.len(), 1);
    channel.acked(acked_at + RTT, 0, &acks(&range(6, 6))).unwrap();
    assert!(channel.work().is_done());
    assert_eq!((channel.stats().timeouts, channel.stats().lost), (0, 2));
}

/// A dead path is probed twice: after two probes a timeout declares everything lost, ever more slowly, and a packet is
/// sent each time. The law is notified when an acknowledgement arrives and shows that none of it has arrived.
#[test]
fn a_dead_path_is_probed_twice() {
    let (mut channel, events) = channel(8, 1 << 20);
    let mut expirations = Vec::new();
    send(&mut channel, Time::ZERO);
    for _ in 0..6 {
        let now = channel.next_timer();
        channel.on_timer(now);
        expirations.push((now.since(Time::ZERO), channel.stats().probes, channel.stats().timeouts));
        assert_eq!(send(&mut channel, now).len(), 1);
    }
    let counts: Vec<_> = expirations.iter().map(|&(_, probes, timeouts)| (probes, timeouts)).collect();
    assert_eq!(counts, [(1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4)]);
    let waits: Vec<_> = expirations.windows(2).map(|pair| (pair[1].0 - pair[0].0).ps()).collect();
    assert!(waits.windows(2).all(|pair| pair[1] >= pair[0]), "{waits:?}");
    let causes = |cause| {
        events.borrow().iter().filter(|it| matches!(it, LawEvent::Loss { cause: it, .. } if *it == cause)).count()
    };
    assert_eq!((causes(LossCause::Timeout), causes(LossCause::Reordered)), (0, 0));
    // Eight packets, two probes, and one for each timeout; the last of those is answered.
    let now = Time::ZERO + expirations[5].0 + RTT;
    channel.acked(now, 0, &acks(&range(13, 13))).unwrap();
    assert_eq!(events.borrow().last(), Some(&LawEvent::Loss { lost: 13_000, cause: LossCause::Timeout }));
    assert_eq!((causes(LossCause::Timeout), causes(LossCause::Reordered)), (1, 0));
    assert_eq!(send(&mut channel, now).len(), 8);
}

/// A peer is silent for longer than three timeouts, and has received everything: no loss is reported to the sender's law.
/// Acknowledgements of packets sent before do not end the silence. If packets are missing, they are lost as if overtaken.
/// Until the state of all packets is known, those that may be in flight count against the window.
#[test]
fn a_late_peer_has_lost_nothing() {
    for is_incomplete in [false, true] {
        let (mut channel, events) = channel(8, 1_000);
        send(&mut channel, Time::ZERO);
        channel.work_mut().written = 1 << 20;
        let second = Time::ZERO + RTT.over(2);
        send(&mut channel, second);
        channel.acked(second + RTT, 0, &acks(&range(1, 7))).unwrap();
        assert_eq!(channel.stats().lost, 1);
        send(&mut channel, second + RTT);
        let lost = |events: &[LawEvent]| events.iter().filter(|it| matches!(it, LawEvent::Loss { .. })).count();
        let before = lost(&events.borrow());
        let mut now = Time::ZERO;
        for _ in 0..3 {
            now = channel.next_timer();
            channel.on_timer(now);
            assert_eq!(send(&mut channel, now).len(), 1);
        }
        assert_eq!(channel.stats().timeouts, 1);
        let end = channel.stats().packets_sent;
        now += Span::from_us(10);
        assert_eq!(channel.acked(now, 0, &acks(&range(0, 7))).unwrap().packets, 1);
        assert!(send(&mut channel, now).is_empty());
        // The peer has the first two of ten packets that timers declared lost, and one later packet is in flight.
        channel.acked(now, 0, &acks(&range(0, 9))).unwrap();
        assert_eq!((channel.pto_count(0), channel.state(0).1), (0, Bytes::new(1_000)));
        assert!(send(&mut channel, now).is_empty());
        channel.acked(now, 0, &acks(&[range(11, 13), range(0, 9)].concat())).unwrap();
        assert_eq!(send(&mut channel, now).len(), 2);
        let ranges = [range(15, end - 1), range(11, 13), range(0, 9)].concat();
        let ranges = if is_incomplete { &ranges[..] } else { &range(0, end - 1) };
        channel.acked(now, 0, &acks(ranges)).unwrap();
        let events = events.borrow();
        assert_eq!(lost(&events) - before, usize::from(is_incomplete), "{events:?}");
        if is_incomplete {
            assert_eq!(events.last(), Some(&LawEvent::Loss { lost: 2_000, cause: LossCause::Reordered }), "{events:?}");
        }
    }
}

/// Two silences, with an acknowledgement of the first between them: the first is reported to the law as losses, and the
/// second, with no arrivals, as a timeout.
#[test]
fn an_ack_between_timeouts_separates_their_ranges() {
    let (mut channel, events) = channel(8, 1 << 20);
    send(&mut channel, Time::ZERO);
    let mut now = Time::ZERO;
    let mut expire_timers = |channel: &mut Channel<FixedWindow, Stream>| {
        for _ in 0..3 {
            now = channel.next_timer();
            channel.on_timer(now);
            assert_eq!(send(channel, now).len(), 1);
        }
        now
    };
    let now = expire_timers(&mut channel);
    channel.acked(now, 0, &acks(&range(0, 3))).unwrap();
    assert_eq!(channel.first_timeout_at(0), None);
    assert!(!send(&mut channel, now).is_empty());
    let now = expire_timers(&mut channel);
    let losses =
        || events.borrow().iter().filter(|it| matches!(it, LawEvent::Loss { .. })).cloned().collect::<Vec<_>>();
    let [LawEvent::Loss { cause: LossCause::Reordered, .. }] = losses()[..] else { panic!("{:?}", losses()) };
    let last = channel.stats().packets_sent - 1;
    channel.acked(now + RTT, 0, &acks(&range(last, last))).unwrap();
    let [_, LawEvent::Loss { cause: LossCause::Timeout, .. }] = losses()[..] else { panic!("{:?}", losses()) };
}

/// A packet that was overtaken by less than the tolerance is lost by time, though no acknowledgement follows.
#[test]
fn time_alone_proves_a_loss() {
    let (mut channel, events) = channel(10, 3_000);
    send(&mut channel, Time::ZERO);
    channel.work_mut().written += 1_000;
    let late = Time::from_us(30);
    send(&mut channel, late);
    // The first three are lost; the fourth was sent 30 us later, less than the tolerance of 100 us.
    channel.acked(Time::from_us(430), 0, &acks(&range(3, 3))).unwrap();
    let timer_at = channel.next_timer();
    assert_eq!(timer_at, Time::ZERO + channel.smoothed_rtt(0) + RTT.over(4));
    channel.on_timer(timer_at);
    let lost = LawEvent::Loss { lost: 3_000, cause: LossCause::Reordered };
    assert_eq!(events.borrow().last(), Some(&lost));
    assert_eq!((send(&mut channel, timer_at).len(), channel.stats().probes), (3, 0));
}

/// A packet that was declared lost and arrives after all is counted, and more reordering is tolerated from then on.
#[test]
fn late_packets_are_counted_as_spurious() {
    let (mut channel, _) = channel(4, 6_000);
    send(&mut channel, Time::ZERO);
    channel.acked(Time::from_us(400), 0, &acks(&range(1, 1))).unwrap();
    send(&mut channel, Time::from_us(400));
    channel.acked(Time::from_us(800), 0, &acks(&[Range::of(4), Range::of(1)])).unwrap();
    assert_eq!((channel.stats().lost, channel.stats().spurious), (3, 0));
    channel.acked(Time::from_us(810), 0, &acks(&range(0, 2))).unwrap();
    assert_eq!((channel.stats().lost, channel.stats().spurious), (3, 2));
    let again = send(&mut channel, Time::from_us(810));
    assert_eq!(again[0].parcel.content, StreamRange { from: 3_000, len: 1_000 });
}

/// A subflow that is closed returns its content in flight, and another one carries it.
#[test]
fn a_closed_subflow_returns_its_content_to_another() {
    let (mut channel, events) = channel(4, 8_000);
    let law = channel.law(0).clone();
    assert_eq!(channel.add_subflow(Some(law), Time::ZERO), Some(1));
    let unknown = channel.acked(Time::ZERO, 2, &acks(&range(0, 0)));
    assert_eq!(unknown, Err(AckError::NoSubflow { subflow: 2, subflows: 2 }));
    let left = send(&mut channel, Time::ZERO);
    assert_eq!(
        left.iter().map(|it| (it.subflow, it.number)).collect::<Vec<_>>()[..4],
        [(0, 0), (1, 0), (0, 1), (1, 1)]
    );
    channel.close_subflow(0);
    assert_eq!((channel.in_flight(), channel.subflows()), (Bytes::new(4_000), 2));
    channel.set_mss(1, 600);
    channel.acked(Time::from_us(400), 1, &acks(&range(0, 3))).unwrap();
    let again = send(&mut channel, Time::from_us(400));
    assert!(again.iter().all(|it| it.subflow == 1 && it.parcel.is_retransmission && it.parcel.bytes <= 600));
    assert_eq!(again.iter().map(|it| it.parcel.bytes).sum::<u32>(), 4_000);
    // An acknowledgement for the old path may still arrive.
    channel.acked(Time::from_us(401), 0, &acks(&range(0, 3))).unwrap();
    assert_eq!(events.borrow().len(), 1);
    channel.acked(Time::from_us(800), 1, &acks(&range(4, 3 + again.len() as u64))).unwrap();
    assert!(channel.work().is_done() && channel.in_flight().is_zero());
}

/// A subflow is reset: on the same path its numbers continue, and an old one is still known; on another path they begin at 0.
#[test]
fn a_reset_subflow_starts_over() {
    for numbers in [PacketNumbers::Continue, PacketNumbers::Restart] {
        let other_path = numbers == PacketNumbers::Restart;
        let (mut channel, _) = channel(4, 8_000);
        let law = channel.law(0).clone();
        let left = send(&mut channel, Time::ZERO);
        assert_eq!(left.len(), 4);
        channel.reset_subflow(0, Some(law), numbers, Time::from_us(100));
        assert!(channel.in_flight().is_zero());
        let again = send(&mut channel, Time::from_us(100));
        let first = if other_path { 0 } else { 4 };
        assert!(again.len() == 4 && again.iter().all(|it| it.parcel.is_retransmission) && again[0].number == first);
        let old = channel.acked(Time::from_us(200), 0, &acks(&range(0, 3))).unwrap();
        assert_eq!(old.packets, if other_path { 4 } else { 0 });
        let unsent = channel.acked(Time::from_us(200), 0, &acks(&range(0, first + 4)));
        assert_eq!(unsent, Err(AckError::NeverSent { number: first + 4, next: first + 4 }));
    }
}

/// Losses declared before a subflow was reset are settled: a late acknowledgement of such a packet does not apply to
/// the new path.
#[test]
fn a_late_ack_does_not_apply_to_another_path() {
    let (mut channel, events) = channel(4, 8_000);
    send(&mut channel, Time::ZERO);
    channel.acked(Time::from_us(400), 0, &acks(&range(3, 3))).unwrap();
    send(&mut channel, Time::from_us(600));
    channel.acked(Time::from_us(1_000), 0, &acks(&range(4, 4))).unwrap();
    assert_eq!(channel.stats().lost, 3);
    let law = channel.law(0).clone();
    channel.reset_subflow(0, Some(law), PacketNumbers::Continue, Time::from_us(1_000));
    let before = events.borrow().len();
    let late = channel.acked(Time::from_us(9_000), 0, &acks(&range(0, 2))).unwrap();
    assert_eq!((late, events.borrow().len()), (Acked::default(), before));
}

/// A law of several subflows knows the shortest full packet of the open ones.
#[test]
fn one_law_gets_the_smallest_mss() {
    #[derive(Default)]
    struct RemainingLog(Rc<RefCell<Vec<u64>>>);
    impl ControlLaw for RemainingLog {
        fn on_ack(&mut self, _: &Ack) {}
        fn on_loss(&mut self, _: &Loss) {}
        fn on_notification(&mut self, notification: &Notification) {
            if let Notification::Mss(mss) = notification {
                self.0.borrow_mut().push(mss.get());
            }
        }
        fn send_limits(&self) -> SendLimits {
            SendLimits::window(Bytes::new(4_000))
        }
        fn actions(&self) -> LawActions {
            LawActions::default()
        }
    }
    let reported = Rc::new(RefCell::new(Vec::new()));
    let mut channel =
        Channel::new(ChannelConfig::new(RTT, MSS), RemainingLog(Rc::clone(&reported)), Stream::of(10_000), Time::ZERO);
    channel.set_mss(0, 1_400);
    channel.add_subflow(None, Time::ZERO);
    channel.set_mss(1, 1_200);
    channel.set_data_sending(1, DataSending::Forbidden);
    channel.set_data_sending(1, DataSending::Allowed);
    channel.close_subflow(1);
    assert_eq!(*reported.borrow(), [1_400, 1_000, 1_200, 1_400, 1_200, 1_400]);
}

/// A window of four packets, with the reported bytes delivered: now, and when the newest packet was sent.
#[derive(Clone)]
struct Counting(Rc<RefCell<Vec<(u64, u64)>>>);

impl ControlLaw for Counting {
    fn on_ack(&mut self, ack: &Ack) {
        self.0.borrow_mut().push((ack.delivered.get(), ack.delivered_at_send.get()));
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::new(4 * u64::from(MSS)))
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// A law that moves to another subflow continues to count: one that waits for the delivery of a packet sent now waits a round
/// trip.
#[test]
fn a_moved_law_keeps_its_delivered_count() {
    let events = Rc::new(RefCell::new(Vec::new()));
    let law = Counting(Rc::clone(&events));
    let mut channel = Channel::new(ChannelConfig::new(RTT, MSS), law.clone(), Stream::of(100_000), Time::ZERO);
    send(&mut channel, Time::ZERO);
    channel.acked(Time::from_us(400), 0, &acks(&range(0, 3))).unwrap();
    assert_eq!(channel.add_subflow(Some(law), Time::from_us(400)), Some(1));
    let moved = MovedLaw { law: channel.law(0).clone(), delivered: channel.delivered(0) };
    channel.close_subflow(0);
    channel.adopt(1, moved, Time::from_us(400));
    channel.set_data_sending(1, DataSending::Allowed);
    assert!(send(&mut channel, Time::from_us(400)).iter().all(|it| it.subflow == 1));
    channel.acked(Time::from_us(800), 1, &acks(&range(0, 3))).unwrap();
    assert_eq!(*events.borrow(), [(4_000, 0), (8_000, 4_000)]);
}

/// Two subflows under one law: its window is for both, it receives the events of both as of one path, and it outlives the
/// first.
#[test]
fn one_law_controls_two_subflows() {
    let events = Rc::new(RefCell::new(Vec::new()));
    let mut channel =
        Channel::new(ChannelConfig::new(RTT, MSS), Counting(Rc::clone(&events)), Stream::of(100_000), Time::ZERO);
    assert_eq!(channel.add_subflow(None, Time::ZERO), Some(1));
    let left = send(&mut channel, Time::ZERO);
    let places: Vec<_> = left.iter().map(|it| (it.subflow, it.number)).collect();
    assert_eq!((&*places, channel.send_limits().window), (&[(0, 0), (1, 0), (0, 1), (1, 1)][..], Bytes::new(4_000)));
    channel.acked(Time::from_us(400), 0, &acks(&range(0, 1))).unwrap();
    assert_eq!(send(&mut channel, Time::from_us(400)).len(), 2);
    channel.acked(Time::from_us(500), 1, &acks(&range(0, 1))).unwrap();
    // Packets sent at 400 us were sent when 2,000 bytes were delivered, on either path.
    channel.acked(Time::from_us(800), 0, &acks(&range(2, 2))).unwrap();
    assert_eq!(*events.borrow(), [(2_000, 0), (4_000, 0), (5_000, 2_000)]);
    channel.close_subflow(0);
    let left = send(&mut channel, Time::from_us(800));
    assert!(left.iter().all(|it| it.subflow == 1) && channel.in_flight() == Bytes::new(4_000), "{left:?}");
    // Another path replaces the first one, and the law continues.
    channel.reset_subflow(0, None, PacketNumbers::Restart, Time::from_us(900));
    channel.acked(Time::from_us(1_200), 1, &acks(&range(2, 2))).unwrap();
    assert_eq!(send(&mut channel, Time::from_us(1_200))[0].number, 0);
    assert_eq!(events.borrow().last(), Some(&(6_000, 2_000)));
}

/// Each path has a timer of its own: acknowledgements on one path do not postpone the timeout of another.
#[test]
fn under_one_law_each_path_has_its_own_timer() {
    let (mut channel, events) = channel(4, 100_000);
    channel.add_subflow(None, Time::ZERO);
    let (mut now, mut next) = (Time::ZERO, 0);
    while channel.pto_count(0) == 0 {
        assert!(now < Time::from_ms(10), "the timer of the first path does not expire");
        next += send(&mut channel, now).iter().filter(|it| it.subflow == 1).count() as u64;
        now += RTT;
        if next > 0 {
            channel.acked(now, 1, &acks(&range(0, next - 1))).unwrap();
        }
        if channel.next_timer() <= now {
            channel.on_timer(now);
        }
    }
    assert_eq!(channel.pto_count(1), 0);
    assert!(!events.borrow().is_empty());
}

/// On-Ramp on a path: a delay that exceeds the minimum by more than the threshold holds the next packets for the excess.
#[test]
fn a_hold_lasts_for_the_excess_delay() {
    let params =
        on_ramp::OnRampParams { threshold: Span::from_us(50), gain: on_ramp::OnRampParams::GAIN, strawman: false };
    let config = ChannelConfig { on_ramp: Some(params), ..ChannelConfig::new(RTT, MSS) };
    let law = FixedWindow { window: Bytes::new(4_000), events: Rc::default() };
    let mut channel = Channel::new(config, law, Stream::of(100_000), Time::ZERO);
    channel.add_subflow(None, Time::ZERO);
    let us = Time::from_us;
    // Packets of both paths are sent at once. The receiver's clock is 7 s ahead.
    let mut receive = |now: u64, subflow, number, received_us: u64| {
        send(&mut channel, us(now));
        let (ranges, received) = (range(0, number), [(number, us(7_000_000 + received_us))]);
        channel.acked(us(now + 400), subflow, &AckRanges { received: &received, ..acks(&ranges) }).unwrap();
        (channel.poll(us(now + 400)), channel.held(0).ns(), channel.held(1).ns())
    };
    assert_eq!(receive(0, 0, 0, 200), (SendState::Now, 0, 0));
    assert_eq!(receive(400, 0, 1, 250), (SendState::Now, 0, 0));
    // The packet sent at 400 us arrived 330 us later, 80 us more than the first: 30 above the threshold. The other path is
    // not held.
    assert_eq!(receive(800, 0, 2, 400 + 280), (SendState::Now, 30_000, 0));
    channel.close_subflow(1);
    assert_eq!(channel.poll(us(1_200)), SendState::At(us(1_230)));
    assert_eq!(channel.poll(us(1_230)), SendState::Now);
}

/// The maximum number of subflows is the number of values of a byte minus one.
#[test]
fn subflows_are_limited_to_255() {
    let (mut channel, _) = channel(4, 0);
    let law = channel.law(0).clone();
    let added = (0..300).filter_map(|_| channel.add_subflow(Some(law.clone()), Time::ZERO)).last();
    assert_eq!((added, channel.subflows()), (Some(254), 255));
}

/// Time stamps are differences of two clocks; those of unknown packets are ignored.
#[test]
fn one_way_delays_are_of_known_packets() {
    let (mut channel, _) = channel(4, 4_000);
    send(&mut channel, Time::from_us(7));
    let ranges = range(0, 1);
    let received = [(0, Time::from_us(107)), (1, Time::from_us(2)), (3, Time::from_us(900)), (99, Time::ZERO)];
    let answer = AckRanges { received: &received, ..acks(&ranges) };
    assert_eq!(channel.acked(Time::from_us(400), 0, &answer).unwrap().one_way, Some(Span::from_us(-5)));
    // Both packets are forgotten now.
    assert_eq!(channel.acked(Time::from_us(400), 0, &answer).unwrap().one_way, None);
}

/// A law that permits everything, and a silent peer: the number of records is bounded nevertheless.
#[test]
fn a_silent_peer_costs_bounded_memory() {
    let (mut channel, _) = channel(1 << 40, 1 << 33);
    channel.set_mss(0, 64);
    let (mut sent, mut now) = (0, Time::ZERO);
    while channel.send(now).is_some() {
        sent += 1;
        now += Span::from_ps(1);
    }
    assert_eq!((sent, channel.remembered()), (MAX_OUTSTANDING, MAX_OUTSTANDING));
    channel.acked(Time::from_us(400), 0, &acks(&range(0, 9))).unwrap();
    assert_eq!((channel.poll(Time::from_us(400)), channel.remembered()), (SendState::Now, MAX_OUTSTANDING - 10));
    // Acknowledgements take numbers, too, and no more of them.
    let uncounted = std::iter::from_fn(|| channel.number_apart(0, Time::from_us(400))).count();
    assert_eq!((uncounted, channel.remembered()), (10, MAX_OUTSTANDING));
}

/// A window of 10 packets that becomes 40 with the first acknowledgement, is halved by a loss, and shrinks on notifications.
struct Grown {
    window: u64,
}

impl ControlLaw for Grown {
    fn on_ack(&mut self, ack: &Ack) {
        self.window = if self.window == 10 { 40 } else { self.window };
        assert!(self.window < 40 || ack.app_limited, "only 12 are used");
    }

    fn on_loss(&mut self, _: &Loss) {
        self.window /= 2;
    }

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Unused { window, .. } = notification {
            self.window = self.window.min(window.get() / u64::from(MSS));
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::new(self.window * u64::from(MSS)))
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// A window of 40 packets with 12 in use, every 100 ms. By RFC 7661 a loss cuts the used amount, and five minutes without use
/// halve the window. As in Linux, it falls half of the way to the used amount after each timeout in which it was never full.
#[test]
fn an_unused_window_is_reduced() {
    let windows = |validation, minutes: u64, loses: bool| {
        let mut config = ChannelConfig::new(RTT, MSS);
        config.usage = CwndValidationConfig { restart: false, validation };
        let mut channel = Channel::new(config, Grown { window: 10 }, Stream::of(0), Time::ZERO);
        let (mut now, mut next, mut windows) = (Time::ZERO, 0, Vec::new());
        for round in 0..minutes * 600 {
            let count = if round == 0 { 9 } else { 12 };
            channel.work_mut().written += count * u64::from(MSS);
            next += count;
            assert_eq!(send(&mut channel, now).len() as u64, count);
            let is_lost = loses && round == 20;
            let ranges = range(next - count + u64::from(is_lost), next - 1);
            channel.acked(now + RTT, 0, &acks(&ranges)).unwrap();
            if is_lost {
                // A probe repeats the lost packet, and its acknowledgement shows the loss. One more packet ends the recovery.
                now = channel.next_timer();
                channel.on_timer(now);
                for _ in 0..2 {
                    assert_eq!(send(&mut channel, now).len(), 1);
                    now += RTT;
                    channel.acked(now, 0, &acks(&range(next, next))).unwrap();
                    channel.work_mut().written += u64::from(MSS);
                    next += 1;
                }
            }
            let window = channel.send_limits().window.get() / u64::from(MSS);
            if windows.last() != Some(&window) {
                windows.push(window);
            }
            if is_lost {
                break;
            }
            now += Span::from_ms(100);
        }
        windows
    };
    assert_eq!(windows(Validation::Off, 11, false), [40]);
    assert_eq!(windows(Validation::Off, 1, true), [40, 20]);
    // At 5 minutes 40 becomes 20; half of 20 is in use then.
    assert_eq!(windows(Validation::Rfc7661, 11, false), [40, 20]);
    // 12 were in use: half of that. Nothing was sent again after the loss was known.
    assert_eq!(windows(Validation::Rfc7661, 1, true), [40, 6]);
    // (40 + 12) / 2, (26 + 12) / 2, ... as long as it is over 12.
    assert_eq!(windows(Validation::Linux, 1, false), [40, 26, 19, 15, 13, 12]);
}

/// An endpoint that only acknowledges keeps no records, and may skip a number that the peer never has to acknowledge.
#[test]
fn acks_alone_keep_no_records() {
    let (mut channel, _) = channel(4, 0);
    for number in 0..100_000 {
        assert_eq!(channel.number_apart(0, Time::from_us(number)), Some(number));
    }
    assert_eq!(channel.skip_number(0, Time::from_ms(200)), Some(100_000));
    assert_eq!((channel.remembered(), channel.next_timer()), (0, Time::NEVER));
    channel.acked(Time::from_ms(200), 0, &acks(&range(0, 99_999))).unwrap();
    let false_ack = channel.acked(Time::from_ms(200), 0, &acks(&range(5, 100_000)));
    assert_eq!(false_ack, Err(AckError::Skipped { number: 100_000 }));
    channel.work_mut().written += 1;
    assert_eq!(channel.send(Time::from_ms(200)).map(|it| it.number), Some(100_001));
}

/// Events of a law when data runs out: the packets that measure bandwidth, and the times at which new data finds nothing in
/// flight.
#[derive(Default)]
struct Lacking {
    pacing: Option<Rate>,
    /// The window was not used, per acknowledgement.
    unused: Vec<bool>,
    /// Data were lacking, per acknowledgement.
    no_data: Vec<bool>,
    resumed: Vec<Time>,
}

impl ControlLaw for Lacking {
    fn on_ack(&mut self, ack: &Ack) {
        self.unused.push(ack.app_limited);
        self.no_data.push(ack.sample_limited);
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Resumed { now } = *notification {
            self.resumed.push(now);
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits { window: Bytes::new(10 * u64::from(MSS)), pacing: self.pacing.unwrap_or(Rate::MAX) }
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// Messages of 4 packets under a window of 10, each when the one before is delivered: the first packets of the first one alone
/// measure bandwidth, and each later one resumes. A message of 25 packets fills the window: then packets measure again, and nothing
/// resumes, though nothing is in flight between its parts.
#[test]
fn a_sender_without_data_measures_no_bandwidth() {
    let config = ChannelConfig {
        usage: CwndValidationConfig { restart: false, validation: Validation::Off },
        ..ChannelConfig::new(RTT, MSS)
    };
    let mut channel = Channel::new(config, Lacking::default(), Stream::of(0), Time::ZERO);
    let (mut now, mut next) = (Time::ZERO, 0);
    for packets in [4, 4, 4, 25] {
        channel.work_mut().written += packets * u64::from(MSS);
        let end = next + packets;
        while next < end {
            let burst = send(&mut channel, now).len() as u64;
            now += RTT;
            for number in next..next + burst {
                channel.acked(now, 0, &acks(&range(number, number))).unwrap();
            }
            next += burst;
        }
    }
    let Lacking { unused, no_data, resumed, .. } = channel.law(0);
    assert_eq!(no_data[..12], [[false, false, false, true], [true; 4], [true; 4]].concat());
    // The first packet of the last message is sent before the lack of data of the third one is known to be over.
    assert_eq!(no_data[12..22], [true; 10]);
    assert_eq!(no_data[22..36], [false; 14]);
    assert_eq!(no_data[36..], [true]);
    // The window was not full before the last message. The first ten packets of that one fill it.
    assert_eq!(unused[..12], [true; 12]);
    assert_eq!(unused[12..32], [false; 20]);
    assert_eq!(unused[32..], [true; 5]);
    assert_eq!(*resumed, [1, 2, 3].map(|round| Time::ZERO + RTT.times(round)));
}

/// Data that is held back measures bandwidth, though the window is not used; but not while it is known that data lacked
/// before it.
#[test]
fn host_limited_data_measures_bandwidth_unless_app_limited_before() {
    let config = ChannelConfig {
        usage: CwndValidationConfig { restart: false, validation: Validation::Off },
        ..ChannelConfig::new(RTT, MSS)
    };
    let mut channel = Channel::new(config, Lacking::default(), Stream::of(4 * u64::from(MSS)), Time::ZERO);
    assert_eq!(send(&mut channel, Time::ZERO).len(), 4);
    channel.work_mut().holds_back = true;
    let (mut now, mut next) = (Time::ZERO, 0);
    for before in [4, 0] {
        channel.work_mut().written += 3 * u64::from(MSS);
        let burst = before + send(&mut channel, now).len() as u64;
        assert_eq!(burst, before + 3);
        now += RTT;
        for number in next..next + burst {
            channel.acked(now, 0, &acks(&range(number, number))).unwrap();
        }
        next += burst;
    }
    let Lacking { unused, no_data, .. } = channel.law(0);
    assert_eq!(no_data[..], [[false, false, false, true], [true, true, true, false], [false; 4]].concat()[..10]);
    assert_eq!(unused[..], [true; 10]);
}

/// A host that sends three packets per round trip, although ten are permitted and more data is available: its window is not
/// used, and its packets measure the path. Once it sends all permitted packets, the window is used.
#[test]
fn a_slow_host_does_not_fill_its_window() {
    let config = ChannelConfig {
        usage: CwndValidationConfig { restart: false, validation: Validation::Off },
        ..ChannelConfig::new(RTT, MSS)
    };
    let mut channel = Channel::new(config, Lacking::default(), Stream::of(1_000_000), Time::ZERO);
    let (mut now, mut next) = (Time::ZERO, 0);
    for most in [3, 3, 10, 10] {
        let left = std::iter::from_fn(|| channel.send(now)).take(most).count() as u64;
        assert_eq!(left, most as u64);
        now += RTT;
        channel.acked(now, 0, &acks(&range(next, next + left - 1))).unwrap();
        next += left;
    }
    let Lacking { unused, no_data, .. } = channel.law(0);
    assert_eq!((&unused[..], &no_data[..]), (&[true, true, false, false][..], &[false; 4][..]));
}

/// With pacing, packets wait that would not have filled the window without it, either: the window is not used. Thirty packets
/// wait at a pace of nine per round trip: those acknowledged before the last one is sent show a used window.
#[test]
fn pacing_alone_does_not_fill_the_window() {
    let config = ChannelConfig {
        usage: CwndValidationConfig { restart: false, validation: Validation::Off },
        ..ChannelConfig::new(RTT, MSS)
    };
    // Nine packets in a round trip; the window has ten.
    let law = Lacking { pacing: Some(Rate::from_mbps(180)), ..Lacking::default() };
    let mut channel = Channel::new(config, law, Stream::of(0), Time::ZERO);
    let (mut now, mut next) = (Time::ZERO, 0);
    for packets in [3, 3, 30] {
        channel.work_mut().written += packets * u64::from(MSS);
        let mut left: VecDeque<Time> = VecDeque::new();
        let end = next + packets;
        while next < end {
            left.extend(channel.send(now).map(|_| now));
            now += Span::from_us(1);
            if left.front().is_some_and(|&at| at + RTT <= now) {
                left.pop_front();
                channel.acked(now, 0, &acks(&range(next, next))).unwrap();
                next += 1;
            }
        }
    }
    let Lacking { unused, no_data, .. } = channel.law(0);
    assert_eq!(unused[..6], [true; 6]);
    assert_eq!(no_data[..2], [false; 2]);
    // Packets sent before the first acknowledgement are sent while a lack of data is in effect. They measure no bandwidth,
    // although pacing holds them back.
    assert_eq!((&unused[6..16], &no_data[6..16]), (&[false; 10][..], &[true; 10][..]));
    assert_eq!((&unused[16..27], &no_data[16..27]), (&[false; 11][..], &[false; 11][..]));
    assert_eq!((&unused[27..], &no_data[27..35]), (&[true; 9][..], &[false; 8][..]));
}

/// Packets that need no repair, and probes.
#[derive(Default)]
struct NoRepair {
    packets: u32,
    probes: u32,
}

impl DataSource for NoRepair {
    type Content = ();

    fn next_bytes(&mut self, _: u32) -> Option<u32> {
        (self.packets + self.probes > 0).then_some(1)
    }

    fn take(&mut self, _: u8, _: u32) -> PacketContent<()> {
        if self.packets > 0 {
            self.packets -= 1;
        } else {
            self.probes -= 1;
        }
        PacketContent { bytes: 1, content: (), is_retransmission: false }
    }

    fn acked(&mut self, (): ()) {}

    fn lost(&mut self, (): (), _: ReturnReason) {}

    fn probe(&mut self) {
        self.probes += 1;
    }
}

/// The last packet is lost and needs no retransmission: when its timer expires, an ack-eliciting packet is sent, and its
/// acknowledgement shows the loss.
#[test]
fn a_timer_without_data_sends_a_ping() {
    let law = FixedWindow { window: Bytes::new(4_000), events: Rc::default() };
    let work = NoRepair { packets: 1, probes: 0 };
    let mut channel = Channel::new(ChannelConfig::new(RTT, MSS), law, work, Time::ZERO);
    assert_eq!(channel.send(Time::ZERO).map(|left| left.number), Some(0));
    assert!(channel.send(Time::ZERO).is_none());
    let now = channel.next_timer();
    channel.on_timer(now);
    assert_eq!(channel.send(now).map(|left| left.number), Some(1));
    channel.acked(now + RTT, 0, &acks(&range(1, 1))).unwrap();
    assert_eq!((channel.stats().lost, channel.stats().timeouts, channel.next_timer()), (1, 0, Time::NEVER));
}

/// Without probes: a timer for each packet, or one for the flow.
#[test]
fn flow_and_packet_timers_send_no_probes() {
    for loss_timer in [LossTimer::Flow, LossTimer::Packet] {
        let law = channel(4, 0).0.law(0).clone();
        let mut config = ChannelConfig::new(RTT, MSS);
        config.timing.loss_timer = loss_timer;
        let mut channel = Channel::new(config, law, Stream::of(2_000), Time::ZERO);
        send(&mut channel, Time::ZERO);
        let now = channel.next_timer();
        channel.on_timer(now);
        assert_eq!((channel.stats().probes, channel.stats().timeouts, channel.stats().lost), (0, 1, 2));
    }
}
