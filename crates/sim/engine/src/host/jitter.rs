//! Processing delay of hosts: the time of a packet between the NIC, where it arrived, and the transport.
//!
//! The delay is drawn for each packet. Packets of one flow stay in order: a packet with an earlier end of its own delay
//! waits for the previous one. Packets of different flows may overtake each other, as on several cores. A pause frame is
//! handled by the NIC and is not delayed. All other arrivals are delayed, so round trips and one-way delays include the
//! delay. Transmissions of a host are not delayed.

use std::collections::BTreeMap;

use experiment::{FlowSpec, Jitter};
use laws::{ControlLaw, PathInfo};
use units::{Time, mix64};

use super::calendar::Due;
use super::{Context, Nic, PartitionHosts};
use crate::packet::{Packet, TelemetrySlot};

/// Packets that a host's transport has not received yet.
#[derive(Default)]
pub(super) struct Delayed {
    /// By the time at which the transport receives them, then by their order of arrival.
    packets: BTreeMap<(Time, u64), (Packet, TelemetrySlot)>,
    /// By flow: the time at which the transport receives its last such packet.
    last: BTreeMap<u32, Time>,
    arrivals: u64,
    /// The time at which the first of them is received, if it is in the host's calendar.
    scheduled_at: Option<Time>,
}

impl Delayed {
    /// Queues a packet; `bits` are its random bits. Returns the time at which the transport receives it.
    fn push(&mut self, packet: Packet, report: TelemetrySlot, jitter: &Jitter, bits: u64) -> Time {
        let own = packet.time + jitter.of(bits);
        let last = self.last.entry(packet.flow).or_default();
        *last = own.max(*last);
        self.arrivals += 1;
        self.packets.insert((*last, self.arrivals), (packet, report));
        *last
    }

    /// Returns the first packet that the transport receives by `now`.
    fn pop(&mut self, now: Time) -> Option<(Packet, TelemetrySlot)> {
        let (&(time, _), _) = self.packets.first_key_value().filter(|((time, _), _)| *time <= now)?;
        let (_, (packet, report)) = self.packets.pop_first()?;
        if self.last.get(&packet.flow) == Some(&time) {
            self.last.remove(&packet.flow); // a later packet of the flow has nothing to wait for
        }
        Some((packet.at(time), report))
    }

    /// Returns the time at which the transport receives the first of them.
    fn next_at(&self) -> Option<Time> {
        self.packets.first_key_value().map(|((time, _), _)| *time)
    }
}

impl<L: ControlLaw> PartitionHosts<L> {
    /// Handles a packet that has arrived at a host's NIC: its delay is drawn.
    #[inline(never)]
    pub(super) fn delay<F>(
        &mut self,
        host: usize,
        packet: &Packet,
        report: TelemetrySlot,
        jitter: &Jitter,
        context: &Context<F>,
    ) {
        let (own, kind) = packet.identity();
        let salt = mix64(context.setup.seed ^ 0x4a49_5454_4552) ^ u64::from(packet.dst);
        let bits = mix64(mix64(mix64(salt ^ mix64(own)) ^ packet.time.ps()) ^ kind);
        let state = &mut self.states[host];
        let delayed = state.delayed.get_or_insert_default();
        let delivered_at = delayed.push(*packet, report, jitter, bits);
        if delayed.scheduled_at.is_none_or(|at| delivered_at < at) {
            delayed.scheduled_at = Some(delivered_at);
            state.calendar.schedule(delivered_at, Due::Delayed);
        }
    }

    /// Delivers the packets that are due to the transport, if this is the time that was scheduled last.
    pub(super) fn deliver_delayed<F: Fn(&FlowSpec, &PathInfo) -> L>(
        &mut self,
        host: usize,
        time: Time,
        now: Time,
        context: &Context<F>,
        nic: &mut impl Nic,
    ) {
        match &mut self.states[host].delayed {
            Some(delayed) if delayed.scheduled_at == Some(time) => delayed.scheduled_at = None,
            _ => return,
        }
        while let Some(delayed) = &mut self.states[host].delayed
            && let Some((packet, report)) = delayed.pop(now)
        {
            nic.received_late(&packet);
            self.deliver(host, &packet, report, context, nic);
        }
        let state = &mut self.states[host];
        if let Some(delayed) = &mut state.delayed
            && let Some(next) = delayed.next_at()
        {
            delayed.scheduled_at = Some(next);
            state.calendar.schedule(next, Due::Delayed);
        }
    }

    /// Returns the number of data packets that transports have not received.
    pub(crate) fn data_delayed(&self) -> u64 {
        let delayed = self.states.iter().filter_map(|state| state.delayed.as_ref());
        delayed.flat_map(|it| it.packets.values()).filter(|(packet, _)| packet.is_data()).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use crate::packet::ForwardingHeader;
    use experiment::JitterShape;
    use units::Span;

    /// The second packet of a flow waits for the first; another flow's does not. A packet that arrives after all have
    /// been received waits for none.
    #[test]
    fn packets_of_a_flow_stay_in_order() {
        let jitter = Jitter { mean: Span::from_us(1), shape: JitterShape::Uniform };
        let ns = Time::from_ns;
        let packet = |flow, seq, time| {
            let header = ForwardingHeader { time, flow, ..ForwardingHeader::default() };
            Packet::new(header, Body::Data { seq, attempt: 1, credit: None })
        };
        let mut delayed = Delayed::default();
        assert_eq!(delayed.push(packet(0, 0, ns(0)), TelemetrySlot::NONE, &jitter, u64::MAX), ns(2_000));
        assert_eq!(delayed.push(packet(0, 1, ns(10)), TelemetrySlot::NONE, &jitter, 0), ns(2_000));
        assert_eq!(delayed.push(packet(1, 0, ns(20)), TelemetrySlot::NONE, &jitter, 0), ns(20));
        assert!(delayed.pop(ns(19)).is_none());
        let mut pop_at = |now| delayed.pop(now).map(|(packet, _)| (packet.flow, packet.transmission().0, packet.time));
        assert_eq!([pop_at(ns(20)), pop_at(ns(20))], [Some((1, 0, ns(20))), None]);
        assert_eq!([pop_at(ns(2_000)), pop_at(ns(2_000))], [Some((0, 0, ns(2_000))), Some((0, 1, ns(2_000)))]);
        let later = ns(2_000).just_after();
        assert_eq!(delayed.push(packet(0, 2, later), TelemetrySlot::NONE, &jitter, 0), later);
    }
}
