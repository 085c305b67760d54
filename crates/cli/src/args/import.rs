//! `import`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Subcommand, Debug)]
pub(crate) enum ImportCommand {
    /// Import an htsim connection matrix (.cm) and topology (.topo).
    Htsim(ImportHtsimArgs),
    /// Import the topology, flows and settings of HPCC's ns-3 simulator.
    Hpcc(ImportHpccArgs),
    /// Import a GOAL schedule of LogGOPSim or ATLAHS, text or binary.
    Goal(ImportGoalArgs),
    /// Import Chakra execution traces, one file per rank.
    Chakra(ImportChakraArgs),
    /// Import an MSCCL collective algorithm (XML).
    Msccl(ImportMscclArgs),
    /// Import a SimAI training workload, as AICB writes it.
    Simai(ImportSimaiArgs),
    /// Import a list of flows from CSV: start,src,dst,bytes.
    Flows(ImportTrafficArgs),
    /// Import flow records from nfdump's CSV (NetFlow, IPFIX).
    Netflow(ImportTrafficArgs),
    /// Import flows from a packet capture (pcap or pcapng).
    ///
    /// Each direction of each TCP and UDP flow becomes a flow.
    Pcap(ImportTrafficArgs),
    /// Import a GraphML network (Internet Topology Zoo, networkx).
    Graphml(ImportGraphmlArgs),
    /// Import a network from CSV: from,to,rate,delay.
    Links(ImportGraphArgs),
    /// Import a containerlab topology (YAML).
    Containerlab(ImportGraphArgs),
    /// Import a network in SNDlib's native format.
    Sndlib(ImportSndlibArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ImportSndlibArgs {
    /// Rate of one capacity unit, as in 1Mbps; the format does not state it.
    #[arg(long, value_name = "RATE")]
    pub(crate) unit: Option<String>,
    #[command(flatten)]
    pub(crate) graph: ImportGraphArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ImportGraphmlArgs {
    /// Rate of one unit, as in 1Gbps, for rates and capacities without a unit in the file.
    #[arg(long, value_name = "RATE")]
    pub(crate) unit: Option<String>,
    /// Time of one unit, as in 1ms, for delays without a unit in the file.
    #[arg(long, value_name = "TIME")]
    pub(crate) delay_unit: Option<String>,
    #[command(flatten)]
    pub(crate) graph: ImportGraphArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ImportGraphArgs {
    /// Network file.
    pub(crate) graph: PathBuf,
    /// Rate of links without one in the file, as in 10Gbps. Default: 100Gbps.
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// Delay of links without one in the file, as in 2ms.
    ///
    /// Between nodes with coordinates, it is that of light in glass instead. Default: 1ms for GraphML and SNDlib, 1us
    /// otherwise.
    #[arg(long)]
    pub(crate) delay: Option<String>,
    /// Number of hosts to attach to each switch.
    ///
    /// Default: 1 if the file has fewer than two hosts, as in wide-area networks; otherwise none.
    #[arg(long, value_name = "N")]
    pub(crate) hosts: Option<std::num::NonZeroU16>,
    /// Rate of the links to these hosts. Default: that of the fastest link.
    #[arg(long, value_name = "RATE")]
    pub(crate) host_rate: Option<String>,
    /// Scenario file to write.
    ///
    /// An existing file is overwritten only if Narrows wrote it and it was not edited since.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

/// Target of imported traffic.
#[derive(Args, Debug)]
pub(crate) struct ImportTarget {
    /// Scenario to take the network, ports, hosts and schemes from.
    ///
    /// Its traffic is replaced. Default: two fat trees that are large enough, under DCTCP.
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Scenario file to write.
    ///
    /// An existing file is overwritten only if Narrows wrote it and it was not edited since.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ImportTrafficArgs {
    /// Traffic file.
    pub(crate) traffic: PathBuf,
    /// Placement on hosts, in order of appearance.
    ///
    /// For senders and receivers whose names are not names of hosts.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) target: ImportTarget,
}

/// Placement of ranks, or of senders and receivers, on hosts.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placement {
    /// Equal parts in each datacenter, in order.
    Block,
    /// Round robin over the datacenters.
    Cyclic,
    /// Rank 0 on host 0, rank 1 on host 1, and so on.
    Packed,
}

#[derive(Args, Debug)]
pub(crate) struct ImportChakraArgs {
    /// Trace files, one for each rank.
    ///
    /// In the order of the numbers in their names, if these are 0, 1 and so on.
    #[arg(required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// JSON file with the process groups of collectives, as in {"0": [0, 1], "1": [2, 3]}.
    #[arg(long, value_name = "FILE")]
    pub(crate) groups: Option<PathBuf>,
    /// Placement of ranks on hosts.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) target: ImportTarget,
}

#[derive(Args, Debug)]
pub(crate) struct ImportMscclArgs {
    /// Algorithm file.
    pub(crate) algorithm: PathBuf,
    /// Size of the data over all chunks of the algorithm, as in 64MiB; bytes without a unit.
    #[arg(long)]
    pub(crate) size: String,
    /// Placement of GPUs on hosts.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) target: ImportTarget,
}

#[derive(Args, Debug)]
pub(crate) struct ImportSimaiArgs {
    /// Workload file.
    pub(crate) workload: PathBuf,
    /// Number of passes (training iterations), one after the other.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) passes: u32,
    /// Number of ranks, if the first line of the workload does not state it.
    ///
    /// Workloads of older AICB revisions need this.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ranks: Option<u32>,
    /// Placement of ranks on hosts.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) target: ImportTarget,
}

#[derive(Args, Debug)]
pub(crate) struct ImportGoalArgs {
    /// Schedule file.
    pub(crate) schedule: PathBuf,
    /// Largest send that counts as complete when it starts (LogGOPSim's S).
    ///
    /// Larger sends are complete when they are acknowledged; 0 applies this to all. Bytes without a unit.
    #[arg(long, value_name = "SIZE", default_value = "65535B")]
    pub(crate) eager: String,
    /// Placement of ranks on hosts.
    #[arg(long, value_enum, default_value_t = Placement::Block)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) target: ImportTarget,
}

#[derive(Args, Debug)]
pub(crate) struct ImportHpccArgs {
    /// Topology file.
    pub(crate) topology: PathBuf,
    /// Flow file.
    pub(crate) flows: PathBuf,
    /// Configuration file.
    pub(crate) config: Option<PathBuf>,
    /// Scenario file to write.
    ///
    /// An existing file is overwritten only if Narrows wrote it and it was not edited since.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

/// The unit of `start` in a connection matrix.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StartUnit {
    /// Picoseconds: for programs that use the number as it is, such as csg-htsim for NDP.
    Ps,
    /// Microseconds: for programs that convert it, such as uet-htsim for UEC (uec.cpp) and csg-htsim for EQDS.
    Us,
}

#[derive(Args, Debug)]
pub(crate) struct ImportHtsimArgs {
    /// Connection matrix file (.cm).
    pub(crate) matrix: PathBuf,
    /// Topology file (.topo).
    pub(crate) topology: Option<PathBuf>,
    /// Unit of `start` in the connection matrix; the file does not state it.
    ///
    /// Needed unless all flows start at 0.
    #[arg(long, value_enum, value_name = "UNIT")]
    pub(crate) start_unit: Option<StartUnit>,
    /// Scenario file to write.
    ///
    /// An existing file is overwritten only if Narrows wrote it and it was not edited since.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}
