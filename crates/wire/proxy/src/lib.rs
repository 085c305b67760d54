//! A proxy for programs' TCP connections: they are terminated at both ends of a long path, and cross it as streams of
//! one connection of the transport. `docs/src/proxy.md`.
//!
//! [`client()`] has the listeners for programs' connections: SOCKS 5, fixed destinations, connections that the kernel
//! redirects. [`ProxyServer`] connects to their destinations, if its rules ([`allow`]) allow it. Both run in a runtime of
//! tokio, also one of a single thread.
//!
//! Out of scope: access control of clients (the transport's clients do that), and UDP.
//!
//! A stream begins with its destination, and the other direction with the answer ([`header`]); the rest are the
//! program's bytes.

#![forbid(unsafe_code)]

pub mod allow;
mod copy;
mod destination;
mod event;
pub mod header;
mod parse;
mod proxy_client;
mod proxy_listener;
mod proxy_server;
mod reply;
pub mod socks;
mod tcp_side;

pub use self::copy::RESET;
pub use self::destination::{Destination, DestinationError, Host, MAX_NAME};
pub use self::event::{Event, EventCallback};
pub use self::parse::Parsed;
pub use self::proxy_client::{ConnectFailure, client};
pub use self::proxy_listener::{EntranceKind, ProxyListener};
pub use self::proxy_server::ProxyServer;
pub use self::reply::SocksReply;

/// TCP connections that an end has open at a time. Each takes a file descriptor and at most 128 KiB, in addition to the
/// buffers of the kernel and the stream.
pub const MAX_FLOWS: usize = 1_024;
