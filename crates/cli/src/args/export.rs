//! `export`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use super::values::key_value;

#[derive(Subcommand, Debug)]
pub(crate) enum ExportCommand {
    /// Export SONiC tables of a switch: ECN, buffers, PFC headroom.
    ///
    /// Headroom is computed by SONiC's formula and then tried in simulation. Prints tables (`config_db.json`) on
    /// standard output and notes on standard error.
    Sonic(ExportSonicArgs),
    /// Export a run as a timeline for ui.perfetto.dev.
    ///
    /// Shows flows, collective operations, link failures, pauses, queues, windows and rates.
    Perfetto(ExportPerfettoArgs),
    /// Export a sampled flow of a run as a qlog file.
    ///
    /// Contains its window, RTTs, bytes and the state of its control law. Only flows that the scenario samples
    /// (`[monitor]`) can be exported.
    Qlog(ExportQlogArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ExportQlogArgs {
    /// Results directory.
    pub(crate) directory: PathBuf,
    /// Run to export, as in uno,load=0.4. Needed if there are several.
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// Number of the flow. Needed if several flows were sampled.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) flow: Option<u32>,
    /// Output file.
    ///
    /// An existing file is overwritten only if Narrows wrote it.
    #[arg(long, short, value_name = "FILE", default_value = "flow.sqlog")]
    pub(crate) out: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ExportPerfettoArgs {
    /// Results directory.
    pub(crate) directory: PathBuf,
    /// Run to export, as in uno,load=0.4. Needed if there are several.
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// Output file.
    ///
    /// An existing file is overwritten only if Narrows wrote it.
    #[arg(long, short, value_name = "FILE", default_value = "trace.pftrace")]
    pub(crate) out: PathBuf,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    narrows export sonic scenarios/lossless.toml --scheme dcqcn --switch dc0.pod0.edge0 >edge.json\n  \
    sonic-cfggen -j edge.json --write-to-db")]
pub(crate) struct ExportSonicArgs {
    /// Scenario file (TOML).
    pub(crate) scenario: PathBuf,
    /// Scheme whose port and switch settings to export; default: the first one.
    #[arg(long, value_name = "NAME")]
    pub(crate) scheme: Option<String>,
    /// Switch to export, such as dc0.border.
    ///
    /// Default: the first switch with a link between datacenters, else the first switch.
    #[arg(long, value_name = "NAME")]
    pub(crate) switch: Option<String>,
    /// Switch chip, for SONiC's headroom formula.
    #[arg(long, value_name = "NAME", default_value = "spectrum-3",
        value_parser = PossibleValuesParser::new(crate::sonic::ASICS.map(|asic| asic.name)))]
    pub(crate) asic: String,
    /// Buffer cell size of the chip in bytes, 1 to 4096; default: SONiC's value.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) cell: Option<u64>,
    /// Priorities of the traffic, 0 to 7, separated by commas.
    #[arg(long, value_name = "LIST", default_value = "3", value_delimiter = ',',
        value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) priorities: Vec<u8>,
    /// MTU of the ports in bytes, 64 to 65535.
    #[arg(long, value_name = "BYTES", default_value_t = 9_100,
        value_parser = clap::value_parser!(u64).range(64..=65535))]
    pub(crate) mtu: u64,
    /// Percentage of 64-byte packets in lossless traffic, for the headroom formula.
    ///
    /// 100 is the worst case: each such packet takes a whole cell of the buffer.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub(crate) small_packets: u64,
    /// Port speed in Gb/s from which ports have eight lanes, for the headroom formula.
    #[arg(long, value_name = "GBPS", default_value_t = 400)]
    pub(crate) eight_lane_min: u64,
    /// Gearbox delay in the headroom formula's unit, 0 to 65535.
    ///
    /// The formula counts speed times delay over 8 KiB.
    #[arg(long, value_name = "DELAY", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=65535))]
    pub(crate) gearbox: u64,
    /// Write separate ECN marking thresholds (`ecn_green_*`).
    ///
    /// For SONiC's model from 2026-06-23 on.
    #[arg(long)]
    pub(crate) separate_wred: bool,
    /// Override a key of the scenario, as in topology.k=4. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
}
