//! `narrows kernel status`: loaded laws, their users, and the state of their sockets.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use inet_diag::Machine;
use kernel::LawSocket;
use kernel::pins::{Pinned, pinned};
use kernel::tcp_adapter::Config;
use scenario::escape_controls;
use serde_json::{Value, json};

use crate::args::KernelStatusArgs;
use crate::exit::{CommandFailure, print, print_stderr, printed};
use crate::interrupt::{interrupted, listen};
use crate::sheet::{Sheet, check_csv, print_csv};

/// Period of `--watch`.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn status(args: &KernelStatusArgs) -> Result<(), CommandFailure> {
    if let Some(law) = &args.law {
        super::load::row(law)?;
    }
    check_csv(&args.csv, &TABLES)?;
    let mut machine = Machine::default();
    if args.csv.is_requested() {
        let laws = chosen(args)?;
        let laws: Vec<_> = laws.iter().map(|law| as_json(law, &mut machine)).collect::<Result<_, CommandFailure>>()?;
        for law in &laws {
            for missing in law["not_listed"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                print_stderr(&format!("warning: {}: not listed: {missing}", law["law"].as_str().unwrap_or_default()));
            }
        }
        return print_csv(&sheets(&laws), args.csv.table());
    }
    if args.json {
        let laws = chosen(args)?;
        let laws: Vec<_> = laws.iter().map(|law| as_json(law, &mut machine)).collect::<Result<_, CommandFailure>>()?;
        return print(&format!("{:#}", json!({ "schema": 1, "laws": laws })));
    }
    if !args.watch {
        return print(&page(args, &mut machine)?);
    }
    listen();
    while !interrupted() {
        let page = page(args, &mut machine)?;
        if std::io::stdout().is_terminal() {
            // Moves to the top, clears each line to its end, and clears the rest of the screen.
            let page = escape_controls(&page).replace('\n', "\x1b[K\n");
            let _ = write!(std::io::stdout(), "\x1b[H{page}\x1b[K\n\x1b[J");
            let _ = std::io::stdout().flush();
        } else if !printed(&page)? {
            return Ok(());
        }
        std::thread::sleep(REFRESH_INTERVAL);
    }
    Ok(())
}

fn chosen(args: &KernelStatusArgs) -> Result<Vec<Pinned>, CommandFailure> {
    match &args.law {
        Some(law) => Ok(vec![Pinned::of_name(law)?]),
        None => Ok(pinned()?),
    }
}

/// Sockets of a law, as far as the kernel lists them.
struct ListedSockets {
    /// None if the kernel lists none.
    sockets: Option<Vec<LawSocket>>,
    /// Parts that are missing, and why.
    missing: Vec<String>,
}

impl ListedSockets {
    /// A refusal is no failure: the rest of the status is still known.
    fn of(law: &Pinned, machine: &mut Machine) -> Result<Self, CommandFailure> {
        match law.sockets(machine) {
            Ok(found) => Ok(Self { sockets: Some(found.sockets), missing: found.unlisted }),
            Err(error @ kernel::Error::Sockets(_)) => Ok(Self { sockets: None, missing: vec![error.to_string()] }),
            Err(error) => Err(error.into()),
        }
    }
}

fn page(args: &KernelStatusArgs, machine: &mut Machine) -> Result<String, CommandFailure> {
    let laws = chosen(args)?;
    if laws.is_empty() {
        let unpinned: Vec<String> =
            kernel::registered()?.into_iter().filter(|name| name.starts_with("narrows_")).collect();
        let unpinned = if unpinned.is_empty() {
            String::new()
        } else {
            format!("\na running command holds, and takes out at its end: {}", unpinned.join(", "))
        };
        return Ok(format!("no law is loaded to stay; `narrows kernel load LAW` loads one{unpinned}"));
    }
    let mut parts = Vec::new();
    for law in &laws {
        let config = law.config()?;
        let users: Vec<String> = law.scopes.iter().map(|attached| attached.scope.to_string()).collect();
        let users = if users.is_empty() { "those that name it".to_owned() } else { users.join(", ") };
        let listed = ListedSockets::of(law, machine)?;
        let count = listed.sockets.as_ref().map(|sockets| format!("{} sockets", sockets.len()));
        parts.push(format!(
            "{} as `{}`, used by {users}\n  {}\n  {}",
            law.row.kind.info().title,
            law.tcp_name,
            parameters(law, &config).join(", "),
            count.as_deref().unwrap_or("sockets unknown"),
        ));
        parts.extend(listed.missing.iter().map(|missing| format!("  warning: not listed: {missing}")));
        let refused = law.refused()?;
        if refused > 0 {
            parts.push(format!("  warning: {}", super::missing_state_warning(refused)));
        }
        if let Some(sockets) = listed.sockets.filter(|sockets| !sockets.is_empty()) {
            parts.push(table(&sockets));
        }
    }
    Ok(parts.join("\n"))
}

/// The law's parameters.
fn parameters(law: &Pinned, config: &Config) -> Vec<String> {
    let base = if config.base_rtt.is_zero() { "the handshake's".to_owned() } else { config.base_rtt.to_string() };
    let mut parameters = vec![
        format!("line rate {}", config.line_rate),
        format!("base RTT {base}"),
        format!("intra-datacenter RTT {}", config.intra_rtt),
    ];
    for (index, param) in law.row.kind.info().params.iter().enumerate() {
        if config.given & (1 << index) != 0 {
            parameters.push(format!("{} {}", param.name, param.lowest.of_word(config.params[index])));
        }
    }
    parameters
}

fn table(sockets: &[LawSocket]) -> String {
    let mut table = crate::table::fitted();
    table.set_header([
        "from",
        "to",
        "state",
        "ECN",
        "cwnd",
        "pacing",
        "RTT",
        "base",
        "delivered",
        "marked",
        "retransmits",
        "cuts",
        "law's state",
    ]);
    for socket in sockets {
        let mut row = vec![
            socket.local.to_string(),
            socket.remote.to_string(),
            socket.state.to_owned(),
            if socket.ecn { "yes" } else { "no" }.to_owned(),
            socket.cwnd_packets.to_string(),
        ];
        if let Some(law) = &socket.law {
            let state: Vec<String> = law.trace.iter().map(|(name, value)| format!("{name} {value}")).collect();
            row.extend([
                match law.settings.pacing_bytes_per_s {
                    u64::MAX => "-".to_owned(),
                    pacing => units::Rate::from_bps(pacing.saturating_mul(8)).to_string(),
                },
                law.srtt.to_string(),
                law.base_rtt.to_string(),
                crate::table::bytes(law.delivered.get()),
                crate::table::bytes(law.marked.get()),
                socket.retransmits.to_string(),
                (law.actions.cuts + law.actions.loss_cuts + law.actions.quick_adapts + law.actions.probe_rtts)
                    .to_string(),
                state.join(", "),
            ]);
        }
        table.add_row(row);
    }
    table.to_string()
}

fn as_json(law: &Pinned, machine: &mut Machine) -> Result<Value, CommandFailure> {
    let config = law.config()?;
    let listed = ListedSockets::of(law, machine)?;
    let sockets = listed.sockets.map(|sockets| sockets.iter().map(socket_json).collect::<Vec<_>>());
    Ok(json!({
        "law": law.row.name,
        "tcp_name": law.tcp_name,
        "places": law.scopes.iter().map(|attached| attached.scope.to_string()).collect::<Vec<_>>(),
        "line_rate_bps": config.line_rate.bps(),
        "base_rtt_ns": if config.base_rtt.is_zero() { Value::Null } else { config.base_rtt.ns().into() },
        "intra_rtt_ns": config.intra_rtt.ns(),
        "refused": law.refused()?,
        "sockets": sockets,
        "not_listed": listed.missing,
    }))
}

/// Names of the tables for `--csv`.
const TABLES: [&str; 2] = ["sockets", "laws"];

/// Sockets, each with its law's state, and laws.
fn sheets(laws: &[Value]) -> [Sheet; 2] {
    let keys = [
        "law",
        "local",
        "remote",
        "state",
        "ecn",
        "cwnd_packets",
        "retransmits",
        "acked_bytes",
        "mss_bytes",
        "srtt_ns",
        "base_rtt_ns",
        "delivered_bytes",
        "ecn_marked_bytes",
        "acks",
        "timeouts",
        "pacing_bytes_per_s",
        "increases",
        "cuts",
        "loss_cuts",
        "quick_adapts",
        "probe_rtts",
    ];
    let mut sockets = Vec::new();
    for law in laws {
        for socket in law["sockets"].as_array().into_iter().flatten() {
            // A socket without a law's state has nulls.
            let mut record: serde_json::Map<String, Value> =
                keys.iter().map(|&key| (key.to_owned(), Value::Null)).collect();
            record.extend(socket["law"].as_object().cloned().unwrap_or_default());
            record.extend(socket.as_object().cloned().unwrap_or_default());
            record.insert("law".to_owned(), law["law"].clone());
            sockets.push(Value::from(record));
        }
    }
    let of_laws = ["law", "tcp_name", "line_rate_bps", "base_rtt_ns", "intra_rtt_ns", "refused"];
    [Sheet::of_records(TABLES[0], &keys, &sockets), Sheet::of_records(TABLES[1], &of_laws, laws)]
}

fn socket_json(socket: &LawSocket) -> Value {
    let law = socket.law.as_ref().map(|law| {
        json!({
            "mss_bytes": law.mss.get(),
            "srtt_ns": law.srtt.ns(),
            "base_rtt_ns": law.base_rtt.ns(),
            "delivered_bytes": law.delivered.get(),
            "ecn_marked_bytes": law.marked.get(),
            "acks": law.acks,
            "timeouts": law.timeouts,
            "pacing_bytes_per_s": match law.settings.pacing_bytes_per_s { u64::MAX => Value::Null, rate => rate.into() },
            "increases": law.actions.increases,
            "cuts": law.actions.cuts,
            "loss_cuts": law.actions.loss_cuts,
            "quick_adapts": law.actions.quick_adapts,
            "probe_rtts": law.actions.probe_rtts,
            "state": law.trace.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect::<serde_json::Map<_, _>>(),
        })
    });
    json!({
        "local": socket.local.to_string(),
        "remote": socket.remote.to_string(),
        "state": socket.state,
        "ecn": socket.ecn,
        "cwnd_packets": socket.cwnd_packets,
        "retransmits": socket.retransmits,
        "acked_bytes": socket.acked.get(),
        "law": law,
    })
}
