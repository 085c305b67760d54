//! The netlink socket of `sock_diag(7)`: dumps, and notifications about destroyed sockets.

use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt, socket,
    sockopt,
};
use nix::sys::time::TimeVal;

use crate::error::Error;
use crate::message::{DiagSocket, DumpRequest, Family, NetlinkContent, replies};

/// Groups of notifications about destroyed TCP sockets, for IPv4 and IPv6: `SKNLGRP_INET_TCP_DESTROY` is 1,
/// `SKNLGRP_INET6_TCP_DESTROY` 3, and an address has a bit for each.
const DESTROYED: u32 = 1 << 0 | 1 << 2;

/// Deadline of one receive: a dump takes microseconds per socket.
const DEADLINE_S: i64 = 5;

/// Initial receive buffer. The kernel fills up to 32 KiB per message; a larger one needs a large storage.
const BUFFER: usize = 64 << 10;

/// Maximum receive buffer.
const MAX_BUFFER: usize = 16 << 20;

/// Attempts at a dump that the kernel marks as interrupted.
const ATTEMPTS: u32 = 3;

/// The TCP sockets of one network namespace: that of the thread which opened it.
#[derive(Debug)]
pub struct SockDiag {
    netlink: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
}

impl SockDiag {
    /// Opens a netlink socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// If the kernel has no `sock_diag`, or the process may not open another descriptor.
    pub fn open() -> Result<Self, Error> {
        let netlink = netlink()?;
        let deadline = TimeVal::new(DEADLINE_S, 0);
        setsockopt(&netlink, sockopt::ReceiveTimeout, &deadline).map_err(Error::system("set a receive timeout"))?;
        Ok(Self { netlink, buffer: vec![0; BUFFER], sequence: 0 })
    }

    /// Calls `each` with every socket that the request selects. If the table changed during each of several attempts,
    /// sockets may be missing.
    ///
    /// # Errors
    /// If the kernel has no `inet_diag` for TCP, refuses the request, or does not answer within 5 s.
    pub fn dump(&mut self, request: &DumpRequest<'_>, mut each: impl FnMut(DiagSocket)) -> Result<Dump, Error> {
        let mut dump = Dump::Complete;
        for family in [Family::V4, Family::V6] {
            // Sockets of an interrupted dump are dropped: the next attempt lists them again.
            let mut attempts = ATTEMPTS;
            let sockets = loop {
                attempts -= 1;
                let (sockets, interrupted) = self.attempt(request, family)?;
                if !interrupted {
                    break sockets;
                }
                if attempts == 0 {
                    dump = Dump::Interrupted;
                    break sockets;
                }
            };
            sockets.into_iter().for_each(&mut each);
        }
        Ok(dump)
    }

    /// Dumps one family once. Returns the sockets, and true if the dump was interrupted.
    fn attempt(&mut self, request: &DumpRequest<'_>, family: Family) -> Result<(Vec<DiagSocket>, bool), Error> {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let message = request.encode(family, self.sequence);
        retried(|| send(self.netlink.as_raw_fd(), &message, MsgFlags::empty()))
            .map_err(Error::system("send an inet_diag request"))?;
        let (mut sockets, mut interrupted) = (Vec::new(), false);
        loop {
            let length = self.receive()?;
            for reply in replies(&self.buffer[..length]) {
                if reply.sequence != self.sequence {
                    continue;
                }
                interrupted |= reply.interrupted;
                match reply.message {
                    NetlinkContent::Socket(socket) => sockets.push(*socket),
                    NetlinkContent::Done => return Ok((sockets, interrupted)),
                    NetlinkContent::Failed(error) => return Err(refusal(request, Errno::from_raw(error))),
                    NetlinkContent::Other => {}
                }
            }
        }
    }

    /// Receives a datagram and returns its length. Its length is read first: a truncated datagram may have had the end
    /// of the dump in it.
    fn receive(&mut self) -> Result<usize, Error> {
        let netlink = self.netlink.as_raw_fd();
        let length = received(|| recv(netlink, &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC))?;
        if length > MAX_BUFFER {
            return Err(Error::TooLong { bytes: length });
        }
        if length > self.buffer.len() {
            self.buffer.resize(length.next_power_of_two(), 0);
        }
        received(|| recv(netlink, &mut self.buffer, MsgFlags::empty()))
    }
}

/// Repeats a receive that a signal interrupts, and names its deadline.
fn received(receive: impl FnMut() -> nix::Result<usize>) -> Result<usize, Error> {
    retried(receive).map_err(|errno| match errno {
        Errno::EAGAIN => Error::Timeout { seconds: DEADLINE_S },
        errno => Error::System { action: "receive an inet_diag answer", errno },
    })
}

/// Outcome of a dump that was not refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dump {
    /// All sockets that existed throughout are listed.
    Complete,
    /// The table changed during every attempt: sockets may be missing.
    Interrupted,
}

/// Notifications about TCP sockets that the kernel destroys in one network namespace.
#[derive(Debug)]
pub struct DestroyedSockets {
    netlink: OwnedFd,
    buffer: Vec<u8>,
}

impl DestroyedSockets {
    /// Subscribes in the calling thread's network namespace.
    ///
    /// # Errors
    /// If the kernel has no `sock_diag`, or refuses the subscription.
    pub fn open() -> Result<Self, Error> {
        let netlink = netlink()?;
        bind(netlink.as_raw_fd(), &NetlinkAddr::new(0, DESTROYED))
            .map_err(Error::system("subscribe to destroyed sockets (inet_diag)"))?;
        Ok(Self { netlink, buffer: vec![0; BUFFER] })
    }

    /// Calls `each` with the last state of every socket destroyed since the last call. Does not wait.
    pub fn drain(&mut self, mut each: impl FnMut(DiagSocket)) {
        loop {
            let length = match recv(self.netlink.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => length,
                // After an overrun the notifications that had room are still there.
                Err(Errno::EINTR | Errno::ENOBUFS) => continue,
                Err(_) => return,
            };
            for reply in replies(&self.buffer[..length]) {
                if let NetlinkContent::Socket(socket) = reply.message {
                    each(*socket);
                }
            }
        }
    }
}

fn netlink() -> Result<OwnedFd, Error> {
    let opened = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkSockDiag);
    opened.map_err(|errno| match errno {
        Errno::EPROTONOSUPPORT | Errno::EAFNOSUPPORT => Error::Absent(errno),
        _ => Error::System { action: "open a netlink socket", errno },
    })
}

/// The error for a refused dump.
fn refusal(request: &DumpRequest<'_>, errno: Errno) -> Error {
    match errno {
        // The kernel finds no handler of the family or the protocol.
        Errno::ENOENT | Errno::EAFNOSUPPORT | Errno::EPROTONOSUPPORT => Error::Absent(errno),
        _ if request.has_storages() => Error::StorageRefused(errno),
        _ => Error::Refused(errno),
    }
}

/// Repeats a call that a signal interrupts.
fn retried<T>(mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn own_connection_is_listed_once_in_every_dump() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let from = listener.accept().unwrap().0;
        let address = to.local_addr().unwrap();
        let mut kernel = SockDiag::open().unwrap();
        // A buffer that is too small grows.
        kernel.buffer = vec![0; 16];
        for _ in 0..2 {
            let mut found = Vec::new();
            kernel.dump(&DumpRequest::connections(), |socket| found.push(socket)).unwrap();
            let own: Vec<_> = found.iter().filter(|socket| socket.local == address).collect();
            assert!(matches!(own[..], [socket] if socket.info.state == 1 && !socket.congestion.is_empty()), "{own:?}");
        }
        drop((to, from));
    }

    #[test]
    fn destroyed_connection_is_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut destroyed = DestroyedSockets::open().unwrap();
        let to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let address = to.local_addr().unwrap();
        drop((listener.accept().unwrap(), to));
        let mut seen = false;
        for _ in 0..500 {
            destroyed.drain(|socket| seen |= socket.local == address || socket.peer == address);
            if seen {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("no notification within 10 s");
    }

    #[test]
    fn refused_storage_request_differs_from_a_refused_dump() {
        // Not a BPF map: EINVAL for root, EPERM for others.
        let file = std::fs::File::open("/dev/null").unwrap();
        let request = DumpRequest::connections().with_storages([file.as_fd()]);
        let mut kernel = SockDiag::open().unwrap();
        let error = kernel.dump(&request, |_| {}).unwrap_err();
        assert!(matches!(error, Error::StorageRefused(Errno::EINVAL | Errno::EBADF | Errno::EPERM)), "{error}");
        // The socket can still be used.
        kernel.dump(&DumpRequest::connections(), |_| {}).unwrap();
    }
}
