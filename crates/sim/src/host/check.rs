//! Whether a partition's hosts agree with themselves: what waits is where it says that it waits, and what a calendar is
//! to bring back lies in it.

use std::cmp::Reverse;

use fabric::HostId;
use flow::Edge;
use laws::ControlLaw;
use units::Time;

use super::calendar::{Due, End};
use super::receiving::DONE;
use super::sending::{Active, Queued};
use super::{Hosts, NO_SLOT};
use crate::setup::Setup;

impl<L: ControlLaw> Hosts<L> {
    /// Checks all hosts once they have run up to `now`; `local` gives the number here of a host of the network. Gives the
    /// number of the host where something is wrong, and what.
    pub(crate) fn check(
        &self,
        now: Time,
        local: impl Fn(HostId) -> usize,
        setup: &Setup,
    ) -> Result<(), (usize, String)> {
        for (host, state) in self.states.iter().enumerate() {
            state.calendar.check(now).map_err(|what| (host, what))?;
        }
        for (slot, active) in (0..).zip(&self.senders) {
            let Some(active) = active else { continue };
            let host = local(setup.flows[active.flow as usize].src);
            self.check_sender(host, slot, active).map_err(|what| (host, format!("flow {}: {what}", active.flow)))?;
        }
        for (flow, &slot) in (0..).zip(&self.receiver_of) {
            if slot == NO_SLOT || slot == DONE {
                continue;
            }
            let host = local(setup.flows[flow as usize].dst);
            self.check_receiver(host, flow, slot).map_err(|what| (host, format!("flow {flow}: {what}")))?;
        }
        let active = self.senders.iter().flatten().count();
        if active + self.free_senders.len() != self.senders.len() || (active as u64) > self.open {
            let (free, open) = (self.free_senders.len(), self.open);
            return Err((0, format!("{active} senders and {free} free places of {}, {open} open", self.senders.len())));
        }
        Ok(())
    }

    fn check_sender(&self, host: usize, slot: u32, active: &Active<L>) -> Result<(), String> {
        let state = &self.states[host];
        if self.sender_of[active.flow as usize] != slot {
            return Err(format!("its sender lies at {slot} and is looked for elsewhere"));
        }
        active.sender.check()?;
        let turn = (slot, active.flow);
        let waits = match active.queued {
            Queued::Nowhere => true,
            Queued::Ready | Queued::Sure => state.ready.iter().any(|&it| it == turn),
            Queued::Paced => state.paced.iter().any(|Reverse((_, flow, slot))| (*slot, *flow) == turn),
            Queued::Parked => state.pauses.as_ref().is_some_and(|pauses| pauses.parks(turn)),
        };
        if !waits {
            return Err(format!("it is {:?} and does not wait there", active.queued));
        }
        if !state.calendar.has(active.armed, Due::Timer(active.flow)) {
            return Err(format!("its timer of {:?} is not in the calendar", active.armed));
        }
        if let Some(at) = &active.edge {
            at.edge.as_ref().map_or(Ok(()), Edge::check)?;
            if at.called_at.is_set() && !state.calendar.has(at.called_at, Due::Credits(active.flow, End::Sender)) {
                return Err(format!("its credits' time of {:?} is not in the calendar", at.called_at));
            }
        }
        Ok(())
    }

    fn check_receiver(&self, host: usize, flow: u32, slot: u32) -> Result<(), String> {
        let Some(Some(receiving)) = self.receivers.get(slot as usize) else {
            return Err(format!("there is no receiver at {slot}"));
        };
        for (time, due) in receiving.calls() {
            if time.is_set() && !self.states[host].calendar.has(time, due) {
                return Err(format!("{due:?} at {time:?} is not in the calendar"));
            }
        }
        if receiving.flow() != flow {
            return Err(format!("the receiver at {slot} is of flow {}", receiving.flow()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fabric::{PortConfig, Routes, topology};
    use laws::Path;
    use laws::fixed::{Fixed, Params};
    use units::{Bytes, Rate, Span};

    use super::super::{Context, Wire};
    use super::*;
    use crate::packet::Packet;
    use crate::setup::{FlowSpec, HostConfig};
    use crate::start::Start;

    /// A card that is never busy.
    struct Idle;

    impl Wire for Idle {
        fn idle_at(&self) -> Time {
            Time::ZERO
        }

        fn transmit(&mut self, _: Packet) {}
    }

    fn setup() -> Setup {
        let port = PortConfig::new(Rate::from_gbps(8), Span::from_us(1));
        let network = topology::single_switch(&topology::SingleSwitch { hosts: vec![(port, port); 2] }).unwrap();
        let flow = FlowSpec {
            src: HostId(0),
            dst: HostId(1),
            size: Bytes::new(100_000),
            start: Start::At(Time::ZERO),
            kind: 0,
            class: 1,
            on_ramp: false,
            coded: false,
            kept: false,
        };
        Setup {
            routes: Routes::new(&network).unwrap(),
            network,
            symmetric: false,
            flows: vec![flow],
            host: HostConfig { small_queue: Some(Bytes::new(8_192)), ..HostConfig::default() },
            causes: crate::Causes::default(),
            modules: Vec::new(),
            ties: crate::Ties::default(),
            series: crate::SeriesConfig::default(),
            seed: 0,
            stop: Time::from_ms(1),
            intra_rtt: Span::from_us(4),
        }
    }

    /// Whatever is broken is found: what says so, in a host whose flow has sent one packet.
    #[test]
    fn what_is_broken_is_found() {
        type Break = fn(&mut Hosts<Fixed>);
        let breaks: [(Break, &str); 6] = [
            (|_| {}, ""),
            (|hosts| _ = hosts.states[0].ready.pop_front(), "it is Ready and does not wait there"),
            (|hosts| _ = hosts.states[0].calendar.take(Time::NEVER), "is not in the calendar"),
            (|hosts| hosts.sender_of[0] = 7, "is looked for elsewhere"),
            (|hosts| hosts.senders.push(None), "1 senders and 0 free places of 2"),
            (|hosts| hosts.receiver_of[0] = 3, "there is no receiver at 3"),
        ];
        let setup = setup();
        let window = Params { window: Bytes::new(20_480), paced: false };
        let make_law = |_: &FlowSpec, path: &Path| Fixed::new(path, window);
        let context = Context::new(&setup, &make_law);
        for (breaks, says) in breaks {
            let mut hosts = Hosts::new(&[HostId(0), HostId(1)], &setup);
            hosts.on_local(0, Time::ZERO, &context, &mut Idle);
            breaks(&mut hosts);
            match hosts.check(Time::ZERO, HostId::index, &setup) {
                Ok(()) => assert_eq!(says, ""),
                Err((_, what)) => assert!(!says.is_empty() && what.contains(says), "{what} and not {says}"),
            }
        }
    }
}
