//! A run that checks itself has the same outcome, and finds nothing wrong. So has a run that is recorded.

use crate::common;
use crate::common::random::{case, one_law, sharing_case, uncoded};
use engine::Recorded;
use experiment::{FlowId, HostConfig, Jitter, JitterShape, LinkSpan, PacketKind, RecordConfig, Setup};
use fabric::topology::{SingleSwitch, single_switch};
use fabric::{CreditQueue, LinkId, PortConfig};
use laws::catalog::LawKind;
use proptest::prelude::*;
use units::{Bytes, Rate, Span, Time};

fn assert_sound(setup: &Setup, kind: LawKind) {
    let factory = common::law(kind, &[]);
    let one = engine::run(setup, 1, &factory, &mut |_| true);
    let mut checked = engine::run_checked(setup, 2, &factory, &mut |_| true).unwrap();
    checked.engine.threads = one.engine.threads;
    assert!(one == checked, "checks change the outcome");
    let flows: Vec<FlowId> = (0..setup.flows.len() as u32).step_by(2).map(FlowId).collect();
    let spans = (0..setup.network.links().len() as u32).map(|link| LinkSpan {
        link: LinkId(link),
        start: Time::ZERO,
        end: setup.stop,
        tag: link,
    });
    let record = RecordConfig { flows, spans: spans.collect() };
    let Recorded { mut outcome, recording } = engine::run_recorded(setup, 2, &factory, &mut |_| true, &record);
    outcome.engine.threads = one.engine.threads;
    assert!(one == outcome, "the recorder changes the outcome");
    for log in &recording.flows {
        let data = log.departures.iter().filter(|it| it.packet.kind == PacketKind::Data).count() as u64;
        let flow = &one.flows[log.flow as usize];
        assert_eq!(data, flow.stats.packets_sent, "departures of flow {}", log.flow);
        let lost = log.losses.iter().filter(|it| it.packet.kind == PacketKind::Data).count() as u32;
        assert!(lost <= one.lost_of[log.flow as usize], "losses of flow {}", log.flow);
        assert_eq!(log.sender.first().map(|event| event.time), flow.started.is_set().then_some(flow.started));
    }
    // A link is in use for as long as its packets take, and no longer than the run.
    for (sum, time) in &recording.uses {
        assert!(*time <= one.until.ps(), "{sum:?}");
    }
}

/// Adds a stage between law and NIC, or between NIC and transport, or delayed acknowledgements.
fn equip(host: &mut HostConfig, which: u32) {
    match which {
        0 => host.ack_every = 3,
        1 => {
            host.segment = 4 * host.mss;
            host.small_queue = Some(Bytes::new(8 * u64::from(host.mss)));
        }
        2 => host.jitter = Some(Jitter { mean: Span::from_us(2), shape: JitterShape::Uniform }),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_networks_pass_all_checks(mut case in case(), which in 0..4u32) {
        if which < 2 {
            // With a law for each subflow, packets neither leave nor are acknowledged in groups; nor with histories in
            // ACKs.
            one_law(&mut case.setup);
            uncoded(&mut case.setup);
        }
        equip(&mut case.setup.host, which);
        assert_sound(&case.setup, case.kind);
    }

    #[test]
    fn shared_buffer_switches_pass_all_checks(case in sharing_case()) {
        assert_sound(&case.setup, case.kind);
    }
}

#[test]
fn credits_pass_all_checks() {
    let nic = PortConfig {
        credits: Some(CreditQueue::flashpass()),
        ..PortConfig::new(Rate::from_gbps(10), Span::from_us(2))
    };
    let network = single_switch(&SingleSwitch { hosts: vec![(nic, nic); 5] }).unwrap();
    let flows = (0..4).map(|src| common::flow(src, 4, 300_000)).collect();
    let setup = common::setup(network, flows, Time::from_ms(20));
    for kind in [LawKind::FlashPass, LawKind::ExpressPass] {
        assert_sound(&setup, kind);
    }
}
