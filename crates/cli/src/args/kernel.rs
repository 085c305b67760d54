//! `kernel`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::CsvArgs;

#[derive(Subcommand, Debug)]
pub(crate) enum KernelCommand {
    /// Load a control law into the kernel's TCP.
    ///
    /// It stays loaded until `narrows kernel unload` or a reboot. Without --set-default, --netns, --route or --cgroup, only
    /// sockets that request it by name use it (iperf3 -C NAME). Load it at both ends: a listener under another law
    /// refuses ECN.
    Load(KernelLoadArgs),
    /// Show loaded laws, their users and the state of their sockets.
    Status(KernelStatusArgs),
    /// Unload control laws and restore the previous settings.
    ///
    /// Sockets that run a law keep it until they close.
    Unload(KernelUnloadArgs),
    /// Check whether this machine can run laws in its kernel.
    ///
    /// Reports what is missing.
    Doctor(KernelDoctorArgs),
    /// Write this build's BPF objects, for machines without clang.
    Export {
        /// Output directory; created if missing.
        ///
        /// Only earlier exports are overwritten.
        directory: PathBuf,
    },
}

#[derive(Args, Debug)]
pub(crate) struct KernelLoadArgs {
    /// Control law to load, as in gemini.
    pub(crate) law: String,
    /// Use it for new connections of this network namespace by default.
    #[arg(long)]
    pub(crate) set_default: bool,
    /// Use it by default in another network namespace, given by name or path. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) netns: Vec<String>,
    /// Use it on an existing IPv4 or IPv6 route, as in 10.0.0.0/8. May be repeated.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) route: Vec<String>,
    /// Use it for sockets of a cgroup (version 2), given by its directory. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) cgroup: Vec<PathBuf>,
    /// Parameter of the law, as in k=75KB; `narrows laws NAME` lists them. May be repeated.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub(crate) params: Vec<String>,
    /// Rate of the slowest link on the flows' paths, as in 1Gbps; laws scale with it.
    #[arg(long, value_name = "RATE", default_value = "10Gbps")]
    pub(crate) line_rate: String,
    /// Base RTT of all flows, 1us to 10s.
    ///
    /// Set it if handshakes may meet full queues. Default: the RTT of each flow's handshake, then the minimum that the
    /// flow measures.
    #[arg(long, value_name = "TIME")]
    pub(crate) base_rtt: Option<String>,
    /// Base RTT inside a datacenter, 1us to 10s.
    #[arg(long, value_name = "TIME", default_value = "100us")]
    pub(crate) intra_rtt: String,
    /// Name in the kernel, at most 15 bytes. Default: `narrows_LAW`.
    #[arg(long = "name", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Keep it loaded only until Ctrl-C.
    #[arg(long)]
    pub(crate) foreground: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KernelStatusArgs {
    /// Show only this law.
    pub(crate) law: Option<String>,
    /// Refresh every second, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) watch: bool,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}

#[derive(Args, Debug)]
pub(crate) struct KernelUnloadArgs {
    /// Laws to unload.
    #[arg(required_unless_present = "all")]
    pub(crate) laws: Vec<String>,
    /// Unload all loaded laws.
    #[arg(long, conflicts_with = "laws")]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KernelDoctorArgs {
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}
