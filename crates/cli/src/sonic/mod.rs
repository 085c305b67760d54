//! SONiC's tables for buffers, pauses and marking (`config_db.json`), and the formula by which its dynamic buffer model
//! sizes headroom on NVIDIA's Spectrum switches. The module does not depend on scenarios or networks: ports are passed as
//! numbers.

mod asic;
mod headroom;
mod tables;

pub(crate) use asic::{ASICS, Asic};
pub(crate) use headroom::{Headroom, HeadroomCable, LosslessTraffic, headroom, longest, metres};
pub(crate) use tables::{Device, Marks, Revision, SonicPort, SwitchMemory, Threshold};
