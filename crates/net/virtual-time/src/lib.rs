//! An event loop in virtual time for sans-IO hosts and the network between them.
//!
//! A [`Host`] takes packets and times, and returns packets and the next time at which it wants to be called. A [`Network`]
//! accepts packets from hosts and delivers them later. [`EventLoop`] joins them: it processes events in the order (time,
//! network before hosts, host), so the same hosts and network give the same run on any machine. [`HostCosts`] are the time
//! that a host's processor takes.
//!
//! The crate depends on no protocol, no port and no clock. Its users are the tests of the transport's protocol and
//! `narrows emulate --virtual`.
#![forbid(unsafe_code)]

mod costs;
mod datagram;
mod event_loop;
#[cfg(test)]
mod tests;

pub use costs::HostCosts;
pub use datagram::Datagram;
pub use event_loop::{Delivery, EventLoop, Host, HostIndex, Network, Step};
