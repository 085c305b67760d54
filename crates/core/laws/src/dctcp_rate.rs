//! DCTCP as HPCC's authors simulate it: a rate instead of a window, at line rate from the first packet.
//! Source: alibaba-edu/High-Precision-Congestion-Control, `HandleAckDctcp`; the equations are those of Alizadeh et
//! al., SIGCOMM 2010, §3, with the rate in the window's place. [`Dctcp`](crate::Dctcp) is the paper's own.
//!
//! Losses change nothing: the network is taken to be lossless.

use units::{Bytes, Frac, Rate};

use crate::info::{EcnSupport, LawInfo};
use crate::limits::{Limits, RateWindow};
use crate::params::{parameters, range};
use crate::{Ack, ControlLaw, LawActions, Loss, Notification, PathInfo, Round, SendLimits};

parameters! { path;
    /// Initial and maximum rate.
    line_rate: Rate = path.line_rate, "narrowest link of the path", range::SLOW, range::FAST;
    /// The lowest rate.
    min_rate: Rate = Rate::from_mbps(100), "100 Mb/s", range::SLOW, range::FAST;
    /// Weight of the newest round in the average marked fraction (g).
    ewma_gain: Fraction = Frac::ratio(1, 16), "1/16", Frac::ZERO, Frac::ONE;
    /// Additive increase per round trip without a cut.
    additive: Rate = Rate::of(path.mss, path.base_rtt), "1 packet a base RTT", range::ZERO_RATE, range::FAST;
    /// Limits the bytes in flight by a window.
    windowed: Switch = true, "true", false, true;
    /// Window at line rate, with `windowed`.
    window: Bytes = path.bdp(), "1 own BDP", range::BYTE, range::WINDOW;
    /// Scales the window in proportion to the rate; off: it stays at `window`.
    window_scales: Switch = true, "true", false, true;
}

/// Its names, signals and parameters, as lists of laws show them.
pub(crate) const INFO: LawInfo = LawInfo {
    name: "dctcp-rate",
    title: "DCTCP as a rate",
    summary: "cuts a rate in proportion to the fraction of marked packets, from line rate on",
    source: "HPCC's simulator; equations of Alizadeh et al. (SIGCOMM 2010), §3",
    signals: "ECN",
    marks: EcnSupport::Used,
    ..LawInfo::of(Params::TABLE)
};

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct DctcpRate {
    limits: Limits,
    gain: Frac,
    additive: Rate,
    rate: Rate,
    alpha: Frac, // EWMA of the marked fraction, starts at 1
    round: Round,
    batch: u64,               // packets in flight when the round began, and one; 0 before the first
    marked: u64,              // packets, since the last update of `alpha`
    cut_until: Option<Bytes>, // no further cut for packets sent with less delivered (CWR)
    actions: LawActions,
}

impl DctcpRate {
    /// A flow on `path`.
    pub fn new(path: &PathInfo, params: Params) -> Self {
        let limits = Limits::new(path, params.line_rate, params.min_rate).with_window(RateWindow {
            windowed: params.windowed,
            at_line_rate: params.window,
            scales: params.window_scales,
        });
        Self {
            limits,
            gain: params.ewma_gain,
            additive: params.additive,
            rate: limits.line(),
            alpha: Frac::ONE,
            round: Round::new(),
            batch: 0,
            marked: 0,
            cut_until: None,
            actions: LawActions::default(),
        }
    }

    fn packets(&self, bytes: Bytes) -> u64 {
        bytes.get() / self.limits.mss().get()
    }

    /// Updates `alpha` at the end of a round: F is the number of marked packets, divided by the number in flight at its
    /// beginning plus one.
    fn average(&mut self, ack: &Ack) {
        if self.batch == 0 {
            self.batch = self.packets(ack.delivered.saturating_add(ack.in_flight)) + 1;
            return;
        }
        // alpha <- (1 - g) * alpha + g * F          (eq. 1)
        let fraction = Frac::ratio(self.marked, self.batch).min(Frac::ONE);
        self.alpha = self.alpha.ewma(fraction, self.gain);
        self.marked = 0;
        self.batch = self.packets(ack.in_flight) + 1;
    }
}

impl ControlLaw for DctcpRate {
    fn on_ack(&mut self, ack: &Ack) {
        self.marked += ack.marked.get().div_ceil(self.limits.mss().get());
        let round_over = self.round.is_over(ack);
        if round_over {
            self.average(ack);
            self.round.restart(ack);
        }
        if self.cut_until.is_some_and(|until| ack.delivered_at_send >= until) {
            self.cut_until = None;
        }
        if self.cut_until.is_some() {
            return;
        }
        let before = self.rate;
        if !ack.marked.is_zero() {
            // R <- R * (1 - alpha / 2)               (eq. 2)
            self.rate = self.limits.clamp(self.rate.scaled(self.alpha.half().complement()));
            self.cut_until = Some(ack.delivered);
            self.actions.cuts += u64::from(self.rate < before);
        } else if round_over {
            self.rate = self.limits.raised(self.rate, self.additive);
            self.actions.increases += u64::from(self.rate > before);
        }
    }

    fn on_loss(&mut self, _: &Loss) {}

    /// Counts packets in the new size from now on.
    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Mss(mss) = *notification {
            let before = self.limits.mss();
            self.limits.follow(mss);
            let [batch, marked] =
                [self.batch, self.marked].map(|count| before.times(count).get().div_ceil(self.limits.mss().get()));
            (self.batch, self.marked) = (batch, marked);
        }
    }

    fn send_limits(&self) -> SendLimits {
        self.limits.send_limits(self.rate)
    }

    fn actions(&self) -> LawActions {
        self.actions
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("alpha_ppm", self.alpha.ppm() as i64);
        emit("rate_bps", self.rate.bps() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{PATH, ack};

    const MSS: u64 = 4_096;

    fn law() -> DctcpRate {
        DctcpRate::new(&PATH, Params::for_path(&PATH))
    }

    /// Returns the acknowledgement of packet number `packet`, sent when `before` packets had been acknowledged, with `behind`
    /// in flight.
    fn acked(packet: u64, before: u64, behind: u64, marked: bool) -> Ack<'static> {
        Ack {
            marked: Bytes::new(if marked { MSS } else { 0 }),
            in_flight: Bytes::new(behind * MSS),
            delivered: Bytes::new((packet + 1) * MSS),
            delivered_at_send: Bytes::new(before * MSS),
            ..ack(&PATH, packet)
        }
    }

    #[test]
    fn starts_at_line_rate_with_a_bdp() {
        assert_eq!(law().send_limits(), SendLimits { window: Bytes::new(175_000), pacing: Rate::from_gbps(100) });
        // 4096 B in 14 us.
        assert_eq!(law().additive.bps(), 2_340_571_428);
    }

    #[test]
    fn packet_counts_follow_the_mss() {
        let mut law = law();
        law.on_ack(&acked(0, 0, 9, false));
        law.on_ack(&acked(1, 0, 9, true));
        assert_eq!((law.batch, law.marked), (11, 1));
        law.on_notification(&Notification::Mss(Bytes::new(1_024)));
        assert_eq!((law.batch, law.marked), (44, 4));
    }

    /// The simulator's first rounds, by hand: ten packets in flight, the 4th to 6th marked.
    #[test]
    fn the_first_rounds() {
        let mut law = law();
        law.on_ack(&acked(0, 0, 9, false));
        // The first round began: 10 packets sent, and one. With its increase the rate would exceed the line rate.
        assert_eq!((law.batch, law.rate), (11, Rate::from_gbps(100)));
        for packet in 1..10 {
            law.on_ack(&acked(packet, 0, 9, (3..6).contains(&packet)));
        }
        // The first mark cut by alpha / 2 = 1/2, the others of that flight by nothing.
        assert_eq!((law.rate, law.actions.cuts, law.marked), (Rate::from_gbps(50), 1, 3));
        // Packet 10 was sent after packet 0 was acknowledged: F = 3/11, alpha = 15/16 + 3/176 = 168/176. The cut was at
        // packet 3. Packets sent before it are still outstanding: no increase yet.
        law.on_ack(&acked(10, 1, 9, false));
        assert_eq!((law.alpha.ppm(), law.batch, law.marked), (954_545, 10, 0));
        assert_eq!(law.rate, Rate::from_gbps(50));
        // Packets 11 and 12 were sent before the cut, packet 13 when 4 were acknowledged: no longer excluded, but no round
        // ends.
        for packet in 11..20 {
            law.on_ack(&acked(packet, packet - 9, 9, false));
        }
        assert_eq!((law.rate, law.cut_until), (Rate::from_gbps(50), None));
        // The round that began at packet 10 ends with packet 20: alpha * 15/16, and one packet a round trip more.
        law.on_ack(&acked(20, 11, 9, false));
        assert_eq!((law.alpha.ppm(), law.rate.bps()), (894_886, 52_340_571_428));
        // A mark now cuts by 894,886 / 2 millionths.
        law.on_ack(&acked(21, 12, 9, true));
        assert_eq!(law.rate.bps() / 1_000_000, 28_921);
    }

    #[test]
    fn rate_is_at_least_the_minimum() {
        let mut law = law();
        for packet in 0..1_000 {
            law.on_ack(&acked(packet, packet, 0, true));
        }
        assert_eq!(law.send_limits(), SendLimits { window: PATH.mss, pacing: Rate::from_mbps(100) });
    }
}
