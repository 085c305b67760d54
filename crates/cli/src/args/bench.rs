//! `bench`.

use clap::{Args, Subcommand};

use super::CsvArgs;

#[derive(Subcommand, Debug)]
pub(crate) enum BenchCommand {
    /// Packet-hops per second on three fixed workloads, each also with acknowledgements first, with one thread and two.
    Engine(BenchEngineArgs),
    /// Bytes of data per second that erasure codes protect and repair, on one core, with every kind of vector
    /// instructions that it has: from caches, and from 256 MiB of memory.
    Codes(BenchCodesArgs),
    /// Bits of payload per second of processor time, both ends together, over this machine's loopback: over the transport,
    /// encrypted, in packets of 1,400 and 4,096 bytes, coded and not, and over the kernel's TCP in clear.
    Transport(BenchTransportArgs),
}

#[derive(Args, Debug)]
pub(crate) struct BenchTransportArgs {
    /// Only workloads whose name contains this, as in 1400-coded or tcp.
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Bytes of each transfer, 64KiB to 64GiB.
    #[arg(long, short = 'n', value_name = "BYTES", default_value = "256MiB")]
    pub(crate) bytes: String,
    /// Rounds, in each of which all workloads take their turn; of each its best round is given.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) rounds: u16,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}

#[derive(Args, Debug)]
pub(crate) struct BenchCodesArgs {
    /// Only workloads whose name contains this, as in 8+2-4096-avx2-hot.
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Only this engine: naive, portable, neon, avx2, gfni-256 or gfni-512. Default: all that run here but naive.
    #[arg(long)]
    pub(crate) engine: Option<codes::Engine>,
    /// Runs of each workload, 2 ms each; the best is given.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) runs: u16,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}

#[derive(Args, Debug)]
pub(crate) struct BenchEngineArgs {
    /// Only workloads whose name contains this.
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Runs of each workload; the best is given.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) runs: u16,
    /// Fat trees of 4, 8 and 16 ports a switch too: what doubling the hosts costs.
    #[arg(long)]
    pub(crate) scaling: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// Measure one workload in this process and print its figures: how the command measures memory.
    #[arg(long, hide = true, value_name = "NAME")]
    pub(crate) measure: Option<String>,
    /// With how many threads.
    #[arg(long, hide = true, default_value_t = 1)]
    pub(crate) threads: usize,
}
