//! A flow in steady state: for each acknowledgement another packet.

use flow::{AckHeader, DataHeader, FlowConfig, Receiver, Recovery, Segment, Sender};
use laws::catalog::{LawKind, ParamValue, build};
use laws::{Law, PathInfo};
use units::{Bytes, Rate, Span, Time, mix64};

const MSS: u32 = 4_096;
/// Packets in flight.
const WINDOW: usize = 32;

/// Both ends, and the packets in flight between them.
pub(crate) struct Steady {
    sender: Sender<Law>,
    receiver: Receiver,
    in_flight: [Segment; WINDOW],
    now: Time,
    steps: u64,
    reorders: bool,
}

impl Steady {
    /// A flow with a full window in flight. Packets arrive in order, or any of those in flight.
    pub(crate) fn new(reorders: bool) -> Self {
        let rtt = Span::from_us(14);
        let path =
            PathInfo { base_rtt: rtt, intra_rtt: rtt, line_rate: Rate::from_gbps(100), mss: Bytes::new(MSS.into()) };
        let window = ParamValue::Bytes(Bytes::new(WINDOW as u64 * u64::from(MSS)));
        let law = build(LawKind::Fixed, &path, &[("window", window)]).expect("the window holds");
        let config = FlowConfig {
            // No packet is ever lost.
            reordering: Span::from_s(1_000),
            rto_min: Span::from_s(1_000),
            rto_max: Span::from_s(4_000),
            ..FlowConfig::new(Bytes::new(u64::from(u32::MAX) * u64::from(MSS)), MSS, rtt)
        };
        let now = Time::from_us(1);
        let mut sender = Sender::new(config, law, now);
        let receiver = Receiver::new(config.packets(), 1, Recovery::Selective);
        let in_flight = std::array::from_fn(|_| sender.send(now));
        Self { sender, receiver, in_flight, now, steps: 0, reorders }
    }

    /// Delivers a packet, acknowledges it, and sends the next one.
    #[inline]
    pub(crate) fn step(&mut self) {
        let index = if self.reorders { mix64(self.steps) } else { self.steps };
        let segment = &mut self.in_flight[index as usize % WINDOW];
        let [_, reply] = self
            .receiver
            .on_data(self.now, DataHeader { seq: segment.seq, marked: false, requests_ack: segment.requests_ack() });
        let reply = reply.expect("every packet is acknowledged");
        self.now += Span::from_ns(330);
        let ack = AckHeader {
            seq: reply.seq,
            covers: reply.covers,
            cumulative: reply.cumulative,
            marked: reply.marked,
            attempt: segment.attempt,
        };
        self.sender.on_ack(self.now, &ack, &[]);
        std::hint::black_box(self.sender.poll(self.now));
        *segment = self.sender.send(self.now);
        self.steps += 1;
    }
}
