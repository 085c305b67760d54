//! `[schemes.*.lscc]` and `[schemes.*.swing]`: controllers and relays at the ends of long-haul links.

use std::num::NonZeroU16;

use units::{Bytes, Rate, Span};

use super::{Auto, Headroom};
use crate::decode::{Located, table};
use crate::error::SpannedError;

const NOTIFICATION: NonZeroU16 = match NonZeroU16::new(64) {
    Some(size) => size,
    None => NonZeroU16::MIN,
};

/// The shortest time between two messages of a controller. Messages of 64 bytes in much less would fill the links, and queues
/// of their switches would grow without bound.
const SHORTEST: Span = Span::from_us(1);

table! {
    /// LSCC: at every long-haul link, the far end calculates a rate from its ingress queue and feeds it back, and the near end notifies sources to send less. Needs `[switch]`.
    Lscc {
        /// Time between two rates (T).
        period: Located<Span>;
        /// The ingress queue that the far end aims at (`Q_ref`).
        q_ref: Located<Bytes>;
        /// Maximum difference of two consecutive rates (delta R).
        delta_r: Rate;
        /// The lowest rate fed back (`R_min`).
        r_min: Located<Rate> = Located::default_of(Rate::from_mbps(100));
        /// The highest rate fed back (`R_max`); by default the long-haul link's.
        r_max: Option<Located<Rate>> = None;
        /// Pseudo queue of the near end over which sources are notified (`Q*_ref`); by default `q_ref`.
        near_q_ref: Option<Bytes> = None;
        /// Minimum time between two notifications of one flow.
        notify_interval: Located<Span> = Located::default_of(Span::from_us(50));
        /// Bytes sent below which a flow is notified whether marked or not. `auto`: what the fastest host sends in the
        /// longest base RTT between datacenters.
        long_flow: Auto<Bytes> = Auto::Auto;
        /// Time after which the near end forgets marks; by default `period`.
        mark_timeout: Option<Located<Span>> = None;
        /// Size of a notification on the wire, in bytes.
        notification_size: NonZeroU16 = NOTIFICATION;
        /// Sends sources the reports of ports (INT) instead of notifications (HPCC*).
        telemetry: bool = false;
    }
}

impl Lscc {
    /// Refuses combinations that single values cannot show.
    pub(crate) fn check(&self) -> Result<(), SpannedError> {
        if let Some(reset) = self.mark_timeout
            && reset.is_zero()
        {
            return Err(SpannedError::new(reset.origin, "once in no time at all is endlessly often")
                .label("expected a time over zero"));
        }
        for (time, costs) in [
            (self.period, "each sends a message over the long haul, and one is kept for each in its round trip"),
            (self.notify_interval, "each sends a notification to every flow that is over its share"),
        ] {
            if *time < SHORTEST {
                return Err(SpannedError::new(time.origin, format!("once in {} is too often: {costs}", *time))
                    .label(format!("expected at least {SHORTEST}")));
            }
        }
        match self.r_max {
            Some(r_max) if *r_max < *self.r_min => {
                let message = format!("the lowest rate, {}, is over the highest, {}", *self.r_min, *r_max);
                Err(SpannedError::new(self.r_min.origin, message)
                    .label("expected at most `r_max`")
                    .at_least(r_max.origin))
            }
            _ => Ok(()),
        }
    }
}

table! {
    /// SWING, as we read its published description: a relay at each end of each long-haul link forwards pauses and resumes and holds what arrives meanwhile. Needs `[switch]` with `pfc`.
    SwingTable {
        /// Propagation delay between a border switch and its relay.
        delay: Located<Span> = Located::default_of(Span::from_us(1));
        /// A relay's buffer. `auto`: its headroom, and what the long-haul link carries in its round trip.
        buffer: Auto<Bytes> = Auto::Auto;
        /// A relay's headroom towards the long haul, as `headroom` of `[port]`.
        headroom: Headroom = Headroom::Bdp(crate::quantity::Decimal::ONE);
    }
}
