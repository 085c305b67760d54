//! Contents of the ports of a shared-buffer switch: a packet, and the report that it carries.

use fabric::{PfcAction, PortConfig, SwitchItem};
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

impl SwitchItem for Carried {
    #[inline]
    fn class(&self, port: &PortConfig) -> u8 {
        if self.packet.is_signal()
            && matches!(self.packet.kind(), BodyKind::Pause | BodyKind::Resume | BodyKind::Feedback)
            || port.control_priority && self.packet.arrival().control
        {
            return 0;
        }
        self.packet.class().max(1)
    }

    fn frame(action: PfcAction, class: u8, size: u32, now: Time) -> Self {
        let header = ForwardingHeader { time: now, size: size as u16, class, ..ForwardingHeader::default() };
        let packet = Packet::new(
            header,
            match action {
                PfcAction::Pause => Body::Pause,
                PfcAction::Resume => Body::Resume,
            },
        );
        Self { packet, report: TelemetrySlot::NONE }
    }
}
