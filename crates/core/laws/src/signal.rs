//! What a host tells a law, and what a law answers.

use units::{Bytes, Rate, Span, Time};

/// A law's own 64 bits, kept with each packet and handed back when that packet is acked or lost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cookie(pub u64);

impl Cookie {
    /// A law that keeps nothing with its packets.
    pub const NONE: Self = Self(0);
}

/// A packet has just left.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Sent {
    /// When its first bit left.
    pub now: Time,
    /// Its payload.
    pub bytes: Bytes,
    /// Payload in flight, this packet included.
    pub in_flight: Bytes,
    /// Whether it was sent before.
    pub retransmission: bool,
}

/// What one port on the way reported of itself when the packet left it (in-band network telemetry).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Hop {
    /// When, by the port's clock.
    pub time: Time,
    /// All bytes that the port had sent before this packet; only differences mean something.
    pub sent: Bytes,
    /// Bytes that waited in the port when the packet left it.
    pub queue: Bytes,
    /// The port's line rate.
    pub rate: Rate,
}

/// The most hops that a packet reports. A law hears of no hop at all of a packet that passed more.
pub const MOST_HOPS: usize = 8;

/// An acknowledgement of one packet, or of several consecutive ones whose marks are alike.
///
/// Rounds, epochs and rate samples need no bookkeeping in the host: [`Ack::sent_at`] and
/// [`Ack::delivered_at_send`] say what was known when the acked packet left.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Ack<'a> {
    /// When the acknowledgement arrived.
    pub now: Time,
    /// When the (newest) acked packet last left.
    pub sent_at: Time,
    /// `now - sent_at`, the host's own queue left out.
    pub rtt: Span,
    /// Payload newly acknowledged. 0 where an acknowledgement only brings a late mark or repeats.
    pub acked: Bytes,
    /// Of that payload, how much met congestion (ECN). At most `acked` unless the mark came late.
    pub marked: Bytes,
    /// Payload still in flight, the acked packet taken off.
    pub in_flight: Bytes,
    /// All payload acknowledged since the flow began, this included.
    pub delivered: Bytes,
    /// Payload that is still to be acknowledged, of the flow or of what the application has announced on its connection, over all
    /// subflows together; [`Bytes::MAX`] where the host does not know how much that is.
    pub left: Bytes,
    /// [`Ack::delivered`] as it was when the acked packet left: the round trip that ends here began there.
    pub delivered_at_send: Bytes,
    /// When that count was last raised before the packet left.
    pub delivered_time_at_send: Time,
    /// How long before the acked packet the first packet of its flight left (BBR's send interval).
    pub send_elapsed: Span,
    /// Whether the window was not filled, neither when the packet left nor since, and no pace held it: a window that is not used
    /// does not grow (RFC 9002, section 7.8).
    pub app_limited: bool,
    /// True if the rate that this packet measures may be less than the path's, because the application had no data. That is said of
    /// each packet that left before what was then in flight was delivered, whether it filled the window or not (`RS.is_app_limited` of
    /// draft-ietf-ccwg-bbr, §4.1.2; `rs->is_app_limited` in Linux's `tcp_rate.c`). Such a sample does not lower an estimate of
    /// bandwidth. It is not said of what the peer's flow control, a full buffer or a slow host held back.
    pub sample_limited: bool,
    /// What [`ControlLaw::on_sent`](crate::ControlLaw::on_sent) answered for this packet.
    pub cookie: Cookie,
    /// What the ports that the acked packet passed reported, in order; empty without telemetry.
    pub hops: &'a [Hop],
}

impl Ack<'_> {
    /// [`Ack::left`], if the host knows how much that is.
    #[inline]
    pub fn known_left(&self) -> Option<Bytes> {
        (self.left != Bytes::MAX).then_some(self.left)
    }
}

/// Why the host holds a packet for lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum LossCause {
    /// Packets sent later were acknowledged (RACK or duplicate acknowledgements).
    Reordered,
    /// Nothing was heard of it for a retransmission timeout.
    Timeout,
    /// The receiver asked for it again.
    Nack,
}

/// Packets are lost. Never a mark.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Loss {
    /// When the host decided so.
    pub now: Time,
    /// When the (newest) lost packet left.
    pub sent_at: Time,
    /// The payload lost.
    pub lost: Bytes,
    /// Payload in flight after the lost bytes are taken off.
    pub in_flight: Bytes,
    /// Why.
    pub cause: LossCause,
}

/// A signal that is neither an acknowledgement nor a loss.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Notification<'a> {
    /// The base round-trip time is now known to be this: the path has changed.
    BaseRtt(Span),
    /// A full packet now has this payload ([`Path::mss`]): a search for the path's largest packet has ended, or the path
    /// has changed. Floors, additive increases and counts of packets follow; what a law knows in bytes stays, and so do its
    /// parameters, also those whose defaults came from the packet's size. The same size again changes nothing.
    Mss(Bytes),
    /// The sender sends again, after a time in which nothing was in flight and nothing was sent.
    Idle {
        /// When it does.
        now: Time,
        /// How long that time was.
        idle: Span,
        /// How many retransmission timeouts went by in it, at least 1.
        timeouts: u32,
    },
    /// The sender sends something new with nothing in flight: it had nothing more to send, and all that it sent is
    /// acknowledged, or needs no repair because a code replaced it. A recovery that would last until later packets are
    /// acknowledged is over (RFC 6675 §5), and a pipe that is to be drained is drained. A host that tells of
    /// [`Notification::Idle`], too, does so after this.
    Resumed {
        /// When it does.
        now: Time,
    },
    /// The sender has used less than its window: the window becomes `window` if that is less, and the threshold of slow start
    /// (ssthresh) becomes `ssthresh` if that is more. [`validation`](crate::validation) computes both and says when.
    ///
    /// A law without slow start does not hear of it, as of [`Notification::Idle`]. A host tells of the two for different times:
    /// of idleness when nothing was in flight, of this when something was.
    Unused {
        /// The most that the window is to be, within its floor.
        window: Bytes,
        /// The least that the threshold is to be; zero leaves it.
        ssthresh: Bytes,
    },
    /// Before the first packet: what the host remembers of an earlier flow to the same destination, the window at which
    /// slow start ended (ssthresh).
    Remembered {
        /// That window.
        ssthresh: Bytes,
    },
    /// The receiver met marks (DCQCN's congestion notification packet).
    Cnp {
        /// When it arrived.
        now: Time,
    },
    /// A switch near the source asks for less (LSCC's direct CNP).
    DirectCnp {
        /// When it arrived.
        now: Time,
    },
    /// A switch near the source reports the ports up to itself (HPCC*'s direct INT).
    DirectInt {
        /// When it arrived.
        now: Time,
        /// When the packet that it answers left.
        sent_at: Time,
        /// The ports, the last of them the pseudo queue with the rate that was fed back.
        hops: &'a [Hop],
    },
    /// A sender asks the receiver, whose law this is, for credits.
    Request {
        /// How many packets it has to send.
        packets: u32,
    },
    /// A round trip of credits, or of emulation packets, is over.
    Credits {
        /// Those of which it is now known what became of them.
        sent: u64,
        /// Those of them that came back: as credits at the sender, as data at the receiver. At most `sent`.
        returned: u64,
        /// How long it took.
        elapsed: Span,
        /// The round trip of credit and data, smoothed.
        rtt: Span,
    },
}

/// What the law permits. All limits hold at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Permit {
    /// Payload that may be in flight.
    pub window: Bytes,
    /// How fast it may leave; [`Rate::MAX`] if the law does not pace.
    pub pacing: Rate,
}

impl Permit {
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

/// What a law may know of its flow before the first packet leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Path {
    /// Round-trip time of a full packet and its acknowledgement with every queue empty.
    pub base_rtt: Span,
    /// The same between two hosts of one datacenter: the shortest control loop of the network.
    pub intra_rtt: Span,
    /// Rate of the narrowest link on the path.
    pub line_rate: Rate,
    /// Payload of a full packet (MSS).
    pub mss: Bytes,
}

impl Path {
    /// No path: for what depends on none.
    pub const NONE: Self =
        Self { base_rtt: Span::ZERO, intra_rtt: Span::ZERO, line_rate: Rate::ZERO, mss: Bytes::ZERO };

    /// The flow's own bandwidth-delay product.
    pub const fn bdp(&self) -> Bytes {
        self.line_rate.bytes_in(self.base_rtt)
    }

    /// Whether the base RTT is over twice that inside a datacenter: the flow goes to another one.
    pub(crate) const fn is_long(&self) -> bool {
        self.base_rtt.ps() / 2 > self.intra_rtt.ps()
    }

    /// The bandwidth-delay product inside a datacenter.
    pub const fn intra_bdp(&self) -> Bytes {
        self.line_rate.bytes_in(self.intra_rtt)
    }
}
