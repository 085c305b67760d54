//! DCQCN's reaction point: cut the rate when a notification of marks comes, then recover by timer and byte counter.
//! Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM 2015), §3.1 and §3.3.
//!
//! The defaults are the paper's: each notification cuts at once. With `decrease_interval` set, notifications only
//! raise flags that timers read, as network cards and HPCC's simulator do. A switch's direct notification (LSCC) is
//! a notification like any other. Losses change nothing: the network is taken to be lossless.
//!
//! Timers that could change nothing do not run: `alpha` decays when it is needed, cuts are timed only while one is
//! asked for, and the increase timer rests at line rate.

use units::{Bytes, Frac, Rate, Span, Time};

use crate::limits::Limits;
use crate::params::{parameters, range};
use crate::{Ack, Acted, ControlLaw, Cookie, Loss, Notification, Path, Permit, Sent};

parameters! { path;
    /// Rate at which a flow starts and over which it never is.
    line_rate: Rate = path.line_rate, "narrowest link of the path", range::SLOW, range::FAST;
    /// The lowest rate.
    min_rate: Rate = Rate::from_mbps(10), "10 Mb/s", range::SLOW, range::FAST;
    /// Weight of the newest sign of congestion in the average (g).
    alpha_gain: Fraction = Frac::ratio(1, 256), "1/256", Frac::ZERO, Frac::ONE;
    /// Time without notification after which the average decays (K).
    alpha_timer: Span = Span::from_us(55), "55 us", range::SHORT, range::LONG;
    /// Time between two looks at whether to cut; 0 to cut with each notification.
    decrease_interval: Span = Span::ZERO, "0", Span::ZERO, range::LONG;
    /// Time between two increases (T).
    increase_timer: Span = Span::from_us(55), "55 us", range::SHORT, range::LONG;
    /// Payload sent between two increases (B); 0 for none.
    byte_counter: Bytes = Bytes::new(10_000_000), "10 MB", Bytes::ZERO, range::WINDOW;
    /// Increases after a cut that only go back towards the rate before it (F).
    fast_recovery_stages: Count = 5, "5", 0, 1_000_000;
    /// Additive increase of the target (R_AI).
    additive: Rate = Rate::from_mbps(40), "40 Mb/s", range::STILL, range::FAST;
    /// Hyper increase of the target (R_HAI).
    hyper: Rate = Rate::from_mbps(400), "400 Mb/s, ten times R_AI", range::STILL, range::FAST;
    /// Whether a cut makes the rate before it the target even if there was no increase since the last one.
    clamp_target: Switch = true, "on", false, true;
    /// Share of the rate that is left when the first notification comes, before any cut.
    rate_on_first_cnp: Fraction = Frac::ONE, "1", Frac::ZERO, Frac::ONE;
    /// Whether marked acknowledgements are notifications too.
    cnp_from_acks: Switch = false, "off", false, true;
    /// Whether a window limits what is in flight.
    windowed: Switch = false, "off", false, true;
    /// That window, at line rate.
    window: Bytes = path.bdp(), "1 own BDP", range::BYTE, range::WINDOW;
    /// Whether the window shrinks with the rate.
    window_scales: Switch = true, "on", false, true;
}

/// The law.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Dcqcn {
    params: Params,
    limits: Limits,
    rate: Rate,   // R_C
    target: Rate, // R_T
    alpha: Frac,
    alpha_due: Time, // when alpha moves next; not set before the first notification
    cut_due: Time,   // when the next look at `cut_asked` is
    grow_due: Time,  // when the increase timer fires; not set while it could change nothing
    notified: bool,  // since alpha last moved
    cut_asked: bool,
    timer_stage: u32, // increases by timer since the last cut (T)
    byte_stage: u32,  // by byte counter (BC)
    sent: u64,        // payload since the byte counter's last increase
    acted: Acted,
}

/// HPCC's simulator lets the first look at the flag be later by this, so that `alpha` moves before the cut.
const AFTER_ALPHA: Span = Span::from_ns(1);

impl Dcqcn {
    /// A flow on `path`.
    pub fn new(path: &Path, params: Params) -> Self {
        let limits = Limits::new(path, params.line_rate, params.min_rate).with_window(
            params.windowed,
            params.window,
            params.window_scales,
        );
        Self {
            params,
            limits,
            rate: limits.line(),
            target: limits.line(),
            alpha: Frac::ONE,
            alpha_due: Time::NEVER,
            cut_due: Time::NEVER,
            grow_due: Time::NEVER,
            notified: false,
            cut_asked: false,
            timer_stage: 0,
            byte_stage: 0,
            sent: 0,
            acted: Acted::default(),
        }
    }

    fn on_cnp(&mut self, now: Time) {
        let first = !self.alpha_due.is_set();
        if first {
            self.rate = self.limits.clamp(self.rate.scaled(self.params.rate_on_first_cnp));
            self.target = self.rate;
        } else {
            self.age(now);
        }
        if self.params.decrease_interval.is_zero() {
            self.cut(now);
            // alpha <- (1 - g) * alpha + g                          (eq. 1)
            self.alpha = self.alpha.ewma(Frac::ONE, self.params.alpha_gain);
            self.alpha_due = now.saturating_add(self.params.alpha_timer);
            return;
        }
        if first {
            self.alpha_due = now.saturating_add(self.params.alpha_timer);
            self.cut_due = now.saturating_add(self.params.decrease_interval).saturating_add(AFTER_ALPHA);
        } else {
            self.notified = true;
            self.cut_due = next_tick(self.cut_due, self.params.decrease_interval, now);
        }
        self.cut_asked = true;
    }

    /// Lets `alpha` take the steps that were due by `now`.
    fn age(&mut self, now: Time) {
        while self.alpha_due <= now {
            // alpha <- (1 - g) * alpha, where no notification came for K    (eq. 2)
            let sample = if self.notified { Frac::ONE } else { Frac::ZERO };
            let next = self.alpha.ewma(sample, self.params.alpha_gain);
            if !self.notified && next == self.alpha {
                break; // at rest, and so after every later step
            }
            self.alpha = next;
            self.notified = false;
            self.alpha_due = self.alpha_due.saturating_add(self.params.alpha_timer);
        }
        self.alpha_due = next_tick(self.alpha_due, self.params.alpha_timer, now);
    }

    fn cut(&mut self, now: Time) {
        let before = self.rate;
        // R_T <- R_C; R_C <- R_C * (1 - alpha / 2)                  (eq. 1)
        if self.params.clamp_target || self.timer_stage != 0 || self.byte_stage != 0 {
            self.target = before;
        }
        self.rate = self.limits.clamp(before.scaled(self.alpha.half().complement()));
        self.timer_stage = 0;
        self.byte_stage = 0;
        self.sent = 0;
        self.grow_due = now.saturating_add(self.params.increase_timer);
        self.acted.cuts += u64::from(self.rate < before);
    }

    /// Figure 7: fast recovery, additive increase or hyper increase. Says whether another one could change anything.
    fn grow(&mut self) -> bool {
        let (most, least) = if self.params.byte_counter.is_zero() {
            (self.timer_stage, self.timer_stage)
        } else {
            (self.timer_stage.max(self.byte_stage), self.timer_stage.min(self.byte_stage))
        };
        let (rate, target, recovery) = (self.rate, self.target, self.params.fast_recovery_stages);
        if u64::from(most) >= recovery {
            // R_T <- R_T + R_AI                                     (eq. 4)
            let step = if u64::from(least) > recovery { self.params.hyper } else { self.params.additive };
            self.target = self.limits.raised(target, step);
        }
        // R_C <- (R_T + R_C) / 2, each half in whole bits a second  (eq. 3)
        self.rate = self.limits.clamp(Rate::from_bps(rate.bps() / 2 + self.target.bps() / 2));
        self.acted.increases += u64::from(self.rate > rate);
        (self.rate, self.target) != (rate, target) || target != self.limits.line()
    }
}

/// The first of `due`, `due + period`, ... after `now`; `due` itself if that is later than now.
fn next_tick(due: Time, period: Span, now: Time) -> Time {
    if due > now {
        return due;
    }
    let period = period.unsigned_ps().max(1);
    let late = now.since(due).unsigned_ps();
    Time::from_ps(now.ps().saturating_add(period - late % period))
}

impl ControlLaw for Dcqcn {
    fn on_sent(&mut self, sent: &Sent) -> Cookie {
        self.sent = self.sent.saturating_add(sent.bytes.get());
        Cookie::NONE
    }

    fn on_ack(&mut self, ack: &Ack) {
        let counter = self.params.byte_counter.get();
        if counter > 0 && self.sent >= counter {
            self.sent %= counter;
            if self.alpha_due.is_set() {
                self.grow();
                self.byte_stage = self.byte_stage.saturating_add(1);
            }
        }
        if self.params.cnp_from_acks && !ack.marked.is_zero() {
            self.on_cnp(ack.now);
        }
    }

    fn on_loss(&mut self, _: &Loss) {}

    fn on_notification(&mut self, notification: &Notification) {
        if let Notification::Cnp { now } | Notification::DirectCnp { now } = notification {
            self.on_cnp(*now);
        }
    }

    /// Increases before a cut of the same moment: that timer was set earlier.
    fn on_timer(&mut self, now: Time) {
        while self.next_timer() <= now {
            if self.cut_asked && self.cut_due < self.grow_due {
                let at = self.cut_due;
                self.age(at);
                self.cut(at);
                self.cut_asked = false;
                self.cut_due = at.saturating_add(self.params.decrease_interval);
            } else {
                let at = self.grow_due;
                self.grow_due = if self.grow() { at.saturating_add(self.params.increase_timer) } else { Time::NEVER };
                self.timer_stage = self.timer_stage.saturating_add(1);
            }
        }
    }

    fn next_timer(&self) -> Time {
        if self.cut_asked { self.grow_due.min(self.cut_due) } else { self.grow_due }
    }

    fn permit(&self) -> Permit {
        self.limits.permit(self.rate)
    }

    fn acted(&self) -> Acted {
        self.acted
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("alpha_ppm", self.alpha.ppm() as i64);
        emit("rate_bps", self.rate.bps() as i64);
        emit("target_bps", self.target.bps() as i64);
    }
}
