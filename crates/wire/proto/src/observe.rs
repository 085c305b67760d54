//! What happens in connections, for whoever watches: packets, losses, what laws are told, paths, keys, blocks.
//!
//! [`crate::settings::Settings::observe`] gives each connection an [`Observer`], or none. Nothing here writes or formats anything,
//! and a connection without an observer only looks that there is none. `docs/src/qlog.md` describes what becomes of it in files.

use alloc::sync::Arc;
use core::fmt;

use laws::{Law, LossCause};
use units::{Bytes, Rate, Span, Time};

use crate::blocks::BlockEvent;
use crate::closed::Closed;
use crate::parameters::{FirstId, Parameters};
use crate::service::Service;
use crate::side::Side;
use crate::via::Via;

/// Whoever watches a connection. It is called by whoever drives the connection, in the middle of its work, so it should take no
/// longer than to note what it was told.
pub trait Observer: Send + Sync {
    /// Something happened. Times are those that the connection was given; they do not go back.
    fn on_event(&self, now: Time, event: &Event);
}

/// A connection that begins.
#[derive(Clone, Copy, Debug)]
pub struct Birth {
    /// When, by the clock of its endpoint.
    pub now: Time,
    /// Which end this is.
    pub side: Side,
    /// The ID to which the caller sent its very first packet: both ends know the connection by it.
    pub first_id: FirstId,
    /// Where the handshake takes place.
    pub via: Via,
    /// What the caller asks for, and this listener offers.
    pub service: Service,
}

/// Makes the observer of a connection, or none for one that nobody watches.
pub type ObserverMaker = Arc<dyn Fn(&Birth) -> Option<Arc<dyn Observer>> + Send + Sync>;

/// In which kind of packet numbers count anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Space {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// Packets with short headers, each path by itself.
    Data,
}

/// A packet that left, or that came and opened.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Which kind it is.
    pub space: Space,
    /// Its path; 0 in the handshake.
    pub path: u32,
    /// Its number there.
    pub number: u64,
    /// How long it is, sealed, in bytes.
    pub len: usize,
    /// Its frames, as [`crate::frame::Frames`] reads them. They may say what nobody else should know, such as contents and proofs.
    pub payload: &'a [u8],
    /// Whether it counts as in flight. Always false for packets that came.
    pub in_flight: bool,
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// TLS is done at this end.
    Connected,
    /// The listener has let the caller in.
    Admitted,
}

/// What a path sends by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metrics {
    /// What its law permits to be in flight, in bytes of frames.
    pub window: Bytes,
    /// What is in flight under its law, on all paths that the law decides for, in bytes of frames.
    pub in_flight: Bytes,
    /// How fast it may leave; [`Rate::MAX`] if the law does not pace.
    pub pacing: Rate,
    /// The smoothed round trip.
    pub smoothed_rtt: Span,
    /// The shortest round trip; none before one was measured.
    pub least_rtt: Option<Span>,
    /// The round trip that was measured just now, if one was.
    pub latest_rtt: Option<Span>,
    /// How often in a row the timer has struck.
    pub strikes: u8,
}

/// What becomes of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathChange {
    /// Its address is asked for a proof.
    Probing,
    /// The address is proved, and the path carries data.
    Validated,
    /// The peer's packets come from another address, which is asked for a proof.
    Moved,
    /// The new address was not proved: the path is where it was.
    MovedBack,
    /// It is not used any more.
    Abandoned,
}

/// Who has caused new keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyCause {
    /// TLS gave them.
    Tls,
    /// This end has updated them.
    Local,
    /// The peer has.
    Remote,
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A packet left.
    Sent(Packet<'a>),
    /// A packet came and opened. If there was no room for it and the network doubles it, this is said twice.
    Received(Packet<'a>),
    /// A packet is held for lost.
    Lost {
        /// Which kind it is.
        space: Space,
        /// Its path; 0 in the handshake.
        path: u32,
        /// Its number there.
        number: u64,
        /// Why.
        cause: LossCause,
    },
    /// How far the connection is.
    Progress(Progress),
    /// What both ends have told each other.
    Parameters {
        /// What this end has said.
        ours: &'a Parameters,
        /// What the peer has said.
        theirs: &'a Parameters,
    },
    /// A path's law has been told something, and this is what holds now.
    Metrics {
        /// The path.
        path: u32,
        /// What it sends by.
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
        /// Whether nothing longer is tried for the time being.
        is_done: bool,
    },
    /// Something becomes of a path.
    Path {
        /// The path.
        path: u32,
        /// Where it goes.
        via: Via,
        /// What becomes of it.
        change: PathChange,
    },
    /// New keys hold.
    Keys {
        /// Of which kind of packet.
        space: Space,
        /// How often they were updated.
        updates: u64,
        /// Who has caused it.
        cause: KeyCause,
    },
    /// Something happened to a coded block.
    Block(BlockEvent),
    /// The connection is over, or about to be.
    Closed(&'a Closed),
}

/// The observer of a connection, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Watch(Option<Arc<dyn Observer>>);

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.is_on()).finish()
    }
}

impl Watch {
    pub(crate) fn new(maker: Option<&ObserverMaker>, birth: &Birth) -> Self {
        Self(maker.and_then(|maker| maker(birth)))
    }

    /// Whether anybody watches.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Tells whoever watches. `event` is not made if nobody does.
    #[inline(always)]
    pub(crate) fn tell<'a>(&self, now: Time, event: impl FnOnce() -> Event<'a>) {
        if let Some(observer) = &self.0 {
            observer.on_event(now, &event());
        }
    }
}

/// A packet that is held for lost, as the work of a channel notes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostNote {
    pub(crate) subflow: u8,
    pub(crate) number: u64,
    pub(crate) cause: LossCause,
}
