//! SONiC's tables for buffers, pauses and marking (`config_db.json`), and the formula by which its dynamic buffer model sizes
//! headroom on NVIDIA's Spectrum switches. It knows no scenario and no network: ports come as numbers.
#![forbid(unsafe_code)]

mod asic;
mod headroom;
mod tables;

pub use asic::{ASICS, Asic};
pub use headroom::{Cable, Headroom, METRES_A_SECOND, Traffic, headroom, longest, metres, peer_response_bytes};
pub use tables::{Buffer, Device, Marks, Port, Revision, Threshold};
