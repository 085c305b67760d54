//! The outcome of a run on real packets, in the simulator's terms.
//!
//! Values that the kernel does not report are zero, as the counts of actions of the kernel's own laws. A flow's marked
//! payload is the kernel's count of marked segments times the segment size.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use experiment::{FlowId, FlowOutcome, FlowSample, FlowSpec, Outcome, Setup, Start, outcome_of_packets};
use fabric::HostId;
use flow::FlowStats;
use flow::credits::CreditStats;
use inet_diag::TcpInfo;
use laws::LawActions;
use router::HostPlan;
use units::{Bytes, Time};

use crate::diag::{SocketSample, SocketSamples};
use crate::law_state::LawReading;
use crate::router::RouterOutcome;
use crate::traffic::{TrafficEnd, flow_of};

/// Maximum segments of a connection's direction that does not count as a flow: an initial window (RFC 6928), which no
/// congestion control influences.
const INITIAL_WINDOW: u64 = 10;

/// The SYN that the kernel counts as a byte acknowledged.
const SYN: u64 = 1;

fn stats(info: &TcpInfo) -> FlowStats {
    FlowStats {
        packets_sent: info.data_segs_out.into(),
        retransmits: info.total_retrans.into(),
        timeouts: info.total_rto.into(),
        spurious: info.dsack_dups.into(),
        marked: Bytes::new(u64::from(info.delivered_ce) * u64::from(info.snd_mss)),
        ..FlowStats::default()
    }
}

fn flow_sample(time: Time, flow: FlowId, info: &TcpInfo, size: Bytes) -> FlowSample {
    let trace = [
        ("ssthresh_bytes", u64::from(info.ssthresh.min(1 << 24)) * u64::from(info.snd_mss)),
        ("min_rtt_ns", info.min_rtt.unsigned_ps() / 1_000),
        ("pacing_bps", info.pacing_rate.bps().min(1 << 50)),
        ("ca_state", info.ca_state.into()),
        ("retransmitted_bytes", info.bytes_retrans.get()),
        ("marked_packets", info.delivered_ce.into()),
    ];
    FlowSample {
        time,
        flow,
        sent: info.bytes_sent,
        delivered: Bytes::new(info.bytes_acked.get().saturating_sub(SYN)).min(size),
        window: info.window(),
        rtt: info.rtt,
        trace: trace.into_iter().map(|(name, value)| (name, value as i64)).collect(),
    }
}

/// Counts of the actions of a connection's law in its newest sample that has the law's state.
fn actions(newest: Option<&LawReading>) -> LawActions {
    newest.map_or_else(LawActions::default, |law| law.actions)
}

/// Adds the law's own state to a sample of its flow.
fn add_law_state(sample: &mut FlowSample, law: Option<&LawReading>) {
    for &(name, value) in law.iter().flat_map(|law| &law.trace) {
        if sample.trace.iter().all(|&(known, _)| known != name) {
            sample.trace.push((name, value));
        }
    }
}

/// The outcome of a scenario's own flows.
pub(crate) fn traffic_outcome(
    setup: &Setup,
    end: &TrafficEnd,
    samples: &SocketSamples,
    router: &RouterOutcome,
) -> Outcome {
    let mut newest: BTreeMap<usize, &LawReading> = BTreeMap::new();
    for row in &samples.rows {
        let flow = flow_of(row.socket.local.port());
        let flow = flow.filter(|&flow| setup.flows.get(flow).is_some_and(|spec| spec.src == row.host));
        if let (Some(flow), Some(law)) = (flow, &row.law) {
            newest.insert(flow, law);
        }
    }
    let flows: Vec<FlowOutcome> = end
        .flows
        .iter()
        .enumerate()
        .map(|(flow, ended)| FlowOutcome {
            started: ended.started,
            completed: ended.completed,
            delivered: ended.delivered,
            stats: stats(&ended.info),
            actions: actions(newest.get(&flow).copied()),
            credits: CreditStats::default(),
        })
        .collect();
    let chosen: BTreeSet<FlowId> = setup.series.flows.iter().copied().collect();
    let sample = |row: &SocketSample| {
        let flow = flow_of(row.socket.local.port()).filter(|&flow| flow < flows.len())?;
        let (spec, outcome) = (&setup.flows[flow], &flows[flow]);
        let id = FlowId(flow as u32);
        let active = row.time >= outcome.started && row.time < outcome.completed && row.time <= end.ended;
        let is_sampled = active && !row.last && row.host == spec.src && chosen.contains(&id);
        is_sampled.then(|| {
            let mut sample = flow_sample(row.time, id, &row.socket.info, spec.size);
            add_law_state(&mut sample, row.law.as_ref());
            sample
        })
    };
    let mut flow_samples: Vec<FlowSample> = samples.rows.iter().filter_map(sample).collect();
    flow_samples.sort_by_key(|it| (it.time, it.flow));
    Outcome { interrupted: end.interrupted, ..joined(router, flows, flow_samples, end.ended) }
}

/// Returns the outcomes of the router and of flows, as the outcome of a run that was not interrupted.
fn joined(router: &RouterOutcome, flows: Vec<FlowOutcome>, flow_samples: Vec<FlowSample>, ended: Time) -> Outcome {
    let outcome = outcome_of_packets(flows, flow_samples, ended, router.links.clone());
    Outcome { port_samples: router.port_samples.clone(), switches: router.switches.clone(), ..outcome }
}

/// The flows of programs: every direction of a TCP connection between two hosts that sent more than an initial
/// window.
pub(crate) struct ObservedTraffic {
    /// The setup with these flows instead of its own, each of its kind.
    pub(crate) setup: Setup,
    /// Their outcome.
    pub(crate) outcome: Outcome,
    /// By kind: the congestion control's name.
    pub(crate) congestion: Vec<String>,
    /// Directions of connections that sent something, but too little to count.
    pub(crate) small: usize,
}

/// Outcome of programs until `ended`, in the run's time.
pub(crate) fn program_outcome(
    setup: &Setup,
    plan: &[HostPlan],
    samples: &SocketSamples,
    router: &RouterOutcome,
    ended: Time,
) -> ObservedTraffic {
    let host_at = |address: IpAddr| {
        let found = plan.iter().position(|host| address == host.v4 || address == host.v6);
        found.map(|host| HostId(host as u32))
    };
    let mut sockets: BTreeMap<(HostId, u64), Vec<&SocketSample>> = BTreeMap::new();
    for row in &samples.rows {
        sockets.entry((row.host, row.socket.cookie)).or_default().push(row);
    }
    let mut observed: Vec<(FlowSpec, FlowOutcome, Vec<&SocketSample>)> = Vec::new();
    let mut congestion: Vec<String> = Vec::new();
    let mut small = 0;
    for ((src, _), rows) in sockets {
        let Some(dst) = host_at(rows[0].socket.peer.ip()).filter(|&dst| dst != src) else { continue };
        let Some(newest) = rows.iter().max_by_key(|row| (row.socket.info.bytes_acked, row.last)) else { continue };
        let info = newest.socket.info;
        let size = info.bytes_acked.get().saturating_sub(SYN);
        if size <= INITIAL_WINDOW * u64::from(info.snd_mss) {
            small += usize::from(size > 0);
            continue;
        }
        let name = rows.iter().find(|row| !row.socket.congestion.is_empty());
        let name = name.map_or("unknown", |row| row.socket.congestion.as_str());
        let kind = congestion.iter().position(|known| known == name).unwrap_or_else(|| {
            congestion.push(name.to_owned());
            congestion.len() - 1
        });
        let started = started(&rows);
        // Whether it has ended: its socket is gone, or at least closed with nothing left to be acknowledged.
        let is_closed = rows.iter().any(|row| row.last);
        let reached = rows.iter().find(|row| row.socket.info.bytes_acked == info.bytes_acked).map(|row| row.time);
        let completed = reached.filter(|_| is_closed).map_or(Time::NEVER, |time| time.max(started));
        let delivered = Bytes::new(size);
        let spec = FlowSpec {
            src,
            dst,
            size: delivered,
            start: Start::At(started),
            kind: kind as u16,
            class: 1,
            on_ramp: false,
            coded: false,
            kept: false,
        };
        let actions = actions(rows.iter().rev().find_map(|row| row.law.as_ref()));
        let outcome = FlowOutcome {
            started,
            completed,
            delivered,
            stats: stats(&info),
            actions,
            credits: CreditStats::default(),
        };
        observed.push((spec, outcome, rows));
    }
    observed.sort_by_key(|(spec, outcome, _)| (outcome.started, spec.src, spec.dst));
    let mut flow_samples = Vec::new();
    for (flow, (spec, outcome, rows)) in observed.iter().enumerate() {
        let active = rows.iter().filter(|row| !row.last && row.time >= outcome.started && row.time < outcome.completed);
        flow_samples.extend(active.map(|row| {
            let mut sample = flow_sample(row.time, FlowId(flow as u32), &row.socket.info, spec.size);
            add_law_state(&mut sample, row.law.as_ref());
            sample
        }));
    }
    flow_samples.sort_by_key(|it| (it.time, it.flow));
    let flows: Vec<FlowOutcome> = observed.iter().map(|(_, outcome, _)| *outcome).collect();
    let mut setup = setup.clone();
    setup.flows = observed.iter().map(|(spec, ..)| *spec).collect();
    setup.dependencies = experiment::Dependencies::default();
    setup.series.flows = (0..observed.len() as u32).map(FlowId).collect();
    setup.stop = ended;
    let outcome = joined(router, flows, flow_samples, ended);
    ObservedTraffic { setup, outcome, congestion, small }
}

/// Returns the time at which a socket began to send: the kernel reports its busy time up to the first sample with sent
/// bytes.
fn started(rows: &[&SocketSample]) -> Time {
    let first = rows.iter().position(|row| row.socket.info.bytes_sent > Bytes::ZERO).unwrap_or(0);
    let row = rows[first];
    let began = row.time.saturating_sub(row.socket.info.busy);
    // Not before it was last seen idle.
    let idle = if first > 0 { rows[first - 1].time } else { Time::ZERO };
    began.max(idle)
}

#[cfg(test)]
mod tests {
    use inet_diag::DiagSocket;
    use units::Span;

    use super::*;

    fn row(ms: u64, acked: u64, sent: u64, last: bool) -> SocketSample {
        let info = TcpInfo {
            snd_mss: 1_000,
            bytes_acked: Bytes::new(acked),
            bytes_sent: Bytes::new(sent),
            busy: Span::from_ms(4),
            cwnd: 10,
            ..TcpInfo::default()
        };
        let address = |host: u8, port| std::net::SocketAddr::from(([10, 198, host, 1], port));
        let congestion = if last { String::new() } else { "cubic".to_owned() };
        let socket = DiagSocket {
            local: address(0, 40_000),
            peer: address(1, 5201),
            cookie: 9,
            congestion,
            info,
            storages: Vec::new(),
        };
        SocketSample { time: Time::from_ms(ms), host: HostId(0), socket, law: None, last }
    }

    #[test]
    fn law_state_joins_a_sample_without_replacing_its_values() {
        let mut sample = flow_sample(Time::ZERO, FlowId(0), &TcpInfo::default(), Bytes::new(1));
        let before = sample.trace.len();
        let law = LawReading { actions: LawActions::default(), trace: vec![("ca_state", 9), ("alpha_ppm", 7)] };
        add_law_state(&mut sample, Some(&law));
        assert_eq!(sample.trace.len(), before + 1);
        assert!(sample.trace.contains(&("alpha_ppm", 7)) && !sample.trace.contains(&("ca_state", 9)));
        add_law_state(&mut sample, None);
        assert_eq!(sample.trace.len(), before + 1);
    }

    #[test]
    fn a_connection_that_sent_is_a_flow() {
        let rows = [row(10, 1, 0, false), row(20, 5_000, 40_000, false), row(30, 50_001, 50_000, false)];
        let refs: Vec<&SocketSample> = rows.iter().collect();
        assert_eq!(started(&refs), Time::from_ms(16));
        assert_eq!(started(&refs[1..]), Time::from_ms(16));
        let sample = flow_sample(rows[2].time, FlowId(3), &rows[2].socket.info, Bytes::new(70_000));
        assert_eq!((sample.delivered, sample.window), (Bytes::new(50_000), Bytes::new(10_000)));
    }
}
