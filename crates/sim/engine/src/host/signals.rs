//! Packets that are neither data nor acknowledgements: requests to send again, notifications, OR-ACKs, pauses.

use experiment::FlowSpec;
use laws::{ControlLaw, Hop, Notification, PathInfo};

use super::{Context, Nic, PartitionHosts};
use crate::body::Body;
use crate::packet::{Packet, TelemetrySlot};

impl<L: ControlLaw> PartitionHosts<L> {
    #[inline(never)]
    pub(super) fn on_signal<F: Fn(&FlowSpec, &PathInfo) -> L>(
        &mut self,
        host: usize,
        packet: &Packet,
        report: TelemetrySlot,
        context: &Context<F>,
        nic: &mut impl Nic,
    ) {
        let state = &mut self.states[host];
        match packet.body() {
            Body::Pause => state.pause(packet.class()),
            Body::Resume => state.resume(packet.class(), &mut self.senders),
            // The hosts of the first ones are others, and elsewhere; the checksum of the last one is wrong.
            Body::Data { .. } | Body::Ack(_) | Body::Feedback(_) | Body::Corrupted => {}
            Body::Request { .. } | Body::Stop | Body::Emulation { .. } => {
                self.on_credit_signal(host, packet, context, nic);
            }
            Body::Trimmed { .. } => self.on_trimmed(host, packet, context.setup, nic),
            Body::Probe => self.reply_to_probe(host, packet, context.setup, nic),
            Body::Credit { .. } | Body::Echo(_) | Body::ProbeReply { .. } => self.on_credits(host, packet, context),
            Body::Nack(_)
            | Body::BlockNack(_)
            | Body::Cnp { .. }
            | Body::DirectCnp
            | Body::DirectInt { .. }
            | Body::OrAck { .. } => {
                let hops = if report == TelemetrySlot::NONE { &[] } else { nic.hops(report) };
                self.notify_sender(host, packet, hops, context);
            }
        }
        if report != TelemetrySlot::NONE {
            nic.forget(report);
        }
    }

    fn notify_sender<F>(&mut self, host: usize, packet: &Packet, hops: &[Hop], context: &Context<F>) {
        let Some(slot) = self.sender_of[packet.flow as usize].get() else { return };
        let now = packet.time;
        let Some(active) = &mut self.senders[slot as usize] else { return };
        active.sample(now, &mut self.samples);
        match packet.body() {
            Body::Nack(header) => active.sender.on_nack(now, &header),
            Body::BlockNack(nack) => active.sender.on_block_nack(now, &nack),
            Body::Cnp { seq, attempt } => active.sender.on_cnp(now, seq, attempt),
            Body::DirectCnp => active.sender.on_notification(&Notification::DirectCnp { now }),
            Body::DirectInt { seq, attempt } => active.sender.on_direct_int(now, seq, attempt, hops),
            Body::OrAck { seq, attempt, clock_ns } => {
                let Some(hold) = active.shim.as_mut().and_then(|at| at.hold_mut()) else { return };
                hold.process_or_ack(now, seq, attempt, clock_ns);
                if context.setup.host.on_ramp.is_some_and(|on_ramp| on_ramp.memory) {
                    self.states[host].memories.insert(active.dst, hold.memory());
                }
            }
            _ => {}
        }
        if active.sender.is_complete() {
            self.complete(host, slot, now, context);
        } else {
            self.states[host].on_feedback(slot, active, now);
        }
    }
}
