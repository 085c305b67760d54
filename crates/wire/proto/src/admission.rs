//! Waiting packets: until their keys are available, and at a listener until it has admitted its client
//! (`docs/src/transport.md`, "Opening a connection").

use alloc::vec::Vec;
use core::mem;

use flow::Codepoint;
use units::Time;

use crate::closed::{CloseCode, CloseReason};
use crate::data::OpenedPacket;
use crate::four_tuple::FourTuple;
use crate::frame::{Frame, Frames};
use crate::side::Side;
use crate::ticket::TicketId;

/// Maximum memory of packets that wait for keys, in bytes, and again of those that wait for admission; and the cost of
/// a packet in addition to its bytes: its place in a list that doubles, and an allocation.
const MAX_QUEUED_BYTES: usize = 64 << 10;
const ENTRY_COST: usize = 2 * size_of::<QueuedPacket>() + 32;

/// Packets that wait, in order of arrival, in bounded memory.
#[derive(Debug)]
struct BoundedQueue<T> {
    packets: Vec<T>,
    accounted_bytes: usize,
}

impl<T> Default for BoundedQueue<T> {
    fn default() -> Self {
        Self { packets: Vec::new(), accounted_bytes: 0 }
    }
}

impl<T> BoundedQueue<T> {
    /// Keeps a packet of `bytes` bytes, if there is room.
    fn keep(&mut self, bytes: usize, packet: impl FnOnce() -> T) {
        if self.accounted_bytes + bytes + ENTRY_COST <= MAX_QUEUED_BYTES {
            self.accounted_bytes += bytes + ENTRY_COST;
            self.packets.push(packet());
        }
        debug_assert!(
            self.accounted_bytes <= MAX_QUEUED_BYTES && self.packets.len() * ENTRY_COST <= self.accounted_bytes,
            "{}",
            self.accounted_bytes
        );
    }
}

/// A packet with a short header that arrived before its keys were available.
#[derive(Debug)]
pub(crate) struct Undecryptable {
    pub(crate) received_at: Time,
    pub(crate) four_tuple: FourTuple,
    pub(crate) codepoint: Codepoint,
    pub(crate) packet: Vec<u8>,
}

/// Packets with short headers that arrived before their keys were available.
#[derive(Default, Debug)]
pub(crate) struct EarlyPackets(BoundedQueue<Undecryptable>);

impl EarlyPackets {
    pub(crate) fn keep(&mut self, received_at: Time, four_tuple: FourTuple, codepoint: Codepoint, packet: &[u8]) {
        self.0.keep(packet.len(), || Undecryptable { received_at, four_tuple, codepoint, packet: packet.to_vec() });
    }

    pub(crate) fn take(&mut self) -> Vec<Undecryptable> {
        mem::take(&mut self.0).packets
    }
}

/// Properties of a packet that matter while its client is not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketProperties {
    /// Contents of AUTH, if the packet has one.
    pub(crate) auth: Option<(TicketId, [u8; 32])>,
    /// Set if it has frames that are read from known clients only.
    needs_admission: bool,
    /// Set if it is ack-eliciting.
    is_ack_eliciting: bool,
}

impl PacketProperties {
    /// # Errors
    /// If a frame cannot be read: then none of them must be read.
    pub(crate) fn new(payload: &[u8]) -> Result<Self, CloseReason> {
        let mut this = Self { auth: None, needs_admission: false, is_ack_eliciting: false };
        for frame in Frames::new(payload) {
            let frame = frame?;
            this.is_ack_eliciting |= frame.is_ack_eliciting();
            match frame {
                Frame::Auth { ticket, proof } => this.auth = Some((ticket, proof)),
                Frame::Padding(_) | Frame::Ping | Frame::Ack(_) | Frame::Close { .. } => {}
                _ => this.needs_admission = true,
            }
        }
        Ok(this)
    }
}

/// A packet that waits until its client is known.
#[derive(Debug)]
pub(crate) struct QueuedPacket {
    pub(crate) arrival: OpenedPacket,
    pub(crate) payload: Vec<u8>,
}

/// Admission state of the client.
#[derive(Debug)]
pub(crate) enum Admission {
    /// The client is known, or this end is the client.
    Admitted,
    /// The client is not known, and may have sent AUTH.
    Pending(Option<(TicketId, [u8; 32])>, AdmissionQueue),
}

/// Packets that wait for admission.
#[derive(Default, Debug)]
pub(crate) struct AdmissionQueue(BoundedQueue<QueuedPacket>);

impl Admission {
    pub(crate) fn new(side: Side) -> Self {
        match side {
            Side::Client => Self::Admitted,
            Side::Listener => Self::Pending(None, AdmissionQueue::default()),
        }
    }

    pub(crate) fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted)
    }

    /// Returns the proof that the caller has sent, until it is known.
    pub(crate) fn proof(&self) -> Option<&[u8; 32]> {
        match self {
            Self::Pending(claim, _) => claim.as_ref().map(|(_, proof)| proof),
            Self::Admitted => None,
        }
    }

    /// Records the client's AUTH. Returns whether it is new: the client may repeat it, because its packet may be lost.
    ///
    /// # Errors
    /// If it differs from an earlier AUTH.
    pub(crate) fn claim(&mut self, ticket: TicketId, proof: [u8; 32]) -> Result<bool, CloseReason> {
        match self {
            Self::Pending(Some(earlier), _) if *earlier != (ticket, proof) => {
                Err(CloseReason::new(CloseCode::FRAME, "a second AUTH"))
            }
            Self::Admitted | Self::Pending(Some(_), _) => Ok(false),
            Self::Pending(claim, _) => {
                *claim = Some((ticket, proof));
                Ok(true)
            }
        }
    }

    /// Returns whether a packet waits. It is then kept if there is room, and lost otherwise. While one waits, no other
    /// is acknowledged: the peer would declare packets lost that it sent earlier.
    pub(crate) fn defer(&mut self, content: &PacketProperties, arrival: OpenedPacket, payload: &[u8]) -> bool {
        let Self::Pending(_, AdmissionQueue(waiting)) = self else { return false };
        let is_deferred = content.needs_admission || content.is_ack_eliciting && !waiting.packets.is_empty();
        if is_deferred && waiting.packets.iter().all(|queued| queued.arrival.number != arrival.number) {
            waiting.keep(payload.len(), || QueuedPacket { arrival, payload: payload.to_vec() });
        }
        is_deferred
    }

    /// Admits the client, if it has sent AUTH and is not admitted yet. Returns the packets that waited.
    pub(crate) fn admit(&mut self) -> Option<Vec<QueuedPacket>> {
        self.proof()?;
        match mem::replace(self, Self::Admitted) {
            Self::Pending(_, AdmissionQueue(waiting)) => Some(waiting.packets),
            Self::Admitted => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, SocketAddr};

    use super::*;

    const AUTH: Frame = Frame::Auth { ticket: [1; 8], proof: [2; 32] };
    const NEEDS_ADMISSION: Frame = Frame::MaxData(1);

    fn packet(frame: &Frame) -> Vec<u8> {
        let mut payload = Vec::new();
        frame.put(&mut payload);
        payload
    }

    /// Returns whether a listener holds a packet with this number and frame.
    fn defer(admission: &mut Admission, number: u64, frame: &Frame) -> bool {
        let four_tuple = FourTuple { socket: 0, remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)) };
        let (now, codepoint) = (Time::ZERO, Codepoint::NotEct);
        let arrival = OpenedPacket { now, received_at: now, path: 0, number, codepoint, four_tuple, len: 60 };
        let payload = packet(frame);
        admission.defer(&PacketProperties::new(&payload).unwrap(), arrival, &payload)
    }

    fn waiting(admission: &mut Admission) -> Vec<u64> {
        admission.claim([1; 8], [2; 32]).unwrap();
        admission.admit().unwrap().iter().map(|queued| queued.arrival.number).collect()
    }

    #[test]
    fn pending_admission_defers_all_ack_eliciting_packets() {
        let mut listener = Admission::new(Side::Listener);
        assert!(!defer(&mut listener, 0, &AUTH) && !defer(&mut listener, 1, &Frame::Ping));
        assert!(defer(&mut listener, 2, &NEEDS_ADMISSION) && defer(&mut listener, 3, &Frame::Ping));
        assert!(defer(&mut listener, 4, &AUTH) && !defer(&mut listener, 5, &Frame::Padding(9)));
        // The same again waits, and is kept once.
        assert!(defer(&mut listener, 2, &NEEDS_ADMISSION));
        assert_eq!(waiting(&mut listener), [2, 3, 4]);
        assert!(listener.is_admitted() && !defer(&mut listener, 6, &NEEDS_ADMISSION));
        assert!(listener.admit().is_none());
    }

    #[test]
    fn deferred_packets_take_bounded_memory() {
        let mut listener = Admission::new(Side::Listener);
        for number in 0..10_000 {
            assert!(defer(&mut listener, number, &NEEDS_ADMISSION));
        }
        let each = packet(&NEEDS_ADMISSION).len() + ENTRY_COST;
        assert_eq!(waiting(&mut listener).len(), MAX_QUEUED_BYTES / each);
        let mut early = EarlyPackets::default();
        let four_tuple = FourTuple { socket: 0, remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)) };
        for _ in 0..10_000 {
            early.keep(Time::ZERO, four_tuple, Codepoint::NotEct, &[0x40; 30]);
        }
        assert_eq!((early.take().len(), early.take().len()), (MAX_QUEUED_BYTES / (30 + ENTRY_COST), 0));
    }

    #[test]
    fn a_second_auth_must_equal_the_first() {
        let mut listener = Admission::new(Side::Listener);
        assert!(listener.admit().is_none() && listener.proof().is_none());
        assert!(listener.claim([1; 8], [2; 32]).unwrap() && !listener.claim([1; 8], [2; 32]).unwrap());
        assert_eq!(listener.claim([1; 8], [3; 32]).unwrap_err().code, CloseCode::FRAME);
        assert_eq!(listener.proof(), Some(&[2; 32]));
    }
}
