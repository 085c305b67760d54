//! Commands over the transport.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::CsvArgs;

#[derive(Args, Debug)]
#[command(
    after_help = "DURATION is a number of seconds, or has a unit: 500ms, 10s, 5min, 2h, 1d. BYTES is a number of \
    bytes, or has a unit: k, M, G or T (powers of 1000), KiB, MiB, GiB or TiB.\n\nExamples:\n  \
    narrows perf --listen 0.0.0.0        # prints a ticket\n  narrows perf @ticket --time 30 --law bbr\n  \
    narrows perf - --bytes 4G --reverse --streams 4 < ticket",
    mut_arg("reusable", needs_listen),
    mut_arg("ticket_lifetime", needs_listen),
    mut_arg("advertise", needs_listen),
    mut_arg("allow_key", needs_listen),
    mut_arg("threads", needs_listen),
    mut_arg("fingerprint", |arg| arg.conflicts_with("listen"))
)]
pub(crate) struct PerfArgs {
    /// Listener: a ticket, @FILE with a ticket, - for standard input, or an address.
    ///
    /// An address is HOST or HOST:PORT (default port 4700), and also needs --fingerprint or --insecure. Keep tickets in
    /// files: other users of this machine can read its command lines.
    #[arg(value_name = "TICKET|ADDR", required_unless_present = "listen", conflicts_with = "listen")]
    pub(crate) peer: Option<String>,
    /// Wait for a client at this address, as in 0.0.0.0, and print a ticket for it.
    ///
    /// The default port is 4700 (UDP).
    #[arg(long, value_name = "ADDR", conflicts_with = "csv")]
    pub(crate) listen: Option<String>,
    /// Duration of the test, at most 1d. Default: 10 s.
    #[arg(long, short = 't', value_name = "DURATION", conflicts_with_all = ["listen", "bytes"])]
    pub(crate) time: Option<String>,
    /// Total bytes to send over all streams, instead of --time.
    ///
    /// With --messages: bytes of each message.
    #[arg(long, short = 'n', value_name = "BYTES", conflicts_with = "listen")]
    pub(crate) bytes: Option<String>,
    /// Measure the latency of N messages instead, 1 to 1000000.
    ///
    /// Messages of --bytes each (default: 100k) are sent one at a time on the idle connection. Reports the time until
    /// the sender knew that each was delivered.
    #[arg(long, value_name = "N", conflicts_with_all = ["listen", "time", "reverse", "streams"],
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) messages: Option<u32>,
    /// Receive instead of sending: the listener sends, under its own control law.
    #[arg(long, short = 'R', conflicts_with_all = ["listen", "law", "params", "line_rate"])]
    pub(crate) reverse: bool,
    /// Number of parallel streams, 1 to 128.
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, conflicts_with = "listen",
          value_parser = clap::value_parser!(u16).range(1..=128))]
    pub(crate) streams: u16,
    /// Number of network paths to use at once, 1 to 64, each from its own UDP port.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "listen",
          value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) paths: u8,
    /// Time between progress lines, 10ms to 1h.
    #[arg(long, short = 'i', value_name = "DURATION", default_value = "1", conflicts_with = "listen")]
    pub(crate) interval: String,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long, short = 'J', conflicts_with = "listen")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    #[command(flatten)]
    pub(crate) admission: ListenArgs,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "narrows send [OPTIONS] PATH... TICKET|ADDR",
    after_help = "Exit codes: 0 everything is on the receiver's disk, 1 something is not, 2 usage or input, 130 \
    interrupted.\n\nExamples:\n  narrows send photos notes.txt @ticket\n  \
    ssh there narrows recv inbox | narrows send photos -",
    mut_arg("insecure", |arg| arg.help("Do not authenticate the listener"))
)]
pub(crate) struct SendArgs {
    /// Files and directories to send, and last the receiver.
    ///
    /// The receiver stores each path under its last component. The receiver is a ticket, @FILE with a ticket, - for a
    /// ticket on standard input, or an address. An address is HOST or HOST:PORT (default port 4700), and also needs
    /// --fingerprint or --insecure. Keep tickets in files: other users of this machine can read its command lines.
    #[arg(value_name = "PATH... TICKET|ADDR", required = true)]
    pub(crate) words: Vec<PathBuf>,
    /// Compare files of equal size by hash, not by modification time.
    #[arg(long, short = 'c')]
    pub(crate) checksum: bool,
    /// Number of network paths to use at once, 1 to 64, each from its own UDP port.
    #[arg(long = "paths", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) paths: u8,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 everything is on the disk, 1 something is not, 2 usage or input, 130 interrupted.\n\n\
    Examples:\n  narrows recv inbox > ticket\n  narrows recv inbox --listen 192.0.2.1:4800 --reusable",
    mut_arg("law", |arg| arg.hide(true)),
    mut_arg("params", |arg| arg.hide(true)),
    mut_arg("coupled", |arg| arg.hide(true)),
    mut_arg("on_ramp", |arg| arg.hide(true)),
    mut_arg("line_rate", |arg| arg.hide(true)),
    mut_arg("coding", |arg| arg.hide(true)),
)]
pub(crate) struct RecvArgs {
    /// Destination directory; created if missing.
    ///
    /// Nothing is written outside of it.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Address on which to wait for the sender; default port 4700 (UDP).
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0")]
    pub(crate) listen: String,
    /// Overwrite existing files that differ.
    ///
    /// Without this option, existing files are kept and the sender's are refused.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Set the sender's permissions on all files and directories.
    ///
    /// Without this option, new ones get the sender's permissions under this machine's umask, and existing ones keep
    /// their own. The setuid, setgid and sticky bits are never sent.
    #[arg(long)]
    pub(crate) exact_modes: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) admission: ListenArgs,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
}

/// Output of a file transfer.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ShowArgs {
    /// Print neither progress nor a summary, only errors on standard error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the result as JSON on standard output; a receiver prints its ticket first.
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ProxyCommand {
    /// Run the proxy server, where the destinations are.
    ///
    /// Listens for proxy clients and connects to the destinations that its rules allow. Without rules it connects nowhere.
    Server(Box<ProxyServerArgs>),
    /// Run the proxy client, where the programs are.
    ///
    /// Accepts their connections by SOCKS 5 (--socks), at forwarded ports (--forward), or redirected by the kernel
    /// (--transparent).
    Client(Box<ProxyClientArgs>),
}

#[derive(Args, Debug)]
#[command(
    after_help = "A rule is HOST:PORTS. HOST is a name, an address, a network or *; PORTS is a port, a range or *. \
    Loopback, link-local and cloud metadata addresses are never part of * or of a name (except localhost): allow them \
    by address.\n\nExamples:\n  \
    narrows proxy server --listen 0.0.0.0 --allow '*:443' --allow 10.1.0.0/16:5201-5210 > ticket\n  \
    narrows proxy server --listen 0.0.0.0 --ticket /var/lib/narrows/ticket --allow files.example.org:873",
    mut_arg("stream_window", |arg| arg.default_value("64MiB"))
)]
pub(crate) struct ProxyServerArgs {
    /// Wait for proxy clients at this address, and print a ticket for them.
    ///
    /// The default port is 4700 (UDP).
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: String,
    /// Allow connections to these destinations, as in '*:443'. May be repeated.
    ///
    /// Without this option, no connection is made.
    #[arg(long, value_name = "HOST:PORTS")]
    pub(crate) allow: Vec<String>,
    /// Accept the proxy client with this key, without a ticket. May be repeated.
    #[arg(long, value_name = "SHA256:...")]
    pub(crate) allow_key: Vec<String>,
    /// Accept any client, without a ticket or a known key.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Keep the ticket in this file, so that it stays valid after a restart.
    ///
    /// The file is created if missing, readable by its owner only.
    #[arg(long, value_name = "FILE")]
    pub(crate) ticket: Option<PathBuf>,
    /// Lifetime of a new ticket, 1s to 365d. Default: unlimited.
    #[arg(long, value_name = "DURATION")]
    pub(crate) ticket_lifetime: Option<String>,
    /// Address to put into the ticket, such as that of a NAT.
    ///
    /// May be repeated, up to 8 times. Default: the listener's own addresses.
    #[arg(long = "advertise", value_name = "ADDR")]
    pub(crate) advertise: Vec<String>,
    /// Number of transport threads, 1 to 64; each connection uses one of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: u8,
    /// Log each connection and its outcome on standard error.
    #[arg(long, short = 'v')]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "An address without a host is on 127.0.0.1: 1080 means 127.0.0.1:1080.\n\nExamples:\n  \
    narrows proxy client @ticket --socks 1080\n  narrows proxy client @ticket --forward 5201=server.example:5201\n  \
    narrows proxy client @ticket --transparent 1081    # as root; see the book for the redirection",
    group(ArgGroup::new("entrances").args(["socks", "forward", "transparent"]).required(true).multiple(true)),
    mut_arg("stream_window", |arg| arg.default_value("64MiB")),
    mut_arg("insecure", |arg| arg.help("Do not authenticate the listener"))
)]
pub(crate) struct ProxyClientArgs {
    /// Proxy server: a ticket, @FILE with a ticket, - for standard input, or an address.
    ///
    /// An address is HOST or HOST:PORT (default port 4700), and also needs --fingerprint or --insecure. Keep tickets in
    /// files: other users of this machine can read its command lines.
    #[arg(value_name = "TICKET|ADDR")]
    pub(crate) peer: String,
    /// Accept SOCKS 5 connections at this address, as in 1080. May be repeated.
    #[arg(long, value_name = "ADDR")]
    pub(crate) socks: Vec<String>,
    /// Forward connections at this address to one destination, as in 5201=server:5201.
    ///
    /// May be repeated.
    #[arg(long, value_name = "ADDR=HOST:PORT")]
    pub(crate) forward: Vec<String>,
    /// Accept connections that the kernel redirects to this address.
    ///
    /// They go to their original destinations. May be repeated.
    #[arg(long, value_name = "ADDR")]
    pub(crate) transparent: Vec<String>,
    /// Number of network paths to use at once, 1 to 64, each from its own UDP port.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) paths: u8,
    /// Log each connection and its outcome on standard error.
    #[arg(long, short = 'v')]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
}

/// Authentication of the listener by a client.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConnectArgs {
    /// Key fingerprint that the listener must have; needed with an address, not with a ticket.
    #[arg(long, value_name = "SHA256:...", conflicts_with = "insecure")]
    pub(crate) fingerprint: Option<String>,
    /// Do not authenticate the listener; with --listen: accept any client.
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// Admission of clients by a listener.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListenArgs {
    /// Accept the ticket more than once, and keep listening after the first client.
    #[arg(long)]
    pub(crate) reusable: bool,
    /// Lifetime of the ticket, 1s to 365d.
    #[arg(long, value_name = "DURATION", default_value = "1d")]
    pub(crate) ticket_lifetime: String,
    /// Address to put into the ticket, such as that of a NAT.
    ///
    /// May be repeated, up to 8 times. Default: the listener's own addresses.
    #[arg(long = "advertise", value_name = "ADDR")]
    pub(crate) advertise: Vec<String>,
    /// Accept the client with this key, without a ticket. May be repeated.
    #[arg(long, value_name = "SHA256:...")]
    pub(crate) allow_key: Vec<String>,
    /// Number of transport threads, 1 to 64; each connection uses one of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: u8,
}

/// Settings of one end of a connection: control law, limits, identity.
#[derive(Args, Clone, Debug)]
pub(crate) struct EndpointArgs {
    /// Control law for sending; `narrows laws` lists them.
    ///
    /// Laws that need credits or INT are refused. Each path has its own instance unless --coupled is given. Default:
    /// bbr with `initial_window=128kB`, `recovery=false` (losses do not limit the window) and `probe_rtt_window=0.5`; a
    /// law that is named has its own defaults.
    #[arg(long, value_name = "NAME")]
    pub(crate) law: Option<String>,
    /// Run one instance of the law for all paths of a connection, as if they were one path.
    #[arg(long)]
    pub(crate) coupled: bool,
    /// Parameter of the law, as in k=75KB; `narrows laws NAME` lists them. May be repeated.
    #[arg(long = "param", value_name = "NAME=VALUE", requires = "law")]
    pub(crate) params: Vec<String>,
    /// Hold packets while the one-way delay exceeds its recent minimum by this, as in 2ms.
    ///
    /// This is On-Ramp; it works under any law. 1us to 10s. Default: off.
    #[arg(long, value_name = "THRESHOLD", allow_hyphen_values = true)]
    pub(crate) on_ramp: Option<String>,
    /// Rate of the slowest link on the path, as in 1Gbps; laws scale with it. Default: 10Gbps.
    #[arg(long, value_name = "RATE")]
    pub(crate) line_rate: Option<String>,
    /// Erasure coding of sent packets, to rebuild lost ones: `off`, `K,M`, `tail` or `auto`.
    ///
    /// `K,M`, as in `8,2`, codes all packets, in blocks of K data and M parity packets. `tail` codes only the last
    /// bandwidth-delay product before the end of the data. `auto` is like `tail`, with as much parity as the loss rate
    /// requires, within a budget of 10 % (`auto=5%` for another one).
    #[arg(long, value_name = "CODING", default_value = "auto")]
    pub(crate) coding: String,
    /// Largest UDP payload to try, in bytes, 1200 to 65527.
    ///
    /// Path MTU discovery finds the size that fits; the smaller value of both ends applies. Default: 1472, for an MTU
    /// of 1500; 65527 for a listener.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1_200..=65_527))]
    pub(crate) max_udp_payload: Option<u16>,
    /// Flow control window of each stream, 64KiB to 4GiB.
    ///
    /// At least the rate times the RTT; about three times that if packets are lost. The smaller value of both ends
    /// applies.
    #[arg(long, short = 'w', value_name = "BYTES", default_value = "64MiB")]
    pub(crate) stream_window: String,
    /// Idle timeout: give up after this time without a packet of the peer, 1 to 600 s.
    ///
    /// The smaller value of both ends applies.
    #[arg(long, value_name = "DURATION", default_value = "30")]
    pub(crate) idle_timeout: String,
    /// File with this machine's secret key; created if missing.
    ///
    /// Default: `narrows/identity` in `$XDG_STATE_HOME` or `~/.local/state`.
    #[arg(long, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    /// Write a qlog file for each connection to this directory; created if missing.
    ///
    /// Logs contain packets, losses and the decisions of the control law.
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
}

/// Restricts an option of a command that also connects to listeners.
fn needs_listen(option: clap::Arg) -> clap::Arg {
    // A required argument is not demanded if a conflicting one is given: --listen replaces the target.
    option.requires("listen").conflicts_with("peer")
}
