//! Contents of the ports of a shared-buffer switch: a packet, and the report that it carries.

use fabric::Framed;
use units::Time;

use crate::body::{Body, BodyKind};
use crate::packet::{ForwardingHeader, Packet, TelemetrySlot};

/// A packet and the data that it carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) packet: Packet,
    pub(crate) report: TelemetrySlot,
}

impl fabric::QueueItem for Carried {
    #[inline]
    fn arrival(&self) -> fabric::Arrival {
        self.packet.arrival()
    }
}

impl Framed for Carried {
    #[inline]
    fn class(&self, control_first: bool) -> u8 {
        if self.packet.is_signal()
            && matches!(self.packet.kind(), BodyKind::Pause | BodyKind::Resume | BodyKind::Feedback)
            || control_first && self.packet.arrival().control
        {
            return 0;
        }
        self.packet.class().max(1)
    }

    fn frame(pause: bool, class: u8, size: u32, now: Time) -> Self {
        let header = ForwardingHeader { time: now, size: size as u16, class, ..ForwardingHeader::default() };
        let packet = Packet::new(header, if pause { Body::Pause } else { Body::Resume });
        Self { packet, report: TelemetrySlot::NONE }
    }
}
