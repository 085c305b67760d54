//! Two endpoints and a quiet network: expected events occur in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::world::network::NetworkEnd;
use crate::world::{Scene, StreamJob, World};
use proto::frame::{Frame, Frames};
use proto::observe::{ConnectionStart, Event, Observer, Space};
use proto::side::Side;
use units::{Bytes, Rate, Span, Time};

fn job(from: NetworkEnd, bytes: u64) -> StreamJob {
    StreamJob { from, bytes, message: true, echo: false }
}

/// The client's data is sent after one round trip, and read after one and a half.
#[test]
fn data_crosses_after_one_round_trip() {
    let mut scene = Scene::ideal(Rate::from_gbps(1), Span::from_ms(10));
    scene.jobs = vec![job(NetworkEnd::Client, 1_000)];
    let report = World::new(scene).run(Time::from_ms(60_000));
    assert_eq!(report.read, [0, 1_000], "{report:?}");
    assert!(report.connected.unwrap() < Time::from_ms(21), "{report:?}");
    assert!(report.done < Time::from_ms(45), "{report:?}");
}

/// Keys change in the middle of a transfer, at both ends, and nothing is lost by it.
#[test]
fn keys_change() {
    let mut scene = Scene::ideal(Rate::from_gbps(1), Span::from_ms(1));
    scene.jobs = vec![job(NetworkEnd::Client, 3_000_000), job(NetworkEnd::Listener, 3_000_000)];
    scene.updates = 5;
    let report = World::new(scene).run(Time::from_ms(60_000));
    assert_eq!(report.read, [3_000_000; 2]);
    assert!(report.done.is_set() && report.updates > 3, "{report:?}");
}

/// Data crosses on all paths that both ends allow.
#[test]
fn paths_open() {
    let mut scene = Scene::ideal(Rate::from_gbps(1), Span::from_ms(1));
    scene.jobs = vec![job(NetworkEnd::Client, 3_000_000)];
    scene.paths = 8;
    let report = World::new(scene).run(Time::from_ms(60_000));
    assert_eq!((report.read, report.open_paths), ([0, 3_000_000], 8), "{report:?}");
}

/// A transfer takes the time that follows from the line rate, its delay and the packets' heads, and little more.
#[test]
fn the_line_is_used() {
    let (rate, bytes) = (Rate::from_gbps(1), 20_000_000u64);
    let mut scene = Scene::ideal(rate, Span::from_us(500));
    scene.jobs = vec![job(NetworkEnd::Client, bytes)];
    scene.law = "cubic";
    let report = World::new(scene).run(Time::from_ms(60_000));
    let ideal = rate.tx_time(Bytes::new(bytes * 1_500 / 1_444));
    let spent = report.done.since(report.connected.unwrap());
    assert!(spent < ideal.times(5).over(4), "{} us of {} us", spent.ns() / 1_000, ideal.ns() / 1_000);
}

/// Returns the duration of a transfer, from when it could begin, on a network of 1 Gb/s and an RTT of 20 ms that loses
/// one packet in `loss`.
fn spent(bytes: u64, loss: u64, coding: &'static str, seed: u64) -> Span {
    let mut scene = Scene::ideal(Rate::from_gbps(1), Span::from_ms(10));
    (scene.seed, scene.coding, scene.conditions.loss, scene.law) = (seed, coding, loss, "bbr");
    scene.jobs = vec![job(NetworkEnd::Client, bytes)];
    let report = World::new(scene).run(Time::from_ms(60_000));
    assert_eq!(report.read, [0, bytes], "{report:?}");
    report.done.since(report.connected.unwrap())
}

/// Without losses, coding costs the time of its parity. With losses, most messages need no second round trip.
#[test]
fn blocks_repair_losses() {
    let late = |coding| (0..100).filter(|&seed| spent(9_000, 20, coding, seed) > Span::from_ms(30)).count();
    let (plain, coded) = (late("off"), late("8,2"));
    // The handshake loses packets, too, which no block protects.
    assert!(coded * 2 < plain && plain > 25, "late: {coded} of 100 coded, {plain} of 100 plain");
    let (plain, coded) = (spent(5_000_000, 0, "off", 1), spent(5_000_000, 0, "8,2", 1));
    assert!(
        coded >= plain && coded < plain.times(3).over(2),
        "{} us for {} us",
        coded.ns() / 1_000,
        plain.ns() / 1_000
    );
}

/// A receiver keeps the memory of a burst for the next one, and releases it when its peer is silent.
#[test]
fn idle_streams_hold_no_memory() {
    let mut scene = Scene::ideal(Rate::from_gbps(1), Span::from_ms(1));
    scene.jobs = vec![job(NetworkEnd::Client, 300_000_000)];
    (scene.window, scene.reader) = (4 << 20, (1 << 20, Span::from_ms(20)));
    scene.quiet = Some((Time::from_ms(1_000), Time::from_ms(5_000)));
    let mut world = World::new(scene);
    let mut memory = |until| {
        let report = world.run(Time::from_ms(until));
        (world.receive_memory(NetworkEnd::Listener), report)
    };
    let at = [300, 990, 1_900, 4_990, 5_500, 6_000].map(|until| memory(until).0);
    let expected_memory = 256 << 10..16 << 20;
    assert!(expected_memory.contains(&at[0]) && at[1] == at[0] && at[2] == at[0], "{at:?}");
    assert!(at[3] <= 64 << 10 && expected_memory.contains(&at[4]) && at[5] == at[4], "{at:?}");
    let (memory, report) = memory(60_000);
    assert_eq!((memory, report.read), (0, [0, 300_000_000]), "{report:?}");
}

/// Packets at one end that elicit acknowledgements, and packets with an acknowledgement.
#[derive(Default)]
struct Counted {
    eliciting: AtomicU64,
    acknowledgements: AtomicU64,
}

impl Observer for Counted {
    fn on_event(&self, _now: Time, event: &Event) {
        let (Event::Received(packet) | Event::Sent(packet)) = event else { return };
        if packet.space != Space::Data {
            return;
        }
        let mut frames = Frames::new(packet.payload).filter_map(Result::ok);
        let (is_one, count) = match event {
            Event::Received(_) => (frames.any(|frame| frame.is_ack_eliciting()), &self.eliciting),
            _ => (frames.any(|frame| matches!(frame, Frame::Ack(_))), &self.acknowledgements),
        };
        count.fetch_add(u64::from(is_one), Relaxed);
    }
}

/// An end acknowledges every n-th packet ([`proto::settings::Settings::ack_every`]), by default every second.
#[test]
fn every_nth_packet_is_acknowledged() {
    for (setting, every) in [(None, 2), (Some(1), 1), (Some(2), 2), (Some(3), 3), (Some(10), 10)] {
        let mut scene = Scene::ideal(Rate::from_gbps(1), Span::from_us(500));
        scene.jobs = vec![job(NetworkEnd::Client, 10_000_000)];
        scene.ack_every = setting;
        // Nothing is lost or marked: these would be acknowledged at once.
        (scene.conditions.buffer, scene.conditions.bleaching) = (Bytes::new(10 << 20), true);
        let listener = Arc::new(Counted::default());
        let counted = listener.clone();
        let maker =
            move |start: &ConnectionStart| (start.side == Side::Listener).then(|| counted.clone() as Arc<dyn Observer>);
        let report = World::watched(scene, Some(Arc::new(maker))).run(Time::from_ms(60_000));
        assert_eq!(report.read, [0, 10_000_000], "{report:?}");
        let (packets, acks) = (listener.eliciting.load(Relaxed), listener.acknowledgements.load(Relaxed));
        let min_acks = packets / every;
        println!("{setting:?}: {acks} acknowledgements of {packets} packets");
        // More are sent with other frames, after `ack_delay` and at skipped numbers. A twentieth leaves n / 3 below n / 2: a
        // setting that is ignored fails.
        assert!((min_acks..=min_acks + packets / 20).contains(&acks), "{setting:?}: {acks} for {packets} packets");
    }
}
