//! Connections of all flows, made before any of them sends.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::{HostNetwork, LISTEN_PORT, MAX_FLOWS, Traffic, flow_of, port, socket};
use crate::error::Error;
use crate::socket_calls::tcp_info;
use crate::sys::monotonic_ns;

/// Connections under way at a time: fewer than a listener's queue holds.
const MAX_CONCURRENT_CONNECTS: usize = 512;

/// Time allowed to make all connections: enough for lost SYNs, which are retransmitted after 1, 3, 7 s.
const CONNECT_TIMEOUT_S: u64 = 20;

/// Source of an event of the poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token {
    Listener(usize),
    Sender(usize),
    Receiver(usize),
}

impl Token {
    pub(super) fn number(self) -> u64 {
        let (kind, index) = match self {
            Self::Listener(index) => (0, index),
            Self::Sender(index) => (1, index),
            Self::Receiver(index) => (2, index),
        };
        kind << 32 | index as u64
    }

    pub(super) fn of(number: u64) -> Self {
        let index = (number & u64::from(u32::MAX)) as usize;
        match number >> 32 {
            0 => Self::Listener(index),
            1 => Self::Sender(index),
            _ => Self::Receiver(index),
        }
    }
}

/// The ends of one flow.
#[derive(Debug)]
pub(super) struct FlowSockets {
    pub(super) sender: Option<TcpStream>,
    pub(super) receiver: Option<TcpStream>,
    to: SocketAddr,
    connected: bool,
    /// The kernel's count of acknowledged bytes before any payload: a SYN counts as one.
    pub(super) acked_before: u64,
}

/// All flows connected, none of them sending.
#[derive(Debug)]
pub struct Connected<'a> {
    pub(super) traffic: Traffic<'a>,
    pub(super) flows: Vec<FlowSockets>,
    pub(super) epoll: Epoll,
}

impl<'a> Connected<'a> {
    /// Makes the sockets in the hosts' namespaces and connects them. `keep_running` is called now and then and returns whether
    /// to go on.
    ///
    /// # Errors
    /// When there are too many flows, the kernel lacks a congestion control, a socket cannot be made, connections are
    /// not made in time, or `keep_running` returns false.
    pub fn new(
        traffic: Traffic<'a>,
        host_network: &dyn HostNetwork,
        keep_running: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Error> {
        let count = traffic.setup.flows.len();
        if count > MAX_FLOWS {
            return Err(Error::TooManyFlows { flows: count, max: MAX_FLOWS });
        }
        allow_files(2 * count as u64 + 256);
        let listeners = listeners(&traffic, host_network)?;
        let flows = senders(&traffic, host_network)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("poll sockets"))?;
        let mut connections = Self { traffic, flows, epoll };
        for (index, listener) in listeners.iter().enumerate() {
            connections.register(listener, Token::Listener(index), EpollFlags::EPOLLIN)?;
        }
        connections.connect(&listeners, keep_running)?;
        Ok(connections)
    }

    fn register(&self, socket: impl AsFd, token: Token, events: EpollFlags) -> Result<(), Error> {
        self.epoll.add(socket, EpollEvent::new(events, token.number())).map_err(failed("poll a socket"))
    }

    fn connect(&mut self, listeners: &[TcpListener], keep_running: &mut dyn FnMut() -> bool) -> Result<(), Error> {
        let total = self.flows.len();
        let (mut begun, mut connected, mut accepted) = (0, 0, 0);
        let deadline_ns = monotonic_ns() + CONNECT_TIMEOUT_S * 1_000_000_000;
        let mut events = [EpollEvent::empty(); 256];
        while connected < total || accepted < total {
            if !keep_running() {
                return Err(Error::Interrupted);
            }
            if monotonic_ns() > deadline_ns {
                return Err(self.connect_timeout());
            }
            while begun < total && begun < accepted + MAX_CONCURRENT_CONNECTS {
                let ends = &self.flows[begun];
                let Some(sender) = &ends.sender else { break };
                let to = ends.to;
                socket::begin_connect(sender.as_fd(), to).map_err(Error::system(format!("connect to {to}")))?;
                self.register(sender, Token::Sender(begun), EpollFlags::EPOLLOUT)?;
                begun += 1;
            }
            let timeout = EpollTimeout::from(50u8);
            let count = self.epoll.wait(&mut events, timeout).unwrap_or(0);
            for event in &events[..count] {
                match Token::of(event.data()) {
                    Token::Listener(index) => accepted += self.accept(&listeners[index])?,
                    Token::Sender(flow) => connected += usize::from(self.established(flow)?),
                    Token::Receiver(_) => {}
                }
            }
        }
        for ends in &mut self.flows {
            ends.acked_before = ends.sender.as_ref().map_or(0, |it| tcp_info(it.as_fd()).bytes_acked.get());
        }
        Ok(())
    }

    fn established(&mut self, flow: usize) -> Result<bool, Error> {
        let ends = &mut self.flows[flow];
        let Some(sender) = &ends.sender else { return Ok(false) };
        if let Some(source) = socket::failure(sender.as_fd()) {
            return Err(Error::system(format!("connect to {}", ends.to))(source));
        }
        // From now on only errors and the error queue's time stamps wake the poll, until it sends.
        let mut quiet = EpollEvent::new(EpollFlags::empty(), Token::Sender(flow).number());
        self.epoll.modify(sender, &mut quiet).map_err(failed("poll a socket"))?;
        Ok(!std::mem::replace(&mut ends.connected, true))
    }

    fn accept(&mut self, listener: &TcpListener) -> Result<usize, Error> {
        let mut accepted = 0;
        while let Some((stream, from)) = socket::accept(listener).map_err(Error::system("accept a connection"))? {
            let Some(flow) = flow_of(from.port()).filter(|&flow| flow < self.flows.len()) else { continue };
            self.register(&stream, Token::Receiver(flow), EpollFlags::EPOLLIN)?;
            accepted += usize::from(self.flows[flow].receiver.replace(stream).is_none());
        }
        Ok(accepted)
    }

    fn connect_timeout(&self) -> Error {
        let open = || self.flows.iter().enumerate().filter(|(_, ends)| !ends.connected || ends.receiver.is_none());
        let name = |host: fabric::HostId| {
            let network = &self.traffic.setup.network;
            network.nodes()[network.hosts()[host.index()].index()].name.clone()
        };
        let first = open().next().map(|(flow, _)| &self.traffic.setup.flows[flow]);
        let (from, to) = first.map_or_else(Default::default, |flow| (name(flow.src), name(flow.dst)));
        Error::NotConnected { open: open().count(), flows: self.flows.len(), seconds: CONNECT_TIMEOUT_S, from, to }
    }
}

fn failed(action: &str) -> impl FnOnce(nix::errno::Errno) -> Error {
    let failed = Error::system(action);
    move |errno| failed(errno.into())
}

/// Raises the limit of open files as far as it may be raised.
fn allow_files(needed: u64) {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    if soft < needed {
        // As root the hard limit is raised, too; otherwise it stays, and opening a socket reports the error.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, needed, hard.max(needed))
            .or_else(|_| setrlimit(Resource::RLIMIT_NOFILE, needed.min(hard), hard));
    }
}

/// A listener a host that receives and congestion control.
fn listeners(traffic: &Traffic, host_network: &dyn HostNetwork) -> Result<Vec<TcpListener>, Error> {
    let mut needed: Vec<_> = traffic.setup.flows.iter().map(|flow| (flow.dst, flow.kind)).collect();
    needed.sort_unstable();
    needed.dedup();
    let mut sockets = Vec::with_capacity(needed.len());
    for (host, kind) in needed {
        let at = SocketAddr::new(host_network.address(host, traffic.ip_version), LISTEN_PORT + kind);
        host_network.within(host, &mut || {
            sockets.push(socket::listener(at, &traffic.congestion[usize::from(kind)])?);
            Ok(())
        })?;
    }
    Ok(sockets)
}

/// A socket a flow, in its source's namespace.
fn senders(traffic: &Traffic, host_network: &dyn HostNetwork) -> Result<Vec<FlowSockets>, Error> {
    let flows = &traffic.setup.flows;
    let mut sockets: Vec<Option<FlowSockets>> = flows.iter().map(|_| None).collect();
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|&flow| flows[flow].src);
    for group in order.chunk_by(|&a, &b| flows[a].src == flows[b].src) {
        let host = flows[group[0]].src;
        let address = host_network.address(host, traffic.ip_version);
        host_network.within(host, &mut || {
            for &flow in group {
                let spec = &flows[flow];
                let at = SocketAddr::new(address, port(flow));
                let sender = socket::sender(at, &traffic.congestion[usize::from(spec.kind)])?;
                sockets[flow] = Some(FlowSockets {
                    sender: Some(sender),
                    receiver: None,
                    to: SocketAddr::new(host_network.address(spec.dst, traffic.ip_version), LISTEN_PORT + spec.kind),
                    connected: false,
                    acked_before: 0,
                });
            }
            Ok(())
        })?;
    }
    Ok(sockets.into_iter().flatten().collect())
}
