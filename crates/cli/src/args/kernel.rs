//! `kernel`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::CsvArgs;

#[derive(Subcommand, Debug)]
pub(crate) enum KernelCommand {
    /// Load a law into the kernel; it stays until it is unloaded or the machine restarts.
    Load(KernelLoadArgs),
    /// What is loaded, who uses it, and the state of every socket that runs it.
    Status(KernelStatusArgs),
    /// Take laws out of the kernel again, and put back what was there before.
    Unload(KernelUnloadArgs),
    /// Look whether this machine can run laws in its kernel, and say what is missing.
    Doctor(KernelDoctorArgs),
    /// Write the BPF objects of this build into a directory, for machines without clang.
    Export {
        /// Where they go; it is made if need be. Earlier objects are replaced, other files are not.
        directory: PathBuf,
    },
}

#[derive(Args, Debug)]
pub(crate) struct KernelLoadArgs {
    /// Which law.
    pub(crate) law: String,
    /// Make it the default of this network namespace.
    #[arg(long)]
    pub(crate) default: bool,
    /// Make it the default of another network namespace, by its name or path. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) netns: Vec<String>,
    /// Use it for connections over one route that is there, of IPv4 or IPv6, as in 10.0.0.0/8. May be repeated.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) route: Vec<String>,
    /// Use it for sockets of a cgroup (version 2), by its directory. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) cgroup: Vec<PathBuf>,
    /// A parameter of the law, as in k=75KB; `narrows laws NAME` lists them. May be repeated.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub(crate) params: Vec<String>,
    /// Rate of the narrowest link that flows will cross: laws scale with it.
    #[arg(long, value_name = "RATE", default_value = "10Gbps")]
    pub(crate) line_rate: String,
    /// Base round trip of all flows. Default: what a flow's handshake takes, then the least that it sees.
    #[arg(long, value_name = "TIME")]
    pub(crate) base_rtt: Option<String>,
    /// Base round trip inside a datacenter.
    #[arg(long, value_name = "TIME", default_value = "100us")]
    pub(crate) intra_rtt: String,
    /// Its name in the kernel, at most 15 bytes. Default: `narrows_LAW`.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Keep it only while this command runs: until Ctrl-C.
    #[arg(long)]
    pub(crate) hold: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KernelStatusArgs {
    /// Only this law.
    pub(crate) law: Option<String>,
    /// Show it anew every second, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) watch: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}

#[derive(Args, Debug)]
pub(crate) struct KernelUnloadArgs {
    /// Which laws.
    #[arg(required_unless_present = "all")]
    pub(crate) laws: Vec<String>,
    /// All that are loaded.
    #[arg(long, conflicts_with = "laws")]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KernelDoctorArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}
