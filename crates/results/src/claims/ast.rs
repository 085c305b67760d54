//! The claim language as trees, and as text: what is printed reads back as the same tree.

use std::fmt;

use super::quantity::Unit;

/// What must hold: all of these comparisons.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// At least one.
    pub all: Vec<Comparison>,
}

/// Two values compared.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// On the left.
    pub left: Expr,
    /// How.
    pub order: Order,
    /// On the right.
    pub right: Expr,
}

/// How two values compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Order {
    AtMost,
    Below,
    AtLeast,
    Above,
    Equal,
    Unequal,
}

impl Order {
    /// All of them, longer signs before their beginnings.
    pub const ALL: [Self; 6] = [Self::AtMost, Self::AtLeast, Self::Equal, Self::Unequal, Self::Below, Self::Above];

    /// How it is written.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::AtMost => "<=",
            Self::Below => "<",
            Self::AtLeast => ">=",
            Self::Above => ">",
            Self::Equal => "==",
            Self::Unequal => "!=",
        }
    }
}

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A number, with its unit if it has one.
    Literal(f64, Option<Unit>),
    /// What was measured in a run.
    Metric(Metric),
    /// The negative of it.
    Negative(Box<Expr>),
    /// Two joined.
    Binary(Box<Expr>, Operator, Box<Expr>),
    /// A function of some.
    Call(Function, Vec<Expr>),
}

/// What joins two expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

impl Operator {
    /// How it is written.
    pub const fn sign(self) -> char {
        match self {
            Self::Plus => '+',
            Self::Minus => '-',
            Self::Times => '*',
            Self::Over => '/',
        }
    }

    const fn binds(self) -> u8 {
        match self {
            Self::Plus | Self::Minus => SUM,
            Self::Times | Self::Over => PRODUCT,
        }
    }
}

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Function {
    Min,
    Max,
    Abs,
}

impl Function {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Min, Self::Max, Self::Abs];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Max => "max",
            Self::Abs => "abs",
        }
    }
}

/// What was measured in a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metric {
    /// The run's id, such as `uno` or `uno,load=0.4`.
    pub run: String,
    /// What of it.
    pub subject: Subject,
}

/// What of a run. Names that are `&'static str` come from the lists in [`names`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// `CLASS.fct.STAT` or `CLASS.slowdown.STAT`.
    Spread {
        /// The class of flows.
        class: String,
        /// `fct` or `slowdown`.
        metric: &'static str,
        /// Which number of it.
        stat: &'static str,
    },
    /// `CLASS.goodput`, `CLASS.count`, `CLASS.completed`.
    Class {
        /// The class of flows.
        class: String,
        /// Which of them.
        metric: &'static str,
    },
    /// `fairness.KEY`.
    Fairness(&'static str),
    /// `predicts.KEY`: what goes with the next packet's one-way delay.
    Predicts(&'static str),
    /// `credits.KEY`.
    Credits(&'static str),
    /// `network.KEY`.
    Network(&'static str),
    /// `network.drops_by_tier.TIER` or `network.data_drops_by_tier.TIER`.
    Drops {
        /// Which of the two.
        key: &'static str,
        /// The class of links; of `drops_by_tier` also `random`.
        tier: &'static str,
    },
    /// `law.KEY`.
    Law(&'static str),
    /// `network.pfc_pauses_by_tier.TIER` or `network.pfc_pause_by_tier.TIER`.
    Pauses {
        /// Which of the two.
        key: &'static str,
        /// The class of links.
        tier: &'static str,
    },
    /// `queue("PORTS").STAT` or `queue("PORTS", FROM, TO).STAT`, or the same of another of [`names::SAMPLED`].
    Queue {
        /// Which of them.
        which: &'static str,
        /// Which ports, or, of `buffer`, which switches, or, of `rate`, which flows.
        ports: String,
        /// Which samples; all if none.
        window: Option<Window>,
        /// Which number of it.
        stat: &'static str,
    },
    /// `flows(FROM, TO).KEY`: what the sampled flows got in that time.
    Flows {
        /// The time.
        window: Window,
        /// Which number of it.
        key: &'static str,
    },
}

/// A stretch of simulated time, both ends in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Its start.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}

impl Window {
    /// Whether a sample counts.
    pub const fn has(self, time_ns: u64) -> bool {
        self.from_ns <= time_ns && time_ns <= self.to_ns
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ns: u64| match ns {
            _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
            _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
            _ if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
            _ => format!("{ns}ns"),
        };
        write!(f, "{}, {}", time(self.from_ns), time(self.to_ns))
    }
}

/// The words of the language.
pub mod names {
    use fabric::LinkClass;

    /// Parts of a run that are no classes of flows.
    pub const PARTS: [&str; 13] = [
        "fairness", "predicts", "network", "law", "credits", "flows", "queue", "phantom", "ingress", "pseudo",
        "feedback", "buffer", "rate",
    ];
    /// Of sampled ports, of sampled switches, and of sampled flows.
    pub const SAMPLED: [&str; 7] = ["queue", "phantom", "ingress", "pseudo", "feedback", "buffer", "rate"];
    /// Of a class of flows, with a statistic.
    pub const SPREADS: [&str; 2] = ["fct", "slowdown"];
    /// Of a class of flows, alone.
    pub const TOTALS: [&str; 3] = ["goodput", "count", "completed"];
    /// Of times.
    pub const STATS: [&str; 6] = crate::summary::Spread::STATS;
    /// Of samples: also small percentiles, to tell whether a queue runs dry.
    pub const SAMPLE_STATS: [&str; 10] = ["mean", "p50", "p90", "p95", "p99", "max", "min", "p1", "p5", "p10"];
    /// After `flows`: the rate of all together, and Jain's index.
    pub const FLOWS: [&str; 2] = ["rate", "jain"];
    /// After `fairness`.
    pub const FAIRNESS: [&str; 5] = ["jain_mean", "jain_final", "converged_at", "reached_at", "jain_since"];
    /// After `predicts`.
    pub const PREDICTS: [&str; 2] = ["owd", "rtt"];
    /// After `network`.
    pub const NETWORK: [&str; 23] = [
        "data_packets",
        "packet_hops",
        "drops",
        "data_drops",
        "ack_drops",
        "credit_drops",
        "ecn_marks",
        "or_acks",
        "or_ack_bytes",
        "retransmits",
        "timeouts",
        "pfc_pauses",
        "pfc_pause",
        "host_pause",
        "nacks",
        "cnps",
        "parity_packets",
        "recovered_blocks",
        "held",
        "headroom_drops",
        "messages",
        "max_buffer",
        "max_queue",
    ];
    /// After `credits`.
    pub const CREDITS: [&str; 9] = [
        "sent",
        "used",
        "dropped",
        "wasted",
        "received",
        "over_provisioned",
        "late",
        "unscheduled",
        "unscheduled_drops",
    ];
    /// After `network`, before a class of links.
    pub const DROPS: [&str; 2] = ["data_drops_by_tier", "drops_by_tier"];
    /// Classes of links, and losses by chance at links of any class. Those are counted for packets of all kinds together,
    /// so `drops_by_tier` alone has them.
    pub const TIERS: [&str; CLASSES + 1] = {
        let mut names = ["random"; CLASSES + 1];
        let mut place = 0;
        while place < CLASSES {
            names[place] = LinkClass::ALL[place].name();
            place += 1;
        }
        names
    };
    const CLASSES: usize = LinkClass::ALL.len();
    /// After `network`, before a class of links.
    pub const PAUSES: [&str; 2] = ["pfc_pauses_by_tier", "pfc_pause_by_tier"];
    /// After one of [`DROPS`] or [`PAUSES`].
    pub fn tiers_of(key: &str) -> &'static [&'static str] {
        if key == "drops_by_tier" { &TIERS } else { &TIERS[..CLASSES] }
    }
    /// After `law`.
    pub const LAW: [&str; 6] = ["increases", "cuts", "loss_cuts", "emergencies", "holds", "credits"];
}

const SUM: u8 = 1;
const PRODUCT: u8 = 2;
const SIGN: u8 = 3;
const ATOM: u8 = 4;

impl Expr {
    fn binds(&self) -> u8 {
        match self {
            Self::Binary(_, operator, _) => operator.binds(),
            Self::Negative(_) => SIGN,
            _ => ATOM,
        }
    }

    /// Calls `see` with every metric in it.
    pub fn each_metric<'a>(&'a self, see: &mut dyn FnMut(&'a Metric)) {
        match self {
            Self::Literal(..) => {}
            Self::Metric(metric) => see(metric),
            Self::Negative(inner) => inner.each_metric(see),
            Self::Binary(left, _, right) => {
                left.each_metric(see);
                right.each_metric(see);
            }
            Self::Call(_, args) => args.iter().for_each(|arg| arg.each_metric(see)),
        }
    }

    /// Whether nothing measured is in it.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.each_metric(&mut |_| constant = false);
        constant
    }
}

/// Writes `expr`, in parentheses if it binds less than `least`.
fn inside(f: &mut fmt::Formatter<'_>, expr: &Expr, least: u8) -> fmt::Result {
    if expr.binds() < least { write!(f, "({expr})") } else { write!(f, "{expr}") }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(amount, unit) => write!(f, "{amount}{}", unit.map_or("", |unit| unit.name)),
            Self::Metric(metric) => metric.fmt(f),
            Self::Negative(inner) => {
                f.write_str("-")?;
                inside(f, inner, SIGN)
            }
            // Operators group from the left: an equal one on the right needs parentheses.
            Self::Binary(left, operator, right) => {
                inside(f, left, operator.binds())?;
                write!(f, " {} ", operator.sign())?;
                inside(f, right, operator.binds() + 1)
            }
            Self::Call(function, args) => {
                write!(f, "{}(", function.name())?;
                for (place, arg) in args.iter().enumerate() {
                    write!(f, "{}{arg}", if place > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, Comparison { left, order, right }) in self.all.iter().enumerate() {
            write!(f, "{}{left} {} {right}", if place > 0 { " and " } else { "" }, order.sign())?;
        }
        Ok(())
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = match self.run.split_once(',') {
            Some((name, point)) if !name.is_empty() && normal_point(point).as_deref() == Some(point) => {
                format!("{}[{point}]", name_text(name))
            }
            _ => name_text(&self.run),
        };
        let class = |class: &str| if names::PARTS.contains(&class) { quoted(class) } else { name_text(class) };
        match &self.subject {
            Subject::Spread { class: of, metric, stat } => write!(f, "{run}.{}.{metric}.{stat}", class(of)),
            Subject::Class { class: of, metric } => write!(f, "{run}.{}.{metric}", class(of)),
            Subject::Fairness(key) => write!(f, "{run}.fairness.{key}"),
            Subject::Predicts(key) => write!(f, "{run}.predicts.{key}"),
            Subject::Credits(key) => write!(f, "{run}.credits.{key}"),
            Subject::Network(key) => write!(f, "{run}.network.{key}"),
            Subject::Drops { key, tier } | Subject::Pauses { key, tier } => {
                write!(f, "{run}.network.{key}.{}", name_text(tier))
            }
            Subject::Law(key) => write!(f, "{run}.law.{key}"),
            Subject::Queue { which, ports, window, stat } => {
                write!(f, "{run}.{which}({}", quoted(ports))?;
                if let Some(window) = window {
                    write!(f, ", {window}")?;
                }
                write!(f, ").{stat}")
            }
            Subject::Flows { window, key } => write!(f, "{run}.flows({window}).{key}"),
        }
    }
}

/// What stands in brackets after a run's name, without spaces around commas and equals signs; none if that cannot
/// stand there.
pub(super) fn normal_point(text: &str) -> Option<String> {
    if text.trim().is_empty() || text.contains(['[', ']', '\n']) {
        return None;
    }
    let part = |part: &str| match part.split_once('=') {
        Some((key, value)) => format!("{}={}", key.trim(), value.trim()),
        None => part.trim().to_owned(),
    };
    Some(text.split(',').map(part).collect::<Vec<_>>().join(","))
}

pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn name_text(name: &str) -> String {
    if is_name(name) { name.to_owned() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
