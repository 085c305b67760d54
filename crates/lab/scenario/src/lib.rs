//! Scenario files: TOML with units to a validated, fully resolved [`Scenario`], and from that to the simulator's input. The
//! crate handles files and schemes, not events.
//!
//! [`load()`] or [`parse`] reads a file; [`Scenario::runs`] lists its runs, one per scheme and point of the grid. Errors
//! show file, line, column and a caret ([`Error`]).

#![forbid(unsafe_code)]
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

pub mod argument;
mod build;
mod check;
mod class;
pub mod config;
mod decode;
mod dependency_cycle;
mod distribution;
mod error;
mod extends;
#[cfg(feature = "import")]
mod foreign;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "import")]
pub mod import;
mod index;
mod inputs;
mod kind;
mod law_plan;
mod load;
mod overlay;
mod overrides;
mod points;
mod quantity;
mod random;
mod run;
mod run_keys;
mod samples;
mod schema;
mod support;
mod survey;
mod traffic;
mod tree;
mod write;

/// Message of a build without the feature `import` when it needs to read other programs' files.
#[cfg(not(feature = "import"))]
pub const WITHOUT_IMPORT: &str = "this build has no importers: they need the feature `import`, which is on by default and in what `make build` makes";

pub use build::{
    Beginning, BuiltRun, CableLine, ClassLine, ClassLoad, CodingLine, JobLine, LawColumns, LinkLoad, RunReport,
    ScheduleFlows, SwitchLine,
};
pub use check::{CheckReport, CheckedRun, check};
pub use class::FlowClass;
pub use config::{Cause, Config, TRANSPORT_HEADER};
pub use decode::{Located, NamedValues, replacement};
pub use distribution::Distribution;
pub use error::{Colour, Diagnostic, Error, SourceLocation, SourceSpan, escape_controls, nearest};
pub use inputs::{FOREIGN, FileContent, Input, LIST, SCENARIO};
pub use law_plan::{ExternalLawPlan, LawPlan};
pub use load::{AppliedScale, Scenario, TextPart, as_written, load, parse, text_of};
pub use overrides::{Overrides, SET};
pub use quantity::{Decimal, Drift, Flops, NumberRange, Share, amount};
pub use run::Run;
pub use schema::json_schema;
pub use support::RealHost;
pub use survey::RttRange;
pub use traffic::{Arrivals, JobFlows, JobIteration, ReadLoop, RequestArrivals, StepKind};
pub use tree::{Entry, Node, Value};
pub use write::toml_of;
