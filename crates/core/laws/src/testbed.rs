//! For tests only: hand-made signals, and one bottleneck shared by a few endless flows.
//!
//! The bottleneck is a FIFO at a fixed rate next to the senders. A packet enters it when it is sent, and its acknowledgement
//! arrives one base round trip after its service ends. So every queueing delay, mark and loss is exact, and theory about a
//! single bottleneck can be checked against it.

extern crate std;

use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;
use units::{Bytes, Frac, Rate, Span, Time, below, mix64};

use crate::{Ack, ControlLaw, Cookie, Loss, LossCause, Notification, PathInfo, SendLimits, Sent};

/// 100 Gb/s, 14 us inside, a flow inside.
pub(crate) const PATH: PathInfo = PathInfo {
    base_rtt: Span::from_us(14),
    intra_rtt: Span::from_us(14),
    line_rate: Rate::from_gbps(100),
    mss: Bytes::new(4_096),
};

/// The same with 2 ms between datacenters.
pub(crate) const LONG_PATH: PathInfo = PathInfo { base_rtt: Span::from_ms(2), ..PATH };

/// Returns the acknowledgement of a packet one base round trip after it was sent, at `now_us`, without a mark.
pub(crate) fn ack(path: &PathInfo, now_us: u64) -> Ack<'static> {
    let now = Time::from_us(1_000_000 + now_us);
    Ack {
        now,
        sent_at: now - path.base_rtt,
        rtt: path.base_rtt,
        acked: path.mss,
        marked: Bytes::ZERO,
        in_flight: path.mss.times(4),
        delivered: Bytes::new(now_us * 4_096),
        bytes_remaining: Bytes::MAX,
        delivered_at_send: Bytes::new(now_us * 4_096).saturating_sub(path.bdp()),
        delivered_time_at_send: now - path.base_rtt,
        send_elapsed: path.base_rtt,
        app_limited: false,
        sample_limited: false,
        cookie: Cookie::NONE,
        hops: &[],
    }
}

/// The same, marked.
pub(crate) fn marked(path: &PathInfo, now_us: u64) -> Ack<'static> {
    Ack { marked: path.mss, ..ack(path, now_us) }
}

/// Returns the cuts of a law with a flow that receives feedback of `acked` bytes, pauses for a millisecond with nothing in
/// flight, and sends a packet. All of it is marked.
pub(crate) fn cuts_across_a_pause(mut law: impl ControlLaw, acked: Bytes) -> u64 {
    law.on_ack(&Ack { acked, marked: acked, ..marked(&PATH, 0) });
    law.on_notification(&Notification::Resumed { now: Time::from_us(1_001_000) });
    law.on_ack(&marked(&PATH, 1_014));
    law.actions().cuts
}

/// A packet lost.
pub(crate) fn loss(sent_us: u64, now_us: u64, cause: LossCause) -> Loss {
    Loss {
        now: Time::from_us(1_000_000 + now_us),
        sent_at: Time::from_us(1_000_000 + sent_us),
        lost: Bytes::new(4_096),
        in_flight: Bytes::ZERO,
        cause,
    }
}

/// Replays the recorded events of one law to another, and compares the limits of the two after each event.
///
/// A line is an event, a bar, and the window and the pace that were permitted then (`-`: no pace). The first one is the
/// path; an acknowledgement is `ack`, a loss its cause, each with its fields in the order of the type, except for the
/// remaining bytes: they come last, if reported. Times are in ps, data is in bytes, rates are in bits a second. `#`
/// begins a comment.
pub(crate) fn replay<L: ControlLaw>(trace: &str, make: impl Fn(&PathInfo) -> L) {
    let mut law = None;
    for (number, line) in (1..).zip(trace.lines()).filter(|(_, line)| !line.starts_with('#')) {
        let (notified, permitted) = line.split_once(" | ").unwrap_or_else(|| panic!("line {number}: no bar"));
        let (kind, fields) = notified.split_once(' ').unwrap_or_else(|| panic!("line {number}: no event"));
        let fields: Vec<u64> = fields.split(' ').map(|field| field.parse().unwrap()).collect();
        match (&mut law, kind, &fields[..]) {
            (law @ None, "path", &[base_rtt, intra_rtt, line_rate, mss]) => {
                let [base_rtt, intra_rtt] = [base_rtt, intra_rtt].map(|ps| Span::from_ps(ps as i64));
                let (line_rate, mss) = (Rate::from_bps(line_rate), Bytes::new(mss));
                *law = Some(make(&PathInfo { base_rtt, intra_rtt, line_rate, mss }));
            }
            (
                Some(law),
                "ack",
                &[
                    now,
                    sent_at,
                    rtt,
                    acked,
                    marked,
                    in_flight,
                    delivered,
                    at_send,
                    time_at_send,
                    send_elapsed,
                    limited,
                    ref left @ ..,
                ],
            ) if left.len() < 2 => law.on_ack(&Ack {
                now: Time::from_ps(now),
                sent_at: Time::from_ps(sent_at),
                rtt: Span::from_ps(rtt as i64),
                acked: Bytes::new(acked),
                marked: Bytes::new(marked),
                in_flight: Bytes::new(in_flight),
                delivered: Bytes::new(delivered),
                bytes_remaining: left.first().map_or(Bytes::MAX, |&left| Bytes::new(left)),
                delivered_at_send: Bytes::new(at_send),
                delivered_time_at_send: Time::from_ps(time_at_send),
                send_elapsed: Span::from_ps(send_elapsed as i64),
                app_limited: limited == 1,
                sample_limited: false,
                cookie: Cookie::NONE,
                hops: &[],
            }),
            (Some(law), "reordered" | "nack" | "timeout", &[now, sent_at, lost, in_flight]) => law.on_loss(&Loss {
                now: Time::from_ps(now),
                sent_at: Time::from_ps(sent_at),
                lost: Bytes::new(lost),
                in_flight: Bytes::new(in_flight),
                cause: match kind {
                    "reordered" => LossCause::Reordered,
                    "nack" => LossCause::Nack,
                    _ => LossCause::Timeout,
                },
            }),
            _ => panic!("line {number}: no event of a law: {notified}"),
        }
        let (window, pace) = permitted.split_once(' ').unwrap_or_else(|| panic!("line {number}: no pace"));
        let pacing = if pace == "-" { Rate::MAX } else { Rate::from_bps(pace.parse().unwrap()) };
        let expected = SendLimits { window: Bytes::new(window.parse().unwrap()), pacing };
        let send_limits = law.as_ref().unwrap_or_else(|| panic!("line {number}: no path before it")).send_limits();
        assert_eq!(
            send_limits, expected,
            "line {number}: what this law permits, and what that one did, after: {notified}"
        );
    }
    assert!(law.is_some(), "nothing to replay");
}

/// An event that a host may report.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Sent(Sent),
    Ack(Ack<'static>),
    Loss(Loss),
    Cnp(Time),
    Timer(Time),
}

impl Event {
    pub(crate) fn report_to(&self, law: &mut impl ControlLaw) {
        match self {
            Event::Cnp(now) => law.on_notification(&Notification::Cnp { now: *now }),
            Event::Timer(now) => {
                if law.next_timer() <= *now {
                    law.on_timer(*now);
                    assert!(law.next_timer() > *now);
                }
            }
            Event::Sent(sent) => drop(law.on_sent(sent)),
            Event::Ack(ack) => law.on_ack(ack),
            Event::Loss(loss) => law.on_loss(loss),
        }
    }
}

/// Any history of a flow: times and delivered counts only grow, the rest is arbitrary.
pub(crate) fn history() -> impl Strategy<Value = Vec<Event>> {
    let entry = (0..10u8, 0..3_000_000_000u64, 1..100_000_000_000u64, 0..1u64 << 22, any::<bool>(), any::<bool>());
    proptest::collection::vec(entry, 1..300).prop_map(|entries| {
        let (mut now, mut delivered) = (Time::from_us(1_000_000), Bytes::ZERO);
        let mut events = Vec::new();
        for (kind, gap, rtt, bytes, flag, app_limited) in entries {
            now += Span::from_ps(gap as i64);
            let rtt = Span::from_ps(rtt as i64);
            let bytes = Bytes::new(bytes);
            events.push(match kind {
                0 => Event::Sent(Sent { now, bytes, in_flight: bytes, retransmission: flag }),
                8 => Event::Cnp(now),
                9 => Event::Timer(now),
                1 | 2 => {
                    let cause = [LossCause::Reordered, LossCause::Timeout, LossCause::Nack][gap as usize % 3];
                    Event::Loss(Loss { now, sent_at: now - rtt, lost: bytes, in_flight: bytes, cause })
                }
                _ => {
                    let before = delivered;
                    delivered += bytes;
                    Event::Ack(Ack {
                        now,
                        sent_at: now - rtt,
                        rtt,
                        acked: bytes,
                        marked: if flag { bytes } else { Bytes::ZERO },
                        in_flight: bytes,
                        delivered,
                        bytes_remaining: if flag { bytes } else { Bytes::MAX },
                        delivered_at_send: before.scaled(Frac::millionths(gap % 1_000_000)),
                        delivered_time_at_send: now - rtt,
                        send_elapsed: rtt,
                        app_limited,
                        sample_limited: app_limited,
                        cookie: Cookie::NONE,
                        hops: &[],
                    })
                }
            });
        }
        events
    })
}

/// The bottleneck's settings.
#[derive(Clone, Copy)]
pub(crate) struct TestbedLink {
    pub(crate) rate: Rate,
    /// Backlog over which packets are marked.
    pub(crate) mark_over: Bytes,
    /// Backlog over which they are dropped.
    pub(crate) drop_over: Bytes,
    /// Marks follow a phantom queue that drains at this share of the rate instead.
    pub(crate) phantom: Option<Frac>,
}

struct TestbedFlow<L> {
    law: L,
    mss: Bytes,
    base_rtt: Span,
    starts: Time,
    in_flight: Bytes,
    delivered: Bytes,
    delivered_time: Time,
    first_sent: Time,
    next_send: Time,
    wakes_at: Time,
}

enum TestbedEvent {
    Ack(Ack<'static>),
    Loss(Loss),
    Wake,
}

/// The bottleneck and its flows.
pub(crate) struct Testbed<L> {
    link: TestbedLink,
    flows: Vec<TestbedFlow<L>>,
    events: BTreeMap<(Time, u64), (usize, TestbedEvent)>,
    event_count: u64,
    busy_until: Time,
    phantom_until: Time,
    pub(crate) now: Time,
    pub(crate) lost: u64,
    /// Number of lost packets per million, chosen by a hash of the packet count.
    pub(crate) lost_in_a_million: u32,
    /// Acknowledgements arrive at whole multiples of this only; zero for each at its own time.
    pub(crate) bunches: Span,
    /// The largest and the smallest backlog met by a packet since last reset.
    pub(crate) backlog: (Bytes, Bytes),
}

impl<L: ControlLaw> Testbed<L> {
    pub(crate) fn new(link: TestbedLink) -> Self {
        Self {
            link,
            flows: Vec::new(),
            events: BTreeMap::new(),
            event_count: 0,
            busy_until: Time::ZERO,
            phantom_until: Time::ZERO,
            now: Time::ZERO,
            lost: 0,
            lost_in_a_million: 0,
            bunches: Span::ZERO,
            backlog: (Bytes::ZERO, Bytes::MAX),
        }
    }

    pub(crate) fn add(&mut self, law: L, path: &PathInfo, starts: Time) {
        self.flows.push(TestbedFlow {
            law,
            mss: path.mss,
            base_rtt: path.base_rtt - path.line_rate.tx_time(path.mss),
            starts,
            in_flight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            delivered_time: starts,
            first_sent: starts,
            next_send: starts,
            wakes_at: Time::ZERO,
        });
        self.schedule(starts, self.flows.len() - 1, TestbedEvent::Wake);
    }

    pub(crate) fn law(&self, flow: usize) -> &L {
        &self.flows[flow].law
    }

    pub(crate) fn delivered(&self, flow: usize) -> Bytes {
        self.flows[flow].delivered
    }

    pub(crate) fn forget_backlog(&mut self) {
        self.backlog = (Bytes::ZERO, Bytes::MAX);
    }

    /// Runs until `end`.
    pub(crate) fn run(&mut self, end: Time) {
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > end {
                break;
            }
            let ((now, _), (index, arrival)) = entry.remove_entry();
            self.now = now;
            let flow = &mut self.flows[index];
            match arrival {
                TestbedEvent::Ack(mut ack) => {
                    flow.in_flight = flow.in_flight.saturating_sub(ack.acked);
                    flow.delivered += ack.acked;
                    flow.delivered_time = now;
                    flow.first_sent = ack.sent_at;
                    ack.in_flight = flow.in_flight;
                    ack.delivered = flow.delivered;
                    flow.law.on_ack(&ack);
                }
                TestbedEvent::Loss(mut loss) => {
                    flow.in_flight = flow.in_flight.saturating_sub(loss.lost);
                    loss.in_flight = flow.in_flight;
                    flow.law.on_loss(&loss);
                }
                TestbedEvent::Wake => {}
            }
            self.send(index);
        }
        self.now = end;
    }

    fn schedule(&mut self, at: Time, flow: usize, arrival: TestbedEvent) {
        self.event_count += 1;
        self.events.insert((at, self.event_count), (flow, arrival));
    }

    fn send(&mut self, index: usize) {
        loop {
            let now = self.now;
            let flow = &mut self.flows[index];
            let send_limits = flow.law.send_limits();
            assert!(!send_limits.pacing.is_zero() && !send_limits.window.is_zero());
            if now < flow.starts || flow.in_flight + flow.mss > send_limits.window.max(flow.mss) {
                return;
            }
            if flow.next_send > now {
                let at = flow.next_send;
                if flow.wakes_at != at {
                    flow.wakes_at = at;
                    self.schedule(at, index, TestbedEvent::Wake);
                }
                return;
            }
            flow.next_send = now + send_limits.pacing.tx_time(flow.mss);
            flow.in_flight += flow.mss;
            if flow.in_flight == flow.mss {
                flow.first_sent = now;
                flow.delivered_time = now;
            }
            let (bytes, in_flight) = (flow.mss, flow.in_flight);
            let cookie = flow.law.on_sent(&Sent { now, bytes, in_flight, retransmission: false });
            let sent = Ack {
                now,
                sent_at: now,
                rtt: Span::ZERO,
                acked: flow.mss,
                marked: Bytes::ZERO,
                in_flight,
                delivered: flow.delivered,
                bytes_remaining: Bytes::MAX,
                delivered_at_send: flow.delivered,
                delivered_time_at_send: flow.delivered_time,
                send_elapsed: now.since(flow.first_sent),
                app_limited: false,
                sample_limited: false,
                cookie,
                hops: &[],
            };
            self.enqueue(index, sent);
        }
    }

    fn enqueue(&mut self, index: usize, mut ack: Ack<'static>) {
        let (now, base_rtt) = (self.now, self.flows[index].base_rtt);
        let backlog = self.link.rate.bytes_in(self.busy_until.since(now));
        self.backlog = (self.backlog.0.max(backlog), self.backlog.1.min(backlog));
        let chance = below(mix64(self.event_count), 1_000_000);
        if backlog > self.link.drop_over || chance < self.lost_in_a_million {
            self.lost += 1;
            let at = self.busy_until + base_rtt;
            let loss =
                Loss { now: at, sent_at: now, lost: ack.acked, in_flight: Bytes::ZERO, cause: LossCause::Reordered };
            self.schedule(at, index, TestbedEvent::Loss(loss));
            return;
        }
        self.busy_until = self.busy_until.max(now) + self.link.rate.tx_time(ack.acked);
        let mut watched = backlog;
        if let Some(share) = self.link.phantom {
            let drain = self.link.rate.scaled(share);
            watched = drain.bytes_in(self.phantom_until.since(now));
            self.phantom_until = self.phantom_until.max(now) + drain.tx_time(ack.acked);
        }
        if watched > self.link.mark_over {
            ack.marked = ack.acked;
        }
        ack.now = self.busy_until + base_rtt;
        if !self.bunches.is_zero() {
            ack.now = Time::from_ps(ack.now.ps().next_multiple_of(self.bunches.unsigned_ps()));
        }
        ack.rtt = ack.now.since(now);
        self.schedule(ack.now, index, TestbedEvent::Ack(ack));
    }
}

/// Jain's index of fairness: 1 where all are equal.
pub(crate) fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|s| s * s).sum();
    sum * sum / (shares.len() as f64 * squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::Params;
    use crate::{Fixed, NewReno, newreno};

    const TRACE: &str = "\
# Three events under a window of 50,000 bytes.
path 14000000 14000000 100000000000 4096 | 50000 -
ack 20000000 6000000 14000000 4096 0 8192 4096 0 0 0 0 | 50000 -
ack 21000000 7000000 14000000 4096 0 8192 8192 0 0 0 0 12288 | 50000 -
timeout 90000000 20000000 4096 0 | 50000 -
";

    #[test]
    fn a_replay_distinguishes_laws() {
        let window = Bytes::new(50_000);
        replay(TRACE, |path| Fixed::new(path, Params { window, ..Params::for_path(path) }));
        let other = std::panic::catch_unwind(|| {
            let params =
                |path: &PathInfo| newreno::Params { initial_window: window, ..newreno::Params::for_path(path) };
            replay(TRACE, |path| NewReno::new(path, params(path)));
        });
        let message = *other.unwrap_err().downcast::<std::string::String>().unwrap();
        assert!(message.contains("line 3"), "{message}");
    }

    /// A replay reports the remaining bytes where the line has them.
    #[test]
    fn a_replay_reports_remaining_bytes() {
        struct Left(std::rc::Rc<std::cell::RefCell<Vec<Bytes>>>);
        impl ControlLaw for Left {
            fn on_ack(&mut self, ack: &Ack) {
                self.0.borrow_mut().push(ack.bytes_remaining);
            }

            fn on_loss(&mut self, _: &Loss) {}

            fn send_limits(&self) -> SendLimits {
                SendLimits::window(Bytes::new(50_000))
            }

            fn actions(&self) -> crate::LawActions {
                crate::LawActions::default()
            }
        }
        let reported = std::rc::Rc::default();
        replay(TRACE, |_| Left(std::rc::Rc::clone(&reported)));
        assert_eq!(*reported.borrow(), [Bytes::MAX, Bytes::new(12_288)]);
    }
}
