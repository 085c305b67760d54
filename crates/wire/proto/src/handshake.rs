//! A connection until both ends have the keys of data: Initial and Handshake packets, and TLS within them. RFC 9001 §4,
//! RFC 9000 §7, and `docs/src/transport.md`, "Opening a connection".

use alloc::sync::Arc;
use alloc::vec::Vec;

use flow::{AckEliciting, AckRanges, Codepoint, SendState};
use rustls::quic::{Keys, Secrets};
use rustls::{ClientConfig, ServerConfig, SupportedCipherSuite};
use units::{Span, Time};

use crate::ConnectionId;
use crate::assembler::{Assembler, Inserted};
use crate::closed::{CloseCode, CloseReason};
use crate::dplpmtud::BASE_PLPMTU;
use crate::frame::{Ack, Frame, Frames};
use crate::header::{Header, LongKind, ParsedPacket as AnyPacket, put_long};
use crate::identity::Fingerprint;
use crate::keys::{DecryptedPacket, HeaderOffsets, SEAL_LEN};
use crate::narrow::{to_u16, to_usize};
use crate::observe::{self, Event, KeyCause, LostNote, ObservedPacket, ObserverSlot};
use crate::parameters::{OriginalDestinationId, Parameters};
use crate::receive_memory::ReceiveMemory;
use crate::service::{NO_SUCH_SERVICE, Service, requested_service};
use crate::side::Side;
use crate::space::{FIRST_RTT, MAX_AHEAD, MAX_CRYPTO, MAX_GAPS, Space, WrittenPacket};
use crate::tls::{Alert, Tls, TlsOutput, initial_keys};
use crate::varint;

/// Bytes of a packet number in the handshake.
const NUMBER_LEN: usize = 2;
/// Payload of a full packet of the handshake: the smallest packet without the longest header and the seal.
const MSS: u32 = 1_100;
/// Maximum length of a `ClientHello`, in bytes. It fits the smallest packet behind the longest token, because a
/// listener keeps no state unless the first packet holds a complete one.
const MAX_CLIENT_HELLO: usize = 1_024;

/// Result of the handshake, as agreed by both ends.
pub(crate) struct Agreed {
    pub(crate) keys: Keys,
    pub(crate) secrets: Secrets,
    pub(crate) theirs: Parameters,
    /// Destination ID of data on path 0.
    pub(crate) peer_id: ConnectionId,
    /// The key that the peer has proved to possess.
    pub(crate) peer: Option<Fingerprint>,
    /// Bytes that only both ends know.
    pub(crate) exporter: [u8; 32],
    /// The shortest round trip that was measured.
    pub(crate) rtt: Option<Span>,
}

/// Result of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum HandshakeRead {
    /// The packet was dropped.
    Nothing,
    /// The packet opened, and its frames were read. A Handshake packet validates the peer's address.
    Opened(LongKind),
    /// The peer has closed the connection.
    Closed(CloseReason),
    /// The client requests another service; none if it does not belong to this protocol.
    OtherService(Option<Service>),
}

/// A received packet.
pub(crate) struct HandshakePacket<'a> {
    pub(crate) now: Time,
    pub(crate) kind: LongKind,
    pub(crate) from: ConnectionId,
    pub(crate) codepoint: Codepoint,
    pub(crate) packet: &'a mut [u8],
    pub(crate) number_at: usize,
}

/// Initial context of a handshake.
pub(crate) struct Context {
    pub(crate) now: Time,
    pub(crate) suites: Vec<SupportedCipherSuite>,
    pub(crate) service: Service,
    pub(crate) observer: ObserverSlot,
}

/// IDs of a handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeIds {
    /// Destination of the packet that begins the handshake: at a listener that of the client's first packet, or of the
    /// first after a Retry.
    pub(crate) first: OriginalDestinationId,
    /// ID of this end, which is also in its parameters.
    pub(crate) own: ConnectionId,
    /// Destination of this end's packets: at a client `first`, at a listener the client's ID.
    pub(crate) peer: OriginalDestinationId,
}

/// The handshake of a connection.
#[expect(clippy::struct_field_names, reason = "the two kinds of its packets are called so")]
pub(crate) struct Handshake {
    side: Side,
    suites: Vec<SupportedCipherSuite>,
    service: Service,
    observer: ObserverSlot,
    tls: Tls,
    /// First input of TLS at a listener: the `ClientHello`, until TLS has processed it.
    hello: Vec<u8>,
    initial: Option<Space>,
    handshake: Option<Space>,
    keys: Option<(Keys, Secrets)>,
    own_id: ConnectionId,
    /// Destination ID of packets: first the client's choice, then the listener's ID.
    peer_id: OriginalDestinationId,
    /// Set once the peer's ID is known.
    has_peer_id: bool,
    original_destination_id: OriginalDestinationId,
    retry_id: Option<ConnectionId>,
    token: Vec<u8>,
    /// Time at which a client that has nothing in flight sends again: the listener may be blocked by its amplification
    /// limit (RFC 9002 §6.2.2.1).
    anti_deadlock_at: Time,
    anti_deadlock_count: u32,
    rtt: Option<Span>,
}

impl Handshake {
    /// Creates a client's handshake.
    pub(crate) fn connect(
        context: Context,
        config: Arc<ClientConfig>,
        ids: HandshakeIds,
        ours: &Parameters,
    ) -> Result<Self, CloseReason> {
        let mut parameters = Vec::new();
        ours.put(&mut parameters);
        let tls = Tls::connect(config, parameters).map_err(|error| internal(&error))?;
        let this = Self::new(Side::Client, context, tls, ids)?;
        let hello = this.initial.as_ref().map_or(0, |initial| initial.channel.work().len());
        if hello > MAX_CLIENT_HELLO {
            let reason = alloc::format!("the ClientHello has {hello} bytes; at most {MAX_CLIENT_HELLO} fit one packet");
            return Err(CloseReason::new(CloseCode::INTERNAL, &reason));
        }
        Ok(this)
    }

    /// Creates a listener's handshake.
    pub(crate) fn accept(
        context: Context,
        config: Arc<ServerConfig>,
        ids: HandshakeIds,
        ours: &Parameters,
    ) -> Result<Self, CloseReason> {
        let mut parameters = Vec::new();
        ours.put(&mut parameters);
        let tls = Tls::accept(config, parameters).map_err(|error| internal(&error))?;
        let mut this = Self::new(Side::Listener, context, tls, ids)?;
        this.has_peer_id = true;
        Ok(this)
    }

    fn new(side: Side, context: Context, tls: Tls, ids: HandshakeIds) -> Result<Self, CloseReason> {
        let Context { now, suites, service, observer } = context;
        let HandshakeIds { first: original_destination_id, own: own_id, peer: peer_id } = ids;
        let keys = initial_keys(&suites, original_destination_id.as_bytes(), side).ok_or_else(no_initial_keys)?;
        let mut this = Self {
            side,
            suites,
            service,
            observer,
            tls,
            hello: Vec::new(),
            initial: Some(Space::new(now, FIRST_RTT, MSS, keys)),
            handshake: None,
            keys: None,
            own_id,
            peer_id,
            has_peer_id: false,
            original_destination_id,
            retry_id: None,
            token: Vec::new(),
            anti_deadlock_at: Time::NEVER,
            anti_deadlock_count: 0,
            rtt: None,
        };
        this.record_losses();
        this.poll_tls(now);
        Ok(this)
    }

    /// Returns the observer of the connection.
    pub(crate) fn observer(&self) -> &ObserverSlot {
        &self.observer
    }

    /// Starts recording losses, if the connection has an observer.
    fn record_losses(&mut self) {
        if self.observer.is_on() {
            for space in [self.initial.as_mut(), self.handshake.as_mut()].into_iter().flatten() {
                space.channel.work_mut().lost_packets.enable();
            }
        }
    }

    /// Reports lost packets to the observer.
    fn report_losses(&mut self, now: Time) {
        if !self.observer.is_on() {
            return;
        }
        for kind in [LongKind::Initial, LongKind::Handshake] {
            let lost = self.space_mut(kind).map_or_else(Vec::new, |space| space.channel.work_mut().lost_packets.take());
            for LostNote { number, cause, .. } in lost {
                self.observer.report(now, || Event::Lost { space: space_of(kind), path: 0, number, cause });
            }
        }
    }

    /// Returns whether packets of the handshake are still expected or due.
    pub(crate) fn is_open(&self) -> bool {
        self.initial.is_some() || self.handshake.is_some()
    }

    /// Discards the spaces of the handshake: both ends know each other, and need Handshake packets no more (RFC 9001
    /// §4.9.2).
    pub(crate) fn end(&mut self) {
        (self.initial, self.handshake) = (None, None);
        self.anti_deadlock_at = Time::NEVER;
    }

    /// Handles a packet with a long header.
    pub(crate) fn on_packet(&mut self, received: HandshakePacket) -> Result<HandshakeRead, CloseReason> {
        let HandshakePacket { now, kind, from, codepoint, packet, number_at } = received;
        if self.has_peer_id && from[..] != *self.peer_id.as_bytes() {
            return Ok(HandshakeRead::Nothing);
        }
        let Some(space) = self.space_mut(kind) else { return Ok(HandshakeRead::Nothing) };
        let Ok(opened) = space.keys.open(packet, number_at, space.arrivals.newest()) else {
            return Ok(HandshakeRead::Nothing);
        };
        let (packet_len, payload) = (packet.len(), &packet[opened.payload.clone()]);
        // Any host can create an Initial packet, so no such packet closes a connection.
        let is_forgeable = kind == LongKind::Initial;
        if !space.arrivals.is_new(opened.number) {
            return Ok(HandshakeRead::Nothing);
        }
        let (number, len) = (opened.number, packet_len);
        self.observer.report(now, || {
            Event::Received(ObservedPacket { space: space_of(kind), path: 0, number, len, payload, in_flight: false })
        });
        let eliciting = match check(&opened, payload) {
            Ok(eliciting) => eliciting,
            Err(_) if is_forgeable => return Ok(HandshakeRead::Nothing),
            Err(close_reason) => return Err(close_reason),
        };
        match self.read_frames(now, kind, payload) {
            Ok(None) => {}
            Ok(Some(closed)) => return Ok(HandshakeRead::Closed(closed)),
            Err(PacketRefusal::Dropped) => return Ok(HandshakeRead::Nothing),
            Err(PacketRefusal::OtherService(requested)) => return Ok(HandshakeRead::OtherService(requested)),
            Err(PacketRefusal::Close(_)) if is_forgeable => return Ok(HandshakeRead::Nothing),
            Err(PacketRefusal::Close(close_reason)) => return Err(close_reason),
        }
        if let Some(space) = self.space_mut(kind) {
            space.arrivals.on_packet(now, opened.number, codepoint, eliciting);
        }
        if !self.has_peer_id {
            (self.peer_id, self.has_peer_id) = (OriginalDestinationId::from(from), true);
        }
        if kind == LongKind::Handshake && self.side == Side::Listener {
            self.initial = None;
        }
        self.poll_tls(now);
        self.set_anti_deadlock_timer(now);
        Ok(HandshakeRead::Opened(kind))
    }

    fn space_mut(&mut self, kind: LongKind) -> Option<&mut Space> {
        match kind {
            LongKind::Initial => self.initial.as_mut(),
            LongKind::Handshake => self.handshake.as_mut(),
        }
    }

    /// Reads the frames of a packet, which were checked. Returns the peer's CLOSE.
    fn read_frames(&mut self, now: Time, kind: LongKind, payload: &[u8]) -> Result<Option<CloseReason>, PacketRefusal> {
        for frame in Frames::new(payload) {
            match frame.map_err(CloseReason::from)? {
                Frame::Crypto { offset, data } => self.on_crypto(kind, offset, data)?,
                Frame::Ack(ack) => self.on_ack(now, kind, &ack)?,
                Frame::Close { code, reason, .. } => return Ok(Some(CloseReason::new(CloseCode(code), reason))),
                _ => {}
            }
        }
        Ok(None)
    }

    fn on_crypto(&mut self, kind: LongKind, offset: u64, data: &[u8]) -> Result<(), PacketRefusal> {
        if kind == LongKind::Initial && self.handshake.is_some() {
            // TLS has moved on: more data at this level is not from the peer, and must not reach TLS.
            return Ok(());
        }
        let Some(space) = self.space_mut(kind) else { return Ok(()) };
        if offset + data.len() as u64 > MAX_CRYPTO {
            return Err(
                CloseReason::new(CloseCode::FRAME, "CRYPTO data exceeds the maximum length of a handshake").into()
            );
        }
        match space.incoming.insert(offset, data) {
            Ok(Inserted::Stored) => {}
            Ok(Inserted::Refused) => return Err(PacketRefusal::Dropped),
            Err(_) => {
                return Err(
                    CloseReason::new(CloseCode::FRAME, "CRYPTO data was received twice with different bytes").into()
                );
            }
        }
        let mut bytes = alloc::vec![0; space.incoming.readable()];
        space.incoming.read(&mut bytes);
        if bytes.is_empty() {
            return Ok(());
        }
        let is_hello = self.side == Side::Listener && kind == LongKind::Initial;
        if is_hello {
            self.hello.extend_from_slice(&bytes);
        }
        match self.tls.read(&bytes) {
            Ok(()) => Ok(()),
            Err(Alert(NO_SUCH_SERVICE)) if is_hello => Err(PacketRefusal::OtherService(requested_service(&self.hello))),
            Err(alert) => Err(alert_close_reason(alert).into()),
        }
    }

    fn on_ack(&mut self, now: Time, kind: LongKind, ack: &Ack) -> Result<(), PacketRefusal> {
        if ack.path != 0 {
            return Err(CloseReason::new(CloseCode::FRAME, "an acknowledgement of the handshake names a path").into());
        }
        let ranges: Vec<_> = ack.ranges().collect();
        let Some(space) = self.space_mut(kind) else { return Ok(()) };
        // Packets of the handshake are not ECN-capable.
        let acks = AckRanges { ranges: &ranges, ecn: None, delay: ack.delay, received: &[] };
        let acked = space.channel.acked(now, 0, &acks).map_err(CloseReason::from)?;
        self.report_losses(now);
        self.anti_deadlock_count = 0;
        self.rtt = self.rtt.into_iter().chain(acked.rtt).min();
        Ok(())
    }

    /// Takes the output and the keys of TLS.
    fn poll_tls(&mut self, now: Time) {
        for output in self.tls.next() {
            match output {
                TlsOutput::Bytes(bytes) => {
                    if let Some(space) = self.handshake.as_mut().or(self.initial.as_mut()) {
                        space.channel.work_mut().append(&bytes);
                    }
                }
                TlsOutput::Handshake(keys) => {
                    self.hello = Vec::new();
                    let cause = KeyCause::Tls;
                    self.observer.report(now, || Event::Keys { space: observe::Space::Handshake, updates: 0, cause });
                    self.handshake = Some(Space::new(now, self.rtt.unwrap_or(FIRST_RTT), MSS, keys));
                    self.record_losses();
                }
                TlsOutput::Data(keys, secrets) => self.keys = Some((keys, secrets)),
            }
        }
    }

    /// Handles a Retry: the Initial packets are sent again, with its token and under other keys. The caller of this
    /// method has verified its tag.
    pub(crate) fn on_retry(&mut self, now: Time, from: ConnectionId, token: &[u8]) -> Result<(), CloseReason> {
        let may = self.side == Side::Client && !self.has_peer_id && self.retry_id.is_none();
        let Some(old) = self.initial.take_if(|_| may) else { return Ok(()) };
        let keys = initial_keys(&self.suites, &from, self.side).ok_or_else(no_initial_keys)?;
        let mut initial = Space::new(now, FIRST_RTT, MSS, keys);
        initial.channel.work_mut().append(&old.channel.into_work().into_output());
        self.initial = Some(initial);
        self.record_losses();
        (self.retry_id, self.peer_id, self.token) = (Some(from), OriginalDestinationId::from(from), token.to_vec());
        Ok(())
    }

    /// Returns the result of the handshake, once, when TLS is complete at this end.
    pub(crate) fn agreed(&mut self) -> Result<Option<Agreed>, CloseReason> {
        if self.keys.is_none() || !self.tls.is_done() {
            return Ok(None);
        }
        if !self.tls.is_of(self.service) {
            return Err(other_service(self.service));
        }
        let theirs = Parameters::read(self.tls.parameters().unwrap_or_default())?;
        self.check_ids(&theirs)?;
        let (Some((keys, secrets)), Some(exporter)) = (self.keys.take(), self.tls.exporter()) else { return Ok(None) };
        let Some(peer_id) = theirs.own_id else { return Ok(None) };
        Ok(Some(Agreed { keys, secrets, theirs, peer_id, peer: self.tls.peer(), exporter, rtt: self.rtt }))
    }

    /// Checks that both ends have seen the same IDs (RFC 9000 §7.3).
    fn check_ids(&self, theirs: &Parameters) -> Result<(), CloseReason> {
        let parameter_error = |reason| Err(CloseReason::new(CloseCode::PARAMETER, reason));
        if theirs.own_id.as_ref().map(|id| &id[..]) != Some(self.peer_id.as_bytes()) {
            return parameter_error("transport parameter `own_id` is not the source ID of the packets");
        }
        if theirs.reset.is_none() {
            return parameter_error("transport parameter `reset` is missing");
        }
        let (first, retry) = match self.side {
            Side::Client => (Some(self.original_destination_id), self.retry_id),
            Side::Listener => (None, None),
        };
        if theirs.original_destination_id != first {
            return parameter_error(
                "transport parameter `original_destination_id` is not the destination ID of the first packet",
            );
        }
        if theirs.retry_id != retry {
            return parameter_error("transport parameter `retry_id` is not the source ID of the Retry");
        }
        Ok(())
    }

    /// Appends a packet of at most `room` bytes, if there is one to send.
    pub(crate) fn write(&mut self, now: Time, out: &mut Vec<u8>, room: u64) -> bool {
        let room = to_usize(room.min(BASE_PLPMTU.into()));
        for kind in [LongKind::Initial, LongKind::Handshake] {
            if room as u64 >= min_room(kind) && self.space_mut(kind).is_some_and(|space| space.has_something(now)) {
                let written =
                    self.write_one(now, kind, out, room, |space, out, max_len| space.write(now, out, max_len));
                if written {
                    self.set_anti_deadlock_timer(now);
                    if kind == LongKind::Handshake && self.side == Side::Client {
                        self.initial = None;
                    }
                    return true;
                }
            }
        }
        false
    }

    /// Appends a packet with this CLOSE, in each kind of packet that the peer may be able to open; a datagram each.
    pub(crate) fn write_close(
        &mut self,
        now: Time,
        kind: LongKind,
        out: &mut Vec<u8>,
        close_reason: &CloseReason,
    ) -> bool {
        self.space_mut(kind).is_some()
            && self.write_one(now, kind, out, BASE_PLPMTU.into(), |space, out, _| {
                Frame::Close { code: close_reason.code.0, kind: 0, reason: &close_reason.reason }.put(out);
                space.number_apart(now)
            })
    }

    fn write_one(
        &mut self,
        now: Time,
        kind: LongKind,
        out: &mut Vec<u8>,
        room: usize,
        fill: impl FnOnce(&mut Space, &mut Vec<u8>, usize) -> Option<WrittenPacket>,
    ) -> bool {
        let start = out.len();
        put_long(out, kind, self.peer_id.as_bytes(), self.own_id, &self.token, NUMBER_LEN);
        let length_at = out.len();
        out.extend([0; 2 + NUMBER_LEN]);
        let frames_at = out.len();
        let Some(space) = self.space_mut(kind) else { return false };
        let Some(WrittenPacket { number, in_flight }) = fill(space, out, start + room - SEAL_LEN) else {
            out.truncate(start);
            return false;
        };
        let min_len =
            if kind == LongKind::Initial { start + usize::from(BASE_PLPMTU) - SEAL_LEN } else { frames_at + 4 };
        if out.len() < min_len {
            out.resize(min_len, 0);
        }
        let length = out.len() - frames_at + NUMBER_LEN + SEAL_LEN;
        out[length_at..length_at + 2].copy_from_slice(&varint::in_two(to_u16(length as u64)));
        self.observer.report(now, || {
            let (len, payload) = (out.len() + SEAL_LEN - start, &out[frames_at..]);
            Event::Sent(ObservedPacket { space: space_of(kind), path: 0, number, len, payload, in_flight })
        });
        let Some(space) = self.space_mut(kind) else { return false };
        space.keys.seal(out, HeaderOffsets { start, number_at: length_at + 2, number_len: NUMBER_LEN }, number);
        true
    }

    /// Returns the time of the next [`Handshake::on_timer`] call, or of the next output of [`Handshake::write`].
    /// Ignores packets that may not be sent within `room` bytes.
    pub(crate) fn next_timer(&mut self, room: u64) -> Time {
        let initial = self.initial.as_mut().filter(|_| room >= min_room(LongKind::Initial));
        let handshake = self.handshake.as_mut().filter(|_| room >= min_room(LongKind::Handshake));
        let due = [initial, handshake].into_iter().flatten();
        let due = due.map(|space| space.channel.next_timer().min(space.arrivals.ack_due_at())).min();
        due.unwrap_or(Time::NEVER).min(self.anti_deadlock_at)
    }

    pub(crate) fn on_timer(&mut self, now: Time) {
        for space in [self.initial.as_mut(), self.handshake.as_mut()].into_iter().flatten() {
            if space.channel.next_timer() <= now {
                space.channel.on_timer(now);
            }
        }
        self.report_losses(now);
        if self.anti_deadlock_at <= now {
            self.anti_deadlock_count += 1;
            if let Some(space) = self.handshake.as_mut().or(self.initial.as_mut()) {
                space.channel.work_mut().ping();
            }
            self.anti_deadlock_at = Time::NEVER;
        }
        self.set_anti_deadlock_timer(now);
    }

    /// Sets the next send time of a client that waits for the listener and has nothing in flight.
    fn set_anti_deadlock_timer(&mut self, now: Time) {
        let spaces = [self.initial.as_mut(), self.handshake.as_mut()];
        let busy = spaces.into_iter().flatten().any(|space| {
            !space.channel.in_flight().is_zero() || matches!(space.channel.poll(now), SendState::Now | SendState::At(_))
        });
        if self.side == Side::Listener || !self.is_open() || busy {
            self.anti_deadlock_at = Time::NEVER;
        } else if !self.anti_deadlock_at.is_set() {
            let wait = self.rtt.unwrap_or(FIRST_RTT).times(3 << self.anti_deadlock_count.min(6));
            self.anti_deadlock_at = now.saturating_add(wait);
        }
    }
}

/// Returns whether the first packet of a datagram opens and holds a complete `ClientHello`. The datagram stays sealed.
pub(crate) fn has_client_hello(
    suites: &[SupportedCipherSuite],
    first_id: OriginalDestinationId,
    datagram: &[u8],
) -> bool {
    initial_crypto(suites, first_id, datagram).is_some_and(|bytes| is_client_hello(&bytes))
}

/// Returns the bytes of TLS at the beginning of a handshake that the first packet of a datagram holds, if that is an
/// Initial packet.
fn initial_crypto(
    suites: &[SupportedCipherSuite],
    first_id: OriginalDestinationId,
    datagram: &[u8],
) -> Option<Vec<u8>> {
    let AnyPacket { header, number_at, len } = AnyPacket::read(datagram).ok()?;
    let Header::Long { kind: LongKind::Initial, .. } = header else { return None };
    let mut packet = datagram[..len].to_vec();
    let keys = initial_keys(suites, first_id.as_bytes(), Side::Listener)?;
    let opened = keys.open(&mut packet, number_at, None).ok()?;
    let payload = &packet[opened.payload.clone()];
    check(&opened, payload).ok()?;
    let mut incoming = Assembler::new(MAX_GAPS, MAX_AHEAD, ReceiveMemory::default());
    for frame in Frames::new(payload) {
        if let Ok(Frame::Crypto { offset, data }) = frame {
            let is_taken = offset < MAX_CRYPTO && incoming.insert(offset, data) == Ok(Inserted::Stored);
            is_taken.then_some(())?;
        }
    }
    let mut bytes = alloc::vec![0; incoming.readable()];
    incoming.read(&mut bytes);
    Some(bytes)
}

/// Returns whether bytes begin with a complete `ClientHello` (RFC 8446 §4): its type, and a length in three bytes.
fn is_client_hello(bytes: &[u8]) -> bool {
    let &[1, high, mid, low, ref body @ ..] = bytes else { return false };
    body.len() >= u32::from_be_bytes([0, high, mid, low]) as usize
}

/// Returns the observers' name of a kind of packet.
fn space_of(kind: LongKind) -> observe::Space {
    match kind {
        LongKind::Initial => observe::Space::Initial,
        LongKind::Handshake => observe::Space::Handshake,
    }
}

/// Returns the minimum number of bytes that a packet needs. A datagram with an Initial packet has at least the smallest
/// packet's size.
const fn min_room(kind: LongKind) -> u64 {
    match kind {
        LongKind::Initial => BASE_PLPMTU as u64,
        LongKind::Handshake => 200,
    }
}

/// Reason not to read a packet.
enum PacketRefusal {
    /// The packet finds no room now.
    Dropped,
    OtherService(Option<Service>),
    Close(CloseReason),
}

impl From<CloseReason> for PacketRefusal {
    fn from(close_reason: CloseReason) -> Self {
        Self::Close(close_reason)
    }
}

/// Checks a packet that was opened, and all frames of its payload, before any is read. Returns whether it is
/// ack-eliciting.
fn check(opened: &DecryptedPacket, payload: &[u8]) -> Result<AckEliciting, CloseReason> {
    if !opened.has_zero_reserved_bits {
        return Err(CloseReason::new(CloseCode::FRAME, "the reserved bits of a header are not 0"));
    }
    let mut eliciting = AckEliciting::No;
    for frame in Frames::new(payload) {
        let frame = frame?;
        if !frame.is_of_handshake() {
            return Err(CloseReason::new(CloseCode::FRAME, "a frame that the handshake does not have"));
        }
        if frame.is_ack_eliciting() {
            eliciting = AckEliciting::Yes;
        }
    }
    Ok(eliciting)
}

fn alert_close_reason(Alert(alert): Alert) -> CloseReason {
    CloseReason::new(CloseCode(CloseCode::TLS.0 + u64::from(alert)), "")
}

/// Returns the close reason that is sent to a peer that requests another service.
pub(crate) fn other_service(offered: Service) -> CloseReason {
    CloseReason::new(CloseCode::NO_SUCH_SERVICE, &alloc::format!("{offered}"))
}

fn internal(error: &rustls::Error) -> CloseReason {
    CloseReason::new(CloseCode::INTERNAL, &alloc::format!("{error}"))
}

fn no_initial_keys() -> CloseReason {
    CloseReason::new(CloseCode::INTERNAL, "the provider of cryptography has no AES-128-GCM")
}

#[cfg(test)]
mod tests {
    use rustls::crypto::{CryptoProvider, aws_lc_rs};

    use super::*;
    use crate::four_tuple::FourTuple;
    use crate::header::MAX_ID;
    use crate::identity::{Identity, Trust, client_config};

    const FIRST_ID: [u8; 8] = [1; 8];

    fn connect(provider: CryptoProvider, name: &str) -> Result<Handshake, CloseReason> {
        let (provider, service) = (Arc::new(provider), name.parse().unwrap());
        let identity = Identity::from_seed(&provider, &[1; 32]).unwrap();
        let suites = provider.cipher_suites.clone();
        let tls = client_config(&provider, Trust::Anyone, Some(&identity), service, None).unwrap();
        let max = varint::MAX;
        let ours = Parameters {
            idle: 600_000,
            max_data: max,
            max_stream_data: max,
            max_streams_bidi: 1 << 32,
            max_streams_uni: 1 << 32,
            max_datagram: 65_535,
            max_packet: 65_526,
            ack_delay: 25_000,
            paths: 64,
            coding_window: 1 << 30,
            times: 1,
            own_id: Some([2; 8]),
            reset: Some([3; 16]),
            ..Parameters::default()
        };
        let first_id = OriginalDestinationId::from(FIRST_ID);
        let four_tuple = FourTuple { socket: 0, remote: ([127, 0, 0, 1], 1).into() };
        let start = observe::ConnectionStart {
            now: Time::ZERO,
            side: Side::Client,
            original_destination_id: first_id,
            four_tuple,
            service,
        };
        let context = Context { now: Time::ZERO, suites, service, observer: ObserverSlot::new(None, &start) };
        Handshake::connect(context, tls, HandshakeIds { first: first_id, own: [2; 8], peer: first_id }, &ours)
    }

    /// The longest service name and the largest parameters fit, also behind the longest token.
    #[test]
    fn a_client_hello_fits_one_datagram() {
        let provider = aws_lc_rs::default_provider();
        let suites = provider.cipher_suites.clone();
        let mut handshake = connect(provider, &"a".repeat(32)).unwrap();
        let mut first = Vec::new();
        assert!(handshake.write(Time::ZERO, &mut first, u64::MAX));
        handshake.on_retry(Time::ZERO, [4; 8], &[5; 8 + 1 + MAX_ID + 32]).unwrap();
        let mut second = Vec::new();
        assert!(handshake.write(Time::ZERO, &mut second, u64::MAX));
        for (first_id, datagram) in [(FIRST_ID, first), ([4; 8], second)] {
            assert_eq!(datagram.len(), usize::from(BASE_PLPMTU));
            assert!(has_client_hello(&suites, first_id.into(), &datagram));
            // With other keys, or modified, it is not recognised.
            assert!(!has_client_hello(&suites, [9; 8].into(), &datagram));
            let mut changed = datagram;
            changed[600] ^= 1;
            assert!(!has_client_hello(&suites, first_id.into(), &changed));
        }
    }

    /// The key share of a hybrid key exchange alone has 1,216 bytes.
    #[test]
    fn a_client_hello_that_does_not_fit_is_an_error() {
        let kx_groups = alloc::vec![aws_lc_rs::kx_group::X25519MLKEM768];
        let error = connect(CryptoProvider { kx_groups, ..aws_lc_rs::default_provider() }, "x").err().unwrap();
        assert_eq!(error.code, CloseCode::INTERNAL);
    }

    #[test]
    fn incomplete_client_hellos_are_detected() {
        assert!(is_client_hello(&[1, 0, 0, 2, 7, 7]) && is_client_hello(&[1, 0, 0, 2, 7, 7, 7]));
        for bytes in [&[][..], &[1, 0, 0], &[1, 0, 0, 2, 7], &[1, 1, 0, 2, 7, 7], &[2, 0, 0, 2, 7, 7]] {
            assert!(!is_client_hello(bytes), "{bytes:?}");
        }
    }
}
