//! Daemons of a mesh over the loopback, in one process. Their clocks are artificial: `CLOCK_MONOTONIC_RAW` with an offset and a
//! drift of each. So at each of its readings all mesh times must be within their bounds of each other.

#![cfg(target_os = "linux")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use clockd::{
    ArtificialClock, ClockBoundConfig, Daemon, DaemonConfig, DaemonEvent, HostClock, MeshKey, PageReader, PageStatus,
    PeerConfig, Query, UtcSource, query, raw_ns,
};
use clocks::{Member, MemberConfig, MeshConfig, Skew};

/// Time in which a mesh is synchronised: eleven epochs of a second, and as many for a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

struct Host {
    clock: Arc<ArtificialClock>,
    page: PageReader,
    directory: PathBuf,
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    events: Arc<Mutex<Vec<DaemonEvent>>>,
    thread: Option<JoinHandle<()>>,
}

struct Mesh {
    hosts: Vec<Host>,
}

/// A reading of a host's page.
#[derive(Clone, Copy, Debug)]
struct Reading {
    mesh: i64,
    error: i64,
}

/// Result of a comparison of pages.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    /// Largest distance, in nanoseconds.
    distance: i64,
    /// Largest bound, in nanoseconds.
    bound: i64,
    /// Number of pairs of pages that had a time.
    compared: u64,
}

impl Host {
    /// Returns mesh time at a reading of the common clock.
    fn read(&self, raw: i64) -> Option<Reading> {
        let time = self.page.content().ok()?.time(self.clock.at_raw(raw)).ok()?;
        Some(Reading { mesh: time.ns, error: time.error_ns })
    }

    fn events(&self) -> Vec<DaemonEvent> {
        self.events.lock().unwrap().clone()
    }

    fn status(&self) -> serde_json::Value {
        serde_json::from_str(&query(&self.directory.join("socket"), Query::Status).unwrap()).unwrap()
    }
}

impl Mesh {
    /// Starts daemons with these clocks; none where the kernel refuses timestamps. `number` is that of the test.
    fn start(number: u8, clocks: &[(i64, i64)]) -> Option<Self> {
        let [low, high, ..] = std::process::id().to_le_bytes();
        let address = |index: usize| {
            let host = Ipv4Addr::new(127, 64 + high % 128, low, 16 * number + index as u8 + 1);
            SocketAddr::new(IpAddr::V4(host), 7_123)
        };
        let directory = std::env::temp_dir().join(format!("narrows-clockd-{number}-{}", std::process::id()));
        let name = |index: usize| format!("host{index}");
        let source = |index: usize| if index == 0 { UtcSource::Bound { error_ns: 50_000 } } else { UtcSource::None };
        let peer = |index: usize| PeerConfig { name: name(index), address: address(index), utc: source(index) };
        let peers: Vec<PeerConfig> = (0..clocks.len()).map(peer).collect();
        let members = (0..clocks.len()).map(|index| MemberConfig { id: 1_000 + index as u64, site: 0 }).collect();
        let key = MeshKey::derive(b"a key for tests.", b"mesh");
        let mut hosts = Vec::new();
        for (index, &(offset_ns, ppb)) in clocks.iter().enumerate() {
            let clock = ArtificialClock::new(offset_ns, Skew::from_ppb(ppb));
            let directory = directory.join(name(index));
            let config = DaemonConfig {
                mesh: MeshConfig::new(Clone::clone(&members)),
                peers: peers.clone(),
                own: Member(index as u16),
                key: key.clone(),
                page: directory.join("page"),
                status: Some(directory.join("socket")),
                metrics: Some(directory.join("metrics.prom")),
                clock_bound: Some(ClockBoundConfig {
                    shm0: directory.join("shm0"),
                    shm1: directory.join("shm1"),
                    max_drift_ppb: 50_000,
                }),
                clock: HostClock::artificial(clock.clone()),
            };
            let mut daemon = match Daemon::new(config) {
                Ok(daemon) => daemon,
                Err(error @ clockd::DaemonError::Socket { .. }) => {
                    testing::skipped_here(&error.to_string());
                    return None;
                }
                Err(error) => panic!("{error}"),
            };
            let (stop, events) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
            let page = PageReader::open(&directory.join("page")).unwrap();
            let (stopped, log) = (stop.clone(), events.clone());
            let run = move || daemon.run(&stopped, &mut |event| log.lock().unwrap().push(event.clone())).unwrap();
            let thread = Some(std::thread::spawn(run));
            hosts.push(Host { clock, page, directory, address: address(index), stop, events, thread });
        }
        Some(Self { hosts })
    }

    fn wait_until_synchronised(&self) {
        testing::eventually(PATIENCE, "all pages have a time", || {
            let raw = raw_ns();
            self.hosts.iter().all(|host| host.read(raw).is_some())
        });
    }

    /// Compares all pages for some time, except at hosts that `excused` accepts.
    fn watch(&self, duration: Duration, excused: impl Fn(usize) -> bool) -> Comparison {
        let end = raw_ns() + duration.as_nanos() as i64;
        let (mut distance, mut bound, mut compared) = (0, 0, 0);
        while raw_ns() < end {
            let raw = raw_ns();
            let hosts = self.hosts.iter().enumerate().filter(|&(index, _)| !excused(index));
            let readings: Vec<Reading> = hosts.filter_map(|(_, host)| host.read(raw)).collect();
            for (index, one) in readings.iter().enumerate() {
                for other in &readings[index + 1..] {
                    let apart = (one.mesh - other.mesh).abs();
                    assert!(apart <= one.error + other.error, "{one:?} and {other:?}");
                    distance = distance.max(apart);
                    compared += 1;
                }
                bound = bound.max(one.error);
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Comparison { distance, bound, compared }
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.hosts.iter().for_each(|host| host.stop.store(true, Ordering::Relaxed));
        for host in &mut self.hosts {
            let joined = host.thread.take().map(JoinHandle::join);
            assert!(std::thread::panicking() || joined.is_none_or(|joined| joined.is_ok()), "a daemon failed");
        }
        if let Some(parent) = self.hosts.first().and_then(|host| host.directory.parent()) {
            let _ = std::fs::remove_dir_all(parent);
        }
    }
}

#[test]
fn two_daemons_agree_within_their_bounds() {
    let Some(mesh) = Mesh::start(0, &[(0, 0), (-7_000_000_000_000, 40_000)]) else { return };
    mesh.wait_until_synchronised();
    let Comparison { distance, bound, compared } = mesh.watch(Duration::from_secs(5), |_| false);
    println!("two daemons: at most {distance} ns apart, bounds at most {bound} ns, {compared} readings");
    assert!(compared > 1_000);
    // Both know the offset of 7,000 s, so the pages are far closer than the clocks.
    assert!(distance < 1_000_000);

    let [first, second] = [0, 1].map(|index| mesh.hosts[index].status());
    assert_eq!((first["name"].as_str(), first["state"].as_str()), (Some("host0"), Some("synchronised")));
    assert_eq!(first["reference"], second["reference"]);
    let offset = first["peers"][0]["offset_ns"].as_i64().unwrap();
    assert!((offset + 7_000_000_000_000).abs() < 1_000_000_000, "{offset}");
    let metrics = query(&mesh.hosts[1].directory.join("socket"), Query::Metrics).unwrap();
    assert!(metrics.contains("narrows_clock_synchronised 1e0\n"), "{metrics}");

    // UTC of the first host reaches the second one: its pages of ClockBound are synchronised.
    testing::eventually(PATIENCE, "UTC at the second host", || !mesh.hosts[1].status()["utc"].is_null());
    let utc = mesh.hosts[1].status()["utc"].clone();
    let (offset, error) = (utc["system_clock_offset_ns"].as_i64().unwrap(), utc["error_ns"].as_i64().unwrap());
    // The system clock of both hosts is the same, so its true offset is 0.
    assert!(offset.abs() <= error && error >= 50_000, "{offset} {error}");
    testing::eventually(PATIENCE, "the page shm0", || {
        let shm0 = std::fs::read(mesh.hosts[1].directory.join("shm0")).unwrap();
        i32::from_ne_bytes(shm0[68..72].try_into().unwrap()) == 1
    });
}

#[test]
fn four_daemons_agree_within_their_bounds() {
    let clocks = [(0, 0), (1_000_000, 30_000), (-50_000_000_000, -20_000), (86_400_000_000_000, 50_000)];
    let Some(mesh) = Mesh::start(1, &clocks) else { return };
    mesh.wait_until_synchronised();
    let Comparison { distance, bound, compared } = mesh.watch(Duration::from_secs(5), |_| false);
    println!("four daemons: at most {distance} ns apart, bounds at most {bound} ns, {compared} comparisons");
    assert!(compared > 1_000);
}

/// In a mesh of eight most members probe enough others to know that one of them has stepped, and not itself.
#[test]
fn step_of_one_clock_voids_its_page() {
    let clocks: Vec<(i64, i64)> =
        (0..8).map(|index| (index * index * 1_000_000_007, index * 12_000 - 40_000)).collect();
    let Some(mesh) = Mesh::start(2, &clocks) else { return };
    mesh.wait_until_synchronised();
    let Comparison { distance, bound, compared } = mesh.watch(Duration::from_secs(3), |_| false);
    println!("eight daemons: at most {distance} ns apart, bounds at most {bound} ns, {compared} comparisons");

    let (stepped, others) = (&mesh.hosts[5], |index| index == 5);
    let disruptions = stepped.page.content().unwrap().disruptions;
    stepped.clock.step(3_000_000);
    let mut compared = 0;
    testing::eventually(Duration::from_secs(2), "the page is void", || {
        compared += mesh.watch(Duration::from_millis(20), others).compared;
        stepped.read(raw_ns()).is_none()
    });
    let content = stepped.page.content().unwrap();
    assert!(content.status != PageStatus::Synchronised && content.disruptions > disruptions, "{content:?}");
    assert!(stepped.events().contains(&DaemonEvent::OwnStep), "{:?}", stepped.events());
    // The others never leave their bounds, and most of their pages stay.
    compared += mesh.watch(Duration::from_secs(2), others).compared;
    assert!(compared > 1_000, "{compared}");
    // A member that probes no other one cannot know which of both clocks stepped.
    let has_stepped = |host: &&Host| host.events().contains(&DaemonEvent::OwnStep);
    let voided = mesh.hosts.iter().filter(has_stepped).count();
    println!("eight daemons: {voided} pages void after the step of one");
    assert!(voided <= 3, "{voided}");
    mesh.wait_until_synchronised();
    assert!(mesh.watch(Duration::from_secs(2), |_| false).compared > 1_000);
}

#[test]
fn forged_datagrams_change_nothing_and_are_not_answered() {
    let Some(mesh) = Mesh::start(3, &[(0, 0), (5_000_000, -10_000)]) else { return };
    mesh.wait_until_synchronised();
    let target = mesh.hosts[0].address;
    let attacker = UdpSocket::bind("127.0.0.1:0").unwrap();
    attacker.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    // Random bytes, and one that looks like a probe.
    let probe = |tag: u8| [&[1, 1, 0, 1, 0, 0][..], &[tag; 86]].concat();
    for length in 0..200usize {
        attacker.send_to(&vec![length as u8; length], target).unwrap();
        attacker.send_to(&probe(length as u8), target).unwrap();
    }
    assert!(attacker.recv_from(&mut [0; 2_000]).is_err(), "an answer");
    let status = mesh.hosts[0].status();
    // The socket's buffer may overflow.
    assert!(status["refused"]["unauthentic"].as_u64().unwrap() > 100, "{status}");
    assert_eq!(status["state"].as_str(), Some("synchronised"));
    assert!(mesh.watch(Duration::from_secs(1), |_| false).compared > 100);
}

#[test]
fn page_of_an_ended_daemon_expires() {
    let Some(mut mesh) = Mesh::start(4, &[(0, 0), (9_000_000, 20_000)]) else { return };
    mesh.wait_until_synchronised();
    let host = &mut mesh.hosts[1];
    host.stop.store(true, Ordering::Relaxed);
    testing::join_thread(Duration::from_secs(5), "the daemon", host.thread.take().unwrap());
    testing::eventually(Duration::from_secs(8), "the page expires", || host.read(raw_ns()).is_none());
    assert_eq!(host.page.content().unwrap().time(host.clock.at_raw(raw_ns())), Err(clockd::NoTime::Expired));
}
