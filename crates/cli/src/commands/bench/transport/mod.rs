//! `narrows bench transport`: bits of payload that a second of processor time carries over the transport, compared with
//! the kernel's TCP. `docs/src/perf.md`.
//!
//! The workloads take turns, so that other load on the machine affects all of them. Of each the round that took the least
//! processor time counts, because disturbances only ever make a round slower.

mod transfers;

use std::time::Duration;

use comfy_table::{Cell, CellAlignment};
use serde::Serialize;
use serde_json::json;

use self::transfers::{Cost, Deadline, over_tcp, over_transport};
use crate::args::BenchTransportArgs;
use crate::exit::{CommandFailure, print};
use crate::peer::quantity::{bytes, in_words};
use crate::peer::session_error::SessionError;
use crate::sheet::{check_csv, print_records};
use crate::table::fitted;

/// A transfer that takes longer fails.
const TRANSFER_TIMEOUT: Duration = Duration::from_mins(1);
/// The fewest bytes of a transfer: with fewer, only its beginning and its end are measured.
const MIN: u64 = 64 << 10;
/// The most bytes of a transfer: TCP carries them within the deadline.
const MAX: u64 = 64 << 30;
/// The resolution of the kernel's processor time. No transfer is free.
const RESOLUTION_S: f64 = 1e-6;

/// The transport of the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BenchTransport {
    /// The transport, in packets of `packet` bytes of UDP payload, with this coding.
    Transport { packet: u16, coding: &'static str },
    /// The kernel's TCP, in clear.
    Tcp,
}

/// The one that the others are compared with.
const TCP: &str = "tcp";
const WORKLOADS: [(&str, BenchTransport); 5] = [
    ("1400", BenchTransport::Transport { packet: 1_400, coding: "off" }),
    ("1400-coded", BenchTransport::Transport { packet: 1_400, coding: "8,2" }),
    ("4096", BenchTransport::Transport { packet: 4_096, coding: "off" }),
    ("4096-coded", BenchTransport::Transport { packet: 4_096, coding: "8,2" }),
    (TCP, BenchTransport::Tcp),
];

/// The best round of a workload; the shape of `bench transport --json`.
#[derive(Clone, Default, Debug, Serialize)]
struct TransportMeasurement {
    name: &'static str,
    bytes: u64,
    cpu_s: f64,
    wall_s: f64,
    gbit_per_core_s: f64,
    gbit_per_s: f64,
    /// None where TCP was not measured.
    ratio_to_tcp: Option<f64>,
    /// Statistics that TCP does not report.
    packet_bytes: Option<u16>,
    packets: Option<u64>,
    lost: Option<u64>,
}

/// Name of the table for `--csv`.
const TABLE: &str = "workloads";
/// Its columns.
const KEYS: [&str; 10] = [
    "name",
    "bytes",
    "cpu_s",
    "wall_s",
    "gbit_per_core_s",
    "gbit_per_s",
    "ratio_to_tcp",
    "packet_bytes",
    "packets",
    "lost",
];

pub(crate) fn transport(args: &BenchTransportArgs) -> Result<(), CommandFailure> {
    check_csv(&args.csv, &[TABLE])?;
    let bytes = bytes("--bytes", &args.bytes, MIN..=MAX)?;
    let chosen: Vec<_> = WORKLOADS.into_iter().filter(|(name, _)| name.contains(&args.only)).collect();
    if chosen.is_empty() {
        let names = WORKLOADS.map(|(name, _)| name).join(", ");
        let only = &args.only;
        return Err(CommandFailure::Input(format!("error: no workload's name contains `{only}`; there are {names}")));
    }
    crate::interrupt::listen();
    let mut best: Vec<Option<Cost>> = chosen.iter().map(|_| None).collect();
    for _ in 0..args.rounds {
        for ((name, kind), best) in chosen.iter().zip(&mut best) {
            let cost = transfer(name, *kind, bytes, TRANSFER_TIMEOUT)?;
            if best.as_ref().is_none_or(|best| cost.cpu_s < best.cpu_s) {
                *best = Some(cost);
            }
        }
    }
    let mut rows: Vec<TransportMeasurement> = chosen
        .iter()
        .zip(best)
        .filter_map(|((name, _), best)| Some(TransportMeasurement::new(name, bytes, &best?)))
        .collect();
    let tcp = rows.iter().find(|row| row.name == TCP).map(|row| row.gbit_per_core_s);
    for row in &mut rows {
        row.ratio_to_tcp = tcp.map(|tcp| row.gbit_per_core_s / tcp);
    }
    if args.json {
        return print(&format!("{:#}", json!({ "schema": 1, "workloads": rows })));
    }
    if args.csv.is_requested() {
        return print_records(&args.csv, TABLE, &KEYS, &rows);
    }
    print(&table(&rows))
}

/// One round of a workload.
fn transfer(name: &str, kind: BenchTransport, bytes: u64, deadline: Duration) -> Result<Cost, CommandFailure> {
    let deadline = Deadline::new(deadline);
    let cost = match kind {
        BenchTransport::Transport { packet, coding } => over_transport(packet, coding, bytes, &deadline),
        BenchTransport::Tcp => over_tcp(bytes, &deadline),
    };
    cost.map_err(|error| match error {
        SessionError::Interrupted => CommandFailure::Interrupted("nothing is reported".to_owned()),
        SessionError::TimedOut(time) => CommandFailure::Run(anyhow::anyhow!(
            "workload {name} did not carry {bytes} bytes within {}: give fewer by --bytes",
            in_words(time)
        )),
        error => CommandFailure::Run(anyhow::anyhow!("workload {name} failed: {error}")),
    })
}

impl TransportMeasurement {
    fn new(name: &'static str, bytes: u64, cost: &Cost) -> Self {
        let gbit = bytes as f64 * 8e-9;
        let sent = cost.sent.as_ref();
        Self {
            name,
            bytes,
            cpu_s: cost.cpu_s,
            wall_s: cost.wall_s,
            gbit_per_core_s: gbit / cost.cpu_s.max(RESOLUTION_S),
            gbit_per_s: gbit / cost.wall_s.max(RESOLUTION_S),
            ratio_to_tcp: None,
            packet_bytes: sent.map(|sent| sent.packet_bytes),
            packets: sent.map(|sent| sent.packets),
            lost: sent.map(|sent| sent.lost),
        }
    }
}

fn table(rows: &[TransportMeasurement]) -> String {
    let mut table = fitted();
    table.set_header(["workload", "Gbit/core-s", "of TCP", "Gbit/s", "CPU s", "wall s", "packets", "lost"]);
    let count = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    for row in rows {
        let numbers = [
            format!("{:.2}", row.gbit_per_core_s),
            row.ratio_to_tcp.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            format!("{:.2}", row.gbit_per_s),
            format!("{:.3}", row.cpu_s),
            format!("{:.3}", row.wall_s),
            count(row.packets),
            count(row.lost),
        ];
        let numbers = numbers.map(|number| Cell::new(number).set_alignment(CellAlignment::Right));
        table.add_row([Cell::new(row.name)].into_iter().chain(numbers));
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A transfer that has no time fails with exit code 1 and is named.
    #[test]
    fn timeouts_name_the_workload() {
        for (name, kind) in WORKLOADS {
            let failure = transfer(name, kind, MIN, Duration::ZERO).err().unwrap();
            let message = format!("error: workload {name} did not carry 65536 bytes within 0 s: give fewer by --bytes");
            assert_eq!((failure.code(), failure.to_string()), (1, message));
        }
    }

    #[test]
    fn columns_are_the_keys_of_a_record() {
        let record = json!(TransportMeasurement::default());
        let known: BTreeSet<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(known, BTreeSet::from(KEYS));
    }
}
