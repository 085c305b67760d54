//! One flow between two hosts, without I/O or payload: the next packet and its send time ([`Sender`]), its path
//! ([`LoadBalancing`]), and the acknowledgements ([`Receiver`]). Also an open-ended connection with a possibly hostile peer
//! ([`Channel`], [`ReceivedPackets`]).
//!
//! A flow is a number of equal packets, the last one shorter; a sequence number counts packets. A channel carries the
//! data of a [`DataSource`]. The host provides the time and carries the packets; the law ([`laws::ControlLaw`]) limits how
//! much may be sent.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ack_ranges;
mod blocks;
mod channel;
pub mod credits;
mod cwnd_usage;
mod history;
mod host_shim;
mod law_state;
mod noise;
mod on_ramp_hold;
mod on_ramp_path;
mod outstanding;
mod pacer;
mod paths;
mod ranges;
mod received_packets;
mod receiver;
mod receiver_blocks;
mod ring;
mod rtt;
mod sender;
mod sent_packets;
mod subflow;

pub use ack_ranges::{AckError, AckRanges, EcnCounts, MAX_PACKET_NUMBERS, MAX_RANGES, MAX_TIMES};
pub use blocks::{Blocks, FlowCoding, MAX_PACKETS};
pub use channel::{
    Acked, Channel, ChannelConfig, ChannelStats, DataSending, DataSource, MAX_OUTSTANDING, MovedLaw, OutgoingPacket,
    PacketContent, PacketNumbers, ReturnReason,
};
pub use cwnd_usage::{CwndValidationConfig, Validation};
pub use host_shim::{HoldInputs, HostShim, HostShimConfig};
pub use law_state::SendState;
pub use noise::Noise;
pub use on_ramp_hold::{NicHandoff, OnRampHold};
pub use outstanding::{LossTimer, Timing};
pub use pacer::Pacing;
pub use paths::{EntropyEcho, LoadBalancing, Plb, Reps, UnoLb};
pub use ranges::Range;
pub use received_packets::{AckEliciting, AckPolicy, Codepoint, ReceivedPackets};
pub use receiver::{AckReply, DataHeader, Receiver};
pub use receiver_blocks::BlockNack;
pub use sender::{
    AckHeader, DestinationMetrics, FlowConfig, FlowStats, IdleConnection, Recovery, Segment, Sender, SenderCoding,
    TcpConfig,
};
