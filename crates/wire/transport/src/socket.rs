//! One UDP socket: batches of datagrams in and out, with their ECN codepoints.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use flow::Codepoint;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt};
use proto::connection::Transmit;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, UdpSocketState};

/// Size of a socket's kernel buffers, if the kernel allows it: 4 MiB are 3 ms at 10 Gb/s.
const BUFFER: usize = 4 << 20;
/// The maximum size of a kernel send or receive.
const MAX: usize = 65_535;

/// A UDP socket.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::new(UdpSocket::bind(address)?)
    }

    /// Binds `count` sockets, and at least one, at one address. The kernel delivers to each the datagrams of its
    /// connections: [`steer`].
    ///
    /// # Errors
    /// If the address cannot be used, or this system cannot do that.
    pub(crate) fn bind_all(address: SocketAddr, count: u8) -> io::Result<Vec<Self>> {
        // The first is bound before it shares, so the address belongs to no other process, which would otherwise get
        // some of the clients.
        let mut all = vec![UdpSocket::bind(address)?];
        if count > 1 {
            let address = all[0].local_addr()?;
            share(&all[0])?;
            for _ in 1..count {
                all.push(bind_shared(address)?);
            }
            steer(&all[0], count)?;
        }
        all.into_iter().map(Self::new).collect()
    }

    fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // quinn-udp 0.6 requests receive times, and then has no room for the codepoint of datagrams that arrive joined
        // (96 bytes for control messages of 112): a peer that sends in batches would find that the path removes
        // codepoints. These times are not used here.
        setsockopt(&socket, sockopt::ReceiveTimestampns, &false)?;
        // The kernel may allow less, which only affects speed.
        let _ = state.set_send_buffer_size((&socket).into(), BUFFER);
        let _ = state.set_recv_buffer_size((&socket).into(), BUFFER);
        Ok(Self { socket, state })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the maximum number of datagrams in one send.
    pub(crate) fn max_segments(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    /// Sends datagrams.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] alone: nothing was sent, and the socket becomes writable again. All other errors count as
    /// losses on the way.
    pub(crate) fn send(&self, transmit: &Transmit, contents: &[u8]) -> io::Result<()> {
        let ecn = match transmit.codepoint {
            Codepoint::NotEct => None,
            Codepoint::Ect0 => Some(EcnCodepoint::Ect0),
            Codepoint::Ect1 => Some(EcnCodepoint::Ect1),
            Codepoint::Ce => Some(EcnCodepoint::Ce),
        };
        let segment_size = (transmit.segment < contents.len()).then_some(transmit.segment);
        let transmit =
            quinn_udp::Transmit { destination: transmit.four_tuple.remote, ecn, contents, segment_size, src_ip: None };
        match self.state.try_send((&self.socket).into(), &transmit) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}

/// Lets other sockets of this user bind to the same address, if they do so, too.
fn share(socket: &impl AsFd) -> io::Result<()> {
    setsockopt(socket, sockopt::ReusePort, &true).map_err(|error| unsupported("SO_REUSEPORT", error))
}

/// Returns the error of a system that does not support several threads.
fn unsupported(option: &str, error: Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("this system cannot share a UDP port among threads ({option}): {error}"))
}

/// Installs a filter that delivers each datagram to the socket that its ID names, of `count` at one address, in the
/// order in which they were bound (`proto::endpoint::Endpoint::listener_group`). During a handshake a client may choose the ID;
/// all datagrams from one address and port then go to one socket.
#[cfg(target_os = "linux")]
fn steer(socket: &impl AsFd, count: u8) -> io::Result<()> {
    use nix::libc::{
        BPF_A, BPF_ABS, BPF_ALU, BPF_B, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_MOD, BPF_RET, sock_filter, sock_fprog,
    };
    let step = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    // The program reads the UDP payload. It returns the number of a socket; otherwise the kernel chooses by addresses and
    // ports.
    let mut program = [
        step(BPF_LD | BPF_B | BPF_ABS, 0),
        // After a long header's first bit the last step is next.
        sock_filter { jt: 3, ..step(BPF_JMP | BPF_JSET | BPF_K, 0x80) },
        step(BPF_LD | BPF_B | BPF_ABS, 1),
        step(BPF_ALU | BPF_MOD | BPF_K, count.into()),
        step(BPF_RET | BPF_A, 0),
        step(BPF_RET | BPF_K, u32::MAX),
    ];
    let program = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let attached = setsockopt(socket, sockopt::AttachReusePortCbpf, &program);
    attached.map_err(|error| unsupported("SO_ATTACH_REUSEPORT_CBPF", error))
}

#[cfg(not(target_os = "linux"))]
fn steer(_: &impl AsFd, _: u8) -> io::Result<()> {
    Err(unsupported("SO_ATTACH_REUSEPORT_CBPF", Errno::EOPNOTSUPP))
}

/// Binds to an address that another socket shares.
fn bind_shared(address: SocketAddr) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    share(&socket)?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))?;
    Ok(socket.into())
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Buffers for the datagrams of one receive call.
pub(crate) struct Inbox {
    buffers: Vec<Vec<u8>>,
    metas: Vec<RecvMeta>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { buffers: vec![vec![0; MAX]; BATCH_SIZE], metas: vec![RecvMeta::default(); BATCH_SIZE] }
    }

    /// Receives datagrams from a socket: calls `each` with the source address, the codepoint and the datagram. Returns
    /// the number of filled buffers; 0 if nothing has arrived.
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        mut each: impl FnMut(SocketAddr, Codepoint, &mut [u8]),
    ) -> io::Result<usize> {
        let mut slices: Vec<IoSliceMut> = self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let count = match socket.state.recv((&socket.socket).into(), &mut slices, &mut self.metas) {
            Ok(count) => count,
            // An ICMP message about an earlier datagram contains no information beyond that of losses.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) => 0,
            Err(error) => return Err(error),
        };
        for (buffer, meta) in self.buffers.iter_mut().zip(&self.metas).take(count) {
            let codepoint = match meta.ecn {
                None => Codepoint::NotEct,
                Some(EcnCodepoint::Ect0) => Codepoint::Ect0,
                Some(EcnCodepoint::Ect1) => Codepoint::Ect1,
                Some(EcnCodepoint::Ce) => Codepoint::Ce,
            };
            for datagram in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                each(meta.addr, codepoint, datagram);
            }
        }
        Ok(count)
    }
}
