//! Two controllers of LSCC in border switches: the far one feeds rates back, and the near one notifies sources. Long et al.,
//! "LSCC: Link-Segmented Congestion Control for RDMA in Cross-Datacenter Networks", §III.

use units::{Bytes, Rate, Span, Time};

/// Parameters of the far end (Algorithm 1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CalculationParams {
    /// Time between two rates (T).
    pub period: Span,
    /// The ingress queue aimed at (`Q_ref`).
    pub reference: Bytes,
    /// Maximum difference between consecutive rates (`delta R`).
    pub step: Rate,
    /// The lowest rate fed back (`R_min`).
    pub lowest: Rate,
    /// The highest rate fed back (`R_max`).
    pub highest: Rate,
    /// Round trip of the long haul (2D): the time until a rate takes effect.
    pub lag: Span,
}

impl CalculationParams {
    /// Returns the number of rates sent that are not yet in effect (N = 2D / T, rounded up; at least 1).
    pub const fn entries(&self) -> usize {
        let period = self.period.unsigned_ps();
        let entries = if period == 0 { 1 } else { self.lag.unsigned_ps().div_ceil(period) };
        if entries == 0 { 1 } else { entries as usize }
    }
}

/// Parameters of the near end (Algorithm 2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LimitingParams {
    /// Length of the pseudo queue from which on sources are notified (`Q*_ref`).
    pub reference: Bytes,
    /// Minimum time between two notifications of one flow: sources are notified this often, all chosen flows at once.
    pub interval: Span,
    /// Flows that have sent less than this are notified whether marked or not (the threshold of Algorithm 2).
    pub long_flow: Bytes,
    /// Time after which the flow table forgets marks.
    pub reset: Span,
    /// Size of a notification on the wire, in bytes.
    pub size: u32,
    /// True if sources receive the reports of ports instead of notifications (HPCC*).
    pub telemetry: bool,
}

/// The far end: computes the rate that the long haul may deliver (Algorithm 1).
///
/// The dynamic feedback list is in `List`, memory supplied by the caller: [`CalculationParams::entries`] numbers in bits per
/// second, as a `Vec<i64>` or an array. Its length is N.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateCalculation<List> {
    params: CalculationParams,
    list: List,    // adjustments Ra that are not in effect yet, a ring
    oldest: usize, // position of the one that takes effect now
    sent: i64,     // their sum
    last: i64,     // R_last
}

impl<List: AsRef<[i64]> + AsMut<[i64]>> RateCalculation<List> {
    /// Creates a controller before its first feedback: the far end is assumed to run at `R_max`. Clears `list`; with an empty
    /// list no adjustment counts as pending.
    pub fn new(params: CalculationParams, mut list: List) -> Self {
        list.as_mut().fill(0);
        Self { params, list, oldest: 0, sent: 0, last: signed(params.highest) }
    }

    /// Returns the rate to feed back after a period in which all egress ports sent `drained` bytes, with `queue` bytes
    /// waiting.
    ///
    /// Numbers are whole bits per second. A rate is below 2^62, and a list of 4096 adjustments saturates only if they exceed
    /// 2^51 b/s each.
    pub fn update(&mut self, queue: Bytes, drained: Bytes) -> Rate {
        let period = self.params.period;
        let bottleneck = signed(Rate::of(drained, period)); // BR, its average over T
        // Ra <- (Q_cur - Q_ref) / T - sum of Ra_list           (lines 1 and 2)
        let excess = queue.saturating_sub(self.params.reference);
        let deficit = self.params.reference.saturating_sub(queue);
        let wanted = signed(Rate::of(excess, period)) - signed(Rate::of(deficit, period));
        // R <- BR - Ra                                         (line 3)
        let rate = bottleneck.saturating_sub(wanted.saturating_sub(self.sent));
        // |R - R_last| <= delta R, then R_min <= R <= R_max    (lines 4 to 11)
        let step = signed(self.params.step);
        let rate = rate.min(self.last.saturating_add(step)).max(self.last.saturating_sub(step));
        let rate = rate.max(signed(self.params.lowest)).min(signed(self.params.highest));
        self.last = rate;
        // Ra <- BR - R enters the list, the oldest leaves      (lines 13 to 16)
        self.push(bottleneck - rate);
        Rate::from_bps(rate.max(0) as u64)
    }

    fn push(&mut self, adjustment: i64) {
        let list = self.list.as_mut();
        if let Some(entry) = list.get_mut(self.oldest) {
            self.sent = self.sent.saturating_sub(*entry).saturating_add(adjustment);
            *entry = adjustment;
            self.oldest = if self.oldest + 1 < list.len() { self.oldest + 1 } else { 0 };
        }
    }

    /// The rate fed back last; `R_max` before the first.
    pub fn last(&self) -> Rate {
        Rate::from_bps(self.last.max(0) as u64)
    }
}

/// Converts a rate to a signed number: at most 2^62 - 1.
const fn signed(rate: Rate) -> i64 {
    let max = (1 << 62) - 1;
    if rate.bps() > max { max as i64 } else { rate.bps() as i64 }
}

/// The near end's pseudo queue: arriving bytes enter it, and it drains at the rate that was fed back (eq. 10).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateLimiting {
    reference: Bytes,
    rate: Rate,
    backlog: Bytes, // at `at`
    at: Time,
}

impl RateLimiting {
    /// An empty pseudo queue that drains at `rate`; [`Rate::MAX`] until the first feedback arrives.
    pub fn new(params: &LimitingParams, rate: Rate, now: Time) -> Self {
        Self { reference: params.reference, rate, backlog: Bytes::ZERO, at: now }
    }

    /// Counts a packet for the long haul.
    pub fn arrive(&mut self, now: Time, bytes: Bytes) {
        self.settle(now);
        self.backlog = self.backlog.saturating_add(bytes);
    }

    /// Sets the drain rate to one that was fed back.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.settle(now);
        self.at = self.at.max(now);
        self.rate = rate;
    }

    /// The rate fed back last (R).
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the length of the pseudo queue at `now`.
    pub fn occupancy(&self, now: Time) -> Bytes {
        self.backlog.saturating_sub(self.drained(now))
    }

    /// Returns whether to notify sources (Algorithm 2, line 2: not while Q* is below its reference).
    pub fn exceeds_reference(&self, now: Time) -> bool {
        self.occupancy(now) >= self.reference
    }

    /// Returns the bytes that could have drained since `at`, in whole bytes.
    fn drained(&self, now: Time) -> Bytes {
        if now <= self.at { Bytes::ZERO } else { self.rate.bytes_in(now.since(self.at)) }
    }

    /// Drains whole bytes, and keeps the time of the remaining part of a byte.
    fn settle(&mut self, now: Time) {
        if now <= self.at {
            return;
        }
        let drained = self.drained(now);
        if drained >= self.backlog {
            self.backlog = Bytes::ZERO;
            self.at = now;
        } else {
            self.backlog = self.backlog.saturating_sub(drained);
            self.at = self.at.saturating_add(self.rate.tx_time(drained)).min(now);
        }
    }
}

/// Entry of the near end's flow table (Table I).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlowEntry {
    sent: Bytes,             // TxBytes
    marked_at: Option<Time>, // CNP
}

impl FlowEntry {
    /// A flow not yet seen.
    pub const fn new() -> Self {
        Self { sent: Bytes::ZERO, marked_at: None }
    }

    /// Records a data packet of the flow (lines 14 to 17). A marked one is also reported to [`FlowEntry::on_mark`].
    pub fn on_data(&mut self, bytes: Bytes) {
        self.sent = self.sent.saturating_add(bytes);
    }

    /// Records a mark on a data packet of the flow, by a switch of this datacenter. The caller removes the mark (line 18).
    pub fn on_mark(&mut self, now: Time) {
        self.marked_at = Some(now);
    }

    /// Records a notification for the flow on its way back from the other datacenter (lines 12 and 13).
    pub fn on_cnp(&mut self, now: Time) {
        self.marked_at = Some(now);
    }

    /// Returns the bytes sent by the flow (`TxBytes`).
    pub const fn sent(&self) -> Bytes {
        self.sent
    }

    /// Returns whether the flow is marked or still short, so that it is notified (line 5). A mark holds for the table's
    /// `reset`.
    pub fn is_chosen(&self, now: Time, params: &LimitingParams) -> bool {
        let marked = self.marked_at.is_some_and(|at| now < at.saturating_add(params.reset));
        marked || self.sent < params.long_flow
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    const T: Span = Span::from_us(200);

    /// §IV-B: 200 Gb/s, 1 ms, T = 200 us, `delta R` = 1 Gb/s, `Q_ref` = 2 MB.
    const PARAMS: CalculationParams = CalculationParams {
        period: T,
        reference: Bytes::new(2_000_000),
        step: Rate::from_gbps(1),
        lowest: Rate::from_gbps(1),
        highest: Rate::from_gbps(200),
        lag: Span::from_ms(2),
    };

    const FREE: CalculationParams =
        CalculationParams { step: Rate::MAX, lowest: Rate::ZERO, highest: Rate::MAX, ..PARAMS };

    fn far(params: CalculationParams) -> RateCalculation<Vec<i64>> {
        RateCalculation::new(params, vec![7; params.entries()])
    }

    /// Checks eq. 9: with rates that take effect on arrival, and without limits, the queue is `Q_ref` plus the difference
    /// between the bytes that the bottleneck passed in the last N + 1 periods and in the N + 1 before, 2D earlier; to the
    /// byte.
    fn follows_eq_9(params: CalculationParams, drained: &[u64], slack: u64) -> Result<(), TestCaseError> {
        let n = params.entries();
        let mut controller = far(params);
        let mut rates = Vec::<Rate>::new();
        let mut queue = params.reference.get() as i64;
        for (k, &out) in drained.iter().enumerate() {
            // The rate computed one period and 2D ago determines the arrivals of this period. Before that, arrivals equal
            // departures.
            let arrived = if k > n { rates[k - 1 - n].bytes_in(params.period).get() } else { out };
            queue += arrived as i64 - out as i64;
            prop_assert!(queue > 0, "the test is for queues that never empty");
            rates.push(controller.update(Bytes::new(queue as u64), Bytes::new(out)));
            if k > 2 * n + 1 {
                let before: u64 = (1..=n + 1).map(|j| drained[k - n - j]).sum();
                let lately: u64 = (0..=n).map(|j| drained[k - j]).sum();
                let expected = params.reference.get() as i64 + before as i64 - lately as i64;
                prop_assert!(queue.abs_diff(expected) <= slack, "{queue} instead of {expected} in period {k}");
            }
        }
        Ok(())
    }

    #[test]
    fn a_bottleneck_step_moves_the_queue_by_eq_9() {
        // 40 Gb/s for 30 periods, then 30 Gb/s: 250,000 B less a period, for 2D + T = 11 periods of excess.
        let drained: Vec<u64> = (0..100).map(|k| if k < 30 { 1_000_000 } else { 750_000 }).collect();
        follows_eq_9(FREE, &drained, 0).unwrap();
        let mut controller = far(FREE);
        let rates: Vec<u64> = drained
            .iter()
            .map(|&out| controller.update(FREE.reference, Bytes::new(out)).bps() / 1_000_000_000)
            .collect();
        // If the queue is at its reference and no adjustment is pending, the rate is the bottleneck's.
        assert_eq!((rates[0], rates[29]), (40, 40));
    }

    /// Algorithm 1 by hand, N = 2.
    #[test]
    fn the_list_holds_pending_adjustments() {
        let mut controller = far(CalculationParams { lag: Span::from_us(400), ..FREE });
        let gbps = |rate: Rate| rate.bps() as f64 / 1e9;
        // 250 kB over the reference are 10 Gb/s for a period; the bottleneck passed 40 Gb/s.
        assert!((gbps(controller.update(Bytes::new(2_250_000), Bytes::new(1_000_000))) - 30.0).abs() < 1e-9);
        assert_eq!(controller.list, [10_000_000_000, 0]);
        // The same queue again: the reduction by 10 Gb/s is pending already.
        assert!((gbps(controller.update(Bytes::new(2_250_000), Bytes::new(1_000_000))) - 40.0).abs() < 1e-9);
        // 250 kB below the reference: a reduction of 10 is pending, so 20 more than the bottleneck.
        assert!((gbps(controller.update(Bytes::new(1_750_000), Bytes::new(1_000_000))) - 60.0).abs() < 1e-9);
        assert_eq!((controller.list.as_slice(), controller.sent), (&[-20_000_000_000, 0][..], -20_000_000_000));
    }

    #[test]
    fn the_list_holds_limited_rates() {
        let mut controller = far(PARAMS);
        assert_eq!(controller.last(), Rate::from_gbps(200));
        // The bottleneck sends nothing: 1 Gb/s less each period, from R_max on.
        for n in 1..=5 {
            assert_eq!(controller.update(Bytes::new(90_000_000), Bytes::ZERO), Rate::from_gbps(200 - n));
        }
        assert_eq!(controller.list[..5], [199, 198, 197, 196, 195].map(|gbps: i64| -gbps * 1_000_000_000));
        for _ in 0..1_000 {
            controller.update(Bytes::new(9_000_000_000), Bytes::ZERO);
        }
        assert_eq!(controller.last(), Rate::from_gbps(1));
        for _ in 0..1_000 {
            controller.update(Bytes::ZERO, Bytes::new(5_000_000));
        }
        assert_eq!(controller.last(), Rate::from_gbps(200));
    }

    #[test]
    fn entries_round_up() {
        let entries = |lag_us, period_us| {
            CalculationParams { lag: Span::from_us(lag_us), period: Span::from_us(period_us), ..PARAMS }.entries()
        };
        assert_eq!([entries(2_000, 200), entries(2_001, 200), entries(100, 200), entries(0, 200)], [10, 11, 1, 1]);
        assert_eq!((entries(200_000, 50), entries(1, 0)), (4_000, 1));
    }

    #[test]
    fn an_empty_list_does_not_panic() {
        let mut controller = RateCalculation::new(PARAMS, [0i64; 0]);
        assert_eq!(controller.update(Bytes::ZERO, Bytes::ZERO), Rate::from_gbps(199));
    }

    const NEAR: LimitingParams = LimitingParams {
        reference: Bytes::new(2_000_000),
        interval: Span::from_us(50),
        long_flow: Bytes::new(1_000_000),
        reset: Span::from_us(200),
        size: 64,
        telemetry: false,
    };

    #[test]
    fn the_pseudo_queue_fills_by_the_excess_over_the_rate() {
        let mut pseudo = RateLimiting::new(&NEAR, Rate::MAX, Time::ZERO);
        pseudo.arrive(Time::from_us(1), Bytes::new(1_000));
        // No rate was fed back yet: the queue passes everything.
        assert_eq!(pseudo.occupancy(Time::from_us(2)), Bytes::ZERO);
        pseudo.set_rate(Time::from_us(2), Rate::from_gbps(50));
        // 100 Gb/s arrive, half of that stays.
        for packet in 0..4_000 {
            pseudo.arrive(Time::from_us(2) + Span::from_ns(80 * packet), Bytes::new(1_000));
        }
        let last = Time::from_us(2) + Span::from_ns(80 * 3_999);
        assert_eq!(pseudo.occupancy(last), Bytes::new(4_000_000 - 3_999 * 500));
        assert!(pseudo.exceeds_reference(last));
        assert_eq!(pseudo.occupancy(last + Span::from_ns(80)), Bytes::new(2_000_000));
        assert!(
            pseudo.exceeds_reference(last + Span::from_ns(80)) && !pseudo.exceeds_reference(last + Span::from_ns(81))
        );
        // The length is never negative.
        assert_eq!(pseudo.occupancy(Time::from_ms(9)), Bytes::ZERO);
        pseudo.arrive(Time::from_ms(10), Bytes::new(3_000_000));
        pseudo.set_rate(Time::from_ms(10), Rate::ZERO);
        assert_eq!(pseudo.occupancy(Time::from_ms(99)), Bytes::new(3_000_000));
    }

    #[test]
    fn fractions_of_bytes_are_not_lost() {
        // 7 B every 11 ns, and 8 * 7 / 11 Gb/s: arrivals equal departures.
        let mut pseudo = RateLimiting::new(&NEAR, Rate::from_bps(8 * 7_000_000_000 / 11), Time::ZERO);
        for packet in 0..1_000_000 {
            pseudo.arrive(Time::from_ns(11 * packet), Bytes::new(7));
            assert!(pseudo.occupancy(Time::from_ns(11 * packet)) <= Bytes::new(8 + packet / 10_000));
        }
    }

    #[test]
    fn short_and_marked_flows_are_notified() {
        let (us, data) = (Time::from_us, Bytes::new(400_000));
        let mut flow = FlowEntry::new();
        // Short: notified whether marked or not.
        flow.on_data(data);
        flow.on_data(data);
        assert!(flow.is_chosen(us(1), &NEAR) && flow.is_chosen(us(900), &NEAR));
        // Long and not marked: not notified.
        flow.on_data(data);
        assert_eq!(flow.sent(), Bytes::new(1_200_000));
        assert!(!flow.is_chosen(us(200), &NEAR));
        // Marked by a switch of this datacenter, or notified from the other: notified until the table's entry expires.
        flow.on_data(data);
        flow.on_mark(us(300));
        assert!(flow.is_chosen(us(300), &NEAR) && flow.is_chosen(us(499), &NEAR));
        assert!(!flow.is_chosen(us(500), &NEAR));
        flow.on_cnp(us(600));
        assert!(flow.is_chosen(us(799), &NEAR) && !flow.is_chosen(us(800), &NEAR));
    }

    proptest! {
        /// 30 to 50 Gb/s, at random.
        #[test]
        fn the_queue_follows_eq_9_to_the_byte(drained in proptest::collection::vec(750_000..1_250_000u64, 30..200)) {
            follows_eq_9(CalculationParams { reference: Bytes::new(20_000_000), ..FREE }, &drained, 0)?;
        }

        /// Checks the same if a byte per period is not a whole number of bits per second: one byte of rounding per pending
        /// period.
        #[test]
        fn the_queue_follows_eq_9_with_odd_periods(
            drained in proptest::collection::vec(750_000..1_250_000u64, 60..200), ns in 190_000..210_000i64,
        ) {
            let params = CalculationParams { period: Span::from_ns(ns), reference: Bytes::new(20_000_000), ..FREE };
            follows_eq_9(params, &drained, 2 * params.entries() as u64)?;
        }

        #[test]
        fn rates_stay_within_limits(
            steps in proptest::collection::vec((any::<u64>(), any::<u64>(), 0..64u32), 1..100), free: bool,
        ) {
            let params = if free { FREE } else { PARAMS };
            let mut controller = far(params);
            for (queue, drained, shift) in steps {
                let last = controller.last();
                let rate = controller.update(Bytes::new(queue >> shift), Bytes::new(drained >> shift));
                prop_assert!(rate >= params.lowest && rate <= params.highest);
                prop_assert!(rate.bps().abs_diff(last.bps()) <= params.step.bps());
            }
        }

        /// 400 Gb/s and 100 ms: no product is too large.
        #[test]
        fn the_longest_haul_is_exact(drained in proptest::collection::vec(5_000_000..10_000_000u64, 1_100..1_200)) {
            let params = CalculationParams {
                lag: Span::from_ms(100), reference: Bytes::new(10_000_000_000), ..FREE
            };
            follows_eq_9(params, &drained, 0)?;
        }

        #[test]
        fn the_pseudo_queue_matches_exact_arithmetic(
            steps in proptest::collection::vec((0..1_000_000u64, 0..10_000u64, any::<bool>()), 1..300),
        ) {
            let mut pseudo = RateLimiting::new(&NEAR, Rate::from_gbps(10), Time::ZERO);
            // Bits times picoseconds in a second.
            let (mut exact, mut rate, mut now) = (0u128, 10_000_000_000u64, 0u64);
            for (gap, bytes, changes) in steps {
                now += gap;
                exact = exact.saturating_sub(u128::from(gap) * u128::from(rate));
                let time = Time::from_ps(now);
                if changes {
                    rate = bytes * 10_000_000;
                    pseudo.set_rate(time, Rate::from_bps(rate));
                } else {
                    exact += u128::from(bytes) * 8_000_000_000_000;
                    pseudo.arrive(time, Bytes::new(bytes));
                }
                // Each change of the rate rounds by a byte at most, each arrival by a picosecond's worth.
                let bytes = (exact / 8_000_000_000_000) as u64;
                prop_assert!(pseudo.occupancy(time).get().abs_diff(bytes) <= 310);
            }
        }
    }
}
