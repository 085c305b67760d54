//! The sender's knowledge at the departure of a packet, carried with the packet and compared with the packet's own
//! delay on arrival ([`Predictions`](experiment::Predictions)). A note takes the place of a port's report, so it takes
//! no bytes on the wire; if ports report themselves (INT), no notes are taken.

use laws::{ControlLaw, Hop};
use units::{Bytes, Rate, Span, Time};

use super::sending::Active;
use super::{Nic, PartitionHosts};
use crate::packet::{Packet, TelemetrySlot};

/// The sender's knowledge at the departure of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Note {
    left: Time,
    delay: Option<Span>,
    rtt: Option<Span>,
}

/// No time is that long.
const NONE: u64 = i64::MIN.cast_unsigned();

impl Note {
    /// Encodes it as a report of a port; the report's fields then have another meaning.
    fn to_hop(self) -> Hop {
        let bits = |span: Option<Span>| Bytes::new(span.map_or(NONE, |span| span.ps().cast_unsigned()));
        Hop { time: self.left, sent: bits(self.delay), queue: bits(self.rtt), rate: Rate::MAX }
    }

    fn from_hop(hop: &Hop) -> Self {
        let span = |bits: Bytes| (bits.get() != NONE).then(|| Span::from_ps(bits.get().cast_signed()));
        Self { left: hop.time, delay: span(hop.sent), rtt: span(hop.queue) }
    }
}

impl<L: ControlLaw> Active<L> {
    /// Sends a packet, with the sender's present knowledge attached.
    #[inline(never)]
    pub(super) fn transmit_noted(&self, now: Time, packet: Packet, nic: &mut impl Nic) {
        let delay = self.hold().and_then(flow::OnRampHold::delay);
        let rtt = self.shim.as_ref().and_then(|at| at.last_rtt);
        let report = nic.note(Note { left: now, delay, rtt }.to_hop());
        nic.transmit_with(packet, report);
    }
}

impl<L> PartitionHosts<L> {
    /// Compares the sender's knowledge at a packet's departure with the packet's own delay.
    #[inline(never)]
    pub(super) fn compare(&mut self, packet: &Packet, report: TelemetrySlot, nic: &mut impl Nic) {
        if let Some(note) = nic.hops(report).first().map(Note::from_hop) {
            let one_way_delay = packet.time.since(note.left);
            if let Some(delay) = note.delay {
                self.predictions.owd.add(delay, one_way_delay);
            }
            if let Some(rtt) = note.rtt {
                self.predictions.rtt.add(rtt, one_way_delay);
            }
        }
        nic.forget(report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_round_trip() {
        for delay in [None, Some(Span::from_ps(-1)), Some(Span::ZERO), Some(Span::from_s(3))] {
            let note = Note { left: Time::from_us(7), delay, rtt: Some(Span::from_us(30)) };
            assert_eq!(Note::from_hop(&note.to_hop()), note);
        }
    }
}
