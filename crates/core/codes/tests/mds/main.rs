//! The code through its public interface, with every engine that runs here.

mod engines;
mod errors;
mod losses;
mod support;
