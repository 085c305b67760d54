//! One flow between two hosts, without I/O or payload: the next packet and its send time ([`Sender`]), its path
//! ([`PathChoice`]), and the acknowledgements ([`Receiver`]). Also an open-ended connection with a possibly hostile peer
//! ([`Channel`], [`Arrivals`]).
//!
//! A flow is a number of equal packets, the last one shorter; a sequence number counts packets. A channel carries the
//! data of a [`Work`]. The host provides the time and carries the packets; the law ([`laws::ControlLaw`]) limits how
//! much may be sent.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod acks;
mod arrivals;
mod blocks;
mod channel;
pub mod credits;
mod edge;
mod history;
mod hold;
mod law_state;
mod noise;
mod outstanding;
mod pacer;
mod paths;
mod ramp;
mod ranges;
mod receiver;
mod records;
mod ring;
mod rtt;
mod sender;
mod subflow;
mod tracker;
mod usage;

pub use acks::{AckError, Acks, EcnCounts, MOST_PACKET_NUMBERS, MOST_RANGES, MOST_TIMES};
pub use arrivals::{AckEliciting, Answering, Arrivals, Codepoint};
pub use blocks::{Blocks, Code, MOST_PACKETS};
pub use channel::{
    Acked, Channel, ChannelConfig, ChannelStats, DataSending, Departed, MOST_OUTSTANDING, MovedLaw, PacketNumbers,
    Parcel, Why, Work,
};
pub use edge::{Edge, EdgeConfig, Reading};
pub use hold::{Handover, Hold};
pub use law_state::SendState;
pub use noise::Noise;
pub use outstanding::{LossTimer, Timing};
pub use pacer::Pacing;
pub use paths::{EntropyEcho, PathChoice, Plb, Reps, UnoLb};
pub use ranges::Range;
pub use receiver::{DataHeader, Receiver, Reply};
pub use sender::{
    AckHeader, Connection, FlowConfig, FlowStats, Recovery, Remembered, Segment, Sender, SenderCoding, TcpConfig,
};
pub use tracker::BlockNack;
pub use usage::{UsageRules, Validation};
