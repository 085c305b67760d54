//! Connection events for observers: packets, losses, signals to laws, paths, keys, blocks.
//!
//! [`crate::settings::Settings::observe`] supplies each connection with an [`Observer`], or none. This module does not
//! write or format anything. A connection without an observer only checks that it has none. `docs/src/qlog.md`
//! describes the files made from these events.

use alloc::sync::Arc;
use core::fmt;

use laws::{Law, LossCause};
use units::{Bytes, Rate, Span, Time};

use crate::blocks::BlockEvent;
use crate::closed::Closed;
use crate::four_tuple::FourTuple;
use crate::parameters::{OriginalDestinationId, Parameters};
use crate::service::Service;
use crate::side::Side;

/// Observer of a connection. The code that drives the connection calls it during packet processing, so it should only
/// record the event.
pub trait Observer: Send + Sync {
    /// Handles an event. `now` is the time passed to the connection; it never decreases.
    fn on_event(&self, now: Time, event: &Event);
}

/// The start of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionStart {
    /// Start time, by the clock of its endpoint.
    pub now: Time,
    /// The end that is observed.
    pub side: Side,
    /// Destination ID of the client's very first packet. It identifies the connection at both ends.
    pub original_destination_id: OriginalDestinationId,
    /// Address and port on which the handshake takes place.
    pub four_tuple: FourTuple,
    /// Service that the caller requests and this listener offers.
    pub service: Service,
}

/// Creates the observer of a connection, or none for a connection that is not observed.
pub type ObserverMaker = Arc<dyn Fn(&ConnectionStart) -> Option<Arc<dyn Observer>> + Send + Sync>;

/// Packet number space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Space {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// Packets with short headers, each path by itself.
    Data,
}

/// A packet that was sent, or that was received and opened.
#[derive(Clone, Copy, Debug)]
pub struct ObservedPacket<'a> {
    /// Packet number space.
    pub space: Space,
    /// Its path; 0 in the handshake.
    pub path: u32,
    /// Its number there.
    pub number: u64,
    /// Length of the protected packet, in bytes.
    pub len: usize,
    /// Its frames, as [`crate::frame::Frames`] reads them. They may contain secrets, such as contents and proofs.
    pub payload: &'a [u8],
    /// Set if it counts as in flight. Always false for received packets.
    pub in_flight: bool,
}

/// State of connection establishment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Establishment {
    /// TLS is complete at this end.
    Connected,
    /// The listener has admitted the client.
    Admitted,
}

/// Congestion control state of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metrics {
    /// Congestion window of its law, in bytes of frames.
    pub window: Bytes,
    /// Bytes of frames in flight under its law, on all paths that the law controls.
    pub in_flight: Bytes,
    /// Pacing rate; [`Rate::MAX`] if the law does not pace.
    pub pacing: Rate,
    /// Smoothed RTT.
    pub smoothed_rtt: Span,
    /// Minimum RTT; none before the first measurement.
    pub min_rtt: Option<Span>,
    /// The latest RTT, if one was measured with this event.
    pub latest_rtt: Option<Span>,
    /// Consecutive expirations of the timer.
    pub pto_count: u8,
}

/// Change of a path's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathChange {
    /// Validation of its address has begun.
    Probing,
    /// The address is validated, and the path carries data.
    Validated,
    /// The peer's packets arrive from another address, and its validation has begun.
    Moved,
    /// Validation of the new address failed: the path uses the former one.
    MovedBack,
    /// The path is not used any more.
    Abandoned,
}

/// Origin of new keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyCause {
    /// Derived by TLS.
    Tls,
    /// Updated by this end.
    Local,
    /// Updated by the peer.
    Remote,
}

/// A connection event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A packet was sent.
    Sent(ObservedPacket<'a>),
    /// A packet was received and opened. If there was no memory for it and the network duplicates it, this event occurs
    /// twice.
    Received(ObservedPacket<'a>),
    /// A packet was declared lost.
    Lost {
        /// Packet number space.
        space: Space,
        /// Its path; 0 in the handshake.
        path: u32,
        /// Its number there.
        number: u64,
        /// Cause of the loss.
        cause: LossCause,
    },
    /// Connection establishment has advanced.
    Progress(Establishment),
    /// The transport parameters of both ends are known.
    Parameters {
        /// Parameters of this end.
        ours: &'a Parameters,
        /// Parameters of the peer.
        theirs: &'a Parameters,
    },
    /// A path's law has processed a signal.
    Metrics {
        /// The path.
        path: u32,
        /// The resulting congestion control state.
        metrics: Metrics,
        /// Its law.
        law: &'a Law,
    },
    /// The longest UDP payload of a path has changed.
    PacketSize {
        /// The path.
        path: u32,
        /// Before, in bytes.
        old: u16,
        /// Now, in bytes.
        new: u16,
        /// Set if no longer packets are probed for the time being.
        is_done: bool,
    },
    /// A path's state has changed.
    Path {
        /// The path.
        path: u32,
        /// Address and port of the path.
        four_tuple: FourTuple,
        /// The change.
        change: PathChange,
    },
    /// New keys are in use.
    Keys {
        /// Packet number space of the keys.
        space: Space,
        /// Number of key updates.
        updates: u64,
        /// Origin of the keys.
        cause: KeyCause,
    },
    /// A coded block's state has changed.
    Block(BlockEvent),
    /// The connection is closed or closing.
    Closed(&'a Closed),
}

/// The observer of a connection, if it has one.
#[derive(Clone, Default)]
pub(crate) struct ObserverSlot(Option<Arc<dyn Observer>>);

impl fmt::Debug for ObserverSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObserverSlot").field(&self.is_on()).finish()
    }
}

impl ObserverSlot {
    pub(crate) fn new(maker: Option<&ObserverMaker>, start: &ConnectionStart) -> Self {
        Self(maker.and_then(|maker| maker(start)))
    }

    /// Returns whether the connection is observed.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Reports an event to the observer. `event` is not evaluated without one.
    #[inline(always)]
    pub(crate) fn report<'a>(&self, now: Time, event: impl FnOnce() -> Event<'a>) {
        if let Some(observer) = &self.0 {
            observer.on_event(now, &event());
        }
    }
}

/// A packet that was declared lost, as recorded by the channel's data source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostNote {
    pub(crate) subflow: u8,
    pub(crate) number: u64,
    pub(crate) cause: LossCause,
}
