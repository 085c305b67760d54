//! Contents of the ports of a shared-buffer switch: a packet, and the report that it carries.

use fabric::Framed;
use units::Time;

use crate::body::{Body, Kind};
use crate::packet::{Header, Packet, Report};

/// A packet and the data that it carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) packet: Packet,
    pub(crate) report: Report,
}

impl fabric::Item for Carried {
    #[inline]
    fn arrival(&self) -> fabric::Arrival {
        self.packet.arrival()
    }
}

impl Framed for Carried {
    #[inline]
    fn class(&self, control_first: bool) -> u8 {
        if self.packet.is_signal() && matches!(self.packet.kind(), Kind::Pause | Kind::Resume | Kind::Feedback)
            || control_first && self.packet.arrival().control
        {
            return 0;
        }
        self.packet.class().max(1)
    }

    fn frame(pause: bool, class: u8, size: u32, now: Time) -> Self {
        let header = Header { time: now, size: size as u16, class, ..Header::default() };
        let packet = Packet::new(header, if pause { Body::Pause } else { Body::Resume });
        Self { packet, report: Report::NONE }
    }
}
