//! Other programs' files as scenarios.

mod flow_list;
mod hpcc;
mod matrix;
mod network;
mod stage;
mod topology;
mod traffic;

use crate::Error;
pub use crate::config::Placement;
use crate::config::{FlowEvent, HostRef};
use crate::decode::Field;
use crate::error::{SourceSpan, Sources, SpannedError};
pub use crate::foreign::TrafficFormat;
use crate::foreign::{ForeignFlow, flow_size};
use crate::kind::FileKind;
use crate::load::parse;
use crate::overrides::Overrides;
use crate::quantity::Decimal;
use crate::traffic::FLOWS;
use crate::tree::{Node, Value};
use crate::write::to_toml;
use files::BYTE_ORDER_MARK;
use flow_list::{MAX_INLINE, list};
pub use hpcc::{HpccNames, import_hpcc};
#[cfg(test)]
pub(crate) use hpcc::{NUMBERS, SETTINGS};
use matrix::{Matrix, StartAt};
#[cfg(test)]
pub(crate) use network::{GRAPHML, LAB, LINKS, SNDLIB};
pub use network::{GraphFormat, GraphNames, GraphOptions, import_graph};
pub use stage::Base;
pub use traffic::{
    GoalOptions, SimaiOptions, TrafficNames, import_chakra, import_goal, import_msccl, import_simai, import_traffic,
};

/// A connection matrix of htsim.
pub(crate) const MATRIX: FileKind = FileKind {
    name: "a connection matrix of htsim",
    expected: "expected `Nodes N`, `Connections N` and lines such as `0->1 start 0 size 1000`",
    matches: |file| {
        let known = ["nodes", "connections", "triggers", "failures", "trigger"];
        file.begins_with(&known) || file.first().contains("->")
    },
};

/// A topology of htsim.
pub(crate) const TIERS: FileKind = FileKind {
    name: "a topology of htsim",
    expected: "expected lines such as `Nodes 16`, `Tiers 3`, `Tier 0`",
    matches: |file| file.begins_with(&topology::KEYS),
};

/// Names that an import needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImportNames<'a> {
    /// The new scenario's.
    pub scenario: &'a str,
    /// The connection matrix's file, for messages.
    pub matrix: &'a str,
    /// The topology's file, for messages.
    pub topology: &'a str,
}

/// Result of an import.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imported {
    /// The scenario.
    pub toml: String,
    /// File next to the scenario if there are over a thousand flows: its name and its text.
    pub flows: Option<(String, String)>,
    /// Differences from the original, to be shown.
    pub notes: Vec<String>,
}

impl Imported {
    /// Returns itself, if it can be simulated. Builds every run: that takes as much memory as checking the scenario
    /// does. `name` represents its file in errors.
    fn checked(self, name: &str) -> Result<Self, SpannedError> {
        let build = || {
            let scenario = parse(&self.toml, &format!("{name}.toml (not written)"), &Overrides::default())?;
            if let Some((name, text)) = &self.flows {
                scenario.inputs.give(name, text, FLOWS);
            }
            scenario.runs().iter().try_for_each(|run| run.build().map(drop))
        };
        match build() {
            Ok(()) => Ok(self),
            Err(error) => Err(SpannedError::new(SourceSpan::NOWHERE, "these files do not make a valid scenario")
                .help(error.to_string())),
        }
    }
}

/// Unit of the starts in a connection matrix. The file does not contain it: the program that reads it takes the number
/// as it is, or as microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartUnit {
    /// Unit of `connection_matrix.cpp` (csg-htsim: `main_ndp.cpp`).
    Picoseconds,
    /// Unit of some senders (uet-htsim: `uec.cpp`; csg-htsim: `eqds.cpp`).
    Microseconds,
}

impl StartUnit {
    /// Picoseconds in one.
    fn ps(self) -> u64 {
        match self {
            Self::Picoseconds => 1,
            Self::Microseconds => 1_000_000,
        }
    }
}

/// Makes a scenario from htsim's connection matrix (`.cm`) and, if there is one, its topology (`.topo`).
///
/// Formats as in Broadcom/csg-htsim: `connection_matrix.cpp`, `topologies/*.topo`. `unit` is that of starts; it may be missing
/// where all of them are zero.
///
/// # Errors
/// If a file is malformed, needs a unit that is missing, or has a feature that a scenario cannot express: triggers that the
/// first of several flows fires, failures, more hosts than are simulated.
pub fn import_htsim(
    matrix: &str,
    topology: Option<&str>,
    unit: Option<StartUnit>,
    names: &ImportNames<'_>,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let matrix_source = sources.add_file(names.matrix, matrix, MATRIX);
    let topology = topology.map(|text| (text, sources.add_file(names.topology, text, TIERS)));
    let mut notes = Vec::new();
    let matrix = matrix::read(matrix, matrix_source, unit, &mut notes);
    matrix.and_then(|matrix| imported(&matrix, topology, names, notes)).map_err(|error| sources.explain(error))
}

fn imported(
    matrix: &Matrix,
    topology: Option<(&str, u32)>,
    names: &ImportNames<'_>,
    mut notes: Vec<String>,
) -> Result<Imported, SpannedError> {
    let network = match topology {
        Some((text, source)) => topology::read(text, source, matrix.nodes, &mut notes)?,
        None => topology::guessed(matrix.nodes, &mut notes),
    };
    notes.push(
        "the scheme runs DCTCP and ports have this project's defaults; htsim takes both from its command line".into(),
    );
    notes.push("flows are numbered from 0 in the order of the file; htsim's ids are not kept".into());

    let (traffic, flows) = traffic(matrix, names);
    let root = Value::table([
        ("schema", Value::Integer(1)),
        ("name", Value::string(names.scenario)),
        ("title", Value::string(format!("imported from htsim: {}", names.matrix))),
        ("description", Value::string(notes.join(". "))),
        ("stop", matrix.stop.map_or(Value::Absent, |stop| stop.encode())),
        ("topology", network),
        ("schemes", Value::table([("dctcp", Value::table([("law", Value::string("dctcp"))]))])),
        ("traffic", Value::Array(vec![Node::generated(traffic)])),
    ]);
    Imported { toml: to_toml(&root), flows, notes }.checked(names.scenario)
}

/// Returns the entry of `[[traffic]]`, and the file next to the scenario if the list is long.
fn traffic(matrix: &Matrix, names: &ImportNames<'_>) -> (Value, Option<(String, String)>) {
    let flow = |flow: &matrix::ListedFlow| {
        let (start, after) = match &flow.start {
            StartAt::Time(span) => (Some(*span), Vec::new()),
            StartAt::After(others) => (None, others.iter().map(|&other| FlowEvent::complete(other)).collect()),
        };
        ForeignFlow { start, src: HostRef::Index(flow.src), dst: HostRef::Index(flow.dst), bytes: flow.size, after }
    };
    let flows: Vec<ForeignFlow> = matrix.flows.iter().map(flow).collect();
    list(&flows, names.scenario)
}

/// A line's tokens, each with its place; without comments.
fn tokens(line: &str, source: u32, line_start: usize) -> Vec<(&str, SourceSpan)> {
    let content = line.split('#').next().unwrap_or_default();
    let content_start = content.as_ptr() as usize;
    let span_of = |token: &str| {
        // A word is a part of `content`, so the difference of their addresses is its place.
        let at = line_start + (token.as_ptr() as usize - content_start);
        SourceSpan::new(source, at..at + token.len())
    };
    content.trim_start_matches(BYTE_ORDER_MARK).split_whitespace().map(|token| (token, span_of(token))).collect()
}

/// Lines with tokens, and where each line begins.
fn lines(text: &str, source: u32) -> impl Iterator<Item = Vec<(&str, SourceSpan)>> {
    let mut start = 0;
    let all = text.split_inclusive('\n').map(move |line| {
        let tokens = tokens(line, source, start);
        start += line.len();
        tokens
    });
    all.filter(|tokens| !tokens.is_empty())
}

/// The number after a keyword.
fn number<T: Number>(tokens: &[(&str, SourceSpan)], at: usize) -> Result<T, SpannedError> {
    let (token, origin) = after(tokens, at)?;
    let bad =
        || SpannedError::new(origin, format!("`{}` needs a number, not `{token}`", tokens[at].0)).label("not a number");
    parsed(token, origin, bad)
}

/// The word after a keyword that needs a number.
fn after<'a>(tokens: &[(&'a str, SourceSpan)], at: usize) -> Result<(&'a str, SourceSpan), SpannedError> {
    let (keyword, origin) = tokens[at];
    let missing = || SpannedError::new(origin, format!("`{keyword}` needs a number")).label("a number is missing");
    tokens.get(at + 1).copied().ok_or_else(missing)
}

/// A type as which a word of a file may be read.
trait Number: Sized {
    /// The largest whole number that fits.
    const MAX: u64;

    fn read(token: &str) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty, $most:expr, $read:expr;)*) => {$(
        impl Number for $type {
            const MAX: u64 = $most;

            fn read(token: &str) -> Option<Self> {
                $read(token)
            }
        }
    )*};
}

numbers! {
    u32, u32::MAX as u64, |token: &str| token.parse().ok();
    u64, u64::MAX, |token: &str| token.parse().ok();
    usize, usize::MAX as u64, |token: &str| token.parse().ok();
    f64, u64::MAX, |token: &str| token.parse().ok();
    Decimal, 999_999_999_999_999_999, Decimal::parse;
}

/// A word as a number. A number that is too large gets an error of its own; `bad` is the error of any other token.
fn parsed<T: Number>(token: &str, origin: SourceSpan, bad: impl FnOnce() -> SpannedError) -> Result<T, SpannedError> {
    T::read(token).ok_or_else(|| {
        if token.bytes().all(|byte| byte.is_ascii_digit()) && !token.is_empty() {
            SpannedError::new(origin, format!("`{token}` is over {}", T::MAX))
                .label(format!("expected at most {}", T::MAX))
        } else {
            bad()
        }
    })
}
