//! How a channel sends.

use laws::on_ramp;
use units::{Span, Time};

use crate::acks::MOST_PACKET_NUMBERS;
use crate::outstanding::{LossTimer, Outstanding, Timing};
use crate::pacer::Pacing;
use crate::usage::{UsageRules, Validation};

/// The most packets that a subflow remembers unless its channel says otherwise ([`ChannelConfig::most_outstanding`]). 2^18 packets
/// of 1,200 bytes are 315 MB: 100 ms at 25 Gb/s. Their records take 40 bytes each with a content of 8, 10 MB.
pub const MOST_OUTSTANDING: u64 = 1 << 18;

/// How a channel sends.
#[derive(Clone, Copy, Debug)]
pub struct ChannelConfig {
    /// How losses show.
    pub timing: Timing,
    /// Whether laws are told of timeouts. If not, a timeout only gives contents back. With [`LossTimer::Probe`] they are told once an
    /// answer shows that nothing of what was given back has come (RFC 9002 §7.6.2): until then the peer may only be late, and a
    /// packet leaves with each timeout.
    pub timeouts_cut: bool,
    /// How it is paced.
    pub pacing: Pacing,
    /// Payload of a full packet at first, 1 to 65,535 bytes ([`Channel::set_mss`](crate::Channel::set_mss)).
    pub mss: u32,
    /// What happens to a window that a subflow does not use.
    pub usage: UsageRules,
    /// On-Ramp on each subflow's path, if there is any: it hears of one-way delays from acknowledgements with receive times, and counts
    /// them from the least of the last 10 to 20 s.
    pub on_ramp: Option<on_ramp::Params>,
    /// The most packets of which a subflow remembers something: what is in flight or lately lost, and what left between. No packet
    /// leaves beyond that, of whatever kind, so a peer that acknowledges nothing costs bounded memory.
    pub most_outstanding: u64,
}

impl ChannelConfig {
    /// Over a path of this base round trip, with probes, timeouts of one and a half round trips to 60 s that cut, a tolerance of a
    /// quarter of the round trip, plain pacing, a restart after idleness, validation by RFC 7661, and no On-Ramp.
    pub const fn new(base_rtt: Span, mss: u32) -> Self {
        Self {
            timing: Timing {
                base_rtt,
                reordering: base_rtt.over(4),
                rto_min: base_rtt.times(3).over(2),
                rto_max: Span::from_s(60),
                loss_timer: LossTimer::Probe,
            },
            timeouts_cut: true,
            pacing: Pacing::PLAIN,
            mss,
            usage: UsageRules { restart: true, validation: Validation::Rfc7661 },
            on_ramp: None,
            most_outstanding: MOST_OUTSTANDING,
        }
    }

    /// Whether another packet may leave without too much to remember, or a number too high.
    pub(super) fn leaves_room<C: Copy>(&self, out: &Outstanding<C>) -> bool {
        out.records.len() < self.most_outstanding && out.records.end() < MOST_PACKET_NUMBERS
    }

    /// Where too much is remembered, what was held for lost is forgotten early: nothing else may ever make room for it.
    pub(super) fn make_room<C: Copy>(&self, out: &mut Outstanding<C>) {
        if out.records.len() >= self.most_outstanding {
            out.records.forget_left_before(Time::NEVER);
        }
    }
}
