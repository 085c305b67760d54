//! Coded flows over a network: their cost without losses, and their benefit with losses.

use crate::common::{flow, law, pipe, response_start, run, setup};
use experiment::{Coding, FlowSpec, Outcome, Setup};
use fabric::topology::FatTrees;
use fabric::{Ecn, PortConfig};
use flow::{FlowCoding, LoadBalancing, Plb, UnoLb};
use laws::catalog::{LawKind, ParamValue};
use units::{Bytes, Frac, Rate, Span, Time};

const MSS: u64 = 4_096;

fn coding() -> Coding {
    Coding {
        code: FlowCoding { data: 8, parity: 2, tail: None },
        block_timer: None,
        gaps: false,
        eager: false,
        history: false,
    }
}

fn unolb(random: bool) -> LoadBalancing {
    LoadBalancing::UnoLb(UnoLb { subflows: 10, recent: None, random, own_laws: false })
}

/// One flow of `packets` over a link of 10 Gb/s and 2 ms there and back that loses some.
fn lone(packets: u64, loss_ppm: u64, coding: Option<Coding>) -> Setup {
    let bottleneck = PortConfig {
        buffer: Bytes::new(1 << 20),
        loss: Frac::millionths(loss_ppm),
        ..PortConfig::new(Rate::from_gbps(10), Span::from_us(998))
    };
    let network = pipe(1, &bottleneck, Rate::from_gbps(10), Span::from_us(1));
    let coded = FlowSpec { coded: coding.is_some(), ..flow(0, 1, packets * MSS) };
    let mut setup = setup(network, vec![coded], Time::from_ms(10_000));
    setup.host.coding = coding;
    setup
}

fn fixed(setup: &Setup, window: u64) -> Outcome {
    run(setup, LawKind::Fixed, &[("window", ParamValue::Bytes(Bytes::new(window)))])
}

/// The link of the long way carries exactly m/k more than without coding, and the flow lasts as much longer as that takes:
/// the parity of all blocks but the last, which is not waited for.
#[test]
fn parity_is_the_only_overhead_without_loss() {
    let [plain, coded] = [None, Some(coding())].map(|coding| {
        let setup = lone(800, 0, coding);
        (fixed(&setup, 1 << 30), setup)
    });
    let busiest = |outcome: &Outcome| outcome.links.iter().map(|link| link.bytes).max();
    let more = busiest(&coded.0).zip(busiest(&plain.0)).map(|(coded, plain)| (coded.get(), plain.get()));
    assert_eq!(more, Some((1_000 * (MSS + 64), 800 * (MSS + 64))));
    let (plain, coded) = (plain.0.flows[0], coded.0.flows[0]);
    assert_eq!(coded.stats, flow::FlowStats { packets_sent: 1_000, parity: 200, ..plain.stats });
    assert_eq!(coded.delivered, plain.delivered);
    let packet = Rate::from_gbps(10).tx_time(Bytes::new(MSS + 64));
    assert_eq!(coded.completed.since(plain.completed), packet.times(198));
}

/// Ports that mark all packets that wait: the payload that counts as marked is that of data. Parity is no payload.
#[test]
fn marked_payload_is_at_most_what_is_delivered() {
    let all = Ecn { min: Bytes::ZERO, max: Bytes::new(1), max_probability: Frac::ONE };
    let bottleneck = PortConfig {
        buffer: Bytes::new(1 << 20),
        ecn: Some(all),
        ..PortConfig::new(Rate::from_gbps(10), Span::from_us(998))
    };
    let network = pipe(1, &bottleneck, Rate::from_gbps(100), Span::from_us(1));
    let mut setup = setup(network, vec![FlowSpec { coded: true, ..flow(0, 1, 20 * MSS) }], Time::from_ms(100));
    setup.host.coding = Some(Coding { code: FlowCoding { data: 1, parity: 4, tail: None }, ..coding() });
    let end = fixed(&setup, 1 << 30).flows[0];
    assert!(end.completed.is_set() && end.stats.marked >= Bytes::new(15 * MSS), "{end:?}");
    assert!(end.stats.marked <= end.delivered, "{end:?}");
}

/// At 1 % loss each way, where a lost acknowledgement is a loss to the sender, 15 % of blocks of ten lose packets of
/// their data and can recover them, and 1 in 1,200 cannot: the flow ends about a round trip earlier, and sends almost
/// nothing again.
#[test]
fn losses_are_recovered_without_retransmission() {
    let [plain, coded] = [None, Some(coding())].map(|coding| fixed(&lone(800, 10_000, coding), 1 << 30).flows[0]);
    assert!(plain.stats.retransmits >= 3, "{plain:?}");
    assert!(coded.stats.recovered >= 3 && coded.stats.retransmits <= 2, "{coded:?}");
    assert!(coded.completed.is_set() && coded.delivered == plain.delivered);
    // The tail's losses cost nothing but the time of the parity.
    let packet = Rate::from_gbps(10).tx_time(Bytes::new(MSS + 64));
    assert!(coded.completed + Span::from_ms(1) < plain.completed + packet.times(200), "{coded:?} {plain:?}");
}

/// With three packets in ten lost in both directions, blocks are requested, and each way of requesting completes the
/// flow.
#[test]
fn unrecoverable_blocks_are_requested() {
    for (gaps, eager) in [(false, false), (true, false), (false, true)] {
        let coding = Coding { gaps, eager, ..coding() };
        let outcome = fixed(&lone(160, 300_000, Some(coding)), 1 << 30).flows[0];
        assert!(outcome.completed.is_set(), "{outcome:?}");
        assert!(outcome.stats.nacks > 0 && outcome.stats.retransmits > 0, "{outcome:?}");
        // Half of ten packets or their acknowledgements are five; a block sends again what it misses beyond two, and half
        // of that again: six, of 20 blocks.
        assert!((60..160).contains(&outcome.stats.retransmits), "{outcome:?}");
    }
}

/// The tail alone costs its parity alone.
#[test]
fn a_tail_alone_can_be_coded() {
    let code = FlowCoding { tail: Some(Bytes::new(80 * MSS)), ..coding().code };
    let outcome = fixed(&lone(800, 0, Some(Coding { code, ..coding() })), 1 << 30).flows[0];
    assert_eq!((outcome.stats.packets_sent, outcome.stats.parity), (820, 20));
}

/// An answering flow starts when its blocks are complete: it waits neither for the last block's parity nor for
/// packets that decoding recovered.
#[test]
fn a_response_starts_when_the_blocks_are_complete() {
    for loss_ppm in [0, 10_000] {
        let mut setup = lone(800, loss_ppm, Some(coding()));
        let second =
            FlowSpec { start: response_start(&mut setup.dependencies, 0, Span::from_us(7)), ..flow(1, 0, 1_000) };
        setup.flows.push(second);
        let outcome = fixed(&setup, 1 << 30);
        let started = outcome.flows[1].started;
        let back = setup.one_way(second.src, second.dst);
        let known = outcome.flows[0].completed - back + Span::from_us(7);
        // The packet that completes it is acknowledged at once; only that acknowledgement may be lost.
        assert!(if loss_ppm == 0 { started == known } else { started <= known }, "{started}, not {known}");
        assert!(outcome.flows[0].stats.recovered > 0 || loss_ppm == 0);
        assert!(outcome.flows[1].completed.is_set());
    }
}

/// Two datacenters, losses everywhere, every choice of paths: the same bits at any number of threads.
#[test]
fn coded_flows_give_the_same_bits_at_any_number_of_threads() {
    let port = PortConfig {
        buffer: Bytes::new(60_000),
        loss: Frac::millionths(20_000),
        ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1))
    };
    let network = FatTrees { k: 4, hosts_per_edge: 2, ..FatTrees::uno(port, Span::from_us(40)) }.build().unwrap();
    let hosts = network.hosts().len() as u32;
    let flows: Vec<FlowSpec> = (0..hosts)
        .map(|src| (src, (src * 7 + 5) % hosts))
        .filter(|(src, dst)| src != dst)
        .map(|(src, dst)| FlowSpec { coded: src % 4 > 0, ..flow(src, dst, 300_000) })
        .collect();
    let plb = LoadBalancing::Plb(Plb { threshold: Frac::HALF, idle_rounds: 1, rounds: 2 });
    for path in [LoadBalancing::PerFlow, LoadBalancing::PerPacket(64), unolb(false), unolb(true), plb] {
        let gaps = !matches!(path, LoadBalancing::PerPacket(_));
        let mut setup = setup(network.clone(), flows.clone(), Time::from_ms(200));
        (setup.host.path, setup.host.coding) = (path, Some(Coding { gaps, ..coding() }));
        let factory = law(LawKind::UnoCc, &[]);
        let one = engine::run(&setup, 1, &factory, &mut |_| true);
        assert!(one.flows.iter().any(|flow| flow.stats.recovered > 0) && one.flows.iter().any(|it| it.stats.nacks > 0));
        for threads in [1, 2, 3] {
            let mut other = engine::run_on(&setup, engine::Threads::always(threads), &factory, &mut |_| true);
            other.engine.threads = one.engine.threads;
            assert!(one == other, "{threads} threads differ from one under {path:?}");
        }
    }
}
