//! What a credit-scheduled transport is told beside a rate: who sends credits, and which parts of the mechanism are on.

use units::{Bytes, Frac, Rate, Span, mul_div};

use crate::{Path, Permit, Window};

/// Bytes of a credit, and of an emulation packet, on the wire: the smallest Ethernet frame with preamble and gap.
pub const CREDIT_SIZE: u32 = 84;

/// Bytes on the wire beside the payload of the packet that a credit stands for: 1538 with 1460 of payload.
pub const DATA_HEADER: u32 = 78;

/// The largest rate of credits on a path: 84/(84+1538) of its narrowest link with 1460 bytes of payload.
pub(crate) const fn largest_rate(path: &Path) -> Rate {
    let whole = path.mss.get().saturating_add((CREDIT_SIZE + DATA_HEADER) as u64);
    Rate::from_bps(mul_div(path.line_rate.bps(), CREDIT_SIZE as u64, whole))
}

/// The least rate of credits under a largest one: one in a round trip, and never none.
pub(crate) fn least_rate(rtt: Span, max_rate: Rate) -> Rate {
    Rate::of(Bytes::new(CREDIT_SIZE.into()), rtt).min(max_rate).max(Rate::from_bps(1))
}

/// What a law permits whose credits hold data back: all.
pub(crate) const fn permit() -> Permit {
    Permit::window(Window::LIMIT)
}

/// How credits schedule a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credits {
    /// Whose packets emulate data.
    pub driver: Driver,
    /// Whether data leaves at line rate, without credits, for the first round trip (Aeolus).
    pub early_start: bool,
    /// Whether a probe follows an early start, to find out what of it was lost.
    pub probe: bool,
    /// The size of the buffer that the application writes into, where the demand is what lies there; none: the flow's
    /// size is known.
    pub send_buffer: Option<u64>,
}

impl Credits {
    /// Those that a receiver's host shares out among the flows that ask, whatever their laws are (RCCC, the receiver's credits of
    /// Ultra Ethernet).
    pub const OF_THE_HOST: Self = Self { driver: Driver::Host, early_start: false, probe: false, send_buffer: None };

    /// A law's parameter for [`Credits::send_buffer`], where 0 is none.
    pub(crate) const fn buffer(size: Bytes) -> Option<u64> {
        if size.is_zero() { None } else { Some(size.get()) }
    }
}

/// Whose packets emulate data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// The receiver's credits on the reverse path, each answered by a packet (`ExpressPass`).
    Receiver {
        /// Each gap between credits is drawn from the even one times 1 minus this to 1 plus this; at most 1.
        jitter: Frac,
        /// A request that no credit follows is repeated after this time.
        retry: Span,
        /// Whether no more credits are sent than packets were asked for.
        stops_at_demand: bool,
        /// Whether the sender asks for no more credits as soon as those of a round trip cover what is left, or only when
        /// nothing is.
        stops_ahead: bool,
    },
    /// The sender's emulation packets on the data's own path, echoed by the receiver (`FlashPass`).
    Sender {
        /// As of a receiver's credits.
        jitter: Frac,
        /// How data is timed.
        wait: Wait,
        /// Which emulation packets are over-provisioned; none: all are ordinary.
        over_provisioning: Option<OverProvisioning>,
        /// Whether the receiver answers several emulation packets at once where there is time.
        batches: bool,
    },
    /// The receiver's host, which gives credits at its link's rate, in turn to all flows that ask. The first BDP of a flow needs
    /// none. A packet needs a credit and what its law permits.
    Host,
}

/// When emulation packets on their way cover the demand, so that more of them may be spared: `FlashPass`'s equation 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OverProvisioning {
    /// The share of them that may be lost (`max_target_loss`).
    pub loss: Frac,
    /// Whether over-provisioned ones count among them (`E_out`), or only ordinary ones.
    pub counts_spared: bool,
}

/// When data leaves for which a credit has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// When the credit comes.
    Nothing,
    /// As long after the emulation packet as the network's slowest credit may take.
    Longest,
    /// This long after the emulation packet (`T_wait`).
    For(Span),
}
