//! Support of scenario keys by hosts other than the simulator's: the kernel's TCP and the transport.
//!
//! Every key of every table is declared here once. A test compares the declarations with the schema, so a new key
//! cannot be added without one. A key that a host does not support is refused: otherwise a run would have the name of a
//! scheme and lack a part of it.

use laws::catalog::LawKind;

use crate::config::{Auto, Host, LAW_PARAMS, LoadBalancingConfig, LossTimerWord, PaceWord, PathTable, TcpTable};
use crate::decode::ChangedKey;
use crate::error::{Error, SourceSpan, SpannedError, listed};
use crate::run::Run;
use crate::run_keys::{key_span, name_of, set_keys};

/// A host of real packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RealHost {
    /// The kernel's TCP carries the scenario's flows.
    Kernel,
    /// Programs send over the kernel's TCP in place of the scenario's flows.
    Programs,
    /// The transport carries the scenario's flows, over sockets.
    Transport,
    /// The transport carries the scenario's flows, in virtual time.
    Virtual,
}

impl RealHost {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Kernel, Self::Programs, Self::Transport, Self::Virtual];

    /// Its name in messages.
    const fn name(self) -> &'static str {
        match self {
            Self::Kernel | Self::Programs => "the kernel's TCP",
            Self::Transport => "the transport",
            Self::Virtual => "the transport in virtual time",
        }
    }
}

/// Support of a key by a host.
#[derive(Clone, Copy, Debug)]
enum Support {
    /// The key has its effect. Sizes of packets are among these, although a host has its own headers: a warning compares them.
    Supported,
    /// The key models a property that real hosts have by themselves. It is ignored, and named.
    Inherent,
    /// The key has its effect where this accepts the hosts' settings, which the text describes.
    Where(fn(&Host) -> bool, &'static str),
    /// The key has no effect.
    Unsupported,
}
use Support::{Inherent, Supported, Unsupported, Where};

/// Support of some keys of a table.
struct Declared {
    /// The type of the table.
    table: &'static str,
    /// Keys, with spaces between them.
    keys: &'static str,
    kernel: Support,
    transport: Support,
}

const fn row(table: &'static str, keys: &'static str, kernel: Support, transport: Support) -> Declared {
    Declared { table, keys, kernel, transport }
}

/// Keys that decide about the network, the flows or the results before there is a host.
const fn built(table: &'static str, keys: &'static str) -> Declared {
    row(table, keys, Supported, Supported)
}

/// Keys that only the simulator heeds.
const fn simulated(table: &'static str, keys: &'static str) -> Declared {
    row(table, keys, Unsupported, Unsupported)
}

const UP_TO_TWO: Support = Where(|host| host.ack_every.get() <= 2, "1 or 2");
const UNO_LB: Support = Where(
    |host| matches!(host.load_balancing, LoadBalancingConfig::Ecmp | LoadBalancingConfig::Table(PathTable::UnoLb(_))),
    "\"ecmp\" or \"unolb\"",
);
const FOR_THRESHOLD: Support = Where(
    |host| host.on_ramp.as_ref().is_some_and(|on_ramp| *on_ramp.threshold == Auto::Auto),
    "a value with `threshold = \"auto\"` in `on_ramp`, which it sets: all hosts read one clock",
);
const LINUX_VALIDATION: Support = Where(
    |host| host.tcp.as_ref().is_some_and(|tcp| tcp.validation.name() == "linux"),
    "\"linux\", which is what Linux does",
);
const TRANSPORT_PACE: Support =
    Where(|host| host.pace == PaceWord::Transport, "\"transport\", which is what it counts");
const TRANSPORT_TIMER: Support = Where(|host| *host.rto_per == LossTimerWord::Probe, "\"probe\", which are its timers");
const TRANSPORT_TCP: Support = Where(
    |host| host.tcp.as_ref().is_some_and(TcpTable::is_of_transport),
    "{ hystart = false, prr = false, validation = \"rfc7661\" }, which is what it does",
);
const LINUX: Support = Where(|_| false, "what Linux does, as in tcp = \"linux\"");

const DECLARED: &[Declared] = &[
    built(
        "Config",
        "schema extends without name title description seed stop clock topology port host schemes external_laws traffic job failure \
         monitor sizes grid points random_points variants scale paper claim cause table",
    ),
    built("Config", "switch"),
    built("Clock", "tick exact_ticks"),
    simulated("Clock", "tie_break"),
    built(
        "FatTrees",
        "datacenters k hosts_per_edge rate host_rate edge_rate core_rate border_rate inter_rate oversubscription link_delay \
         intra_rtt inter_delay inter_rtt border_links_per_core inter_links inter",
    ),
    built("InterPair", "between links rate delay rtt"),
    built(
        "Clos",
        "datacenters pods tors aggs cores hosts_per_tor rate host_rate edge_rate edge_links core_rate border_rate border_links \
         link_delay inter_rate inter_links inter_delay",
    ),
    built("Dumbbell", "left right rate delay host_rate host_delay two_datacenters"),
    built("SingleSwitch", "hosts rate delay"),
    built("CustomTopology", "nodes links"),
    built("NodeSpec", "name kind datacenter hosts host_rate host_delay"),
    built("Cable", "between rate delay class parallel port"),
    built(
        "Port",
        "buffer ecn phantom codel fq_codel mark_at in_service_bytes loss_probability loss_bursts impair host edge core border inter other",
    ),
    // The router knows TCP's acknowledgements. Those of the transport are encrypted.
    row("Port", "control_priority", Supported, Unsupported),
    // Packets are credits by their DSCP.
    built("Port", "headroom alpha xoff xon_offset xon credit_queue"),
    simulated("Port", "trim"),
    built("RedMarking", "min max probability"),
    built("StepMarking", "step"),
    built("PhantomQueue", "size drain min max probability"),
    built("CoDelTable", "target interval ecn"),
    built("FqCoDelTable", "queues quantum target interval ecn"),
    simulated("Trimming", "header control_buffer"),
    built("LossBursts", "group rates"),
    built(
        "ImpairTable",
        "jitter reorder duplicate corrupt mtu police ack_aggregation rate_steps rate_period rate_trace",
    ),
    built("LinkJitterTable", "max distribution keep_order"),
    built("ReorderTable", "probability delay"),
    built("PoliceTable", "rate burst"),
    built("AckAggregationTable", "period packets max_size"),
    built("RateStepTable", "at rate"),
    built("CreditQueueTable", "limit threshold burst unscheduled"),
    built("Switch", "buffer reserved egress_alpha ecn_marking pfc edge aggregation core border"),
    simulated("Switch", "int"),
    built("PfcTable", "frame relay"),
    built("Host", "mss header ack_size"),
    row("Host", "ack_every", UP_TO_TWO, Supported),
    row("Host", "ack_delay size_aware coding on_ramp", Unsupported, Supported),
    row("Host", "load_balancing", Unsupported, UNO_LB),
    row("Host", "jitter rtt_noise", Inherent, Inherent),
    // Linux hands over segments, has small queues and paces; the transport's own form of it is `--gso-max-size`.
    row("Host", "gso_size tsq_limit fq", Inherent, Unsupported),
    row("Host", "tcp", Inherent, TRANSPORT_TCP),
    row("Host", "pace", Unsupported, TRANSPORT_PACE),
    row("Host", "rto_per", Unsupported, TRANSPORT_TIMER),
    row("Host", "clock_sigma", Unsupported, FOR_THRESHOLD),
    simulated(
        "Host",
        "entropies reorder_window rto_min rto_max law_sees_timeouts recovery nack_interval acks catch_up window_check cnp_interval \
         cnp_size initial_quantum receiver_credits clock_drift clock_resync int_header int_multi",
    ),
    row("TcpTable", "hystart prr idle_restart remember_ssthresh", LINUX, TRANSPORT_TCP),
    row("TcpTable", "validation", LINUX_VALIDATION, TRANSPORT_TCP),
    built("JitterTable", "mean distribution"),
    row("UnoLbTable", "subflows law_per", Unsupported, Supported),
    simulated("UnoLbTable", "recent reroute"),
    simulated("PlbTable", "threshold idle_rounds rounds"),
    simulated("RepsTable", "buffer freeze explore"),
    row("CodingTable", "data parity scope", Unsupported, Supported),
    simulated("CodingTable", "tail block_timer nack retransmit ack_history"),
    row("OnRampTable", "threshold on_queueing_delay gain strawman", Unsupported, Supported),
    simulated("OnRampTable", "ack_every ack_size reuse_last_or_ack"),
    built("Scheme", "label law intra inter port host params intra_params inter_params"),
    built("Scheme", "switch"),
    simulated("Scheme", "lscc swing"),
    built("ExternalLaw", "language sha256 params"),
    simulated(
        "Lscc",
        "period q_ref delta_r r_min r_max near_q_ref notify_interval long_flow mark_timeout notification_size telemetry",
    ),
    simulated("SwingTable", "delay buffer headroom"),
    built("Incast", "name on_ramp receiver intra inter size start stagger"),
    built("LongFlows", "name on_ramp flows size start stagger"),
    built("Permutation", "name on_ramp scope size start"),
    built("Poisson", "name on_ramp intra inter load load_of ratio ratio_of from to start duration flows"),
    built("Requests", "name on_ramp fanout size load among start duration requests"),
    built("ClosedLoop", "name on_ramp clients servers active outstanding size sizes reads compute start stagger"),
    built("Allreduce", "name on_ramp groups count ranks pattern size size_to iterations compute start"),
    built(
        "Collective",
        "name on_ramp operation algorithm groups count ranks size microbatches iterations compute start",
    ),
    built("FlowList", "name on_ramp file flows start"),
    built("ImportedTraffic", "name on_ramp format file files groups placement eager size passes start ranks"),
    built("Flow", "start src dst size after compute"),
    built(
        "Job",
        "name on_ramp model parallel placement shuffle seed outermost ranks_per_host intra_host_rate micro_batches batch compute flops \
         collectives schedule iterations start",
    ),
    built("Model", "params layers hidden sequence vocabulary experts top_k expert_params bytes_per_param"),
    built("Parallel", "tensor pipeline data expert"),
    built("ComputeTimes", "forward backward"),
    built("Collectives", "tensor data"),
    simulated("Incast", "traffic_class connections"),
    simulated("LongFlows", "traffic_class connections"),
    simulated("Permutation", "traffic_class connections"),
    simulated("Poisson", "traffic_class connections"),
    simulated("Requests", "traffic_class connections"),
    simulated("ClosedLoop", "traffic_class connections"),
    simulated("Allreduce", "traffic_class connections"),
    simulated("Collective", "traffic_class connections"),
    simulated("FlowList", "traffic_class connections"),
    simulated("ImportedTraffic", "traffic_class connections"),
    simulated("Job", "traffic_class connections"),
    built("Failure", "ports count both at until every reroute"),
    built("Monitor", "interval ports flows fairness_window"),
    simulated("Monitor", "switches predictors"),
    built("RandomPoints", "points method seed keys"),
    built("Range", "from to spread"),
    built("Scale", "note set"),
    built("Cause", "id claims text set recorded"),
    built("Variant", "label set grid schemes"),
];

/// Returns the main table of a table that is laid over another one.
fn main_table(table: &str) -> &str {
    match table {
        "HostOverrides" => "Host",
        "PortOverrides" | "PortClassOverrides" => "Port",
        "SwitchOverrides" | "SwitchClassOverrides" => "Switch",
        table => table,
    }
}

/// The support of a changed key by a host.
fn support(key: &ChangedKey, laws: &[ParamTable], host: RealHost) -> Support {
    let name = key.path.last().map_or("", String::as_str);
    if key.table == LAW_PARAMS {
        return support_of_param(key, laws, host);
    }
    let declared = |row: &&Declared| row.table == main_table(key.table) && row.keys.split(' ').any(|key| key == name);
    let of_host = |row: &Declared| match host {
        RealHost::Kernel | RealHost::Programs => row.kernel,
        // Each flow has a connection from the beginning, and one that is kept is used again.
        RealHost::Virtual if name == "connections" => Supported,
        // Virtual hosts do not have a machine's properties.
        RealHost::Virtual if matches!(row.transport, Inherent) => Unsupported,
        RealHost::Transport | RealHost::Virtual => row.transport,
    };
    DECLARED.iter().find(declared).map_or(Unsupported, of_host)
}

/// Returns the support of a law's parameter. The kernel's own laws have their own values; only ECN can be set for them.
/// `laws` are the tables of the scheme's parameters and the laws that read them.
fn support_of_param(key: &ChangedKey, laws: &[ParamTable], host: RealHost) -> Support {
    let (name, table) = key.path.split_last().map_or(("", &[][..]), |(name, table)| (name.as_str(), table));
    let table = table.last().map_or("", String::as_str);
    let is_kernel_s = |law: LawKind| law.info().linux.is_some();
    let law = laws.iter().find(|it| it.name == table).and_then(|it| it.law);
    match host {
        RealHost::Kernel | RealHost::Programs if name != "ecn" && law.is_some_and(is_kernel_s) => Unsupported,
        _ => Supported,
    }
}

/// A table of laws' parameters, by the last part of its name, and the law of the catalog that reads it.
struct ParamTable {
    name: String,
    law: Option<LawKind>,
}

/// A key that a host does not support, and its place.
struct UnsupportedKey {
    name: String,
    span: SourceSpan,
    value: String,
    accepted: Option<&'static str>,
}

impl Run {
    /// Checks that a host supports all keys that the run sets to other values than their defaults. Returns the keys that
    /// are ignored because they model properties that real hosts have by themselves.
    ///
    /// # Errors
    /// With the keys that the host does not support.
    pub fn check_support(&self, host: RealHost) -> Result<Vec<String>, Error> {
        self.supported(host).map_err(|error| self.inputs.explain(error))
    }

    fn supported(&self, host: RealHost) -> Result<Vec<String>, SpannedError> {
        let hosts = self.config.host.with(self.config.schemes.get(&self.scheme).and_then(|it| it.host.as_ref()));
        let laws = self.laws_by_table();
        let (mut ignored, mut refused): (Vec<String>, Vec<UnsupportedKey>) = (Vec::new(), Vec::new());
        // Keys inside a refused table need no message of their own.
        let mut inside: Option<Vec<String>> = None;
        for key in set_keys(&self.config, &self.scheme) {
            let is_run = host != RealHost::Programs || !["traffic", "job"].contains(&&*key.path[0]);
            if !is_run || inside.as_ref().is_some_and(|table| key.path.starts_with(table)) {
                continue;
            }
            let name = name_of(&key.path);
            let accepted = match support(&key, &laws, host) {
                Supported => continue,
                Where(accepts, _) if accepts(&hosts) => continue,
                Inherent => {
                    if !ignored.contains(&name) {
                        ignored.push(name);
                    }
                    continue;
                }
                Where(_, accepted) => Some(accepted),
                Unsupported => None,
            };
            if refused.iter().all(|other| other.name != name) {
                let span = key_span(&self.root, &self.scheme, &key.path);
                let value = crate::tree::Node::generated(key.value.clone()).written();
                refused.push(UnsupportedKey { name, span, value, accepted });
            }
            inside = Some(key.path);
        }
        let Some(first) = refused.first() else { return Ok(ignored) };
        let UnsupportedKey { name, value, .. } = first;
        let message =
            format!("{} does not support `{name}`, here {value}, of the scheme `{}`", host.name(), self.scheme);
        let mut error = SpannedError::new(first.span, message).label(match first.accepted {
            Some(accepted) => format!("accepted: {accepted}"),
            None => "it has an effect in the simulator only".to_owned(),
        });
        if refused.len() > 1 {
            let others: Vec<&str> = refused[1..].iter().map(|other| other.name.as_str()).collect();
            error = error.help(format!("nor does it support {}", listed(&others)));
        }
        let options: Vec<String> = refused.iter().map(|key| format!("--without {}", key.name)).collect();
        Err(error.help(format!("{} runs the scheme without; the run's name lists the dropped keys", options.join(" "))))
    }

    /// The tables that the scheme's parameters may be in.
    fn laws_by_table(&self) -> Vec<ParamTable> {
        let table = |kind: LawKind| ParamTable { name: kind.info().name.to_owned(), law: Some(kind) };
        let mut tables: Vec<ParamTable> = LawKind::ALL.into_iter().map(table).collect();
        let classes = self.config.schemes.get(&self.scheme).and_then(|scheme| scheme.by_class().ok());
        for (class, law) in classes.into_iter().flatten() {
            tables.push(ParamTable { name: format!("{}_params", class.name()), law: LawKind::from_name(law.name()) });
        }
        tables
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value as Json;

    use super::*;
    use crate::schema::json_schema;
    use crate::{Overrides, parse};

    /// Every table of the schema with its keys.
    fn keys_of(schema: &Json, found: &mut BTreeSet<(String, String)>) {
        if let (Some(table), Some(properties)) = (schema["x-table"].as_str(), schema["properties"].as_object()) {
            // `kind` chooses among tables, except that it is a key of a node.
            let is_own = |key: &&String| *key != "kind" || table == "NodeSpec";
            let keys = properties.keys().filter(is_own);
            found.extend(keys.map(|key| (main_table(table).to_owned(), key.clone())));
        }
        match schema {
            Json::Object(object) => object.values().for_each(|value| keys_of(value, found)),
            Json::Array(items) => items.iter().for_each(|value| keys_of(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_key_of_the_schema_is_declared_once() {
        let mut schema = BTreeSet::new();
        keys_of(&json_schema(), &mut schema);
        let mut declared = BTreeSet::new();
        for row in DECLARED {
            for key in row.keys.split(' ') {
                assert!(
                    declared.insert((row.table.to_owned(), key.to_owned())),
                    "`{key}` of {} is declared twice",
                    row.table
                );
            }
        }
        let missing: Vec<_> = schema.difference(&declared).collect();
        let stale: Vec<_> = declared.difference(&schema).collect();
        assert!(missing.is_empty() && stale.is_empty(), "not declared: {missing:?}; not in the schema: {stale:?}");
    }

    const BASE: &str = r#"
        name = "base"
        [topology]
        kind = "dumbbell"
        left = 1
        right = 1
        two_datacenters = true
        [schemes.one]
        label = "One"
        law = "cubic"
        [[traffic]]
        kind = "list"
        flows = [{ src = 0, dst = 1, size = "1MB" }]
    "#;

    /// Settings of keys that some backend ignores, one key each, with the other settings that they require.
    const SETTINGS: &[(&str, &[&str])] = &[
        ("switch.int", &["switch.buffer=\"1MB\"", "switch.int=false"]),
        ("clock.tie_break", &["clock.tie_break=\"scheduled\"", "switch.buffer=\"1MB\""]),
        ("port.control_priority", &["port.control_priority=true"]),
        ("port.trim", &["port.trim=true"]),
        ("host.ack_every", &["host.ack_every=4"]),
        ("host.ack_delay", &["host.ack_delay=\"1ms\""]),
        ("host.size_aware", &["host.size_aware=true"]),
        ("host.coding", &["host.coding=true"]),
        ("host.coding.tail", &["host.coding={tail=\"10kB\"}"]),
        ("host.coding.block_timer", &["host.coding={block_timer=\"1ms\"}"]),
        ("host.coding.nack", &["host.coding={nack=\"gaps\"}"]),
        ("host.coding.retransmit", &["host.coding={retransmit=\"on-loss\"}"]),
        ("host.coding.ack_history", &["host.coding={ack_history=true}"]),
        ("host.on_ramp", &["host.on_ramp={threshold=\"auto\"}"]),
        ("host.on_ramp.ack_every", &["host.on_ramp={threshold=\"auto\",ack_every=2}"]),
        ("host.on_ramp.ack_size", &["host.on_ramp={threshold=\"auto\",ack_size=99}"]),
        ("host.on_ramp.reuse_last_or_ack", &["host.on_ramp={threshold=\"auto\",reuse_last_or_ack=true}"]),
        ("host.load_balancing", &["host.load_balancing=\"spray\""]),
        ("host.load_balancing", &["host.load_balancing=\"repath\""]),
        ("host.load_balancing", &["host.load_balancing=\"plb\""]),
        ("host.load_balancing", &["host.load_balancing=\"reps\""]),
        ("host.load_balancing.recent", &["host.load_balancing={kind=\"unolb\",recent=\"1ms\"}"]),
        ("host.load_balancing.reroute", &["host.load_balancing={kind=\"unolb\",reroute=\"random\"}"]),
        ("host.jitter", &["host.jitter={mean=\"1us\"}"]),
        ("host.rtt_noise", &["host.rtt_noise=\"1us\""]),
        ("host.tcp", &["host.tcp=\"linux\""]),
        ("host.tcp.hystart", &["host.tcp={hystart=false}"]),
        ("host.tcp.prr", &["host.tcp={prr=false}"]),
        ("host.tcp.idle_restart", &["host.tcp={idle_restart=false}"]),
        ("host.tcp.validation", &["host.tcp={validation=\"rfc7661\"}"]),
        ("host.tcp.remember_ssthresh", &["host.tcp={remember_ssthresh=true}"]),
        ("host.gso_size", &["host.gso_size=\"64kB\""]),
        ("host.tsq_limit", &["host.tsq_limit=\"256kB\""]),
        ("host.fq", &["host.fq=true", "host.tsq_limit=\"256kB\""]),
        ("host.clock_sigma", &["host.clock_sigma=\"1us\""]),
        ("host.clock_drift", &["host.clock_drift=\"1ppm\""]),
        ("host.clock_resync", &["host.clock_resync=\"1s\""]),
        ("host.entropies", &["host.entropies=8"]),
        ("host.reorder_window", &["host.reorder_window=\"1ms\""]),
        ("host.rto_min", &["host.rto_min=\"200ms\""]),
        ("host.rto_max", &["host.rto_max=\"1s\""]),
        ("host.law_sees_timeouts", &["host.law_sees_timeouts=false"]),
        ("host.rto_per", &["host.rto_per=\"packet\""]),
        ("host.recovery", &["host.recovery=\"go-back-n\""]),
        ("host.nack_interval", &["host.nack_interval=\"1ms\""]),
        ("host.acks", &["host.acks=\"nack-only\"", "host.recovery=\"go-back-n\""]),
        ("host.pace", &["host.pace=\"wire\""]),
        ("host.catch_up", &["host.catch_up=false"]),
        ("host.window_check", &["host.window_check=\"overshoot\""]),
        ("host.cnp_interval", &["host.cnp_interval=\"50us\""]),
        ("host.cnp_size", &["host.cnp_size=99"]),
        ("host.initial_quantum", &["host.initial_quantum=\"64kB\""]),
        ("host.receiver_credits", &["host.receiver_credits=true"]),
        ("host.int_header", &["host.int_header=99"]),
        ("host.int_multi", &["host.int_multi=16"]),
        ("lscc", &["schemes.one.lscc={period=\"1ms\",q_ref=\"1MB\",delta_r=\"1Gbps\"}"]),
        ("swing", &["schemes.one.swing=true"]),
        ("traffic.traffic_class", &["traffic.0.traffic_class=2"]),
        ("traffic.connections", &["traffic.0.connections=\"persistent\""]),
        ("monitor.switches", &["monitor.switches=[\"all\"]"]),
        ("monitor.predictors", &["monitor.predictors=\"all\""]),
        ("params.cubic.beta", &["schemes.one.params.cubic.beta=0.5"]),
    ];

    fn run(set: &[&str], without: &[&str]) -> Result<Run, Error> {
        let split = |text: &&str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())).unwrap();
        let without = without.iter().map(|&key| key.to_owned()).collect();
        let overrides = Overrides { set: set.iter().map(split).collect(), without, ..Overrides::default() };
        parse(BASE, "base.toml", &overrides).map(|scenario| scenario.runs().remove(0))
    }

    /// One key at a time: it is refused by its name or ignored and named, and without it nothing of it is left.
    #[test]
    fn a_key_without_effect_is_named() {
        for (key, set) in SETTINGS {
            let mut rejected = false;
            for host in RealHost::ALL {
                let checked = run(set, &[]).unwrap().check_support(host);
                rejected |= match &checked {
                    Ok(ignored) => ignored.iter().any(|name| name == key),
                    Err(error) => {
                        let text = error.to_string();
                        assert!(text.contains("--set:1:"), "{text}");
                        text.contains(&format!("`{key}`")) && text.contains(&format!("--without {key}"))
                    }
                };
            }
            assert!(rejected, "no host names `{key}`");
            let rest = run(set, &[key]).unwrap();
            assert_eq!(rest.label, format!("One (without {key})"));
            assert_eq!(rest.without, [*key]);
            let left = set_keys(&rest.config, "one");
            assert!(left.iter().all(|other| name_of(&other.path) != *key), "{left:?}");
        }
    }

    /// The page on real packets lists every key of ports that real hosts heed.
    #[test]
    fn the_page_lists_the_keys_of_ports() {
        let page = include_str!("../../../../docs/src/reference/emulate.md");
        let row = page.lines().find(|line| line.starts_with("| `[topology]`")).unwrap();
        let classes = ["host", "edge", "core", "border", "inter", "other"];
        let is_supported =
            |row: &&Declared| row.table == "Port" && matches!((&row.kernel, &row.transport), (Supported, Supported));
        let keys: Vec<&str> = DECLARED.iter().filter(is_supported).flat_map(|row| row.keys.split(' ')).collect();
        assert!(keys.contains(&"codel"), "{keys:?}");
        let missing: Vec<_> =
            keys.iter().filter(|key| !classes.contains(key) && !row.contains(&format!("`{key}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// The settings cover every key outside of refused tables that a host does not heed.
    #[test]
    fn every_key_without_effect_is_tested() {
        let tested: BTreeSet<&str> =
            SETTINGS.iter().map(|(name, _)| name.rsplit('.').next().unwrap_or_default()).collect();
        // Tables inside keys that no backend supports, and tables of traffic kinds that `list` represents here.
        let refused_whole = ["Trimming", "Lscc", "SwingTable", "PlbTable", "RepsTable"];
        let is_supported = |support: &Support| matches!(support, Supported);
        for row in DECLARED.iter().filter(|row| !refused_whole.contains(&row.table)) {
            if is_supported(&row.kernel) && is_supported(&row.transport)
                || !is_inside_supported(row.table) && is_supported(&row.transport)
            {
                continue;
            }
            for key in row.keys.split(' ') {
                assert!(tested.contains(key), "`{key}` of {}", row.table);
            }
        }
    }

    /// Returns whether a table is reached under the kernel's TCP.
    fn is_inside_supported(table: &str) -> bool {
        !["UnoLbTable", "CodingTable", "OnRampTable"].contains(&table)
    }

    #[test]
    fn keys_of_other_schemes_are_not_refused() {
        let text = format!("{BASE}\n[schemes.two]\nlaw = \"bbr\"\nhost.on_ramp = {{ threshold = \"auto\" }}\n");
        let overrides = Overrides { without: vec!["host.on_ramp".to_owned()], ..Overrides::default() };
        let runs = parse(&text, "two.toml", &Overrides::default()).unwrap().runs();
        assert!(runs[0].check_support(RealHost::Kernel).is_ok());
        let report = runs[1].check_support(RealHost::Kernel).unwrap_err().to_string();
        assert!(report.contains("two.toml:17:") && report.contains("of the scheme `two`"), "{report}");
        assert!(runs[1].check_support(RealHost::Transport).is_ok());
        let runs = parse(&text, "two.toml", &overrides).unwrap().runs();
        assert_eq!([&*runs[0].label, &*runs[1].label], ["One", "BBR (without host.on_ramp)"]);
        assert!(runs[1].check_support(RealHost::Kernel).is_ok());
    }

    #[test]
    fn unset_keys_cannot_be_removed() {
        let report = run(&["host.jitter={mean=\"1us\"}"], &["host.jiter"]).unwrap_err().to_string();
        assert!(report.contains("--without:1:1") && report.contains("did you mean `host.jitter`?"), "{report}");
    }

    #[test]
    fn supported_values_are_accepted() {
        for (host, set) in [
            (RealHost::Kernel, &["host.ack_every=2"][..]),
            (RealHost::Kernel, &["host.recovery=\"selective\"", "port.inter.trim=false"]),
            (RealHost::Kernel, &["schemes.one.params.cubic.ecn=true"]),
            (
                RealHost::Transport,
                &["host.load_balancing={kind=\"unolb\",subflows=3}", "schemes.one.params.cubic.beta=0.5"],
            ),
            (RealHost::Transport, &["host.coding=true", "host.ack_every=1", "host.ack_delay=\"1ms\""]),
            (RealHost::Transport, &["host.on_ramp={threshold=\"auto\",gain=0.5}", "host.clock_sigma=\"1ms\""]),
            (RealHost::Virtual, &["traffic.0.connections=\"persistent\"", "host.coding=true"]),
            (RealHost::Programs, &["traffic.0.connections=\"persistent\""]),
        ] {
            assert_eq!(run(set, &[]).unwrap().check_support(host).unwrap(), [""; 0], "{set:?}");
        }
    }
}
