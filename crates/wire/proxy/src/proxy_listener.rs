//! Listeners of the proxy client for programs' connections.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::destination::Destination;

/// Connections that may wait until they are accepted; the kernel may allow fewer.
const BACKLOG: i32 = 1_024;

/// The way in which a listener finds the destinations of its connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntranceKind {
    /// Each connection names its own, by SOCKS 5.
    Socks,
    /// All have this one.
    Forward(Destination),
    /// Each connection goes to its original destination, before the kernel redirected it.
    Transparent,
}

/// A listening socket.
#[derive(Debug)]
pub struct ProxyListener {
    pub(crate) kind: EntranceKind,
    pub(crate) listener: TcpListener,
    address: SocketAddr,
}

impl ProxyListener {
    /// Listens at an address; port 0 is any that is free. Must be called within a runtime of tokio.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn open(kind: EntranceKind, address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if kind == EntranceKind::Transparent {
            // For TPROXY, which needs privileges; REDIRECT works without it.
            let _ = match address {
                SocketAddr::V4(_) => socket.set_ip_transparent_v4(true),
                SocketAddr::V6(_) => socket.set_ip_transparent_v6(true),
            };
        }
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let listener = TcpListener::from_std(socket.into())?;
        let address = listener.local_addr()?;
        Ok(Self { kind, listener, address })
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Returns the destination of a connection before it was redirected; none if it was not.
pub(crate) fn original(tcp: &TcpStream, listener_address: SocketAddr) -> Option<SocketAddr> {
    let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let local = canonical(tcp.local_addr().ok()?);
    let socket = SockRef::from(tcp);
    // REDIRECT: the kernel's connection table has the destination.
    let original_dst = if local.is_ipv4() { socket.original_dst_v4() } else { socket.original_dst_v6() };
    if let Some(before) = original_dst.ok().and_then(|address| address.as_socket()).map(canonical)
        && before != local
    {
        return Some(before);
    }
    // TPROXY: the local address of the socket is the original destination.
    let is_listener = local.port() == listener_address.port()
        && (listener_address.ip().is_unspecified() || local.ip() == listener_address.ip().to_canonical());
    (!is_listener).then_some(local)
}
