//! htsim's connection matrix: flows with start times or triggers.

use std::collections::BTreeMap;

use formats::counted;
use units::Span;

use super::{StartUnit, after, flow_size, lines, number};
use crate::config::PAYLOAD;
use crate::dependency_cycle::find_dependency_cycle;
use crate::error::{SourceSpan, SpannedError};
use crate::index::index32;
use crate::quantity::{Decimal, MAX_SPAN, write_span};

/// Contents of a matrix.
pub(super) struct Matrix {
    pub(super) nodes: u32,
    pub(super) flows: Vec<ListedFlow>,
    /// Latest end of the run, if flows last until then.
    pub(super) stop: Option<Span>,
}

/// Length of a run after the last start, if flows have no end. htsim's programs end 1,000 us after time zero by default (`-end`).
const END: Span = Span::from_ms(1);

/// One connection.
pub(super) struct ListedFlow {
    pub(super) src: u32,
    pub(super) dst: u32,
    /// None: it lasts to the end.
    pub(super) size: Option<u64>,
    pub(super) start: StartAt,
}

/// Start of a connection.
pub(super) enum StartAt {
    Time(Span),
    /// After the flows at these places in the list are complete.
    After(Vec<u32>),
}

/// A connection as written.
struct MatrixEntry {
    src: u32,
    dst: u32,
    /// None: it lasts to the end.
    size: Option<u64>,
    start: Option<Span>,
    waits_for: Option<(u32, SourceSpan)>,
    origin: SourceSpan,
}

#[derive(Clone, Copy)]
enum MatrixEntryKind {
    OneShot,
    MultiShot,
    Barrier(u32),
}

#[derive(Default)]
struct MatrixReader {
    unit: Option<StartUnit>,
    nodes: Option<u32>,
    /// The counts that the header states, and where.
    stated: BTreeMap<&'static str, (usize, SourceSpan)>,
    connections: Vec<MatrixEntry>,
    triggers: BTreeMap<u32, (MatrixEntryKind, SourceSpan)>,
    /// The flows that fire each trigger when they are complete.
    fired_by: BTreeMap<u32, Vec<u32>>,
    priorities: bool,
    /// Set if a start is over zero.
    timed: bool,
    fractions: bool,
    receiver_triggers: bool,
}

/// Reads a matrix with starts in `unit`, which may be unknown if all of them are zero.
pub(super) fn read(
    text: &str,
    source: u32,
    unit: Option<StartUnit>,
    notes: &mut Vec<String>,
) -> Result<Matrix, SpannedError> {
    let mut reading = MatrixReader { unit, ..MatrixReader::default() };
    for tokens in lines(text, source) {
        let (token, origin) = tokens[0];
        match token {
            "Nodes" => reading.nodes = Some(number(&tokens, 0)?),
            "Connections" => drop(reading.stated.insert("Connections", (number(&tokens, 0)?, origin))),
            "Triggers" => drop(reading.stated.insert("Triggers", (number(&tokens, 0)?, origin))),
            "Failures" => {
                if number::<u32>(&tokens, 0)? > 0 {
                    return Err(SpannedError::new(origin, "failed links cannot be imported").label("not supported"));
                }
            }
            "trigger" => reading.trigger(&tokens)?,
            "failure" => {
                return Err(SpannedError::new(origin, "failed links cannot be imported").label("not supported"));
            }
            token if token.contains("->") => reading.connection(&tokens)?,
            token => {
                return Err(SpannedError::new(origin, format!("unknown word `{token}`"))
                    .label("expected `src->dst`, `trigger` or a header")
                    .suggest(token, ["Nodes", "Connections", "Triggers", "Failures", "trigger"]));
            }
        }
    }
    reading.finish(source, notes)
}

impl MatrixReader {
    fn connection(&mut self, tokens: &[(&str, SourceSpan)]) -> Result<(), SpannedError> {
        let (pair, origin) = tokens[0];
        let ends = pair.split_once("->").and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
        let Some((src, dst)) = ends else {
            return Err(SpannedError::new(origin, format!("`{pair}` is no pair of hosts")).label("expected `0->1`"));
        };
        let index = index32(self.connections.len());
        let (mut size, mut start, mut waits_for) = (None, None, None);
        let mut at = 1;
        while at < tokens.len() {
            let (token, span) = tokens[at];
            match token {
                "start" => start = Some(self.start(tokens, at)?),
                "size" => size = Some((number::<u64>(tokens, at)?, tokens[at + 1].1)),
                "id" => drop(number::<u64>(tokens, at)?),
                "prio" => {
                    number::<u64>(tokens, at)?;
                    self.priorities = true;
                }
                "trigger" => waits_for = Some((number(tokens, at)?, span)),
                "send_done_trigger" => self.fired_by.entry(number(tokens, at)?).or_default().push(index),
                "recv_done_trigger" => {
                    self.receiver_triggers = true;
                    self.fired_by.entry(number(tokens, at)?).or_default().push(index);
                }
                "addon" => {
                    return Err(SpannedError::new(
                        span,
                        "`addon` grows a flow when a trigger fires, which a scenario cannot express",
                    )
                    .label("not supported"));
                }
                token => {
                    return Err(SpannedError::new(span, format!("unknown word `{token}`"))
                        .label("unknown word")
                        .suggest(
                            token,
                            ["id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio"],
                        ));
                }
            }
            at += 2;
        }
        let Some((size, size_at)) = size else {
            return Err(SpannedError::new(origin, "this connection has no size").label("needs `size BYTES`"));
        };
        // The programs set a flow's size only if it is over zero (`main_uec.cpp`, `main_ndp.cpp` and others).
        let size = if size == 0 { None } else { Some(flow_size(size, PAYLOAD.get().into(), size_at)?) };
        match (start.is_some(), waits_for) {
            (false, None) => {
                return Err(SpannedError::new(origin, "this connection never starts")
                    .label("needs `start TIME` or `trigger ID`"));
            }
            (true, Some((_, span))) => {
                return Err(
                    SpannedError::new(span, "a connection has either `start` or `trigger`").label("and also `start`")
                );
            }
            _ => {}
        }
        self.connections.push(MatrixEntry { src, dst, size, start, waits_for, origin });
        Ok(())
    }

    /// A start, which may have decimals.
    fn start(&mut self, tokens: &[(&str, SourceSpan)], at: usize) -> Result<Span, SpannedError> {
        let (text, origin) = after(tokens, at)?;
        let bad = || {
            SpannedError::new(origin, format!("`{text}` is no start time")).label("expected a number from 0 to 10^6 s")
        };
        let decimal = Decimal::parse(text).ok_or_else(bad)?;
        if decimal.is_zero() {
            return Ok(Span::ZERO);
        }
        let Some(unit) = self.unit else {
            return Err(SpannedError::new(origin, format!("`start {text}` is in a unit that the file does not name"))
                .label("picoseconds or microseconds")
                .help("give --start-unit ps if it is for a program that takes `start` as it is, such as csg-htsim's main_ndp")
                .help("give --start-unit us if it is for one that takes microseconds, such as uet-htsim's (uec.cpp) or csg-htsim's main_eqds"));
        };
        self.timed = true;
        let ps = decimal.of(unit.ps());
        self.fractions |= !decimal.is_whole(unit.ps());
        i64::try_from(ps).ok().filter(|&ps| ps <= 1_000_000_000_000_000_000).map(Span::from_ps).ok_or_else(bad)
    }

    fn trigger(&mut self, tokens: &[(&str, SourceSpan)]) -> Result<(), SpannedError> {
        let (mut id, mut kind, mut count) = (None, None, 0);
        let mut at = 1;
        while at < tokens.len() {
            let (token, span) = tokens[at];
            at += 1;
            match token {
                "id" | "count" => {
                    let value: u32 = number(tokens, at - 1)?;
                    if token == "id" {
                        id = Some(value);
                    } else {
                        count = value;
                    }
                    at += 1;
                }
                "oneshot" => kind = Some(MatrixEntryKind::OneShot),
                "multishot" => kind = Some(MatrixEntryKind::MultiShot),
                "barrier" => kind = Some(MatrixEntryKind::Barrier(0)),
                token => {
                    return Err(SpannedError::new(span, format!("unknown word `{token}`"))
                        .label("unknown word")
                        .suggest(token, ["id", "count", "oneshot", "multishot", "barrier"]));
                }
            }
        }
        let origin = tokens[0].1;
        let (Some(id), Some(kind)) = (id, kind) else {
            return Err(
                SpannedError::new(origin, "a trigger has an id and a kind").label("expected `trigger id 1 oneshot`")
            );
        };
        let kind = if matches!(kind, MatrixEntryKind::Barrier(_)) { MatrixEntryKind::Barrier(count) } else { kind };
        self.triggers.insert(id, (kind, origin));
        Ok(())
    }

    fn finish(self, source: u32, notes: &mut Vec<String>) -> Result<Matrix, SpannedError> {
        let top = SourceSpan::new(source, 0..0);
        let nodes = self.nodes.ok_or_else(|| SpannedError::new(top, "the matrix has no line `Nodes N`"))?;
        for (keyword, actual) in [("Connections", self.connections.len()), ("Triggers", self.triggers.len())] {
            match self.stated.get(keyword) {
                Some(&(stated, origin)) if stated != actual => {
                    return Err(SpannedError::new(origin, format!("`{keyword} {stated}`, but there are {actual}"))
                        .label("expected the number of lines"));
                }
                _ => {}
            }
        }
        if self.connections.is_empty() {
            return Err(SpannedError::new(top, "the matrix has zero flows"));
        }
        let mut flows = Vec::with_capacity(self.connections.len());
        for connection in &self.connections {
            let MatrixEntry { src, dst, size, origin, .. } = *connection;
            if src >= nodes || dst >= nodes || src == dst {
                return Err(SpannedError::new(origin, format!("a flow goes from one of {nodes} nodes to another"))
                    .label(format!("expected two different numbers from 0 to {}", nodes.saturating_sub(1))));
            }
            let start = match (connection.start, connection.waits_for) {
                (Some(start), _) => StartAt::Time(start),
                (None, Some((id, span))) => {
                    let sources = self.sources_of(id, span)?;
                    let endless = |&&source: &&u32| self.connections[source as usize].size.is_none();
                    if let Some(&source) = sources.iter().find(endless) {
                        let MatrixEntry { src, dst, .. } = self.connections[source as usize];
                        let message = format!(
                            "this connection waits for {src}->{dst}, which has size 0 and never ends: it would never start"
                        );
                        return Err(
                            SpannedError::new(span, message).label("expected a trigger of a connection with a size")
                        );
                    }
                    StartAt::After(sources)
                }
                (None, None) => return Err(SpannedError::new(origin, "this connection never starts")),
            };
            flows.push(ListedFlow { src, dst, size, start });
        }
        let after = |index: usize| match &flows[index].start {
            StartAt::After(others) => others.iter().map(|&other| other as usize).collect(),
            StartAt::Time(_) => Vec::new(),
        };
        if let Some(cycle) = find_dependency_cycle(flows.len(), after) {
            let message = "this connection waits for itself, through its triggers: it would never start";
            return Err(SpannedError::new(self.connections[cycle[0]].origin, message).label("a cycle"));
        }
        let endless = flows.iter().filter(|flow| flow.size.is_none()).count();
        let last = self.connections.iter().filter_map(|connection| connection.start).max().unwrap_or(Span::ZERO);
        let stop = (endless > 0).then_some(Span::from_ps(last.ps().saturating_add(END.ps()).min(MAX_SPAN.ps())));
        self.note(notes);
        if let Some(stop) = stop {
            notes.push(format!(
                "{} without an end (`size 0`): the run stops at {}, 1 ms after the last start, as htsim does without `-end`; \
                 set `stop` to the end that it had there",
                counted(endless, "connection"),
                write_span(stop)
            ));
        }
        Ok(Matrix { nodes, flows, stop })
    }

    /// Returns the flows that fire a trigger when they end: one, or all that a barrier counts.
    fn sources_of(&self, id: u32, span: SourceSpan) -> Result<Vec<u32>, SpannedError> {
        let Some(&(kind, defined)) = self.triggers.get(&id) else {
            return Err(SpannedError::new(span, format!("there is no trigger {id}")).label("not defined"));
        };
        let sources = self.fired_by.get(&id).map_or(&[][..], Vec::as_slice);
        match (kind, sources) {
            (_, []) => Err(SpannedError::new(span, format!("nothing fires trigger {id}: this flow would never start"))
                .label("needs a flow with send_done_trigger")),
            (MatrixEntryKind::Barrier(count), sources) if count as usize == sources.len() => {
                // A flow may fire it twice: when its sender is done, and its receiver.
                let mut sources = sources.to_vec();
                sources.dedup();
                Ok(sources)
            }
            (MatrixEntryKind::Barrier(count), sources) if count > 1 => {
                let message = format!("trigger {id} waits for {count} flows, and {} fire it", sources.len());
                Err(SpannedError::new(defined, message).label("not supported"))
            }
            (_, &[source]) => Ok(vec![source]),
            (_, several) => Err(SpannedError::new(
                defined,
                format!("{} flows fire trigger {id}, any of them; a flow of a scenario waits for all", several.len()),
            )
            .label("not supported")),
        }
    }

    fn note(&self, notes: &mut Vec<String>) {
        if let Some(unit) = self.unit.filter(|_| self.timed) {
            notes.push(match unit {
                StartUnit::Picoseconds => {
                    "start times are read as picoseconds, exactly; htsim rounds them to 24 significant bits".into()
                }
                StartUnit::Microseconds => {
                    "start times are read as microseconds, exactly; htsim's programs cut them to whole ones".into()
                }
            });
        }
        if !self.fired_by.is_empty() {
            notes.push(
                "a trigger across hosts fires after the path's one-way delay, because news takes that long; htsim fires it at once".into(),
            );
        }
        if self.receiver_triggers {
            notes.push("recv_done_trigger fires when the sender knows that its flow is complete, a one-way delay later than in htsim".into());
        }
        if self.triggers.values().any(|(kind, _)| matches!(kind, MatrixEntryKind::MultiShot)) {
            notes.push("a multishot trigger that one flow fires is one that fires once".into());
        }
        for id in self
            .fired_by
            .keys()
            .filter(|id| !self.connections.iter().any(|it| it.waits_for.is_some_and(|(waits, _)| waits == **id)))
        {
            notes.push(format!("trigger {id} is fired, but no flow waits for it"));
        }
        if self.priorities {
            notes.push("priorities of flows (`prio`) are left out".into());
        }
        if self.fractions {
            notes.push("fractions of picoseconds in start times are cut off".into());
        }
    }
}
