//! The words of the claim language: the parts of a run that a claim may name, with a type for each kind.

use fabric::LinkClass;

/// Optional name of the run in an expression about one run.
pub(super) const IT: &str = "it";
/// Follows a training job: shares of its critical path.
pub(super) const CRITICAL: &str = "critical";

/// A closed set of words.
pub trait ClosedSet: Copy + 'static {
    /// All of them, as they are listed.
    const ALL: &'static [Self];

    /// Returns its spelling in claims.
    fn name(self) -> &'static str;
}

macro_rules! words {
    ($($(#[$doc:meta])* $kind:ident { $($variant:ident = $name:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            #[allow(missing_docs)]
            pub enum $kind {
                $($variant,)*
            }

            impl ClosedSet for $kind {
                const ALL: &'static [Self] = &[$(Self::$variant,)*];

                fn name(self) -> &'static str {
                    match self {
                        $(Self::$variant => $name,)*
                    }
                }
            }
        )*
    };
}

words! {
    /// Parts of a run that are no classes of flows and have no samples.
    Part {
        Fairness = "fairness",
        Predicts = "predicts",
        Network = "network",
        Law = "law",
        Credits = "credits",
        Flows = "flows",
    }
    /// Sampled quantity: of ports, and `buffer` of switches, and `rate` of flows.
    Sampled {
        Queue = "queue",
        Phantom = "phantom",
        Ingress = "ingress",
        Pseudo = "pseudo",
        Feedback = "feedback",
        Buffer = "buffer",
        Rate = "rate",
    }
    /// Measure of a class of flows, with a statistic; `iteration` of a training job.
    SpreadKey {
        Fct = "fct",
        Slowdown = "slowdown",
        Iteration = "iteration",
    }
    /// Measure of a class of flows, without a statistic; `end_to_end` of an imported schedule, and those after it of a
    /// training job.
    TotalKey {
        Goodput = "goodput",
        Count = "count",
        Completed = "completed",
        EndToEnd = "end_to_end",
        Compute = "compute",
        Exposed = "exposed",
        InterShare = "inter_share",
    }
    /// A statistic of times.
    Stat {
        Mean = "mean",
        P50 = "p50",
        P90 = "p90",
        P95 = "p95",
        P99 = "p99",
        Max = "max",
    }
    /// A statistic of samples: also small percentiles, to tell whether a queue runs dry.
    SampleStat {
        Mean = "mean",
        P50 = "p50",
        P90 = "p90",
        P95 = "p95",
        P99 = "p99",
        Max = "max",
        Min = "min",
        P1 = "p1",
        P5 = "p5",
        P10 = "p10",
    }
    /// After `flows`: the rate of all together, and Jain's index.
    FlowsKey {
        Rate = "rate",
        Jain = "jain",
    }
    /// After `fairness`.
    FairnessKey {
        JainMean = "jain_mean",
        JainFinal = "jain_final",
        ConvergedAt = "converged_at",
        ReachedAt = "reached_at",
        JainSince = "jain_since",
    }
    /// After `predicts`.
    Predictor {
        Owd = "owd",
        Rtt = "rtt",
    }
    /// After `network`.
    NetworkKey {
        DataPackets = "data_packets",
        PacketHops = "packet_hops",
        Drops = "drops",
        DataDrops = "data_drops",
        AckDrops = "ack_drops",
        CreditDrops = "credit_drops",
        Trims = "trims",
        Policed = "policed",
        Oversized = "oversized",
        Corrupted = "corrupted",
        Duplicates = "duplicates",
        Reordered = "reordered",
        EcnMarks = "ecn_marks",
        OrAcks = "or_acks",
        OrAckBytes = "or_ack_bytes",
        Retransmits = "retransmits",
        Timeouts = "timeouts",
        PfcPauses = "pfc_pauses",
        PfcPause = "pfc_pause",
        HostPause = "host_pause",
        Nacks = "nacks",
        Cnps = "cnps",
        ParityPackets = "parity_packets",
        RecoveredBlocks = "recovered_blocks",
        Held = "held",
        HeadroomDrops = "headroom_drops",
        Messages = "messages",
        MaxBuffer = "max_buffer",
        MaxQueue = "max_queue",
    }
    /// After `network`, before a class of links.
    TierKey {
        DataDrops = "data_drops_by_tier",
        Drops = "drops_by_tier",
        PfcPauses = "pfc_pauses_by_tier",
        PfcPause = "pfc_pause_by_tier",
    }
    /// After `credits`.
    CreditsKey {
        Sent = "sent",
        Used = "used",
        Dropped = "dropped",
        Wasted = "wasted",
        Received = "received",
        OverProvisioned = "over_provisioned",
        Late = "late",
        Unscheduled = "unscheduled",
        UnscheduledDrops = "unscheduled_drops",
    }
    /// After `law`.
    LawKey {
        Increases = "increases",
        Cuts = "cuts",
        LossCuts = "loss_cuts",
        QuickAdapts = "quick_adapts",
        ProbeRtts = "probe_rtts",
        Holds = "holds",
        Credits = "credits",
    }
}

impl TierKey {
    /// The classes of links by which it counts. Losses by chance at links of any class are counted for packets of all kinds
    /// together, so [`TierKey::Drops`] alone has `random`.
    pub fn tiers(self) -> impl Iterator<Item = &'static str> {
        let random = (self == Self::Drops).then_some("random");
        LinkClass::ALL.iter().map(|class| class.name()).chain(random)
    }
}

/// Returns whether a name is that of a part of a run. A class of flows with such a name must be in quotes.
pub fn is_part(name: &str) -> bool {
    parts().any(|part| part == name)
}

/// The parts of a run that are no classes of flows.
pub fn parts() -> impl Iterator<Item = &'static str> {
    Part::ALL.iter().map(|part| part.name()).chain(Sampled::ALL.iter().map(|sampled| sampled.name()))
}
