//! Shared buffer of a switch, and pausing of its senders (priority flow control, IEEE 802.1Qbb).

use units::{Bytes, Frac, Rate, Span};

mod earliest;
mod pool;
mod port;
mod switch;

pub use pool::reserved_bytes;
pub use port::Departure;
pub use switch::{SharedSwitch, SwitchItem, SwitchOutlet};

/// Classes of a port: 0 is control, strictly first; 1 to 7 are data, in turn.
pub const CLASSES: usize = 8;

/// A switch with one buffer that all its ports share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Switch {
    /// Buffer for all waiting packets of the switch.
    pub buffer: Bytes,
    /// Part of the buffer reserved for each ingress port and data class in use.
    pub reserve: Bytes,
    /// Limit of a class's queue at an egress port, as a multiple of the free space of the shared part. A packet that
    /// would exceed it is dropped, PFC or not. None has no such limit.
    pub egress_alpha: Option<Frac>,
    /// Pausing; without it packets that find no room are dropped.
    pub pfc: Option<Pfc>,
    /// Its ports add reports of themselves to packets that request them (INT).
    pub int: bool,
}

/// Priority flow control of a switch. Hosts and all shared-buffer switches, with PFC or without, react to pauses; switches
/// with a queue per port do not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pfc {
    /// Size of a pause frame on the wire, in bytes.
    pub frame: u32,
    /// A relay: while the other end of one of its ports pauses a class, it pauses that class at all its other ports. In
    /// addition it requests pauses like every switch, as its ingress limits require: with a relay's limits, only before
    /// its buffer would overflow. In a loop of relays a pause and its resume circulate for ever.
    pub relay: bool,
}

/// Effect of a PFC frame on its class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PfcAction {
    /// Stops the class at the port that receives the frame.
    Pause,
    /// Ends the pause.
    Resume,
}

/// Returns the headroom: bytes of a class that may still arrive over a cable after a switch has decided to pause its
/// sender. The pause frame waits for a packet that has begun and for one frame of each other class, and for its own
/// transmission; both directions take the link's delay; and the sender completes the packet that it is transmitting.
///
/// `rate` is the sender's, `back` the rate of the link that the frame takes; `packet` is the largest packet on the wire;
/// `classes` is the number of data classes. Not included: acknowledgements that accumulate in a host if its NIC is slower
/// than its arrivals.
pub fn headroom(rate: Rate, back: Rate, delay: Span, packet: u32, frame: u32, classes: u64) -> Bytes {
    let (packet, frames) = (Bytes::new(packet.into()), Bytes::new(frame.into()).times(classes));
    let until_paused = delay.times(2) + back.tx_time(packet) + back.tx_time(frames);
    // The packet that met the threshold may itself be in the headroom.
    rate.bytes_in(until_paused) + packet.times(2)
}
