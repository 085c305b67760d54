//! Packets in the format of TUN devices: a virtio header, then an IP packet, which may have many segments' worth of TCP or
//! UDP payload after one header ("GSO"). All input is untrusted.

mod checksum;
mod headers;
mod join;
mod run;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
mod udp;
mod vnet;

pub use checksum::{fold, replace, sum};
pub use headers::{
    CREDIT_DSCP, Destination, DropReason, Headers, IpProtocol, OVER_PROVISIONED_CREDIT_DSCP, UNSCHEDULED_DSCP,
};
pub use join::{is_open, join, joined};
pub use run::{Mark, flip_bit, render, render_corrupted, wire_segment};
pub use udp::{MAX_PAYLOAD, UdpHeader, read_udp, write_udp};
pub use vnet::{Segmentation, VNET_LEN, Vnet};
