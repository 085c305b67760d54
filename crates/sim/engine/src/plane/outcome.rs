//! Results of a partition's data plane: counters of links and switches, samples, and checks of its state.

use experiment::{LinkOutcome, PauseSample, PortSample, Setup, SwitchOutcome, SwitchSample};
use fabric::{LinkId, NodeId};
use units::{Bytes, Time};

use super::Plane;
use crate::links::Egress;
use crate::shared_buffer::SharedBufferNode;

impl Plane {
    /// Checks a node's links and ports once it has run up to `now`. Returns how many entries it examined.
    ///
    /// # Errors
    /// A description of the inconsistency.
    pub(crate) fn check(&self, node: usize, now: Time, setup: &Setup) -> Result<usize, String> {
        let (first, past) = self.inputs[node];
        let mut examined = 1;
        for fifo in first..past {
            let checked = self.links.fifos.check(fifo as usize, now);
            examined += checked.map_err(|error| format!("input {}: {error}", fifo - first))?;
        }
        for link in setup.network.links_out(NodeId(self.first_node + node as u32)) {
            let local = (link - self.first_link) as usize;
            if let Some(place) = self.extended_of[local] {
                let checked = self.extended[place as usize].extras.check();
                examined += checked.map_err(|error| format!("link {link}: {error}"))?;
            }
        }
        let shared = self.shared_of[node].map(|place| &self.shared[place as usize]);
        Ok(examined + shared.map_or(Ok(0), SharedBufferNode::check)?)
    }

    /// The links' outcomes, in order, from the partition's first link on.
    pub(crate) fn outcomes<'a>(&'a self, ended: Time, setup: &'a Setup) -> impl Iterator<Item = LinkOutcome> + 'a {
        self.links.egress.iter().enumerate().map(move |(link, Egress { port, .. })| {
            let from = setup.network.links()[self.first_link as usize + link].from;
            let mut outcome = LinkOutcome {
                packets: port.packets(),
                bytes: port.bytes(),
                drops: port.drops(),
                marks: port.marks(),
                lost: self.links.loss_counters.links[link],
                max_queue: port.max_queue(&setup.network.params()[port.params as usize]),
                ..LinkOutcome::default()
            };
            if let Some(place) = self.extended_of[link] {
                let extras = &self.extended[place as usize].extras;
                let waits = extras.admitted(&setup.network.params()[port.params as usize]);
                outcome.packets += waits.packets;
                outcome.bytes += Bytes::new(waits.bytes);
                outcome.marks += waits.marks;
                outcome.impaired = extras.impaired_packets();
                outcome.losses = extras.losses() + outcome.impaired.corrupted;
                outcome.unscheduled_drops = extras.unscheduled_drops;
                outcome.credit_drops = extras.credit_drops;
                outcome.trims = extras.trims;
            }
            if let Some(place) = self.shared_of[(from.0 - self.first_node) as usize] {
                let shared = &self.shared[place as usize];
                (outcome.losses, outcome.max_queue, outcome.pauses, outcome.paused) = shared.link(link, ended);
            }
            outcome.losses += self.links.failing.get(&(link as u32)).map_or(0, |failing| failing.lost);
            outcome
        })
    }

    /// Data packets that were lost, by flow.
    pub(crate) fn lost_of(&self) -> &[u32] {
        &self.links.loss_counters.flows
    }

    /// Copies of data packets that links added, by flow; empty if none did.
    pub(crate) fn copies_of(&self) -> &[u32] {
        &self.links.loss_counters.copies
    }

    /// Data packets on links and in switches, without those that are lost already.
    pub(crate) fn data_in_flight(&self) -> u64 {
        let waiting = self.extended.iter().flat_map(|extended| extended.extras.waiting());
        let shared = self.shared.iter().flat_map(SharedBufferNode::waiting);
        let packets = self.links.fifos.packets().chain(waiting).chain(shared);
        packets.filter(|packet| packet.is_data()).count() as u64
    }

    /// Returns the outcomes of switches that share their buffer.
    pub(crate) fn switches(&self) -> impl Iterator<Item = SwitchOutcome> + '_ {
        self.shared.iter().map(SharedBufferNode::outcome)
    }

    /// Returns the pauses of sampled ports, up to `end`.
    pub(crate) fn kept_pauses<'a>(&'a self, end: Time, setup: &'a Setup) -> impl Iterator<Item = PauseSample> + 'a {
        self.shared.iter().flat_map(move |shared| shared.kept_pauses(end, setup))
    }

    /// Ports that wait for the other end and make senders wait in turn: (port, port of the senders' cable, class).
    pub(crate) fn held_back(&self, setup: &Setup) -> Vec<(LinkId, LinkId, u8)> {
        self.shared.iter().flat_map(|shared| shared.held_back(setup)).collect()
    }

    /// Samples every chosen port and switch up to the end of the run, and returns all samples.
    pub(crate) fn finish(&mut self, end: Time, setup: &Setup) -> (Vec<PortSample>, Vec<SwitchSample>) {
        for place in 0..self.extended.len() {
            self.sample(self.extended[place].link as usize, end, setup);
        }
        for node in 0..self.shared_of.len() {
            if let Some(place) = self.shared_of[node] {
                let (switch, mut context) = self.around(node, place as usize, end, setup);
                switch.finish(end, &mut context);
            }
        }
        (std::mem::take(&mut self.samples), std::mem::take(&mut self.switch_samples))
    }
}
