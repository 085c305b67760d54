//! One UDP socket: batches of datagrams in and out, with their ECN codepoints.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use flow::Codepoint;
use nix::sys::socket::{setsockopt, sockopt};
use proto::connection::Transmit;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, UdpSocketState};

/// What the kernel keeps for a socket, if it allows so much: 4 MiB are 3 ms at 10 Gb/s.
const BUFFER: usize = 4 << 20;
/// The longest that the kernel gives or takes at once.
const LONGEST: usize = 65_535;

/// A UDP socket.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let state = UdpSocketState::new((&socket).into())?;
        // quinn-udp 0.6 asks for receive times, and then has no room for the codepoint of datagrams that come joined (96 bytes for
        // control messages of 112): whoever sends in batches would find that the path takes codepoints away. Nobody reads those
        // times here.
        setsockopt(&socket, sockopt::ReceiveTimestampns, &false)?;
        // The kernel may allow less, which costs speed alone.
        let _ = state.set_send_buffer_size((&socket).into(), BUFFER);
        let _ = state.set_recv_buffer_size((&socket).into(), BUFFER);
        Ok(Self { socket, state })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// How many datagrams may leave at once.
    pub(crate) fn most_segments(&self) -> usize {
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
            quinn_udp::Transmit { destination: transmit.via.remote, ecn, contents, segment_size, src_ip: None };
        match self.state.try_send((&self.socket).into(), &transmit) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Room for what comes at once.
pub(crate) struct Inbox {
    buffers: Vec<Vec<u8>>,
    metas: Vec<RecvMeta>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { buffers: vec![vec![0; LONGEST]; BATCH_SIZE], metas: vec![RecvMeta::default(); BATCH_SIZE] }
    }

    /// Takes what has come to a socket: gives each datagram, where it came from, and its codepoint. Gives how many buffers were
    /// filled; 0 if nothing has come.
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        mut each: impl FnMut(SocketAddr, Codepoint, &mut [u8]),
    ) -> io::Result<usize> {
        let mut slices: Vec<IoSliceMut> = self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let count = match socket.state.recv((&socket.socket).into(), &mut slices, &mut self.metas) {
            Ok(count) => count,
            // An ICMP message of an earlier datagram says nothing that losses would not say.
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
