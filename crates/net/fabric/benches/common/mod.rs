//! Ports and packets that arrive at them.

use fabric::{Arrival, Ecn, Exit, Phantom, PlainPort, PortConfig, PortParams, PortTransit, QueueItem, QueuedPort};
use units::{Bytes, Frac, Rate, Span, Time, mix64};

/// Time for which packets arrive before the port's service is replayed, as by a switch.
const WINDOW: Span = Span::from_us(1);

/// Uno's port: RED, a phantom queue, 1 MiB.
pub(crate) fn params(control_priority: bool) -> PortParams {
    let ecn = |min, max| Ecn { min: Bytes::new(min), max: Bytes::new(max), max_probability: Frac::ONE };
    let phantom = Phantom { size: Bytes::new(22_400_000), drain: Frac::ratio(9, 10), ecn: ecn(448_000, 13_440_000) };
    let config = PortConfig {
        buffer: Bytes::new(1 << 20),
        ecn: Some(ecn(262_144, 786_432)),
        phantom: Some(phantom),
        control_priority,
        ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1))
    };
    PortParams::new(&config).expect("the port is valid")
}

/// A packet as the simulator carries it: 32 bytes.
#[derive(Clone, Copy)]
pub(crate) struct BenchPacket {
    now: Time,
    identity: u64,
    size: u32,
    control: bool,
}

impl QueueItem for BenchPacket {
    #[inline]
    fn arrival(&self) -> Arrival {
        let Self { now, identity, size, control } = *self;
        Arrival { now, size, ecn_capable: !control, control, credit: false, expendable: false, identity }
    }
}

/// 1,000 packets, half of them acknowledgements, at 90 % of the line rate.
pub(crate) fn packets() -> Vec<BenchPacket> {
    let mut now = Time::ZERO;
    let packet = |index| {
        let random = mix64(index);
        let control = random.is_multiple_of(2);
        now += Span::from_unsigned_ps((random >> 1) % 376_000);
        BenchPacket { now, identity: index, size: if control { 64 } else { 4_160 }, control }
    };
    (0..1_000).map(packet).collect()
}

/// Sends all packets through a plain port. Returns a digest of all transits.
pub(crate) fn plain(params: &PortParams, packets: &[BenchPacket]) -> u64 {
    let mut port = PlainPort::default();
    let passages = packets.iter().map(|packet| port.enqueue(params, 7, &packet.arrival()));
    passages.map(|passage| passage.map_or(0, digest)).fold(0, u64::wrapping_add)
}

/// All through a port that is served lazily, to the end of each window.
pub(crate) fn lazy(params: &PortParams, packets: &[BenchPacket]) -> u64 {
    let mut port = QueuedPort::new(params.config());
    let (mut sum, mut end) = (0u64, Time::ZERO + WINDOW);
    for packet in packets {
        while packet.now >= end {
            port.advance(params, 7, end, |_, exit| sum = sum.wrapping_add(served(exit)));
            end += WINDOW;
        }
        let arrival = packet.arrival();
        port.enqueue(params, 7, &arrival, *packet, |_, exit| sum = sum.wrapping_add(served(exit)));
    }
    sum
}

fn served(exit: Exit) -> u64 {
    let Exit::Served(passage) = exit else { panic!("a FIFO dropped a packet") };
    digest(passage)
}

fn digest(passage: PortTransit) -> u64 {
    passage.arrives.ps() ^ u64::from(passage.marked)
}
