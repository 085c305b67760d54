//! A run as a trace that <https://ui.perfetto.dev> opens: flows, collective operations, failures, pauses,
//! queues, buffers, windows, rates.
//!
//! The form is Perfetto's `TracePacket` with track events, in Protocol Buffers (Perfetto, "Writing `TrackEvent`
//! Protos Synthetically"; field numbers of `trace_packet.proto`, `track_event.proto`, `track_descriptor.proto`,
//! `counter_descriptor.proto`, `process_descriptor.proto` and `debug_annotation.proto`). Times are nanoseconds from the run's
//! beginning.

use std::collections::BTreeMap;

use crate::store::RunResults;
use crate::tables::FlowRow;

/// A message that is being written.
#[derive(Default)]
struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn double(mut self, field: u64, value: f64) -> Self {
        self.varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }
}

/// The name of the first track, which identifies a file as ours.
const FIRST: &str = "flows, by the host that sends";

/// Returns whether a file begins as a trace of Narrows does.
pub fn is_timeline(head: &[u8]) -> bool {
    head.windows(FIRST.len()).take(64).any(|window| window == FIRST.as_bytes())
}

/// The unit of a counter.
#[derive(Clone, Copy)]
enum CounterUnit {
    Bytes,
    Nanoseconds,
    BitsPerSecond,
    /// Known by the counter's name alone.
    Named,
}

/// The trace so far.
struct TraceWriter {
    packets: ProtobufMessage,
    /// The number of the track that was described last. Perfetto wants them different, and not 0.
    track: u64,
}

impl TraceWriter {
    fn packet(&mut self, packet: &ProtobufMessage) {
        self.packets = std::mem::take(&mut self.packets).message(1, packet);
    }

    /// A track under another one, or a group of tracks of its own.
    fn track(&mut self, name: &str, parent: Option<u64>, counts: Option<CounterUnit>) -> u64 {
        self.track += 1;
        let mut descriptor = ProtobufMessage::default().number(1, self.track).text(2, name);
        descriptor = if let Some(parent) = parent {
            descriptor.number(5, parent)
        } else {
            descriptor.message(3, &ProtobufMessage::default().number(1, self.track).text(6, name))
        };
        if let Some(unit) = counts {
            let counter = match unit {
                CounterUnit::Nanoseconds => ProtobufMessage::default().number(3, 1),
                CounterUnit::Bytes => ProtobufMessage::default().number(3, 3),
                CounterUnit::BitsPerSecond => ProtobufMessage::default().text(6, "bit/s"),
                CounterUnit::Named => ProtobufMessage::default(),
            };
            descriptor = descriptor.message(8, &counter);
        }
        self.packet(&ProtobufMessage::default().number(10, 1).message(60, &descriptor));
        self.track
    }

    fn event(&mut self, ns: u64, event: &ProtobufMessage) {
        self.packet(&ProtobufMessage::default().number(8, ns).number(10, 1).message(11, event));
    }

    /// A slice. Its arguments are names and values.
    fn slice(&mut self, track: u64, [begin, end]: [u64; 2], name: &str, annotations: &[(&str, String)]) {
        let mut event = ProtobufMessage::default().number(9, 1).number(11, track).text(23, name);
        for (key, value) in annotations {
            event = event.message(4, &ProtobufMessage::default().text(10, key).text(6, value));
        }
        self.event(begin, &event);
        self.event(end, &ProtobufMessage::default().number(9, 2).number(11, track));
    }

    fn count(&mut self, track: u64, ns: u64, value: f64) {
        self.event(ns, &ProtobufMessage::default().number(9, 4).number(11, track).double(44, value));
    }
}

/// Slices that share tracks: one that begins before another ends goes to the next track.
#[derive(Default)]
struct Lanes(Vec<(u64, u64)>);

impl Lanes {
    /// The track of a slice. Slices are passed in order of their begin.
    fn of(&mut self, [begin, end]: [u64; 2], mut track: impl FnMut(usize) -> u64) -> u64 {
        if let Some((free, until)) = self.0.iter_mut().find(|(_, until)| *until <= begin) {
            *until = end;
            return *free;
        }
        let id = track(self.0.len() + 1);
        self.0.push((id, end));
        id
    }
}

/// The run as a trace of Perfetto, a `.pftrace` file.
pub fn perfetto(run: &RunResults) -> Vec<u8> {
    let mut trace = TraceWriter { packets: ProtobufMessage::default(), track: 0 };
    flows(run, &mut trace);
    collectives(run, &mut trace);
    failures(run, &mut trace);
    pauses(run, &mut trace);
    ports(run, &mut trace);
    sampled(run, &mut trace);
    trace.packets.0
}

/// Returns the last time in the results, in nanoseconds: flows that had not ended by then are drawn to here.
fn last_ns(run: &RunResults) -> u64 {
    let failures = run.summary.network.failures.iter().flat_map(|failure| &failure.down_ns);
    let failures = failures.map(|&(from, until)| until.unwrap_or(from)).max();
    let times = run.flows.rows.iter().flat_map(|flow| [flow.started, flow.completed]);
    let flows = times.filter(|time| time.is_set()).map(|time| time.ps() / 1_000).max();
    let samples = run.ports.rows.last().map(|row| row.time_ns).max(run.rates.rows.last().map(|row| row.time_ns));
    let switches = run.switches.rows.last().map(|row| row.time_ns);
    let pauses = run.pauses.rows.iter().map(|row| row.end_ns).max();
    flows.max(samples).max(switches).max(pauses).max(failures).unwrap_or(0)
}

fn span(flow: &FlowRow, last: u64) -> [u64; 2] {
    let end = if flow.completed.is_set() { flow.completed.ps() / 1_000 } else { last };
    let begin = flow.started.ps() / 1_000;
    [begin, end.max(begin)]
}

/// One slice per flow, by the host that sends it.
fn flows(run: &RunResults, trace: &mut TraceWriter) {
    let last = last_ns(run);
    let mut by_host: BTreeMap<u32, Vec<&FlowRow>> = BTreeMap::new();
    for flow in run.flows.rows.iter().filter(|flow| flow.started.is_set()) {
        by_host.entry(flow.src).or_default().push(flow);
    }
    let all = trace.track(FIRST, None, None);
    for (host, mut flows) in by_host {
        flows.sort_by_key(|flow| (flow.started, flow.flow));
        let parent = trace.track(&format!("host {host}"), Some(all), None);
        let mut lanes = Lanes::default();
        for flow in flows {
            let times = span(flow, last);
            let track = lanes.of(times, |lane| trace.track(&format!("host {host}, {lane}"), Some(parent), None));
            let slowdown = flow.slowdown().map_or_else(|| "did not end".to_owned(), |it| format!("{it:.3}"));
            let annotations = [
                ("class", flow.class.name().to_owned()),
                ("bytes", flow.size.get().to_string()),
                ("slowdown", slowdown),
                ("retransmits", flow.stats.retransmits.to_string()),
                ("timeouts", flow.stats.timeouts.to_string()),
            ];
            trace.slice(track, times, &format!("{} to {}", flow.flow, flow.dst), &annotations);
        }
    }
}

/// One slice per collective operation, by the traffic or job that it is of.
fn collectives(run: &RunResults, trace: &mut TraceWriter) {
    let last = last_ns(run);
    let mut operations: BTreeMap<(u32, u32), [u64; 2]> = BTreeMap::new();
    for flow in run.flows.rows.iter().filter(|flow| flow.started.is_set()) {
        let Some(operation) = flow.collective else { continue };
        let [begin, end] = span(flow, last);
        let times = operations.entry((flow.traffic, operation)).or_insert([begin, end]);
        *times = [times[0].min(begin), times[1].max(end)];
    }
    if operations.is_empty() {
        return;
    }
    let all = trace.track("collective operations", None, None);
    let mut operations: Vec<_> = operations.into_iter().collect();
    operations.sort_by_key(|&((traffic, operation), [begin, _])| (traffic, begin, operation));
    let mut lanes: BTreeMap<u32, Lanes> = BTreeMap::new();
    for ((traffic, operation), times) in operations {
        let name = run.flows.traffic.get(traffic as usize).cloned().unwrap_or_default();
        let named = |lane: usize| format!("{name}, {lane}");
        let track = lanes.entry(traffic).or_default().of(times, |lane| trace.track(&named(lane), Some(all), None));
        trace.slice(track, times, &format!("operation {operation}"), &[]);
    }
}

/// A slice each time that links were down.
fn failures(run: &RunResults, trace: &mut TraceWriter) {
    let failures = &run.summary.network.failures;
    if failures.is_empty() {
        return;
    }
    let last = last_ns(run);
    let all = trace.track("links that were down", None, None);
    for failure in failures {
        let left = failure.count.saturating_sub(failure.links.len() as u64);
        let others = if left > 0 { format!(" and {left} more") } else { String::new() };
        let track = trace.track(&format!("{}{others}", failure.links.join(", ")), Some(all), None);
        for &(from, until) in &failure.down_ns {
            trace.slice(track, [from, until.unwrap_or(last).max(from)], "down", &[]);
        }
    }
}

/// A slice each time that a sampled port was paused.
fn pauses(run: &RunResults, trace: &mut TraceWriter) {
    let table = &run.pauses;
    if table.rows.is_empty() {
        return;
    }
    let all = trace.track("ports that were paused", None, None);
    let tracks: Vec<u64> = table.names.iter().map(|name| trace.track(name, Some(all), None)).collect();
    for row in &table.rows {
        let Some(&track) = tracks.get(row.port as usize) else { continue };
        trace.slice(track, [row.start_ns, row.end_ns.max(row.start_ns)], "paused", &[]);
    }
}

/// Adds a counter for each sampled value of ports and switches.
fn ports(run: &RunResults, trace: &mut TraceWriter) {
    let table = &run.ports;
    if !table.rows.is_empty() {
        let all = trace.track("ports", None, None);
        let mut tracks: BTreeMap<(u32, &str), u64> = BTreeMap::new();
        for row in &table.rows {
            let values = [
                ("queue", Some(row.queue_bytes), CounterUnit::Bytes),
                ("phantom queue", row.phantom_bytes, CounterUnit::Bytes),
                ("ingress buffer", row.ingress_bytes, CounterUnit::Bytes),
                ("pseudo queue", row.pseudo_bytes, CounterUnit::Bytes),
                ("fed back", row.feedback_bps, CounterUnit::BitsPerSecond),
            ];
            for (counter, value, unit) in values {
                let Some(value) = value else { continue };
                let Some(port) = table.ports.get(row.port as usize).map(|port| &port.name) else { continue };
                let track = *tracks
                    .entry((row.port, counter))
                    .or_insert_with(|| trace.track(&format!("{port}: {counter}"), Some(all), Some(unit)));
                trace.count(track, row.time_ns, value as f64);
            }
        }
    }
    let table = &run.switches;
    if !table.rows.is_empty() {
        let all = trace.track("switches", None, None);
        let tracks: Vec<u64> = table
            .names
            .iter()
            .map(|name| trace.track(&format!("{name}: buffer"), Some(all), Some(CounterUnit::Bytes)))
            .collect();
        for row in &table.rows {
            let Some(&track) = tracks.get(row.switch as usize) else { continue };
            trace.count(track, row.time_ns, row.buffer_bytes as f64);
        }
    }
}

/// Counters for the samples of flows and the state that their laws trace.
fn sampled(run: &RunResults, trace: &mut TraceWriter) {
    let table = &run.rates;
    if table.rows.is_empty() {
        return;
    }
    let all = trace.track("sampled flows", None, None);
    let mut tracks: BTreeMap<(u32, String), u64> = BTreeMap::new();
    let mut before: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (index, row) in table.rows.iter().enumerate() {
        let mut count = |counter: &str, value: f64, unit: CounterUnit| {
            let track = *tracks
                .entry((row.flow, counter.to_owned()))
                .or_insert_with(|| trace.track(&format!("flow {}: {counter}", row.flow), Some(all), Some(unit)));
            trace.count(track, row.time_ns, value);
        };
        if let Some(window) = row.cwnd_bytes {
            count("window", window as f64, CounterUnit::Bytes);
        }
        count("round trip", row.srtt_ns as f64, CounterUnit::Nanoseconds);
        if let Some((time, delivered)) = before.insert(row.flow, (row.time_ns, row.delivered_bytes))
            && row.time_ns > time
        {
            let bits = 8.0 * (row.delivered_bytes.saturating_sub(delivered)) as f64;
            count("delivered", bits * 1e9 / (row.time_ns - time) as f64, CounterUnit::BitsPerSecond);
        }
        for (name, values) in &table.traces {
            if let Some(value) = values.get(index).copied().flatten() {
                count(name, value as f64, CounterUnit::Named);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_protocol_buffers() {
        // The examples of its encoding guide: 150 in field 1, "testing" in field 2, and the first in field 3.
        let first = ProtobufMessage::default().number(1, 150);
        assert_eq!(first.0, [0x08, 0x96, 0x01]);
        assert_eq!(
            ProtobufMessage::default().text(2, "testing").0,
            [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]
        );
        assert_eq!(ProtobufMessage::default().message(3, &first).0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(ProtobufMessage::default().double(44, 1.0).0, [0xe1, 0x02, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }

    #[test]
    fn slices_on_one_track_do_not_overlap() {
        let mut lanes = Lanes::default();
        let mut count = 0;
        let mut of = |times| {
            lanes.of(times, |_| {
                count += 1;
                count
            })
        };
        assert_eq!([of([0, 10]), of([5, 20]), of([10, 12]), of([11, 30]), of([12, 13])], [1, 2, 1, 3, 1]);
    }
}
