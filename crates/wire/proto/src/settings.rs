//! Settings of an endpoint: its limits and requests, and its parameters of the network.

use alloc::sync::Arc;
use core::fmt;

use laws::catalog::LawKind;
use laws::{Law, PathInfo, on_ramp};
use units::{Bytes, Rate, Span};

use crate::blocks::CodingPolicy;
use crate::identity::KeyLogger;
use crate::observe::ObserverMaker;
use crate::parameters::Parameters;
use crate::service::Service;
use crate::streams::Limits;

/// The maximum acknowledgement delay, which also bounds the transport parameter `ack_delay` (`docs/src/transport.md`).
pub(crate) const MAX_ACK_DELAY: Span = Span::from_ms(25);

/// Creates the law of a path from the path's known properties.
pub type LawMaker = Arc<dyn Fn(&PathInfo) -> Law + Send + Sync>;

/// Returns a maker of laws of this kind, with the defaults of all parameters.
pub fn defaults_of(kind: LawKind) -> LawMaker {
    Arc::new(move |path| kind.with_defaults(path))
}

/// Settings of an endpoint, for all of its connections.
#[derive(Clone)]
pub struct Settings {
    /// Service that a listener offers and a client requests.
    pub service: Service,
    /// Logger for TLS secrets. Their holder can read all traffic. None if they are not logged.
    pub key_log: KeyLogger,
    /// Supplies each connection with an observer. None if no connection is observed.
    pub observe: Option<ObserverMaker>,
    /// Idle timeout: 1 to 600 s. The shorter one of both ends applies.
    pub idle: Span,
    /// Time without received packets after which a client sends a keep-alive, repeatedly. It keeps NAT bindings open
    /// and notifies the listener of a new address. None for no keep-alives.
    pub keep_alive: Option<Span>,
    /// Flow control limits for the peer.
    pub limits: Limits,
    /// Maximum bytes of one stream that await acknowledgement. The limit is lower while the window is small.
    pub send_buffer: u64,
    /// Approximate limit of the bytes of all streams that await acknowledgement. Above it, a stream may use up to 64
    /// KiB. So unread data of a peer occupies at most this and 64 KiB a stream.
    pub send_pool: u64,
    /// The longest datagram that is accepted, in bytes; 0 if none.
    pub max_datagram: u16,
    /// The longest UDP payload that is probed and accepted, in bytes; at least 484. Below 1,200, packets with data have
    /// this size from the beginning; handshakes and path validation need 1,200 all the same (RFC 9000 §14.1).
    pub max_packet: u16,
    /// Maximum acknowledgement delay, up to 25 ms.
    pub ack_delay: Span,
    /// Number of packets after which this end sends an acknowledgement, at least 1. The peer is not notified, and the
    /// handshake has its own.
    pub ack_every: u32,
    /// Maximum number of simultaneous paths, 1 to 64. The smaller one of both ends applies.
    pub paths: u8,
    /// Packets to be coded, if the peer accepts blocks.
    pub coding: CodingPolicy,
    /// Bytes of incomplete blocks that are stored, at most 2^30; 0 if no blocks are accepted.
    pub coding_window: u32,
    /// Request receive timestamps in ACKs.
    pub times: bool,
    /// Creates the law of each path, or with `one_law` the one for all paths.
    pub law: LawMaker,
    /// Use one law for all paths of a connection instead of one for each. It receives the signals of all paths as those
    /// of one path, with the minimum RTT over all paths so far as its base RTT.
    pub one_law: bool,
    /// Pauses sending at this end while the one-way delay of a path exceeds a threshold (On-Ramp), regardless of the
    /// law. Clocks are not synchronised with the peer's, so the delay is relative to the minimum of the last 10 to 20
    /// s. None for no On-Ramp.
    pub on_ramp: Option<on_ramp::OnRampParams>,
    /// Rate of the bottleneck link, as assumed by laws.
    pub line_rate: Rate,
    /// RTT inside a datacenter, as assumed by laws.
    pub intra_rtt: Span,
    /// Maximum burst: bytes that may be sent at once if pacing would have allowed them earlier, had the endpoint been
    /// called.
    pub burst: Bytes,
}

impl Settings {
    /// Creates settings for this service, with this law for each path: streams of up to 128 MiB in flight, 10 Gb/s over
    /// 100 ms, 256 MiB in total; one path. Memory is used only for bytes that are buffered.
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
            coding: CodingPolicy::Off,
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

    /// Returns the transport parameters for the peer.
    pub(crate) fn parameters(&self) -> Parameters {
        Parameters {
            idle: (self.idle.ns() / 1_000_000).clamp(1_000, 600_000).unsigned_abs(),
            max_data: self.limits.max_data,
            max_stream_data: self.limits.max_stream_data,
            max_streams_bidi: self.limits.max_streams_bidi,
            max_streams_uni: self.limits.max_streams_uni,
            max_datagram: self.max_datagram.into(),
            max_packet: self.max_packet.clamp(crate::dplpmtud::BASE_PLPMTU, 65_527).into(),
            ack_delay: (self.ack_delay.clamp(Span::ZERO, MAX_ACK_DELAY).ns() / 1_000).unsigned_abs(),
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
