//! Sampled series. Sampling costs nothing where it is off.

use fabric::{LinkId, NodeId};
use units::{Bytes, Rate, Span, Time};

use crate::setup::FlowId;

/// What to sample, and how often.
#[derive(Clone, Default, Debug)]
pub struct SeriesConfig {
    /// Time between samples; zero samples nothing.
    pub interval: Span,
    /// Ports whose queues are sampled.
    pub ports: Vec<LinkId>,
    /// Flows whose rate and window are sampled.
    pub flows: Vec<FlowId>,
    /// Switches whose shared buffer is sampled.
    pub switches: Vec<NodeId>,
    /// Flows whose packets' delays are compared with what was known when they left: see [`crate::Predictions`]. Has no
    /// interval. Takes no effect where packets carry reports of ports.
    pub predictors: Vec<FlowId>,
}

/// A switch's shared buffer at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchSample {
    /// When.
    pub time: Time,
    /// Which switch.
    pub node: NodeId,
    /// Bytes that wait in it.
    pub buffer: Bytes,
}

/// A port's queues at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortSample {
    /// When.
    pub time: Time,
    /// Which port.
    pub link: LinkId,
    /// Bytes in the real queue.
    pub queue: Bytes,
    /// Bytes in the phantom queue; 0 where there is none.
    pub phantom: Bytes,
    /// Bytes that came in over this port's cable and wait in the switch; 0 where it does not share its buffer.
    pub ingress: Bytes,
    /// LSCC's pseudo queue; 0 where there is none.
    pub pseudo: Bytes,
    /// The rate that LSCC's far end last fed back; [`Rate::MAX`] where there is none.
    pub feedback: Rate,
}

/// A flow at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowSample {
    /// When.
    pub time: Time,
    /// Which flow.
    pub flow: FlowId,
    /// Payload sent since the flow began, retransmissions included.
    pub sent: Bytes,
    /// Payload acknowledged since the flow began.
    pub delivered: Bytes,
    /// The window that its law permits; where each subflow has a law, their sum.
    pub window: Bytes,
    /// The smoothed round trip.
    pub rtt: Span,
    /// The law's own state by name; where each subflow has a law, that of the first.
    pub trace: Vec<(&'static str, i64)>,
}

/// Sample times at equal distances: each is due once something happens after it.
pub(crate) struct Ticks {
    interval_ps: u64,
    next_ps: u64,
}

impl Ticks {
    pub(crate) fn new(interval: Span, from_ps: u64) -> Self {
        let interval_ps = interval.unsigned_ps();
        let next_ps = if interval_ps == 0 { u64::MAX } else { from_ps.div_ceil(interval_ps) * interval_ps };
        Self { interval_ps, next_ps }
    }

    /// The next sample time.
    #[inline(always)]
    pub(crate) fn next_ps(&self) -> u64 {
        self.next_ps
    }

    /// Whether a sample time before `now_ps` has passed.
    #[inline(always)]
    pub(crate) fn are_due(&self, now_ps: u64) -> bool {
        self.next_ps < now_ps
    }

    /// The next sample time before `now_ps`, if one has passed.
    #[inline]
    pub(crate) fn due(&mut self, now_ps: u64) -> Option<u64> {
        if self.next_ps >= now_ps {
            return None;
        }
        let due = self.next_ps;
        self.next_ps += self.interval_ps;
        Some(due)
    }
}
