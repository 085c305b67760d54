//! The receiving side: what answers a packet, now or after a while.

use std::cmp::Reverse;

use flow::{Receiver, Reply};

use super::{Context, Hosts, NO_SLOT, Wire};
use crate::packet::Packet;
use crate::setup::{FlowSpec, Setup};

/// The receiver has everything and is gone.
const DONE: u32 = u32::MAX - 1;

/// The receiving end of a flow, and what it takes to answer later.
pub(super) struct Receiving {
    receiver: Receiver,
    flow: u32,
    /// The newest packet whose acknowledgement was held back. A duplicate is answered at once and is not it.
    held_back: Packet,
    /// When what is held back is sent; `u64::MAX` if nothing is.
    flush_at_ps: u64,
    ack_delay_ps: u64,
}

impl<L> Hosts<L> {
    #[inline]
    pub(super) fn on_data<F>(&mut self, host: usize, packet: &Packet, context: &Context<F>, wire: &mut impl Wire) {
        let spec = &context.setup.flows[packet.flow as usize];
        let mut slot = self.receiver_of[packet.flow as usize];
        if slot == NO_SLOT {
            slot = self.new_receiver(packet, spec, context.setup);
        }
        if slot == DONE {
            let cumulative = packets_of(spec, context.setup);
            let reply = Reply { seq: packet.seq, covers: 1, cumulative, marked: packet.is_marked() };
            wire.transmit(acknowledgement(packet, reply, packet.time_ps, context.setup));
            return;
        }
        let Some(it) = &mut self.receivers[slot as usize] else { return };
        let replies = it.receiver.on_data(packet.seq, packet.is_marked(), packet.asks());
        if let Some(flushed) = replies[0] {
            wire.transmit(acknowledgement(&it.held_back, flushed, packet.time_ps, context.setup));
        }
        if let Some(reply) = replies[1] {
            wire.transmit(acknowledgement(packet, reply, packet.time_ps, context.setup));
        }
        if it.receiver.is_complete() {
            self.receivers[slot as usize] = None;
            self.free_receivers.push(slot);
            self.receiver_of[packet.flow as usize] = DONE;
        } else if context.setup.host.ack_every > 1 {
            if replies[1].is_none() {
                it.held_back = *packet;
            }
            if !it.receiver.holds_back() {
                it.flush_at_ps = u64::MAX;
            } else if it.flush_at_ps == u64::MAX || replies[0].is_some() {
                it.flush_at_ps = packet.time_ps + it.ack_delay_ps;
                let state = &mut self.states[host];
                state.flushes.push(Reverse((it.flush_at_ps, packet.flow, slot)));
                state.alarm_ps = state.alarm_ps.min(it.flush_at_ps);
            }
        }
    }

    fn new_receiver(&mut self, packet: &Packet, spec: &FlowSpec, setup: &Setup) -> u32 {
        let ack_delay_ps = if setup.host.ack_every > 1 {
            let quarter = || setup.paths(spec.src, spec.dst, setup.host.mss).base_rtt.over(4);
            setup.host.ack_delay.unwrap_or_else(quarter).unsigned_ps()
        } else {
            0
        };
        let slot = self.free_receivers.pop().unwrap_or_else(|| {
            self.receivers.push(None);
            self.receivers.len() as u32 - 1
        });
        self.receivers[slot as usize] = Some(Receiving {
            receiver: Receiver::new(packets_of(spec, setup), setup.host.ack_every),
            flow: packet.flow,
            held_back: *packet,
            flush_at_ps: u64::MAX,
            ack_delay_ps,
        });
        self.receiver_of[packet.flow as usize] = slot;
        slot
    }

    /// Sends an acknowledgement that was held back, if it still is.
    pub(super) fn flush(&mut self, now_ps: u64, slot: u32, flow: u32, setup: &Setup, wire: &mut impl Wire) {
        let Some(it) = &mut self.receivers[slot as usize] else { return };
        if it.flow != flow || it.flush_at_ps != now_ps {
            return;
        }
        it.flush_at_ps = u64::MAX;
        if let Some(reply) = it.receiver.flush() {
            wire.transmit(acknowledgement(&it.held_back, reply, now_ps, setup));
        }
    }
}

fn packets_of(spec: &FlowSpec, setup: &Setup) -> u32 {
    spec.size.get().div_ceil(setup.host.mss.into()) as u32
}

/// The acknowledgement of a data packet, on the path that the packet's entropy gives.
#[inline]
fn acknowledgement(packet: &Packet, reply: Reply, now_ps: u64, setup: &Setup) -> Packet {
    let mut ack = Packet {
        time_ps: now_ps,
        flow: packet.flow,
        seq: reply.seq,
        dst: setup.flows[packet.flow as usize].src.0,
        cumulative: reply.cumulative,
        entropy: packet.entropy,
        size: setup.host.ack_size as u16,
        attempt: packet.attempt,
        covers: reply.covers,
        ..Packet::default()
    };
    ack.set_ack();
    ack.mark(reply.marked);
    ack
}
