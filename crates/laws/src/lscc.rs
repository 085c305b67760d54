//! LSCC's two controllers in border switches: what the far one feeds back, and whom the near one tells.
//! Long et al., "LSCC: Link-Segmented Congestion Control for RDMA in Cross-Datacenter Networks", §III.

use units::{Bytes, Rate, Span};

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
