//! `narrows bench`: how fast things are, on fixed workloads.

mod codes;
mod engine;

pub(crate) use codes::codes;
pub(crate) use engine::engine;
