//! Packets as TUN devices give and take them.

/// Length of the virtio header before each packet.
pub const VNET_LEN: usize = 10;
