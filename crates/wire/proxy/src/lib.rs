//! A proxy for programs' TCP connections: they are terminated at both ends of a long path, and cross it as streams of
//! one connection of the transport. `docs/src/proxy.md`.
//!
//! [`near()`] has the listeners for programs' connections: SOCKS 5, fixed destinations, connections that the kernel
//! redirects. [`Far`] connects to their destinations, if its rules ([`allow`]) allow it. Both run in a runtime of
//! tokio, also one of a single thread.
//!
//! Out of scope: access control of clients (the transport's callers do that), and UDP.
//!
//! A stream begins with its destination, and the other direction with the answer ([`header`]); the rest are the
//! program's bytes.

#![forbid(unsafe_code)]

pub mod allow;
mod copy;
mod destination;
mod door;
mod event;
mod far;
pub mod header;
mod leg;
mod near;
mod parse;
mod reply;
pub mod socks;

pub use self::copy::RESET;
pub use self::destination::{Destination, DestinationError, Host, LONGEST_NAME};
pub use self::door::{Door, Kind};
pub use self::event::{Event, Log};
pub use self::far::Far;
pub use self::near::{Refusal, near};
pub use self::parse::Parsed;
pub use self::reply::Reply;

/// TCP connections that an end has open at a time. Each takes a file descriptor and at most 128 KiB, in addition to the
/// buffers of the kernel and the stream.
pub const MOST_FLOWS: usize = 1_024;
