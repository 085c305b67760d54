//! The Narrows transport's protocol, version 1, without sockets and clocks. `docs/src/transport.md` specifies it.
//!
//! An [`endpoint::Endpoint`] has [`connection::Connection`]s; its driver supplies datagrams and the time. A connection
//! has [`streams`], may code its packets in [`blocks`], and sends by any law that its [`settings`] name. Two ends
//! connect with a [`ticket`] or a fingerprint ([`identity`]).
//!
//! The wire format is in [`frame`], [`header`] and [`parameters`]. Only these modules read data from a peer. They
//! return values that are in range, or an error. They never panic, and no number in a packet determines the size of an
//! allocation.
//!
//! ```
//! use proto::frame::{Frame, Frames};
//!
//! let mut packet = Vec::new();
//! Frame::Ping.put(&mut packet);
//! Frame::MaxData(1 << 20).put(&mut packet);
//! let frames: Result<Vec<Frame>, _> = Frames::new(&packet).collect();
//! assert_eq!(frames.unwrap(), [Frame::Ping, Frame::MaxData(1 << 20)]);
//! ```

#![no_std]
#![forbid(unsafe_code)]
// Sizes come from the peer: a conversion states its range. Tests convert small constants.
#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_lossless
    )
)]

extern crate alloc;

mod admission;
mod assembler;
mod black_hole;
pub mod blocks;
pub mod closed;
pub mod connection;
mod data;
mod datagrams;
mod dplpmtud;
pub mod endpoint;
mod endpoint_state;
mod event_buffer;
pub mod four_tuple;
pub mod frame;
mod frame_queue;
mod handle;
mod handshake;
pub mod header;
pub mod identity;
mod keys;
mod listener_group;
mod narrow;
pub mod observe;
pub mod parameters;
mod path;
mod receive_memory;
pub mod secret;
pub mod service;
pub mod settings;
pub mod side;
mod space;
mod strangers;
pub mod streams;
pub mod ticket;
mod tls;
mod token;
pub mod varint;

/// The version in long headers: `NRW` and 1.
pub const VERSION: u32 = 0x4e52_5701;

/// Bytes of the connection IDs that an endpoint issues.
pub const ID_LEN: usize = 8;

/// A connection ID issued by an endpoint: it identifies a connection and a path.
pub type ConnectionId = [u8; ID_LEN];

/// Bytes of a stateless reset's token.
pub const TOKEN_LEN: usize = 16;
