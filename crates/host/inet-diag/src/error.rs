//! Errors of `inet_diag` requests.

use std::io;

use nix::errno::Errno;
use thiserror::Error;

/// Reason for which the kernel lists no sockets. Each message has the name of the errno.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel has no `inet_diag` for TCP.
    #[error(
        "the kernel has no inet_diag for TCP ({0}): load its modules (modprobe tcp_diag; CONFIG_INET_DIAG and \
         CONFIG_INET_TCP_DIAG)"
    )]
    Absent(Errno),
    /// The request without BPF storage is refused.
    #[error("the kernel refused to list TCP sockets (inet_diag): {0}")]
    Refused(Errno),
    /// The request for BPF storage is refused; the same request without it may be granted.
    #[error("the kernel refused to list sockets' BPF storage (inet_diag, INET_DIAG_REQ_SK_BPF_STORAGES): {0}")]
    StorageRefused(Errno),
    /// No answer before the deadline.
    #[error("the kernel did not answer an inet_diag request within {seconds} s")]
    Timeout {
        /// The deadline.
        seconds: i64,
    },
    /// An answer does not fit the receive buffer.
    #[error("an inet_diag answer of {bytes} bytes does not fit the receive buffer")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A network namespace cannot be entered.
    #[error("cannot enter the network namespace: {0}")]
    Namespace(io::Error),
    /// A system call on the netlink socket failed.
    #[error("cannot {action}: {errno}")]
    System {
        /// The call's purpose.
        action: &'static str,
        /// Its error.
        errno: Errno,
    },
}

impl Error {
    /// An error of a system call.
    pub(crate) fn system(action: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::System { action, errno }
    }
}
