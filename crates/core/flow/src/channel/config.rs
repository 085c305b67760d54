//! Sending parameters of a channel.

use laws::on_ramp;
use units::{Span, Time};

use crate::ack_ranges::MAX_PACKET_NUMBERS;
use crate::cwnd_usage::{CwndValidationConfig, Validation};
use crate::outstanding::{LossTimer, Outstanding, Timing};
use crate::pacer::Pacing;

/// Default maximum number of records of a subflow ([`ChannelConfig::max_outstanding`]). 2^18 packets of 1,200 bytes
/// are 315 MB: 100 ms at 25 Gb/s. Their records take 40 bytes each with a content of 8, 10 MB.
pub const MAX_OUTSTANDING: u64 = 1 << 18;

/// Sending parameters of a channel.
#[derive(Clone, Copy, Debug)]
pub struct ChannelConfig {
    /// Loss detection parameters.
    pub timing: Timing,
    /// Laws are notified of timeouts. If not, a timeout only returns contents to the work. With [`LossTimer::Probe`] a
    /// law is notified once an acknowledgement shows that none of the returned content has arrived (RFC 9002 §7.6.2):
    /// until then the peer may only be late, and a packet is sent at each timeout.
    pub law_sees_timeouts: bool,
    /// Pacing parameters.
    pub pacing: Pacing,
    /// Payload of a full packet at first, 1 to 65,535 bytes ([`Channel::set_mss`](crate::Channel::set_mss)).
    pub mss: u32,
    /// Rules for a window that a subflow does not use.
    pub usage: CwndValidationConfig,
    /// On-Ramp on each subflow's path, if it is enabled: it receives one-way delays from acknowledgements with receive
    /// times, and counts them from the minimum of the last 10 to 20 s.
    pub on_ramp: Option<on_ramp::OnRampParams>,
    /// Maximum number of records of a subflow: packets in flight or recently lost, and those sent in between. No packet
    /// of any kind is sent beyond that, so a peer that acknowledges nothing costs bounded memory.
    pub max_outstanding: u64,
}

impl ChannelConfig {
    /// Returns the configuration for a path of this base round trip. It has probes, timeouts of one and a half round trips to
    /// 60 s that cut, a reordering window of a quarter of the round trip, plain pacing, a restart after idleness, validation
    /// by RFC 7661, and no On-Ramp.
    pub const fn new(base_rtt: Span, mss: u32) -> Self {
        Self {
            timing: Timing {
                base_rtt,
                reordering: base_rtt.over(4),
                rto_min: base_rtt.times(3).over(2),
                rto_max: Span::from_s(60),
                loss_timer: LossTimer::Probe,
            },
            law_sees_timeouts: true,
            pacing: Pacing::PLAIN,
            mss,
            usage: CwndValidationConfig { restart: true, validation: Validation::Rfc7661 },
            on_ramp: None,
            max_outstanding: MAX_OUTSTANDING,
        }
    }

    /// Returns whether another packet can be sent: the record limit and the packet number limit are not reached.
    pub(super) fn has_free_records<C: Copy>(&self, out: &Outstanding<C>) -> bool {
        out.sent_packets.len() < self.max_outstanding && out.sent_packets.end() < MAX_PACKET_NUMBERS
    }

    /// Forgets packets that were declared lost, earlier than usual, if the record limit is reached: otherwise no packet could
    /// be sent any more.
    pub(super) fn free_records<C: Copy>(&self, out: &mut Outstanding<C>) {
        if out.sent_packets.len() >= self.max_outstanding {
            out.sent_packets.forget_sent_before(Time::NEVER);
        }
    }
}
