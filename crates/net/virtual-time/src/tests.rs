//! The event loop with hosts that send at known times.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use proptest::prelude::*;
use units::{Span, Time};

use crate::{Delivery, EventLoop, Host, HostCosts, HostIndex, Network, Step};

const TRANSMISSION: Span = Span::from_us(2);
const DELAY: Span = Span::from_us(10);

/// A packet with the number of times that it is still to be returned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Ball {
    number: u32,
    returns: u32,
    to: HostIndex,
}

/// Sends at times, and returns packets.
#[derive(Default)]
struct Player {
    /// Packets to send, by the time from which they may leave.
    due: BinaryHeap<Reverse<(Time, Ball)>>,
    ready: Vec<Ball>,
    /// Times of calls: received packets, wake-ups.
    received: Vec<(Time, u32)>,
    woken: Vec<Time>,
}

impl Host for Player {
    type Packet = Ball;

    fn receive(&mut self, now: Time, ball: Ball) {
        self.received.push((now, ball.number));
        if ball.returns > 0 {
            let other = HostIndex(1 - ball.to.0);
            self.ready.push(Ball { returns: ball.returns - 1, to: other, ..ball });
        }
    }

    fn wake(&mut self, now: Time) {
        self.woken.push(now);
        while let Some(&Reverse((time, ball))) = self.due.peek()
            && time <= now
        {
            self.due.pop();
            self.ready.push(ball);
        }
    }

    fn poll_send(&mut self, _: Time) -> Option<Ball> {
        if self.ready.is_empty() { None } else { Some(self.ready.remove(0)) }
    }

    fn next_wake(&mut self) -> Time {
        self.due.peek().map_or(Time::NEVER, |&Reverse((time, _))| time)
    }
}

/// A link from each host, with a transmission time and a delay.
#[derive(Default)]
struct Links {
    idle_at: BTreeMap<HostIndex, Time>,
    paused: Option<(HostIndex, Time)>,
    on_the_way: BinaryHeap<Reverse<(Time, Ball)>>,
    sent: Vec<(Time, u32)>,
}

impl Network for Links {
    type Packet = Ball;

    fn accepts_at(&self, host: HostIndex) -> Time {
        if self.paused.is_some_and(|(paused, _)| paused == host) {
            return Time::NEVER;
        }
        self.idle_at.get(&host).copied().unwrap_or(Time::ZERO)
    }

    fn accept(&mut self, now: Time, host: HostIndex, ball: Ball) {
        assert!(self.accepts_at(host) <= now, "host {} sends at {} although its NIC is busy", host.0, now.ps());
        self.sent.push((now, ball.number));
        self.idle_at.insert(host, now + TRANSMISSION);
        self.on_the_way.push(Reverse((now + TRANSMISSION + DELAY, ball)));
    }

    fn next_event(&self) -> Time {
        let arrival = self.on_the_way.peek().map_or(Time::NEVER, |&Reverse((time, _))| time);
        arrival.min(self.paused.map_or(Time::NEVER, |(_, until)| until))
    }

    fn advance(&mut self, now: Time, delivered: &mut Vec<Delivery<Ball>>) {
        self.paused.take_if(|(_, until)| *until <= now);
        while let Some(&Reverse((time, packet))) = self.on_the_way.peek()
            && time <= now
        {
            self.on_the_way.pop();
            delivered.push(Delivery { host: packet.to, packet });
        }
    }
}

/// Two players; the first one sends balls at these times in microseconds.
fn players(starts: &[(u64, u32)], costs: HostCosts) -> EventLoop<Player, Links> {
    let due = starts
        .iter()
        .zip(0..)
        .map(|(&(at, returns), number)| Reverse((Time::from_us(at), Ball { number, returns, to: HostIndex(1) })));
    EventLoop::new([Player { due: due.collect(), ..Player::default() }, Player::default()], Links::default(), costs)
}

fn run(event_loop: &mut EventLoop<Player, Links>) {
    while event_loop.step(Time::from_ms(1_000)) != Step::Idle {}
}

/// Times in microseconds at which a host received packets.
fn received(event_loop: &mut EventLoop<Player, Links>, host: u32) -> Vec<(u64, u32)> {
    event_loop.host(HostIndex(host)).received.iter().map(|&(time, number)| (time.ns() / 1_000, number)).collect()
}

#[test]
fn ideal_hosts_answer_at_once() {
    let mut event_loop = players(&[(5, 3)], HostCosts::default());
    run(&mut event_loop);
    assert_eq!(received(&mut event_loop, 1), [(17, 0), (41, 0)]);
    assert_eq!(received(&mut event_loop, 0), [(29, 0), (53, 0)]);
}

#[test]
fn a_nic_accepts_one_packet_at_a_time() {
    let mut event_loop = players(&[(0, 0), (0, 0), (1, 0)], HostCosts::default());
    run(&mut event_loop);
    assert_eq!(received(&mut event_loop, 1), [(12, 0), (14, 1), (16, 2)]);
}

#[test]
fn a_paused_nic_resumes() {
    let mut event_loop = players(&[(0, 0), (50, 0)], HostCosts::default());
    event_loop.network().paused = Some((HostIndex(0), Time::from_us(30)));
    run(&mut event_loop);
    assert_eq!(received(&mut event_loop, 1), [(42, 0), (62, 1)]);
}

/// A NIC that accepts packets again wakes its host without delay; a timer takes the wake-up's time.
#[test]
fn a_paused_host_resumes_at_once_and_its_timer_does_not() {
    let costs = HostCosts { wake_up: Span::from_us(100), ..HostCosts::default() };
    let mut event_loop = players(&[(0, 0), (500, 0)], costs);
    event_loop.network().paused = Some((HostIndex(0), Time::from_us(300)));
    run(&mut event_loop);
    assert_eq!(event_loop.network().sent, [(Time::from_us(300), 0), (Time::from_us(600), 1)]);
}

#[test]
fn costs_delay_hosts() {
    let costs = HostCosts {
        wake_up: Span::from_us(100),
        packet: Span::from_us(3),
        batch: Span::from_us(7),
        batch_packets: 0,
        timer_slack: Span::from_us(50),
    };
    let mut event_loop = players(&[(1_000, 1)], costs);
    run(&mut event_loop);
    // The timer of 1,000 is 50 late and the host takes 100 to wake up: the packet leaves at 1,150 and arrives at 1,162.
    assert_eq!(event_loop.network().sent, [(Time::from_us(1_150), 0), (Time::from_us(1_272), 0)]);
    // It is handled at 1,262; the packet takes 3 and the batch 7, so the answer leaves at 1,272.
    assert_eq!(received(&mut event_loop, 1), [(1_262, 0)]);
    assert_eq!(received(&mut event_loop, 0), [(1_384, 0)]);
}

#[test]
fn packets_that_arrive_at_a_busy_host_are_one_batch() {
    let costs = HostCosts { packet: Span::from_us(3), batch: Span::from_us(8), ..HostCosts::default() };
    // Sent every 3 us, the time of a packet; the receiver's first batch takes them all.
    let mut event_loop = players(&[(0, 0), (0, 0), (0, 0)], costs);
    run(&mut event_loop);
    assert_eq!(received(&mut event_loop, 1), [(12, 0), (15, 1), (18, 2)]);
    let two = HostCosts { batch_packets: 2, ..costs };
    let mut event_loop = players(&[(0, 0), (0, 0), (0, 0)], two);
    run(&mut event_loop);
    // The sender's batch of two ends at 6, and the next packet leaves at 14; the receiver's at 18.
    assert_eq!(received(&mut event_loop, 1), [(12, 0), (15, 1), (26, 2)]);
}

#[test]
fn nothing_happens_after_the_limit() {
    let mut event_loop = players(&[(20, 0)], HostCosts::default());
    while event_loop.step(Time::from_us(10)) != Step::Idle {}
    assert_eq!((event_loop.now(), event_loop.next_at()), (Time::from_us(10), Time::from_us(20)));
    assert_eq!(event_loop.network().sent, []);
}

#[test]
fn an_application_wakes_its_host() {
    let mut event_loop = players(&[], HostCosts::default());
    while event_loop.step(Time::from_us(10)) != Step::Idle {}
    event_loop.host(HostIndex(0)).ready.push(Ball { number: 9, returns: 0, to: HostIndex(1) });
    event_loop.wake(HostIndex(0));
    run(&mut event_loop);
    assert_eq!(received(&mut event_loop, 1), [(22, 9)]);
}

#[test]
#[should_panic(expected = "works without end")]
fn a_timer_that_never_advances_is_found() {
    struct Stuck;
    impl Host for Stuck {
        type Packet = Ball;
        fn receive(&mut self, _: Time, _: Ball) {}
        fn wake(&mut self, _: Time) {}
        fn poll_send(&mut self, _: Time) -> Option<Ball> {
            None
        }
        fn next_wake(&mut self) -> Time {
            Time::ZERO
        }
    }
    let mut event_loop = EventLoop::new([Stuck], Links::default(), HostCosts::default());
    event_loop.step(Time::from_us(1));
}

fn span(max_us: i64) -> impl Strategy<Value = Span> {
    (0..=max_us).prop_map(Span::from_us)
}

proptest! {
    /// With any costs, every packet arrives once per transmission, no earlier than transmission time and delay permit,
    /// and a repeated run has the same result.
    #[test]
    fn every_packet_arrives(
        starts in prop::collection::vec((0u64..200, 0u32..5), 1..20),
        wake_up in span(30), packet in span(10), batch in span(10), timer_slack in span(60), batch_packets in 0u32..4,
    ) {
        let costs = HostCosts { wake_up, packet, batch, batch_packets, timer_slack };
        let once = || {
            let mut event_loop = players(&starts, costs);
            run(&mut event_loop);
            [0, 1].map(|host| received(&mut event_loop, host))
        };
        let [back, there] = once();
        for (number, &(start, returns)) in (0..).zip(&starts) {
            let count = |side: &[(u64, u32)]| side.iter().filter(|it| it.1 == number).count() as u32;
            prop_assert_eq!((count(&there), count(&back)), (returns / 2 + 1, returns.div_ceil(2)));
            let first = there.iter().find(|it| it.1 == number).unwrap().0;
            prop_assert!(first >= start + 12);
        }
        prop_assert_eq!([back, there], once());
    }
}
