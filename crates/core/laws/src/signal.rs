//! Signals from a host to a law, and the limits that a law returns.

use units::{Bytes, Rate, Span, Time};

/// 64 bits of a law's state, stored with each packet and returned when that packet is acknowledged or lost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cookie(pub u64);

impl Cookie {
    /// Value of a law that stores nothing with its packets.
    pub const NONE: Self = Self(0);
}

/// The departure of a packet.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Sent {
    /// Departure time of its first bit.
    pub now: Time,
    /// Its payload.
    pub bytes: Bytes,
    /// Payload in flight, this packet included.
    pub in_flight: Bytes,
    /// True if it was sent before.
    pub retransmission: bool,
}

/// Report of one port on the path, taken when the packet left it (in-band network telemetry).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Hop {
    /// Time by the port's clock.
    pub time: Time,
    /// All bytes that the port had sent before this packet; only differences mean something.
    pub sent: Bytes,
    /// Bytes that waited in the port when the packet left it.
    pub queue: Bytes,
    /// The port's line rate.
    pub rate: Rate,
}

/// Maximum number of hops in the report of a packet. A law receives no hop at all for a packet that passed more.
pub const MAX_HOPS: usize = 8;

/// An acknowledgement of one packet, or of several consecutive ones with equal marks.
///
/// Rounds, epochs and rate samples need no bookkeeping in the host: [`Ack::sent_at`] and [`Ack::delivered_at_send`] state
/// what was known when the acked packet was sent.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Ack<'a> {
    /// Arrival time of the acknowledgement.
    pub now: Time,
    /// Last departure time of the (newest) acked packet.
    pub sent_at: Time,
    /// `now - sent_at`, excluding the host's own queue.
    pub rtt: Span,
    /// Payload newly acknowledged. 0 if an acknowledgement only reports a late mark or is a duplicate.
    pub acked: Bytes,
    /// Part of that payload that met congestion (ECN). At most `acked` unless the mark arrived late.
    pub marked: Bytes,
    /// Payload still in flight, the acked packet taken off.
    pub in_flight: Bytes,
    /// All payload acknowledged since the flow began, this included.
    pub delivered: Bytes,
    /// Payload still to be acknowledged, of the flow or of the data announced by the application on its connection,
    /// over all subflows together; [`Bytes::MAX`] where the host does not know the amount.
    pub bytes_remaining: Bytes,
    /// [`Ack::delivered`] at the time the acked packet was sent: the round trip that ends here began there.
    pub delivered_at_send: Bytes,
    /// Time of the last increase of that count before the packet was sent.
    pub delivered_time_at_send: Time,
    /// Time from the departure of the first packet of its flight to that of the acked packet (BBR's send interval).
    pub send_elapsed: Span,
    /// True if the window was not filled, neither when the packet was sent nor since, and pacing did not hold it: an
    /// underused window does not grow (RFC 9002, section 7.8).
    pub app_limited: bool,
    /// True if the rate measured by this packet may be less than the path's, because the application had no data. Set for
    /// each packet sent before the data then in flight was delivered, whether it filled the window or not
    /// (`RS.is_app_limited` of draft-ietf-ccwg-bbr, §4.1.2; `rs->is_app_limited` in Linux's `tcp_rate.c`). Such a sample does
    /// not lower an estimate of bandwidth. Not set where the peer's flow control, a full buffer or a slow host was the limit.
    pub sample_limited: bool,
    /// Cookie that [`ControlLaw::on_sent`](crate::ControlLaw::on_sent) returned for this packet.
    pub cookie: Cookie,
    /// Reports of the ports on the acked packet's path, in order; empty without telemetry.
    pub hops: &'a [Hop],
}

impl Ack<'_> {
    /// [`Ack::bytes_remaining`], if the host knows how much that is.
    #[inline]
    pub fn known_bytes_remaining(&self) -> Option<Bytes> {
        (self.bytes_remaining != Bytes::MAX).then_some(self.bytes_remaining)
    }
}

/// Reason for which the host declares a packet lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum LossCause {
    /// Packets sent later were acknowledged (RACK or duplicate acknowledgements).
    Reordered,
    /// No acknowledgement arrived within a retransmission timeout.
    Timeout,
    /// The receiver requested it again.
    Nack,
}

/// A loss of packets. A mark is never a loss.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Loss {
    /// Time at which the host declared the loss.
    pub now: Time,
    /// Departure time of the (newest) lost packet.
    pub sent_at: Time,
    /// The payload lost.
    pub lost: Bytes,
    /// Payload in flight after the lost bytes are taken off.
    pub in_flight: Bytes,
    /// Reason for the loss.
    pub cause: LossCause,
}

/// A signal that is neither an acknowledgement nor a loss.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Notification<'a> {
    /// The base round-trip time is now known to be this: the path has changed.
    BaseRtt(Span),
    /// A full packet now has this payload ([`PathInfo::mss`]): a search for the path's largest packet has ended, or the path has
    /// changed. Floors, additive increases and counts of packets follow. State in bytes and parameters stay, including
    /// parameters with defaults derived from the packet size. A notification with the same size changes nothing.
    Mss(Bytes),
    /// The sender sends again, after a time in which nothing was in flight and nothing was sent.
    Idle {
        /// Time of the next transmission.
        now: Time,
        /// Length of the idle time.
        idle: Span,
        /// Number of retransmission timeouts that elapsed in it, at least 1.
        timeouts: u32,
    },
    /// The sender sends new data with nothing in flight: it had no more data to send, and all data sent is acknowledged, or
    /// needs no repair because a code replaced it. A recovery that would last until later packets are acknowledged is over
    /// (RFC 6675 §5), and draining of the pipe is complete. A host that also reports [`Notification::Idle`] does so after
    /// this.
    Resumed {
        /// Time of the transmission.
        now: Time,
    },
    /// The sender has used less than its window: the window becomes `window` if that is less, and the threshold of slow
    /// start (ssthresh) becomes `ssthresh` if that is more. [`validation`](crate::validation) computes both and defines
    /// when.
    ///
    /// A law without slow start ignores it, as it ignores [`Notification::Idle`]. A host reports the two for different
    /// times: idleness when nothing was in flight, this when something was.
    Unused {
        /// Upper bound of the new window, which is at least its floor.
        window: Bytes,
        /// Lower bound of the new threshold; zero leaves it unchanged.
        ssthresh: Bytes,
    },
    /// Before the first packet: the window at which slow start ended (ssthresh), which the host remembers from an
    /// earlier flow to the same destination.
    Remembered {
        /// The remembered threshold.
        ssthresh: Bytes,
    },
    /// The receiver received marks (DCQCN's congestion notification packet).
    Cnp {
        /// Arrival time.
        now: Time,
    },
    /// A switch near the source requests a lower rate (LSCC's direct CNP).
    DirectCnp {
        /// Arrival time.
        now: Time,
    },
    /// A switch near the source reports the ports up to itself (HPCC*'s direct INT).
    DirectInt {
        /// Arrival time.
        now: Time,
        /// Departure time of the packet that triggered it.
        sent_at: Time,
        /// The ports, the last of them the pseudo queue with the rate that was fed back.
        hops: &'a [Hop],
    },
    /// A sender requests credits; the law is the receiver's.
    Request {
        /// Number of packets that the sender has to send.
        packets: u32,
    },
    /// A round trip of credits, or of emulation packets, is over.
    Credits {
        /// Credits or emulation packets with a known outcome.
        sent: u64,
        /// Number of them that returned: as credits at the sender, as data at the receiver. At most `sent`.
        returned: u64,
        /// Duration of that round trip.
        elapsed: Span,
        /// The round trip of credit and data, smoothed.
        rtt: Span,
    },
}

/// Sending limits set by the law. All apply at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct SendLimits {
    /// Payload that may be in flight.
    pub window: Bytes,
    /// Pacing rate; [`Rate::MAX`] if the law does not pace.
    pub pacing: Rate,
}

impl SendLimits {
    /// A window and no pacing.
    pub const fn window(window: Bytes) -> Self {
        Self { window, pacing: Rate::MAX }
    }

    /// A window, its packets evenly spread over `rtt`.
    #[inline]
    pub const fn paced_window(window: Bytes, rtt: Span) -> Self {
        Self { window, pacing: Rate::of(window, rtt) }
    }
}

/// Path properties that a law may use before the first packet is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct PathInfo {
    /// Round-trip time of a full packet and its acknowledgement with every queue empty.
    pub base_rtt: Span,
    /// The same between two hosts of one datacenter: the shortest control loop of the network.
    pub intra_rtt: Span,
    /// Rate of the narrowest link on the path.
    pub line_rate: Rate,
    /// Payload of a full packet (MSS).
    pub mss: Bytes,
}

impl PathInfo {
    /// No path: for values that depend on none.
    pub const NONE: Self =
        Self { base_rtt: Span::ZERO, intra_rtt: Span::ZERO, line_rate: Rate::ZERO, mss: Bytes::ZERO };

    /// The flow's own bandwidth-delay product.
    pub const fn bdp(&self) -> Bytes {
        self.line_rate.bytes_in(self.base_rtt)
    }

    /// Returns whether the base RTT exceeds twice the one inside a datacenter: the flow goes to another datacenter.
    pub(crate) const fn is_long(&self) -> bool {
        self.base_rtt.ps() / 2 > self.intra_rtt.ps()
    }

    /// The bandwidth-delay product inside a datacenter.
    pub const fn intra_bdp(&self) -> Bytes {
        self.line_rate.bytes_in(self.intra_rtt)
    }
}
