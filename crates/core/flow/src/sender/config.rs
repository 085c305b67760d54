//! Configuration of a flow, set by its host before it starts.

use units::{Bytes, Span};

use super::tcp::TcpConfig;
use crate::blocks::{Blocks, FlowCoding};
use crate::noise::Noise;
use crate::outstanding::{LossTimer, Timing};
use crate::pacer::Pacing;
use crate::paths::LoadBalancing;

/// Configuration of a flow, set by its host before it starts.
#[derive(Clone, Copy, Debug)]
pub struct FlowConfig {
    /// Payload of the whole flow; at least 1 byte.
    pub size: Bytes,
    /// Payload of a full packet; at least 1 byte.
    pub mss: u32,
    /// Round trip with empty queues: the estimator's start.
    pub base_rtt: Span,
    /// Reordering window: how much later than a missing packet an acknowledged one must have been sent to prove it
    /// lost.
    pub reordering: Span,
    /// Lower bound of the retransmission timeout; with [`LossTimer::Packet`] the timeout itself.
    pub rto_min: Span,
    /// Upper bound of the retransmission timeout.
    pub rto_max: Span,
    /// The law is notified of timeouts. If not, a timeout only resends.
    pub law_sees_timeouts: bool,
    /// Start of a retransmission timeout. [`LossTimer::Packet`] only with [`Recovery::Selective`].
    pub loss_timer: LossTimer,
    /// The law receives the remaining size of the flow ([`laws::Ack::bytes_remaining`]).
    pub reports_size: bool,
    /// Loss recovery scheme. The receiver's interval is not used here.
    pub recovery: Recovery,
    /// A packet may be sent while the window is not full, even if it does not fit.
    pub overshoots: bool,
    /// Pacing parameters.
    pub pacing: Pacing,
    /// Erasure coding; none: every packet is needed. Only with [`Recovery::Selective`].
    pub coding: Option<SenderCoding>,
    /// Path selection of its packets.
    pub paths: LoadBalancing,
    /// Seed of random choices, together with `number`.
    pub seed: u64,
    /// The flow's number.
    pub number: u32,
    /// Noise added to the round trips that the law receives.
    pub noise: Noise,
    /// Features of Linux's TCP. Only with [`Recovery::Selective`] and one law for the flow.
    pub tcp: TcpConfig,
}

impl FlowConfig {
    /// Returns the configuration of a flow of `size` payload bytes over one path, without options. The reordering
    /// window is a quarter of the base round trip. Timeouts last two base round trips to 4 s, and cut. The law is not
    /// given the flow's size. Recovery is selective. Pacing counts payload alone and makes up for late packets. There
    /// is no coding, no noise and no feature of Linux's TCP.
    pub const fn new(size: Bytes, mss: u32, base_rtt: Span) -> Self {
        Self {
            size,
            mss,
            base_rtt,
            reordering: base_rtt.over(4),
            rto_min: base_rtt.times(2),
            rto_max: Span::from_s(4),
            law_sees_timeouts: true,
            loss_timer: LossTimer::Flow,
            reports_size: false,
            recovery: Recovery::Selective,
            overshoots: false,
            pacing: Pacing::PLAIN,
            coding: None,
            paths: LoadBalancing::PerFlow,
            seed: 1,
            number: 0,
            noise: Noise::NONE,
            tcp: TcpConfig::NONE,
        }
    }

    /// Returns the number of packets of the flow, parity included.
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

/// Coding parameters of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderCoding {
    /// Its blocks.
    pub code: FlowCoding,
    /// Packets are sent again as soon as more packets of a block are declared lost than it has parity; if not, when the
    /// receiver requests them or a timeout expires. A feature of this project; the paper has only the latter.
    pub eager: bool,
    /// Maximum time that a packet can wait in all queues on its way: a request does not apply to packets sent less than a
    /// base round trip and this time ago. Zero if receivers send requests only on the proof of a gap.
    pub longest_wait: Span,
    /// Number of subflows with a history in acknowledgements ([`crate::Receiver::coded`]); 0: no history.
    pub history: u8,
}

/// Loss recovery scheme.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Recovery {
    /// Missing packets are sent again.
    Selective,
    /// The receiver accepts packets in order only, and requests everything from the first missing packet on.
    GoBackN {
        /// Minimum time between two requests for the same packet.
        nack_interval: Span,
        /// The receiver acknowledges what arrives. If not, it only requests what it misses and reports once that all has
        /// arrived. In that case something other than acknowledgements, such as credits, must permit the flow to send.
        acks: bool,
    },
}
