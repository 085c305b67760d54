//! Files of HPCC's ns-3 simulator (alibaba-edu/High-Precision-Congestion-Control), which On-Ramp's and LSCC's
//! simulations build on: a topology, flows and a configuration.

mod config;
mod flows;
mod topology;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ::laws::catalog::LawKind;
use units::{Bytes, Rate, Span};

use super::{Imported, MAX_INLINE, Number, parsed};
use crate::Error;
use crate::config::law_setting;
use crate::decode::{Field, Located};
use crate::error::{SourceSpan, Sources, SpannedError};
use crate::index::index32;
use crate::kind::FileKind;
use crate::quantity::{Decimal, write_span};
use crate::tree::{Node, Value};
use crate::write::to_toml;
use config::{Config, SwitchDefault, is_setting};
use files::BYTE_ORDER_MARK;
use flows::HpccFlow;
use topology::{HpccLink, Topology};

/// A topology or a list of flows.
pub(crate) const NUMBERS: FileKind = FileKind {
    name: "a topology or a list of flows of HPCC's simulator",
    expected: "expected a first line of whole numbers",
    matches: |file| {
        let number = |token: &str| token.bytes().all(|byte| byte.is_ascii_digit());
        file.first().split_whitespace().any(number)
    },
};

/// A configuration.
pub(crate) const SETTINGS: FileKind = FileKind {
    name: "a configuration of HPCC's simulator",
    expected: "expected lines of a key in capitals and its value",
    matches: |file| file.lines().any(|line| line.split_whitespace().next().is_some_and(is_setting)),
};

/// The largest payload of a packet: with all headers it is 65535 B on the wire.
const MAX_PAYLOAD: u32 = 65_535 - 48 - 42;

/// The files' names, for messages, and the scenario's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HpccNames<'a> {
    /// The new scenario's.
    pub scenario: &'a str,
    /// The topology's file.
    pub topology: &'a str,
    /// The flows' file.
    pub flows: &'a str,
    /// The configuration's file.
    pub config: &'a str,
}

/// Words in order, each with its place: the simulator ignores line breaks.
struct HpccTokens<'a> {
    text: &'a str,
    source: u32,
    at: usize,
}

impl<'a> HpccTokens<'a> {
    fn new(text: &'a str, source: u32) -> Self {
        Self { text, source, at: 0 }
    }

    fn next(&mut self) -> Option<(&'a str, SourceSpan)> {
        let rest = &self.text[self.at..];
        let blank = |c: char| c.is_whitespace() || c == BYTE_ORDER_MARK;
        let start = self.at + (rest.len() - rest.trim_start_matches(blank).len());
        let token = self.text[start..].split_whitespace().next()?;
        self.at = start + token.len();
        Some((token, SourceSpan::new(self.source, start..self.at)))
    }

    fn needed(&mut self, expected: &str) -> Result<(&'a str, SourceSpan), SpannedError> {
        let end = self.text.trim_end().len();
        self.next().ok_or_else(|| {
            let last = SourceSpan::new(self.source, end.saturating_sub(1)..end);
            SpannedError::new(last, format!("the file ends where {expected} is expected")).label("the file ends here")
        })
    }

    fn number<T: Number>(&mut self, expected: &str) -> Result<T, SpannedError> {
        let (token, origin) = self.needed(expected)?;
        let bad =
            || SpannedError::new(origin, format!("expected {expected}, found `{token}`")).label("not such a number");
        parsed(token, origin, bad)
    }

    fn at_most(&mut self, max: u32, expected: &str) -> Result<u32, SpannedError> {
        let before = self.at;
        let number = self.number(expected)?;
        if number > max {
            let origin = SourceSpan::new(self.source, before..self.at);
            return Err(
                SpannedError::new(origin, format!("{expected} is {number}")).label(format!("expected at most {max}"))
            );
        }
        Ok(number)
    }

    /// A node's number under `nodes`.
    fn node(&mut self, nodes: u32) -> Result<(u32, SourceSpan), SpannedError> {
        let (token, origin) = self.needed("a node")?;
        match token.parse() {
            Ok(node) if node < nodes => Ok((node, origin)),
            _ => Err(SpannedError::new(origin, format!("expected a node's number, found `{token}`"))
                .label(format!("expected 0 to {}", i64::from(nodes) - 1))),
        }
    }
}

/// Makes a scenario from a topology, flows and, if there is one, a configuration.
///
/// # Errors
/// When a file is malformed, or contains settings that a scenario cannot express: links that go down, HPCC-PINT, hosts
/// with several links.
pub fn import_hpcc(
    topology: &str,
    flows: &str,
    config: Option<&str>,
    names: &HpccNames<'_>,
) -> Result<Imported, Error> {
    let mut sources = Sources::default();
    let topology = InputText { text: topology, source: sources.add_file(names.topology, topology, NUMBERS) };
    let flows = InputText { text: flows, source: sources.add_file(names.flows, flows, NUMBERS) };
    let config = config.map(|text| InputText { text, source: sources.add_file(names.config, text, SETTINGS) });
    imported(topology, flows, config, names).map_err(|error| sources.explain(error))
}

/// The text of an input file.
#[derive(Clone, Copy)]
struct InputText<'a> {
    text: &'a str,
    /// Its number among the sources.
    source: u32,
}

fn imported(
    topology: InputText<'_>,
    flows: InputText<'_>,
    config: Option<InputText<'_>>,
    names: &HpccNames<'_>,
) -> Result<Imported, SpannedError> {
    let mut notes = Vec::new();
    let settings = if config.is_some() { SettingsSource::File } else { SettingsSource::Defaults };
    let config = config.map_or_else(|| Ok(Config::default()), |config| config::read(config.text, config.source))?;
    let network = topology::read(topology.text, topology.source, &mut notes)?;
    let payload = config.count("PACKET_PAYLOAD_SIZE", 1_000)?;
    if !(1..=MAX_PAYLOAD).contains(&payload) {
        let origin = config.span("PACKET_PAYLOAD_SIZE").unwrap_or(SourceSpan::NOWHERE);
        return Err(SpannedError::new(origin, format!("PACKET_PAYLOAD_SIZE is {payload}"))
            .label(format!("expected 1 to {MAX_PAYLOAD}")));
    }
    let flows = flows::read(flows.text, flows.source, &network, payload, &mut notes)?;

    let scheme = scheme(&config, &network, payload, settings, &mut notes)?;
    let ports = Ports::new(&config, &network, settings)?;
    roomy(&config, &network, &flows, settings)?;
    let stop = config.time("SIMULATOR_STOP_TIME", Span::from_ps(3_010_000_000_000), 1_000_000_000_000)?;
    if network.links.iter().any(|link| ports.loses(link)) {
        notes.push("losses by chance are of ports of switches; hosts' own ports lose nothing".into());
    }
    ignored(&config, &mut notes)?;

    let (entries, file) = traffic(&network, &flows, names, &mut notes);
    let rest = [
        ("schema", Value::Integer(1)),
        ("name", Value::string(names.scenario)),
        ("title", Value::string(format!("imported from HPCC's simulator: {}, {}", names.topology, names.flows))),
        ("description", Value::string(notes.join(". "))),
        ("stop", stop.encode()),
        ("clock", clock()),
        ("topology", ports.topology(&network)),
        ("switch", switch(&config)?),
        ("port", ports.table()),
        ("host", host(payload, scheme.mode, if scheme.mode == 3 { config.count("INT_MULTI", 1)? } else { 0 })),
        ("schemes", Value::table([(scheme.law, scheme.table)])),
    ];
    let all = Value::table(rest.into_iter().chain([("traffic", entries)]));
    Imported { toml: to_toml(&all), flows: file, notes }.checked(names.scenario)
}

/// Origin of the settings of hosts and ports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SettingsSource {
    /// A configuration of the HPCC simulator.
    File,
    /// Defaults of this project.
    Defaults,
}

/// Law, `CC_MODE` and scheme of a configuration.
struct SchemeOf {
    law: &'static str,
    mode: u32,
    table: Value,
}

fn scheme(
    config: &Config,
    network: &Topology,
    payload: u32,
    settings: SettingsSource,
    notes: &mut Vec<String>,
) -> Result<SchemeOf, SpannedError> {
    let mode = config.count("CC_MODE", 1)?;
    let kind = match mode {
        0 => LawKind::LineRate,
        1 => LawKind::Dcqcn,
        3 => LawKind::Hpcc,
        7 => LawKind::Timely,
        8 => LawKind::DctcpRate,
        _ => {
            let origin = config.span("CC_MODE").unwrap_or(SourceSpan::NOWHERE);
            let pint = if mode == 10 { " (HPCC-PINT)" } else { "" };
            return Err(SpannedError::new(origin, format!("CC_MODE {mode}{pint} is no law that is known here"))
                .label("expected 1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP) or 0 (none)"));
        }
    };
    let law = kind.info().name;
    if settings == SettingsSource::Defaults {
        notes.push("no configuration was given: DCQCN with this project's parameters, notified by each acknowledgement, marking from 32 us to 128 us of each port's rate, 32 MiB a switch".into());
        let params = Value::table([("cnp_from_acks", Value::Boolean(true))]);
        let table = [("law", Value::string(law)), ("params", Value::table([(law, params)]))];
        return Ok(SchemeOf { law, mode, table: Value::table(table) });
    }
    if config.span("CC_MODE").is_none() {
        notes.push("the configuration has no CC_MODE: DCQCN, as there".into());
    }
    let float = |number: Decimal| number.encode();
    let us = |key, default| config.time(key, Span::from_ns(default), 1_000_000).map(|span| span.encode());
    let rate = |key, default| config.rate(key, Rate::from_mbps(default)).map(|rate| rate.encode());
    let flag = |key, default| config.switch(key, default).map(Value::Boolean);
    let gain = float(config.decimal("EWMA_GAIN", Decimal::new(625, 4))?);

    // The key in the configuration, the parameter, its value.
    let mut params: Vec<(&str, &str, Value)> = Vec::new();
    if mode != 0 {
        params.push(("MIN_RATE", "min_rate", rate("MIN_RATE", 100)?));
    }
    match mode {
        1 => params.extend([
            ("EWMA_GAIN", "alpha_gain", gain),
            ("ALPHA_RESUME_INTERVAL", "alpha_timer", us("ALPHA_RESUME_INTERVAL", 55_000)?),
            ("RATE_DECREASE_INTERVAL", "decrease_interval", us("RATE_DECREASE_INTERVAL", 4_000)?),
            ("RP_TIMER", "increase_timer", us("RP_TIMER", 1_500_000)?),
            ("", "byte_counter", Value::string("0B")),
            ("FAST_RECOVERY_TIMES", "fast_recovery_stages", config.count("FAST_RECOVERY_TIMES", 5)?.encode()),
            ("RATE_AI", "additive", rate("RATE_AI", 5)?),
            ("RATE_HAI", "hyper", rate("RATE_HAI", 50)?),
            ("CLAMP_TARGET_RATE", "clamp_target", flag("CLAMP_TARGET_RATE", SwitchDefault::Off)?),
            ("", "cnp_from_acks", Value::Boolean(true)),
        ]),
        3 => params.extend([
            ("U_TARGET", "utilisation", float(config.decimal("U_TARGET", Decimal::new(95, 2))?)),
            ("MI_THRESH", "max_stage", config.count("MI_THRESH", 5)?.encode()),
            ("RATE_AI", "additive", rate("RATE_AI", 5)?),
            ("FAST_REACT", "fast_react", flag("FAST_REACT", SwitchDefault::On)?),
            ("", "fine", Value::Boolean(true)),
        ]),
        7 => params.extend([
            ("RATE_AI", "additive", rate("RATE_AI", 5)?),
            ("RATE_HAI", "hyper", rate("RATE_HAI", 50)?),
            ("", "hyper_after", Value::Integer(5)),
            ("", "hyper_below_low", Value::Boolean(true)),
            ("", "per_round", Value::Boolean(true)),
        ]),
        8 => params
            .extend([("EWMA_GAIN", "ewma_gain", gain), ("DCTCP_RATE_AI", "additive", rate("DCTCP_RATE_AI", 1_000)?)]),
        _ => {}
    }
    let windowed = config.switch("HAS_WIN", SwitchDefault::On)?;
    params.push(("HAS_WIN", "windowed", Value::Boolean(windowed)));
    if windowed && mode != 0 {
        params.push(("VAR_WIN", "window_scales", flag("VAR_WIN", SwitchDefault::Off)?));
    }
    if config.switch("GLOBAL_T", SwitchDefault::On)? {
        let largest = network.largest(payload);
        if windowed {
            let window = Value::Integer(i64::try_from(largest.bdp).unwrap_or(i64::MAX));
            params.push(("GLOBAL_T", "window", window));
        }
        if mode == 3 {
            params.push(("GLOBAL_T", "base_rtt", largest.rtt.encode()));
        }
        notes.push(format!(
            "GLOBAL_T: every flow has the longest base round trip, {}, and the largest window, {} B",
            largest.rtt, largest.bdp
        ));
    } else {
        notes.push("GLOBAL_T is 0: windows and base round trips are those of each flow's path as they are here".into());
    }
    for (key, name, value) in &params {
        let origin = config.span(key).unwrap_or(SourceSpan::NOWHERE);
        let (name, value) = (Located { value: (*name).to_owned(), origin }, Node { value: value.clone(), origin });
        let with_key = |error: SpannedError| error.help(format!("{key} of the configuration"));
        law_setting(kind, &name, &value).map_err(with_key)?;
    }
    let params = params.into_iter().map(|(_, name, value)| (name, value));
    let table = Value::table([("law", Value::string(law)), ("params", Value::table([(law, Value::table(params))]))]);
    Ok(SchemeOf { law, mode, table })
}

/// Returns the simulator's clock: whole nanoseconds, cut from floating point, and events at the same nanosecond in the
/// order in which they were scheduled.
fn clock() -> Value {
    Value::table([
        ("tick", Value::string("1ns")),
        ("exact_ticks", Value::string("round-down-one")),
        ("tie_break", Value::string("scheduled")),
    ])
}

/// Returns the simulator's host settings.
fn host(payload: u32, mode: u32, multi: u32) -> Value {
    // 14 B for the link, 20 for IP, 8 for UDP, 6 of its own; TIMELY adds a timestamp. An acknowledgement has 46 B and
    // is padded to 60, and HPCC's reports come on top of the 46.
    Value::table([
        ("mss", payload.encode()),
        ("header", Value::Integer(if mode == 7 { 56 } else { 48 })),
        ("ack_size", Value::Integer(if mode == 3 { 46 } else { 60 })),
        ("int_header", Value::Integer(42)),
        ("int_multi", Value::Integer(multi.into())),
        ("pace", Value::string("wire")),
        ("catch_up", Value::Boolean(false)),
        ("window_check", Value::string("overshoot")),
        ("recovery", Value::string("go-back-n")),
        ("nack_interval", Value::string("500us")),
        ("law_sees_timeouts", Value::Boolean(false)),
    ])
}

/// MiB of buffer in a switch.
fn mebibytes(config: &Config) -> Result<u64, SpannedError> {
    config.count("BUFFER_SIZE", 32).map(u64::from)
}

/// Kept for each port and class, in bytes.
const RESERVE: u32 = 4_096;

/// Three one-way products of rate and delay, cut to bytes before they are tripled.
fn headroom(link: &HpccLink) -> u128 {
    let ns = link.delay.unsigned_ps() / 1_000;
    u128::from(link.rate.bps()) * u128::from(ns) / 8 / 1_000_000_000 * 3
}

/// Refuses buffers that the headrooms of a switch's cables and its reserves leave nothing of: there the simulator's
/// thresholds wrap around.
fn roomy(
    config: &Config,
    network: &Topology,
    flows: &[HpccFlow],
    settings: SettingsSource,
) -> Result<(), SpannedError> {
    let buffer = u128::from(mebibytes(config)? << 20);
    let classes: BTreeSet<u32> = flows.iter().map(|flow| class_of(flow.group)).collect();
    let mut kept = vec![0u128; network.switch.len()];
    for link in &network.links {
        for end in link.ends {
            kept[end as usize] += (headroom(link) + u128::from(RESERVE)) * classes.len() as u128;
        }
    }
    let fullest = (0..network.switch.len()).filter(|&node| network.switch[node]).max_by_key(|&node| kept[node]);
    let Some((node, kept)) = fullest.map(|node| (node, kept[node])).filter(|&(_, kept)| kept >= buffer) else {
        return Ok(());
    };
    let message = format!(
        "node {node} keeps {kept} B for its headrooms and reserves, which leaves nothing of a buffer of {buffer} B"
    );
    let error = SpannedError::new(config.span("BUFFER_SIZE").unwrap_or(SourceSpan::NOWHERE), message)
        .label(format!("expected at least {} (MiB)", (kept >> 20) + 1))
        .help("the headroom of a cable is three times its rate times its delay; in the simulator thresholds wrap around where it does not fit, and nothing is ever paused");
    Err(if settings == SettingsSource::File {
        error
    } else {
        error.help("without a configuration switches have 32 MiB: give one with BUFFER_SIZE")
    })
}

fn switch(config: &Config) -> Result<Value, SpannedError> {
    Ok(Value::table([
        ("buffer", Bytes::new(mebibytes(config)? << 20).encode()),
        ("reserved", Value::Integer(RESERVE.into())),
        ("pfc", Value::table([("frame", Value::Integer(43))])),
    ]))
}

/// Adds notes on settings that are not taken over.
fn ignored(config: &Config, notes: &mut Vec<String>) -> Result<(), SpannedError> {
    let mut note = |applies: bool, text: &str| {
        if applies {
            notes.push(text.into());
        }
    };
    note(config.count("L2_ACK_INTERVAL", 1)? != 1, "L2_ACK_INTERVAL is taken as 1: other values do not work there");
    note(
        config.switch("L2_BACK_TO_ZERO", SwitchDefault::Off)?,
        "L2_BACK_TO_ZERO is left out: receivers ask for the rest from what they miss on",
    );
    note(
        config.switch("MULTI_RATE", SwitchDefault::Off)?,
        "MULTI_RATE is left out: a flow has one rate, not one a hop",
    );
    note(
        config.switch("SAMPLE_FEEDBACK", SwitchDefault::Off)?,
        "SAMPLE_FEEDBACK is left out: every acknowledgement carries reports",
    );
    note(!config.switch("RATE_BOUND", SwitchDefault::On)?, "RATE_BOUND 0 is left out: rates are kept");
    note(true, "the simulator has no retransmission timer; here one mends what a lost tail would hang");
    note(!config.ignored.is_empty(), &format!("without effect here: {}", config.ignored.join(", ")));
    Ok(())
}

/// The settings of ports by class, and of cables that differ.
struct Ports {
    /// Kind of cable by class name: the kind that most cables of the class have.
    of_class: BTreeMap<&'static str, CableProfile>,
    settings: BTreeMap<CableProfile, Value>,
    default_loss: Decimal,
}

/// Properties of a cable that determine the settings of its ports: rate, delay in picoseconds, loss.
type CableProfile = (u64, u64, String);

impl Ports {
    fn new(config: &Config, network: &Topology, settings: SettingsSource) -> Result<Self, SpannedError> {
        let default_loss = config.decimal("ERROR_RATE_PER_LINK", Decimal::ZERO)?;
        let mut ports = Self { of_class: BTreeMap::new(), settings: BTreeMap::new(), default_loss };
        let nic = network.nic_rate();
        let mut counts: BTreeMap<(&'static str, CableProfile), usize> = BTreeMap::new();
        for link in &network.links {
            let kind = ports.kind(link);
            *counts.entry((class(network, link), kind.clone())).or_default() += 1;
            if !ports.settings.contains_key(&kind) {
                let port_settings = ports.of(config, link, nic, settings)?;
                ports.settings.insert(kind, port_settings);
            }
        }
        for ((class, kind), count) in &counts {
            let best = ports.of_class.get(class).map_or(0, |best| counts[&(*class, best.clone())]);
            if *count > best {
                ports.of_class.insert(class, kind.clone());
            }
        }
        Ok(ports)
    }

    fn loss(&self, link: &HpccLink) -> Decimal {
        if link.loss.is_zero() { self.default_loss } else { link.loss }
    }

    fn loses(&self, link: &HpccLink) -> bool {
        !self.loss(link).is_zero()
    }

    fn kind(&self, link: &HpccLink) -> CableProfile {
        (link.rate.bps(), link.delay.unsigned_ps(), self.loss(link).to_string())
    }

    /// The keys of `[port]` for a cable.
    fn of(&self, config: &Config, link: &HpccLink, nic: Rate, settings: SettingsSource) -> Result<Value, SpannedError> {
        // alpha is 1/8, doubled with each doubling of the rate over the NIC's, up to 1.
        let (mut shift, mut rate) = (3u32, link.rate.bps());
        while rate > nic.bps() && shift > 0 {
            shift -= 1;
            rate /= 2;
        }
        let alpha = [Decimal::ONE, Decimal::new(5, 1), Decimal::new(25, 2), Decimal::new(125, 3)][shift as usize];
        let ecn = if settings == SettingsSource::Defaults {
            marking(Value::string("32us"), Value::string("128us"), Decimal::new(2, 1))
        } else if config.switch("ENABLE_QCN", SwitchDefault::On)? {
            let [min, max, probability] = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"].map(|key| config.mapped(key, link.rate));
            let ((min, span), (max, _), (probability, chance)) = (min?, max?, probability?);
            let [low, high] = [min, max].map(|kilobytes| Bytes::new(kilobytes.of(1_000)));
            if low > high {
                return Err(SpannedError::new(
                    span,
                    format!("the lower threshold, {min}, is over the upper one, {max}"),
                )
                .label("expected at most the entry of KMAX_MAP"));
            }
            if probability.of(1_000_000) > 1_000_000 {
                return Err(
                    SpannedError::new(chance, format!("{probability} is no probability")).label("expected 0 to 1")
                );
            }
            marking(low.encode(), high.encode(), probability)
        } else {
            Value::string("off")
        };
        Ok(Value::table([
            ("alpha", alpha.encode()),
            ("headroom", Value::Integer(i64::try_from(headroom(link)).unwrap_or(i64::MAX))),
            ("ecn", ecn),
            ("loss_probability", if self.loses(link) { self.loss(link).encode() } else { Value::Absent }),
        ]))
    }

    /// `[port]`.
    fn table(&self) -> Value {
        let mut entries = vec![
            ("xon_offset", Value::Integer(3_072)),
            ("ecn", Value::string("off")),
            ("mark_at", Value::string("dequeue")),
            ("in_service_bytes", Value::string("none")),
        ];
        entries.extend(self.of_class.iter().map(|(class, kind)| (*class, self.settings[kind].clone())));
        Value::table(entries)
    }

    /// `[topology]`.
    fn topology(&self, network: &Topology) -> Value {
        let mut nodes = Vec::new();
        for node in 0..index32(network.switch.len()) {
            let datacenter = network.datacenter[node as usize];
            let kind = if network.switch[node as usize] { "switch" } else { "host" };
            nodes.push(Node::generated(Value::table([
                ("name", Value::string(network.name(node))),
                ("kind", Value::string(kind)),
                ("datacenter", if datacenter == 0 { Value::Absent } else { datacenter.encode() }),
            ])));
        }
        let cable = |link: &HpccLink| {
            let class = class(network, link);
            let kind = self.kind(link);
            let own =
                if self.of_class.get(class) == Some(&kind) { Value::Absent } else { self.settings[&kind].clone() };
            Node::generated(Value::table([
                ("between", link.ends.map(|end| network.name(end)).to_vec().encode()),
                ("rate", link.rate.encode()),
                ("delay", link.delay.encode()),
                ("class", Value::string(class)),
                ("port", own),
            ]))
        };
        Value::table([
            ("kind", Value::string("custom")),
            ("nodes", Value::Array(nodes)),
            ("links", Value::Array(network.links.iter().map(cable).collect())),
        ])
    }
}

fn marking(min: Value, max: Value, probability: Decimal) -> Value {
    Value::table([("min", min), ("max", max), ("probability", probability.encode())])
}

/// The class of a link: at a host, between datacenters, or between switches.
fn class(network: &Topology, link: &HpccLink) -> &'static str {
    let [a, b] = link.ends.map(|end| end as usize);
    if !network.switch[a] || !network.switch[b] {
        "host"
    } else if network.datacenter[a] != network.datacenter[b] {
        "inter"
    } else {
        "other"
    }
}

/// The class of a priority group: class 0 is for control.
fn class_of(group: u32) -> u32 {
    if (1..=7).contains(&group) { group } else { 1 }
}

/// Returns the entries of `[[traffic]]`, one per priority group, and the file next to the scenario if there are many
/// flows.
fn traffic(
    network: &Topology,
    flows: &[HpccFlow],
    names: &HpccNames<'_>,
    notes: &mut Vec<String>,
) -> (Value, Option<(String, String)>) {
    let groups: BTreeSet<u32> = flows.iter().map(|flow| flow.group).collect();
    let outside = groups.iter().any(|group| !(1..=7).contains(group));
    if outside {
        notes.push("flows of priority groups but 1 to 7 are of class 1 here: class 0 is for control".into());
    }
    let class = |group: u32| Value::Integer(class_of(group).into());
    if groups.len() == 1 && flows.len() > MAX_INLINE {
        let mut text = String::from("start,src,dst,bytes\n");
        for flow in flows {
            let (src, dst) = (network.name(flow.src), network.name(flow.dst));
            let _ = writeln!(text, "{},{src},{dst},{}", write_span(flow.start), flow.bytes);
        }
        let file = format!("{}.flows.csv", names.scenario);
        let entry = Value::table([
            ("kind", Value::string("list")),
            ("traffic_class", class(flows[0].group)),
            ("file", Value::string(&file)),
        ]);
        return (Value::Array(vec![Node::generated(entry)]), Some((file, text)));
    }
    if groups.len() > 1 {
        notes.push("flows are numbered by priority group, then in the order of the file".into());
    }
    let one = |flow: &HpccFlow| {
        Node::generated(Value::table([
            ("start", flow.start.encode()),
            ("src", Value::string(network.name(flow.src))),
            ("dst", Value::string(network.name(flow.dst))),
            ("size", Value::Integer(i64::try_from(flow.bytes).unwrap_or(i64::MAX))),
        ]))
    };
    let entry = |group: &u32| {
        let list = flows.iter().filter(|flow| flow.group == *group).map(one).collect();
        Node::generated(Value::table([
            ("kind", Value::string("list")),
            ("name", if groups.len() > 1 { Value::string(format!("group{group}")) } else { Value::Absent }),
            ("traffic_class", class(*group)),
            ("flows", Value::Array(list)),
        ]))
    };
    (Value::Array(groups.iter().map(entry).collect()), None)
}
