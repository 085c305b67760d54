//! All connections of one endpoint, and its replies to peers without one: Retry, other versions, resets.
//! `docs/src/transport.md`, "Opening a connection" and "Ending".

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use flow::Codepoint;
use rustls::crypto::CryptoProvider;
use rustls::{ServerConfig, SupportedCipherSuite};
use thiserror::Error;
use units::Time;

use crate::closed::CloseReason;
use crate::connection::{Connection, IdChange, NewConnection, Transmit, tag_of_retry};
use crate::dplpmtud::BASE_PLPMTU;
use crate::endpoint_state::EndpointState;
use crate::four_tuple::FourTuple;
use crate::handshake::{Context, Handshake, HandshakeIds, has_client_hello};
use crate::header::{
    Header, LongKind, ParsedPacket, SHORTEST_PACKET, SHORTEST_RESET, TAG_LEN, put_retry, put_versions,
};
use crate::identity::{self, Identity, Trust};
use crate::listener_group::GroupMember;
use crate::observe::{ConnectionStart, ObserverSlot};
use crate::parameters::OriginalDestinationId;
use crate::secret::Secret;
use crate::settings::Settings;
use crate::side::Side;
use crate::strangers::{HandshakeKey, Strangers};
use crate::ticket::TicketId;
use crate::token::{Token, Tokens};
use crate::{ConnectionId, ID_LEN, TOKEN_LEN, VERSION};

pub use crate::handle::ConnectionHandle;

/// Maximum number of queued responses to unknown senders; further ones are dropped.
const MAX_REPLIES: usize = 64;

/// Error in creating an endpoint or a connection of a client.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct EndpointError(alloc::string::String);

impl From<rustls::Error> for EndpointError {
    fn from(error: rustls::Error) -> Self {
        Self(alloc::format!("TLS cannot be set up: {error}"))
    }
}

impl From<CloseReason> for EndpointError {
    fn from(close_reason: CloseReason) -> Self {
        Self(close_reason.reason)
    }
}

/// Target of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// No connection; [`Endpoint::poll_reply`] may return a reply now.
    Nothing,
    /// An existing connection.
    Connection(ConnectionHandle),
    /// A new connection, which the datagram has begun.
    New(ConnectionHandle),
    /// No connection of this endpoint. If another one of its group knows this token, its peer has lost that connection:
    /// [`Endpoint::on_reset`].
    MaybeReset([u8; TOKEN_LEN]),
}

/// The first packet of a client: its four-tuple, and the IDs and the token in its header.
#[derive(Clone, Debug)]
struct First {
    four_tuple: FourTuple,
    to: OriginalDestinationId,
    from: ConnectionId,
    token: Vec<u8>,
}

/// A connection and the IDs that name it.
struct ConnectionEntry {
    connection: Box<Connection>,
    ids: Vec<ConnectionId>,
}

#[derive(Debug)]
struct StatelessReply {
    four_tuple: FourTuple,
    bytes: Vec<u8>,
}

/// Parameters of an endpoint.
#[derive(Clone)]
pub struct EndpointConfig {
    /// Settings of its connections.
    pub settings: Settings,
    /// Algorithms of TLS.
    pub provider: Arc<CryptoProvider>,
    /// The key that it proves to have.
    pub identity: Identity,
}

/// Authentication of both ends of a connection, as its client requires and offers it.
#[derive(Clone)]
pub struct Authentication {
    /// Keys of a listener that are accepted.
    pub trust: Trust,
    /// Identifier and secret of the client's ticket, if it has one.
    pub secret: Option<(TicketId, Secret)>,
}

/// All connections of one endpoint. A client has one, a listener one per client.
pub struct Endpoint {
    shared: EndpointState,
    suites: Vec<SupportedCipherSuite>,
    identity: Identity,
    tls_config: Option<Arc<ServerConfig>>,
    connections: BTreeMap<ConnectionHandle, ConnectionEntry>,
    next: u64,
    ids: BTreeMap<ConnectionId, ConnectionHandle>,
    strangers: Strangers,
    /// Evicted connections that [`Endpoint::poll_evicted`] has not returned yet.
    evicted: VecDeque<ConnectionHandle>,
    tokens: Tokens,
    replies: VecDeque<StatelessReply>,
}

impl Endpoint {
    /// Creates an endpoint without connections. Each endpoint may call; that of a listener also accepts connections.
    ///
    /// # Errors
    /// If the provider lacks algorithms that the protocol needs, or returns no random numbers.
    pub fn new(now: Time, config: EndpointConfig, side: Side) -> Result<Self, EndpointError> {
        let EndpointConfig { settings, provider, identity } = config;
        let (service, key_log) = (settings.service, settings.key_log.clone());
        let tls_config = match side {
            Side::Client => None,
            Side::Listener => Some(identity::listener_config(&provider, &identity, service, key_log)?),
        };
        Self::with_state(now, EndpointState::new(settings, provider, GroupMember::alone())?, identity, tls_config)
    }

    /// Creates `count` endpoints, at least one, that listen at one address together, each for a thread of its own.
    ///
    /// Each has connections of its own. The first byte of an ID, modulo the number of endpoints, is the place of the
    /// endpoint that issued it, counted from 0. So a datagram with a short header is for the endpoint that its second
    /// byte identifies. All other datagrams from one address and port must go to one endpoint, any of them. The limits
    /// on strangers apply to all endpoints together.
    ///
    /// # Errors
    /// As for [`Endpoint::new`].
    pub fn listener_group(now: Time, config: EndpointConfig, count: u8) -> Result<Vec<Self>, EndpointError> {
        let EndpointConfig { settings, provider, identity } = config;
        let tls = identity::listener_config(&provider, &identity, settings.service, settings.key_log.clone())?;
        let shared = EndpointState::new(settings, provider, GroupMember::alone())?;
        let all = GroupMember::all(count).into_iter().map(|member| {
            let shared = EndpointState { member, ..shared.clone() };
            Self::with_state(now, shared, identity.clone(), Some(tls.clone()))
        });
        all.collect()
    }

    fn with_state(
        now: Time,
        shared: EndpointState,
        identity: Identity,
        tls_config: Option<Arc<ServerConfig>>,
    ) -> Result<Self, EndpointError> {
        let tokens = Tokens::new(now, &shared)?;
        let strangers = Strangers::new(shared.member.share());
        Ok(Self {
            suites: shared.provider.cipher_suites.clone(),
            shared,
            identity,
            tls_config,
            connections: BTreeMap::new(),
            next: 0,
            ids: BTreeMap::new(),
            strangers,
            evicted: VecDeque::new(),
            tokens,
            replies: VecDeque::new(),
        })
    }

    /// Opens a connection to a listener; with the identifier and the secret of a ticket, if there is one.
    ///
    /// # Errors
    /// If the machine returns no random numbers, or TLS cannot begin.
    pub fn connect(
        &mut self,
        now: Time,
        four_tuple: FourTuple,
        trust: Trust,
        secret: Option<(TicketId, Secret)>,
    ) -> Result<ConnectionHandle, EndpointError> {
        self.connect_with(now, four_tuple, Authentication { trust, secret }, self.shared.settings.clone())
    }

    /// Opens a connection with settings of its own. Its idle timeout, limits and law may differ from the endpoint's;
    /// its identity may not.
    ///
    /// # Errors
    /// As for [`Endpoint::connect`].
    pub fn connect_with(
        &mut self,
        now: Time,
        four_tuple: FourTuple,
        authentication: Authentication,
        settings: Arc<Settings>,
    ) -> Result<ConnectionHandle, EndpointError> {
        let Authentication { trust, secret } = authentication;
        let shared = EndpointState { settings, ..self.shared.clone() };
        let (service, key_log) = (shared.settings.service, shared.settings.key_log.clone());
        let tls = identity::client_config(&shared.provider, trust, Some(&self.identity), service, key_log)?;
        let first_id = OriginalDestinationId::from(self.shared.random::<ID_LEN>()?);
        let own_id = self.shared.new_id()?;
        let ours = crate::parameters::Parameters {
            own_id: Some(own_id),
            reset: Some(self.shared.reset_token(own_id)),
            ..shared.settings.parameters()
        };
        let context = self.begin(
            &shared.settings,
            ConnectionStart { now, side: Side::Client, original_destination_id: first_id, four_tuple, service },
        );
        let ids = HandshakeIds { first: first_id, own: own_id, peer: first_id };
        let handshake = Handshake::connect(context, tls, ids, &ours)?;
        let side = Side::Client;
        let new = NewConnection { now, shared, side, own_id, four_tuple, first_id, handshake, secret };
        Ok(self.add(Connection::new(new)))
    }

    /// Returns the initial context of a connection's handshake.
    fn begin(&self, settings: &Settings, start: ConnectionStart) -> Context {
        let observer = ObserverSlot::new(settings.observe.as_ref(), &start);
        Context { now: start.now, suites: self.suites.clone(), service: start.service, observer }
    }

    fn add(&mut self, connection: Connection) -> ConnectionHandle {
        let handle = ConnectionHandle(self.next);
        self.next += 1;
        let before =
            self.connections.insert(handle, ConnectionEntry { connection: Box::new(connection), ids: Vec::new() });
        debug_assert!(before.is_none(), "two connections have one handle");
        self.settle(handle);
        handle
    }

    /// Takes no new clients from now on.
    pub fn stop_listening(&mut self) {
        self.tls_config = None;
    }

    /// Returns the connection of a handle, until it is forgotten.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.connections.get_mut(&handle).map(|entry| &mut *entry.connection)
    }

    /// Returns all connections.
    pub fn handles(&self) -> impl Iterator<Item = ConnectionHandle> + '_ {
        self.connections.keys().copied()
    }

    /// Returns the memory of receive buffers in bytes, of this endpoint and of those that listen together with it.
    pub fn receive_memory(&self) -> usize {
        self.shared.memory.bytes()
    }

    /// Applies the changes that calls of a connection have caused. Must be called after other calls of a connection
    /// than by this endpoint's own methods.
    pub fn settle(&mut self, handle: ConnectionHandle) {
        let Some(ConnectionEntry { connection, ids }) = self.connections.get_mut(&handle) else { return };
        for change in connection.take_ids() {
            match change {
                IdChange::New(id) => {
                    ids.push(id);
                    self.ids.insert(id, handle);
                }
                IdChange::Old(id) => {
                    ids.retain(|of| *of != id);
                    self.ids.remove(&id);
                }
            }
        }
        debug_assert!(ids.iter().all(|id| self.ids.get(id) == Some(&handle)), "an ID leads elsewhere");
        if self.strangers.contains(handle) {
            if !connection.is_unvalidated() {
                self.strangers.remove(handle);
            }
            if connection.is_validated() {
                self.strangers.validate(handle);
            }
            if connection.has_claimed() {
                self.strangers.claim(handle);
            }
        }
    }

    /// Forgets a connection that is over, if its events have been read. Returns whether it did.
    pub fn forget(&mut self, handle: ConnectionHandle) -> bool {
        let is_over = self.connections.get(&handle).is_some_and(|entry| entry.connection.is_over());
        if is_over {
            for id in self.connections.remove(&handle).into_iter().flat_map(|entry| entry.ids) {
                let named = self.ids.remove(&id);
                debug_assert_eq!(named, Some(handle), "an ID leads elsewhere");
            }
            self.strangers.remove(handle);
        }
        is_over
    }

    /// Handles a datagram.
    pub fn on_datagram(
        &mut self,
        now: Time,
        four_tuple: FourTuple,
        codepoint: Codepoint,
        datagram: &mut [u8],
    ) -> Received {
        let Ok(packet) = ParsedPacket::read(datagram) else { return Received::Nothing };
        let len = datagram.len();
        let known = match packet.header {
            Header::Short { to } => match self.ids.get(&to) {
                Some(&handle) => Some(handle),
                None => return self.on_unknown(now, four_tuple, datagram),
            },
            Header::Long { to, .. } | Header::Retry { to, .. } => self.find(four_tuple, to),
            Header::OtherVersion { version: 0, to, from } => {
                let Some(handle) = self.find(four_tuple, to) else { return Received::Nothing };
                // The list is accepted from a host that saw the first packet, and if it does not contain the version
                // used (RFC 9000 §6.2).
                let list = datagram.get(7 + to.len() + from.len()..).unwrap_or_default();
                let names_ours = list.chunks(4).any(|version| version == VERSION.to_be_bytes());
                let connection = self.connection(handle);
                if let Some(connection) = connection.filter(|it| !names_ours && it.first_id().as_bytes() == from) {
                    connection.on_other_version(now);
                }
                return Received::Connection(handle);
            }
            Header::OtherVersion { to, from, .. } => {
                if self.tls_config.is_some() && len >= BASE_PLPMTU.into() {
                    let mut bytes = Vec::new();
                    put_versions(&mut bytes, from, to);
                    self.reply(four_tuple, bytes);
                }
                return Received::Nothing;
            }
        };
        if let Some(handle) = known {
            if let Some(connection) = self.connection(handle) {
                connection.on_datagram(now, four_tuple, codepoint, datagram);
            }
            self.settle(handle);
            return Received::Connection(handle);
        }
        let Header::Long { kind: LongKind::Initial, to, from, token } = packet.header else { return Received::Nothing };
        let Some(to) = OriginalDestinationId::new(to).filter(|_| len >= BASE_PLPMTU.into()) else {
            return Received::Nothing;
        };
        let first = First { four_tuple, to, from, token: token.to_vec() };
        self.accept(now, &first, codepoint, datagram).map_or(Received::Nothing, Received::New)
    }

    fn find(&self, four_tuple: FourTuple, to: &[u8]) -> Option<ConnectionHandle> {
        let by_id = ConnectionId::try_from(to).ok().and_then(|id| self.ids.get(&id));
        let client =
            || OriginalDestinationId::new(to).map(|first_id| HandshakeKey { remote: four_tuple.remote, first_id });
        by_id.copied().or_else(|| self.strangers.find(&client()?))
    }

    /// Handles a client's first packet. Returns its connection. Drops the packet, keeps nothing, and leaves the token
    /// valid if the client must validate its address first, the `ClientHello` is incomplete or TLS rejects it, no slot
    /// can be made free, or too many clients ask for another service.
    fn accept(
        &mut self,
        now: Time,
        first: &First,
        codepoint: Codepoint,
        datagram: &mut [u8],
    ) -> Option<ConnectionHandle> {
        let tls = self.tls_config.clone()?;
        let remote = first.four_tuple.remote;
        let (slot, token) = if first.token.is_empty() {
            let Some(slot) = self.shared.member.admit(remote.ip()) else {
                self.retry(now, first);
                return None;
            };
            (slot, None)
        } else {
            let retry_id = ConnectionId::try_from(first.to.as_bytes()).ok()?;
            let token = self.tokens.read(now, remote, retry_id, &first.token)?;
            (self.shared.member.admit_validated(), Some(token))
        };
        if !self.strangers.have_room() || !has_client_hello(&self.suites, first.to, datagram) {
            return None;
        }
        let mut connection = self.begin_connection(now, tls, first, token)?;
        connection.on_datagram(now, first.four_tuple, codepoint, datagram);
        if !connection.has_received() || (connection.is_refused() && !self.shared.member.may_reply(now)) {
            return None;
        }
        if let Some(token) = token {
            self.tokens.redeem(now, token);
        }
        let is_unvalidated = connection.is_unvalidated();
        if is_unvalidated {
            self.make_room(now);
        }
        let handle = self.add(connection);
        if is_unvalidated {
            self.strangers.insert(now, handle, HandshakeKey { remote, first_id: first.to }, slot);
            self.settle(handle);
        }
        Some(handle)
    }

    /// Creates the connection of a client, before its first packet is read. A token, if there is one, has validated the
    /// client's address.
    fn begin_connection(
        &self,
        now: Time,
        tls: Arc<ServerConfig>,
        first: &First,
        token: Option<Token>,
    ) -> Option<Connection> {
        let own_id = self.shared.new_id().ok()?;
        let (original_destination_id, retry_id) =
            token.map_or((first.to, None), |token| (token.original_destination_id, Some(token.retry_id)));
        let ours = crate::parameters::Parameters {
            own_id: Some(own_id),
            original_destination_id: Some(original_destination_id),
            retry_id,
            reset: Some(self.shared.reset_token(own_id)),
            ..self.shared.settings.parameters()
        };
        let service = self.shared.settings.service;
        let start = ConnectionStart {
            now,
            side: Side::Listener,
            original_destination_id,
            four_tuple: first.four_tuple,
            service,
        };
        let context = self.begin(&self.shared.settings, start);
        let ids = HandshakeIds { first: first.to, own: own_id, peer: OriginalDestinationId::from(first.from) };
        let handshake = Handshake::accept(context, tls, ids, &ours).ok()?;
        let mut connection = Connection::new(NewConnection {
            now,
            shared: self.shared.clone(),
            side: Side::Listener,
            own_id,
            four_tuple: first.four_tuple,
            first_id: first.to,
            handshake,
            secret: None,
        });
        if token.is_some() {
            connection.validate_address();
        }
        Some(connection)
    }

    /// Ends the connection that makes room for another client, if no slot is free.
    fn make_room(&mut self, now: Time) {
        let Some(handle) = self.strangers.next_evicted(now) else { return };
        if let Some(connection) = self.connection(handle) {
            connection.evict(now);
        }
        self.settle(handle);
        self.evicted.push_back(handle);
    }

    /// Returns a connection that has made room for another client since the last call. Its last event is
    /// [`Event::Closed`](crate::connection::Event::Closed), and [`Endpoint::forget`] frees it.
    pub fn poll_evicted(&mut self) -> Option<ConnectionHandle> {
        self.evicted.pop_front()
    }

    /// Sends a Retry: the client must send its first packet again, with the token that validates its address.
    fn retry(&mut self, now: Time, first: &First) {
        let &First { four_tuple, to: first_id, from, .. } = first;
        let Ok(retry_id) = self.shared.new_id() else { return };
        let Ok(token) = self.tokens.make(now, &self.shared, four_tuple.remote, first_id, retry_id) else { return };
        let mut bytes = Vec::new();
        put_retry(&mut bytes, &from, retry_id, &token);
        let tag = tag_of_retry(&first_id, &bytes);
        bytes.extend(&tag[..TAG_LEN]);
        self.reply(four_tuple, bytes);
    }

    fn reply(&mut self, four_tuple: FourTuple, bytes: Vec<u8>) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back(StatelessReply { four_tuple, bytes });
        }
        debug_assert!(self.replies.len() <= MAX_REPLIES, "{} replies wait", self.replies.len());
    }

    /// Handles a packet with a short header that belongs to no connection.
    fn on_unknown(&mut self, now: Time, four_tuple: FourTuple, datagram: &[u8]) -> Received {
        let token = datagram.last_chunk::<TOKEN_LEN>().filter(|_| datagram.len() >= SHORTEST_RESET);
        if let Some(handle) = token.and_then(|token| self.on_reset(now, four_tuple, token)) {
            return Received::Connection(handle);
        }
        let id = datagram.get(1..=ID_LEN).and_then(|id| ConnectionId::try_from(id).ok());
        // Another endpoint may well have a connection with its ID.
        let id = id.filter(|id| datagram.len() >= SHORTEST_PACKET && self.shared.member.owns(*id));
        let forwardable_token = token.filter(|_| self.shared.member.has_others());
        if (id.is_none() && forwardable_token.is_none()) || !self.shared.member.may_reply(now) {
            return Received::Nothing;
        }
        if let (Some(id), Ok(random)) = (id, self.shared.random::<{ SHORTEST_RESET - TOKEN_LEN }>()) {
            let mut bytes = random.to_vec();
            bytes[0] = bytes[0] & 0x3f | 0x40;
            bytes.extend(self.shared.reset_token(id));
            self.reply(four_tuple, bytes);
        }
        forwardable_token.map_or(Received::Nothing, |token| Received::MaybeReset(*token))
    }

    /// Ends the connection that this token resets, if there is one. The datagram with the token arrived at another
    /// endpoint of the group.
    pub fn on_reset(&mut self, now: Time, four_tuple: FourTuple, token: &[u8; TOKEN_LEN]) -> Option<ConnectionHandle> {
        let handle = self.reset_by(four_tuple, token)?;
        if let Some(connection) = self.connection(handle) {
            connection.on_reset(now);
        }
        Some(handle)
    }

    /// Returns the connection that this token resets, if it comes from that connection's peer.
    fn reset_by(&self, four_tuple: FourTuple, token: &[u8; TOKEN_LEN]) -> Option<ConnectionHandle> {
        let key = &self.shared.reset;
        let resets = |connection: &Connection| {
            // In constant time, as far as the token goes: timing must not reveal parts of it.
            let mut tokens = connection.paths_to(four_tuple).peekable();
            tokens.peek().is_some() && {
                let tag = key.tag(&[token]);
                tokens.any(|known| key.verifies(&[&known], &tag))
            }
        };
        self.connections.iter().find(|(_, entry)| resets(&entry.connection)).map(|(&handle, _)| handle)
    }

    /// Returns the next datagram for a host without a connection; none if there is none.
    pub fn poll_reply(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        let StatelessReply { four_tuple, bytes } = self.replies.pop_front()?;
        out.extend(&bytes);
        Some(Transmit { four_tuple, codepoint: Codepoint::NotEct, segment: bytes.len() })
    }

    /// Writes the datagrams of one connection, like [`Connection::poll_transmit`].
    pub fn poll_transmit(
        &mut self,
        now: Time,
        handle: ConnectionHandle,
        max_datagrams: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let transmit = self.connection(handle)?.poll_transmit(now, max_datagrams, out);
        if transmit.is_none() {
            self.settle(handle);
        }
        transmit
    }

    /// Handles an expired timer of one connection, like [`Connection::on_timer`].
    pub fn on_timer(&mut self, now: Time, handle: ConnectionHandle) {
        if let Some(connection) = self.connection(handle) {
            connection.on_timer(now);
        }
        self.settle(handle);
    }
}
