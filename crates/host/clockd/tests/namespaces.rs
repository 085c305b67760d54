//! Two daemons in network namespaces of their own, over a pair of veth devices and IPv6: packets take the path of a host's
//! network, with timestamps of the device. The system clock and `CLOCK_MONOTONIC_RAW` are common to both; offset and drift
//! are injected.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clockd::{ArtificialClock, Daemon, DaemonConfig, HostClock, MeshKey, PageReader, PeerConfig, UtcSource, raw_ns};
use clocks::{Member, MemberConfig, MeshConfig, Skew};
use testing::Bounded as _;

/// Namespaces that are removed at the end.
struct Namespaces([String; 2]);

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).finish();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

impl Namespaces {
    fn new() -> Result<Self, String> {
        let names = [0, 1].map(|index| format!("clockd-{}-{index}", std::process::id()));
        let namespaces = Self(names);
        let [one, other] = &namespaces.0;
        ip(&format!("netns add {one}"))?;
        ip(&format!("netns add {other}"))?;
        ip(&format!("link add eth0 netns {one} type veth peer name eth0 netns {other}"))?;
        for (index, name) in namespaces.0.iter().enumerate() {
            ip(&format!("-n {name} addr add fd00:7::{}/64 dev eth0 nodad", index + 1))?;
            ip(&format!("-n {name} link set eth0 up"))?;
        }
        Ok(namespaces)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn config(own: u16, directory: &std::path::Path, clock: Arc<ArtificialClock>) -> DaemonConfig {
    let peer = |index: usize| PeerConfig {
        name: format!("host{index}"),
        address: format!("[fd00:7::{}]:7123", index + 1).parse().unwrap(),
        utc: UtcSource::None,
    };
    DaemonConfig {
        mesh: MeshConfig::new((0..2).map(|id| MemberConfig { id, site: 0 }).collect()),
        peers: (0..2).map(peer).collect(),
        own: Member(own),
        key: MeshKey::derive(b"a key for tests.", b"namespaces"),
        page: directory.join(format!("page{own}")),
        status: None,
        metrics: None,
        clock_bound: None,
        clock: HostClock::artificial(clock),
    }
}

#[test]
fn daemons_agree_over_veth() {
    const TEST: &str = "daemons_agree_over_veth";
    if Command::new("ip").arg("-V").output().is_err() {
        return testing::skipped_without(TEST, "ip");
    }
    let namespaces = match Namespaces::new() {
        Ok(namespaces) => namespaces,
        Err(error) => return testing::skipped(TEST, &format!("no network namespaces: {error}")),
    };
    let directory: PathBuf = std::env::temp_dir().join(format!("narrows-clockd-veth-{}", std::process::id()));
    let clocks =
        [ArtificialClock::new(0, Skew::ZERO), ArtificialClock::new(3_600_000_000_000, Skew::from_ppb(-25_000))];
    let stop = Arc::new(AtomicBool::new(false));
    let start = |index: usize| {
        let config = config(index as u16, &directory, clocks[index].clone());
        let namespace = File::open(format!("/var/run/netns/{}", namespaces.0[index])).unwrap();
        let stop = stop.clone();
        std::thread::spawn(move || {
            nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            let mut daemon = Daemon::new(config).unwrap();
            daemon.run(&stop, &mut |_| {}).unwrap();
            daemon.status()
        })
    };
    let threads = [0, 1].map(start);
    let open = |index: usize| {
        let path = directory.join(format!("page{index}"));
        testing::eventually(Duration::from_secs(5), "the page", || path.exists());
        PageReader::open(&path).unwrap()
    };
    let pages = [0, 1].map(open);
    let read = |raw: i64| {
        let time = |index: usize| pages[index].content().ok()?.time(clocks[index].at_raw(raw)).ok();
        Some([time(0)?, time(1)?])
    };
    testing::eventually(Duration::from_secs(40), "both pages have a time", || read(raw_ns()).is_some());
    let (mut distance, mut bound) = (0, 0);
    for _ in 0..5_000 {
        if let Some([one, other]) = read(raw_ns()) {
            let apart = (one.ns - other.ns).abs();
            assert!(apart <= one.error_ns + other.error_ns, "{one:?} {other:?}");
            (distance, bound) = (apart.max(distance), one.error_ns.max(other.error_ns).max(bound));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(bound > 0);
    println!("veth: at most {distance} ns apart, bounds at most {bound} ns");
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        let status = testing::join_thread(Duration::from_secs(5), "a daemon", thread);
        assert!(status.socket.transmit_stamps > 100 && status.socket.resets == 0, "{status:?}");
        println!("{}", status.to_json());
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
