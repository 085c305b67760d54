//! `flows.parquet`: one row a flow, in the order of their numbers, without flows of [`RunInfo::open_ended`] that never
//! started.

use std::ops::Range;
use std::path::Path;

use experiment::{FlowId, Ideals, Outcome, Setup, Start};
use flow::FlowStats;
use laws::LawActions;
use units::{Bytes, Span, Time};

use super::{Taker, ints, opt_ints};
use crate::frame::{Column, DataFrame};
use crate::input::{Class, RunInfo, SizeBin};
use crate::{Error, stats};

/// One flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRow {
    /// Its number.
    pub flow: u32,
    /// The host that sends.
    pub src: u32,
    /// The host that receives.
    pub dst: u32,
    /// Inside a datacenter or between two.
    pub class: Class,
    /// Its traffic, an index into [`FlowTable::traffic`].
    pub traffic: u32,
    /// Its law, an index into [`FlowTable::laws`].
    pub law: u32,
    /// The request that it is part of.
    pub request: Option<u32>,
    /// The collective operation that it is part of.
    pub collective: Option<u32>,
    /// Its start, from the beginning of its collective operation, if each flow of that took its ideal time.
    pub ideal_start: Span,
    /// Payload.
    pub size: Bytes,
    /// Its start; [`Time::NEVER`] if it did not start.
    pub started: Time,
    /// Time at which its last byte was acknowledged; [`Time::NEVER`] if that did not happen.
    pub completed: Time,
    /// Its completion time alone in the network.
    pub ideal: Span,
    /// Base round trip of its path.
    pub base_rtt: Span,
    /// Payload acknowledged.
    pub delivered: Bytes,
    /// The sender's counters.
    pub stats: FlowStats,
    /// The numbers of its law's actions.
    pub actions: LawActions,
}

impl FlowRow {
    /// The flow completion time.
    pub fn fct(&self) -> Option<Span> {
        self.completed.is_set().then(|| self.completed.since(self.started))
    }

    /// Completion time over the ideal one; at least 1.
    pub fn slowdown(&self) -> Option<f64> {
        let fct = self.fct()?;
        (self.ideal > Span::ZERO).then(|| fct.ps() as f64 / self.ideal.ps() as f64)
    }

    /// Returns the share of the acknowledged payload that was marked: 0 to 1.
    pub fn marked_share(&self) -> f64 {
        share(self.stats.marked.get(), self.delivered.get())
    }

    /// Returns the share of the packets sent that were retransmissions: 0 to 1.
    pub fn retransmitted_share(&self) -> f64 {
        share(self.stats.retransmits, self.stats.packets_sent)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// All flows.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FlowTable {
    /// Rows in the order of flow numbers. Numbers may be missing: see [`FlowTable::row`].
    pub rows: Vec<FlowRow>,
    /// The names of traffic, in order of first use.
    pub traffic: Vec<String>,
    /// The names of laws that flows ran, in order of first use.
    pub laws: Vec<String>,
}

const NAME: &str = "flows";

/// Returns the place of a name in a list, and adds it if it is not there yet.
fn intern(names: &mut Vec<String>, name: &str) -> u32 {
    let index = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    index as u32
}

/// By flow: the group that it is part of.
fn groups(groups: &[Vec<FlowId>], flows: usize, group_kind: &str) -> Result<Vec<Option<u32>>, Error> {
    let mut group_of = vec![None; flows];
    for (group, members) in groups.iter().enumerate() {
        for member in members {
            match group_of.get_mut(member.0 as usize) {
                Some(entry) => *entry = Some(group as u32),
                None => {
                    return Err(Error::Mismatch {
                        reason: format!("{group_kind} {group} has flow {} of {flows}", member.0),
                    });
                }
            }
        }
    }
    Ok(group_of)
}

impl FlowTable {
    /// Returns the table of a run's flows and their outcomes.
    ///
    /// # Errors
    /// When the description does not fit the run.
    pub fn new(info: &RunInfo, setup: &Setup, outcome: &Outcome) -> Result<Self, Error> {
        let flows = setup.flows.len();
        let mismatch = |reason: String| Error::Mismatch { reason };
        let counts = [info.classes.len(), info.traffic.len(), outcome.flows.len()];
        if counts != [flows; 3] {
            let [classes, traffic, outcomes] = counts;
            let found = format!("{flows} flows, {classes} classes, traffic of {traffic}, {outcomes} outcomes");
            return Err(mismatch(found));
        }
        let request_of = groups(&info.requests, flows, "request")?;
        let collective_of = groups(&info.collectives, flows, "collective")?;
        let mut table = Self { rows: Vec::with_capacity(flows), ..Self::default() };
        let mut law_of: Vec<Option<u32>> = vec![None; info.laws.len()];
        let mut traffic_of: Vec<Option<u32>> = vec![None; info.traffic_names.len()];
        let mut ideals = Ideals::new(setup);
        for (flow, (spec, flow_outcome)) in setup.flows.iter().zip(&outcome.flows).enumerate() {
            let spare = |range: &Range<u32>| range.contains(&(flow as u32));
            if !flow_outcome.started.is_set() && info.open_ended.iter().any(spare) {
                continue;
            }
            let kind = usize::from(spec.kind);
            let name = info.laws.get(kind).ok_or_else(|| mismatch(format!("flow {flow}'s kind {kind} has no law")))?;
            let law = *law_of[kind].get_or_insert_with(|| intern(&mut table.laws, name));
            let entry = usize::from(info.traffic[flow]);
            let name = info.traffic_names.get(entry);
            let name = name.ok_or_else(|| mismatch(format!("flow {flow}'s traffic {entry} has no name")))?;
            let traffic = *traffic_of[entry].get_or_insert_with(|| intern(&mut table.traffic, name));
            let payload = spec.size.get().min(setup.host.mss.into()) as u32;
            let ideal = ideals.of(spec);
            let ideal_start = match spec.start {
                Start::Waits { after, .. } if collective_of[flow].is_some() => {
                    let ready_times = setup.dependencies_of(spec).iter().filter_map(|&cause| {
                        let row = table.row(cause.flow().0);
                        let row = row.filter(|row| row.collective == collective_of[flow])?;
                        Some(row.ideal_start + ideals.until_notified(cause, row.ideal, spec))
                    });
                    ready_times.max().map_or(Span::ZERO, |ready| ready + after)
                }
                _ => Span::ZERO,
            };
            table.rows.push(FlowRow {
                flow: flow as u32,
                src: spec.src.0,
                dst: spec.dst.0,
                class: info.classes[flow],
                traffic,
                law,
                request: request_of[flow],
                collective: collective_of[flow],
                ideal_start,
                size: spec.size,
                started: flow_outcome.started,
                completed: flow_outcome.completed,
                ideal,
                base_rtt: setup.paths(spec.src, spec.dst, payload).base_rtt,
                delivered: flow_outcome.delivered,
                stats: flow_outcome.stats,
                actions: flow_outcome.actions,
            });
        }
        Ok(table)
    }

    /// The row of a flow; none if it has none.
    pub fn row(&self, flow: u32) -> Option<&FlowRow> {
        // Mostly no number is missing.
        let at_index = self.rows.get(flow as usize).filter(|row| row.flow == flow);
        at_index.or_else(|| self.rows.binary_search_by_key(&flow, |row| row.flow).ok().map(|index| &self.rows[index]))
    }

    /// The law of a row.
    pub(crate) fn law_of(&self, row: &FlowRow) -> &str {
        self.laws.get(row.law as usize).map_or("", String::as_str)
    }

    /// Returns whether a row is in a bin.
    pub fn is_in(&self, row: &FlowRow, bin: &SizeBin) -> bool {
        bin.contains(self.traffic_of(row), row.size, row.class)
    }

    /// The name of the traffic that a row is part of; empty in results from before this was stored.
    pub(crate) fn traffic_of(&self, row: &FlowRow) -> &str {
        self.traffic.get(row.traffic as usize).map_or("", String::as_str)
    }

    pub(crate) fn frame(&self) -> DataFrame {
        let rows = || self.rows.iter();
        let count = |of: fn(&FlowRow) -> u64| ints(rows().map(of));
        let law = |row: &FlowRow| self.laws.get(row.law as usize).map_or("", String::as_str);
        let ns = |of: fn(&FlowRow) -> Span| Column::Real(rows().map(|row| stats::ns(of(row).unsigned_ps())).collect());
        let start = |row: &FlowRow| row.started.is_set().then(|| stats::ns(row.started.ps()));
        let fct = |row: &FlowRow| row.fct().map(|fct| stats::ns(fct.unsigned_ps()));
        let columns: [(&str, Column); 32] = [
            ("flow", count(|row| row.flow.into())),
            ("src", count(|row| row.src.into())),
            ("dst", count(|row| row.dst.into())),
            ("class", Column::Text(rows().map(|row| row.class.name()).collect())),
            ("traffic", Column::Text(rows().map(|row| self.traffic_of(row)).collect())),
            ("law", Column::Text(rows().map(law).collect())),
            ("request", opt_ints(rows().map(|row| row.request.map(u64::from)))),
            ("collective", opt_ints(rows().map(|row| row.collective.map(u64::from)))),
            ("ideal_start_ns", ns(|row| row.ideal_start)),
            ("size_bytes", count(|row| row.size.get())),
            ("start_ns", Column::OptReal(rows().map(start).collect())),
            ("fct_ns", Column::OptReal(rows().map(fct).collect())),
            ("ideal_ns", ns(|row| row.ideal)),
            ("slowdown", Column::OptReal(rows().map(FlowRow::slowdown).collect())),
            ("base_rtt_ns", ns(|row| row.base_rtt)),
            ("delivered_bytes", count(|row| row.delivered.get())),
            ("ecn_marked_bytes", count(|row| row.stats.marked.get())),
            ("packets", count(|row| row.stats.packets_sent)),
            ("retransmits", count(|row| row.stats.retransmits)),
            ("timeouts", count(|row| row.stats.timeouts.into())),
            ("loss_events", count(|row| row.stats.loss_events.into())),
            ("spurious", count(|row| row.stats.spurious)),
            ("nacks", count(|row| row.stats.nacks.into())),
            ("cnps", count(|row| row.stats.cnps)),
            ("on_ramp_hold_ns", ns(|row| row.stats.held)),
            ("parity_packets", count(|row| row.stats.parity)),
            ("recovered_blocks", count(|row| row.stats.recovered)),
            ("increases", count(|row| row.actions.increases)),
            ("cuts", count(|row| row.actions.cuts)),
            ("loss_cuts", count(|row| row.actions.loss_cuts)),
            ("quick_adapts", count(|row| row.actions.quick_adapts)),
            ("probe_rtts", count(|row| row.actions.probe_rtts)),
        ];
        DataFrame { name: NAME, columns: columns.map(|(name, column)| (name.to_owned(), column)).to_vec() }
    }

    pub(crate) fn read(bytes: Vec<u8>, path: &Path) -> Result<Self, Error> {
        let mut take = Taker::open(NAME, "flow", bytes, path)?;
        let count = take.frame.rows();
        let (flow, src, dst) = (take.numbers("flow")?, take.numbers("src")?, take.numbers("dst")?);
        let (class, law) = (take.texts("class")?, take.texts("law")?);
        let traffic = if take.has("traffic") { Some(take.texts("traffic")?) } else { None };
        let request = take.opt_naturals("request")?;
        let collective = if take.has("collective") { take.opt_naturals("collective")? } else { vec![None; count] };
        let ideal_start = if take.has("ideal_start_ns") { take.opt_ps("ideal_start_ns")? } else { vec![None; count] };
        let (start, fct) = (take.opt_ps("start_ns")?, take.opt_ps("fct_ns")?);
        let (ideal, base_rtt) = (take.opt_ps("ideal_ns")?, take.opt_ps("base_rtt_ns")?);
        let [size, delivered, marked] =
            [take.naturals("size_bytes")?, take.naturals("delivered_bytes")?, take.naturals("ecn_marked_bytes")?];
        let [packets, retransmits, spurious] =
            [take.naturals("packets")?, take.naturals("retransmits")?, take.naturals("spurious")?];
        let timeouts = take.numbers("timeouts")?;
        let loss_events: Vec<u32> = if take.has("loss_events") { take.numbers("loss_events")? } else { vec![0; count] };
        let nacks = if take.has("nacks") { take.numbers("nacks")? } else { vec![0; count] };
        let cnps = if take.has("cnps") { take.naturals("cnps")? } else { vec![0; count] };
        let [parity, recovered] = ["parity_packets", "recovered_blocks"]
            .map(|name| if take.has(name) { take.naturals(name) } else { Ok(vec![0; count]) });
        let (parity, recovered) = (parity?, recovered?);
        let hold_times = if take.has("on_ramp_hold_ns") { take.opt_ps("on_ramp_hold_ns")? } else { vec![None; count] };
        let [increases, cuts, loss_cuts, quick_adapts, probe_rtts] = [
            take.naturals("increases")?,
            take.naturals("cuts")?,
            take.naturals("loss_cuts")?,
            take.naturals("quick_adapts")?,
            take.naturals("probe_rtts")?,
        ];
        let span = |ps: Option<u64>| Span::from_ps(ps.unwrap_or(0) as i64);
        let number = |column: &str, row: usize, value: Option<u64>| {
            let read = value.map(u32::try_from).transpose();
            read.map_err(|_| take.wrong(column, format!("row {row}: not a number from 0 to {}", u32::MAX)))
        };
        let mut rows = Vec::with_capacity(count);
        for row in 0..count {
            let name = class.get(row);
            let started = start[row].map_or(Time::NEVER, Time::from_ps);
            let completed = match fct[row] {
                Some(_) if !started.is_set() => {
                    return Err(take.wrong("fct_ns", format!("row {row}: a flow that never started is complete")));
                }
                Some(fct) => started + Span::from_ps(fct as i64),
                None => Time::NEVER,
            };
            rows.push(FlowRow {
                flow: flow[row],
                src: src[row],
                dst: dst[row],
                class: Class::from_name(name)
                    .ok_or_else(|| take.wrong("class", format!("row {row}: `{name}` is neither intra nor inter")))?,
                traffic: traffic.as_ref().map_or(0, |traffic| traffic.rows[row]),
                law: law.rows[row],
                request: number("request", row, request[row])?,
                collective: number("collective", row, collective[row])?,
                ideal_start: span(ideal_start[row]),
                size: Bytes::new(size[row]),
                started,
                completed,
                ideal: span(ideal[row]),
                base_rtt: span(base_rtt[row]),
                delivered: Bytes::new(delivered[row]),
                stats: FlowStats {
                    packets_sent: packets[row],
                    retransmits: retransmits[row],
                    timeouts: timeouts[row],
                    loss_events: loss_events[row],
                    spurious: spurious[row],
                    marked: Bytes::new(marked[row]),
                    nacks: nacks[row],
                    cnps: cnps[row],
                    held: span(hold_times[row]),
                    parity: parity[row],
                    recovered: recovered[row],
                },
                actions: LawActions {
                    increases: increases[row],
                    cuts: cuts[row],
                    loss_cuts: loss_cuts[row],
                    quick_adapts: quick_adapts[row],
                    probe_rtts: probe_rtts[row],
                },
            });
        }
        Ok(Self { rows, traffic: traffic.map(|it| it.names).unwrap_or_default(), laws: law.names })
    }
}
