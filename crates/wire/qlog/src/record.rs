//! Header of a connection's log, and contents of its events.

use proto::closed::{CloseCode, Closed};
use proto::observe::{ConnectionStart, KeyCause, Metrics, PathChange, Space};
use proto::parameters::Parameters;
use proto::side::Side;
use serde::Serialize;
use units::{Bytes, Rate};

use crate::frames::{FrameList, Hex, SetBits};
use crate::sequence::{FileHeader, MetricsData, ms};

/// Returns qlog's name of an end.
pub(crate) fn end(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Listener => "server",
    }
}

/// Returns the header of the log of a connection that began at this time, in ms since 1970.
pub(crate) fn header(start: &ConnectionStart, reference_time: f64) -> FileHeader {
    let original_destination_id = Hex(start.original_destination_id.as_bytes()).to_string();
    FileHeader::new(
        format!("{}, {}", start.service, end(start.side)),
        end(start.side),
        Some(original_destination_id),
        reference_time,
    )
}

#[derive(Serialize)]
pub(crate) struct Started {
    pub(crate) ip_version: &'static str,
    pub(crate) dst_ip: String,
    pub(crate) dst_port: u16,
    pub(crate) protocol: String,
}

#[derive(Serialize)]
pub(crate) struct PacketHeader {
    pub(crate) packet_type: &'static str,
    pub(crate) packet_number: u64,
}

impl PacketHeader {
    pub(crate) fn new(space: Space, packet_number: u64) -> Self {
        let packet_type = match space {
            Space::Initial => "initial",
            Space::Handshake => "handshake",
            Space::Data => "1RTT",
        };
        Self { packet_type, packet_number }
    }
}

#[derive(Serialize)]
pub(crate) struct RawInfo {
    pub(crate) length: usize,
    pub(crate) payload_length: usize,
}

#[derive(Serialize)]
pub(crate) struct PacketData<'a> {
    pub(crate) header: PacketHeader,
    pub(crate) raw: RawInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_flight: Option<bool>,
    pub(crate) frames: FrameList<'a>,
}

#[derive(Serialize)]
pub(crate) struct LostData {
    pub(crate) header: PacketHeader,
    pub(crate) trigger: &'static str,
}

/// Returns all present metrics of a path.
pub(crate) fn metrics(metrics: &Metrics, ssthresh: Option<Bytes>) -> MetricsData {
    MetricsData {
        min_rtt: metrics.min_rtt.map(ms),
        smoothed_rtt: Some(ms(metrics.smoothed_rtt)),
        latest_rtt: metrics.latest_rtt.map(ms),
        pto_count: Some(metrics.pto_count),
        congestion_window: Some(metrics.window.get()),
        bytes_in_flight: Some(metrics.in_flight.get()),
        ssthresh: ssthresh.map(Bytes::get),
        pacing_rate: (metrics.pacing < Rate::MAX).then(|| metrics.pacing.bps()),
    }
}

#[derive(Serialize)]
pub(crate) struct StateData {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<&'static str>,
    pub(crate) new: &'static str,
}

#[derive(Serialize)]
pub(crate) struct SizeData {
    pub(crate) old: u16,
    pub(crate) new: u16,
    pub(crate) done: bool,
}

#[derive(Serialize)]
pub(crate) struct PathData {
    pub(crate) state: &'static str,
    pub(crate) remote: String,
    pub(crate) socket: u16,
}

pub(crate) fn state_of(change: PathChange) -> &'static str {
    match change {
        PathChange::Probing => "probing",
        PathChange::Validated => "validated",
        PathChange::Moved => "moved",
        PathChange::MovedBack => "moved_back",
        PathChange::Abandoned => "abandoned",
    }
}

#[derive(Serialize)]
pub(crate) struct KeyData {
    pub(crate) key_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_phase: Option<u64>,
    pub(crate) trigger: &'static str,
}

/// Returns the two keys of a kind of packet, and the reason for new ones.
pub(crate) fn keys_of(space: Space, cause: KeyCause) -> ([&'static str; 2], &'static str) {
    let names = match space {
        Space::Initial => ["client_initial_secret", "server_initial_secret"],
        Space::Handshake => ["client_handshake_secret", "server_handshake_secret"],
        Space::Data => ["client_1rtt_secret", "server_1rtt_secret"],
    };
    let trigger = match cause {
        KeyCause::Tls => "tls",
        KeyCause::Local => "local_update",
        KeyCause::Remote => "remote_update",
    };
    (names, trigger)
}

#[derive(Serialize)]
pub(crate) struct ParametersData {
    pub(crate) owner: &'static str,
    /// In ms.
    max_idle_timeout: u64,
    max_udp_payload_size: u64,
    /// In ms.
    max_ack_delay: f64,
    initial_max_data: u64,
    initial_max_stream_data_bidi_local: u64,
    initial_max_stream_data_bidi_remote: u64,
    initial_max_stream_data_uni: u64,
    initial_max_streams_bidi: u64,
    initial_max_streams_uni: u64,
    max_datagram_frame_size: u64,
    paths: u64,
    coding_window: u64,
    times: bool,
}

impl ParametersData {
    pub(crate) fn new(owner: &'static str, of: &Parameters) -> Self {
        Self {
            owner,
            max_idle_timeout: of.idle,
            max_udp_payload_size: of.max_packet,
            max_ack_delay: of.ack_delay as f64 / 1e3,
            initial_max_data: of.max_data,
            initial_max_stream_data_bidi_local: of.max_stream_data,
            initial_max_stream_data_bidi_remote: of.max_stream_data,
            initial_max_stream_data_uni: of.max_stream_data,
            initial_max_streams_bidi: of.max_streams_bidi,
            initial_max_streams_uni: of.max_streams_uni,
            max_datagram_frame_size: of.max_datagram,
            paths: of.paths,
            coding_window: of.coding_window,
            times: of.times == 1,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct ClosedData {
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_code: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application_code: Option<u64>,
    reason: String,
    trigger: &'static str,
}

impl ClosedData {
    pub(crate) fn new(closed: &Closed) -> Self {
        let (owner, code, trigger) = match closed {
            Closed::Locally { code, .. } => (Some("local"), Some(*code), trigger_of(*code)),
            Closed::ByPeer { code, .. } => (Some("remote"), Some(*code), trigger_of(*code)),
            Closed::Reset => (Some("remote"), None, "stateless_reset"),
            Closed::TimedOut => (None, None, "idle_timeout"),
            Closed::Version => (None, None, "version_mismatch"),
            Closed::Service { .. } => (None, Some(CloseCode::NO_SUCH_SERVICE), "error"),
            _ => (None, None, "unspecified"),
        };
        let application = code.and_then(|code| code.0.checked_sub(CloseCode::APPLICATION.0));
        Self {
            owner,
            connection_code: code.filter(|_| application.is_none()).map(|code| code.0),
            application_code: application,
            // Escaped, as it may contain text of a peer.
            reason: closed.to_string(),
            trigger,
        }
    }
}

fn trigger_of(code: CloseCode) -> &'static str {
    match code {
        CloseCode::NONE => "clean",
        code if code >= CloseCode::APPLICATION => "application",
        _ => "error",
    }
}

/// An event of a block.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum BlockData {
    Shape { owner: &'static str, block: u64, data: u8, parity: u8 },
    Missing { block: u64, missing: SetBits },
    Recovered { block: u64, packets: u8 },
    Repair { block: u64, place: u8, is_parity: bool },
    Over { owner: &'static str, block: u64 },
}

#[derive(Serialize)]
pub(crate) struct GapData {
    pub(crate) events: u64,
}
