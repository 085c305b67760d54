//! `bench`.

use clap::{Args, Subcommand};

use super::CsvArgs;

#[derive(Subcommand, Debug)]
pub(crate) enum BenchCommand {
    /// Measure simulator speed in packet-hops per second.
    ///
    /// Runs fixed workloads with one thread and with two, most of them also with priority for ACKs.
    Engine(BenchEngineArgs),
    /// Measure erasure coding speed in bytes per second on one core.
    ///
    /// Measures encoding and repair with each kind of vector instructions that this processor has, from caches and from
    /// 256 MiB of memory.
    Codes(BenchCodesArgs),
    /// Measure transport speed in bits per second of processor time.
    ///
    /// Transfers data over the loopback: encrypted over the Narrows transport, in packets of 1400 and 4096 bytes, with
    /// and without erasure coding, and over kernel TCP without encryption. Counts payload, and the processor time of
    /// both ends.
    Transport(BenchTransportArgs),
}

#[derive(Args, Debug)]
pub(crate) struct BenchTransportArgs {
    /// Run only workloads whose name contains this, as in 1400-coded or tcp.
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Size of each transfer, 64KiB to 64GiB.
    #[arg(long, short = 'n', value_name = "BYTES", default_value = "256MiB")]
    pub(crate) bytes: String,
    /// Number of rounds, 1 to 100.
    ///
    /// Each round runs all workloads in turn; the best round of each is reported.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) rounds: u16,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}

#[derive(Args, Debug)]
pub(crate) struct BenchCodesArgs {
    /// Run only workloads whose name contains this, as in 8+2-4096-avx2-hot.
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Run only this implementation: naive, portable, neon, avx2, gfni-256 or gfni-512.
    ///
    /// Default: all that run on this processor, except naive.
    #[arg(long)]
    pub(crate) engine: Option<codes::Engine>,
    /// Runs of each workload, 1 to 1000, 2 ms each; the best one is reported.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) runs: u16,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
}

#[derive(Args, Debug)]
pub(crate) struct BenchEngineArgs {
    /// Run only workloads whose name contains this, as in permutation or lossless.
    #[arg(long, default_value = "")]
    pub(crate) only: String,
    /// Runs of each workload, 1 to 100; the best one is reported.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) runs: u16,
    /// Also run fat trees of 4, 8 and 16 ports per switch, to see how speed scales.
    #[arg(long)]
    pub(crate) scaling: bool,
    /// Print the result as JSON on standard output, and nothing else there.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) csv: CsvArgs,
    /// Measure one workload in this process and print its figures. The command uses it to measure memory.
    #[arg(long, hide = true, value_name = "NAME")]
    pub(crate) measure: Option<String>,
    /// Number of threads for --measure.
    #[arg(long, hide = true, default_value_t = 1)]
    pub(crate) threads: usize,
}
