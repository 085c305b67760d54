//! SONiC's tables for buffers, pauses and marking (`config_db.json`), and the formula by which its dynamic buffer model sizes
//! headroom on NVIDIA's Spectrum switches. It knows no scenario and no network: ports come as numbers.

mod asic;
mod headroom;
mod tables;

pub(crate) use asic::{ASICS, Asic};
pub(crate) use headroom::{Cable, Headroom, Traffic, headroom, longest, metres};
pub(crate) use tables::{Buffer, Device, Marks, Port, Revision, Threshold};
