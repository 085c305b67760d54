//! The log of a sampled flow, made from a run's results: its beginning and end, and its samples.

use results::tables::FlowRow;
use results::{BackendKind, RunResults};
use serde::Serialize;
use units::{Span, Time};

use qlog::sequence::{EventRecord, FileHeader, LawData, MetricsData, ms, put};

#[derive(Serialize)]
struct Started {
    src_host: u32,
    dst_host: u32,
    class: &'static str,
    bytes: u64,
}

#[derive(Serialize)]
struct Delivered {
    sent_bytes: u64,
    delivered_bytes: u64,
}

#[derive(Serialize)]
struct FlowEndRecord {
    trigger: &'static str,
    retransmits: u64,
    timeouts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    slowdown: Option<f64>,
}

/// The records so far.
struct RecordBuffer(Vec<u8>);

impl RecordBuffer {
    fn put(&mut self, after: Span, name: &'static str, data: impl Serialize) {
        put(&mut self.0, &EventRecord { time: ms(after), path_id: None, name, data });
    }
}

/// Returns the end of the title of a log from a run on this backend.
const fn title_end(backend: BackendKind) -> &'static str {
    match backend {
        BackendKind::Simulator => ", simulated",
        BackendKind::Emulator => ", emulated",
        BackendKind::Virtual => ", in virtual time",
    }
}

/// Returns whether a file begins as such a log does.
pub(crate) fn is_flow_log(head: &[u8]) -> bool {
    let ends_so = |backend| {
        let marker = format!("{}\",\"trace\":", title_end(backend));
        head.windows(marker.len()).any(|window| window == marker.as_bytes())
    };
    let backends = [BackendKind::Simulator, BackendKind::Emulator, BackendKind::Virtual];
    head.starts_with(b"\x1e{\"qlog_version\"") && backends.into_iter().any(ends_so)
}

/// The sampled flows of a run, in order.
pub(crate) fn sampled(run: &RunResults) -> Vec<u32> {
    let mut flows: Vec<u32> = run.rates.rows.iter().map(|row| row.flow).collect();
    flows.sort_unstable();
    flows.dedup();
    flows
}

/// The log of a flow that was sampled; none of one that was not, or never started.
pub(crate) fn of_flow(run: &RunResults, flow: u32) -> Option<Vec<u8>> {
    let row = run.flows.row(flow)?;
    if !row.started.is_set() || !run.rates.rows.iter().any(|sample| sample.flow == flow) {
        return None;
    }
    let mut log = RecordBuffer(Vec::new());
    let title = format!("{}, flow {flow}{}", run.summary.run, title_end(run.summary.backend));
    put(&mut log.0, &FileHeader::new(title, "client", None, 0.0));
    let (src_host, dst_host) = (row.src, row.dst);
    let started = Started { src_host, dst_host, class: row.class.name(), bytes: row.size.get() };
    log.put(Span::ZERO, "connectivity:connection_started", started);
    samples(run, row, &mut log);
    if row.completed.is_set() {
        let ended = FlowEndRecord {
            trigger: "clean",
            retransmits: row.stats.retransmits,
            timeouts: row.stats.timeouts.into(),
            slowdown: row.slowdown(),
        };
        log.put(row.completed.since(row.started), "connectivity:connection_closed", ended);
    }
    Some(log.0)
}

/// Writes the samples: changes only.
fn samples(run: &RunResults, flow: &FlowRow, log: &mut RecordBuffer) {
    let law = run.flows.laws.get(flow.law as usize).map_or("", String::as_str);
    let (mut last_metrics, mut last_counts, mut last_values) = (MetricsData::default(), (0, 0), Vec::new());
    for (index, sample) in run.rates.rows.iter().enumerate().filter(|(_, sample)| sample.flow == flow.flow) {
        let after = Time::from_ns(sample.time_ns).saturating_since(flow.started);
        let metrics = MetricsData {
            smoothed_rtt: Some(ms(Time::from_ns(sample.srtt_ns).since(Time::ZERO))),
            congestion_window: sample.cwnd_bytes,
            ..MetricsData::default()
        };
        let changed = metrics.since(&last_metrics);
        if changed != MetricsData::default() {
            log.put(after, "recovery:metrics_updated", &changed);
        }
        last_metrics = metrics;
        let counts = (sample.sent_bytes, sample.delivered_bytes);
        if counts != last_counts {
            log.put(after, "narrows:flow_sampled", Delivered { sent_bytes: counts.0, delivered_bytes: counts.1 });
        }
        last_counts = counts;
        let value = |(name, values): &'_ (String, Vec<Option<i64>>)| Some((name.clone(), (*values.get(index)?)?));
        let values: Vec<(String, i64)> = run.rates.traces.iter().filter_map(value).collect();
        if values != last_values {
            let values = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            log.put(after, "narrows:law_updated", LawData { law, values });
        }
        last_values = values;
    }
}
