//! Results of a run.

use fabric::{ImpairmentCounters, LinkId, NodeId};
use flow::FlowStats;
use flow::credits::CreditStats;
use laws::LawActions;
use units::{Bytes, Span, Time};

use crate::predictions::Predictions;
use crate::series::{FlowSample, PauseSample, PortSample, SwitchSample};

/// Outcome of one flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowOutcome {
    /// Start of the flow; [`Time::NEVER`] if it never started.
    pub started: Time,
    /// The time at which its last byte was acknowledged; [`Time::NEVER`] if that did not happen.
    pub completed: Time,
    /// Payload acknowledged; if receivers do not acknowledge ([`flow::Recovery::GoBackN`]), payload received.
    pub delivered: Bytes,
    /// The sender's counters.
    pub stats: FlowStats,
    /// Number of actions of its law.
    pub actions: LawActions,
    /// Counters of its credits, if they schedule it. Those still in hand when a run ends are neither used nor wasted,
    /// and those in flight not received.
    pub credits: CreditStats,
}

impl FlowOutcome {
    /// Returns the outcome of a flow that never started.
    pub fn never_started() -> Self {
        Self {
            started: Time::NEVER,
            completed: Time::NEVER,
            delivered: Bytes::ZERO,
            stats: FlowStats::default(),
            actions: LawActions::default(),
            credits: CreditStats::default(),
        }
    }
}

/// Counts of packets by kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ByKind {
    /// Data.
    pub data: u64,
    /// Acknowledgements of data.
    pub acks: u64,
    /// Credits and emulation packets.
    pub credits: u64,
    /// All else: requests to send again, notifications, echoes, OR-ACKs, headers of trimmed data, messages of controllers.
    pub signals: u64,
}

impl LinkOutcome {
    /// Returns the counts since an earlier outcome of the same link. The longest queue is that of the complete time.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
            drops: self.drops - earlier.drops,
            unscheduled_drops: self.unscheduled_drops - earlier.unscheduled_drops,
            credit_drops: self.credit_drops - earlier.credit_drops,
            trims: self.trims - earlier.trims,
            losses: self.losses - earlier.losses,
            lost: self.lost.since(&earlier.lost),
            impaired: self.impaired.since(&earlier.impaired),
            marks: self.marks - earlier.marks,
            max_queue: self.max_queue,
            pauses: self.pauses - earlier.pauses,
            paused: self.paused - earlier.paused,
        }
    }
}

impl ByKind {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            data: self.data - earlier.data,
            acks: self.acks - earlier.acks,
            credits: self.credits - earlier.credits,
            signals: self.signals - earlier.signals,
        }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.data += other.data;
        self.acks += other.acks;
        self.credits += other.credits;
        self.signals += other.signals;
    }

    /// The sum of all kinds.
    pub fn total(&self) -> u64 {
        self.data + self.acks + self.credits + self.signals
    }
}

/// Outcome of one link.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkOutcome {
    /// Packets, acknowledgements included.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: Bytes,
    /// Packets that found no room, or that the queue discipline dropped.
    pub drops: u64,
    /// Packets among `drops` that were sent without a credit that made room for others.
    pub unscheduled_drops: u64,
    /// Credits and emulation packets that found no room in the credit queue, or only on the far side of its threshold;
    /// the host's own queue counts at its NIC. Not among `drops`.
    pub credit_drops: u64,
    /// Data packets that had their payload trimmed because the buffer was full. Their headers still count as packets, and
    /// as `drops` if the buffer had no room for the header either.
    pub trims: u64,
    /// Packets that the link lost by chance or because it was down, or corrupted.
    pub losses: u64,
    /// Packets that impairments affected: policed and oversized ones are among `drops`, corrupted ones among `losses`.
    pub impaired: ImpairmentCounters,
    /// All of `drops` and `losses`, by kind of packet.
    pub lost: ByKind,
    /// Packets marked.
    pub marks: u64,
    /// The longest queue.
    pub max_queue: Bytes,
    /// Times that the other end paused a class of the port that was not paused.
    pub pauses: u64,
    /// For how long at least one class was paused.
    pub paused: Span,
}

/// Outcome of a switch that shares its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchOutcome {
    /// The switch.
    pub node: NodeId,
    /// The most that its buffer held.
    pub max_buffer: Bytes,
    /// Packets dropped although they arrived over a link that could be paused: its headroom was too small.
    pub headroom_drops: u64,
    /// Reports, notifications and messages that its controllers sent.
    pub messages: u64,
    /// Notifications among them that were sent to sources.
    pub notifications: u64,
}

/// Amount of work that the engine did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EngineStats {
    /// Arrivals, starts, sends and timers that nodes processed.
    pub events: u64,
    /// Packets over links, each link counted.
    pub packet_hops: u64,
    /// Data packets sent, retransmissions included.
    pub data_packets: u64,
    /// Data packets that arrived at their hosts; 0 for a run on real packets.
    pub data_received: u64,
    /// Data packets that were on the way when the run ended; 0 for a run on real packets.
    pub data_in_flight: u64,
    /// OR-ACKs sent.
    pub or_acks: u64,
    /// Partitions that ran apart.
    pub partitions: u32,
    /// Threads that ran them.
    pub threads: u32,
}

/// Results of a run. Everything but `engine.threads` is the same at any number of threads.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// By [`crate::FlowId`].
    pub flows: Vec<FlowOutcome>,
    /// By [`fabric::LinkId`].
    pub links: Vec<LinkOutcome>,
    /// By [`crate::FlowId`]: data packets of the flow that were lost, or lost their payload. Empty for a run on real packets.
    pub lost_of: Vec<u32>,
    /// By [`crate::FlowId`]: copies of data packets that links added. Empty where no link adds any, and for a run on real
    /// packets.
    pub copies_of: Vec<u32>,
    /// Switches that share their buffer, in order.
    pub switches: Vec<SwitchOutcome>,
    /// Ports that waited for each other in a cycle when the run ended: a deadlock. Empty if none did.
    pub deadlock: Vec<LinkId>,
    /// In order of time, then link.
    pub port_samples: Vec<PortSample>,
    /// In order of time, then switch.
    pub switch_samples: Vec<SwitchSample>,
    /// Pauses of sampled ports, in order of start, then link.
    pub pauses: Vec<PauseSample>,
    /// In order of time, then flow.
    pub flow_samples: Vec<FlowSample>,
    /// Accuracy of the senders' delay predictions, if requested.
    pub predictions: Predictions,
    /// The simulated time at the end: the last completion, or the stop.
    pub ended: Time,
    /// The time up to which links were counted: `ended`, or somewhat later. [`Time::NEVER`] for a run on real packets.
    pub until: Time,
    /// Set if the caller ended the run before its time.
    pub interrupted: bool,
    /// The engine's own counts.
    pub engine: EngineStats,
}
