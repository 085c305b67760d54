//! Features of Linux's TCP between a flow and its law: proportional rate reduction (PRR), restart after idleness, and
//! congestion window validation. Each can be enabled alone.
//!
//! **PRR** (RFC 6937, RFC 9937; `tcp_cwnd_reduction` in `net/ipv4/tcp_input.c`). The law cuts its window, for a loss or for
//! marks. Then the flight falls to the new window in proportion to the delivered bytes. Without PRR a flow is silent until
//! enough of its old window has drained. The reduction ends when everything is acknowledged that had been sent before the
//! cut, or with a timeout. Until then the law is notified that its window does not limit the flow, so the law does not grow
//! it, as in Linux.
//!
//! Where the flight is already under the new window there are two ways to catch up. An acknowledgement that moves the
//! cumulative number and reports no new losses takes slow start's reduction bound (SSRB), any other the conservative
//! one (CRB).
//!
//! **Restart and validation** are in [`cwnd_usage`](crate::cwnd_usage). A flow is idle when nothing of it is unacknowledged.
//!
//! All need [`Recovery::Selective`](super::Recovery) and one law for the flow. Linux does none of them for laws that set
//! windows by themselves (`cong_control`: BBR).

use laws::{Ack, ControlLaw, LossCause};
use units::{Bytes, Time, mul_div};

use super::{Segment, SendState, Sender};
use crate::cwnd_usage::{CwndUsage, CwndValidationConfig, PipeSample, Validation};

/// Features of Linux's TCP that are enabled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct TcpConfig {
    /// Cuts are spread over a round trip (PRR).
    pub prr: bool,
    /// Rules for a window that the flow does not use.
    pub usage: CwndValidationConfig,
    /// The host remembers for each destination the window at which slow start ended ([`crate::DestinationMetrics`]).
    pub remembers: bool,
}

impl TcpConfig {
    /// All features are disabled.
    pub const NONE: Self = Self {
        prr: false,
        usage: CwndValidationConfig { restart: false, validation: Validation::Off },
        remembers: false,
    };
}

/// State of all features except the last.
#[derive(Debug)]
pub(super) struct Tcp {
    config: TcpConfig,
    reduction: Option<Reduction>,
    /// Payload newly acknowledged by the current acknowledgement.
    acked: Bytes,
    /// The current acknowledgement reported losses.
    lost: bool,
    usage: CwndUsage,
}

impl Tcp {
    /// Creates the state of a flow; `initial` is the initial window of the law.
    pub(super) fn new(config: TcpConfig, initial: Bytes, now: Time) -> Option<Self> {
        let is_on = config.prr || config.usage != CwndValidationConfig::default();
        let usage = CwndUsage::new(config.usage, initial, now);
        is_on.then_some(Self { config, reduction: None, acked: Bytes::ZERO, lost: false, usage })
    }

    /// Ends a message: everything is acknowledged.
    pub(super) fn end_message(&mut self) {
        (self.reduction, self.acked, self.lost) = (None, Bytes::ZERO, false);
    }
}

/// Movement of the cumulative number by an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CumulativeAck {
    /// Moved on.
    Advanced,
    /// Equal to that of an earlier acknowledgement.
    Repeated,
}

/// `SafeACK` of RFC 9937 §5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SafeAck {
    /// The cumulative number moved, and nothing was lost.
    Yes,
    No,
}

/// A reduction under way. Names in comments are the RFCs'.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Reduction {
    target: Bytes,    // ssthresh
    flight: Bytes,    // RecoverFS
    delivered: Bytes, // prr_delivered
    out: Bytes,       // prr_out
    /// The first packet that had not been sent when it began.
    end: u32,
    /// Maximum payload in flight (cwnd).
    window: Bytes,
}

impl Reduction {
    /// Begins a reduction: the window became `target` while `flight` bytes were in flight.
    fn new(target: Bytes, flight: Bytes, end: u32) -> Self {
        Self { target, flight, delivered: Bytes::ZERO, out: Bytes::ZERO, end, window: Bytes::ZERO }
    }

    /// Records `delivered` newly delivered bytes, with `in_flight` bytes in flight now.
    fn on_delivered(&mut self, delivered: Bytes, in_flight: Bytes, safe: SafeAck, mss: Bytes) {
        self.delivered += delivered;
        let more = if in_flight > self.target {
            // CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out
            let share = mul_div(self.delivered.get(), self.target.get(), self.flight.get().max(1));
            Bytes::new(share).saturating_sub(self.out)
        } else {
            // MAX(prr_delivered - prr_out, DeliveredData), and a packet more in slow start's bound
            let bound = self.delivered.saturating_sub(self.out).max(delivered);
            let bound = if safe == SafeAck::Yes { bound + mss } else { bound };
            bound.min(self.target - in_flight)
        };
        // The first lost packet is resent at once.
        let more = if self.out.is_zero() { more.max(mss) } else { more };
        self.window = in_flight + more;
    }
}

impl<L: ControlLaw> Sender<L> {
    /// Returns whether a cut is being spread.
    pub(super) fn is_reducing(&self) -> bool {
        self.tcp.as_ref().is_some_and(|tcp| tcp.reduction.is_some())
    }

    /// Sets the permitted window to that of the reduction while a cut is being spread, regardless of the law's permit.
    pub(super) fn reduce_window(&mut self) {
        if let Some(reduction) = self.tcp.as_ref().and_then(|tcp| tcp.reduction.as_ref()) {
            self.subflows.get_mut(0).law_state.send_limits.window = reduction.window;
        }
    }

    /// Prepares for an acknowledgement that is about to be passed to the law: its newest packet was sent at `sent_at`,
    /// and `marked` is its marked payload. Returns whether a cut is being spread or the window is not used, and the
    /// law's own window, where a cut of it would be spread.
    pub(super) fn before_ack(
        &mut self,
        now: Time,
        sent_at: Time,
        acked: Bytes,
        marked: Bytes,
    ) -> (bool, Option<Bytes>) {
        if !marked.is_zero() {
            self.before_reduction(now, sent_at, acked);
        }
        let (window, mss) = (self.law().send_limits().window, self.config.mss);
        let unused = self.tcp.as_mut().is_some_and(|tcp| {
            let unlimited = tcp.usage.follows_rfc7661() && tcp.usage.is_unlimited_since(sent_at);
            !tcp.usage.before_ack(now, sent_at, window, mss) || unlimited
        });
        (self.is_reducing() || unused, self.window_before())
    }

    /// Prepares the law for losses or marks of packets sent at `sent_at` and later that are no longer in flight.
    pub(super) fn before_reduction(&mut self, now: Time, sent_at: Time, removed: Bytes) {
        let (window, flight) = (self.law().send_limits().window, self.in_flight() + removed);
        let mss = self.config.mss;
        if let Some(notification) =
            self.tcp.as_mut().and_then(|tcp| tcp.usage.before_reduction(now, sent_at, flight, window, mss))
        {
            self.notify(0, &notification);
        }
    }

    /// Updates the window use after an acknowledgement was passed to the law: the window may not have been used for
    /// long.
    pub(super) fn after_ack(&mut self, ack: &Ack) {
        let (window, rtt, mss) = (self.law().send_limits().window, self.smoothed_rtt(), self.config.mss);
        let delivered = ack.delivered - ack.delivered_at_send;
        let sample = PipeSample { now: ack.now, sent_at: ack.sent_at, delivered, rtt, window, mss };
        let Some(tcp) = &mut self.tcp else { return };
        if let Some(notification) = tcp.usage.acked(&sample) {
            self.notify(0, &notification);
        }
    }

    /// Spreads the law's cut, if any, after it received an acknowledgement with `marked` payload marked.
    pub(super) fn spread_cut_of_ack(&mut self, before: Option<Bytes>, marked: Bytes) {
        if before.is_some() && !marked.is_zero() {
            self.spread_cut(before, Bytes::ZERO, None);
        } else {
            self.reduce_window();
        }
    }

    /// The law's own window, where a cut of it would be spread.
    #[inline(always)]
    pub(super) fn window_before(&self) -> Option<Bytes> {
        self.tcp.as_ref().filter(|tcp| tcp.config.prr).map(|_| self.law().send_limits().window)
    }

    /// Ends the reduction if an acknowledgement shows that everything sent before the cut has arrived.
    pub(super) fn end_reduction(&mut self) {
        let cumulative = self.cumulative;
        let Some(tcp) = &mut self.tcp else { return };
        if tcp.reduction.as_ref().is_some_and(|reduction| cumulative >= reduction.end) {
            tcp.reduction = None;
            self.read_permit(0);
        }
    }

    /// Records the payload of the current acknowledgement.
    pub(super) fn note_acked(&mut self, acked: Bytes) {
        if let Some(tcp) = &mut self.tcp {
            (tcp.acked, tcp.lost) = (acked, false);
        }
    }

    /// Begins a reduction if the law cut its window for marks, or for the loss of `lost` bytes for `cause`. `before` is
    /// its window before that.
    pub(super) fn spread_cut(&mut self, before: Option<Bytes>, lost: Bytes, cause: Option<LossCause>) {
        let (end, in_flight) = (self.numbers.end(), self.in_flight());
        let target = self.law().send_limits().window;
        let Some(tcp) = &mut self.tcp else { return };
        tcp.lost |= cause.is_some();
        if cause == Some(LossCause::Timeout) {
            tcp.reduction = None;
        } else if before.is_some_and(|before| target < before) {
            let mut reduction = Reduction::new(target, in_flight + lost + tcp.acked, end);
            // If a timer found the loss, nothing was delivered, and the first packet is resent nevertheless.
            reduction.window = in_flight + Bytes::new(self.config.mss.into());
            tcp.reduction = Some(reduction);
        }
        self.read_permit(0);
    }

    /// Sets the limit of bytes in flight while a cut is being spread, once an acknowledgement is processed completely.
    pub(super) fn reduce(&mut self, cumulative: CumulativeAck) {
        let (in_flight, mss) = (self.in_flight(), Bytes::new(self.config.mss.into()));
        let Some(tcp) = &mut self.tcp else { return };
        if let Some(reduction) = &mut tcp.reduction {
            let is_safe = cumulative == CumulativeAck::Advanced && !tcp.lost;
            let safe = if is_safe { SafeAck::Yes } else { SafeAck::No };
            reduction.on_delivered(tcp.acked, in_flight, safe, mss);
            self.read_permit(0);
        }
        self.note_acked(Bytes::ZERO);
    }

    /// Notifies the law of an idle period before a packet is sent, if there was one.
    pub(super) fn restart_if_idle(&mut self, now: Time) {
        if self.numbers.first() != self.numbers.end() {
            return;
        }
        let timeout = self.timeout();
        if let Some(idle) = self.tcp.as_ref().and_then(|tcp| tcp.usage.before_sending(now, timeout)) {
            self.notify(0, &idle);
        }
    }

    /// Records that a packet was sent.
    pub(super) fn note_sent(&mut self, now: Time, segment: &Segment) {
        let (timing, mss, bytes) = (self.timing(), self.config.mss, Bytes::new(segment.bytes.into()));
        let has_more = self.next_bytes().is_some();
        let subflow = self.subflows.get(0);
        let Some(tcp) = &mut self.tcp else { return };
        if let Some(reduction) = &mut tcp.reduction {
            reduction.out += bytes;
        }
        tcp.usage.sent(now, if segment.attempt == 1 { Bytes::ZERO } else { bytes });
        tcp.usage.note_limits(now, &subflow.law_state, mss);
        if !has_more && subflow.law_state.in_flight < subflow.law_state.send_limits.window {
            tcp.usage.note_lack();
        }
        if segment.then != SendState::Now
            && let Some(notification) =
                tcp.usage.after_burst(now, &subflow.law_state, mss, subflow.out.timeout(&timing))
        {
            self.notify(0, &notification);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1_000);

    /// 20 packets are out, the first is lost, and the window becomes 10. Each of 19 acknowledgements delivers a packet, and
    /// all packets that the reduction permits are sent at once. Each delivery permits half a packet (10 / 20): the lost
    /// packet is resent with the first one, then one is sent with every second.
    #[test]
    fn prr_sends_every_second_delivery_down_to_the_target() {
        let mut reduction = Reduction::new(MSS.times(10), MSS.times(20), 20);
        let mut in_flight = MSS.times(19);
        let mut sent = [0; 19];
        for sent in &mut sent {
            in_flight -= MSS;
            reduction.on_delivered(MSS, in_flight, SafeAck::No, MSS);
            while in_flight + MSS <= reduction.window {
                in_flight += MSS;
                reduction.out += MSS;
                *sent += 1;
            }
        }
        // The shares are 0.5, 1, 1.5, ... packets, and 1 packet is out after the first. The next is sent at a share of 2,
        // with the fourth; then one with every second, the seventh with the 14th. The 16th reduces the flight to the target.
        // From then on one is sent for each delivery.
        assert_eq!(sent, [1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1]);
        assert_eq!(in_flight, MSS.times(10));
    }

    /// 20 packets were out, 15 are lost: 4 are in flight after an acknowledgement of one, the target is 10.
    #[test]
    fn prr_below_the_target_grows_by_delivered_bytes() {
        let begin = || Reduction { out: MSS, ..Reduction::new(MSS.times(10), MSS.times(20), 20) };
        // Conservative: as much as was delivered. In slow start's bound: a packet more.
        let mut conservative = begin();
        conservative.on_delivered(MSS, MSS.times(4), SafeAck::No, MSS);
        assert_eq!(conservative.window, MSS.times(5));
        let mut slow_start = begin();
        slow_start.on_delivered(MSS, MSS.times(4), SafeAck::Yes, MSS);
        assert_eq!(slow_start.window, MSS.times(6));
        // Unused deliveries may be used later: 6 delivered, 1 sent.
        conservative.on_delivered(MSS.times(5), MSS.times(4), SafeAck::No, MSS);
        assert_eq!(conservative.window, MSS.times(9));
        // Never above the target.
        slow_start.on_delivered(MSS.times(5), MSS.times(8), SafeAck::Yes, MSS);
        assert_eq!(slow_start.window, MSS.times(10));
    }

    #[test]
    fn prr_retransmits_the_first_packet_at_once() {
        let mut reduction = Reduction::new(MSS, MSS.times(100), 100);
        reduction.on_delivered(MSS, MSS.times(98), SafeAck::No, MSS);
        assert_eq!(reduction.window, MSS.times(99));
        reduction.out = MSS;
        reduction.on_delivered(MSS, MSS.times(97), SafeAck::No, MSS);
        assert_eq!(reduction.window, MSS.times(97));
    }

    #[test]
    fn disabled_features_have_no_state() {
        let new = |config| Tcp::new(config, MSS, Time::ZERO);
        assert!(new(TcpConfig::default()).is_none() && new(TcpConfig { remembers: true, ..TcpConfig::NONE }).is_none());
        assert!(new(TcpConfig { prr: true, ..TcpConfig::NONE }).is_some());
    }
}
