//! What a channel carries.

use laws::LossCause;

/// What goes next, and what becomes of it.
pub trait Work {
    /// What one packet carries, in a form that is cheap to keep: a place in a table, or a part of a stream.
    type Content: Copy + Default;

    /// The payload of the packet that would go next, in bytes, at most `mss`, or a bound of it where that is not known before
    /// the packet is made; none if there is nothing to send. It may change only with a call of another method, or when the
    /// work is given more.
    fn next_bytes(&mut self, mss: u32) -> Option<u32>;

    /// Whether there is more, but something else than the law keeps it: the peer's flow control, a full buffer. What leaves then
    /// measures the path all the same ([`laws::Ack::sample_limited`]).
    fn is_held_back(&self) -> bool {
        false
    }

    /// How many bytes are not acknowledged yet, those not yet written among them, if the application has said how many
    /// ([`laws::Ack::left`]).
    fn left(&self) -> Option<u64> {
        None
    }

    /// That packet leaves on this subflow.
    fn take(&mut self, subflow: u8, mss: u32) -> Parcel<Self::Content>;

    /// A packet with this content came. Of a content that left several times this may be said several times.
    fn acked(&mut self, content: Self::Content);

    /// A packet with this content is lost, or nobody knows, and it should go again unless it came before. It may come after
    /// all.
    fn lost(&mut self, content: Self::Content, why: Why);

    /// Nothing is to be sent, and a packet is to leave that the peer answers: there is something to send now, such as a
    /// PING. A work that has nothing of that kind sends none, and what is in flight is lost when its timeout strikes.
    fn probe(&mut self) {}
}

/// Why content is given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Its packet is held for lost.
    Lost {
        /// The packet's subflow.
        subflow: u8,
        /// Its number there.
        number: u64,
        /// What showed it. A timer shows nothing but that the peer is late.
        cause: LossCause,
    },
    /// Its subflow is closed.
    Closed,
    /// A probe leaves, and there is nothing new. Its packet stays in flight.
    Probe,
}

/// What a packet carries that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parcel<C> {
    /// Its payload: at most as many bytes as [`Work::next_bytes`] said, and under 65,536.
    pub bytes: u32,
    /// What it is.
    pub content: C,
    /// Whether that left before.
    pub again: bool,
}
