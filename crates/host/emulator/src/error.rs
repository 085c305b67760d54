//! Errors, with advice on how to resolve them.

use std::io;

use thiserror::Error;

/// Reason why hosts or a router could not be made.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("{action}: not permitted; network namespaces and TUN devices need root: run this with sudo")]
    NotPermitted { action: String },
    #[error("there is no `ip` command: install iproute2")]
    NoIp,
    #[error("`ip {arguments}`: {message}")]
    Ip { arguments: String, message: String },
    #[error("{action}: {source}")]
    System { action: String, source: io::Error },
    #[error("/dev/net/tun: {source}; load the kernel's module (modprobe tun), or let the container have the device")]
    NoTun { source: io::Error },
    #[error("an MTU of {mtu} bytes; 1,280 (what IPv6 asks for) to 65,535 are possible: change the packet size")]
    Mtu { mtu: u16 },
    #[error(transparent)]
    TooManyHosts(#[from] router::TooManyHosts),
    #[error("this process has emulated hosts already, and their namespaces bear its number; drop those first")]
    Busy,
    #[error(
        "congestion control {name}: {source}; `narrows kernel status` and `sysctl net.ipv4.tcp_available_congestion_control` list the available ones"
    )]
    Congestion { name: String, source: io::Error },
    #[error("host {host} is not one of the {hosts} emulated")]
    NoSuchHost { host: u32, hosts: usize },
    #[error("packet capture {path}: {message}")]
    Capture { path: String, message: String },
    #[error("cannot sample the hosts' sockets: {0}")]
    Sockets(#[from] inet_diag::Error),
    #[error("the router's thread ended before it was asked to")]
    RouterDied,
    #[error(
        "the kernel knows no congestion control `{name}`; it has {available}\nhelp: load its module, or choose a \
         scheme with a law of the kernel"
    )]
    UnknownCongestion { name: String, available: String },
    #[error("{flows} flows: real TCP is run for up to {max}\nhelp: make the traffic smaller")]
    TooManyFlows { flows: usize, max: usize },
    #[error(
        "{open} of {flows} connections were not made within {seconds} s, among them one from {from} to {to}: their \
         first packets were lost"
    )]
    NotConnected { open: usize, flows: usize, seconds: u64, from: String, to: String },
    #[error("{0}")]
    Transport(String),
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Returns an error of the system for `action`; the one for missing permission advises root.
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted { action },
            _ => Self::System { action, source },
        }
    }
}
