//! Clock synchronisation in virtual time: the code of [`clocks`] on oscillators that drift, wander and step, through queues
//! under load. Compares what each member knows of mesh time with what the others know.
#![forbid(unsafe_code)]

mod host;
mod load;
mod network;
mod oscillator;
mod random;
mod world;

pub use host::{Absence, TimestampNoise};
pub use load::LoadConfig;
pub use network::NetworkConfig;
pub use oscillator::OscillatorConfig;
pub use world::{Distribution, Outcome, Simulation, StepConfig};
