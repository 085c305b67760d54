//! The UDP ports of one of an endpoint's threads, and their owners.

use std::net::SocketAddr;
use std::sync::Arc;

use proto::endpoint::ConnectionHandle;

use crate::socket::Socket;

/// The owner of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// Any connection may have a path from it.
    Shared,
    /// Reserved for a connection that has not begun.
    Reserved,
    /// Owned by one connection; the port is closed when that is forgotten.
    Connection(ConnectionHandle),
}

/// The ports, by their numbers.
#[derive(Debug)]
pub(crate) struct Ports {
    local: SocketAddr,
    /// None where one was closed: the next that is bound gets its number.
    ports: Vec<Option<(Arc<Socket>, Owner)>>,
}

impl Ports {
    /// Creates the ports. The first one is the endpoint's address.
    pub(crate) fn new(first: Socket, local: SocketAddr) -> Self {
        Self { local, ports: vec![Some((Arc::new(first), Owner::Shared))] }
    }

    pub(crate) fn get(&self, at: u16) -> Option<&Arc<Socket>> {
        self.ports.get(usize::from(at))?.as_ref().map(|(socket, _)| socket)
    }

    /// Returns all open ports.
    pub(crate) fn all(&self) -> Vec<(u16, Arc<Socket>)> {
        let open = (0u16..).zip(&self.ports).filter_map(|(at, port)| Some((at, port.as_ref()?.0.clone())));
        open.collect()
    }

    /// Adds a port, for a connection that begins later. None if there are too many.
    pub(crate) fn reserve(&mut self, socket: Socket) -> Option<u16> {
        self.add(socket, Owner::Reserved)
    }

    /// Assigns a reserved port to the connection that has begun; without one, the port is closed.
    pub(crate) fn assign(&mut self, at: u16, handle: Option<ConnectionHandle>) {
        if self.owner(at) != Some(Owner::Reserved) {
            return;
        }
        let port = &mut self.ports[usize::from(at)];
        match (port.as_mut(), handle) {
            (Some((_, owner)), Some(handle)) => *owner = Owner::Connection(handle),
            _ => *port = None,
        }
    }

    /// Returns a port for another path of a connection, which has `known` already: a free one, or a new one. A
    /// connection that began at a port of its own shares none of its ports.
    pub(crate) fn port_for_path(&mut self, handle: ConnectionHandle, known: &[u16]) -> Option<u16> {
        let own = Owner::Connection(handle);
        let has_own = known.iter().any(|at| self.owner(*at) == Some(own));
        let owner = if has_own { own } else { Owner::Shared };
        let is_free = |at: &u16| self.owner(*at) == Some(owner) && !known.contains(at);
        match (0..self.ports.len() as u16).find(is_free) {
            None => self.add(Socket::bind((self.local.ip(), 0).into()).ok()?, owner),
            free => free,
        }
    }

    /// Closes the ports of a connection that is forgotten.
    pub(crate) fn forget(&mut self, handle: ConnectionHandle) {
        for port in &mut self.ports {
            if port.as_ref().is_some_and(|(_, owner)| *owner == Owner::Connection(handle)) {
                *port = None;
            }
        }
    }

    fn owner(&self, at: u16) -> Option<Owner> {
        self.ports.get(usize::from(at))?.as_ref().map(|(_, owner)| *owner)
    }

    fn add(&mut self, socket: Socket, owner: Owner) -> Option<u16> {
        let at = self.ports.iter().position(Option::is_none).unwrap_or(self.ports.len());
        let number = u16::try_from(at).ok().filter(|at| *at < u16::MAX)?;
        if at == self.ports.len() {
            self.ports.push(None);
        }
        debug_assert!(self.ports[at].is_none(), "port {at} is replaced while it is open");
        self.ports[at] = Some((Arc::new(socket), owner));
        Some(number)
    }
}
