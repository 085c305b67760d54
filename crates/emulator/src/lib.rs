//! Real packets through the simulator's queues.

pub mod clock;
mod error;
mod socket_calls;
pub mod tcp_info;
pub mod traffic;

pub use error::Error;
