//! Indices of hosts, links, nodes and flows as 32 bits.

/// Returns an index or a number of elements as 32 bits, which is their width in the simulator.
///
/// A scenario has at most 65,535 hosts and 10,000,000 flows, and a file at most 4 GiB.
pub(crate) fn index32(index: usize) -> u32 {
    debug_assert!(u32::try_from(index).is_ok(), "{index} elements in a scenario");
    u32::try_from(index).unwrap_or(u32::MAX)
}
