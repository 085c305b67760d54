//! The report of one or many runs, and the page of recorded claims: one HTML file each that works without a network.
//!
//! [`render`] converts a [`ReportData`] to a page with everything inlined: the data as JSON, the styles, the script and
//! uPlot (`assets/uplot`). This crate determines the page's sections, so that a section without data is absent; their
//! contents are drawn by `assets/script`. Text from the data is shown as text, never as markup.
//!
//! This crate reads no file, no clock and no environment: the same data produce the same bytes.

#![forbid(unsafe_code)]

mod claims_page;
mod data;
mod page;

pub use claims_page::{RecordedCause, RecordedClaim, RecordedClaims, render_claims};
pub use data::{
    AverageRow, Averages, CdfPointData, ClaimData, Collective, Counted, DistributionData, FailureData, FlowRate,
    IntervalData, LinkData, Pooled, PortQueue, QueuesData, RatesData, RatioData, ReportData, RunData, SlowFlow,
    Slowest, SlowestOfClass, TraceData, Trait, VerdictData, WarningGroupData,
};
pub use page::render;
