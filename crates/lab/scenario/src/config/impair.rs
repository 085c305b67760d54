//! `impair` of `[port]`: impairments of links.

use std::num::{NonZeroU16, NonZeroU32};

use units::{Bytes, Rate, Span};

use super::OffOr;
use crate::decode::{Located, table, words};
use crate::quantity::{Decimal, Share};

words! {
    /// Distribution of the delay of a packet.
    DelayDistribution, "\"uniform\" or \"normal\"" {
        /// All delays alike.
        Uniform = "uniform",
        /// A bounded bell: the mean of four uniform delays.
        Normal = "normal",
    }
}

table! {
    /// Random delay of each packet on the link, in addition to its propagation delay.
    LinkJitterTable {
        /// Longest delay, over 0 and at most 100s. Its mean is half of that.
        max: Located<Span>;
        /// `uniform`: standard deviation `max / sqrt(12)`. `normal`: the mean of four uniform delays, `max / sqrt(48)`.
        distribution: DelayDistribution = DelayDistribution::Uniform;
        /// A packet never overtakes one that left before it: it waits for that one.
        keep_order: bool = true;
    }
}

table! {
    /// Packets that are held back, so that others overtake them.
    ReorderTable {
        /// Part of the packets, under 1.
        probability: Located<Share>;
        /// Time for which they are held back, over 0 and at most 100s, in addition to their jitter.
        delay: Located<Span>;
    }
}

table! {
    /// A single-rate policer in front of the queue: drops packets that find too few tokens.
    PoliceTable {
        /// Rate at which tokens arrive.
        rate: Rate;
        /// Size of the token bucket, at most 1GiB. A packet larger than the bucket never passes.
        burst: Located<Bytes>;
    }
}

table! {
    /// Collection of small packets, which acknowledgements are: held, then released at one time, as by links with shared media.
    AckAggregationTable {
        /// Longest time from the first packet of a group to its release, over 0 and at most 100s.
        period: Located<Span>;
        /// Packets that complete a group before that; at least 2.
        packets: Located<NonZeroU32>;
        /// Largest packet that is held, in bytes on the wire.
        max_size: NonZeroU16 = ACK;
    }
}

/// A bare acknowledgement of TCP or of the transport with its headers, with room for options and ranges.
const ACK: NonZeroU16 = match NonZeroU16::new(128) {
    Some(bytes) => bytes,
    None => NonZeroU16::MIN,
};

table! {
    /// A rate from a time on.
    RateStepTable {
        /// Time since the start of the run, or of the period.
        at: Located<Span>;
        /// Rate from then on, at most that of the link; `off`: nothing is sent.
        rate: Located<OffOr<Rate>>;
    }
}

table! {
    /// Impairments of a link and of the port in front of it: [impairments](impairments.md). Only of ports of switches that decide alone, as for `codel`, and not where a scheme's laws send credits.
    ImpairTable {
        /// Random delay of each packet.
        jitter: Option<LinkJitterTable> = None;
        /// Packets that are held back.
        reorder: Option<ReorderTable> = None;
        /// Part of the packets that arrive twice, under 1.
        duplicate: Located<Share> = Located::default_of(Share(Decimal::ZERO));
        /// Part of the packets with a bit error, under 1. They go on, and their destination discards them.
        corrupt: Located<Share> = Located::default_of(Share(Decimal::ZERO));
        /// Largest packet in bytes on the wire; larger ones are dropped without notice.
        mtu: Option<Located<NonZeroU16>> = None;
        /// Token-bucket policer.
        police: Option<PoliceTable> = None;
        /// Collection of acknowledgements.
        ack_aggregation: Option<AckAggregationTable> = None;
        /// Rates by time, the first at 0s; the last one lasts, unless there is a `rate_period`. Either this or `rate_trace`.
        rate_steps: Option<Located<Vec<RateStepTable>>> = None;
        /// Time after which `rate_steps` begin again, at most 24h.
        rate_period: Option<Located<Span>> = None;
        /// Rates by a file in the format of Mahimahi, in the scenario's directory: a line per 1,500 bytes, the time in milliseconds.
        rate_trace: Option<Located<String>> = None;
    }
}
