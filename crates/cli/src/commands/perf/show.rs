//! The outcome of a test, for people and for programs.

use std::net::SocketAddr;
use std::time::Duration;

use proto::connection::PathStats;
use serde_json::{Value, json};
use units::Span;

use super::control::{Amount, PerfRequest, PerfResponse, Totals};
use super::meter::{ProgressInterval, in_ms};
use super::test::TestCounts;
use crate::args::PerfArgs;
use crate::peer::end::EndpointSpec;
use crate::peer::quantity::{amount, bits_a_second, rate};
use crate::sheet::Sheet;

/// Limit of packet loss: where one packet in this many or more is lost, a law may take the path for a faster one than
/// it is.
const ONE_LOST_IN: u64 = 10;

/// Names of the tables for `--csv`.
pub(super) const TABLES: [&str; 4] = ["ends", "intervals", "paths", "messages"];

/// The version of the JSON document.
const SCHEMA: u32 = 1;

/// A test that ended well.
pub(super) struct PerfReport<'a> {
    pub(super) request: &'a PerfRequest,
    pub(super) response: &'a PerfResponse,
    pub(super) end: &'a EndpointSpec,
    pub(super) args: &'a PerfArgs,
    pub(super) address: SocketAddr,
    pub(super) outcome: &'a TestCounts,
    /// The duration of each message.
    pub(super) durations: &'a [Duration],
    pub(super) paths: &'a [PathStats],
}

impl PerfReport<'_> {
    /// Returns the counts of the sender and of the receiver.
    fn sender_and_receiver(&self) -> [(&'static str, &Totals); 2] {
        let TestCounts { own, theirs } = self.outcome;
        if self.request.reverse {
            [("sender", theirs), ("receiver", own)]
        } else {
            [("sender", own), ("receiver", theirs)]
        }
    }

    pub(super) fn as_text(&self) -> String {
        let mut lines = Vec::new();
        for (name, totals) in self.sender_and_receiver() {
            let (bytes, time) = (totals.sum(), totals.time());
            let losses = format!("  {} of {} packets lost", totals.lost, totals.packets);
            lines.push(format!(
                "{name:8} {:>8} in {:.2} s {:>12}  {:.2} s of processor time{}",
                amount(bytes),
                time.as_secs_f64(),
                rate(bytes, time),
                totals.cpu_ns as f64 / 1e9,
                if name == "sender" { &losses } else { "" }
            ));
        }
        if let Some(times) = Times::of(self.durations) {
            let [p50, p99, max] =
                [times.p50, times.p99, times.max].map(|time| format!("{:.1} ms", time.as_secs_f64() * 1e3));
            lines.push(format!("{} messages: p50 {p50}, p99 {p99}, most {max}", self.durations.len()));
        }
        for path in self.paths {
            let marks =
                if self.request.reverse { String::new() } else { format!(", {} marked", amount(path.marked.get())) };
            let held = if self.end.config.settings.on_ramp.is_some() && !self.request.reverse {
                format!(", held for {:.2} s", path.held.ns() as f64 / 1e9)
            } else {
                String::new()
            };
            lines.push(format!(
                "path {}: packets of {} bytes, rtt {} (least {}){marks}{held}",
                path.path,
                path.packet_size,
                in_ms(path.rtt),
                path.min_rtt.map_or_else(|| "unknown".to_owned(), in_ms),
            ));
        }
        let sent = self.sender_and_receiver()[0].1;
        if self.args.endpoint.law.is_some()
            && self.args.endpoint.line_rate.is_none()
            && sent.lost > sent.packets / ONE_LOST_IN
        {
            lines.push(format!(
                "help: one packet in {ONE_LOST_IN} or more was lost; {} may scale with --line-rate, the rate of the narrowest link \
                 (default: 10 Gb/s)",
                self.end.law.name()
            ));
        }
        lines.join("\n")
    }

    pub(super) fn as_json(&self, intervals: &[ProgressInterval]) -> Value {
        let [sender, receiver] = self.sender_and_receiver().map(|(_, totals)| totals_as_json(totals));
        let intervals: Vec<Value> = intervals.iter().map(interval_as_json).collect();
        let paths: Vec<Value> = self.paths.iter().map(path_as_json).collect();
        json!({
            "schema": SCHEMA,
            "address": self.address.to_string(),
            "parameters": self.parameters(),
            "intervals": intervals,
            "sender": sender,
            "receiver": receiver,
            "messages": Times::of(self.durations).map(|times| times.as_json(self.durations)),
            "paths": paths,
        })
    }

    /// The tables for `--csv` ([`TABLES`]).
    pub(super) fn sheets(&self, intervals: &[ProgressInterval]) -> [Sheet; 4] {
        let ends: Vec<Value> = self
            .sender_and_receiver()
            .into_iter()
            .map(|(end, totals)| {
                let mut record = totals_as_json(totals);
                record["end"] = end.into();
                record
            })
            .collect();
        let intervals: Vec<Value> = intervals.iter().map(interval_as_json).collect();
        let paths: Vec<Value> = self.paths.iter().map(path_as_json).collect();
        let messages: Vec<Value> = Times::of(self.durations).map(|it| it.as_json(self.durations)).into_iter().collect();
        [
            Sheet::of_records(TABLES[0], &["end", "bytes", "time_ns", "rate_bps", "cpu_s", "packets", "lost"], &ends),
            Sheet::of_records(TABLES[1], &["from_ns", "to_ns", "bytes", "rate_bps", "rtt_ns", "lost"], &intervals),
            Sheet::of_records(
                TABLES[2],
                &[
                    "path",
                    "remote",
                    "is_open",
                    "packet_bytes",
                    "rtt_ns",
                    "least_rtt_ns",
                    "packets",
                    "acked_bytes",
                    "ecn_marked_bytes",
                    "ecn",
                    "on_ramp_hold_ns",
                ],
                &paths,
            ),
            Sheet::of_records(TABLES[3], &["p50_ns", "p99_ns", "most_ns"], &messages),
        ]
    }

    fn parameters(&self) -> Value {
        let (time_s, bytes) = match self.request.amount {
            Amount::TimeMs(ms) => (Some(ms as f64 / 1e3), None),
            Amount::Bytes(bytes) | Amount::Messages { bytes, .. } => (None, Some(bytes)),
        };
        let settings = &self.end.config.settings;
        let (law, params) = if self.request.reverse {
            // The listener reports its law, but not the law's parameters.
            (self.response.law.as_str(), Value::Null)
        } else {
            (self.end.law.name(), self.end.law.params())
        };
        json!({
            "direction": if self.request.reverse { "from the listener" } else { "to the listener" },
            "time_s": time_s,
            "bytes": bytes,
            "streams": self.request.streams,
            "messages": self.args.messages,
            "paths": self.args.paths,
            "law": law,
            "law_params": params,
            "one_law": (!self.request.reverse).then_some(settings.one_law),
            "on_ramp_ns": settings.on_ramp.filter(|_| !self.request.reverse).map(|on_ramp| on_ramp.threshold.ns()),
            "line_rate_bps": (!self.request.reverse).then(|| settings.line_rate.bps()),
            "coding": (!self.request.reverse).then(|| settings.coding.to_string()),
            "packet_bytes": settings.max_packet,
            "window_bytes": self.request.window_bytes,
            "listeners_window_bytes": self.response.window_bytes,
            "idle_s": self.end.idle.as_secs_f64(),
        })
    }
}

/// Quantiles of the messages' durations.
struct Times {
    p50: Duration,
    p99: Duration,
    max: Duration,
}

impl Times {
    fn of(durations: &[Duration]) -> Option<Self> {
        let mut sorted = durations.to_vec();
        sorted.sort_unstable();
        // The smallest time that at least `percent` % of the messages do not exceed.
        let at = |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).checked_sub(1)?).copied();
        Some(Self { p50: at(50)?, p99: at(99)?, max: at(100)? })
    }

    fn as_json(&self, durations: &[Duration]) -> Value {
        let ns = |time: &Duration| time.as_nanos() as u64;
        json!({
            "p50_ns": ns(&self.p50),
            "p99_ns": ns(&self.p99),
            "most_ns": ns(&self.max),
            "took_ns": durations.iter().map(ns).collect::<Vec<_>>(),
        })
    }
}

fn totals_as_json(totals: &Totals) -> Value {
    json!({
        "bytes": totals.sum(),
        "time_ns": totals.time_ns,
        "rate_bps": bits_a_second(totals.sum(), totals.time()),
        "streams": totals.bytes,
        "cpu_s": totals.cpu_ns as f64 / 1e9,
        "packets": totals.packets,
        "lost": totals.lost,
    })
}

fn interval_as_json(interval: &ProgressInterval) -> Value {
    let ProgressInterval { from, to, bytes, rtt, lost } = interval;
    json!({
        "from_ns": from.as_nanos() as u64,
        "to_ns": to.as_nanos() as u64,
        "bytes": bytes,
        "rate_bps": bits_a_second(*bytes, to.saturating_sub(*from)),
        "rtt_ns": rtt.map(Span::ns),
        "lost": lost,
    })
}

fn path_as_json(path: &PathStats) -> Value {
    json!({
        "path": path.path,
        "remote": path.four_tuple.remote.to_string(),
        "is_open": path.is_open,
        "packet_bytes": path.packet_size,
        "rtt_ns": path.rtt.ns(),
        "least_rtt_ns": path.min_rtt.map(Span::ns),
        "packets": path.packets,
        "acked_bytes": path.acked.get(),
        "ecn_marked_bytes": path.marked.get(),
        "ecn": path.ecn,
        "on_ramp_hold_ns": path.held.ns(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_messages() {
        let durations: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        let times = Times::of(&durations).unwrap();
        assert_eq!([times.p50, times.p99, times.max].map(|time| time.as_millis()), [100, 198, 200]);
        assert!(Times::of(&[]).is_none());
    }
}
