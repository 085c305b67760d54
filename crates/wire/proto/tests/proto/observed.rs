//! Events reported to observers, in many worlds: true, in order, and complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::world::World;
use crate::world::network::NetworkEnd;
use crate::world::scenes::scene;
use proto::blocks::BlockEvent;
use proto::frame::Frames;
use proto::observe::{ConnectionStart, Establishment, Event, KeyCause, ObservedPacket, Observer, PathChange, Space};
use proto::side::Side;
use units::Time;

/// Events reported at one end.
#[derive(Default)]
struct ObservedEvents {
    kinds: BTreeSet<String>,
    last: Time,
    /// Payloads that were sent, and those that were received.
    sent: BTreeMap<(Space, u32, u64), Vec<u8>>,
    received: BTreeMap<(Space, u32, u64), Vec<u8>>,
    counted: u64,
    lost: BTreeSet<(Space, u32, u64)>,
    progress: Vec<Establishment>,
    closed: u32,
    updates: u64,
    violations: Vec<String>,
}

impl ObservedEvents {
    fn packet(&mut self, packet: &ObservedPacket, sent: bool) {
        let key = (packet.space, packet.path, packet.number);
        if Frames::new(packet.payload).any(|frame| frame.is_err()) {
            self.violations.push(format!("the frames of {key:?} cannot be read"));
        }
        if packet.len < packet.payload.len() + 26 || packet.len > 65_535 {
            self.violations.push(format!("{key:?} has {} bytes for {} of frames", packet.len, packet.payload.len()));
        }
        let packets = if sent { &mut self.sent } else { &mut self.received };
        // The network may duplicate a packet that found no room the first time.
        if packets.insert(key, packet.payload.to_vec()).is_some_and(|before| sent || before != packet.payload) {
            self.violations.push(format!("{key:?} twice, sent: {sent}"));
        }
    }

    fn event(&mut self, now: Time, event: &Event) {
        if now < self.last {
            self.violations.push(format!("{now:?} is before {:?}", self.last));
        }
        self.last = now;
        let words = format!("{event:?}");
        let name = words.split(|it: char| !it.is_alphanumeric()).next().unwrap_or_default();
        self.kinds.insert(match event {
            Event::Block(block) => format!("{:?}", std::mem::discriminant(block)),
            Event::Path { change, .. } => format!("Path {change:?}"),
            Event::Keys { cause, .. } => format!("Keys {cause:?}"),
            Event::Lost { cause, .. } => format!("Lost {cause:?}"),
            _ => name.to_owned(),
        });
        match event {
            Event::Sent(packet) => {
                self.counted += u64::from(packet.in_flight && packet.space == Space::Data);
                self.packet(packet, true);
            }
            Event::Received(packet) => self.packet(packet, false),
            &Event::Lost { space, path, number, .. } => {
                let key = (space, path, number);
                if !self.lost.insert(key) || !self.sent.contains_key(&key) {
                    self.violations.push(format!("{key:?} is lost, and never left or was lost before"));
                }
            }
            &Event::Progress(progress) => self.progress.push(progress),
            Event::Keys { space: Space::Data, updates, cause } => {
                let is_first = *cause == KeyCause::Tls;
                if *updates != self.updates + u64::from(!is_first) {
                    self.violations.push(format!("update {updates} after {}", self.updates));
                }
                self.updates = *updates;
            }
            Event::Metrics { metrics, .. } if metrics.window.is_zero() => self.violations.push("no window".into()),
            Event::Closed(_) => self.closed += 1,
            _ => {}
        }
    }
}

type SharedState<T> = Arc<Mutex<T>>;

struct Watcher(SharedState<ObservedEvents>);

impl Observer for Watcher {
    fn on_event(&self, now: Time, event: &Event) {
        self.0.lock().unwrap().event(now, event);
    }
}

#[test]
fn observers_receive_accurate_events() {
    let mut kinds = BTreeSet::new();
    for seed in 0..600 {
        let observed: [SharedState<Vec<SharedState<ObservedEvents>>>; 2] = Default::default();
        let ends = observed.clone();
        let maker = move |start: &ConnectionStart| {
            let new = Arc::new(Mutex::new(ObservedEvents::default()));
            ends[usize::from(start.side == Side::Listener)].lock().unwrap().push(new.clone());
            Some(Arc::new(Watcher(new)) as Arc<dyn Observer>)
        };
        let mut scene = scene(seed);
        // Noise looks like clients, which are observed, too.
        scene.noise = 0;
        let rebinding = scene.conditions.rebinding;
        let mut world = World::watched(scene, Some(Arc::new(maker)));
        let report = world.run(Time::from_ms(3_600_000));
        let stats = [world.stats(NetworkEnd::Client), world.stats(NetworkEnd::Listener)];
        // A packet that was modified or duplicated in the network looks like another client, which sends nothing more.
        let observed = observed.map(|observed| {
            let all = std::mem::take(&mut *observed.lock().unwrap());
            let all = all.iter().map(|observed| std::mem::take(&mut *observed.lock().unwrap()));
            all.max_by_key(|observed| observed.received.len()).unwrap_or_default()
        });
        kinds.extend(observed.iter().flat_map(|observed| observed.kinds.iter().cloned()));
        if report.admitted.is_none_or(|admitted| rebinding <= admitted) {
            continue;
        }
        for at in 0..2 {
            let (own, other) = (&observed[at], &observed[1 - at]);
            assert_eq!(own.violations, Vec::<String>::new(), "seed {seed}, end {at}");
            let stats = stats[at].unwrap();
            assert_eq!(own.counted, stats.packets_sent, "seed {seed}, end {at}");
            let lost = own.lost.iter().filter(|(space, ..)| *space == Space::Data).count() as u64;
            assert_eq!(lost, stats.lost, "seed {seed}, end {at}");
            for (key, payload) in &own.received {
                assert!(other.sent.get(key) == Some(payload), "seed {seed}, end {at}: {key:?}");
            }
            assert_eq!(own.progress, [Establishment::Connected, Establishment::Admitted], "seed {seed}, end {at}");
            assert_eq!(own.closed, u32::from(report.closed[at].is_some()), "seed {seed}, end {at}");
        }
    }
    for kind in [
        "Sent",
        "Received",
        "Lost Reordered",
        "Lost Timeout",
        "Progress",
        "Parameters",
        "Metrics",
        "PacketSize",
        "Closed",
    ] {
        assert!(kinds.contains(kind), "no {kind} in {kinds:?}");
    }
    for change in [PathChange::Probing, PathChange::Validated, PathChange::Moved, PathChange::Abandoned] {
        assert!(kinds.contains(&format!("Path {change:?}")), "no {change:?} in {kinds:?}");
    }
    for cause in [KeyCause::Tls, KeyCause::Local, KeyCause::Remote] {
        assert!(kinds.contains(&format!("Keys {cause:?}")), "no {cause:?} in {kinds:?}");
    }
    let shape = proto::frame::Shape { data: 1, parity: 1 };
    for block in [
        BlockEvent::Begun { block: 0, shape },
        BlockEvent::Requested { block: 0, missing: 0 },
        BlockEvent::Repair(proto::blocks::Tag { block: 0, shape, place: 0 }),
        BlockEvent::GivenUp { block: 0 },
        BlockEvent::Opened { block: 0, shape },
        BlockEvent::Recovered { block: 0, packets: 0 },
        BlockEvent::Missing { block: 0, missing: 0 },
        BlockEvent::Forgotten { block: 0 },
    ] {
        assert!(kinds.contains(&format!("{:?}", std::mem::discriminant(&block))), "no {block:?}");
    }
}
