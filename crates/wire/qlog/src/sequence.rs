//! JSON text sequences (RFC 7464) as qlog 0.3 has them: the header, an event, and the data that connections and simulated flows
//! have in common.

use std::io::Write;

use serde::{Serialize, Serializer};
use units::Span;

/// Returns milliseconds, the unit of qlog.
pub fn ms(span: Span) -> f64 {
    span.ps() as f64 / 1e9
}

/// Appends a record (RFC 7464 §2.2). Nothing that is written here can fail.
pub fn put(out: &mut Vec<u8>, record: &impl Serialize) {
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

/// The header of a file.
#[derive(Serialize)]
pub struct FileHeader {
    qlog_version: &'static str,
    qlog_format: &'static str,
    title: String,
    trace: QlogTrace,
}

#[derive(Serialize)]
struct QlogTrace {
    vantage_point: VantagePoint,
    common_fields: CommonFields,
}

#[derive(Serialize)]
struct VantagePoint {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct CommonFields {
    #[serde(rename = "ODCID", skip_serializing_if = "Option::is_none")]
    original_destination_id: Option<String>,
    time_format: &'static str,
    /// Milliseconds since 1970.
    reference_time: f64,
    protocol_type: [&'static str; 1],
}

impl FileHeader {
    /// Creates the header for the events seen by the end `kind` (`client` or `server`) from `reference_time` on, in ms
    /// since 1970. A connection's ID is the one to which its first packet was sent.
    pub fn new(
        title: String,
        kind: &'static str,
        original_destination_id: Option<String>,
        reference_time: f64,
    ) -> Self {
        Self {
            qlog_version: "0.3",
            qlog_format: "JSON-SEQ",
            title,
            trace: QlogTrace {
                vantage_point: VantagePoint { name: concat!("narrows ", env!("CARGO_PKG_VERSION")), kind },
                common_fields: CommonFields {
                    original_destination_id,
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
pub struct EventRecord<D> {
    /// Milliseconds since the beginning.
    pub time: f64,
    /// Path of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_id: Option<u32>,
    /// Name of the event, with its category.
    pub name: &'static str,
    /// Data of the event.
    pub data: D,
}

/// Changed metrics of a path or a flow.
#[derive(Serialize, Default, PartialEq, Debug)]
pub struct MetricsData {
    /// Smallest RTT in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<f64>,
    /// Smoothed RTT in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt: Option<f64>,
    /// Last RTT sample in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_rtt: Option<f64>,
    /// Consecutive probe timeouts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pto_count: Option<u8>,
    /// Congestion window in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window: Option<u64>,
    /// Bytes in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight: Option<u64>,
    /// Slow-start threshold in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<u64>,
    /// Pacing rate in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_rate: Option<u64>,
}

impl MetricsData {
    /// Returns the metrics that differ from those before.
    pub fn since(&self, before: &Self) -> Self {
        fn changed<T: PartialEq + Copy>(new: Option<T>, old: Option<T>) -> Option<T> {
            new.filter(|_| new != old)
        }
        Self {
            min_rtt: changed(self.min_rtt, before.min_rtt),
            smoothed_rtt: changed(self.smoothed_rtt, before.smoothed_rtt),
            // A measured round trip is recorded even if it equals the last one.
            latest_rtt: self.latest_rtt,
            pto_count: changed(self.pto_count, before.pto_count),
            congestion_window: changed(self.congestion_window, before.congestion_window),
            bytes_in_flight: changed(self.bytes_in_flight, before.bytes_in_flight),
            ssthresh: changed(self.ssthresh, before.ssthresh),
            pacing_rate: changed(self.pacing_rate, before.pacing_rate),
        }
    }
}

/// State of a law, by name.
pub struct LawData<'a> {
    /// Name of the law.
    pub law: &'a str,
    /// Its numbers by name.
    pub values: Vec<(&'a str, i64)>,
}

impl Serialize for LawData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let law = std::iter::once(("law", serde_json::Value::from(self.law)));
        serializer.collect_map(law.chain(self.values.iter().map(|&(name, value)| (name, value.into()))))
    }
}
