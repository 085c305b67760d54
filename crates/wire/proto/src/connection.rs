//! One connection, at either end: from the first packet until it is closed and forgotten.
//!
//! It does no input or output and reads no clock. Its driver passes it datagrams and the time, and sends the output of
//! [`Connection::poll_transmit`]. After each call of another method, and at [`Connection::next_timer`], the driver must
//! call `poll_transmit` until it returns none.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddr;

use flow::{ChannelStats, Codepoint};
use laws::{ControlLaw, LawActions};
use units::{Bytes, Span, Time};

use crate::admission::{Admission, EarlyPackets, PacketProperties, Undecryptable};
use crate::blocks::CodingStats;
use crate::closed::{CloseCode, CloseReason, Closed};
use crate::data::{ConnectionUpdate, Data, NewData, OpenedPacket, ReadOutcome};
use crate::dplpmtud::BASE_PLPMTU;
use crate::endpoint_state::EndpointState;
use crate::four_tuple::FourTuple;
use crate::frame_queue::ConnectionFrame;
use crate::handshake::{Agreed, Handshake, HandshakePacket, HandshakeRead, other_service};
use crate::header::{Header, LongKind, ParsedPacket, TAG_LEN};
use crate::identity::Fingerprint;
use crate::keys::DecryptedPacket;
use crate::narrow::to_i64;
use crate::observe::{self, Establishment, KeyCause, ObserverSlot};
use crate::parameters::{OriginalDestinationId, Parameters};
use crate::path::{AmplificationLimit, Path, State};
use crate::secret::{MacKey, Secret};
use crate::service::Service;
use crate::side::Side;
use crate::streams::{StreamEvent, StreamId, Streams};
use crate::ticket::TicketId;
use crate::tls::data_keys;
use crate::{ConnectionId, TOKEN_LEN};

pub use crate::frame_queue::DatagramError;

/// Maximum time until the handshake is complete and the client known.
const HANDSHAKE: Span = Span::from_s(10);

/// Unanswered rounds of a liveness probe after which the peer counts as silent.
const LIVENESS_ROUNDS: u32 = 2;
/// Minimum duration of a round: a host that is alive may be late by more than the probe timeout of a short path.
const MIN_LIVENESS_ROUND: Span = Span::from_ms(200);

/// Event of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The keys are available. A client may send from now on.
    Connected,
    /// A client requests admission. The listener calls [`Connection::admit`] or [`Connection::refuse`].
    Claim(PeerIdentity),
    /// The listener has admitted this client.
    Admitted,
    /// Event of a stream.
    Stream(StreamEvent),
    /// A datagram arrived.
    Datagram(Vec<u8>),
    /// [`Connection::open_path`] may open another path now.
    MorePaths,
    /// A path carries data from now on.
    PathOpen(u32),
    /// A path no longer exists.
    PathGone(u32),
    /// Request to replace this path by one from another port.
    PathWanted(u32),
    /// Result of [`Connection::probe`].
    Probed(Liveness),
    /// The connection is over. No other event follows.
    Closed(Closed),
}

/// Result of a liveness probe ([`Connection::probe`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Liveness {
    /// A packet arrived that the peer sent after the probe began.
    Alive,
    /// None arrived within two probe timeouts in a row.
    Silent,
}

/// A liveness probe in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LivenessProbe {
    /// Time from which packets that arrive were sent after the probe began.
    earliest_response: Time,
    /// Rounds that have begun.
    rounds: u32,
    /// End of the present round.
    until: Time,
}

/// Claimed identity of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerIdentity {
    /// The ticket that it claims to have; zeros without one. [`Connection::proves`] returns whether it has the secret.
    pub ticket: TicketId,
    /// The key that it has proved to possess.
    pub key: Option<Fingerprint>,
}

/// Destination and format of datagrams that [`Connection::poll_transmit`] wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Their four-tuple.
    pub four_tuple: FourTuple,
    /// ECN codepoint of their IP headers.
    pub codepoint: Codepoint,
    /// Length of each datagram in the appended bytes; the last one may be shorter.
    pub segment: usize,
}

/// Change of an ID to which packets are sent, for lookups of connections by ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IdChange {
    New(ConnectionId),
    Old(ConnectionId),
}

/// Counters of a path, for observers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathStats {
    /// Its number.
    pub path: u32,
    /// Its four-tuple.
    pub four_tuple: FourTuple,
    /// Set if it carries data.
    pub is_open: bool,
    /// Maximum UDP payload that the path supports, in bytes.
    pub packet_size: u16,
    /// The smoothed round trip.
    pub rtt: Span,
    /// The shortest round trip; none if none was measured.
    pub min_rtt: Option<Span>,
    /// Sent packets, including ack-only packets.
    pub packets: u64,
    /// Bytes of frames that the peer has acknowledged.
    pub acked: Bytes,
    /// Part of `acked` that arrived CE-marked.
    pub marked: Bytes,
    /// Set while packets are sent ECN-capable; not set once the path is known to change codepoints.
    pub ecn: bool,
    /// Total time for which On-Ramp has held this end's packets, with or without any waiting, including a hold in
    /// progress.
    pub held: Span,
}

/// State and actions of a connection's laws, for observers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LawStats {
    /// The window that they permit together.
    pub window: Bytes,
    /// Number of their actions, all together.
    pub actions: LawActions,
    /// The own state of the first path's law, by name; units are the last word.
    pub trace: Vec<(&'static str, i64)>,
}

/// State of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
enum ConnectionState {
    Open,
    /// Closed by this end. Packets that still arrive are answered with a CLOSE, ever more rarely.
    Closing {
        until: Time,
        close_reason: CloseReason,
        received: u64,
        replied: u64,
        /// Kinds of packets in which a CLOSE is due: Initial, Handshake, all others.
        due: [bool; 3],
    },
    /// Closed by the peer.
    Draining(Time),
    Over,
}

/// Parameters of a connection during its handshake.
pub(crate) struct NewConnection {
    pub(crate) now: Time,
    pub(crate) shared: EndpointState,
    pub(crate) side: Side,
    pub(crate) own_id: ConnectionId,
    /// Four-tuple of the handshake.
    pub(crate) four_tuple: FourTuple,
    /// The ID to which the client sent its first packet.
    pub(crate) first_id: OriginalDestinationId,
    pub(crate) handshake: Handshake,
    /// Identifier and secret of a client's ticket, if it has one.
    pub(crate) secret: Option<(TicketId, Secret)>,
}

/// A packet with a short header, and the circumstances of its arrival.
struct ShortPacket<'a> {
    now: Time,
    /// Arrival time: earlier than `now` if the packet had to wait.
    received_at: Time,
    four_tuple: FourTuple,
    codepoint: Codepoint,
    /// Its destination ID.
    to: ConnectionId,
    packet: &'a mut [u8],
}

/// One connection.
pub struct Connection {
    shared: EndpointState,
    side: Side,
    observer: ObserverSlot,
    own_id: ConnectionId,
    /// The ID to which the client sent its first packet.
    first_id: OriginalDestinationId,
    /// Four-tuple of the handshake.
    four_tuple: FourTuple,
    amplification_limit: AmplificationLimit,
    handshake: Handshake,
    early_packets: EarlyPackets,
    data: Option<alloc::boxed::Box<Data>>,
    /// Secret that only both ends know, and the key of the peer.
    exporter: [u8; 32],
    peer: Option<Fingerprint>,
    secret: Option<(TicketId, Secret)>,
    admission: Admission,
    state: ConnectionState,
    started_at: Time,
    idle: Span,
    last_activity_at: Time,
    has_received: bool,
    /// PINGs sent by keep-alive since then.
    keep_alives: u32,
    /// Set if a packet was sent since the last one arrived.
    sent_since_receive: bool,
    probe: Option<LivenessProbe>,
    events: VecDeque<Event>,
    ids: Vec<IdChange>,
}

impl Connection {
    /// Creates the connection of a handshake that has begun.
    pub(crate) fn new(new: NewConnection) -> Self {
        let NewConnection { now, shared, side, own_id, four_tuple, first_id, handshake, secret } = new;
        debug_assert!(secret.is_none() || side == Side::Client, "a listener has no ticket");
        let idle = shared.settings.idle;
        let amplification_limit =
            if side == Side::Client { AmplificationLimit::VALIDATED } else { AmplificationLimit::default() };
        Self {
            shared,
            side,
            observer: handshake.observer().clone(),
            own_id,
            first_id,
            four_tuple,
            amplification_limit,
            handshake,
            early_packets: EarlyPackets::default(),
            data: None,
            exporter: [0; 32],
            peer: None,
            secret,
            admission: Admission::new(side),
            state: ConnectionState::Open,
            started_at: now,
            idle,
            last_activity_at: now,
            has_received: false,
            keep_alives: 0,
            sent_since_receive: false,
            probe: None,
            events: VecDeque::new(),
            ids: alloc::vec![IdChange::New(own_id)],
        }
    }

    /// Notes that a token has validated the peer's address.
    pub(crate) fn validate_address(&mut self) {
        self.amplification_limit.validate();
    }

    /// Returns whether the peer's address is validated.
    pub(crate) fn is_validated(&self) -> bool {
        self.amplification_limit.is_validated()
    }

    /// Returns whether the client has sent AUTH, and is not admitted.
    pub(crate) fn has_claimed(&self) -> bool {
        self.admission.proof().is_some()
    }

    /// Ends the connection without a packet: a listener needs its slot for another client.
    pub(crate) fn evict(&mut self, now: Time) {
        self.end(now, Closed::TimedOut);
    }

    /// Returns the side of this end.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns the remote address of the handshake.
    pub fn remote(&self) -> SocketAddr {
        self.four_tuple.remote
    }

    /// Returns whether it is over and can be forgotten.
    pub fn is_over(&self) -> bool {
        self.state == ConnectionState::Over
    }

    /// Returns whether the handshake is not complete, or the client not known.
    pub(crate) fn is_unvalidated(&self) -> bool {
        self.state == ConnectionState::Open && (self.data.is_none() || !self.admission.is_admitted())
    }

    /// Returns the key that the peer has proved to possess.
    pub fn peer(&self) -> Option<Fingerprint> {
        self.peer
    }

    /// Takes the changes of IDs.
    pub(crate) fn take_ids(&mut self) -> Vec<IdChange> {
        core::mem::take(&mut self.ids)
    }

    /// Returns the tokens by which a peer at the other end of this four-tuple may end the connection.
    pub(crate) fn paths_to(&self, four_tuple: FourTuple) -> impl Iterator<Item = [u8; TOKEN_LEN]> + '_ {
        let paths = self.data.iter().flat_map(|data| data.paths());
        // Packets of a path that is retired may be replayed, and are reset then.
        paths.filter(move |path| path.four_tuple == four_tuple && path.is_used()).map(|path| path.theirs.token)
    }

    /// Returns the ID to which the client sent its first packet.
    pub(crate) fn first_id(&self) -> OriginalDestinationId {
        self.first_id
    }

    /// Returns whether a packet of the peer has opened.
    pub(crate) fn has_received(&self) -> bool {
        self.has_received
    }

    /// Handles a datagram that was sent to one of its IDs.
    pub(crate) fn on_datagram(&mut self, now: Time, four_tuple: FourTuple, codepoint: Codepoint, datagram: &mut [u8]) {
        if let ConnectionState::Closing { received, replied, due, .. } = &mut self.state {
            *received += 1;
            if *received >= 2 * *replied {
                *replied = *received;
                *due = [self.data.is_none(), self.data.is_none(), true];
            }
            return;
        }
        if self.state != ConnectionState::Open {
            return;
        }
        self.check_state();
        if four_tuple == self.four_tuple {
            self.amplification_limit.on_received(datagram.len());
        }
        let len_of_all = datagram.len();
        let mut rest = datagram;
        while !rest.is_empty() && self.state == ConnectionState::Open {
            let Ok(ParsedPacket { header, number_at, len }) = ParsedPacket::read(rest) else { break };
            let outcome = match header {
                // A shorter datagram with an Initial packet does not permit a full answer (RFC 9000 §14.1).
                Header::Long { kind: LongKind::Initial, .. }
                    if self.side == Side::Listener && len_of_all < usize::from(BASE_PLPMTU) =>
                {
                    Ok(())
                }
                Header::Long { kind, from, .. } => {
                    let packet = &mut rest[..len];
                    self.on_long(four_tuple, HandshakePacket { now, kind, from, codepoint, packet, number_at })
                }
                Header::Retry { from, token, tag, .. } => {
                    let key = MacKey::new(self.first_id.as_bytes());
                    if key.verifies(&[&rest[..len - TAG_LEN]], &tag) {
                        self.handshake.on_retry(now, from, token)
                    } else {
                        Ok(())
                    }
                }
                Header::OtherVersion { .. } => break,
                Header::Short { to } => self.on_short(ShortPacket {
                    now,
                    received_at: now,
                    four_tuple,
                    codepoint,
                    to,
                    packet: &mut rest[..len],
                }),
            };
            if let Err(close_reason) = outcome {
                self.fail(now, close_reason);
            }
            rest = &mut rest[len..];
        }
        self.advance(now);
    }

    /// Handles a reply of a listener that does not support this version.
    pub(crate) fn on_other_version(&mut self, now: Time) {
        if self.state == ConnectionState::Open && !self.has_received && self.side == Side::Client {
            self.end(now, Closed::Version);
        }
    }

    /// Handles a reset: the peer has no state of the connection.
    pub(crate) fn on_reset(&mut self, now: Time) {
        if self.state != ConnectionState::Over {
            self.end(now, Closed::Reset);
        }
    }

    fn on_long(&mut self, four_tuple: FourTuple, received: HandshakePacket) -> Result<(), CloseReason> {
        let now = received.now;
        if four_tuple != self.four_tuple {
            return Ok(());
        }
        match self.handshake.on_packet(received)? {
            HandshakeRead::Nothing => {}
            HandshakeRead::Opened(kind) => {
                self.on_receive(now);
                if kind == LongKind::Handshake {
                    self.amplification_limit.validate();
                }
            }
            HandshakeRead::Closed(close_reason) => self.drain(now, close_reason),
            HandshakeRead::OtherService(requested) => {
                self.on_receive(now);
                self.refuse_service(now, requested);
            }
        }
        Ok(())
    }

    /// Checks the invariants between calls of a connection, in debug builds.
    fn check_state(&self) {
        let is_open = self.state == ConnectionState::Open;
        debug_assert!(!is_open || self.data.is_some() || self.handshake.is_open(), "an open connection has no keys");
        debug_assert!(self.side == Side::Listener || self.admission.is_admitted(), "a client waits for admission");
        debug_assert!(
            self.side == Side::Listener || self.amplification_limit.is_validated(),
            "a client's listener has an amplification limit"
        );
        debug_assert!(self.probe.is_none_or(|probe| probe.rounds <= LIVENESS_ROUNDS), "{:?}", self.probe);
        debug_assert!(!is_open || self.data.is_some() || !self.admission.is_admitted() || self.side == Side::Client);
    }

    /// Opens the data phase once the handshake is complete; applies pending updates.
    fn advance(&mut self, now: Time) {
        if self.state == ConnectionState::Open
            && let Err(close_reason) = self.begin_data(now)
        {
            self.fail(now, close_reason);
        }
        self.take_updates(now);
    }

    fn begin_data(&mut self, now: Time) -> Result<(), CloseReason> {
        if self.data.is_some() {
            return Ok(());
        }
        let Some(agreed) = self.handshake.agreed()? else { return Ok(()) };
        let Agreed { keys, secrets, theirs, peer_id, peer, exporter, rtt } = agreed;
        self.idle = self.idle.min(Span::from_ms(to_i64(theirs.idle)));
        (self.peer, self.exporter) = (peer, exporter);
        let ours: Parameters = self.shared.settings.parameters();
        let (space, cause) = (observe::Space::Data, KeyCause::Tls);
        self.observer.report(now, || observe::Event::Parameters { ours: &ours, theirs: &theirs });
        self.observer.report(now, || observe::Event::Keys { space, updates: 0, cause });
        self.observer.report(now, || observe::Event::Progress(Establishment::Connected));
        let mut data = Data::new(NewData {
            now,
            shared: self.shared.clone(),
            side: self.side,
            keys: data_keys(keys, secrets),
            observer: self.observer.clone(),
            theirs,
            own_id: self.own_id,
            peer_id,
            four_tuple: self.four_tuple,
            rtt,
        })?;
        if self.side == Side::Client {
            let frame_queue = data.frame_queue();
            if let Some((ticket, secret)) = &self.secret {
                frame_queue.auth = (*ticket, secret.proof(&exporter));
            }
            frame_queue.push(ConnectionFrame::Auth);
        }
        self.data = Some(data.into());
        self.events.push_back(Event::Connected);
        for Undecryptable { received_at, four_tuple, codepoint, mut packet } in self.early_packets.take() {
            if let Ok(ParsedPacket { header: Header::Short { to }, .. }) = ParsedPacket::read(&packet) {
                self.on_short(ShortPacket { now, received_at, four_tuple, codepoint, to, packet: &mut packet })?;
            }
        }
        Ok(())
    }

    fn on_short(&mut self, received: ShortPacket) -> Result<(), CloseReason> {
        let ShortPacket { now, received_at, four_tuple, codepoint, to, packet } = received;
        let len = packet.len();
        let Some(data) = &mut self.data else {
            self.early_packets.keep(now, four_tuple, codepoint, packet);
            return Ok(());
        };
        let Some((path, DecryptedPacket { number, payload, has_zero_reserved_bits })) =
            data.open(now, to, four_tuple, packet)?
        else {
            return Ok(());
        };
        self.on_receive(now);
        self.observer.report(now, || {
            let (space, payload) = (observe::Space::Data, &packet[payload.clone()]);
            observe::Event::Received(observe::ObservedPacket { space, path, number, len, payload, in_flight: false })
        });
        if !has_zero_reserved_bits {
            return Err(CloseReason::new(CloseCode::FRAME, "the reserved bits of a header are not 0"));
        }
        let arrival = OpenedPacket { now, received_at, path, number, codepoint, four_tuple, len };
        self.on_opened(arrival, &packet[payload])
    }

    fn on_opened(&mut self, arrival: OpenedPacket, payload: &[u8]) -> Result<(), CloseReason> {
        let content = PacketProperties::new(payload)?;
        if let Some((ticket, proof)) = content.auth {
            self.on_auth(ticket, proof)?;
        }
        if self.admission.defer(&content, arrival, payload) {
            return Ok(());
        }
        let Some(data) = &mut self.data else { return Ok(()) };
        match data.read(arrival, payload)? {
            ReadOutcome::Read | ReadOutcome::Dropped => Ok(()),
            ReadOutcome::Closed(close_reason) => {
                self.drain(arrival.now, close_reason);
                Ok(())
            }
        }
    }

    /// Handles AUTH. The client may repeat it, because its packet may be lost.
    fn on_auth(&mut self, ticket: TicketId, proof: [u8; 32]) -> Result<(), CloseReason> {
        if self.side == Side::Client {
            return Err(CloseReason::new(CloseCode::FRAME, "a listener has sent AUTH"));
        }
        if self.admission.claim(ticket, proof)? {
            self.events.push_back(Event::Claim(PeerIdentity { ticket, key: self.peer }));
        }
        Ok(())
    }

    /// Returns whether the client's proof is of this secret. Takes the same time for any mismatch.
    pub fn proves(&self, secret: &Secret) -> bool {
        self.admission.proof().is_some_and(|proof| secret.verifies(&self.exporter, proof))
    }

    /// Derives the secret with which the client of this connection may reconnect once its ticket is used: it follows
    /// from the ticket's secret and from the exporter that only both ends of this connection know. None before the
    /// handshake is complete.
    pub fn resumption(&self, ticket: &Secret) -> Option<Secret> {
        self.data.as_ref().map(|_| ticket.resumption(&self.exporter))
    }

    /// Admits the client of a listener: data that the caller has sent so far is read now. While such data waits the listener
    /// acknowledges nothing, so a listener must decide within the client's
    /// [`Settings::idle`](crate::settings::Settings::idle).
    pub fn admit(&mut self, now: Time) {
        let Some(data) = self.data.as_mut().filter(|_| self.state == ConnectionState::Open) else { return };
        let Some(queued) = self.admission.admit() else { return };
        debug_assert!(self.side == Side::Listener && self.admission.is_admitted(), "a client admits");
        data.frame_queue().push(ConnectionFrame::Done);
        self.observer.report(now, || observe::Event::Progress(Establishment::Admitted));
        self.handshake.end();
        let mut outcome = data.confirm();
        for queued in queued {
            if outcome.is_ok() {
                outcome = self.on_opened(OpenedPacket { now, ..queued.arrival }, &queued.payload);
            }
        }
        if let Err(close_reason) = outcome {
            self.fail(now, close_reason);
        }
        self.take_updates(now);
    }

    /// Refuses the client of a listener, without a reason.
    pub fn refuse(&mut self, now: Time) {
        self.fail(now, CloseReason::new(CloseCode::REFUSED, ""));
    }

    /// Closes the connection. Undelivered data may never be delivered.
    pub fn close(&mut self, now: Time, code: CloseCode, reason: &str) {
        self.fail(now, CloseReason::new(code, reason));
    }

    /// Returns the maximum time until a packet is acknowledged.
    fn timeout(&self) -> Span {
        self.data.as_ref().map_or(Span::from_s(1), |data| data.timeout())
    }

    fn fail(&mut self, now: Time, close_reason: CloseReason) {
        self.check_state();
        if self.state != ConnectionState::Open {
            return;
        }
        let until = now.saturating_add(self.timeout().times(3));
        self.report_closed(now, Closed::Locally { code: close_reason.code, reason: close_reason.reason.clone() });
        let due = [true, true, self.data.is_some()];
        self.state = ConnectionState::Closing { until, close_reason, received: 0, replied: 1, due };
    }

    /// Refuses a client that requests another service, once: a client that retries starts a new handshake, so unknown clients
    /// cost nothing.
    fn refuse_service(&mut self, now: Time, requested: Option<Service>) {
        debug_assert!(self.side == Side::Listener && self.data.is_none(), "a client that is known is turned away");
        let offered = self.shared.settings.service;
        self.report_closed(now, Closed::Service { requested, offered: Some(offered) });
        let close_reason = other_service(offered);
        self.state =
            ConnectionState::Closing { until: now, close_reason, received: 0, replied: 1, due: [true, false, false] };
    }

    /// Returns whether its client requested another service.
    pub(crate) fn is_refused(&self) -> bool {
        self.data.is_none()
            && matches!(&self.state, ConnectionState::Closing { close_reason, .. } if close_reason.code == CloseCode::NO_SUCH_SERVICE)
    }

    fn drain(&mut self, now: Time, CloseReason { code, reason }: CloseReason) {
        self.check_state();
        if self.state == ConnectionState::Open {
            let closed = if code == CloseCode::NO_SUCH_SERVICE && self.side == Side::Client && self.data.is_none() {
                let offered = Service::of_alpn(reason.as_bytes());
                Closed::Service { requested: Some(self.shared.settings.service), offered }
            } else {
                Closed::ByPeer { code, reason }
            };
            self.report_closed(now, closed);
            self.state = ConnectionState::Draining(now.saturating_add(self.timeout().times(3)));
        }
    }

    fn report_closed(&mut self, now: Time, closed: Closed) {
        self.observer.report(now, || observe::Event::Closed(&closed));
        self.events.push_back(Event::Closed(closed));
    }

    fn end(&mut self, now: Time, closed: Closed) {
        self.check_state();
        if self.state == ConnectionState::Open {
            self.report_closed(now, closed);
        }
        self.state = ConnectionState::Over;
    }

    fn on_receive(&mut self, now: Time) {
        (self.last_activity_at, self.sent_since_receive, self.has_received, self.keep_alives) = (now, false, true, 0);
        if self.probe.take_if(|probe| now >= probe.earliest_response).is_some() {
            self.events.push_back(Event::Probed(Liveness::Alive));
        }
    }

    fn take_updates(&mut self, now: Time) {
        self.check_state();
        let Some(data) = &mut self.data else { return };
        for update in data.take_updates() {
            match update {
                ConnectionUpdate::NewId(id) => self.ids.push(IdChange::New(id)),
                ConnectionUpdate::OldId(id) => self.ids.push(IdChange::Old(id)),
                ConnectionUpdate::MorePaths if self.side == Side::Client => self.events.push_back(Event::MorePaths),
                ConnectionUpdate::MorePaths => {}
                ConnectionUpdate::PathOpen(path) => self.events.push_back(Event::PathOpen(path)),
                ConnectionUpdate::PathGone(path) => self.events.push_back(Event::PathGone(path)),
                ConnectionUpdate::PathWanted(path) => self.events.push_back(Event::PathWanted(path)),
                ConnectionUpdate::Done => {
                    if self.handshake.is_open() {
                        self.handshake.end();
                        self.observer.report(now, || observe::Event::Progress(Establishment::Admitted));
                        self.events.push_back(Event::Admitted);
                    }
                }
            }
        }
    }

    /// Returns the next event, in order of occurrence.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.check_state();
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if self.state != ConnectionState::Open || !self.admission.is_admitted() {
            return None;
        }
        let data = self.data.as_mut()?;
        data.next_datagram().map(Event::Datagram).or_else(|| data.frame_queue().streams.next_event().map(Event::Stream))
    }

    /// Returns the streams: none before [`Event::Connected`], and at a listener before it has admitted the client.
    /// After the connection's end, data received earlier can still be read, and nothing is sent.
    pub fn streams(&mut self) -> Option<&mut Streams> {
        if !self.admission.is_admitted() {
            return None;
        }
        self.data.as_mut().map(|data| &mut data.frame_queue().streams)
    }

    /// Returns whether the peer has acknowledged everything that was written to a stream and its end. Also valid after
    /// the connection's end.
    pub fn is_delivered(&self, stream: StreamId) -> bool {
        self.data.as_ref().is_some_and(|data| data.frame_queue_ref().streams.is_delivered(stream))
    }

    /// Sends a datagram, once, if it fits into a packet of every path.
    ///
    /// # Errors
    /// If it is too long, or too many wait.
    pub fn send_datagram(&mut self, datagram: &[u8]) -> Result<(), DatagramError> {
        let may = self.admission.is_admitted();
        match &mut self.data {
            Some(data) if may => data.send_datagram(datagram),
            _ => Err(DatagramError::TooLong { len: datagram.len(), max_len: 0 }),
        }
    }

    /// Opens one more path of a client, from another of its ports. Returns its number; none if the peer allows none
    /// now.
    pub fn open_path(&mut self, now: Time, socket: u16) -> Option<u32> {
        self.data.as_mut().filter(|_| self.state == ConnectionState::Open)?.open_path(now, socket)
    }

    /// Retires a client's path that should be replaced ([`Event::PathWanted`]); the next one that opens takes over its
    /// law. Does nothing unless another one is open, which the peer will not give up and which is not silent, or if one
    /// was replaced a moment ago.
    pub fn replace_path(&mut self, now: Time, path: u32) {
        if let Some(data) = self.data.as_mut().filter(|_| self.state == ConnectionState::Open)
            && let Err(close_reason) = data.replace_path(now, path)
        {
            self.fail(now, close_reason);
        }
        self.take_updates(now);
    }

    /// Retires a path. Its packets in flight are retransmitted on others. Retiring the last path closes the connection.
    pub fn retire_path(&mut self, now: Time, path: u32) {
        if let Some(data) = &mut self.data
            && let Err(close_reason) = data.retire_path(now, path)
        {
            self.fail(now, close_reason);
        }
        self.take_updates(now);
    }

    /// Updates the packet keys, if that is allowed now: the handshake is complete, a packet under the present keys was
    /// acknowledged, and the last update is three timeouts ago. An update occurs by itself long before a key has sealed
    /// too many packets. Returns whether it was done.
    pub fn update_keys(&mut self, now: Time) -> bool {
        self.data.as_mut().is_some_and(|data| data.update_keys(now))
    }

    /// Sends a PING.
    pub fn ping(&mut self) {
        if let Some(data) = &mut self.data {
            data.frame_queue().push(ConnectionFrame::Ping);
        }
    }

    /// Starts a liveness probe: sends a PING on each open path, and another one after an unanswered probe timeout.
    /// [`Event::Probed`] reports the result: `Alive` with the first packet that the peer can have sent since, judged by
    /// the minimum round trip of the slowest path, and `Silent` after the second timeout. None follows if the
    /// connection ends. A timeout is that of the slowest path without backoff, and at least 200 ms.
    pub fn probe(&mut self, now: Time) {
        if self.state == ConnectionState::Open && self.probe.is_none() {
            let rtt = self.data.as_ref().map_or(Span::ZERO, |data| data.min_rtt());
            self.begin_round(now, LivenessProbe { earliest_response: now.saturating_add(rtt), rounds: 1, until: now });
        }
    }

    fn begin_round(&mut self, now: Time, probe: LivenessProbe) {
        debug_assert!(self.state == ConnectionState::Open && self.probe.is_none(), "two liveness probes at a time");
        let pto = self.data.as_mut().map_or(Span::ZERO, |data| data.probe());
        self.probe = Some(LivenessProbe { until: now.saturating_add(pto.max(MIN_LIVENESS_ROUND)), ..probe });
    }

    /// Ends the present round of a liveness probe if its time is over.
    fn end_round(&mut self, now: Time) {
        let Some(probe) = self.probe.take_if(|probe| probe.until <= now) else { return };
        if probe.rounds < LIVENESS_ROUNDS {
            self.begin_round(now, LivenessProbe { rounds: probe.rounds + 1, ..probe });
        } else {
            self.events.push_back(Event::Probed(Liveness::Silent));
        }
    }

    /// Returns the counters of each path in use.
    pub fn paths(&self) -> impl Iterator<Item = PathStats> + '_ {
        let used =
            |data: &Data| data.paths().iter().filter(|path| path.is_used()).map(|path| stats(data, path)).collect();
        self.data.as_deref().map_or_else(Vec::new, used).into_iter()
    }

    /// Returns the sockets of all paths, including those that were retired a moment ago.
    pub fn sockets(&self) -> impl Iterator<Item = u16> + '_ {
        self.data.iter().flat_map(|data| data.paths()).map(|path| path.four_tuple.socket)
    }

    /// Returns the counters of sent and lost packets, over all paths.
    pub fn stats(&self) -> ChannelStats {
        self.data.as_ref().map_or_else(ChannelStats::default, |data| *data.channel.stats())
    }

    /// Returns the coding counters.
    pub fn coding(&self) -> CodingStats {
        self.data.as_ref().map_or_else(CodingStats::default, |data| data.coding())
    }

    /// Returns the state, limits and actions of its laws. Empty before there are keys for data.
    pub fn laws(&self) -> LawStats {
        let Some(data) = &self.data else { return LawStats::default() };
        let (actions, window) = (data.channel.actions(), data.channel.send_limits().window);
        let mut trace = Vec::new();
        if let Some(subflow) = data.paths().iter().find_map(|path| path.subflow) {
            data.channel.law(subflow).trace(&mut |name, value| trace.push((name, value)));
        }
        LawStats { window, actions, trace }
    }

    /// Appends at most `max_datagrams` datagrams of one size and one four-tuple; the last one may be shorter. None if nothing is
    /// due now.
    pub fn poll_transmit(&mut self, now: Time, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        self.check_state();
        match self.state {
            ConnectionState::Open => {}
            ConnectionState::Closing { .. } => return self.write_close(now, out),
            ConnectionState::Draining(_) | ConnectionState::Over => return None,
        }
        let start = out.len();
        if self.handshake.is_open() && self.handshake.write(now, out, self.amplification_limit.room()) {
            let segment = out.len() - start;
            self.amplification_limit.on_sent(segment);
            self.on_send(now);
            return Some(Transmit { four_tuple: self.four_tuple, codepoint: Codepoint::NotEct, segment });
        }
        let data = self.data.as_mut()?;
        match data.write(now, max_datagrams, out) {
            Ok(Some((sent, segment))) => {
                self.on_send(now);
                Some(Transmit { four_tuple: sent.four_tuple, codepoint: sent.codepoint, segment })
            }
            Ok(None) => None,
            Err(close_reason) => {
                self.fail(now, close_reason);
                self.write_close(now, out)
            }
        }
    }

    /// Restarts the idle timer at the first packet sent since one arrived (RFC 9000 §10.1).
    fn on_send(&mut self, now: Time) {
        if !core::mem::replace(&mut self.sent_since_receive, true) {
            self.last_activity_at = now;
        }
    }

    fn write_close(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let ConnectionState::Closing { due, close_reason, .. } = &mut self.state else { return None };
        let start = out.len();
        for (due, kind) in due.iter_mut().zip([LongKind::Initial, LongKind::Handshake]) {
            if core::mem::take(due)
                && self.amplification_limit.room() >= u64::from(BASE_PLPMTU)
                && self.handshake.write_close(now, kind, out, close_reason)
            {
                let segment = out.len() - start;
                self.amplification_limit.on_sent(segment);
                return Some(Transmit { four_tuple: self.four_tuple, codepoint: Codepoint::NotEct, segment });
            }
        }
        if !core::mem::take(&mut due[2]) {
            return None;
        }
        let (sent, segment) = self.data.as_mut()?.write_close(now, out, close_reason)?;
        Some(Transmit { four_tuple: sent.four_tuple, codepoint: sent.codepoint, segment })
    }

    /// Returns the time of the next [`Connection::on_timer`] call; [`Time::NEVER`] if it waits for nothing.
    pub fn next_timer(&mut self) -> Time {
        match self.state {
            ConnectionState::Closing { until, .. } | ConnectionState::Draining(until) => return until,
            ConnectionState::Over => return Time::NEVER,
            ConnectionState::Open => {}
        }
        let handshake = if self.handshake.is_open() {
            self.handshake.next_timer(self.amplification_limit.room())
        } else {
            Time::NEVER
        };
        let deadline = if self.is_unvalidated() { self.started_at.saturating_add(HANDSHAKE) } else { Time::NEVER };
        let data = self.data.as_mut().map_or(Time::NEVER, |data| data.next_timer());
        let probe = self.probe.map_or(Time::NEVER, |probe| probe.until);
        let idle = self.last_activity_at.saturating_add(self.idle);
        handshake.min(deadline).min(data).min(idle).min(self.keep_alive_at()).min(probe)
    }

    /// Returns the time of a client's next keep-alive PING.
    fn keep_alive_at(&self) -> Time {
        match self.shared.settings.keep_alive {
            Some(wait) if self.side == Side::Client && self.data.is_some() => {
                self.last_activity_at.saturating_add(wait.times(1 + self.keep_alives))
            }
            _ => Time::NEVER,
        }
    }

    /// Handles the time of [`Connection::next_timer`].
    pub fn on_timer(&mut self, now: Time) {
        self.check_state();
        match self.state {
            ConnectionState::Closing { until, .. } | ConnectionState::Draining(until) => {
                if until <= now {
                    self.state = ConnectionState::Over;
                }
                return;
            }
            ConnectionState::Over => return,
            ConnectionState::Open => {}
        }
        if self.last_activity_at.saturating_add(self.idle) <= now {
            return self.end(now, Closed::TimedOut);
        }
        if self.is_unvalidated() && self.started_at.saturating_add(HANDSHAKE) <= now {
            // A client that has got this far, and has not identified itself, is refused; any other end closes silently.
            return if self.data.is_some() { self.refuse(now) } else { self.end(now, Closed::TimedOut) };
        }
        if self.handshake.is_open() {
            self.handshake.on_timer(now);
        }
        if self.keep_alive_at() <= now {
            self.keep_alives += 1;
            self.ping();
        }
        self.end_round(now);
        if let Some(data) = &mut self.data
            && let Err(close_reason) = data.on_timer(now)
        {
            self.fail(now, close_reason);
        }
        self.take_updates(now);
    }
}

fn stats(data: &Data, path: &Path) -> PathStats {
    let rtt = path.subflow.map_or(Span::ZERO, |subflow| data.channel.smoothed_rtt(subflow));
    PathStats {
        path: path.number,
        four_tuple: path.four_tuple,
        is_open: path.state == State::Open,
        packet_size: path.search.size(),
        rtt,
        min_rtt: path.min_rtt,
        packets: path.next,
        acked: path.acked,
        marked: path.marked,
        ecn: path.ecn,
        held: path.subflow.map_or(Span::ZERO, |subflow| data.channel.held(subflow)),
    }
}

/// Returns the tag behind these bytes of a Retry: only a host that saw the packet to `first_id` can compute it.
pub(crate) fn tag_of_retry(first_id: &OriginalDestinationId, retry: &[u8]) -> [u8; 32] {
    MacKey::new(first_id.as_bytes()).tag(&[retry])
}
