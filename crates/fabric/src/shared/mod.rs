//! How a switch shares one buffer among its ports, and when it pauses who sends to it (priority flow control,
//! IEEE 802.1Qbb).

use units::{Bytes, Frac, Rate, Span};

mod earliest;
mod pool;
mod switch;

pub use pool::kept;
pub use switch::{Departure, Framed, Outlet, SharedSwitch};

/// Classes of a port: 0 is control, strictly first; 1 to 7 are data, in turn.
pub const CLASSES: usize = 8;

/// A switch whose ports share one buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// All packets that wait in it lie here.
    pub buffer: Bytes,
    /// Of that, kept for each ingress port and data class.
    pub reserve: Bytes,
    /// A packet finds no room where its egress queue holds this many times what is left of the shared part; none has
    /// no such limit.
    pub egress_alpha: Option<Frac>,
    /// Pausing; without it packets that find no room are dropped.
    pub pfc: Option<Pfc>,
    /// Whether its ports report themselves to packets that ask (INT).
    pub int: bool,
}

/// Priority flow control of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pfc {
    /// Size of a pause frame on the wire, in bytes.
    pub frame: u32,
    /// A relay: it passes on the pauses and resumes that it receives to all its other ports, and asks for none itself
    /// before its buffer would overflow.
    pub relay: bool,
}

/// What packets that came over one cable may hold of the shared buffer of the switch at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gate {
    /// Over this they are not let in any more, or, with PFC, their sender is paused.
    pub off: Limit,
    /// The sender resumes when they hold this much less than `off`, or nothing.
    pub hysteresis: Bytes,
    /// Room beside the shared part for what arrives after a pause was sent, for each data class in use.
    pub headroom: Bytes,
}

/// A threshold of a shared buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// So many bytes.
    Bytes(Bytes),
    /// So many times what is left of the shared part (a dynamic threshold).
    Alpha(Frac),
}

impl Default for Gate {
    fn default() -> Self {
        Self { off: Limit::Alpha(Frac::ratio(1, 8)), hysteresis: Bytes::new(3_072), headroom: Bytes::ZERO }
    }
}

/// What may still arrive over a cable after a switch has decided to pause its sender: the pause frame waits for a packet
/// that has begun and takes its time, both ways take the link's delay, and the sender ends the packet that it has begun.
///
/// `rate` is the sender's, `back` the rate of the link that the frame takes; `packet` is the largest packet on the wire.
pub fn headroom(rate: Rate, back: Rate, delay: Span, packet: u32, frame: u32) -> Bytes {
    let packet = Bytes::new(packet.into());
    let until_paused = delay.times(2) + back.time_for(packet) + back.time_for(Bytes::new(frame.into()));
    // The packet that met the threshold may lie in the headroom itself.
    rate.bytes_in(until_paused) + packet.times(2)
}
