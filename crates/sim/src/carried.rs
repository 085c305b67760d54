//! What ports of a switch that shares its buffer hold: a packet, and the report that it carries.

use fabric::Framed;
use units::Time;

use crate::packet::{Kind, Packet, Report};

/// A packet and what it carries.
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
        let mut packet = Packet { time: now, size: size as u16, ..Packet::default() };
        packet.classify(if pause { Kind::Pause } else { Kind::Resume }, class);
        Self { packet, report: Report::NONE }
    }
}
