//! Packets that are neither data nor acknowledgements: requests to send again, notifications, OR-ACKs, pauses.

use flow::AckHeader;
use laws::{ControlLaw, Hop, Notification, Path};

use super::{Context, Hosts, NO_SLOT, Wire};
use crate::packet::{Kind, Packet, Report};
use crate::setup::FlowSpec;

impl<L: ControlLaw> Hosts<L> {
    #[inline(never)]
    pub(super) fn on_signal<F: Fn(&FlowSpec, &Path) -> L>(
        &mut self,
        host: usize,
        packet: &Packet,
        report: Report,
        context: &Context<F>,
        wire: &mut impl Wire,
    ) {
        let state = &mut self.states[host];
        match packet.kind() {
            Kind::Pause => state.pause(packet.class()),
            Kind::Resume => state.resume(packet.class(), &mut self.senders),
            Kind::Transfer | Kind::Feedback => {}
            Kind::Request | Kind::Stop | Kind::Emulation => self.on_credit_signal(host, packet, context, wire),
            Kind::Probe if !packet.is_ack() => self.answer_probe(host, packet, context.setup, wire),
            Kind::Credit | Kind::Echo | Kind::Probe => self.on_credits(host, packet, context),
            Kind::Nack | Kind::BlockNack | Kind::Cnp | Kind::DirectCnp | Kind::DirectInt | Kind::OrAck => {
                let hops = if report == Report::NONE { &[] } else { wire.hops(report) };
                self.tell_sender(host, packet, hops, context);
            }
        }
        if report != Report::NONE {
            wire.forget(report);
        }
    }

    fn tell_sender<F>(&mut self, host: usize, packet: &Packet, hops: &[Hop], context: &Context<F>) {
        let slot = self.sender_of[packet.flow as usize];
        if slot == NO_SLOT {
            return;
        }
        let now = packet.time;
        let Some(active) = &mut self.senders[slot as usize] else { return };
        active.sample(now, &mut self.samples);
        match packet.kind() {
            Kind::Nack => active.sender.on_nack(now, &header(packet)),
            Kind::BlockNack => active.sender.on_block_nack(now, &packet.block_nack()),
            Kind::Cnp => active.sender.on_cnp(now, packet.seq, packet.attempt),
            Kind::DirectCnp => active.sender.on_notification(&Notification::DirectCnp { now }),
            Kind::DirectInt => active.sender.on_direct_int(now, packet.seq, packet.attempt, hops),
            Kind::OrAck => {
                let Some(hold) = active.edge.as_mut().and_then(|edge| edge.hold.as_mut()) else { return };
                hold.on_or_ack(now, packet.seq, packet.attempt, packet.cumulative);
                if context.setup.host.on_ramp.is_some_and(|on_ramp| on_ramp.memory) {
                    self.states[host].memories.insert(active.dst, hold.memory());
                }
            }
            _ => {}
        }
        if active.sender.is_complete() {
            self.complete(host, slot, now, context);
        } else {
            self.states[host].heard(slot, active, now);
        }
    }
}

/// What an acknowledgement, or a request to send again, says.
#[inline(always)]
pub(super) fn header(packet: &Packet) -> AckHeader {
    AckHeader {
        seq: packet.seq,
        covers: packet.covers,
        cumulative: packet.cumulative,
        marked: packet.is_marked(),
        attempt: packet.attempt,
    }
}
