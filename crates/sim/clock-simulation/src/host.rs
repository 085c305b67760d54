//! A member of the mesh with its clock and its timestamps.

use std::collections::VecDeque;

use clocks::{Event, Node, Outgoing, Reading};
use units::{Span, Time};
use virtual_time::{Host, HostIndex};

use crate::network::Packet;
use crate::oscillator::Oscillator;
use crate::random::Random;

/// Delay between a packet's time at the wire and its timestamp: a constant and an exponential part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimestampNoise {
    /// Constant part.
    pub constant: Span,
    /// Mean of the exponential part.
    pub mean: Span,
}

impl Default for TimestampNoise {
    /// The distribution of kernel timestamps over veth: from transmit to receive 240 ns at the median, 290 ns at the 99th
    /// percentile, half of it at each end.
    fn default() -> Self {
        Self { constant: Span::from_ns(112), mean: Span::from_ns(9) }
    }
}

/// Direction of a packet at a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PacketDirection {
    Sent,
    Received,
}

/// A host.
#[derive(Debug)]
pub(crate) struct ClockHost {
    pub(crate) index: HostIndex,
    pub(crate) node: Node,
    pub(crate) clock: Oscillator,
    noise: TimestampNoise,
    random: Random,
    /// A liar's error for each neighbour, in nanoseconds; 0 for honest hosts.
    lie_ns: i64,
    absence: Option<Absence>,
    sending: VecDeque<Outgoing>,
    pub(crate) events: Vec<(Time, Event)>,
}

/// Parts of a [`ClockHost`].
pub(crate) struct HostParts {
    pub(crate) index: HostIndex,
    pub(crate) node: Node,
    pub(crate) clock: Oscillator,
    pub(crate) noise: TimestampNoise,
    pub(crate) seed: u64,
    pub(crate) lie_ns: i64,
    pub(crate) absence: Option<Absence>,
}

/// A time in which a member is cut off from the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absence {
    /// Index of the member.
    pub member: u32,
    /// Start.
    pub from: Time,
    /// End.
    pub until: Time,
}

impl ClockHost {
    pub(crate) fn new(parts: HostParts) -> Self {
        let HostParts { index, node, clock, noise, seed, lie_ns, absence } = parts;
        Self {
            index,
            node,
            clock,
            noise,
            random: Random::new(seed),
            lie_ns,
            absence,
            sending: VecDeque::new(),
            events: Vec::new(),
        }
    }

    /// Returns the timestamp of a packet that is at the host's end of the wire at `now`.
    fn stamp(&mut self, now: Time, other: HostIndex, direction: PacketDirection) -> Reading {
        let noise =
            Span::from_unsigned_ps(self.random.exponential(self.noise.mean.unsigned_ps())) + self.noise.constant;
        let ns = if direction == PacketDirection::Received { noise.ns() } else { -noise.ns() };
        let reading = self.clock.read(now).after(ns);
        if self.lie_ns == 0 {
            return reading;
        }
        reading.after(Random::new(u64::from(other.0)).below(self.lie_ns.unsigned_abs()) as i64)
    }

    /// Returns whether the host is connected at a time.
    pub(crate) fn is_connected(&self, now: Time) -> bool {
        self.absence.is_none_or(|absence| now < absence.from || now >= absence.until)
    }

    fn collect(&mut self, now: Time) {
        while let Some(outgoing) = self.node.poll_outgoing() {
            self.sending.push_back(outgoing);
        }
        while let Some(event) = self.node.poll_event() {
            self.events.push((now, event));
        }
    }
}

impl Host for ClockHost {
    type Packet = Packet;

    fn receive(&mut self, now: Time, packet: Packet) {
        if !self.is_connected(now) {
            return;
        }
        let received = self.stamp(now, packet.from, PacketDirection::Received);
        self.node.receive(now, received, &packet.message);
        self.collect(now);
    }

    fn wake(&mut self, now: Time) {
        if self.node.next_wake() <= now {
            let clock = self.clock.read(now);
            self.node.wake(now, clock);
        }
        self.collect(now);
    }

    fn poll_send(&mut self, now: Time) -> Option<Packet> {
        let Outgoing { to, message, departure } = self.sending.pop_front()?;
        let to = HostIndex(u32::from(to.0));
        if let Some(departure) = departure {
            let at = self.stamp(now, to, PacketDirection::Sent);
            self.node.on_sent(departure, at);
        }
        if !self.is_connected(now) {
            return self.poll_send(now);
        }
        Some(Packet { from: self.index, to, message })
    }

    fn next_wake(&mut self) -> Time {
        self.node.next_wake()
    }
}
