//! INT reports of ports to packets, by hand, inside a datacenter and across partitions.

use crate::common;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::common::flow;
use experiment::{FlowSpec, Setup, Start};
use fabric::topology::{Dumbbell, dumbbell};
use fabric::{PortConfig, Switch};
use laws::catalog::{LawKind, ParamValue, build};
use laws::{Ack, ControlLaw, Hop, Law, LawActions, Loss, SendLimits};
use units::{Bytes, Rate, Span, Time};

/// Reports that flows received from the ports that their packets passed, by source and acknowledgement.
type ReportLog = Arc<Mutex<BTreeMap<u32, Vec<Vec<Hop>>>>>;

/// A fixed window that records its feedback.
struct RecordingLaw {
    law: Law,
    source: u32,
    log: ReportLog,
}

impl ControlLaw for RecordingLaw {
    fn on_ack(&mut self, ack: &Ack) {
        self.log.lock().unwrap().entry(self.source).or_default().push(ack.hops.to_vec());
        self.law.on_ack(ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.law.on_loss(loss);
    }
    fn send_limits(&self) -> SendLimits {
        self.law.send_limits()
    }
    fn actions(&self) -> LawActions {
        self.law.actions()
    }
}

const SWITCH: Switch =
    Switch { buffer: Bytes::new(1 << 20), reserve: Bytes::ZERO, egress_alpha: None, pfc: None, int: true };

/// Two pairs of hosts with a link of this rate between their switches; all else has 8 Gb/s, a byte a nanosecond. Every
/// link takes 1 us. Packets have 1,000 bytes.
fn line(between: Rate, apart: bool, flows: Vec<FlowSpec>) -> Setup {
    let edge = PortConfig::new(Rate::from_gbps(8), Span::from_us(1));
    let sides = vec![(edge, edge); 2];
    let bottleneck = PortConfig { rate: between, ..edge };
    let plan = Dumbbell { left: sides.clone(), right: sides, bottleneck, two_datacenters: apart };
    let network = dumbbell(&plan).unwrap().sharing(|_, _| Some(SWITCH));
    let mut setup = common::setup(network, flows, Time::from_ms(1));
    setup.host.mss = 936;
    setup.host.rto_min = Some(Span::from_ms(1));
    setup.host.int = true;
    setup
}

fn reports(setup: &Setup, threads: usize) -> BTreeMap<u32, Vec<Vec<Hop>>> {
    let log = ReportLog::default();
    let settings = [("window", ParamValue::Bytes(Bytes::new(1 << 30)))];
    let make_law = |spec: &FlowSpec, path: &laws::PathInfo| RecordingLaw {
        law: build(LawKind::Fixed, path, &settings).unwrap(),
        source: spec.src.0,
        log: Arc::clone(&log),
    };
    let outcome = engine::run_on(setup, engine::Threads::always(threads), make_law, &mut |_| true);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_set()));
    let log = log.lock().unwrap();
    log.clone()
}

fn hop(ns: u64, sent: u64, queue: u64, rate: Rate) -> Hop {
    Hop { time: Time::from_ns(ns), sent: Bytes::new(sent), queue: Bytes::new(queue), rate }
}

/// Packet k leaves its host at k us, the first switch at k + 2, the second at k + 4; no one waits.
#[test]
fn an_idle_line_reports_times_and_bytes() {
    let full = Rate::from_gbps(8);
    let hops = |k: u64| vec![hop(1_000 * k + 2_000, 1_000 * k, 0, full), hop(1_000 * k + 4_000, 1_000 * k, 0, full)];
    let expected = BTreeMap::from([(0, (0..3).map(hops).collect::<Vec<_>>())]);
    for apart in [false, true] {
        let setup = line(full, apart, vec![flow(0, 2, 3 * 936)]);
        for threads in [1, 2, 3] {
            assert_eq!(reports(&setup, threads), expected, "{threads} threads");
        }
    }
}

/// The link between the switches takes 10 us for a packet. Packets 0 to 3 of host 0 come to it at 2, 3, 4 and 5 us and
/// leave at 2, 12, 22 and 32. The one packet of host 1, sent at 2.5, comes at 4.5: between packets 2 and 3, so that packet
/// 3 leaves at 42. Packets left waiting when each departs: at 12 three packets, at 22 two, at 32 (host 1's) one. The second
/// switch has each 11 us later, and no queue; its ports to hosts 2 and 3 count apart.
#[test]
fn a_queue_is_reported_as_it_is_left_behind() {
    let (slow, full) = (Rate::from_mbps(800), Rate::from_gbps(8));
    let crossing = FlowSpec { start: Start::At(Time::from_ns(2_500)), ..flow(1, 3, 936) };
    let of_0 = [(2_000, 0, 0), (12_000, 1_000, 3_000), (22_000, 2_000, 2_000), (42_000, 4_000, 0)];
    let of_0 = (0..)
        .zip(of_0)
        .map(|(packet, (ns, sent, queue))| vec![hop(ns, sent, queue, slow), hop(ns + 11_000, 1_000 * packet, 0, full)]);
    let of_1 = vec![vec![hop(32_000, 3_000, 1_000, slow), hop(43_000, 0, 0, full)]];
    let expected = BTreeMap::from([(0, of_0.collect::<Vec<_>>()), (1, of_1)]);
    for apart in [false, true] {
        let setup = line(slow, apart, vec![flow(0, 2, 4 * 936), crossing]);
        for threads in [1, 2, 3] {
            assert_eq!(reports(&setup, threads), expected, "{threads} threads");
        }
    }
}

/// Sampling a host's NIC changes nothing of its transmissions; a NIC that loses everything loses reports, too.
#[test]
fn a_sampled_nic_returns_reports() {
    let full = Rate::from_gbps(8);
    let mut setup = line(full, false, vec![flow(0, 2, 3 * 936)]);
    let expected = reports(&setup, 1);
    assert!(expected[&0].iter().all(|hops| hops.len() == 2));
    let nics = (0..4).map(|host| setup.network.uplink(fabric::HostId(host))).collect();
    setup.series = experiment::SeriesConfig { interval: Span::from_us(1), ports: nics, ..setup.series };
    assert_eq!(reports(&setup, 1), expected);
}

/// Switches that are not to report do not, and their packets carry nothing; the others do.
#[test]
fn only_reporting_switches_add_hops() {
    let full = Rate::from_gbps(8);
    let mut setup = line(full, true, vec![flow(0, 2, 936)]);
    setup.network = setup.network.sharing(|network, node| {
        let int = network.nodes()[node.index()].datacenter == 0;
        Some(Switch { int, ..SWITCH })
    });
    assert_eq!(reports(&setup, 2)[&0], [[hop(2_000, 0, 0, full)]]);
    setup.host.int = false;
    assert_eq!(reports(&setup, 2)[&0], [[]]);
}
