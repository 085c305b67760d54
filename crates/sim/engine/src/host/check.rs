//! Consistency checks of a partition's hosts: each flow waits in the queue that its state names, and the calendar has
//! the entries that it requires.

use std::cmp::Reverse;

use experiment::Setup;
use fabric::HostId;
use flow::HostShim;
use laws::ControlLaw;
use units::Time;

use super::calendar::{Due, FlowSide};
use super::receiving::{ReceiverState, Receiving};
use super::run_queue::RunQueueEntry;
use super::sending::{Active, SendQueue};
use super::{HostState, PartitionHosts};

/// The queues of one host's flows, and its calendar entries: sorted, so that each of its flows is looked up in
/// logarithmic time.
struct HostQueues {
    ready: Vec<RunQueueEntry>,
    paced: Vec<RunQueueEntry>,
    parked: Vec<RunQueueEntry>,
    calendar: Vec<(Time, Due)>,
}

impl HostQueues {
    fn of(state: &HostState) -> Self {
        let sorted = |turns: &mut dyn Iterator<Item = RunQueueEntry>| {
            let mut turns: Vec<RunQueueEntry> = turns.collect();
            turns.sort_unstable();
            turns
        };
        let parked = state.pauses.iter().flat_map(|pauses| pauses.parked());
        Self {
            ready: sorted(&mut state.ready.iter().copied()),
            paced: sorted(&mut state.paced.iter().map(|Reverse((_, flow, slot))| (*slot, *flow))),
            parked: sorted(&mut parked.copied()),
            calendar: state.calendar.remembered(),
        }
    }

    fn has_entry(&self, time: Time, due: Due) -> bool {
        self.calendar.binary_search(&(time, due)).is_ok()
    }
}

impl<L: ControlLaw> PartitionHosts<L> {
    /// Checks the state of all hosts once they have run up to `now`; `local` returns the number here of a host of the
    /// network. Returns the number of entries examined.
    ///
    /// # Errors
    /// The number of the host with an error, and a description.
    pub(crate) fn check(
        &self,
        now: Time,
        local: impl Fn(HostId) -> usize,
        setup: &Setup,
    ) -> Result<usize, (usize, String)> {
        let mut examined = self.senders.len() + self.receivers.len();
        for (host, state) in self.states.iter().enumerate() {
            examined += state.calendar.check(now).map_err(|error| (host, error))?;
        }
        let waiting: Vec<HostQueues> = self.states.iter().map(HostQueues::of).collect();
        examined += waiting.iter().map(|it| it.ready.len() + it.paced.len() + it.parked.len()).sum::<usize>();
        for (slot, active) in (0..).zip(&self.senders) {
            let Some(active) = active else { continue };
            let host = local(setup.flows[active.flow as usize].src);
            let checked = self.check_sender(&waiting[host], slot, active);
            examined += checked.map_err(|error| (host, format!("flow {}: {error}", active.flow)))?;
        }
        for (slot, receiving) in (0..).zip(&self.receivers) {
            let Some(receiving) = receiving else { continue };
            let flow = receiving.flow();
            let host = local(setup.flows[flow as usize].dst);
            let checked = self.check_receiver(&waiting[host], slot, receiving);
            checked.map_err(|error| (host, format!("flow {flow}: {error}")))?;
        }
        for (active, free, slots, label) in [
            (self.senders.iter().flatten().count(), self.free_senders.len(), self.senders.len(), "senders"),
            (self.receivers.iter().flatten().count(), self.free_receivers.len(), self.receivers.len(), "receivers"),
        ] {
            if active + free != slots {
                return Err((0, format!("{active} {label} and {free} free slots of {slots}")));
            }
        }
        let active = self.senders.iter().flatten().count() as u64;
        if active > self.open {
            return Err((0, format!("{active} senders, {} open", self.open)));
        }
        Ok(examined)
    }

    /// Checks that each flow's ends are where they are looked for. Takes time for every flow of the run, so it is for the end.
    ///
    /// # Errors
    /// As [`PartitionHosts::check`].
    pub(crate) fn check_ends(&self, local: impl Fn(HostId) -> usize, setup: &Setup) -> Result<(), (usize, String)> {
        for (flow, (&sender, &receiver)) in (0u32..).zip(self.sender_of.iter().zip(&self.receiver_of)) {
            let spec = &setup.flows[flow as usize];
            let sends = self.senders.get(sender.position()).and_then(Option::as_ref);
            if let Some(slot) = sender.get()
                && sends.is_none_or(|active| active.flow != flow)
            {
                return Err((local(spec.src), format!("flow {flow}: there is no sender at {slot}")));
            }
            if let ReceiverState::Open(slot) = receiver.state()
                && self.receivers.get(slot as usize).and_then(Option::as_ref).is_none_or(|it| it.flow() != flow)
            {
                return Err((local(spec.dst), format!("flow {flow}: there is no receiver at {slot}")));
            }
        }
        Ok(())
    }

    fn check_sender(&self, waiting: &HostQueues, slot: u32, active: &Active<L>) -> Result<usize, String> {
        if self.sender_of[active.flow as usize].get() != Some(slot) {
            return Err(format!("its sender is at {slot} and is looked for elsewhere"));
        }
        let mut examined = active.sender.check()?;
        let turn = (slot, active.flow);
        let waits = match active.queued {
            SendQueue::Idle => true,
            SendQueue::Runnable | SendQueue::Confirmed => waiting.ready.binary_search(&turn).is_ok(),
            SendQueue::Paced => waiting.paced.binary_search(&turn).is_ok(),
            SendQueue::PfcPaused => waiting.parked.binary_search(&turn).is_ok(),
        };
        if !waits {
            return Err(format!("it is {:?} and does not wait there", active.queued));
        }
        if !waiting.has_entry(active.armed, Due::Timer(active.flow)) {
            return Err(format!("its timer of {:?} is not in the calendar", active.armed));
        }
        if let Some(at) = &active.shim {
            examined += at.host_shim.as_ref().map_or(Ok(0), HostShim::check)?;
            if at.scheduled_at.is_set()
                && !waiting.has_entry(at.scheduled_at, Due::Credits(active.flow, FlowSide::Sender))
            {
                return Err(format!("its credits' time of {:?} is not in the calendar", at.scheduled_at));
            }
        }
        Ok(examined)
    }

    fn check_receiver(&self, waiting: &HostQueues, slot: u32, receiving: &Receiving) -> Result<(), String> {
        if self.receiver_of[receiving.flow() as usize].state() != ReceiverState::Open(slot) {
            return Err(format!("its receiver is at {slot} and is looked for elsewhere"));
        }
        let missing = receiving
            .calendar_entries()
            .into_iter()
            .find(|&(time, due)| time.is_set() && !waiting.has_entry(time, due));
        match missing {
            Some((time, due)) => Err(format!("{due:?} at {time:?} is not in the calendar")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::receiving::ReceiverSlot;
    use super::super::{Context, Nic};
    use super::*;
    use crate::optional_index::OptionalIndex;
    use crate::packet::Packet;
    use experiment::{FlowSpec, HostConfig, Start};
    use fabric::{PortConfig, Routes, topology};
    use laws::PathInfo;
    use laws::fixed::{Fixed, Params};
    use units::{Bytes, Rate, Span};

    /// A NIC that is never busy.
    struct Idle;

    impl Nic for Idle {
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
            dependencies: experiment::Dependencies::default(),
            modules: Vec::new(),
            ties: experiment::TieBreak::default(),
            series: experiment::SeriesConfig::default(),
            seed: 0,
            stop: Time::from_ms(1),
            intra_rtt: Span::from_us(4),
        }
    }

    /// Each broken invariant of a host with one sent packet is detected.
    #[test]
    fn check_finds_each_broken_invariant() {
        type Break = fn(&mut PartitionHosts<Fixed>);
        let breaks: [(Break, &str); 7] = [
            (|_| {}, ""),
            (|hosts| _ = hosts.states[0].ready.pop_front(), "it is Runnable and does not wait there"),
            (|hosts| _ = hosts.states[0].calendar.take(Time::NEVER), "is not in the calendar"),
            (|hosts| hosts.sender_of[0] = OptionalIndex::some(7), "is looked for elsewhere"),
            (|hosts| hosts.senders.push(None), "1 senders and 0 free slots of 2"),
            (|hosts| hosts.receivers.push(None), "0 receivers and 0 free slots of 1"),
            (|hosts| hosts.receiver_of[0] = ReceiverSlot::open(3), "there is no receiver at 3"),
        ];
        let setup = setup();
        let window = Params { window: Bytes::new(20_480), paced: false };
        let make_law = |_: &FlowSpec, path: &PathInfo| Fixed::new(path, window);
        let context = Context::new(&setup, &make_law);
        for (breaks, expected) in breaks {
            let mut hosts = PartitionHosts::new(&[HostId(0), HostId(1)], &setup);
            hosts.on_local(0, Time::ZERO, &context, &mut Idle);
            breaks(&mut hosts);
            let checked = hosts.check(Time::ZERO, HostId::index, &setup);
            match checked.and_then(|_| hosts.check_ends(HostId::index, &setup)) {
                Ok(()) => assert_eq!(expected, ""),
                Err((_, what)) => assert!(!expected.is_empty() && what.contains(expected), "{what} and not {expected}"),
            }
        }
    }
}
