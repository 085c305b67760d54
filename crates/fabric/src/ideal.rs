//! What a flow would measure alone in the network: base round trip and ideal completion time, exact to the
//! picosecond because they repeat the ports' own arithmetic.

use units::Span;

use crate::{LinkId, Network};

/// Time from a packet's first bit leaving the sender to its last bit reaching the receiver, queues empty.
pub fn base_one_way(network: &Network, path: &[LinkId], size: u32) -> Span {
    let hop = |&link: &LinkId| {
        let params = network.port(link);
        params.service_ps(size) + params.delay_ps
    };
    Span::from_ps(path.iter().map(hop).sum::<u64>() as i64)
}

/// Round trip of a packet of `data` bytes on the wire there and its acknowledgement of `ack` bytes back.
pub fn base_rtt(network: &Network, there: &[LinkId], back: &[LinkId], data: u32, ack: u32) -> Span {
    base_one_way(network, there, data) + base_one_way(network, back, ack)
}

/// Completion time of a flow of `packets` packets, alone, sent at line rate, each acknowledged: from the first
/// bit sent to the last acknowledgement received. `full` and `last` are the sizes on the wire of all packets
/// but the last and of the last.
///
/// Store and forward through FIFO ports: the last packet leaves a port when it has arrived and the one before it
/// has left; equal packets before it are spaced by the slowest port so far.
pub fn ideal_completion(
    network: &Network,
    there: &[LinkId],
    back: &[LinkId],
    packets: u32,
    full: u32,
    last: u32,
    ack: u32,
) -> Span {
    let hops = there.iter().map(|&link| (link, full, last)).chain(back.iter().map(|&link| (link, ack, ack)));
    // When the last packet, and the first one, arrive at the next port; how far apart equal packets are.
    let mut last_at = 0u64;
    let mut first_at = 0u64;
    let mut spacing = 0u64;
    for (link, full, last) in hops {
        let params = network.port(link);
        let (full_ps, last_ps) = (params.service_ps(full), params.service_ps(last));
        spacing = spacing.max(full_ps);
        first_at += full_ps;
        let before_leaves = if packets >= 2 { first_at + u64::from(packets - 2) * spacing } else { 0 };
        last_at = last_at.max(before_leaves) + last_ps + params.delay_ps;
        first_at += params.delay_ps;
    }
    Span::from_ps(last_at as i64)
}
