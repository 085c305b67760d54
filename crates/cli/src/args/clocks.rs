//! `narrows clocks`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::seed;

#[derive(Subcommand, Debug)]
pub(crate) enum ClocksCommand {
    /// Simulate clock synchronisation in a mesh of hosts, and print errors and bounds.
    ///
    /// The members' code is that of the daemon; oscillators, timestamps and loaded links are models. Exit code 1 if a bound
    /// did not contain mesh time.
    Simulate(Box<ClocksSimulateArgs>),
    /// Run this host's member of a mesh, until it is stopped.
    ///
    /// Probes its neighbours over UDP and writes mesh time to a page in shared memory. Needs no privileges, and sets no clock.
    /// The peers file is the same on all hosts; the book describes it under "Synchronised clocks".
    Run(ClocksRunArgs),
    /// Print the state of the member that runs on this host.
    Status(ClocksStatusArgs),
}

/// Options of `narrows clocks run`.
#[derive(Args, Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the daemon needs Linux"))]
pub(crate) struct ClocksRunArgs {
    /// Peers file (TOML).
    #[arg(long, value_name = "FILE")]
    pub(crate) peers: PathBuf,
    /// Name of this host in the peers file. Default: the host's name.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Print only warnings and errors, on standard error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Options of `narrows clocks status`.
#[derive(Args, Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the daemon needs Linux"))]
pub(crate) struct ClocksStatusArgs {
    /// Socket of the daemon: `status` in the peers file.
    #[arg(long, value_name = "PATH", default_value = "/run/narrows/clock.sock")]
    pub(crate) socket: PathBuf,
    /// Print the state every second, until the command is stopped.
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print the state as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the state in the text format of Prometheus.
    #[arg(long, conflicts_with = "json")]
    pub(crate) prometheus: bool,
}

/// Options of `narrows clocks simulate`.
#[derive(Args, Debug)]
pub(crate) struct ClocksSimulateArgs {
    /// Number of members, 2 to 1000.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub(crate) hosts: u32,
    /// Traffic on every link, in percent of its rate, 0 to 95.
    #[arg(long, value_name = "PERCENT", default_value_t = 40, value_parser = clap::value_parser!(u32).range(0..=95))]
    pub(crate) load: u32,
    /// Mean number of packets of 1,500 bytes in a burst of this traffic, 1 to 64.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) burst: u32,
    /// Simulated time in which errors count.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) duration: String,
    /// Simulated time before.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) warm_up: String,
    /// Largest additional delay of a path between racks in one direction.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub(crate) asymmetry: String,
    /// Number of liars: members with timestamps that are wrong by up to 1 ms, differently for each neighbour.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=500))]
    pub(crate) liars: u32,
    /// Mean time between two steps of clocks in the mesh, of 20 us to 1 s. Default: no steps.
    #[arg(long, value_name = "TIME")]
    pub(crate) steps_every: Option<String>,
    /// Seed of all random choices, a whole number from 0 to 2^63 - 1.
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only warnings and errors, on standard error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
