//! Versions of the code that decides results.
//!
//! A version is a hash of the token streams of modules. Which modules count is derived from the module graph of the
//! workspace's sources: all that is reached from where a run is done. A law, and a feature that few runs use, is a part
//! with a version of its own.

pub mod graph;
pub mod parts;
pub mod source;

pub use graph::{GraphError, ModuleGraph};
pub use parts::{CodePart, CodeParts, Gate, Locked, Roots};
