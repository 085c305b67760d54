//! A delayed answer refers to the packet that it acknowledges.

use crate::common;
use engine::host::{Context, Nic, PartitionHosts};
use engine::{Body, ForwardingHeader, Packet};
use experiment::HostConfig;
use fabric::{HostId, PortConfig};
use laws::Law;
use laws::catalog::LawKind;
use units::{Rate, Span, Time};

/// A NIC that keeps its packets.
#[derive(Default)]
struct HoldingNic(Vec<Packet>);

impl Nic for HoldingNic {
    fn idle_at(&self) -> Time {
        Time::ZERO
    }

    fn transmit(&mut self, packet: Packet) {
        self.0.push(packet);
    }
}

#[test]
fn a_duplicate_does_not_change_a_delayed_ack() {
    let port = PortConfig::new(Rate::from_gbps(100), Span::from_us(1));
    let network = common::pipe(1, &port, Rate::from_gbps(100), Span::from_us(1));
    let mut setup = common::setup(network, vec![common::flow(0, 1, 1_000_000)], Time::from_ms(1));
    setup.host = HostConfig { ack_every: 4, ..setup.host };
    let law = common::law(LawKind::Dctcp, &[]);
    let context = Context::new(&setup, &law);
    let mut hosts = PartitionHosts::<Law>::new(&[HostId(1)], &setup);
    let mut nic = HoldingNic::default();
    let data = [(0, 1, 7), (1, 1, 7), (0, 2, 9)];
    for (ps, (seq, attempt, entropy)) in (1_000..).zip(data) {
        let header = ForwardingHeader { time: Time::from_ps(ps), entropy, ..ForwardingHeader::default() };
        let packet = Packet::new(header, Body::Data { seq, attempt, credit: None });
        hosts.on_packet(0, &packet, engine::TelemetrySlot::NONE, &context, &mut nic);
    }
    hosts.on_local(0, hosts.next_at(0, Time::ZERO), &context, &mut nic);
    let fields = |ack: &Packet| match ack.body() {
        Body::Ack(header) => (header.seq, header.covers, header.attempt, ack.entropy),
        body => panic!("{body:?} is no acknowledgement"),
    };
    let seen: Vec<_> = nic.0.iter().map(fields).collect();
    assert_eq!(seen, [(0, 1, 2, 9), (1, 2, 1, 7)]);
}
