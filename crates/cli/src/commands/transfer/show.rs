//! The outcome of a transfer, for people and for programs.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use transfer::Summary;

use crate::peer::quantity::{amount, bits_a_second, rate};

/// The version of the JSON document.
const SCHEMA: u32 = 1;

/// A transfer that was not cut off.
pub(super) struct TransferReport<'a> {
    /// `sent` or `received`.
    pub(super) verb: &'static str,
    /// The other end's.
    pub(super) address: Option<SocketAddr>,
    pub(super) summary: Summary,
    /// Entries that failed.
    pub(super) failed: u64,
    pub(super) notes: &'a [String],
    pub(super) time: Duration,
    pub(super) cpu_s: f64,
}

impl TransferReport<'_> {
    pub(super) fn as_text(&self) -> String {
        let Summary { made, same, moved_bytes, had_bytes, .. } = self.summary;
        let before = if same > 0 || had_bytes > 0 {
            format!("; {} were there before, in {same} whole files and parts of others", amount(had_bytes))
        } else {
            String::new()
        };
        let failed = if self.failed > 0 { format!("; {} failed", self.failed) } else { String::new() };
        format!(
            "{} {made} {} with {} in {:.2} s, {}{before}{failed}",
            self.verb,
            if made == 1 { "entry" } else { "entries" },
            amount(moved_bytes),
            self.time.as_secs_f64(),
            rate(moved_bytes, self.time)
        )
    }

    pub(super) fn as_json(&self) -> Value {
        let Summary { made, same, moved_bytes, had_bytes, .. } = self.summary;
        json!({
            "schema": SCHEMA,
            "address": self.address.map(|it| it.to_string()),
            "made": made,
            "same": same,
            "failed": self.failed,
            "moved_bytes": moved_bytes,
            "had_bytes": had_bytes,
            "time_ns": self.time.as_nanos() as u64,
            "rate_bps": bits_a_second(moved_bytes, self.time),
            "cpu_s": self.cpu_s,
            "notes": self.notes,
        })
    }
}
