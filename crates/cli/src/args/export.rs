//! `export`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use super::values::key_value;

#[derive(Subcommand, Debug)]
pub(crate) enum ExportCommand {
    /// Tables of a SONiC switch: marking, buffers, pauses, and headroom by SONiC's formula, tried in simulation.
    Sonic(ExportSonicArgs),
    /// A run as a timeline for ui.perfetto.dev: flows, collective operations, failures, queues, windows, rates.
    Perfetto(ExportPerfettoArgs),
    /// A sampled flow of a run as a log in qlog's format: its window, round trips, bytes and its law's own numbers.
    Qlog(ExportQlogArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ExportQlogArgs {
    /// A directory of results.
    pub(crate) directory: PathBuf,
    /// Which of its runs, as in `uno,load=0.4`. Needed where there are several.
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// The flow's number. Needed where several were sampled.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) flow: Option<u32>,
    /// The file; an earlier log is replaced, another file is not.
    #[arg(long, short, value_name = "FILE", default_value = "flow.sqlog")]
    pub(crate) out: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ExportPerfettoArgs {
    /// A directory of results.
    pub(crate) directory: PathBuf,
    /// Which of its runs, as in `uno,load=0.4`. Needed where there are several.
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// The file; an earlier trace is replaced, another file is not.
    #[arg(long, short, value_name = "FILE", default_value = "trace.pftrace")]
    pub(crate) out: PathBuf,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  narrows export sonic scenarios/lossless.toml --scheme dcqcn --switch dc0.pod0.edge0 >edge.json\n  \
    sonic-cfggen -j edge.json --write-to-db"
)]
pub(crate) struct ExportSonicArgs {
    /// The scenario file.
    pub(crate) scenario: PathBuf,
    /// The scheme whose ports and switches are meant; by default the first.
    #[arg(long, value_name = "NAME")]
    pub(crate) scheme: Option<String>,
    /// The switch; by default the first at a link between datacenters, else the first.
    #[arg(long, value_name = "NAME")]
    pub(crate) switch: Option<String>,
    /// The switch chip, which the formula asks for.
    #[arg(long, value_name = "NAME", default_value = "spectrum-3",
        value_parser = PossibleValuesParser::new(crate::sonic::ASICS.map(|asic| asic.name)))]
    pub(crate) asic: String,
    /// Bytes of a cell of the chip, if not as SONiC states them.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) cell: Option<u64>,
    /// The priorities of the traffic, with commas between them.
    #[arg(long, value_name = "LIST", default_value = "3", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) priorities: Vec<u8>,
    /// The MTU of ports, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 9_100, value_parser = clap::value_parser!(u64).range(64..=65535))]
    pub(crate) mtu: u64,
    /// The share of packets of 64 bytes among lossless ones, in per cent, which the formula asks for.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub(crate) small_packets: u64,
    /// Ports of this speed or more, in Gb/s, have eight lanes, which the formula asks for.
    #[arg(long, value_name = "GBPS", default_value_t = 400)]
    pub(crate) eight_lanes_from: u64,
    /// What a gearbox delays, in the formula's own unit (speed times delay over 8 KiB).
    #[arg(long, value_name = "DELAY", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=65535))]
    pub(crate) gearbox: u64,
    /// Marks have thresholds of their own, as in SONiC's model from 2026-06-23 on.
    #[arg(long)]
    pub(crate) marks_apart: bool,
    /// Override a key of the scenario. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
}
