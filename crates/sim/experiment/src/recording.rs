//! The log of a recorded run: packets of some flows at every node, their losses, the conditions that their senders waited for,
//! and the use of some links.

use std::collections::BTreeMap;

use fabric::{DropCause, LinkId};
use laws::LawActions;
use units::{Bytes, Time};

use crate::start::FlowId;

/// The flows and links to record.
#[derive(Clone, Default, Debug)]
pub struct RecordConfig {
    /// Flows with logged packets and senders.
    pub flows: Vec<FlowId>,
    /// Times of links for which usage is counted by flow.
    pub spans: Vec<LinkSpan>,
}

/// A time of a link. Spans of one link may overlap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkSpan {
    /// The link.
    pub link: LinkId,
    /// Its beginning.
    pub start: Time,
    /// Its end.
    pub end: Time,
    /// The sum that its use is added to.
    pub tag: u32,
}

/// The log of a run.
#[derive(Clone, Default, Debug)]
pub struct Recording {
    /// The logs of [`RecordConfig::flows`], in that order.
    pub flows: Vec<FlowLog>,
    /// By tag and flow: picoseconds in spans of the tag in which the link sent packets of the flow, or those that answer them.
    pub uses: BTreeMap<LinkUse, u64>,
}

/// The sum of one flow's packets in the spans of a tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkUse {
    /// [`LinkSpan::tag`].
    pub tag: u32,
    /// The flow.
    pub flow: FlowId,
}

/// The log of a flow. All lists are in order of time.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FlowLog {
    /// The flow's number.
    pub flow: u32,
    /// Arrivals of its packets at nodes.
    pub arrivals: Vec<PacketArrival>,
    /// Packets that its hosts handed to their NICs.
    pub departures: Vec<PacketDeparture>,
    /// Packets that were lost.
    pub losses: Vec<PacketLoss>,
    /// Changes of its sender.
    pub sender: Vec<SenderEvent>,
}

/// A packet of a flow, by the fields that distinguish it from the flow's others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PacketId {
    /// Its kind.
    pub kind: PacketKind,
    /// Its number; of an answer, that of the packet that it answers.
    pub seq: u32,
    /// The transmission of that packet; 0 of signals.
    pub attempt: u8,
}

/// Kinds of packets of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PacketKind {
    /// Data.
    Data,
    /// Data with a payload that was trimmed by a switch.
    Trimmed,
    /// An acknowledgement.
    Ack,
    /// A request to send again.
    Nack,
    /// A credit.
    Credit,
    /// Another packet, by the number of its kind.
    Signal(u8),
}

/// A packet's last bit reaches the node that a link leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketArrival {
    /// The time.
    pub time: Time,
    /// The link.
    pub link: LinkId,
    /// The packet.
    pub packet: PacketId,
    /// Bytes on the wire.
    pub size: u16,
}

/// A host hands a packet to its NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketDeparture {
    /// The time.
    pub time: Time,
    /// The host's link.
    pub link: LinkId,
    /// The packet.
    pub packet: PacketId,
}

/// A packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketLoss {
    /// The time at which it arrived at the port, or left it.
    pub time: Time,
    /// The port's link.
    pub link: LinkId,
    /// The packet.
    pub packet: PacketId,
    /// The cause of the loss.
    pub cause: DropCause,
}

/// A sender has received something, or has acted, or its state has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderEvent {
    /// The time.
    pub time: Time,
    /// The packet that the transport received; none of timers and of sends.
    pub trigger: Option<PacketId>,
    /// The packet that was handed to the NIC.
    pub sent: Option<PacketId>,
    /// The sender afterwards; none once its flow is complete.
    pub view: Option<SenderView>,
}

/// The state of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderView {
    /// Condition that its next packet waits for.
    pub waits: SenderWait,
    /// The window.
    pub window: Bytes,
    /// Payload acknowledged.
    pub delivered: Bytes,
    /// Retransmission timeouts so far.
    pub timeouts: u32,
    /// Packets that were declared lost and were sent again so far.
    pub retransmits: u64,
    /// Actions of the law so far.
    pub actions: LawActions,
}

/// Condition that a sender's next packet waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderWait {
    /// The NIC, or other flows of the host.
    Nic,
    /// Its class is paused at the NIC.
    Pause,
    /// The pacer.
    Pacer {
        /// The time at which it may leave.
        until: Time,
    },
    /// The hold at the edge (On-Ramp).
    Hold {
        /// The time at which it may leave.
        until: Time,
    },
    /// Credits.
    Credit,
    /// The window.
    Window,
    /// All has been sent.
    Acks,
}

impl PacketKind {
    /// Returns whether it is neither data nor an answer to data: a credit, or another signal.
    pub const fn is_signal(self) -> bool {
        // Without a wildcard: a new kind must be placed here.
        match self {
            Self::Data | Self::Trimmed | Self::Ack | Self::Nack => false,
            Self::Credit | Self::Signal(_) => true,
        }
    }
}

impl PacketId {
    /// Returns true if it is a packet of the receiver that answers a data packet.
    pub fn is_reply_to_data(&self) -> bool {
        matches!(self.kind, PacketKind::Ack | PacketKind::Nack)
    }

    /// Returns the data packet that an acknowledgement refers to.
    #[must_use]
    pub fn acked_packet(&self) -> Self {
        Self { kind: PacketKind::Data, ..*self }
    }

    /// Returns true if it is a credit.
    pub fn is_credit(&self) -> bool {
        self.kind == PacketKind::Credit
    }
}

impl Recording {
    /// Adds the log of another partition.
    pub fn merge(&mut self, other: Self) {
        if self.flows.is_empty() {
            self.flows = other.flows;
        } else {
            for (all, mut log) in self.flows.iter_mut().zip(other.flows) {
                all.arrivals.append(&mut log.arrivals);
                all.departures.append(&mut log.departures);
                all.losses.append(&mut log.losses);
                all.sender.append(&mut log.sender);
            }
        }
        for (sum, time) in other.uses {
            *self.uses.entry(sum).or_default() += time;
        }
    }

    /// Puts all lists in order of time.
    pub fn sort(&mut self) {
        for log in &mut self.flows {
            log.arrivals.sort_by_key(|it| it.time);
            log.departures.sort_by_key(|it| it.time);
            log.losses.sort_by_key(|it| it.time);
            log.sender.sort_by_key(|it| it.time);
        }
    }
}
