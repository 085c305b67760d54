//! The measurements of a run: its summary, tables and series, their files on disk, the claims of papers judged against
//! them, and comparisons.
//!
//! [`RunResults::new`] makes everything from the run's input ([`RunInfo`], [`experiment::Setup`]) and its outcome
//! ([`experiment::Outcome`]); [`store`] writes and reads it. Nothing here reads a clock, and of a simulated run everything
//! but [`summary::Engine`] is the same at any number of threads.

#![forbid(unsafe_code)]

pub mod attribution;
pub mod averages;
mod chosen;
pub mod claims;
pub mod compare;
pub mod conditions;
mod error;
pub mod explain;
pub mod flow_comparison;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod initial_windows;
mod input;
mod json;
mod mean;
mod ordered;
pub mod panels;
mod parquet;
mod point_keys;
pub mod pooled;
mod quantity;
pub mod score;
pub mod series;
pub mod settings;
pub mod slowest;
mod stats;
pub mod store;
pub mod summary;
pub mod tables;
mod thrift;
pub mod timeline;
pub mod values;
pub mod warning_groups;

pub use chosen::{NotFound, chosen};
pub use error::{Difference, Differing, Error};
pub use initial_windows::{InitialWindows, initial_window_lines, initial_windows, load_lines};
pub use input::{
    BackendKind, Class, CodeVersions, Emulator, EngineTimes, ImportedSchedule, PointColumn, PointValue, Program,
    RunInfo, SizeBin, Stack, SweepColumns, TrainingIteration, TrainingJob, Validity, VirtualTime,
};
pub use mean::Mean;
pub use ordered::Ordered;
pub use point_keys::{Lookup, find_run};
pub use quantity::WrittenValue;
pub use store::{FileHash, Manifest, RunResults};
pub use summary::Summary;

#[cfg(test)]
mod testbed;
