//! Types of a scenario file: each table is one definition with its defaults and its documentation.

mod choice;
mod clock;
mod codel;
mod coding;
mod credit;
mod external_law;
mod failure;
mod grid;
mod host;
mod impair;
mod ingress_limit;
mod job;
mod layered;
mod lscc;
mod monitor;
mod paths;
mod port;
mod scheme;
mod switch;
mod topology;
mod traffic;
mod trim;

use units::Span;

pub(crate) use crate::decode::Located;
use crate::decode::{NamedValues, table};
use crate::error::SpannedError;
use crate::tree::Node;

pub use choice::{Auto, OffOr, WindowOr};
pub use clock::{Clock, ExactTicks, TiesWord};
pub use codel::{CoDelTable, FqCoDelTable};
pub use coding::{CodingTable, NackWord, RetransmitWord};
pub(crate) use credit::CreditLaw;
pub use credit::{CreditChoice, CreditQueueTable};
pub use external_law::{ExternalLaw, LawName};
pub use failure::{Failure, LossBursts};
pub use grid::{Cause, DrawWord, GridValues, RandomPoints, Range, SampleValues, Scale, SpreadWord, Variant};
#[cfg(feature = "import")]
pub(crate) use host::PAYLOAD;
pub(crate) use host::PortReports;
pub use host::{
    AcksWord, Host, HostOverrides, LossTimerWord, OnRampTable, PaceWord, RecoveryWord, TRANSPORT_HEADER, TcpTable,
};
pub use impair::{
    AckAggregationTable, DelayDistribution, ImpairTable, LinkJitterTable, PoliceTable, RateStepTable, ReorderTable,
};
pub(crate) use ingress_limit::CablePorts;
pub use ingress_limit::{Headroom, XoffThreshold, XonThreshold};
pub use job::{Collectives, ComputeTimes, Job, Model, Outermost, Parallel, PipelineWord, Placed, PlacementOrder};
pub use lscc::{Lscc, SwingTable};
pub use monitor::{FlowChoice, Monitor, SizeRange};
pub use paths::{LoadBalancingConfig, PathTable, PathWord, PlbTable, RepsTable, RerouteWord, UnoLbTable};
pub use port::{
    Ecn, MarkTime, Phantom, PhantomQueue, Port, PortBuffer, PortClassOverrides, PortOverrides, PortSettings,
    RedMarking, ServiceView, StepMarking, Threshold,
};
pub(crate) use scheme::{LAW_PARAMS, law_setting};
pub use scheme::{LawParams, Scheme, Setting};
pub(crate) use switch::SwitchBuffers;
pub use switch::{PfcTable, Switch, SwitchBuffer, SwitchClassOverrides, SwitchOverrides, SwitchSettings, Tier};
pub(crate) use topology::AttachedHosts;
pub use topology::{
    Cable, Clos, CustomTopology, Dumbbell, EachHost, FatTrees, InterPair, NodeSpec, NodeWord, SingleSwitch, Topology,
};
pub(crate) use traffic::FlowOptions;
pub use traffic::{
    Algorithm, Allreduce, ClosedLoop, Collective, Connections, DataClass, Flow, FlowEvent, FlowEvents, FlowList,
    FlowState, ForeignFormat, HostRef, HostSet, ImportedTraffic, Incast, IntraInterRatio, LongFlows, Operation,
    Pattern, Permutation, Placement, Poisson, RatioOf, Requests, Scope, Traffic,
};
pub use trim::Trimming;

/// The `schema` that this code reads.
pub const SCHEMA: u64 = 1;

table! {
    /// A scenario file. Its tables:
    Config {
        /// The version of this format: 1.
        schema: Located<u64> = Located::default_of(SCHEMA);
        /// Base scenario, a file in the same directory, to which this one makes changes: tables are laid over those of
        /// the base key by key, all else replaces the base's, and so does a table of another `kind`. `name` is this
        /// file's own.
        extends: Option<String> = None;
        /// Keys of the extended scenario that this one does not have, with dots: `["schemes.cubic", "grid"]`.
        without: Vec<String> = Vec::new();
        /// The scenario's name: letters, digits, `-`, `_`, `+` and `.`.
        name: Located<String>;
        /// Summary in one line.
        title: String = String::new();
        /// Longer description.
        description: String = String::new();
        /// Seed of everything random.
        seed: u64 = 1;
        /// The simulated time at which the run ends even if flows are left.
        stop: Located<Span> = Located::default_of(Span::from_s(10));
        /// Resolution of simulated time; without this table, exact.
        clock: Clock = crate::decode::Field::decode(&Node::empty_table())?;
        /// Hosts, switches and links.
        topology: Located<Topology>;
        /// The ports of switches.
        port: Port = crate::decode::Field::decode(&Node::empty_table())?;
        /// Switches whose ports share one buffer; without it every port has a queue of its own.
        switch: Option<Switch> = None;
        /// The hosts.
        host: Host = crate::decode::Field::decode(&Node::empty_table())?;
        /// Schemes to compare: each is a run. At least one.
        schemes: Located<NamedValues<Scheme>>;
        /// Laws that the calling program supplies (Python), by names that begin with a capital letter.
        external_laws: NamedValues<ExternalLaw> = NamedValues::default();
        /// Traffic: each entry makes flows, all in one run. At least one, or a job.
        traffic: Located<Vec<Located<Traffic>>> = Located::default_of(Vec::new());
        /// Training jobs, all in one run, in addition to the traffic.
        job: Vec<Located<Job>> = Vec::new();
        /// Links that fail.
        failure: Vec<Located<Failure>> = Vec::new();
        /// Sampling over time.
        monitor: Monitor = crate::decode::Field::decode(&Node::empty_table())?;
        /// Bins of the summary by name: flows of sizes from a lower end up to, but without, an upper end, of all flows, of those
        /// inside or between datacenters, or of the traffic of a name.
        sizes: NamedValues<SizeRange> = NamedValues::default();
        /// Keys and the values that they take in turn: every combination is a run of every scheme.
        grid: NamedValues<GridValues> = NamedValues::default();
        /// Points one by one, each with a value for the same keys: every one is a run of every scheme, at each point of `[grid]`.
        points: Vec<Located<NamedValues<Node>>> = Vec::new();
        /// Points that are drawn, random or quasi-random.
        random_points: Option<RandomPoints> = None;
        /// More runs of every scheme, each with some keys changed.
        variants: NamedValues<Variant> = NamedValues::default();
        /// Sets of overrides, chosen by `--scale`. Of an experiment (a file with `[paper]`, claims or tables) the file as it stands is the scale `paper`.
        scale: NamedValues<Scale> = NamedValues::default();
        /// Statements of a paper on this experiment.
        paper: Option<Node> = None;
        /// Claims to judge.
        claim: Vec<Node> = Vec::new();
        /// Suspected causes of claims that are not reproduced.
        cause: Vec<Located<Cause>> = Vec::new();
        /// Tables of what runs measured, averaged over seeds.
        table: Vec<Node> = Vec::new();
    }
}

impl Config {
    /// A scheme's name in tables and plots: its own in the file where laws alone would name several alike.
    pub(crate) fn label_of(&self, name: &str, scheme: &Scheme) -> String {
        let label = scheme.label();
        let has_duplicate = self.schemes.iter().filter(|(_, other)| other.label() == label).count() > 1;
        if scheme.label.is_none() && has_duplicate { name.to_owned() } else { label }
    }

    /// Refuses combinations that single values cannot show.
    pub(crate) fn check(&self) -> Result<(), SpannedError> {
        if self.schema.value != SCHEMA {
            return Err(SpannedError::new(
                self.schema.origin,
                format!("this version reads schema {SCHEMA}, not {}", *self.schema),
            ));
        }
        check_name(&self.name, "a scenario's name")?;
        if self.stop.is_zero() {
            return Err(SpannedError::new(self.stop.origin, "the run would end before it began")
                .label("expected a time over zero"));
        }
        self.clock.check()?;
        if self.schemes.is_empty() {
            return Err(SpannedError::new(self.schemes.origin, "no schemes: nothing to run")
                .help("add a table such as [schemes.uno] with law = \"unocc\""));
        }
        if self.traffic.is_empty() && self.job.is_empty() {
            return Err(SpannedError::new(self.traffic.origin, "no traffic: zero flows")
                .label("zero flows")
                .help("add an entry such as [[traffic]] with kind = \"incast\", or a [[job]]"));
        }
        self.external_laws.check()?;
        for (name, scheme) in &self.schemes.value.0 {
            check_name(name, "a scheme's name")?;
            scheme.check(&self.external_laws).map_err(|error| error.at_least(name.origin))?;
        }
        for (bin, range) in &self.sizes.0 {
            if CLASSES.contains(&bin.as_str()) {
                let error = SpannedError::new(bin.origin, format!("results call other flows `{}`", bin.value));
                return Err(error.label("expected another name"));
            }
            let names = || self.traffic_names();
            if let Some(name) = range.traffic.as_deref().filter(|&name| names().all(|known| known != name)) {
                let error = SpannedError::new(bin.origin, format!("no traffic is called `{name}`"));
                return Err(error.label("unknown traffic").suggest(name, names()));
            }
        }
        // Results call iterations of collective operations by these names, and other groups of flows by those.
        for entry in self.traffic.iter() {
            let subject = match entry.value {
                Traffic::Allreduce(_) => "an allreduce",
                Traffic::Collective(_) => "a collective",
                _ => continue,
            };
            let name = entry.name();
            if CLASSES.contains(&name) || self.sizes.get(name).is_some() {
                let error = SpannedError::new(
                    entry.origin,
                    format!("{subject} is called `{name}`, and so are other flows in results"),
                );
                let help = format!("no bin of [sizes] may have its name, and it is none of {}", CLASSES.join(", "));
                return Err(error.label("expected another name").help(help));
            }
        }
        if let Some(entry) = self.traffic.iter().find(|entry| entry.name().is_empty()) {
            return Err(SpannedError::new(entry.origin, "traffic with an empty name").label("expected a name, or none"));
        }
        self.check_job_names()?;
        self.failure.iter().try_for_each(|failure| failure.check())?;
        self.topology.check()?;
        self.port.check()?;
        self.host.check(PortReports::Absent)
    }

    /// Refuses job names that results cannot distinguish from those of other jobs and other groups of flows.
    fn check_job_names(&self) -> Result<(), SpannedError> {
        for (index, job) in self.job.iter().enumerate() {
            let name = job.name.as_str();
            check_name(&job.name, "a job's name")?;
            let conflict = if self.job[..index].iter().any(|other| other.name == job.name) {
                "another job is"
            } else if self.traffic.iter().any(|entry| entry.name() == name) {
                "some traffic is"
            } else if CLASSES.contains(&name) || self.sizes.get(name).is_some() {
                "other flows in results are"
            } else {
                continue;
            };
            let error = SpannedError::new(job.name.origin, format!("a job is called `{name}`, and so {conflict}"));
            return Err(error.label("expected another name"));
        }
        Ok(())
    }

    /// Returns the names in results of the flows of each entry: of traffic, then of jobs.
    pub fn traffic_names(&self) -> impl Iterator<Item = &str> {
        let jobs = self.job.iter().map(|job| job.name.as_str());
        self.traffic.iter().map(|entry| entry.name()).chain(jobs)
    }

    /// Returns the number of packet classes.
    pub(crate) fn data_classes(&self) -> u64 {
        let jobs = self.job.iter().map(|job| job.treatment().traffic_class);
        let classes: std::collections::BTreeSet<u8> =
            self.traffic.iter().map(|entry| entry.treatment().traffic_class).chain(jobs).collect();
        classes.len() as u64
    }

    /// Fills in defaults that depend on other tables.
    pub(crate) fn fill(&mut self) {
        if self.switch.is_some() {
            self.port.share();
        }
    }
}

/// Names of groups of flows in the results of every scenario.
const CLASSES: [&str; 5] = ["all", "intra", "inter", "requests", "collectives"];

/// Names become parts of paths.
fn check_name(name: &Located<String>, subject: &str) -> Result<(), SpannedError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.chars().all(fine) {
        return Ok(());
    }
    Err(SpannedError::new(
        name.origin,
        format!("{subject} has letters, digits, `-`, `_`, `+` and `.`, 1 to 100 of them; found \"{}\"", name.value),
    )
    .label("expected a short name"))
}
