//! Commands of the Python package: the only definition of their options. Python receives them as JSON.

use clap::{Args, ValueEnum};
use serde::Serialize;

#[derive(Args, Serialize, Debug)]
#[command(after_help = "Examples:\n  \
    narrows plot out/first --y 'p99(intra.slowdown)' --y 'p99(inter.slowdown)' -o first.pdf\n  \
    narrows plot out/first --y goodput --only load=20% --only scheme=dctcp --style screen -o goodput.png\n  \
    narrows plot out/reproduce/quick/uno/fig10 -o fig10.pdf\n  narrows plot out/first --front -o front.svg")]
pub(crate) struct PlotArgs {
    /// Results directory.
    pub(crate) results: String,
    /// Metric to plot, as in 'p99(slowdown)'; each has its own panel.
    ///
    /// May be repeated. Default: for results of `narrows reproduce`, the paper's figure.
    #[arg(long, value_name = "METRIC")]
    pub(crate) y: Vec<String>,
    /// Key on the x axis, such as load; default: the key that varies.
    #[arg(long, value_name = "KEY")]
    pub(crate) x: Option<String>,
    /// Key whose values are separate lines.
    #[arg(long, value_name = "KEY", default_value = "scheme")]
    pub(crate) by: String,
    /// Plot only runs with this value of a key, as in load=20%.
    ///
    /// May be repeated; a key given twice selects runs with either value. The value `none` selects runs without the
    /// key.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) only: Vec<String>,
    /// Plot scores for intra- against inter-datacenter flows, with the Pareto front.
    ///
    /// Scores are those of `narrows score`. The front joins the schemes that no other scheme beats at both.
    #[arg(long)]
    pub(crate) front: bool,
    /// With --front: baseline file, from `narrows score --save-baseline`.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<String>,
    /// With --front: scheme to leave out of the baseline. May be repeated.
    #[arg(long = "not-in-baseline", value_name = "SCHEME")]
    pub(crate) not_in_baseline: Vec<String>,
    /// Figure size and font size.
    #[arg(long, value_enum, default_value_t = Style::Paper)]
    pub(crate) style: Style,
    /// Axes with a logarithmic scale. Default: none.
    #[arg(long, value_enum)]
    pub(crate) log: Option<LogAxes>,
    /// Title of the figure. Default: none.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Label of the x axis. Default: the key.
    #[arg(long, value_name = "TEXT")]
    pub(crate) xlabel: Option<String>,
    /// Label of a y axis, one for each --y. Default: the metric.
    #[arg(long, value_name = "TEXT")]
    pub(crate) ylabel: Vec<String>,
    /// Directory of the papers' scenario files.
    ///
    /// Default: papers, or the files in the Python package.
    #[arg(long, value_name = "DIR")]
    pub(crate) papers: Option<String>,
    /// Output file, ending in .pdf, .svg or .png.
    ///
    /// An existing file is overwritten only if Narrows wrote it and it was not edited since.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: String,
}

/// Sizes of a figure and its font.
#[derive(ValueEnum, Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Style {
    /// Column of a paper: 3.3 inches wide, 8 pt.
    Paper,
    /// Screen: 5.5 inches wide, 10 pt.
    Screen,
}

/// Logarithmic axes.
#[derive(ValueEnum, Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogAxes {
    /// X axis.
    X,
    /// Y axis.
    Y,
    /// Both axes.
    Xy,
}

#[derive(Args, Serialize, Debug)]
#[command(
    after_help = "Examples:\n  narrows tune study.toml --minimize 'p99(slowdown)' --where port.buffer=100KB..2000KB\n  \
    narrows tune study.toml --maximize goodput --subject-to 'p99(intra.fct) <= 2ms' --where 'port.ecn.step=log \
    20KB..2MB' --parallel 4"
)]
pub(crate) struct TuneArgs {
    /// Scenario file (TOML).
    pub(crate) scenario: String,
    /// Metric to minimize, as in 'p99(inter.slowdown)'.
    ///
    /// May be repeated: several metrics give a Pareto front.
    #[arg(long, value_name = "METRIC")]
    pub(crate) minimize: Vec<String>,
    /// Metric to maximize, as in goodput. May be repeated.
    #[arg(long, value_name = "METRIC")]
    pub(crate) maximize: Vec<String>,
    /// Key to tune and its values: LOW..HIGH, 'log LOW..HIGH', or A,B,C.
    ///
    /// At least one key is needed. May be repeated.
    #[arg(long = "where", value_name = "KEY=SPACE")]
    #[serde(rename = "where")]
    pub(crate) space: Vec<String>,
    /// Constraint that must hold in every run, as in 'p99(slowdown) <= 5'. May be repeated.
    #[arg(long, value_name = "CHECK")]
    pub(crate) subject_to: Vec<String>,
    /// Total number of trials, including those of earlier calls.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) trials: u32,
    /// Number of trials to run at the same time, 1 to 1024.
    ///
    /// The values tried depend on this number, but not on the order in which trials finish; with --halve or --race they
    /// depend on that, too.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) parallel: u16,
    /// Number of seeds for each trial: the scenario's and the following ones.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
    /// Run only this scheme. May be repeated.
    #[arg(long = "scheme", value_name = "NAME")]
    pub(crate) schemes: Vec<String>,
    /// Override a key of the scenario, as in topology.k=4. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Apply a scale of the file (`[scale.NAME]`), such as quick.
    #[arg(long)]
    pub(crate) scale: Option<String>,
    /// Scenario for checking the result; not used in the search. May be repeated.
    #[arg(long, value_name = "SCENARIO")]
    pub(crate) held_out: Vec<String>,
    /// Successive halving: only the better half of the trials runs on.
    ///
    /// Trials are compared after a quarter and after half of the duration. For one metric only.
    #[arg(long, conflicts_with = "race")]
    pub(crate) halve: bool,
    /// Racing: stop a trial once it is worse than the best one on the same seeds.
    ///
    /// Trials run seed by seed and are compared by Wilcoxon's signed-rank test. For one metric only; needs --seeds 5 or
    /// more.
    #[arg(long)]
    pub(crate) race: bool,
    /// Optuna storage for trials, as a URL. Default: a SQLite file in --out.
    #[arg(long, value_name = "URL")]
    pub(crate) storage: Option<String>,
    /// Results directory. Default: out/NAME-tuned.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<String>,
    /// Threads of each trial, 1 to 1024.
    ///
    /// Default: all cores, divided among the trials that run at the same time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}
