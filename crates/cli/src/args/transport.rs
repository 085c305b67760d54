//! Commands over the transport.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::CsvArgs;

#[derive(Args, Debug)]
#[command(
    after_help = "A duration is a number of seconds, or has a unit: 500ms, 10s, 5min, 2h, 1d. Bytes may have k, M, G or T (of \
    1000) or KiB, MiB, GiB or TiB.\n\nExamples:\n  narrows perf --listen 0.0.0.0        # prints a ticket\n  narrows perf \
    @ticket --time 30 --law bbr\n  narrows perf - --bytes 4G --reverse --streams 4 < ticket",
    mut_arg("keep", needs_listen),
    mut_arg("valid", needs_listen),
    mut_arg("addresses", needs_listen),
    mut_arg("allow", needs_listen),
    mut_arg("threads", needs_listen),
    mut_arg("fingerprint", |arg| arg.conflicts_with("listen"))
)]
pub(crate) struct PerfArgs {
    /// Whom to call: a ticket, @FILE that has one, - for standard input, or an address with --fingerprint or --insecure. Other
    /// users of this machine see its command lines, so keep tickets in files.
    #[arg(value_name = "TICKET|ADDR", required_unless_present = "listen", conflicts_with = "listen")]
    pub(crate) peer: Option<String>,
    /// Wait for a caller at this address, and print a ticket that lets one in. Without a port: 4700.
    #[arg(long, value_name = "ADDR", conflicts_with = "csv")]
    pub(crate) listen: Option<String>,
    /// Send for so long. Default: 10.
    #[arg(long, short = 't', value_name = "DURATION", conflicts_with_all = ["listen", "bytes"])]
    pub(crate) time: Option<String>,
    /// Send so many bytes, over all streams; with --messages: in each.
    #[arg(long, short = 'n', value_name = "BYTES", conflicts_with = "listen")]
    pub(crate) bytes: Option<String>,
    /// Send so many messages instead, one at a time on the idle connection, each of --bytes (100k if nothing is said), and say
    /// how long they took until this end knew that they were delivered.
    #[arg(long, value_name = "N", conflicts_with_all = ["listen", "time", "reverse", "streams"],
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) messages: Option<u32>,
    /// The listener sends, by the law that it was started with.
    #[arg(long, short = 'R', conflicts_with_all = ["listen", "law", "params", "line_rate"])]
    pub(crate) reverse: bool,
    /// Streams at a time.
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, conflicts_with = "listen",
          value_parser = clap::value_parser!(u16).range(1..=128))]
    pub(crate) streams: u16,
    /// Paths at a time, each from a port of its own.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "listen",
          value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) paths: u8,
    /// How often a line says how it goes.
    #[arg(long, short = 'i', value_name = "DURATION", default_value = "1", conflicts_with = "listen")]
    pub(crate) interval: String,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long, short = 'J', conflicts_with = "listen")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    #[command(flatten)]
    pub(crate) call: CallArgs,
    #[command(flatten)]
    pub(crate) desk: DeskArgs,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

#[derive(Args, Debug)]
#[command(
    override_usage = "narrows send [OPTIONS] PATH... TICKET|ADDR",
    after_help = "Exit codes: 0 all is on the receiver's disk, 1 something is not, 2 usage or input, 130 interrupted.\n\nExamples:\n  \
    narrows send photos notes.txt @ticket\n  ssh there narrows recv inbox | narrows send photos -",
    mut_arg("insecure", |arg| arg.help("Take any listener for the right one"))
)]
pub(crate) struct SendArgs {
    /// Files and directories, each known by its last name at the receiver; and last, whom to send to: a ticket, @FILE that has
    /// one, - for a line on standard input, or an address with --fingerprint or --insecure. Other users of this machine see
    /// its command lines, so keep tickets in files.
    #[arg(value_name = "PATH... TICKET|ADDR", required = true)]
    pub(crate) words: Vec<PathBuf>,
    /// Compare files of equal size by their hashes, and not by their times.
    #[arg(long, short = 'c')]
    pub(crate) checksum: bool,
    /// Paths at a time, each from a port of its own.
    #[arg(long = "paths", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) paths: u8,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) call: CallArgs,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all is on the disk, 1 something is not, 2 usage or input, 130 interrupted.\n\nExamples:\n  narrows \
    recv inbox > ticket\n  narrows recv inbox --listen 192.0.2.1:4800 --keep",
    mut_arg("law", |arg| arg.hide(true)),
    mut_arg("params", |arg| arg.hide(true)),
    mut_arg("one_law", |arg| arg.hide(true)),
    mut_arg("on_ramp", |arg| arg.hide(true)),
    mut_arg("line_rate", |arg| arg.hide(true)),
    mut_arg("coding", |arg| arg.hide(true)),
)]
pub(crate) struct RecvArgs {
    /// Where files go; it is made if need be. Nothing is written outside of it.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Wait for the sender at this address. Without a port: 4700.
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0")]
    pub(crate) listen: String,
    /// Replace files that are there and differ. Without, they stay, and those of the sender are refused.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Give all files and directories the sender's permissions. Without, new ones get them under this end's umask, and those
    /// that are there keep their own. setuid, setgid and sticky bits are not sent in either case.
    #[arg(long)]
    pub(crate) exact_modes: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten)]
    pub(crate) desk: DeskArgs,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

/// How a transfer of files is shown.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ShowArgs {
    /// No progress and no summary: what failed alone, on standard error.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print what came of it as JSON on standard output; a receiver's ticket comes first.
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ProxyCommand {
    /// The end where destinations are: listens, and connects to what its rules allow.
    Far(Box<FarArgs>),
    /// The end where programs are: takes their connections by SOCKS, at forwarded ports, or redirected by the kernel.
    Near(Box<NearArgs>),
}

#[derive(Args, Debug)]
#[command(
    after_help = "Rules are HOST:PORTS: a name, an address, a network or *; a port, a range or *. A name leads to no loopback, \
    link-local or metadata address, and * has none: name these by address.\n\nExamples:\n  narrows proxy far --listen 0.0.0.0 --allow \
    '*:443' --allow 10.1.0.0/16:5201-5210 > ticket\n  narrows proxy far --listen 0.0.0.0 --ticket \
    /var/lib/narrows/ticket --allow files.example.org:873",
    mut_arg("window", |arg| arg.default_value("64MiB"))
)]
pub(crate) struct FarArgs {
    /// Wait for near ends at this address, and print a ticket that lets them in. Without a port: 4700.
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: String,
    /// Connect to where this rule says. Without rules no connection is made. May be repeated.
    #[arg(long, value_name = "HOST:PORTS")]
    pub(crate) allow: Vec<String>,
    /// Let in the near end that has this key, without a ticket. May be repeated.
    #[arg(long, value_name = "SHA256:...")]
    pub(crate) allow_caller: Vec<String>,
    /// Let in anyone who reaches this address.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Keep the ticket in this file, so that near ends come in again after a restart. It is made if need be, for its owner
    /// alone.
    #[arg(long, value_name = "FILE")]
    pub(crate) ticket: Option<PathBuf>,
    /// How long a new ticket is valid. Default: it does not end.
    #[arg(long, value_name = "DURATION")]
    pub(crate) valid: Option<String>,
    /// An address for the ticket. Without, those that the listener has are found. May be repeated.
    #[arg(long = "address", value_name = "ADDR")]
    pub(crate) addresses: Vec<String>,
    /// Threads over which connections are spread, each on one of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: u8,
    /// Say what becomes of each connection.
    #[arg(long, short = 'v')]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Without a host, an address is at 127.0.0.1: 1080 is 127.0.0.1:1080.\n\nExamples:\n  narrows proxy near @ticket \
    --socks 1080\n  narrows proxy near @ticket --forward 5201=server.example:5201\n  narrows proxy near @ticket \
    --transparent 1081    # as root; see the book for the redirection",
    group(ArgGroup::new("entrances").args(["socks", "forward", "transparent"]).required(true).multiple(true)),
    mut_arg("window", |arg| arg.default_value("64MiB")),
    mut_arg("insecure", |arg| arg.help("Take any listener for the right one"))
)]
pub(crate) struct NearArgs {
    /// The far end: a ticket, @FILE that has one, - for standard input, or an address with --fingerprint or --insecure. Other
    /// users of this machine see its command lines, so keep tickets in files.
    #[arg(value_name = "TICKET|ADDR")]
    pub(crate) peer: String,
    /// Take connections by SOCKS 5 at this address. May be repeated.
    #[arg(long, value_name = "ADDR")]
    pub(crate) socks: Vec<String>,
    /// Take connections at this address, all for one destination. May be repeated.
    #[arg(long, value_name = "ADDR=HOST:PORT")]
    pub(crate) forward: Vec<String>,
    /// Take connections that the kernel redirects to this address, for where they were to go. May be repeated.
    #[arg(long, value_name = "ADDR")]
    pub(crate) transparent: Vec<String>,
    /// Paths at a time, each from a port of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) paths: u8,
    /// Say what becomes of each connection.
    #[arg(long, short = 'v')]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) call: CallArgs,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

/// Whether a caller knows its listener.
#[derive(Args, Clone, Debug)]
pub(crate) struct CallArgs {
    /// The key that the listener must have.
    #[arg(long, value_name = "SHA256:...", conflicts_with = "insecure")]
    pub(crate) fingerprint: Option<String>,
    /// Take any listener for the right one; with --listen: let anyone in.
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// Whom a listener lets in.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeskArgs {
    /// The ticket lets its holder in more than once, and the listener goes on after the first one.
    #[arg(long)]
    pub(crate) keep: bool,
    /// How long the ticket is valid.
    #[arg(long, value_name = "DURATION", default_value = "1d")]
    pub(crate) valid: String,
    /// An address for the ticket. Without, those that the listener has are found. May be repeated.
    #[arg(long = "address", value_name = "ADDR")]
    pub(crate) addresses: Vec<String>,
    /// Let in the caller that has this key, without a ticket. May be repeated.
    #[arg(long, value_name = "SHA256:...")]
    pub(crate) allow: Vec<String>,
    /// Threads over which connections are spread, each on one of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: u8,
}

/// How an end sends, and who it is.
#[derive(Args, Clone, Debug)]
pub(crate) struct EndArgs {
    /// The law by which this end sends; each path has one. `narrows laws` lists them. Default: bbr
    /// with an initial window of 128 kB, which losses do not hold.
    #[arg(long, value_name = "NAME")]
    pub(crate) law: Option<String>,
    /// One law for all paths of a connection, which takes them for one path, instead of one for each.
    #[arg(long)]
    pub(crate) one_law: bool,
    /// A parameter of the law, as in k=75KB; `narrows laws NAME` lists them. May be repeated.
    #[arg(long = "param", value_name = "NAME=VALUE", requires = "law")]
    pub(crate) params: Vec<String>,
    /// Hold packets while the one-way delay is over the least of late by more than this, as in 2ms: On-Ramp, under any law.
    #[arg(long, value_name = "THRESHOLD", allow_hyphen_values = true)]
    pub(crate) on_ramp: Option<String>,
    /// Rate of the narrowest link that the transfer will cross: laws scale with it. Default: 10Gbps.
    #[arg(long, value_name = "RATE")]
    pub(crate) line_rate: Option<String>,
    /// Which packets this end codes, so that the other one can rebuild lost ones: off, all in blocks of k data and m
    /// parity packets (8,2), tail (the last round trip of what ends), or auto (as tail, as losses and a budget of 10 %
    /// have it; auto=5%).
    #[arg(long, value_name = "CODING", default_value = "auto")]
    pub(crate) coding: String,
    /// The longest UDP payload that is tried, in bytes. Default: 1472; with --listen: the caller's.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1_200..=65_527))]
    pub(crate) packet: Option<u16>,
    /// Bytes of each stream that may be under way: at least the rate times the round trip.
    #[arg(long, short = 'w', value_name = "BYTES", default_value = "64MiB")]
    pub(crate) window: String,
    /// Give up after so long without a sign of the peer, 1 to 600 s; the shorter of both ends' counts.
    #[arg(long, value_name = "DURATION", default_value = "30")]
    pub(crate) idle: String,
    /// The file with this machine's key; it is made if need be. Default: `narrows/identity` in
    /// `$XDG_STATE_HOME` or `~/.local/state`.
    #[arg(long, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    /// Write what happens in each connection to a file of its own in this directory, in qlog's format: packets, losses, what the
    /// law does. The directory is made if need be.
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
}

/// An option of a command that also calls: only a listener has it.
fn needs_listen(option: clap::Arg) -> clap::Arg {
    // What is required is not asked for where something else rules it out, as whom to call does with --listen.
    option.requires("listen").conflicts_with("peer")
}
