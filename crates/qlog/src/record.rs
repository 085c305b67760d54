//! Records: the header of a file, and what an event says.

use std::io::Write;

use proto::closed::{Closed, Code};
use proto::observe::{Birth, KeyCause, Metrics, PathChange, Space};
use proto::parameters::Parameters;
use proto::side::Side;
use serde::Serialize;
use units::{Bytes, Rate};

use crate::frames::{Hex, Listed, Places, ms};

/// Appends a record (RFC 7464 §2.2). Nothing that is written here can fail.
pub(crate) fn put(out: &mut Vec<u8>, record: &impl Serialize) {
    let begun = out.len();
    out.push(0x1e);
    if serde_json::to_writer(&mut *out, record)
        .and_then(|()| out.write_all(b"\n").map_err(serde_json::Error::io))
        .is_err()
    {
        debug_assert!(false, "a record cannot be written");
        out.truncate(begun);
    }
}

/// What a file begins with.
#[derive(Serialize)]
pub(crate) struct Header<'a> {
    qlog_version: &'static str,
    qlog_format: &'static str,
    title: String,
    trace: Trace<'a>,
}

#[derive(Serialize)]
struct Trace<'a> {
    vantage_point: VantagePoint,
    common_fields: CommonFields<'a>,
}

#[derive(Serialize)]
struct VantagePoint {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct CommonFields<'a> {
    #[serde(rename = "ODCID")]
    first_id: Hex<'a>,
    time_format: &'static str,
    /// Milliseconds since 1970.
    reference_time: f64,
    protocol_type: [&'static str; 1],
}

/// What qlog calls an end.
pub(crate) fn end(side: Side) -> &'static str {
    match side {
        Side::Caller => "client",
        Side::Listener => "server",
    }
}

impl<'a> Header<'a> {
    /// Of a connection that began at this time, in ms since 1970.
    pub(crate) fn new(birth: &'a Birth, reference_time: f64) -> Self {
        Self {
            qlog_version: "0.3",
            qlog_format: "JSON-SEQ",
            title: format!("{}, {}", birth.service, end(birth.side)),
            trace: Trace {
                vantage_point: VantagePoint {
                    name: concat!("narrows ", env!("CARGO_PKG_VERSION")),
                    kind: end(birth.side),
                },
                common_fields: CommonFields {
                    first_id: Hex(birth.first_id.as_bytes()),
                    time_format: "relative",
                    reference_time,
                    protocol_type: ["narrows"],
                },
            },
        }
    }
}

/// One event.
#[derive(Serialize)]
pub(crate) struct Record<D> {
    /// Milliseconds since the connection began.
    pub(crate) time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_id: Option<u32>,
    pub(crate) name: &'static str,
    pub(crate) data: D,
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
pub(crate) struct Raw {
    pub(crate) length: usize,
    pub(crate) payload_length: usize,
}

#[derive(Serialize)]
pub(crate) struct PacketData<'a> {
    pub(crate) header: PacketHeader,
    pub(crate) raw: Raw,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_flight: Option<bool>,
    pub(crate) frames: Listed<'a>,
}

#[derive(Serialize)]
pub(crate) struct LostData {
    pub(crate) header: PacketHeader,
    pub(crate) trigger: &'static str,
}

/// What has changed of what a path sends by.
#[derive(Serialize, Default, PartialEq)]
pub(crate) struct MetricsData {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pto_count: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ssthresh: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pacing_rate: Option<u64>,
}

impl MetricsData {
    /// All of it, as it is now.
    pub(crate) fn new(metrics: &Metrics, ssthresh: Option<Bytes>) -> Self {
        Self {
            min_rtt: metrics.least_rtt.map(ms),
            smoothed_rtt: Some(ms(metrics.smoothed_rtt)),
            latest_rtt: metrics.latest_rtt.map(ms),
            pto_count: Some(metrics.strikes),
            congestion_window: Some(metrics.window.get()),
            bytes_in_flight: Some(metrics.in_flight.get()),
            ssthresh: ssthresh.map(Bytes::get),
            pacing_rate: (metrics.pacing < Rate::MAX).then(|| metrics.pacing.bps()),
        }
    }

    /// What is not as it was before.
    pub(crate) fn since(&self, before: &Self) -> Self {
        fn changed<T: PartialEq + Copy>(new: Option<T>, old: Option<T>) -> Option<T> {
            new.filter(|_| new != old)
        }
        Self {
            min_rtt: changed(self.min_rtt, before.min_rtt),
            smoothed_rtt: changed(self.smoothed_rtt, before.smoothed_rtt),
            // A round trip that was measured is news, whatever the last one was.
            latest_rtt: self.latest_rtt,
            pto_count: changed(self.pto_count, before.pto_count),
            congestion_window: changed(self.congestion_window, before.congestion_window),
            bytes_in_flight: changed(self.bytes_in_flight, before.bytes_in_flight),
            ssthresh: changed(self.ssthresh, before.ssthresh),
            pacing_rate: changed(self.pacing_rate, before.pacing_rate),
        }
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

/// The two keys of a kind of packet, and why they are new.
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
            Closed::Here { code, .. } => (Some("local"), Some(*code), trigger_of(*code)),
            Closed::There { code, .. } => (Some("remote"), Some(*code), trigger_of(*code)),
            Closed::Reset => (Some("remote"), None, "stateless_reset"),
            Closed::Silence => (None, None, "idle_timeout"),
            Closed::Version => (None, None, "version_mismatch"),
            Closed::Service { .. } => (None, Some(Code::NO_SUCH_SERVICE), "error"),
            _ => (None, None, "unspecified"),
        };
        let application = code.and_then(|code| code.0.checked_sub(Code::APPLICATION.0));
        Self {
            owner,
            connection_code: code.filter(|_| application.is_none()).map(|code| code.0),
            application_code: application,
            // It escapes what a peer has said.
            reason: closed.to_string(),
            trigger,
        }
    }
}

fn trigger_of(code: Code) -> &'static str {
    match code {
        Code::NONE => "clean",
        code if code >= Code::APPLICATION => "application",
        _ => "error",
    }
}

/// What happened to a block.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum BlockData {
    Shape { owner: &'static str, block: u64, data: u8, parity: u8 },
    Missing { block: u64, missing: Places },
    Recovered { block: u64, packets: u8 },
    Repair { block: u64, place: u8, is_parity: bool },
    Over { owner: &'static str, block: u64 },
}

/// A law's own numbers.
pub(crate) struct LawData {
    pub(crate) law: &'static str,
    pub(crate) values: Vec<(&'static str, i64)>,
}

impl Serialize for LawData {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let law = std::iter::once(("law", serde_json::Value::from(self.law)));
        serializer.collect_map(law.chain(self.values.iter().map(|&(name, value)| (name, value.into()))))
    }
}

#[derive(Serialize)]
pub(crate) struct GapData {
    pub(crate) events: u64,
}
