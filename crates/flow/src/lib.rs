//! One flow between two hosts, without input, output or bytes: which packet goes next and when
//! ([`Sender`]), and what is answered to a packet ([`Receiver`]).
//!
//! A flow is a number of equal packets, the last one shorter; a sequence number counts packets. The host gives
//! the time and carries the packets; the law ([`laws::ControlLaw`]) says how much may leave.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod credits;
mod hold;
mod receiver;
mod records;
mod rtt;
mod sender;

pub use hold::{Handover, Hold};
pub use receiver::{Receiver, Reply};
pub use sender::{AckHeader, FlowConfig, FlowStats, Recovery, Segment, SendState, Sender};
