//! Waiting packets: until their keys are available, and at a listener until it has admitted its caller
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
const MAX_HELD: usize = 64 << 10;
const HELD_COST: usize = 2 * size_of::<QueuedPacket>() + 32;

/// Packets that wait, in order of arrival, in bounded memory.
#[derive(Debug)]
struct BoundedQueue<T> {
    packets: Vec<T>,
    counted: usize,
}

impl<T> Default for BoundedQueue<T> {
    fn default() -> Self {
        Self { packets: Vec::new(), counted: 0 }
    }
}

impl<T> BoundedQueue<T> {
    /// Keeps a packet of `bytes` bytes, if there is room.
    fn keep(&mut self, bytes: usize, packet: impl FnOnce() -> T) {
        if self.counted + bytes + HELD_COST <= MAX_HELD {
            self.counted += bytes + HELD_COST;
            self.packets.push(packet());
        }
        debug_assert!(self.counted <= MAX_HELD && self.packets.len() * HELD_COST <= self.counted, "{}", self.counted);
    }
}

/// A packet with a short header that arrived before its keys were available.
#[derive(Debug)]
pub(crate) struct Undecryptable {
    pub(crate) came: Time,
    pub(crate) via: FourTuple,
    pub(crate) codepoint: Codepoint,
    pub(crate) packet: Vec<u8>,
}

/// Packets with short headers that arrived before their keys were available.
#[derive(Default, Debug)]
pub(crate) struct EarlyPackets(BoundedQueue<Undecryptable>);

impl EarlyPackets {
    pub(crate) fn keep(&mut self, came: Time, via: FourTuple, codepoint: Codepoint, packet: &[u8]) {
        self.0.keep(packet.len(), || Undecryptable { came, via, codepoint, packet: packet.to_vec() });
    }

    pub(crate) fn take(&mut self) -> Vec<Undecryptable> {
        mem::take(&mut self.0).packets
    }
}

/// Properties of a packet that matter while its caller is not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketProperties {
    /// Contents of AUTH, if the packet has one.
    pub(crate) auth: Option<(TicketId, [u8; 32])>,
    /// Set if it has frames that are read from known callers only.
    is_for_known: bool,
    /// Set if it is ack-eliciting.
    counts: bool,
}

impl PacketProperties {
    /// # Errors
    /// If a frame cannot be read: then none of them must be read.
    pub(crate) fn new(payload: &[u8]) -> Result<Self, CloseReason> {
        let mut this = Self { auth: None, is_for_known: false, counts: false };
        for frame in Frames::new(payload) {
            let frame = frame?;
            this.counts |= frame.counts();
            match frame {
                Frame::Auth { ticket, proof } => this.auth = Some((ticket, proof)),
                Frame::Padding(_) | Frame::Ping | Frame::Ack(_) | Frame::Close { .. } => {}
                _ => this.is_for_known = true,
            }
        }
        Ok(this)
    }
}

/// A packet that waits until its caller is known.
#[derive(Debug)]
pub(crate) struct QueuedPacket {
    pub(crate) arrival: OpenedPacket,
    pub(crate) payload: Vec<u8>,
}

/// Admission state of the caller.
#[derive(Debug)]
pub(crate) enum Admission {
    /// The caller is known, or this end is the caller.
    Known,
    /// The caller is not known, and may have sent AUTH.
    Waits(Option<(TicketId, [u8; 32])>, AdmissionQueue),
}

/// Packets that wait for admission.
#[derive(Default, Debug)]
pub(crate) struct AdmissionQueue(BoundedQueue<QueuedPacket>);

impl Admission {
    pub(crate) fn new(side: Side) -> Self {
        match side {
            Side::Client => Self::Known,
            Side::Listener => Self::Waits(None, AdmissionQueue::default()),
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        matches!(self, Self::Known)
    }

    /// Returns the proof that the caller has sent, until it is known.
    pub(crate) fn proof(&self) -> Option<&[u8; 32]> {
        match self {
            Self::Waits(claim, _) => claim.as_ref().map(|(_, proof)| proof),
            Self::Known => None,
        }
    }

    /// Records the caller's AUTH. Returns whether it is new: the caller may repeat it, because its packet may be lost.
    ///
    /// # Errors
    /// If it differs from an earlier AUTH.
    pub(crate) fn claim(&mut self, ticket: TicketId, proof: [u8; 32]) -> Result<bool, CloseReason> {
        match self {
            Self::Waits(Some(said), _) if *said != (ticket, proof) => {
                Err(CloseReason::new(CloseCode::FRAME, "a second AUTH"))
            }
            Self::Known | Self::Waits(Some(_), _) => Ok(false),
            Self::Waits(claim, _) => {
                *claim = Some((ticket, proof));
                Ok(true)
            }
        }
    }

    /// Returns whether a packet waits. It is then kept if there is room, and lost otherwise. While one waits, no other
    /// is acknowledged: the peer would declare packets lost that it sent earlier.
    pub(crate) fn holds(&mut self, content: &PacketProperties, arrival: OpenedPacket, payload: &[u8]) -> bool {
        let Self::Waits(_, AdmissionQueue(waiting)) = self else { return false };
        let waits = content.is_for_known || content.counts && !waiting.packets.is_empty();
        if waits && waiting.packets.iter().all(|held| held.arrival.number != arrival.number) {
            waiting.keep(payload.len(), || QueuedPacket { arrival, payload: payload.to_vec() });
        }
        waits
    }

    /// Admits the caller, if it has sent AUTH and is not admitted yet. Returns the packets that waited.
    pub(crate) fn admit(&mut self) -> Option<Vec<QueuedPacket>> {
        self.proof()?;
        match mem::replace(self, Self::Known) {
            Self::Waits(_, AdmissionQueue(waiting)) => Some(waiting.packets),
            Self::Known => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, SocketAddr};

    use super::*;

    const AUTH: Frame = Frame::Auth { ticket: [1; 8], proof: [2; 32] };
    const WANTS_TO_BE_KNOWN: Frame = Frame::MaxData(1);

    fn packet(frame: &Frame) -> Vec<u8> {
        let mut payload = Vec::new();
        frame.put(&mut payload);
        payload
    }

    /// Returns whether a listener holds a packet with this number and frame.
    fn holds(admission: &mut Admission, number: u64, frame: &Frame) -> bool {
        let via = FourTuple { socket: 0, remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)) };
        let (now, codepoint) = (Time::ZERO, Codepoint::NotEct);
        let arrival = OpenedPacket { now, came: now, path: 0, number, codepoint, via, len: 60 };
        let payload = packet(frame);
        admission.holds(&PacketProperties::new(&payload).unwrap(), arrival, &payload)
    }

    fn waiting(admission: &mut Admission) -> Vec<u64> {
        admission.claim([1; 8], [2; 32]).unwrap();
        admission.admit().unwrap().iter().map(|held| held.arrival.number).collect()
    }

    #[test]
    fn while_one_waits_all_wait_that_want_an_answer() {
        let mut listener = Admission::new(Side::Listener);
        assert!(!holds(&mut listener, 0, &AUTH) && !holds(&mut listener, 1, &Frame::Ping));
        assert!(holds(&mut listener, 2, &WANTS_TO_BE_KNOWN) && holds(&mut listener, 3, &Frame::Ping));
        assert!(holds(&mut listener, 4, &AUTH) && !holds(&mut listener, 5, &Frame::Padding(9)));
        // The same again waits, and is kept once.
        assert!(holds(&mut listener, 2, &WANTS_TO_BE_KNOWN));
        assert_eq!(waiting(&mut listener), [2, 3, 4]);
        assert!(listener.is_known() && !holds(&mut listener, 6, &WANTS_TO_BE_KNOWN));
        assert!(listener.admit().is_none());
    }

    #[test]
    fn what_waits_takes_bounded_memory() {
        let mut listener = Admission::new(Side::Listener);
        for number in 0..10_000 {
            assert!(holds(&mut listener, number, &WANTS_TO_BE_KNOWN));
        }
        let each = packet(&WANTS_TO_BE_KNOWN).len() + HELD_COST;
        assert_eq!(waiting(&mut listener).len(), MAX_HELD / each);
        let mut early = EarlyPackets::default();
        let via = FourTuple { socket: 0, remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)) };
        for _ in 0..10_000 {
            early.keep(Time::ZERO, via, Codepoint::NotEct, &[0x40; 30]);
        }
        assert_eq!((early.take().len(), early.take().len()), (MAX_HELD / (30 + HELD_COST), 0));
    }

    #[test]
    fn a_caller_says_one_thing_of_itself() {
        let mut listener = Admission::new(Side::Listener);
        assert!(listener.admit().is_none() && listener.proof().is_none());
        assert!(listener.claim([1; 8], [2; 32]).unwrap() && !listener.claim([1; 8], [2; 32]).unwrap());
        assert_eq!(listener.claim([1; 8], [3; 32]).unwrap_err().code, CloseCode::FRAME);
        assert_eq!(listener.proof(), Some(&[2; 32]));
    }
}
