//! `kind = "closed-loop"`: clients and servers, the duration of reads, reads under way, and the errors of a wrong
//! table.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use experiment::{Dependency, FlowId, Outcome};
use proptest::prelude::*;
use scenario::{BuiltRun, Error, Overrides, parse};
use units::{Bytes, Rate, Span, Time};

use crate::location::points_at;

/// Eight hosts at 10 Gb/s on a switch, 1 us from each: a packet of 4,096 bytes and a header of 64 takes 3,328 ns a link, an
/// acknowledgement 51.2.
fn switch(law: &str, buffer: &str) -> String {
    let window = if law == "fixed" { "params.fixed = { window = \"1GB\" }\n" } else { "" };
    format!(
        "name = \"t\"\nstop = \"3ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 8\nrate = \"10Gbps\"\n[port]\n\
         buffer = \"{buffer}\"\necn = \"off\"\n[schemes.a]\nlaw = \"{law}\"\n{window}"
    )
}

fn closed(keys: &str) -> String {
    format!("[[traffic]]\nkind = \"closed-loop\"\n{}\n", keys.replace(", ", "\n"))
}

fn build(base: &str, more: &str) -> Result<BuiltRun, Error> {
    parse(&format!("{base}{more}"), "test.toml", &Overrides::default()).and_then(|scenario| scenario.runs()[0].build())
}

#[track_caller]
fn built(more: &str) -> BuiltRun {
    build(&switch("fixed", "unlimited"), more).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn refused(keys: &str, location: &str, names: &[&str]) {
    points_at(&build(&switch("fixed", "unlimited"), &closed(keys)).expect_err(keys), location, names);
}

fn run(built: &BuiltRun) -> Outcome {
    engine::run(&built.setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true)
}

/// By client, the flows of each connection in order.
fn connections(built: &BuiltRun) -> BTreeMap<u32, Vec<Vec<u32>>> {
    let mut clients: BTreeMap<u32, Vec<Vec<u32>>> = BTreeMap::new();
    for (number, flow) in (0..).zip(&built.setup.flows) {
        let chains = clients.entry(flow.dst.0).or_default();
        match built.setup.dependencies_of(flow).first() {
            None => chains.push(vec![number]),
            Some(cause) => {
                let chain = chains.iter_mut().find(|chain| chain.last() == Some(&cause.flow().0));
                chain.expect("a read follows the last one of a connection").push(number);
            }
        }
    }
    clients
}

/// Reads of ten packets, one after another: each takes the time of ten packets on the first link and of the last packet on
/// the second, plus the propagation delay both ways. Reads on kept connections take the same time, because their
/// acknowledgements are not slower.
#[test]
fn reads_one_after_another_take_their_size_over_the_rate_and_a_round_trip_each() {
    for (connections, think_ns) in [("new", 0), ("persistent", 0), ("persistent", 700)] {
        let keys = format!(
            "clients = [3], servers = [5], size = 40960, reads = 20, start = \"4us\", compute = \"{think_ns}ns\", \
             connections = \"{connections}\""
        );
        let built = built(&closed(&keys));
        let outcome = run(&built);
        let (transfer, there, back) = (10 * 3_328_000, 3_328_000 + 2_000_000, 2 * 51_200 + 2_000_000);
        let each = transfer + there + back + think_ns * 1_000;
        assert_eq!(outcome.flows.len(), 20);
        for (turn, flow) in (0..).zip(&outcome.flows) {
            assert_eq!(flow.started, Time::from_us(4) + Span::from_ps(turn * each), "read {turn}, {connections}");
        }
        let last = outcome.flows.last().unwrap().completed;
        assert_eq!(last, Time::from_us(4) + Span::from_ps(20 * each - think_ns * 1_000));
    }
}

#[test]
fn clients_next_to_each_other_share_a_server() {
    let keys = "clients = \"0..4\", servers = [6,7], outstanding = 3, reads = 7, size = 1000, stagger = \"1us\"";
    let wide = built(&closed(keys));
    let ends: Vec<(u32, u32)> = wide.setup.flows[..12].iter().map(|flow| (flow.src.0, flow.dst.0)).collect();
    assert_eq!(ends, [(6, 0), (6, 1), (7, 2), (7, 3)].into_iter().flat_map(|pair| [pair; 3]).collect::<Vec<_>>());
    // Seven reads on three connections: 3, 2 and 2.
    for chains in connections(&wide).values() {
        assert_eq!(chains.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2, 2]);
    }
    let outcome = run(&wide);
    for flow in 0..12 {
        assert_eq!(outcome.flows[flow].started, Time::from_us(flow as u64));
    }
    // The first two clients read from the same server, whatever the other clients do.
    let narrow = built(&closed(&format!("{keys}, active = 2")));
    let clients: Vec<u32> = connections(&narrow).into_keys().collect();
    assert_eq!((clients, narrow.setup.flows.len(), narrow.report.flows), (vec![0, 1], 14, 14));
    assert!(narrow.setup.flows.iter().all(|flow| flow.src.0 == 6) && narrow.open_ended.is_empty());
}

/// A read waits for the receipt of the previous one; on a kept connection for the acknowledgement, too, or it would open
/// another connection.
#[test]
fn reads_of_a_connection_are_sequential() {
    let list = "[[traffic]]\nkind = \"long\"\nflows = [[0, 1]]\nsize = 1000\n";
    let keys = "clients = [1], servers = [2], outstanding = 2, reads = 4, size = 1000";
    let [fresh, kept] = ["new", "persistent"].map(|connections| {
        let built = built(&format!("{list}{}", closed(&format!("{keys}, connections = \"{connections}\""))));
        let flow = &built.setup.flows[3];
        (built.setup.dependencies_of(flow).to_vec(), flow.kept)
    });
    // The entry's flow 0 is the run's flow 1.
    assert_eq!(fresh, (vec![Dependency::Received(FlowId(1))], false));
    assert_eq!(kept, (vec![Dependency::Received(FlowId(1)), Dependency::Complete(FlowId(1))], true));
}

/// A read has its size, whichever other clients read and until when.
#[test]
fn sizes_are_drawn_by_connection_and_turn() {
    let keys = "clients = \"0..4\", servers = \"4..8\", sizes = \"google-rpc\", outstanding = 2";
    let sizes = |keys: &str| {
        let built = built(&closed(keys));
        let clients = connections(&built);
        let size = |&flow: &u32| built.setup.flows[flow as usize].size.get();
        clients[&1].iter().map(|chain| chain.iter().take(5).map(size).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let all = sizes(keys);
    assert_eq!((all.len(), all[0].len()), (2, 5));
    assert_ne!(all[0], all[1]);
    assert_eq!(all, sizes(&format!("{keys}, reads = 40")));
    assert_eq!(all, sizes(&format!("{keys}, active = 2")));
}

/// Flows that read until the stop are more than fit, and are marked as open-ended.
#[test]
fn reads_until_the_stop_do_not_end_before_it() {
    let list = "[[traffic]]\nkind = \"long\"\nflows = [[0, 1]]\nsize = 1000\n";
    for size in [1, 4_096, 100_000, 5_000_000] {
        let keys =
            format!("clients = [3,4], servers = [5,6], outstanding = 2, size = {size}, connections = \"persistent\"");
        let built = built(&format!("{list}{}", closed(&keys)));
        let reads = 1..built.setup.flows.len() as u32;
        assert_eq!(built.open_ended, [reads]);
        // The report counts flows that are sure to start, and contains the loop.
        assert_eq!((built.report.flows, built.report.payload), (1, Bytes::new(1_000)));
        let closed = &built.report.loops[0];
        assert_eq!((closed.traffic, closed.clients, closed.outstanding, closed.reads), (1, 2, 2, None));
        assert_eq!((closed.mean_size, closed.at_most), (Bytes::new(size), Rate::from_gbps(20)));
        let outcome = run(&built);
        assert_eq!(outcome.ended, built.setup.stop);
        for chain in connections(&built).values().filter(|chains| chains.len() == 2).flatten() {
            let last = &outcome.flows[*chain.last().unwrap() as usize];
            assert!(!last.completed.is_set(), "{} reads of {size} bytes were too few", chain.len());
        }
    }
}

#[test]
fn closed_loop_may_have_no_client() {
    let none = closed("clients = [1], servers = [2], size = 1000, active = 0");
    let list = "[[traffic]]\nkind = \"long\"\nflows = [[0, 1]]\nsize = 1000\n";
    assert_eq!(built(&format!("{list}{none}")).setup.flows.len(), 1);
    let text = build(&switch("fixed", "unlimited"), &none).expect_err("no flow at all").to_string();
    assert!(text.contains("zero flows"), "{text}");
}

#[test]
fn invalid_closed_loops_are_errors() {
    let valid = "clients = \"0..4\", servers = [6,7]";
    refused(valid, "test.toml:15:11", &["sizes = \"websearch\""]);
    refused(&format!("{valid}, size = 10, sizes = \"websearch\""), "test.toml:18:9", &[]);
    refused(&format!("{valid}, size = 0"), "test.toml:17:8", &[]);
    refused(&format!("{valid}, size = 10, active = 5"), "test.toml:18:10", &[]);
    refused(&format!("{valid}, size = 10, outstanding = 0"), "test.toml:18:15", &[]);
    refused(&format!("{valid}, size = 10, reads = 4000000000"), "test.toml:18:9", &["10000000"]);
    refused(&format!("{valid}, size = 1, outstanding = 4000000000"), "test.toml:18:15", &["`reads`"]);
    refused("clients = [3,6], servers = [5,6], size = 10", "test.toml:15:11", &[]);
    refused("clients = [9], servers = [5], size = 10", "test.toml:15:12", &[]);
    refused("servers = [5], size = 10", "test.toml:13:1", &[]);
    refused(&format!("{valid}, size = 10, outstandin = 3"), "test.toml:18:1", &["`outstanding`"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// On kept connections without think time exactly `outstanding` reads of each client are under way at any moment from the
    /// first to the stop, whatever is lost on the way: a read ends with its acknowledgement, and the next one begins with it.
    #[test]
    fn outstanding_reads_are_constant(
        clients in 1u32..5,
        outstanding in 1u32..5,
        sizes in prop_oneof![Just("google-rpc"), Just("alibaba-storage"), Just("websearch")],
        law in prop_oneof![Just("newreno"), Just("cubic"), Just("fixed")],
        buffer in prop_oneof![Just("30KB"), Just("unlimited")],
        seed in 1u64..1_000,
    ) {
        let keys = format!(
            "clients = \"0..{clients}\", servers = \"5..7\", outstanding = {outstanding}, sizes = \"{sizes}\", \
             connections = \"persistent\""
        );
        let text = format!("seed = {seed}\n{}{}", switch(law, buffer), closed(&keys));
        let built = parse(&text, "test.toml", &Overrides::default()).unwrap().runs()[0].build().unwrap();
        let outcome = run(&built);
        for client in 0..clients {
            let reads = || {
                let flows = built.setup.flows.iter().zip(&outcome.flows).filter(|(spec, _)| spec.dst.0 == client);
                flows.map(|(_, flow)| flow).filter(|flow| flow.started.is_set())
            };
            let outstanding_reads = |time: Time| reads().filter(|flow| flow.started <= time && time < flow.completed).count();
            for flow in reads() {
                prop_assert_eq!(outstanding_reads(flow.started), outstanding as usize, "at {}", flow.started);
            }
            prop_assert_eq!(outstanding_reads(outcome.ended - Span::from_ps(1)), outstanding as usize);
        }
    }
}
