//! What the commands share that speak to another machine over the transport: whom they call or let in, who they are, and how
//! they send.
//!
//! A listener is a [`desk`], which prints a ticket and judges callers. A caller finds it by a [`access::Way`] and calls with
//! [`call`].

pub(crate) mod access;
pub(crate) mod call;
pub(crate) mod descriptors;
pub(crate) mod desk;
pub(crate) mod end;
mod identity;
mod key_log;
pub(crate) mod law;
mod log;
pub(crate) mod patience;
pub(crate) mod quantity;
pub(crate) mod resumption;
pub(crate) mod service;
pub(crate) mod trouble;
