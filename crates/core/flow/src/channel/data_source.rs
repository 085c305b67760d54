//! Data source of a channel.

use laws::LossCause;

/// Data source of a channel: provides packet contents and receives their outcomes.
pub trait DataSource {
    /// Content of one packet, in a form that is cheap to keep: a place in a table, or a part of a stream.
    type Content: Copy + Default;

    /// Returns the payload in bytes of the next packet, at most `mss`, or an upper bound where it is unknown until the packet
    /// is made; none if there is nothing to send. The value may change only by a call of another method, or when data is
    /// added to the work.
    fn next_bytes(&mut self, mss: u32) -> Option<u32>;

    /// Returns whether there is more data, but something other than the law holds it back: the peer's flow control, a full
    /// buffer. Packets sent in this state still measure the path ([`laws::Ack::sample_limited`]).
    fn is_host_limited(&self) -> bool {
        false
    }

    /// Returns the number of bytes that are not acknowledged yet, those not yet written included, if the application
    /// has stated the total ([`laws::Ack::bytes_remaining`]).
    fn bytes_remaining(&self) -> Option<u64> {
        None
    }

    /// Takes the packet that [`DataSource::next_bytes`] announced, for sending on this subflow.
    fn take(&mut self, subflow: u8, mss: u32) -> PacketContent<Self::Content>;

    /// Reports that a packet with this content arrived. A content that was sent several times may be reported several
    /// times.
    fn acked(&mut self, content: Self::Content);

    /// Takes back the content of a packet that is lost or of unknown state. It should be sent again unless it arrived
    /// before. It may still arrive.
    fn lost(&mut self, content: Self::Content, why: ReturnReason);

    /// Requests an ack-eliciting packet when there is nothing to send, such as a PING. A work that has nothing of that kind
    /// sends none, and packets in flight are declared lost when its timeout expires.
    fn probe(&mut self) {}
}

/// Reason why content is returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReturnReason {
    /// Its packet was declared lost.
    Lost {
        /// The packet's subflow.
        subflow: u8,
        /// Its number there.
        number: u64,
        /// Evidence of the loss. A timer only shows that the peer is late.
        cause: LossCause,
    },
    /// Its subflow is closed.
    Closed,
    /// A probe is sent, and there is nothing new to send. Its packet stays in flight.
    Probe,
}

/// Content of a packet that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketContent<C> {
    /// Its payload: at most [`DataSource::next_bytes`] bytes, and under 65,536.
    pub bytes: u32,
    /// The content.
    pub content: C,
    /// The content was sent before.
    pub is_retransmission: bool,
}
