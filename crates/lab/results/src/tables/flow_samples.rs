//! `flow_samples.parquet`: one row a sample of a flow, in order of time, then flow. A flow is sampled while it is active:
//! from its start until its completion.

use std::collections::BTreeSet;
use std::path::Path;

use experiment::Outcome;
use units::Bytes;

use super::{Taker, ints, opt_ints};
use crate::Error;
use crate::frame::{Column, DataFrame};

/// A flow at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateRow {
    /// The time.
    pub time_ns: u64,
    /// The flow.
    pub flow: u32,
    /// Payload sent since it began, retransmissions included.
    pub sent_bytes: u64,
    /// Payload acknowledged since it began.
    pub delivered_bytes: u64,
    /// The window that its law permits; none if that is unlimited.
    pub cwnd_bytes: Option<u64>,
    /// The smoothed round trip.
    pub srtt_ns: u64,
}

/// All samples of flows.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RateTable {
    /// By time, then flow.
    pub rows: Vec<RateRow>,
    /// Internal state that laws trace: name, and a value for each row with a law that has it. Sorted by name.
    pub traces: Vec<(String, Vec<Option<i64>>)>,
}

const NAME: &str = "rates";
/// Names the columns of laws' own state.
const TRACE: &str = "trace_";

impl RateTable {
    /// Returns the table of the flow samples.
    pub fn new(outcome: &Outcome) -> Self {
        let samples = &outcome.flow_samples;
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in samples.iter().flat_map(|sample| &sample.trace) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        names.sort_unstable();
        let row = |sample: &experiment::FlowSample| RateRow {
            time_ns: sample.time.ns(),
            flow: sample.flow.0,
            sent_bytes: sample.sent.get(),
            delivered_bytes: sample.delivered.get(),
            cwnd_bytes: (sample.window != Bytes::MAX).then(|| sample.window.get()),
            srtt_ns: sample.rtt.unsigned_ps() / 1_000,
        };
        let trace = |&name: &&str| {
            let value = |sample: &experiment::FlowSample| {
                sample.trace.iter().find(|(key, _)| *key == name).map(|&(_, value)| value)
            };
            (name.to_owned(), samples.iter().map(value).collect())
        };
        Self { rows: samples.iter().map(row).collect(), traces: names.iter().map(trace).collect() }
    }

    pub(crate) fn frame(&self) -> DataFrame {
        self.frame_with(&[])
    }

    /// The table with a column for each of these traces, too. One that no flow has is null.
    pub(crate) fn frame_with(&self, traces: &[String]) -> DataFrame {
        let rows = || self.rows.iter();
        let columns: [(&str, Column); 6] = [
            ("time_ns", ints(rows().map(|row| row.time_ns))),
            ("flow", ints(rows().map(|row| row.flow.into()))),
            ("sent_bytes", ints(rows().map(|row| row.sent_bytes))),
            ("delivered_bytes", ints(rows().map(|row| row.delivered_bytes))),
            ("cwnd_bytes", opt_ints(rows().map(|row| row.cwnd_bytes))),
            ("srtt_ns", ints(rows().map(|row| row.srtt_ns))),
        ];
        let fixed = columns.into_iter().map(|(name, column)| (name.to_owned(), column));
        let names: BTreeSet<&String> = traces.iter().chain(self.traces.iter().map(|(name, _)| name)).collect();
        let traces = names.into_iter().map(|name| {
            let own = self.traces.iter().find(|(known, _)| known == name);
            let values = own.map_or_else(|| vec![None; self.rows.len()], |(_, values)| values.clone());
            (format!("{TRACE}{name}"), Column::OptInt(values))
        });
        DataFrame { name: NAME, columns: fixed.chain(traces).collect() }
    }

    pub(crate) fn read(bytes: Vec<u8>, path: &Path) -> Result<Self, Error> {
        let mut take = Taker::open(NAME, "time_ns", bytes, path)?;
        let (time, flow) = (take.naturals("time_ns")?, take.numbers("flow")?);
        let (sent, delivered) = (take.naturals("sent_bytes")?, take.naturals("delivered_bytes")?);
        let (window, srtt) = (take.opt_naturals("cwnd_bytes")?, take.naturals("srtt_ns")?);
        let row = |row: usize| RateRow {
            time_ns: time[row],
            flow: flow[row],
            sent_bytes: sent[row],
            delivered_bytes: delivered[row],
            cwnd_bytes: window[row],
            srtt_ns: srtt[row],
        };
        let rows = (0..time.len()).map(row).collect();
        let mut traces = Vec::new();
        for (name, column) in &take.frame.columns {
            let Some(short) = name.strip_prefix(TRACE) else { return Err(take.wrong(name, "is not known")) };
            let Column::OptInt(values) = column else {
                return Err(take.wrong(name, "is not of type optional INT64"));
            };
            // A column without values is that of another scheme's law.
            if values.iter().any(Option::is_some) {
                traces.push((short.to_owned(), values.clone()));
            }
        }
        Ok(Self { rows, traces })
    }
}
