//! Shared parts of the commands that communicate with another machine over the transport: the peers that they call or
//! admit, their identities, and their settings for sending.
//!
//! A listener is a [`ticket_listener`], which prints a ticket and judges clients. A client finds it by a [`access::PeerTarget`] and connects with
//! [`dial`].

pub(crate) mod access;
pub(crate) mod descriptors;
pub(crate) mod dial;
pub(crate) mod end;
mod identity;
mod key_log;
pub(crate) mod law;
mod log;
pub(crate) mod quantity;
pub(crate) mod resumption;
pub(crate) mod service;
pub(crate) mod session_error;
pub(crate) mod ticket_listener;
pub(crate) mod wait;
