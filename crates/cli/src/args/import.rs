//! `import`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Subcommand, Debug)]
pub(crate) enum ImportCommand {
    /// A connection matrix (.cm), and a topology (.topo) if there is one, of htsim.
    Htsim(ImportHtsimArgs),
    /// A topology, flows and, if there is one, a configuration of HPCC's ns-3 simulator.
    Hpcc(ImportHpccArgs),
    /// A GOAL schedule of LogGOPSim or ATLAHS, text or binary.
    Goal(ImportGoalArgs),
    /// Chakra execution traces, a file a rank.
    Chakra(ImportChakraArgs),
    /// A collective algorithm of MSCCL, in XML.
    Msccl(ImportMscclArgs),
    /// A training workload of SimAI, as AICB writes it.
    Simai(ImportSimaiArgs),
    /// Flows as CSV: start,from,to,bytes.
    Flows(ImportTrafficArgs),
    /// Flow records as CSV, as nfdump writes them.
    Netflow(ImportTrafficArgs),
    /// A capture, pcap or pcapng: a flow for each direction of each TCP and UDP flow in it.
    Pcap(ImportTrafficArgs),
    /// A network in GraphML, as the Internet Topology Zoo and networkx write it.
    Graphml(ImportGraphmlArgs),
    /// A network as CSV: from,to,rate,delay.
    Links(ImportGraphArgs),
    /// A lab of containerlab.
    Containerlab(ImportGraphArgs),
    /// A network in SNDlib's native format.
    Sndlib(ImportSndlibArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ImportSndlibArgs {
    /// What one unit of a capacity is, such as 1Mbps; the format gives it none.
    #[arg(long, value_name = "RATE")]
    pub(crate) unit: Option<String>,
    #[command(flatten)]
    pub(crate) graph: ImportGraphArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ImportGraphmlArgs {
    /// One unit of a rate, bandwidth or capacity that has none in the file, such as 1Gbps.
    #[arg(long, value_name = "RATE")]
    pub(crate) unit: Option<String>,
    /// One unit of a delay or latency that has none in the file, such as 1ms.
    #[arg(long, value_name = "TIME")]
    pub(crate) delay_unit: Option<String>,
    #[command(flatten)]
    pub(crate) graph: ImportGraphArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ImportGraphArgs {
    /// The network.
    pub(crate) graph: PathBuf,
    /// The rate of links of which the file says none, such as 10Gbps.
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// The delay of links of which the file says none, such as 2ms.
    #[arg(long)]
    pub(crate) delay: Option<String>,
    /// How many hosts each switch gets. A place of a wide-area network has one, switches of a lab with hosts none.
    #[arg(long, value_name = "N")]
    pub(crate) hosts: Option<std::num::NonZeroU16>,
    /// The rate of their links; that of the fastest link if not given.
    #[arg(long, value_name = "RATE")]
    pub(crate) host_rate: Option<String>,
    /// The scenario file to write; an earlier one that nobody edited is replaced, another file is not.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// Where imported traffic goes, and what is written.
#[derive(Args, Debug)]
pub(crate) struct ImportOnto {
    /// The scenario whose network, ports, hosts and schemes are used; its traffic is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// The scenario file to write; an earlier one that nobody edited is replaced, another file is not.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ImportTrafficArgs {
    /// The traffic.
    pub(crate) traffic: PathBuf,
    /// How to place senders and receivers whose names are not names of hosts, in order of appearance.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) onto: ImportOnto,
}

/// On which hosts ranks are, or whoever sends and receives.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placement {
    /// Even parts of them, in order, in each datacenter.
    Block,
    /// Each in the datacenter after the last one's.
    Cyclic,
    /// Rank 0 on host 0, rank 1 on host 1, and so on.
    Packed,
}

#[derive(Args, Debug)]
pub(crate) struct ImportChakraArgs {
    /// The traces, one for each rank; in the order of the numbers in their names, if these are 0, 1 and so on.
    #[arg(required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// Groups of ranks that collectives name, as JSON: {"0": [0, 1], "1": [2, 3]}.
    #[arg(long, value_name = "FILE")]
    pub(crate) groups: Option<PathBuf>,
    /// On which hosts ranks are.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) onto: ImportOnto,
}

#[derive(Args, Debug)]
pub(crate) struct ImportMscclArgs {
    /// The algorithm.
    pub(crate) algorithm: PathBuf,
    /// What the algorithm works on, in all its chunks together, such as 64MiB; without a unit, in bytes.
    #[arg(long)]
    pub(crate) size: String,
    /// On which hosts GPUs are.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) onto: ImportOnto,
}

#[derive(Args, Debug)]
pub(crate) struct ImportSimaiArgs {
    /// The workload.
    pub(crate) workload: PathBuf,
    /// How many passes there are, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) passes: u32,
    /// The number of ranks, for a workload whose first line does not say it, as of older revisions of AICB.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ranks: Option<u32>,
    /// On which hosts ranks are.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) onto: ImportOnto,
}

#[derive(Args, Debug)]
pub(crate) struct ImportGoalArgs {
    /// The schedule.
    pub(crate) schedule: PathBuf,
    /// Sends up to this size have ended once they have begun, others once they are acknowledged; LogGOPSim's S. Without a unit, in
    /// bytes.
    #[arg(long, value_name = "SIZE", default_value = "65535B")]
    pub(crate) eager: String,
    /// On which hosts ranks are.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) onto: ImportOnto,
}

#[derive(Args, Debug)]
pub(crate) struct ImportHpccArgs {
    /// The topology.
    pub(crate) topology: PathBuf,
    /// The flows.
    pub(crate) flows: PathBuf,
    /// The configuration.
    pub(crate) config: Option<PathBuf>,
    /// The scenario file to write; an earlier one that nobody edited is replaced, another file is not.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// The unit of `start` in a connection matrix.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StartUnit {
    /// Picoseconds, for programs that take the number as it is, such as csg-htsim for NDP.
    Ps,
    /// Microseconds, for programs that convert it, such as uet-htsim for UEC (uec.cpp) and csg-htsim for EQDS.
    Us,
}

#[derive(Args, Debug)]
pub(crate) struct ImportHtsimArgs {
    /// The connection matrix.
    pub(crate) matrix: PathBuf,
    /// The topology.
    pub(crate) topology: Option<PathBuf>,
    /// The unit of `start` in the connection matrix; the file does not say it. Needed unless all flows start at 0.
    #[arg(long, value_enum, value_name = "UNIT")]
    pub(crate) start_unit: Option<StartUnit>,
    /// The scenario file to write; an earlier one that nobody edited is replaced, another file is not.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}
