//! State of a daemon, for operators: JSON and the text format of Prometheus.

use std::fmt::Write as _;

use serde::Serialize;

use crate::inbox::Refusals;
use crate::page::PageStatus;
use crate::socket::SocketCounters;

/// State of a daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Status {
    /// Name of the member.
    pub name: String,
    /// Status of the page.
    pub state: PageStatus,
    /// Name of the reference.
    pub reference: Option<String>,
    /// Mesh time, in nanoseconds.
    pub mesh_time_ns: Option<i64>,
    /// Mesh time less the host's clock, in nanoseconds.
    pub offset_ns: Option<i64>,
    /// Rate of mesh time relative to the host's clock, in parts per billion.
    pub skew_ppb: Option<i64>,
    /// Largest error of mesh time, in nanoseconds.
    pub error_ns: Option<i64>,
    /// Number of times that mesh time may not have continued as before.
    pub disruptions: u64,
    /// Session of the daemon.
    pub session: u64,
    /// Time since the daemon started, in milliseconds.
    pub uptime_ms: u64,
    /// UTC, if a member has a source.
    pub utc: Option<UtcStatus>,
    /// The other members.
    pub peers: Vec<PeerStatus>,
    /// Counters of the socket.
    pub socket: SocketCounters,
    /// Datagrams that were refused.
    pub refused: Refusals,
}

/// UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct UtcStatus {
    /// `CLOCK_REALTIME` less UTC, in nanoseconds.
    pub system_clock_offset_ns: i64,
    /// Largest error of UTC, in nanoseconds.
    pub error_ns: i64,
}

/// Another member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PeerStatus {
    /// Name.
    pub name: String,
    /// Address.
    pub address: String,
    /// Offset of its clock from the host's, by all pairs of the mesh, in nanoseconds.
    pub offset_ns: Option<i64>,
    /// Largest error of the offset, in nanoseconds.
    pub error_ns: Option<i64>,
    /// Set if the member contradicts the others.
    pub suspect: bool,
    /// The pair with the host, if this probes the member.
    pub pair: Option<PairStatus>,
}

/// A pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PairStatus {
    /// Offset of the peer's clock from the host's, in nanoseconds.
    pub offset_ns: Option<i64>,
    /// Rate of the peer's clock relative to the host's, in parts per billion.
    pub skew_ppb: Option<i64>,
    /// Largest error of the offset, in nanoseconds.
    pub error_ns: Option<i64>,
    /// Lowest round trip of the samples in use, in nanoseconds.
    pub round_trip_ns: Option<i64>,
    /// Number of samples in use.
    pub samples: Option<u32>,
    /// Time since the last reply, in milliseconds.
    pub last_reply_ms: Option<u64>,
}

impl Status {
    /// Returns the state as JSON.
    pub fn to_json(&self) -> String {
        // A structure of strings and integers has no value that JSON lacks.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the state in the text format of Prometheus, version 0.0.4.
    pub fn to_prometheus(&self) -> String {
        let mut text = Metrics(String::new());
        let seconds = |ns: i64| ns as f64 / 1e9;
        text.gauge(
            "synchronised",
            "1 if mesh time is known.",
            [(None, f64::from(self.state == PageStatus::Synchronised))],
        );
        let own = |value: Option<f64>| value.map(|value| (None, value));
        text.gauge("error_seconds", "Largest error of mesh time.", own(self.error_ns.map(seconds)));
        text.gauge("offset_seconds", "Mesh time less the host's clock.", own(self.offset_ns.map(seconds)));
        text.gauge("skew", "Rate of mesh time relative to the host's clock.", own(self.skew_ppb.map(seconds)));
        text.gauge("utc_error_seconds", "Largest error of UTC.", own(self.utc.map(|utc| seconds(utc.error_ns))));
        let offset = self.utc.map(|utc| seconds(utc.system_clock_offset_ns));
        text.gauge("system_clock_offset_seconds", "The system clock less UTC.", own(offset));
        text.counter("disruptions_total", "Times that mesh time may not have continued.", [(None, self.disruptions)]);
        let peers = |value: fn(&PeerStatus) -> Option<f64>| {
            self.peers.iter().filter_map(move |peer| Some((Some(peer.name.as_str()), value(peer)?)))
        };
        text.gauge("peer_suspect", "1 if the member contradicts the others.", peers(|it| Some(f64::from(it.suspect))));
        let error = |it: &PeerStatus| it.error_ns.map(|ns| ns as f64 / 1e9);
        text.gauge("peer_error_seconds", "Largest error of the offset of the member's clock.", peers(error));
        let offset = |it: &PeerStatus| it.offset_ns.map(|ns| ns as f64 / 1e9);
        text.gauge("peer_offset_seconds", "The member's clock less the host's.", peers(offset));
        let round_trip = |it: &PeerStatus| it.pair?.round_trip_ns.map(|ns| ns as f64 / 1e9);
        text.gauge("peer_round_trip_seconds", "Lowest round trip of the samples in use.", peers(round_trip));
        let reply = |it: &PeerStatus| it.pair?.last_reply_ms.map(|ms| ms as f64 / 1e3);
        text.gauge("peer_last_reply_seconds", "Time since the last reply.", peers(reply));
        let SocketCounters { sent, send_errors, received, unstamped, transmit_stamps, .. } = self.socket;
        let SocketCounters { missing_transmit_stamps, resets, system_clock_steps, .. } = self.socket;
        text.counter("datagrams_sent_total", "Datagrams sent.", [(None, sent)]);
        text.counter("send_errors_total", "Datagrams that could not be sent.", [(None, send_errors)]);
        text.counter("datagrams_received_total", "Datagrams received.", [(None, received)]);
        text.counter("unstamped_total", "Datagrams without a usable receive timestamp.", [(None, unstamped)]);
        text.counter("transmit_stamps_total", "Transmit timestamps.", [(None, transmit_stamps)]);
        let missing = [(None, missing_transmit_stamps)];
        text.counter("missing_transmit_stamps_total", "Transmit timestamps that were not usable.", missing);
        text.counter("stamp_resets_total", "Restarts of the numbers of transmit timestamps.", [(None, resets)]);
        let steps = [(None, system_clock_steps)];
        text.counter("system_clock_steps_total", "Steps of the system clock and changes of its rate.", steps);
        let Refusals { unauthentic, misdirected, replayed, malformed } = self.refused;
        text.counter("unauthentic_total", "Datagrams that were not authentic.", [(None, unauthentic)]);
        text.counter("misdirected_total", "Datagrams for another member.", [(None, misdirected)]);
        text.counter("replayed_total", "Datagrams that were received before.", [(None, replayed)]);
        text.counter("malformed_total", "Authentic datagrams that were not valid.", [(None, malformed)]);
        text.0
    }
}

/// A text of metrics. A sample has the name of a member, or none, and a value.
struct Metrics(String);

impl Metrics {
    fn gauge<'a>(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (Option<&'a str>, f64)>) {
        self.family("gauge", name, help, samples.into_iter().map(|(peer, value)| (peer, format!("{value:e}"))));
    }

    fn counter<'a>(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (Option<&'a str>, u64)>) {
        self.family("counter", name, help, samples.into_iter().map(|(peer, value)| (peer, value.to_string())));
    }

    fn family<'a>(
        &mut self,
        kind: &str,
        name: &str,
        help: &str,
        samples: impl Iterator<Item = (Option<&'a str>, String)>,
    ) {
        // Writing to a string cannot fail. Names of members have no character that needs an escape.
        let _ = writeln!(self.0, "# HELP narrows_clock_{name} {help}\n# TYPE narrows_clock_{name} {kind}");
        for (peer, value) in samples {
            let label = peer.map_or(String::new(), |peer| format!("{{peer=\"{peer}\"}}"));
            let _ = writeln!(self.0, "narrows_clock_{name}{label} {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn status() -> Status {
        let pair = PairStatus {
            offset_ns: Some(-1_500),
            skew_ppb: Some(12),
            error_ns: Some(800),
            round_trip_ns: Some(25_000),
            samples: Some(90),
            last_reply_ms: Some(40),
        };
        let peer = PeerStatus {
            name: "b".into(),
            address: "10.0.0.2:7123".into(),
            offset_ns: Some(-1_500),
            error_ns: Some(800),
            suspect: true,
            pair: Some(pair),
        };
        Status {
            name: "a".into(),
            state: PageStatus::Synchronised,
            reference: Some("b".into()),
            mesh_time_ns: Some(5),
            offset_ns: Some(-1_500),
            skew_ppb: Some(12),
            error_ns: Some(900),
            disruptions: 1,
            session: 7,
            uptime_ms: 1_000,
            utc: None,
            peers: vec![peer],
            socket: SocketCounters { sent: 3, ..SocketCounters::default() },
            refused: Refusals::default(),
        }
    }

    #[test]
    fn json_has_all_fields() {
        let json: serde_json::Value = serde_json::from_str(&status().to_json()).unwrap();
        assert_eq!((json["state"].as_str(), json["error_ns"].as_i64()), (Some("synchronised"), Some(900)));
        assert_eq!(json["peers"][0]["pair"]["round_trip_ns"].as_i64(), Some(25_000));
        assert!(json["utc"].is_null());
    }

    /// Each sample belongs to the family above it, which is named once.
    #[test]
    fn metrics_have_the_text_format() {
        let text = status().to_prometheus();
        let mut families = std::collections::BTreeSet::new();
        let mut family = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family = rest.split(' ').next().unwrap().to_owned();
                assert!(families.insert(family.clone()), "{family} twice");
            } else if !line.starts_with("# HELP ") {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert_eq!(name.split('{').next().unwrap(), family);
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
        assert!(text.contains("narrows_clock_error_seconds 9e-7\n"), "{text}");
        assert!(text.contains("narrows_clock_peer_suspect{peer=\"b\"} 1e0\n"), "{text}");
        assert!(text.contains("narrows_clock_datagrams_sent_total 3\n"), "{text}");
    }
}
