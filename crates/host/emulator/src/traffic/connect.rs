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
const AT_A_TIME: usize = 512;

/// Time allowed to make all connections: enough for lost SYNs, which are retransmitted after 1, 3, 7 s.
const PATIENCE_S: u64 = 20;

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
    /// Makes the sockets in the hosts' namespaces and connects them. `watch` is called now and then and returns whether
    /// to go on.
    ///
    /// # Errors
    /// When there are too many flows, the kernel lacks a congestion control, a socket cannot be made, connections are
    /// not made in time, or `watch` returns false.
    pub fn new(traffic: Traffic<'a>, ground: &dyn HostNetwork, watch: &mut dyn FnMut() -> bool) -> Result<Self, Error> {
        let count = traffic.setup.flows.len();
        if count > MAX_FLOWS {
            return Err(Error::TooManyFlows { flows: count, most: MAX_FLOWS });
        }
        allow_files(2 * count as u64 + 256);
        let listeners = listeners(&traffic, ground)?;
        let flows = senders(&traffic, ground)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("poll sockets"))?;
        let mut made = Self { traffic, flows, epoll };
        for (index, listener) in listeners.iter().enumerate() {
            made.watch(listener, Token::Listener(index), EpollFlags::EPOLLIN)?;
        }
        made.connect(&listeners, watch)?;
        Ok(made)
    }

    fn watch(&self, socket: impl AsFd, token: Token, events: EpollFlags) -> Result<(), Error> {
        self.epoll.add(socket, EpollEvent::new(events, token.number())).map_err(failed("poll a socket"))
    }

    fn connect(&mut self, listeners: &[TcpListener], watch: &mut dyn FnMut() -> bool) -> Result<(), Error> {
        let all = self.flows.len();
        let (mut begun, mut connected, mut accepted) = (0, 0, 0);
        let until = monotonic_ns() + PATIENCE_S * 1_000_000_000;
        let mut events = [EpollEvent::empty(); 256];
        while connected < all || accepted < all {
            if !watch() {
                return Err(Error::Interrupted);
            }
            if monotonic_ns() > until {
                return Err(self.too_late());
            }
            while begun < all && begun < accepted + AT_A_TIME {
                let ends = &self.flows[begun];
                let Some(sender) = &ends.sender else { break };
                let to = ends.to;
                socket::begin_connect(sender.as_fd(), to).map_err(Error::system(format!("connect to {to}")))?;
                self.watch(sender, Token::Sender(begun), EpollFlags::EPOLLOUT)?;
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
            self.watch(&stream, Token::Receiver(flow), EpollFlags::EPOLLIN)?;
            accepted += usize::from(self.flows[flow].receiver.replace(stream).is_none());
        }
        Ok(accepted)
    }

    fn too_late(&self) -> Error {
        let open = || self.flows.iter().enumerate().filter(|(_, ends)| !ends.connected || ends.receiver.is_none());
        let name = |host: fabric::HostId| {
            let network = &self.traffic.setup.network;
            network.nodes()[network.hosts()[host.index()].index()].name.clone()
        };
        let first = open().next().map(|(flow, _)| &self.traffic.setup.flows[flow]);
        let (from, to) = first.map_or_else(Default::default, |flow| (name(flow.src), name(flow.dst)));
        Error::NotConnected { open: open().count(), flows: self.flows.len(), seconds: PATIENCE_S, from, to }
    }
}

fn failed(doing: &str) -> impl FnOnce(nix::errno::Errno) -> Error {
    let failed = Error::system(doing);
    move |errno| failed(errno.into())
}

/// Raises the limit of open files as far as it may be raised.
fn allow_files(wanted: u64) {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    if soft < wanted {
        // As root the hard limit is raised, too; otherwise it stays, and opening a socket reports the error.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted))
            .or_else(|_| setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard));
    }
}

/// A listener a host that receives and congestion control.
fn listeners(traffic: &Traffic, ground: &dyn HostNetwork) -> Result<Vec<TcpListener>, Error> {
    let mut wanted: Vec<_> = traffic.setup.flows.iter().map(|flow| (flow.dst, flow.kind)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut made = Vec::with_capacity(wanted.len());
    for (host, kind) in wanted {
        let at = SocketAddr::new(ground.address(host, traffic.ip_version), LISTEN_PORT + kind);
        ground.within(host, &mut || {
            made.push(socket::listener(at, &traffic.congestion[usize::from(kind)])?);
            Ok(())
        })?;
    }
    Ok(made)
}

/// A socket a flow, in its source's namespace.
fn senders(traffic: &Traffic, ground: &dyn HostNetwork) -> Result<Vec<FlowSockets>, Error> {
    let flows = &traffic.setup.flows;
    let mut made: Vec<Option<FlowSockets>> = flows.iter().map(|_| None).collect();
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by_key(|&flow| flows[flow].src);
    for group in order.chunk_by(|&a, &b| flows[a].src == flows[b].src) {
        let host = flows[group[0]].src;
        let address = ground.address(host, traffic.ip_version);
        ground.within(host, &mut || {
            for &flow in group {
                let spec = &flows[flow];
                let at = SocketAddr::new(address, port(flow));
                let sender = socket::sender(at, &traffic.congestion[usize::from(spec.kind)])?;
                made[flow] = Some(FlowSockets {
                    sender: Some(sender),
                    receiver: None,
                    to: SocketAddr::new(ground.address(spec.dst, traffic.ip_version), LISTEN_PORT + spec.kind),
                    connected: false,
                    acked_before: 0,
                });
            }
            Ok(())
        })?;
    }
    Ok(made.into_iter().flatten().collect())
}
