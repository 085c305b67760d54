//! What an endpoint allows, wants and is told of its network.

use alloc::sync::Arc;
use core::fmt;

use laws::catalog::Kind;
use laws::{Law, Path, on_ramp};
use units::{Bytes, Rate, Span};

use crate::blocks::Coding;
use crate::identity::KeyLogger;
use crate::observe::ObserverMaker;
use crate::parameters::Parameters;
use crate::service::Service;
use crate::streams::Limits;

/// The longest that an acknowledgement waits, and what a peer may be told of it (`docs/src/transport.md`, parameter `ack_delay`).
pub(crate) const LONGEST_ACK_DELAY: Span = Span::from_ms(25);

/// Makes the law of a path from what is known of it.
pub type LawMaker = Arc<dyn Fn(&Path) -> Law + Send + Sync>;

/// Returns a maker of laws of this kind, with the defaults of all parameters.
pub fn defaults_of(kind: Kind) -> LawMaker {
    Arc::new(move |path| kind.with_defaults(path))
}

/// Settings of an endpoint, for all of its connections.
#[derive(Clone)]
pub struct Settings {
    /// What a listener offers, and a caller asks for.
    pub service: Service,
    /// Writes TLS's secrets down. Who has them can read all that crosses. None if nobody does.
    pub key_log: KeyLogger,
    /// Gives each connection somebody who watches it. None if nobody watches any.
    pub observe: Option<ObserverMaker>,
    /// A connection ends after so long a silence: 1 to 600 s; the shorter of both ends' counts.
    pub idle: Span,
    /// A caller that has heard nothing for so long asks whether the listener is there, again and again; this keeps NATs open, and
    /// tells the listener of a new address. None if it never asks.
    pub keep_alive: Option<Span>,
    /// What the peer may send on streams.
    pub limits: Limits,
    /// Bytes of one stream that may wait for acknowledgement, at most. Fewer do where the window is small.
    pub send_buffer: u64,
    /// Bytes of all streams that may wait for acknowledgement, about: while more do, a stream is given room up to 64 KiB. So what
    /// a peer does not read holds no more than this and 64 KiB a stream.
    pub send_pool: u64,
    /// The longest datagram that is taken, in bytes; 0 if none.
    pub max_datagram: u16,
    /// The longest UDP payload that is tried, and that is taken, in bytes; at least 1,200.
    pub max_packet: u16,
    /// Acknowledgements wait so long at most, up to 25 ms.
    pub ack_delay: Span,
    /// Packets that an acknowledgement waits for, at least 1.
    pub ack_every: u32,
    /// Paths at a time, 1 to 64; the smaller of both ends' counts.
    pub paths: u8,
    /// Which packets are coded, if the peer takes blocks.
    pub coding: Coding,
    /// Bytes of blocks that are kept until they are whole, at most 2^30; 0 if none are taken.
    pub coding_window: u32,
    /// Whether acknowledgements are to say when packets came.
    pub times: bool,
    /// Makes the law of each path, or with `one_law` the one for all paths.
    pub law: LawMaker,
    /// Whether one law decides for all paths of a connection, instead of one for each: it hears of all as of one path, with the least
    /// round trip of any so far as its base.
    pub one_law: bool,
    /// Holds packets at this end while the one-way delay of their path is over a threshold (On-Ramp), whatever the law says. The peer's
    /// clock is not this one's, so a delay counts from the least of the last 10 to 20 s. None if nothing is held.
    pub on_ramp: Option<on_ramp::Params>,
    /// What laws take for the rate of the narrowest link.
    pub line_rate: Rate,
    /// What laws take for the round trip inside a datacenter.
    pub intra_rtt: Span,
    /// So many bytes may leave at once that pacing would have let leave before, had the endpoint been called.
    pub burst: Bytes,
}

impl Settings {
    /// For this service, with this law for each path: streams of up to 128 MiB in flight, 10 Gb/s over 100 ms, 256 MiB together;
    /// one path. Memory is used as far as bytes wait in it.
    pub fn new(service: Service, law: LawMaker) -> Self {
        let limits =
            Limits { max_data: 256 << 20, max_stream_data: 128 << 20, max_streams_bidi: 128, max_streams_uni: 1_024 };
        Self {
            service,
            key_log: None,
            observe: None,
            idle: Span::from_s(30),
            keep_alive: Some(Span::from_s(5)),
            limits,
            send_buffer: 128 << 20,
            send_pool: 256 << 20,
            max_datagram: 65_000,
            max_packet: 1_472,
            ack_delay: Span::from_ms(1),
            ack_every: 2,
            paths: 1,
            coding: Coding::Off,
            coding_window: 16 << 20,
            times: false,
            law,
            one_law: false,
            on_ramp: None,
            line_rate: Rate::from_gbps(10),
            intra_rtt: Span::from_us(14),
            burst: Bytes::new(64 << 10),
        }
    }

    /// What the peer is told of them.
    pub(crate) fn parameters(&self) -> Parameters {
        Parameters {
            idle: (self.idle.ns() / 1_000_000).clamp(1_000, 600_000).unsigned_abs(),
            max_data: self.limits.max_data,
            max_stream_data: self.limits.max_stream_data,
            max_streams_bidi: self.limits.max_streams_bidi,
            max_streams_uni: self.limits.max_streams_uni,
            max_datagram: self.max_datagram.into(),
            max_packet: self.max_packet.clamp(crate::search::SMALLEST, 65_527).into(),
            ack_delay: (self.ack_delay.clamp(Span::ZERO, LONGEST_ACK_DELAY).ns() / 1_000).unsigned_abs(),
            paths: self.paths.clamp(1, 64).into(),
            coding_window: self.coding_window.min(1 << 30).into(),
            times: (self.times || self.on_ramp.is_some()).into(),
            ..Parameters::default()
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("service", &self.service).field("limits", &self.limits).finish_non_exhaustive()
    }
}
