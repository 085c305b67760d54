//! LSCC's two controllers in border switches: what the far one feeds back, and whom the near one tells.
//! Long et al., "LSCC: Link-Segmented Congestion Control for RDMA in Cross-Datacenter Networks", §III.

use units::{Bytes, Rate, Span, Time};

/// What can be set at the far end (Algorithm 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CalculationParams {
    /// Time between two rates (T).
    pub period: Span,
    /// The ingress queue aimed at (`Q_ref`).
    pub reference: Bytes,
    /// The most that two rates in turn differ by (`delta R`).
    pub step: Rate,
    /// The lowest rate fed back (`R_min`).
    pub lowest: Rate,
    /// The highest rate fed back (`R_max`).
    pub highest: Rate,
    /// Round trip of the long haul (2D): how long a rate takes to act.
    pub lag: Span,
}

impl CalculationParams {
    /// How many rates are on their way and not yet in effect (N = 2D / T, rounded up; at least 1).
    pub const fn entries(&self) -> usize {
        let period = self.period.unsigned_ps();
        let entries = if period == 0 { 1 } else { self.lag.unsigned_ps().div_ceil(period) };
        if entries == 0 { 1 } else { entries as usize }
    }
}

/// What can be set at the near end (Algorithm 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LimitingParams {
    /// The pseudo queue over which sources are told (`Q*_ref`).
    pub reference: Bytes,
    /// The least time between two notifications of one flow.
    pub interval: Span,
    /// Flows that have sent less than this are told whether marked or not (the threshold of Algorithm 2).
    pub long_flow: Bytes,
    /// Time after which the flow table forgets marks.
    pub reset: Span,
    /// Size of a notification on the wire, in bytes.
    pub size: u32,
    /// Whether sources get the reports of ports instead of notifications (HPCC*).
    pub telemetry: bool,
}

/// The far end: computes what the long haul may bring (Algorithm 1).
///
/// The dynamic feedback list lives in `List`, memory of the caller's: [`CalculationParams::entries`] numbers of bits a
/// second, a `Vec<i64>` or an array. Its length is N.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateCalculation<List> {
    params: CalculationParams,
    list: List,    // adjustments Ra that are on their way, a ring
    oldest: usize, // the place of the one that takes effect now
    sent: i64,     // their sum
    last: i64,     // R_last
}

impl<List: AsRef<[i64]> + AsMut<[i64]>> RateCalculation<List> {
    /// A controller that has fed back nothing yet: the far end is taken to run at `R_max`. What `list` holds is
    /// cleared; where it is empty, nothing counts as on its way.
    pub fn new(params: CalculationParams, mut list: List) -> Self {
        list.as_mut().fill(0);
        Self { params, list, oldest: 0, sent: 0, last: signed(params.highest) }
    }

    /// The rate to feed back, after a period in which `drained` left by all egress ports, where `queue` waits.
    ///
    /// Numbers are whole bits a second. A rate is under 2^62, and a list of 4096 such adjustments saturates only
    /// where they exceed 2^51 b/s each.
    pub fn update(&mut self, queue: Bytes, drained: Bytes) -> Rate {
        let period = self.params.period;
        let bottleneck = signed(Rate::of(drained, period)); // BR, its average over T
        // Ra <- (Q_cur - Q_ref) / T - sum of Ra_list           (lines 1 and 2)
        let excess = queue.saturating_sub(self.params.reference);
        let lack = self.params.reference.saturating_sub(queue);
        let wanted = signed(Rate::of(excess, period)) - signed(Rate::of(lack, period));
        // R <- BR - Ra                                         (line 3)
        let rate = bottleneck.saturating_sub(wanted.saturating_sub(self.sent));
        // |R - R_last| <= delta R, then R_min <= R <= R_max    (lines 4 to 11)
        let step = signed(self.params.step);
        let rate = rate.min(self.last.saturating_add(step)).max(self.last.saturating_sub(step));
        let rate = rate.max(signed(self.params.lowest)).min(signed(self.params.highest));
        self.last = rate;
        // Ra <- BR - R joins the list, whose oldest leaves     (lines 13 to 16)
        self.push(bottleneck - rate);
        Rate::from_bps(rate.max(0) as u64)
    }

    fn push(&mut self, adjustment: i64) {
        let list = self.list.as_mut();
        if let Some(place) = list.get_mut(self.oldest) {
            self.sent = self.sent.saturating_sub(*place).saturating_add(adjustment);
            *place = adjustment;
            self.oldest = if self.oldest + 1 < list.len() { self.oldest + 1 } else { 0 };
        }
    }

    /// The rate fed back last; `R_max` before the first.
    pub fn last(&self) -> Rate {
        Rate::from_bps(self.last.max(0) as u64)
    }
}

/// A rate as a number that differences can be made of: at most 2^62 - 1.
const fn signed(rate: Rate) -> i64 {
    let most = (1 << 62) - 1;
    if rate.bps() > most { most as i64 } else { rate.bps() as i64 }
}

/// The near end's pseudo queue: what comes in joins it, and it drains at the rate that was fed back (eq. 10).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateLimiting {
    reference: Bytes,
    rate: Rate,
    backlog: Bytes, // at `at`
    at: Time,
}

impl RateLimiting {
    /// An empty pseudo queue that drains at `rate`; [`Rate::MAX`] until the first feedback comes.
    pub fn new(params: &LimitingParams, rate: Rate, now: Time) -> Self {
        Self { reference: params.reference, rate, backlog: Bytes::ZERO, at: now }
    }

    /// A packet for the long haul arrives.
    pub fn arrive(&mut self, now: Time, bytes: Bytes) {
        self.settle(now);
        self.backlog = self.backlog.saturating_add(bytes);
    }

    /// A rate is fed back.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.settle(now);
        self.at = self.at.max(now);
        self.rate = rate;
    }

    /// The rate fed back last (R).
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The pseudo queue at `now`.
    pub fn occupancy(&self, now: Time) -> Bytes {
        self.backlog.saturating_sub(self.drained(now))
    }

    /// Whether sources are to be told (Algorithm 2, line 2: not while Q* is under its reference).
    pub fn over(&self, now: Time) -> bool {
        self.occupancy(now) >= self.reference
    }

    /// What could have drained since `at`, in whole bytes.
    fn drained(&self, now: Time) -> Bytes {
        if now <= self.at { Bytes::ZERO } else { self.rate.bytes_in(now.since(self.at)) }
    }

    /// Drains in whole bytes, and keeps the time that the part of a byte took.
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
            self.at = self.at.saturating_add(self.rate.time_for(drained)).min(now);
        }
    }
}

/// What the near end's flow table knows of a flow (Table I).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlowEntry {
    sent: Bytes,             // TxBytes
    marked_at: Option<Time>, // CNP
    told_at: Option<Time>,
}

impl FlowEntry {
    /// A flow not yet seen.
    pub const fn new() -> Self {
        Self { sent: Bytes::ZERO, marked_at: None, told_at: None }
    }

    /// A data packet of the flow passes (lines 14 to 17), marked by a switch of this datacenter or not. The caller
    /// takes the mark off (line 18).
    pub fn on_data(&mut self, now: Time, bytes: Bytes, marked: bool) {
        self.sent = self.sent.saturating_add(bytes);
        if marked {
            self.marked_at = Some(now);
        }
    }

    /// A notification for the flow passes on its way back from the other datacenter (lines 12 and 13).
    pub fn on_cnp(&mut self, now: Time) {
        self.marked_at = Some(now);
    }

    /// What the flow has sent (`TxBytes`).
    pub const fn sent(&self) -> Bytes {
        self.sent
    }

    /// Whether the flow is marked or still short, so that it is told (line 5). A mark holds for the table's `reset`.
    pub fn is_chosen(&self, now: Time, params: &LimitingParams) -> bool {
        let marked = self.marked_at.is_some_and(|at| now < at.saturating_add(params.reset));
        marked || self.sent < params.long_flow
    }

    /// Whether to tell the flow's source now that the pseudo queue is over its reference: the flow is chosen, and was
    /// not told within the interval. The entry takes it as done.
    pub fn should_notify(&mut self, now: Time, params: &LimitingParams) -> bool {
        let rested = self.told_at.is_none_or(|at| now >= at.saturating_add(params.interval));
        let tells = rested && self.is_chosen(now, params);
        if tells {
            self.told_at = Some(now);
        }
        tells
    }
}
