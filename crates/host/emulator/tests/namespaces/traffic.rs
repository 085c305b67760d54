//! Traffic between hosts through the emulated link.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use emulator::{Clock, DEVICE};
use fabric::topology::{FatTrees, InterLinks};
use fabric::{Ecn, HostId, PortConfig};
use pcap_file::pcapng::{Block, PcapNgReader};
use router::packet::{fold, sum};
use testing::{DEFAULT_TIMEOUT, join_thread};
use units::{Bytes, Frac, Rate, Span};

use crate::raw::{RawSocket, cut_datagrams};
use crate::set::{ALICE, BOB, Set, middle, set, set_of};

impl Set {
    fn listen(&self, host: HostId, address: IpAddr) -> TcpListener {
        self.hosts.enter(host, || TcpListener::bind((address, 0))).unwrap().unwrap()
    }

    fn connect(&self, host: HostId, to: &TcpListener) -> TcpStream {
        let address = to.local_addr().unwrap();
        let stream = self.hosts.enter(host, || TcpStream::connect_timeout(&address, Duration::from_secs(5)));
        let stream = stream.unwrap().unwrap();
        stream.set_nodelay(true).unwrap();
        limit(&stream);
        stream
    }

    /// Sends that many bytes from Alice to Bob; they must be the same there.
    pub(crate) fn transfer(&self, length: usize) {
        self.transfer_between(ALICE, BOB, length);
    }

    fn transfer_between(&self, from: HostId, to: HostId, length: usize) {
        let listener = self.listen(to, self.plan(to).v4.into());
        let mut sender = self.connect(from, &listener);
        let receiver = thread::spawn(move || {
            let mut received = Vec::new();
            let mut stream = listener.accept().unwrap().0;
            limit(&stream);
            stream.read_to_end(&mut received).unwrap();
            received
        });
        let sent: Vec<u8> = (0..length).map(|at| (at / 7) as u8).collect();
        sender.write_all(&sent).unwrap();
        drop(sender);
        assert!(
            join_thread(DEFAULT_TIMEOUT, "the receiver reads to the end", receiver) == sent,
            "what came is what was sent"
        );
    }

    /// A counter of the kernel's, in a host's namespace.
    fn counter(&self, host: HostId, name: &str) -> u64 {
        let table = self.hosts.enter(host, || std::fs::read_to_string("/proc/thread-self/net/netstat")).unwrap();
        let table = table.unwrap();
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        let pair = rows.chunks(2).find_map(|pair| Some((pair[0].iter().position(|it| *it == name)?, &pair[1])));
        pair.unwrap().1[pair.unwrap().0].parse().unwrap()
    }
}

/// Bounds each read and write.
fn limit(stream: &TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
}

/// Answers one byte with one byte until the other end closes.
fn echo(listener: TcpListener) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.set_nodelay(true).unwrap();
        limit(&stream);
        let mut byte = [0];
        while stream.read(&mut byte).unwrap() == 1 {
            stream.write_all(&byte).unwrap();
        }
    })
}

#[test]
fn tcp_of_both_families_takes_the_links_round_trip() {
    let Some(set) = set(&middle()) else { return };
    let router = set.route(Vec::new());
    let clock = Clock::start();
    for address in [IpAddr::from(set.plan(BOB).v4), set.plan(BOB).v6.into()] {
        let listener = set.listen(BOB, address);
        let mut stream = set.connect(ALICE, &listener);
        let echoes = echo(listener);
        let round_trip = |_| {
            let began = clock.now();
            stream.write_all(&[7]).unwrap();
            stream.read_exact(&mut [0]).unwrap();
            clock.now().since(began)
        };
        let least = (0..20).map(round_trip).min().unwrap();
        // Two links of 5 ms and four of 1 us, plus the minimum delay of the machine, without real-time priority.
        assert!(least >= Span::from_us(10_004) && least < Span::from_us(11_500), "{address}: {least}");
        drop(stream);
        join_thread(DEFAULT_TIMEOUT, "the echoes end", echoes);
    }
    let outcome = router.stop().unwrap();
    assert!(outcome.lateness.count > 80 && outcome.packets_read > 80, "{outcome:?}");
}

#[test]
fn tcp_survives_losses() {
    let Some(set) = set(&PortConfig { loss: Frac::ratio(1, 100), ..middle() }) else { return };
    let router = set.route(Vec::new());
    set.transfer(3_000_000);
    // TCP's retransmissions may arrive after all bytes. Ten round trips, and less than the 200 ms of a timeout.
    thread::sleep(Duration::from_millis(100));
    let outcome = router.stop().unwrap();
    let link = outcome.links[set.link("left>right").index()];
    assert!(link.losses > 0 && link.bytes > Bytes::new(3_000_000), "{link:?}");
    // Each packet but those lost or dropped came through each port.
    let last = outcome.links[set.link("right>bob").index()];
    assert_eq!(last.packets, link.packets - link.losses);
}

#[test]
fn receivers_count_ecn_marks() {
    let step = Ecn { min: Bytes::new(30_000), max: Bytes::new(30_000), max_probability: Frac::ONE };
    let Some(set) = set(&PortConfig { ecn: Some(step), ..middle() }) else { return };
    let router = set.route(Vec::new());
    set.transfer(10_000_000);
    let marked = set.counter(BOB, "InCEPkts");
    let outcome = router.stop().unwrap();
    let link = outcome.links[set.link("left>right").index()];
    assert!(link.marks > 0, "{link:?}");
    // The kernel counts segments that it is given as one packet once.
    assert!(marked > 0 && marked <= link.marks, "{marked} of {}", link.marks);
    let no_ect = set.counter(BOB, "InNoECTPkts");
    assert!(no_ect < marked / 4, "{no_ect} packets, more than are sent again, could not be marked");
}

#[test]
fn gso_datagrams_are_segmented() {
    let Some(set) = set(&middle()) else { return };
    let router = set.route(Vec::new());
    for (from, to) in [
        (IpAddr::from(set.plan(ALICE).v4), IpAddr::from(set.plan(BOB).v4)),
        (set.plan(ALICE).v6.into(), set.plan(BOB).v6.into()),
    ] {
        let receiver = set.hosts.enter(BOB, || UdpSocket::bind((to, 0))).unwrap().unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let sender = set.hosts.enter(ALICE, || UdpSocket::bind((from, 0))).unwrap().unwrap();
        assert!(cut_datagrams(&sender, 1000));
        let sent: Vec<u8> = (0..9500).map(|at| (at / 100) as u8).collect();
        sender.send_to(&sent, receiver.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 2000];
        for datagram in sent.chunks(1000) {
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], datagram);
        }
    }
    let outcome = router.stop().unwrap();
    assert_eq!(outcome.refused, router::RefusedPackets::default());
}

#[test]
fn many_hosts_in_two_datacenters_reach_one_another() {
    let port = PortConfig { buffer: Bytes::new(1_000_000), ..PortConfig::new(Rate::from_mbps(500), Span::from_us(10)) };
    let trees = FatTrees {
        datacenters: 2,
        k: 2,
        hosts_per_edge: 2,
        nic: PortConfig::new(Rate::from_mbps(500), Span::from_us(10)),
        host: port,
        edge: port,
        core: port,
        border: port,
        border_links_per_core: 2,
        inter: vec![InterLinks { between: (0, 1), count: 2, port: PortConfig { delay: Span::from_ms(2), ..port } }],
    };
    let Some(set) = set_of(trees.build().unwrap()) else { return };
    let router = set.route(Vec::new());
    let hosts = set.hosts.plan().len() as u32;
    thread::scope(|scope| {
        for from in 0..hosts {
            let set = &set;
            scope.spawn(move || set.transfer_between(HostId(from), HostId((from + 3) % hosts), 200_000));
        }
    });
    let outcome = router.stop().unwrap();
    assert_eq!(outcome.refused, router::RefusedPackets::default());
    assert_eq!(hosts, 8);
}

#[test]
fn hosts_know_one_another_by_name() {
    let Some(set) = set(&middle()) else { return };
    let output = set.hosts.command(ALICE, "cat").unwrap().arg("/etc/hosts").output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    for line in ["10.198.0.1 alice", "fd6e:6172::1:1 bob", "127.0.0.1 localhost"] {
        assert!(names.lines().any(|it| it == line), "{line} in {names}");
    }
}

#[test]
fn captures_show_whole_packets_at_scheduled_times() {
    let Some(set) = set(&middle()) else { return };
    let path = std::env::temp_dir().join(format!("narrows-capture-{}.pcapng", std::process::id()));
    let router = set.route(vec![(set.link("left>right"), path.clone())]);
    set.transfer(500_000);
    let outcome = router.stop().unwrap();
    let link = outcome.links[set.link("left>right").index()];
    assert_eq!(outcome.capture_missed, 0);
    let mut reader = PcapNgReader::new(File::open(&path).unwrap()).unwrap();
    let mut times = Vec::new();
    let mut bytes = 0;
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        times.push(packet.timestamp);
        bytes += packet.data.len() as u64;
        assert_eq!(fold(sum(&packet.data[..20])), 0xffff, "IPv4's checksum");
        let pseudo = sum(&packet.data[12..20]) + 6 + packet.data.len() as u32 - 20;
        assert_eq!(fold(pseudo + sum(&packet.data[20..])), 0xffff, "TCP's checksum");
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!((times.len() as u64, bytes), (link.packets, link.bytes.get()));
    // Full packets are 60 us apart at 200 Mb/s, and never less than an acknowledgement is long.
    assert!(times.windows(2).all(|pair| pair[1] >= pair[0] + Duration::from_nanos(1600)), "spaced by the link");
}

#[test]
fn invalid_packets_are_counted_and_dropped() {
    let Some(set) = set(&middle()) else { return };
    let router = set.route(Vec::new());
    let taken = set.hosts.enter(ALICE, || {
        let raw = RawSocket::open(DEVICE);
        let mut taken = 0u64;
        for round in 0..2000u64 {
            let random = |at: u64| units::mix64(round << 20 | at);
            let length = random(0) % 1501;
            let mut bytes: Vec<u8> = (1..=length).map(|at| random(at) as u8).collect();
            // At least half of it claims to be IP.
            if let (Some(first), 1) = (bytes.first_mut(), round % 2) {
                *first = if round % 4 == 1 { 0x45 } else { 0x60 };
            }
            taken += u64::from(raw.send(&bytes, if round % 4 == 3 { 0x86dd } else { 0x0800 }));
        }
        taken
    });
    let taken = taken.unwrap();
    set.transfer(200_000);
    let outcome = router.stop().unwrap();
    let refused = outcome.refused.malformed + outcome.refused.truncated + outcome.refused.unroutable;
    assert!(taken > 1000 && refused > taken / 2, "{refused} of {taken}: {:?}", outcome.refused);
}
