//! Integration tests of scenarios, in one program.

#[path = "../../fuzz/bodies.rs"]
#[cfg(feature = "import")]
mod bodies;
mod closed_loop;
mod coding;
mod collectives;
#[path = "../../../../../tests/corpus.rs"]
#[cfg(feature = "import")]
mod corpus;
mod credits;
mod disciplines;
mod errors;
mod extends;
mod failures;
#[cfg(feature = "import")]
mod foreign;
#[cfg(feature = "import")]
mod fuzzed;
#[cfg(feature = "import")]
mod hpcc;
#[cfg(feature = "import")]
mod htsim;
mod impairments;
mod jobs;
mod location;
mod lossless;
mod scenarios;
#[cfg(feature = "import")]
mod totals;
