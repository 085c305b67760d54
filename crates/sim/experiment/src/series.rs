//! Sampled series. Sampling costs nothing where it is off.

use fabric::{LinkId, NodeId};
use units::{Bytes, Rate, Span, Time};

use crate::start::FlowId;

/// A switch's shared buffer at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchSample {
    /// Time of the sample.
    pub time: Time,
    /// The switch.
    pub node: NodeId,
    /// Bytes that wait in it.
    pub buffer: Bytes,
}

/// A port's queues at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortSample {
    /// Time of the sample.
    pub time: Time,
    /// The port.
    pub link: LinkId,
    /// Bytes in the real queue.
    pub queue: Bytes,
    /// Bytes in the phantom queue; 0 where there is none.
    pub phantom: Bytes,
    /// Bytes that arrived over this port's cable and wait in the switch; 0 if it has no shared buffer.
    pub ingress: Bytes,
    /// LSCC's pseudo queue; 0 where there is none.
    pub pseudo: Bytes,
    /// The rate that LSCC's far end last fed back; [`Rate::MAX`] where there is none.
    pub feedback: Rate,
}

/// A time in which the other end of a port paused at least one of its classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PauseSample {
    /// The port.
    pub link: LinkId,
    /// Start of the pause.
    pub from: Time,
    /// The time at which all classes ran again, or the end of the run.
    pub until: Time,
}

/// A flow at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowSample {
    /// Time of the sample.
    pub time: Time,
    /// The flow.
    pub flow: FlowId,
    /// Payload sent since the flow began, retransmissions included.
    pub sent: Bytes,
    /// Payload acknowledged since the flow began.
    pub delivered: Bytes,
    /// The window that its law permits; where each subflow has a law, their sum.
    pub window: Bytes,
    /// The smoothed round trip.
    pub rtt: Span,
    /// The law's own state by name; where each subflow has a law, that of the first.
    pub trace: Vec<(&'static str, i64)>,
}
