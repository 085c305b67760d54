//! The claim language as trees, and as text: the printed form parses to the same tree.

use std::fmt;

use super::keywords::{
    self, CRITICAL, ClosedSet as _, CreditsKey, FairnessKey, FlowsKey, IT, LawKey, NetworkKey, Predictor, SampleStat,
    Sampled, SpreadKey, Stat, TierKey, TotalKey,
};
use crate::quantity::Unit;

/// A condition: all of these comparisons must hold.
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
    /// The comparison operator.
    pub order: Order,
    /// On the right.
    pub right: Expr,
}

/// A comparison operator.
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

    /// Returns its sign in expressions.
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
    /// A value measured in a run.
    Metric(Metric),
    /// The negative of it.
    Negative(Box<Expr>),
    /// Two joined.
    Binary(Box<Expr>, Operator, Box<Expr>),
    /// A function of some.
    Call(Function, Vec<Expr>),
}

/// A binary operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

impl Operator {
    /// Returns its sign in expressions.
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

/// A value measured in a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metric {
    /// The run's id, such as `uno` or `uno,traffic.0.load=0.4`, with keys in full or by their ends; empty where there is one run alone.
    pub run: String,
    /// The part of the run, and its value.
    pub subject: Subject,
}

/// A part of a run, and a value of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// `CLASS.fct.STAT` or `CLASS.slowdown.STAT`.
    Spread {
        /// The class of flows.
        class: String,
        /// `fct`, `slowdown` or `iteration`.
        key: SpreadKey,
        /// The statistic.
        stat: Stat,
    },
    /// `JOB.critical.STEP`: the share of a training job's critical path.
    Critical {
        /// The job.
        job: String,
        /// The kind of step.
        step: String,
    },
    /// `CLASS.goodput`, `CLASS.count`, `CLASS.completed`, or a total of a job.
    Class {
        /// The class of flows.
        class: String,
        /// The total.
        key: TotalKey,
    },
    /// `fairness.KEY`.
    Fairness(FairnessKey),
    /// `predicts.KEY`: the correlation of a signal with the next packet's one-way delay.
    Predicts(Predictor),
    /// `credits.KEY`.
    Credits(CreditsKey),
    /// `network.KEY`.
    Network(NetworkKey),
    /// `network.KEY.TIER`.
    Tier {
        /// The counter.
        key: TierKey,
        /// The class of links, one of [`TierKey::tiers`].
        tier: &'static str,
    },
    /// `law.KEY`.
    Law(LawKey),
    /// `queue("PORTS").STAT` or `queue("PORTS", FROM, TO).STAT`, or the same of another of [`Sampled`].
    Samples {
        /// The sampled quantity.
        of: Sampled,
        /// The ports; the switches for `buffer`; the flows for `rate`.
        chosen: String,
        /// The time of the samples; all samples if none.
        window: Option<ClaimWindow>,
        /// The statistic.
        stat: SampleStat,
    },
    /// `flows(FROM, TO).KEY`: payload acknowledged to the sampled flows in that time.
    Flows {
        /// The time.
        window: ClaimWindow,
        /// The value.
        key: FlowsKey,
    },
}

/// A stretch of simulated time, both ends in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimWindow {
    /// Its start.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}

impl ClaimWindow {
    /// Returns whether a sample is in the window.
    pub const fn has(self, time_ns: u64) -> bool {
        self.from_ns <= time_ns && time_ns <= self.to_ns
    }
}

impl fmt::Display for ClaimWindow {
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

    /// Returns whether the expression uses samples, which summaries do not have.
    pub fn is_sampled(&self) -> bool {
        let mut sampled = false;
        self.each_metric(&mut |metric| {
            sampled |= matches!(metric.subject, Subject::Samples { .. } | Subject::Flows { .. });
        });
        sampled
    }

    /// Returns whether the expression has no measured value.
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
                for (index, arg) in args.iter().enumerate() {
                    write!(f, "{}{arg}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Comparison { left, order, right }) in self.all.iter().enumerate() {
            write!(f, "{}{left} {} {right}", if index > 0 { " and " } else { "" }, order.sign())?;
        }
        Ok(())
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = match self.run.split_once(',') {
            Some((name, point)) if !name.is_empty() && normal_point(point).as_deref() == Some(point) => {
                format!("{}[{point}].", name_text(name))
            }
            _ if self.run.is_empty() => String::new(),
            _ => format!("{}.", name_text(&self.run)),
        };
        let class = class_text;
        match &self.subject {
            Subject::Spread { class: of, key, stat } => {
                write!(f, "{run}{}.{}.{}", class(of), key.name(), stat.name())
            }
            Subject::Critical { job, step } => write!(f, "{run}{}.{CRITICAL}.{}", class(job), name_text(step)),
            Subject::Class { class: of, key } => write!(f, "{run}{}.{}", class(of), key.name()),
            Subject::Fairness(key) => write!(f, "{run}fairness.{}", key.name()),
            Subject::Predicts(key) => write!(f, "{run}predicts.{}", key.name()),
            Subject::Credits(key) => write!(f, "{run}credits.{}", key.name()),
            Subject::Network(key) => write!(f, "{run}network.{}", key.name()),
            Subject::Tier { key, tier } => write!(f, "{run}network.{}.{}", key.name(), name_text(tier)),
            Subject::Law(key) => write!(f, "{run}law.{}", key.name()),
            Subject::Samples { of, chosen, window, stat } => {
                write!(f, "{run}{}({}", of.name(), quoted(chosen))?;
                if let Some(window) = window {
                    write!(f, ", {window}")?;
                }
                write!(f, ").{}", stat.name())
            }
            Subject::Flows { window, key } => write!(f, "{run}flows({window}).{}", key.name()),
        }
    }
}

/// Returns the text in brackets after a run's name, without spaces around commas and equals signs; none if it is not
/// valid there.
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

/// A class of flows as expressions have it: in quotes where it is no name, or that of a part of a run.
pub fn class_text(class: &str) -> String {
    if keywords::is_part(class) || class == IT { quoted(class) } else { name_text(class) }
}

fn name_text(name: &str) -> String {
    if is_name(name) { name.to_owned() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
