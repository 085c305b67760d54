//! What a host decides about a flow before it starts.

use units::{Bytes, Span};

use super::tcp::TcpConfig;
use crate::blocks::{Blocks, Code};
use crate::noise::Noise;
use crate::outstanding::{LossTimer, Timing};
use crate::pacer::Pacing;
use crate::paths::PathChoice;

/// What a host decides about a flow before it starts.
#[derive(Clone, Copy, Debug)]
pub struct FlowConfig {
    /// Payload of the whole flow; at least 1 byte.
    pub size: Bytes,
    /// Payload of a full packet; at least 1 byte.
    pub mss: u32,
    /// Round trip with empty queues: the estimator's start.
    pub base_rtt: Span,
    /// How much later a packet must have left than a missing one to prove it lost.
    pub reordering: Span,
    /// Lower bound of the retransmission timeout; with [`LossTimer::Packet`] the timeout itself.
    pub rto_min: Span,
    /// Upper bound of the retransmission timeout.
    pub rto_max: Span,
    /// Whether the law is told of timeouts. If not, a timeout only resends.
    pub timeouts_cut: bool,
    /// What a retransmission timeout counts from. [`LossTimer::Packet`] only with [`Recovery::Selective`].
    pub loss_timer: LossTimer,
    /// Whether the law hears how much of the flow is left ([`laws::Ack::left`]).
    pub tells_size: bool,
    /// How losses are found and mended. The receiver's interval is of no concern here.
    pub recovery: Recovery,
    /// Whether a packet may leave as long as the window is not full, though it does not fit any more.
    pub overshoots: bool,
    /// How it is paced.
    pub pacing: Pacing,
    /// Erasure coding; none: every packet is needed. Only with [`Recovery::Selective`].
    pub coding: Option<SenderCoding>,
    /// Which paths its packets take.
    pub paths: PathChoice,
    /// What chances depend on, with `number`.
    pub seed: u64,
    /// The flow's number.
    pub number: u32,
    /// What the law hears of a round trip beyond the truth.
    pub noise: Noise,
    /// What of Linux's TCP is on. Only with [`Recovery::Selective`] and one law for the flow.
    pub tcp: TcpConfig,
}

impl FlowConfig {
    /// A flow of `size` payload bytes over one path, with nothing special. The reordering tolerance is a quarter of the
    /// base round trip. Timeouts last two base round trips to 4 s, and cut. The law is not told the flow's size. Recovery is
    /// selective. Pacing counts payload alone and makes up for late packets. There is no coding, no noise and nothing of
    /// Linux's TCP.
    pub const fn new(size: Bytes, mss: u32, base_rtt: Span) -> Self {
        Self {
            size,
            mss,
            base_rtt,
            reordering: base_rtt.over(4),
            rto_min: base_rtt.times(2),
            rto_max: Span::from_s(4),
            timeouts_cut: true,
            loss_timer: LossTimer::Flow,
            tells_size: false,
            recovery: Recovery::Selective,
            overshoots: false,
            pacing: Pacing::PLAIN,
            coding: None,
            paths: PathChoice::PerFlow,
            seed: 1,
            number: 0,
            noise: Noise::NONE,
            tcp: TcpConfig::NONE,
        }
    }

    /// How many packets the flow has, parity included.
    ///
    /// # Panics
    /// If that is more than 2^32 - 1: 17 TB at 4 KiB.
    pub fn packets(&self) -> u32 {
        match self.blocks() {
            None => {
                u32::try_from(self.size.get().div_ceil(u64::from(self.mss))).expect("a flow has under 2^32 packets")
            }
            Some(blocks) => blocks.total(),
        }
    }

    pub(super) fn timing(&self) -> Timing {
        Timing {
            base_rtt: self.base_rtt,
            reordering: self.reordering,
            rto_min: self.rto_min,
            rto_max: self.rto_max,
            loss_timer: self.loss_timer,
        }
    }

    pub(super) fn blocks(&self) -> Option<Blocks> {
        self.coding.map(|coding| Blocks::new(self.size, self.mss, &coding.code))
    }
}

/// What a sender must know of a coded flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderCoding {
    /// Its blocks.
    pub code: Code,
    /// Whether packets are sent again as soon as more of a block are held for lost than it has parity; if not, when the
    /// receiver asks or a timeout strikes. Ours; the paper has only the latter.
    pub eager: bool,
    /// How long a packet can wait in all queues on its way: a request says nothing of packets that left less than a base round
    /// trip and this time ago. Zero where receivers ask on the proof of a gap.
    pub longest_wait: Span,
    /// Of how many subflows acknowledgements say what came before their packet ([`crate::Receiver::coded`]); 0: of none.
    pub history: u8,
}

/// How losses are found and mended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Recovery {
    /// What is missing is sent again.
    Selective,
    /// The receiver takes packets in order only and asks for the rest again, from what it misses on.
    GoBackN {
        /// It asks for the same packet once in this time.
        nack_interval: Span,
        /// Whether the receiver acknowledges what comes. If not, it only asks for what it misses and says once that all
        /// has come. Then something other than acknowledgements, such as credits, must let the flow send.
        acks: bool,
    },
}
