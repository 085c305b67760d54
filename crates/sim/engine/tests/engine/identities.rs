//! Identities of an outcome: a sound run satisfies them, and each of them can be broken.

use experiment::{
    Dependencies, FlowSpec, HostConfig, Outcome, SeriesConfig, Setup, Start, TieBreak, broken_identities,
};
use fabric::{HostId, PortConfig, Routes, topology};
use laws::PathInfo;
use laws::fixed::{Fixed, Params};
use units::{Bytes, Rate, Span, Time};

/// Two flows to one host, over a port that loses some of their packets.
fn ran() -> (Setup, Outcome) {
    let port = PortConfig::new(Rate::from_gbps(8), Span::from_us(1));
    let narrow = PortConfig { buffer: Bytes::new(20_000), ..port };
    let network = topology::single_switch(&topology::SingleSwitch { hosts: vec![(port, narrow); 3] }).unwrap();
    let flow = |src| FlowSpec {
        src: HostId(src),
        dst: HostId(2),
        size: Bytes::new(200_000),
        start: Start::At(Time::ZERO),
        kind: 0,
        class: 1,
        on_ramp: false,
        coded: false,
        kept: false,
    };
    let setup = Setup {
        routes: Routes::new(&network).unwrap(),
        network,
        symmetric: false,
        flows: vec![flow(0), flow(1)],
        host: HostConfig::default(),
        dependencies: Dependencies::default(),
        modules: Vec::new(),
        ties: TieBreak::default(),
        series: SeriesConfig::default(),
        seed: 0,
        stop: Time::from_ms(100),
        intra_rtt: Span::from_us(4),
    };
    let window = Params { window: Bytes::new(40_960), paced: false };
    let make_law = |_: &FlowSpec, path: &PathInfo| Fixed::new(path, window);
    let outcome = engine::run(&setup, 1, make_law, &mut |_| true);
    (setup, outcome)
}

type Tamper = fn(&mut Outcome);

#[test]
fn each_identity_can_break() {
    let (setup, sound) = ran();
    assert!(sound.flows.iter().all(|flow| flow.completed.is_set() && flow.stats.retransmits > 0), "{sound:?}");
    assert_eq!(broken_identities(&setup, &sound), Vec::<String>::new());
    let breaks: [(Tamper, &str); 16] = [
        (|it| it.engine.data_received -= 1, "data packets sent"),
        (|it| it.engine.data_in_flight += 1, "were in flight at the end"),
        (|it| it.links[2].trims += 1, "1 were trimmed"),
        (|it| it.flows[0].stats.packets_sent += 1, "but their hosts sent"),
        (|it| it.flows[0].credits.received = 1, "of 0 credits sent, 1 arrived and 0 were lost"),
        (|it| it.links[0].credit_drops = 1, "of 0 credits sent, 0 arrived and 1 were lost"),
        (|it| it.flows[1].credits.used = 1, "of 0 credits that flow 1 received it used 1"),
        (|it| it.links[2].lost.acks += 1, "packets by kind"),
        (|it| it.lost_of[0] -= 1, "but flows lost"),
        (|it| it.lost_of[1] = it.flows[1].stats.retransmits as u32 + 1, "flow 1 lost"),
        (|it| it.flows[1].stats.marked = Bytes::new(200_001), "flow 1: 200001 B were marked of 200000 B"),
        (|it| it.flows[1].stats.parity = 1 << 32, "4294967296 parity"),
        (|it| it.flows[0].delivered = Bytes::new(199_999), "flow 0: 199999 B of 200000 B are delivered"),
        (|it| it.flows[0].delivered = Bytes::new(200_001), "flow 0: 200001 B of 200000 B are delivered"),
        (|it| it.links.iter_mut().for_each(|it| it.max_queue = Bytes::new(20_001)), "but its buffer has only 20000 B"),
        (|it| it.links[0].bytes = Bytes::new(1 << 50), "but its rate allows only"),
    ];
    for (tamper, expected) in breaks {
        let mut outcome = sound.clone();
        tamper(&mut outcome);
        let broken = broken_identities(&setup, &outcome);
        assert!(broken.iter().any(|line| line.contains(expected)), "{broken:?} and not {expected}");
    }
    // A flow that has not ended may still send its lost packets again.
    let mut open = sound.clone();
    (open.lost_of[1], open.flows[1].completed) = (open.flows[1].stats.retransmits as u32 + 1, Time::NEVER);
    let broken = broken_identities(&setup, &open);
    assert!(!broken.iter().any(|line| line.contains("flow 1 lost")), "{broken:?}");
}
