//! Decisions of a host about a flow before it starts: the bounds that follow from its path.

use experiment::{FlowSpec, Setup};
use flow::credits::CreditConfig;
use flow::{FlowConfig, LoadBalancing, LossTimer, Noise, Pacing, Recovery, SenderCoding};
use laws::credits::Credits;
use laws::{ControlLaw, PathInfo};
use units::{Bytes, Span, mix64};

/// The minimum wait of a flow under go-back-N beyond its base round trip before it sends everything again: the same as
/// in RDMA simulators with such a timeout (conweave's `L2Timeout`). If ports are paused a packet can be late without
/// limit, and a needless timeout sends a whole window again.
const GO_BACK_N_MARGIN: Span = Span::from_ms(4);

/// Addition of the transport to its minimum timeout: a probe that is sent too early costs a packet, and hosts are sometimes late
/// (`LATENESS` in `proto`).
const LATENESS: Span = Span::from_ms(2);

/// Keeps the chance of noise apart from all other chances of a flow.
const NOISE: u64 = 0x4e4f_4953;

/// Returns a flow's configuration: the bounds that follow from its path (see [`experiment::HostConfig`]).
/// `credits` may leave a sender silent at any time, so a flow that they schedule allows for acknowledgements that are held back.
pub(super) fn flow_config(setup: &Setup, spec: &FlowSpec, number: u32, credits: Option<&Credits>) -> FlowConfig {
    let host = &setup.host;
    // A flow of less than a packet has a shorter round trip; its estimator starts from that.
    let payload = spec.size.get().min(host.mss.into()) as u32;
    let paths = setup.paths(spec.src, spec.dst, payload);
    let quarter = paths.base_rtt.over(4);
    let reordering = host.reordering.unwrap_or(match (host.path, paths.longest_wait) {
        (LoadBalancing::PerFlow | LoadBalancing::AfterTimeout | LoadBalancing::Plb(_), _) => quarter,
        // Each subflow has a path, and finds its own losses.
        (LoadBalancing::UnoLb(unolb), _) if unolb.own_laws => quarter,
        (LoadBalancing::PerPacket(_) | LoadBalancing::Reps(_) | LoadBalancing::UnoLb(_), Some(wait)) => {
            quarter.max(wait)
        }
        (LoadBalancing::PerPacket(_) | LoadBalancing::Reps(_) | LoadBalancing::UnoLb(_), None) => host.rto_max,
    });
    let margin = paths.longest_wait.unwrap_or(Span::ZERO).max(quarter + paths.spread);
    let held_back = host.ack_delay.unwrap_or(quarter);
    // Delay that hosts add to the path: their own processing, and acknowledgements that wait for more packets.
    let hosts = host.jitter.map_or(Span::ZERO, |jitter| jitter.longest().times(2));
    let hosts = if credits.is_some() && host.ack_every > 1 { hosts + held_back } else { hosts };
    let margin = margin + hosts;
    let margin = if host.recovery == Recovery::Selective { margin } else { margin.max(GO_BACK_N_MARGIN) };
    let longest_wait = match host.loss_timer {
        LossTimer::Probe => held_back + LATENESS,
        LossTimer::Flow | LossTimer::Packet => margin,
    };
    let rto_min = host.rto_min.unwrap_or(paths.base_rtt + longest_wait);
    let rto_min = match host.loss_timer {
        LossTimer::Flow | LossTimer::Probe => rto_min,
        // It grows with nothing, so it must be long enough for an answer from the start.
        LossTimer::Packet => {
            let none_waits_back = host.rto_min.is_none() && setup.acks_have_priority(spec.src, spec.dst);
            let there = paths.longest_wait_there.filter(|_| none_waits_back);
            there.map_or(rto_min, |there| paths.base_rtt + there + hosts).max(paths.base_rtt + quarter + paths.spread)
        }
    };
    FlowConfig {
        size: spec.size,
        mss: host.mss,
        base_rtt: paths.base_rtt,
        reordering,
        rto_min,
        // A timeout before any possible acknowledgement would retransmit for ever.
        rto_max: host.rto_max.max(rto_min).max(paths.base_rtt + margin),
        law_sees_timeouts: host.law_sees_timeouts,
        loss_timer: host.loss_timer,
        reports_size: host.size_aware,
        recovery: host.recovery,
        overshoots: host.overshoots,
        pacing: Pacing {
            header: host.pace_header,
            catches_up: host.catches_up,
            burst: Bytes::ZERO,
            below: host.fq,
            tick: host.tick,
        },
        coding: host.coding.filter(|_| spec.coded).map(|coding| SenderCoding {
            code: coding.code,
            eager: coding.eager,
            longest_wait: if coding.gaps { Span::ZERO } else { paths.forward_wait() },
            history: setup.history(),
        }),
        paths: host.path,
        seed: setup.seed,
        number,
        tcp: host.tcp,
        noise: Noise { max: host.rtt_noise, seed: mix64(setup.seed ^ mix64(u64::from(number) ^ NOISE)) },
    }
}

/// Returns the configuration of a flow that is scheduled by credits.
pub(super) fn credit_config(setup: &Setup, flow: u32, path: &PathInfo, credits: Credits) -> CreditConfig {
    // A probe finds losses only on the path that the data took.
    let one_path =
        !matches!(setup.host.path, LoadBalancing::PerPacket(_) | LoadBalancing::Reps(_) | LoadBalancing::UnoLb(_));
    let early_start = credits.early_start && one_path;
    CreditConfig {
        credits: Credits { early_start, ..credits },
        longest: setup.host.max_emulation_rtt.unwrap_or(path.base_rtt.times(2)),
        base_rtt: path.base_rtt,
        line_rate: path.line_rate,
        mss: setup.host.mss,
        header: setup.host.header,
        tick: setup.host.tick,
        salt: mix64(setup.seed ^ mix64(u64::from(flow) ^ 0x4352_4544_4954)),
    }
}

/// Returns the credits that schedule a flow of this law, if any do.
pub(super) fn credits_of(setup: &Setup, law: &impl ControlLaw) -> Option<Credits> {
    law.credits().or_else(|| setup.host.receiver_credits.then_some(Credits::OF_THE_HOST))
}
