//! Ports and what comes to them.

use fabric::{Arrival, Ecn, Item, Passage, Phantom, PlainPort, PortConfig, PortParams, QueuedPort};
use units::{Bytes, Frac, Rate, Span, mix64};

/// How long packets come before the port's service is replayed, as by a switch: 1 us.
const WINDOW_PS: u64 = 1_000_000;

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
pub(crate) struct Packet {
    now_ps: u64,
    identity: u64,
    size: u32,
    control: bool,
}

impl Item for Packet {
    #[inline]
    fn arrival(&self) -> Arrival {
        let Self { now_ps, identity, size, control } = *self;
        Arrival { now_ps, size, ecn_capable: !control, control, credit: false, expendable: false, identity }
    }
}

/// 1,000 packets, half of them acknowledgements, at 90 % of the line rate.
pub(crate) fn packets() -> Vec<Packet> {
    let mut now_ps = 0;
    let packet = |index| {
        let random = mix64(index);
        let control = random.is_multiple_of(2);
        now_ps += (random >> 1) % 376_000;
        Packet { now_ps, identity: index, size: if control { 64 } else { 4_160 }, control }
    };
    (0..1_000).map(packet).collect()
}

/// All through a plain port. Gives something of every passage.
pub(crate) fn plain(params: &PortParams, packets: &[Packet]) -> u64 {
    let mut port = PlainPort::default();
    let passages = packets.iter().map(|packet| port.enqueue(params, 7, &packet.arrival()));
    passages.map(|passage| passage.map_or(0, digest)).fold(0, u64::wrapping_add)
}

/// All through a port that is served lazily, to the end of each window.
pub(crate) fn lazy(params: &PortParams, packets: &[Packet]) -> u64 {
    let mut port = QueuedPort::default();
    let (mut sum, mut end_ps) = (0u64, WINDOW_PS);
    for packet in packets {
        while packet.now_ps >= end_ps {
            port.advance(params, 7, end_ps, |_, passage| sum = sum.wrapping_add(digest(passage)));
            end_ps += WINDOW_PS;
        }
        let arrival = packet.arrival();
        port.enqueue(params, 7, &arrival, *packet, |_, passage| sum = sum.wrapping_add(digest(passage)));
    }
    sum
}

fn digest(passage: Passage) -> u64 {
    passage.arrives_ps ^ u64::from(passage.marked)
}
