//! A client of the kernel's `inet_diag` (`sock_diag(7)`): TCP sockets with their addresses, `struct tcp_info`,
//! congestion control and BPF storage.
//!
//! [`SockDiag`] dumps the sockets of one network namespace. [`Machine`] dumps those of every namespace that it finds and
//! names those that it cannot list. The crate does not depend on laws or scenarios: storage is bytes and a map's ID.

#![cfg(target_os = "linux")]

mod error;
#[doc(hidden)]
pub mod fuzzing {
    //! Functions for the fuzz targets only.

    /// Counts the netlink messages in `bytes`.
    pub fn messages(bytes: &[u8]) -> usize {
        crate::message::replies(bytes).count()
    }
}
mod machine;
mod message;
pub mod netns;
mod sock_diag;
mod sys;
mod tcp_info;

pub use error::Error;
pub use machine::{Listing, Machine};
pub use message::{DiagSocket, DumpRequest, Storage};
pub use sock_diag::{DestroyedSockets, Dump, SockDiag};
pub use tcp_info::TcpInfo;
