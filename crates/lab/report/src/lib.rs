//! The report of one or many runs: one HTML file that works without a network.
//!
//! [`render`] turns a [`ReportData`] into a page with everything inlined: the data as JSON, the styles, the script
//! and uPlot (`assets/uplot`). The page's sections are decided here, so that a section without data is absent; what
//! a section shows is drawn by `assets/script`. Text from the data reaches the page as text, never as markup.
//!
//! This crate reads no file, no clock and no environment: the same data gives the same bytes.

#![forbid(unsafe_code)]

mod data;
mod page;

pub use data::{
    AverageRow, Averages, Cause, Claim, Collective, Counted, Distribution, Failure, FlowRate, Interval, Link, Point,
    Pooled, PortQueue, Queues, Rates, Ratio, ReportData, Run, SlowFlow, Slowest, SlowestOfClass, Trace, Trait, Verdict,
};
pub use page::render;
