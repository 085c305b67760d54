//! Endpoints of the transport in virtual time: the protocol's own code between [`virtual_time`]'s event loop and
//! applications. [`EndpointHost`] does in virtual time what the threads of `transport` do with sockets.
//!
//! Handshakes are real, but their randomness follows from a seed ([`provider::begin`]), so a run can be repeated byte for
//! byte. All keys follow from the seed.
#![forbid(unsafe_code)]

pub mod ecn;
mod endpoint_host;
#[cfg(feature = "null-crypto")]
mod null_crypto;
pub mod provider;
#[cfg(test)]
mod tests;

pub use endpoint_host::{Application, EndpointHost, Slot};
