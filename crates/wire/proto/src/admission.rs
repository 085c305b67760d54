//! Packets that wait: until their keys are there, and at a listener until it has let its caller in (`docs/src/transport.md`,
//! "Opening a connection").

use alloc::vec::Vec;
use core::mem;

use flow::Codepoint;
use units::Time;

use crate::closed::{Code, Fault};
use crate::data::Arrival;
use crate::frame::{Frame, Frames};
use crate::side::Side;
use crate::ticket::TicketId;
use crate::via::Via;

/// What may wait, in bytes, before the keys and once more behind them; and what a packet counts beside its own: its place in a list
/// that doubles, and what an allocation costs.
const MOST_HELD: usize = 64 << 10;
const HELD_COST: usize = 2 * size_of::<Held>() + 32;

/// Packets that wait, in the order in which they came, in bounded memory.
#[derive(Debug)]
struct Waiting<T> {
    packets: Vec<T>,
    counted: usize,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { packets: Vec::new(), counted: 0 }
    }
}

impl<T> Waiting<T> {
    /// Keeps a packet of so many bytes, if there is room.
    fn keep(&mut self, bytes: usize, packet: impl FnOnce() -> T) {
        if self.counted + bytes + HELD_COST <= MOST_HELD {
            self.counted += bytes + HELD_COST;
            self.packets.push(packet());
        }
    }
}

/// A packet with a short header that came before its keys were there.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub(crate) came: Time,
    pub(crate) via: Via,
    pub(crate) codepoint: Codepoint,
    pub(crate) packet: Vec<u8>,
}

/// Packets with short headers that came before their keys were there.
#[derive(Default, Debug)]
pub(crate) struct Early(Waiting<Sealed>);

impl Early {
    pub(crate) fn keep(&mut self, came: Time, via: Via, codepoint: Codepoint, packet: &[u8]) {
        self.0.keep(packet.len(), || Sealed { came, via, codepoint, packet: packet.to_vec() });
    }

    pub(crate) fn take(&mut self) -> Vec<Sealed> {
        mem::take(&mut self.0).packets
    }
}

/// What of a packet matters while its caller is not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    /// What AUTH says, if there is one.
    pub(crate) auth: Option<(TicketId, [u8; 32])>,
    /// Whether it has frames that are read of known callers alone.
    is_for_known: bool,
    /// Whether it wants an answer.
    counts: bool,
}

impl Content {
    /// # Errors
    /// If a frame cannot be read: then none is to be.
    pub(crate) fn new(payload: &[u8]) -> Result<Self, Fault> {
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
pub(crate) struct Held {
    pub(crate) arrival: Arrival,
    pub(crate) payload: Vec<u8>,
}

/// Whether the caller is known.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It is, or this end is the caller.
    Known,
    /// It is not, and may have said who it is.
    Waits(Option<(TicketId, [u8; 32])>, Waiters),
}

/// What waits for that.
#[derive(Default, Debug)]
pub(crate) struct Waiters(Waiting<Held>);

impl Admission {
    pub(crate) fn new(side: Side) -> Self {
        match side {
            Side::Caller => Self::Known,
            Side::Listener => Self::Waits(None, Waiters::default()),
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        matches!(self, Self::Known)
    }

    /// The proof that the caller has sent, until it is known.
    pub(crate) fn proof(&self) -> Option<&[u8; 32]> {
        match self {
            Self::Waits(claim, _) => claim.as_ref().map(|(_, proof)| proof),
            Self::Known => None,
        }
    }

    /// The caller says who it is. Gives whether that is new: it may say so again, for its packet may be lost.
    ///
    /// # Errors
    /// If it has said something else before.
    pub(crate) fn claim(&mut self, ticket: TicketId, proof: [u8; 32]) -> Result<bool, Fault> {
        match self {
            Self::Waits(Some(said), _) if *said != (ticket, proof) => Err(Fault::new(Code::FRAME, "a second AUTH")),
            Self::Known | Self::Waits(Some(_), _) => Ok(false),
            Self::Waits(claim, _) => {
                *claim = Some((ticket, proof));
                Ok(true)
            }
        }
    }

    /// Whether a packet waits; it is kept then, if there is room, and lost if there is none. While one waits, no other is answered:
    /// the peer would hold for lost what left before that.
    pub(crate) fn holds(&mut self, content: &Content, arrival: Arrival, payload: &[u8]) -> bool {
        let Self::Waits(_, Waiters(waiting)) = self else { return false };
        let waits = content.is_for_known || content.counts && !waiting.packets.is_empty();
        if waits && waiting.packets.iter().all(|held| held.arrival.number != arrival.number) {
            waiting.keep(payload.len(), || Held { arrival, payload: payload.to_vec() });
        }
        waits
    }

    /// The caller is let in, if it has said who it is and is not in yet. Gives what has waited.
    pub(crate) fn admit(&mut self) -> Option<Vec<Held>> {
        self.proof()?;
        match mem::replace(self, Self::Known) {
            Self::Waits(_, Waiters(waiting)) => Some(waiting.packets),
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

    /// Whether a listener holds a packet of this number with this frame.
    fn holds(admission: &mut Admission, number: u64, frame: &Frame) -> bool {
        let via = Via { socket: 0, remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)) };
        let (now, codepoint) = (Time::ZERO, Codepoint::NotEct);
        let arrival = Arrival { now, came: now, path: 0, number, codepoint, via, len: 60 };
        let payload = packet(frame);
        admission.holds(&Content::new(&payload).unwrap(), arrival, &payload)
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
        assert_eq!(waiting(&mut listener).len(), MOST_HELD / each);
        let mut early = Early::default();
        let via = Via { socket: 0, remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)) };
        for _ in 0..10_000 {
            early.keep(Time::ZERO, via, Codepoint::NotEct, &[0x40; 30]);
        }
        assert_eq!((early.take().len(), early.take().len()), (MOST_HELD / (30 + HELD_COST), 0));
    }

    #[test]
    fn a_caller_says_one_thing_of_itself() {
        let mut listener = Admission::new(Side::Listener);
        assert!(listener.admit().is_none() && listener.proof().is_none());
        assert!(listener.claim([1; 8], [2; 32]).unwrap() && !listener.claim([1; 8], [2; 32]).unwrap());
        assert_eq!(listener.claim([1; 8], [3; 32]).unwrap_err().code, Code::FRAME);
        assert_eq!(listener.proof(), Some(&[2; 32]));
    }
}
