//! Configuration of a credit-scheduled transport, in addition to a rate: the sender of credits and the enabled parts of
//! the mechanism.

use units::{Bytes, Frac, Rate, Span, mul_div};

use crate::{PathInfo, SendLimits, Window};

/// Bytes of a credit, and of an emulation packet, on the wire: the smallest Ethernet frame with preamble and gap.
pub const CREDIT_SIZE: u32 = 84;

/// Bytes on the wire in addition to the payload of the packet that a credit permits: 1538 with 1460 of payload.
pub const DATA_HEADER: u32 = 78;

/// The largest rate of credits on a path: 84/(84+1538) of its narrowest link with 1460 bytes of payload.
pub(crate) const fn largest_rate(path: &PathInfo) -> Rate {
    let whole = path.mss.get().saturating_add((CREDIT_SIZE + DATA_HEADER) as u64);
    Rate::from_bps(mul_div(path.line_rate.bps(), CREDIT_SIZE as u64, whole))
}

/// The least rate of credits under a largest one: one in a round trip, and never none.
pub(crate) fn min_rate_of(rtt: Span, max_rate: Rate) -> Rate {
    Rate::of(Bytes::new(CREDIT_SIZE.into()), rtt).min(max_rate).max(Rate::from_bps(1))
}

/// Returns the limits of a law with credit-scheduled data: no limit.
pub(crate) const fn send_limits() -> SendLimits {
    SendLimits::window(Window::LIMIT)
}

/// Credit scheduling of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credits {
    /// Origin of the packets that emulate data.
    pub driver: Driver,
    /// True if data is sent at line rate, without credits, for the first round trip (Aeolus).
    pub early_start: bool,
    /// True if a probe follows an early start, to find its losses.
    pub probe: bool,
    /// Size of the application's send buffer, where the demand is the data in that buffer; none: the flow's size is
    /// known.
    pub send_buffer: Option<u64>,
}

impl Credits {
    /// Credits that a receiver's host shares out among the flows that request them, for any laws (RCCC, the receiver's
    /// credits of Ultra Ethernet).
    pub const OF_THE_HOST: Self = Self { driver: Driver::Host, early_start: false, probe: false, send_buffer: None };

    /// A law's parameter for [`Credits::send_buffer`], where 0 is none.
    pub(crate) const fn buffer(size: Bytes) -> Option<u64> {
        if size.is_zero() { None } else { Some(size.get()) }
    }
}

/// Origin of the packets that emulate data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// The receiver's credits on the reverse path; the sender sends a packet for each (`ExpressPass`).
    Receiver {
        /// Each gap between credits is drawn from the even one times 1 minus this to 1 plus this; at most 1.
        jitter: Frac,
        /// A request that no credit follows is repeated after this time.
        retry: Span,
        /// True if the receiver sends at most as many credits as packets were requested.
        stops_at_demand: bool,
        /// True if the sender stops requesting credits as soon as the credits of a round trip cover the remaining data;
        /// false if only once no data remains.
        stops_ahead: bool,
    },
    /// The sender's emulation packets on the data's own path, echoed by the receiver (`FlashPass`).
    Sender {
        /// Jitter of the gaps, as for a receiver's credits.
        jitter: Frac,
        /// Timing of data.
        wait: Wait,
        /// Over-provisioned emulation packets; none: all are ordinary.
        over_provisioning: Option<OverProvisioning>,
        /// True if the receiver echoes several emulation packets at once where time allows.
        batches: bool,
    },
    /// The receiver's host, which sends credits at its link's rate, round-robin to all flows that request them. The
    /// first BDP of a flow needs none. A packet needs a credit and its law's permission.
    Host,
}

/// Over-provisioning: once emulation packets in flight cover the demand, further ones may be dropped first
/// (`FlashPass`'s equation 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OverProvisioning {
    /// The share of them that may be lost (`max_target_loss`).
    pub loss: Frac,
    /// True if over-provisioned packets count among them (`E_out`), false if only ordinary ones do.
    pub counts_spared: bool,
}

/// Departure time of data after its credit has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Leaves when the credit arrives.
    Nothing,
    /// Leaves after the longest credit delay of the network, counted from the emulation packet.
    Longest,
    /// Leaves this long after the emulation packet (`T_wait`).
    For(Span),
}
