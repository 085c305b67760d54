//! The router as the network of an event loop in virtual time: hosts send UDP datagrams.

use std::collections::BTreeMap;

use fabric::HostId;
use units::{Span, Time};
use virtual_time::{Datagram, HostIndex, Network};

use crate::delivery::Delivery;
use crate::packet::{Mark, UdpHeader, flip_bit, read_udp, write_udp};
use crate::packet_buffers::MAX_FRAME;
use crate::router::{NetworkOutcome, Observer, PortDeparture, Router};

/// Congestion experienced, as an ECN field.
const CE: u8 = 3;

/// A [`Router`] for UDP datagrams.
#[derive(Debug)]
pub struct UdpNetwork<O> {
    router: Router,
    /// The hosts of the event loop, in order, and their places there.
    hosts: Vec<HostId>,
    indices: BTreeMap<HostId, HostIndex>,
    /// Time that a host's NIC may have in its queue while it accepts another packet.
    nic_backlog: Span,
    /// The frame of a datagram that is sent.
    frame: Vec<u8>,
    /// Observer of departures from watched ports.
    pub departures: O,
}

/// Receiver of departures from watched ports.
pub trait DepartureObserver {
    /// A packet's last bit leaves the port of a watched link.
    fn depart(&mut self, departure: PortDeparture);
}

impl DepartureObserver for () {
    fn depart(&mut self, _: PortDeparture) {}
}

/// Collects delivered datagrams.
struct Collector<'a, O> {
    indices: &'a BTreeMap<HostId, HostIndex>,
    delivered: &'a mut Vec<virtual_time::Delivery<Datagram>>,
    departures: &'a mut O,
}

impl<O: DepartureObserver> Observer for Collector<'_, O> {
    fn deliver(&mut self, delivery: Delivery) {
        let Delivery { host, frame, headers, mark, corrupted, .. } = delivery;
        // Hosts send nothing else.
        let Some((header, payload)) = read_udp(frame, headers) else { return };
        let Some(&host) = self.indices.get(&host) else { return };
        let UdpHeader { source, destination, ecn } = header;
        let ecn = if mark == Mark::Ce { CE } else { ecn };
        let mut payload = payload.to_vec();
        if let Some(bits) = corrupted {
            // No checksum is computed in virtual time: authentication rejects the datagram.
            flip_bit(&mut payload, bits);
        }
        let packet = Datagram { source, destination, ecn, payload };
        self.delivered.push(virtual_time::Delivery { host, packet });
    }

    fn depart(&mut self, departure: PortDeparture) {
        self.departures.depart(departure);
    }
}

impl<O: DepartureObserver> UdpNetwork<O> {
    /// Creates a network. `hosts` has the network's host for each [`HostIndex`]; datagrams to other hosts are lost. A
    /// NIC accepts another packet once the transmission time of its queue is at most `nic_backlog`.
    pub fn new(router: Router, hosts: Vec<HostId>, nic_backlog: Span, departures: O) -> Self {
        let indices = (0..).zip(&hosts).map(|(index, &host)| (host, HostIndex(index))).collect();
        Self { router, hosts, indices, nic_backlog, frame: vec![0; MAX_FRAME], departures }
    }

    /// Returns the router.
    pub fn router(&mut self) -> &mut Router {
        &mut self.router
    }

    /// Ends it at this time, and returns the outcome of the network and the observer.
    pub fn finish(mut self, now: Time) -> (NetworkOutcome, O) {
        let mut delivered = Vec::new();
        self.router.advance(
            now,
            &mut Collector { indices: &self.indices, delivered: &mut delivered, departures: &mut self.departures },
        );
        (self.router.finish(), self.departures)
    }
}

impl<O: DepartureObserver> Network for UdpNetwork<O> {
    type Packet = Datagram;

    fn accepts_at(&self, host: HostIndex) -> Time {
        self.router.nic_accepts_at(self.hosts[host.index()], self.nic_backlog)
    }

    fn accept(&mut self, now: Time, host: HostIndex, datagram: Datagram) {
        let Datagram { source, destination, ecn, payload } = datagram;
        write_udp(&UdpHeader { source, destination, ecn }, &payload, &mut self.frame);
        let length = self.frame.len();
        // A packet that enters the network is delivered later.
        let mut delivered = Vec::new();
        let mut collector =
            Collector { indices: &self.indices, delivered: &mut delivered, departures: &mut self.departures };
        self.router.accept(self.hosts[host.index()], now, &mut self.frame, length, &mut collector);
        debug_assert!(delivered.is_empty(), "a packet is delivered as soon as it is sent");
    }

    fn next_event(&self) -> Time {
        self.router.next_event()
    }

    fn advance(&mut self, now: Time, delivered: &mut Vec<virtual_time::Delivery<Datagram>>) {
        self.router
            .advance(now, &mut Collector { indices: &self.indices, delivered, departures: &mut self.departures });
    }
}
