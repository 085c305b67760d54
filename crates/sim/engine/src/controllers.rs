//! Controllers in border switches: LSCC's two (Long et al., §III). This module has their inputs from the switch and the
//! messages that they send; the arithmetic is in `laws::lscc`.

use std::collections::BTreeMap;
use std::ops::Range;

use experiment::{Setup, SwitchController};
use fabric::{LinkId, SharedSwitch};
use laws::Hop;
use laws::lscc::{CalculationParams, FlowEntry, LimitingParams, RateCalculation, RateLimiting};
use units::{Bytes, Rate, Time};

use crate::body::Body;
use crate::carried::Carried;
use crate::packet::{ForwardingHeader, Packet, TelemetrySlot};
use crate::reports::{Reports, TelemetryRecord};

/// A packet that a controller sends: by this port, or by the route to its host.
pub(crate) struct ControllerMessage {
    pub(crate) to: Option<usize>,
    pub(crate) carried: Carried,
}

/// The controllers of one switch.
#[derive(Default)]
pub(crate) struct Controllers {
    calculations: Vec<Calculation>,
    limitings: Vec<Limiting>,
    messages: u64,
    notifications: u64,
    /// Expiry of the next timer.
    next_at: Time,
}

/// At the far end of a long haul: measures the arrivals at a port, and feeds a rate back.
struct Calculation {
    port: usize,
    params: CalculationParams,
    state: RateCalculation<Vec<i64>>,
    drained: u64,
    next_at: Time,
}

/// At the near end: notifies sources of the departures at a port.
struct Limiting {
    port: usize,
    /// The datacenter of its switch.
    datacenter: u16,
    params: LimitingParams,
    state: RateLimiting,
    /// All bytes that have joined the pseudo queue.
    arrived: Bytes,
    /// By flow, with the time at which it was last seen.
    table: BTreeMap<u32, (FlowEntry, Time)>,
    notify_at: Time,
}

/// Resets after which a silent flow is forgotten.
const REMEMBERED: u32 = 64;

/// Bytes of a feedback message on the wire: a minimum Ethernet frame.
const FEEDBACK_SIZE: u16 = 64;

impl Controllers {
    /// Creates the controllers of the switch with these output links.
    pub(crate) fn new(setup: &Setup, out: Range<u32>) -> Self {
        let mut controllers = Self::default();
        for spec in setup.modules.iter().filter(|spec| out.contains(&spec.link.0)) {
            let port = (spec.link.0 - out.start) as usize;
            match spec.module {
                SwitchController::RateCalculation(params) => controllers.calculations.push(Calculation {
                    port,
                    params,
                    state: RateCalculation::new(params, vec![0; params.entries()]),
                    drained: 0,
                    next_at: Time::ZERO + params.period,
                }),
                SwitchController::RateLimiting(params) => controllers.limitings.push(Limiting {
                    port,
                    datacenter: datacenter_of(setup, spec.link),
                    params,
                    state: RateLimiting::new(&params, setup.network.port(spec.link).config().rate, Time::ZERO),
                    arrived: Bytes::ZERO,
                    table: BTreeMap::new(),
                    notify_at: if params.telemetry { Time::NEVER } else { Time::ZERO + params.interval },
                }),
            }
        }
        controllers.find_next();
        controllers
    }

    pub(crate) fn any(&self) -> bool {
        !self.limitings.is_empty()
    }

    /// Messages to other controllers and to sources.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// Returns the number of messages to sources.
    pub(crate) fn notifications(&self) -> u64 {
        self.notifications
    }

    /// Returns the expiry of the next timer.
    #[inline(always)]
    pub(crate) fn next_at(&self) -> Time {
        self.next_at
    }

    fn find_next(&mut self) {
        let calculation = self.calculations.iter().map(|it| it.next_at);
        let limiting = self.limitings.iter().map(|it| it.notify_at);
        self.next_at = calculation.chain(limiting).min().unwrap_or(Time::NEVER);
    }

    /// Counts bytes that arrived at a port and that the switch has forwarded.
    #[inline]
    pub(crate) fn drained(&mut self, from: usize, bytes: u64) {
        for calculation in self.calculations.iter_mut().filter(|it| it.port == from) {
            calculation.drained += bytes;
        }
    }

    /// Handles the timer of [`Controllers::next_at`].
    pub(crate) fn on_timer(
        &mut self,
        now: Time,
        switch: &SharedSwitch<Carried>,
        setup: &Setup,
    ) -> Vec<ControllerMessage> {
        let mut messages = Vec::new();
        for calculation in self.calculations.iter_mut().filter(|it| it.next_at <= now) {
            let drained = Bytes::new(std::mem::take(&mut calculation.drained));
            let rate = calculation.state.update(switch.held_by(calculation.port), drained);
            calculation.next_at += calculation.params.period;
            messages.push(ControllerMessage { to: Some(calculation.port), carried: feedback(rate, now) });
        }
        for limiting in &mut self.limitings {
            if limiting.notify_at <= now {
                limiting.notify_at += limiting.params.interval;
                // A flow that was not seen for a reset period is not notified: most have ended. Its bytes are
                // remembered for longer: it may only be paused.
                let reset = limiting.params.reset;
                limiting.table.retain(|_, (_, last_seen)| *last_seen + reset.times(REMEMBERED) > now);
                if limiting.state.exceeds_reference(now) {
                    let params = &limiting.params;
                    messages.extend(
                        limiting
                            .table
                            .iter()
                            .filter(|(_, (entry, last_seen))| *last_seen + reset > now && entry.is_chosen(now, params))
                            .map(|(&flow, _)| {
                                let packet = to_source(Body::DirectCnp, flow, params.size, now, setup);
                                ControllerMessage { to: None, carried: Carried { packet, report: TelemetrySlot::NONE } }
                            }),
                    );
                }
            }
        }
        self.messages += messages.len() as u64;
        self.notifications += messages.iter().filter(|message| message.to.is_none()).count() as u64;
        self.find_next();
        messages
    }

    /// Handles a rate that returned over the cable of a port.
    pub(crate) fn on_feedback(&mut self, from: usize, now: Time, rate: Rate) {
        for limiting in self.limitings.iter_mut().filter(|it| it.port == from) {
            limiting.state.set_rate(now, rate);
        }
    }

    /// Processes a packet that passes from one port to another. Its mark is removed: the table reports it.
    pub(crate) fn on_packet(
        &mut self,
        from: usize,
        to: usize,
        carried: &mut Carried,
        setup: &Setup,
        reports: Option<&mut Reports>,
    ) -> Vec<ControllerMessage> {
        let packet = &mut carried.packet;
        let now = packet.time;
        let mut messages = Vec::new();
        let Some(limiting) = self.limitings.iter_mut().find(|it| it.port == if packet.is_data() { to } else { from })
        else {
            return messages;
        };
        let spec = &setup.flows[packet.flow as usize];
        if setup.network.datacenter_of(spec.src) != limiting.datacenter {
            return messages;
        }
        if !packet.is_data() {
            // Without notifications no code would read the table, or clear it.
            if matches!(packet.body(), Body::Cnp { .. }) && !limiting.params.telemetry {
                limiting.entry(packet).on_cnp(now);
            }
            return messages;
        }
        let size = Bytes::new(packet.size.into());
        limiting.state.arrive(now, size);
        limiting.arrived = limiting.arrived.saturating_add(size);
        if !limiting.params.telemetry {
            let entry = limiting.entry(packet);
            entry.on_data(size);
            if packet.is_marked() {
                entry.on_mark(now);
            }
            packet.unmark();
            return messages;
        }
        if let Some(reports) = reports {
            // The reports so far return with the pseudo queue as their last hop, and the packet starts again without
            // any.
            let mut record = TelemetryRecord::default();
            reports.hops(carried.report).iter().for_each(|&hop| record.add(hop));
            reports.forget(carried.report);
            carried.report = TelemetrySlot::NONE;
            let queue = limiting.state.occupancy(now);
            record.add(Hop {
                time: now,
                sent: limiting.arrived.saturating_sub(queue),
                queue,
                rate: limiting.state.rate(),
            });
            let (seq, attempt) = packet.transmission();
            let body = Body::DirectInt { seq, attempt };
            let direct = to_source(body, packet.flow, limiting.params.size, now, setup);
            messages.push(ControllerMessage {
                to: None,
                carried: Carried { packet: direct, report: reports.insert(&record) },
            });
            self.messages += 1;
            self.notifications += 1;
        }
        messages
    }

    /// The pseudo queue of a port and the rate that drains it, if it has one.
    pub(crate) fn pseudo(&self, port: usize, now: Time) -> Option<(Bytes, Rate)> {
        let limiting = self.limitings.iter().find(|it| it.port == port)?;
        Some((limiting.state.occupancy(now), limiting.state.rate()))
    }
}

impl Limiting {
    /// The table's entry of a packet's flow.
    fn entry(&mut self, packet: &Packet) -> &mut FlowEntry {
        let (entry, last_seen) = self.table.entry(packet.flow).or_default();
        *last_seen = packet.time;
        entry
    }
}

fn datacenter_of(setup: &Setup, link: LinkId) -> u16 {
    let from = setup.network.links()[link.index()].from;
    setup.network.nodes()[from.index()].datacenter
}

/// A rate on its way back, before all else.
fn feedback(rate: Rate, now: Time) -> Carried {
    let header = ForwardingHeader { time: now, size: FEEDBACK_SIZE, ..ForwardingHeader::default() };
    Carried { packet: Packet::new(header, Body::Feedback(rate)), report: TelemetrySlot::NONE }
}

/// A packet of a switch to the source of a flow.
fn to_source(body: Body, flow: u32, size: u32, now: Time, setup: &Setup) -> Packet {
    let spec = &setup.flows[flow as usize];
    let (dst, size, class) = (spec.src.0, size as u16, spec.class);
    Packet::new(ForwardingHeader { time: now, flow, dst, size, class, ..ForwardingHeader::default() }, body)
}
