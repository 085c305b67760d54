//! The sockets of real TCP flows, and the time at which the kernel reports a flow's last byte as acknowledged.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrStorage, bind, connect, listen,
    recvmsg, setsockopt, socket, sockopt,
};

use crate::error::Error;
use crate::socket_calls::set_option;

/// Unsent bytes above which a socket is not writable (`TCP_NOTSENT_LOWAT`): 8 ms at 1 Gb/s.
const UNSENT: i32 = 1 << 20;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// A TCP socket with a congestion control, bound to an address; never blocking.
fn tcp(at: SocketAddr, congestion: &str) -> Result<OwnedFd, Error> {
    let family = if at.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket_fd = socket(family, SockType::Stream, flags, None).map_err(failed("open a TCP socket"))?;
    set_congestion(socket_fd.as_fd(), congestion)?;
    setsockopt(&socket_fd, sockopt::ReuseAddr, &true).map_err(failed("share a port"))?;
    bind(socket_fd.as_raw_fd(), &SockaddrStorage::from(at)).map_err(failed(format!("bind to {at}")))?;
    Ok(socket_fd)
}

fn failed(action: impl Into<String>) -> impl FnOnce(Errno) -> Error {
    let failed = Error::system(action);
    move |errno| failed(errno.into())
}

/// A socket that listens. It has the flows' congestion control before any SYN arrives: a listener without it refuses ECN to
/// a law that requires it.
pub(super) fn listener(at: SocketAddr, congestion: &str) -> Result<TcpListener, Error> {
    let socket_fd = tcp(at, congestion)?;
    let backlog = Backlog::new(BACKLOG).map_err(failed("listen"))?;
    listen(&socket_fd, backlog).map_err(failed(format!("listen at {at}")))?;
    Ok(socket_fd.into())
}

/// A socket that will send from `at`.
pub(super) fn sender(at: SocketAddr, congestion: &str) -> Result<TcpStream, Error> {
    let socket_fd = tcp(at, congestion)?;
    let set = |level, name, value| {
        set_option(socket_fd.as_fd(), level, name, value).map_err(Error::system("set up a socket"))
    };
    set(libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, UNSENT)?;
    // The last segment of a flow leaves at once, full or not.
    set(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    Ok(socket_fd.into())
}

/// Begins to connect; whether it worked shows when the socket can be written to.
pub(super) fn begin_connect(socket: BorrowedFd<'_>, to: SocketAddr) -> io::Result<()> {
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns the error of a connection, if any.
pub(super) fn failure(socket: BorrowedFd<'_>) -> Option<io::Error> {
    match nix::sys::socket::getsockopt(&socket, sockopt::SocketError) {
        Ok(0) | Err(_) => None,
        Ok(code) => Some(io::Error::from_raw_os_error(code)),
    }
}

/// Accepts the next pending connection of a listener, and returns its source.
pub(super) fn accept(listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    match listener.accept() {
        Ok((stream, from)) => stream.set_nonblocking(true).map(|()| Some((stream, from))),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ECONNABORTED | libc::EINTR) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Asks for a time stamp when the last byte of each later write has been acknowledged.
pub(super) fn stamp_acknowledgements(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SOF_TIMESTAMPING_TX_ACK | libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as i32)
}

/// Returns the time at which the newest stamped write was acknowledged, in nanoseconds since 1970; empties the error
/// queue.
pub(super) fn acknowledged_ns(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut newest = None;
    let mut space = cmsg_space!([libc::timespec; 3], libc::sock_extended_err, libc::sockaddr_in6);
    loop {
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let Ok(message) = recvmsg::<()>(socket.as_raw_fd(), &mut [], Some(&mut space), flags) else { return newest };
        for control in message.cmsgs().into_iter().flatten() {
            if let ControlMessageOwned::ScmTimestampsns(stamps) = control {
                let stamp = stamps.system;
                let real_ns = stamp.tv_sec().unsigned_abs() * 1_000_000_000 + stamp.tv_nsec().unsigned_abs();
                newest = newest.max(Some(real_ns));
            }
        }
    }
}

/// Closes a connection by a reset, so that both sides stop at once.
pub(super) fn abort(socket: TcpStream) {
    let _ = setsockopt(&socket, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
    drop(socket);
}

fn set_congestion(socket: BorrowedFd<'_>, name: &str) -> Result<(), Error> {
    match setsockopt(&socket, sockopt::TcpCongestion, &name.into()) {
        Ok(()) => Ok(()),
        Err(Errno::ENOENT) => Err(Error::UnknownCongestion { name: name.to_owned(), available: available() }),
        Err(errno) => Err(failed(format!("choose the congestion control {name}"))(errno)),
    }
}

/// The congestion controls that the kernel has available.
fn available() -> String {
    let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    list.split_whitespace().collect::<Vec<_>>().join(", ")
}

/// Checks whether the kernel has a congestion control, loading its module if it can.
///
/// # Errors
/// If it has not; the message lists the available ones.
pub fn check_congestion(name: &str) -> Result<(), Error> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket_fd = socket(AddressFamily::Inet, SockType::Stream, flags, None).map_err(failed("open a TCP socket"))?;
    set_congestion(socket_fd.as_fd(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_congestion_control_lists_the_available() {
        check_congestion("reno").unwrap();
        let report = check_congestion("nosuchlaw").unwrap_err().to_string();
        assert!(report.contains("no congestion control `nosuchlaw`; it has ") && report.contains("reno"), "{report}");
    }
}
