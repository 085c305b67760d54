//! `narrows clocks run` and `status`: a member of a mesh on this host.

use std::time::Duration;

use clockd::{Daemon, DaemonConfig, Query, query};
use serde_json::Value;
use units::Span;

use crate::args::{ClocksRunArgs, ClocksStatusArgs};
use crate::exit::{CommandFailure, print_stderr, printed};
use crate::interrupt::{flag, interrupted, listen};
use crate::table;

/// Runs the daemon until it is stopped, which is its regular end.
pub(super) fn run(args: &ClocksRunArgs) -> Result<(), CommandFailure> {
    let ClocksRunArgs { peers, name, quiet } = args;
    let read = DaemonConfig::read(peers, name.as_deref());
    let config = read.map_err(|error| CommandFailure::Input(format!("error: {error}")))?;
    let own = config.peers[config.own.index()].name.clone();
    let page = config.page.display().to_string();
    listen();
    let failed = |error| CommandFailure::Run(anyhow::Error::new(error));
    let mut daemon = Daemon::new(config).map_err(failed)?;
    if !quiet {
        print_stderr(&format!("{own} of `{}` runs; its page is `{page}`", peers.display()));
    }
    let mut log = |event: &clockd::DaemonEvent| {
        if !quiet || event.is_warning() {
            print_stderr(&event.to_string());
        }
    };
    daemon.run(flag(), &mut log).map_err(failed)
}

/// Time between two states.
const WATCH: Duration = Duration::from_secs(1);

pub(super) fn status(args: &ClocksStatusArgs) -> Result<(), CommandFailure> {
    if args.watch {
        listen();
    }
    loop {
        let kind = if args.prometheus { Query::Metrics } else { Query::Status };
        let answer = query(&args.socket, kind).map_err(|error| {
            let path = args.socket.display();
            let help = "`narrows clocks run` starts a member; --socket is `status` in its peers file".to_owned();
            CommandFailure::Run(anyhow::anyhow!("no member answers at `{path}`: {error}")).with_help(help)
        })?;
        let text = if args.json || args.prometheus { answer } else { text(&answer)? };
        if !printed(&text)? || !args.watch {
            return Ok(());
        }
        std::thread::sleep(WATCH);
        if interrupted() {
            return Ok(());
        }
    }
}

/// Returns the state as a text for a person.
fn text(answer: &str) -> Result<String, CommandFailure> {
    let status: Value = serde_json::from_str(answer)
        .map_err(|error| CommandFailure::Run(anyhow::anyhow!("the member's answer is not JSON: {error}")))?;
    let time = |value: &Value| value.as_i64().map_or_else(|| "-".to_owned(), |ns| Span::from_ns(ns).to_string());
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let (name, state, reference) = (word(&status["name"]), word(&status["state"]), word(&status["reference"]));
    let error = time(&status["error_ns"]);
    let mut lines = vec![format!("{name}: {state}; reference {reference}; largest error of mesh time {error}")];
    let utc = &status["utc"];
    if utc.is_object() {
        let (offset, error) = (time(&utc["system_clock_offset_ns"]), time(&utc["error_ns"]));
        lines.push(format!("the system clock is {offset} ahead of UTC; largest error of UTC {error}"));
    }
    let mut table = table::fitted();
    table.set_header(["peer", "offset", "largest error", "round trip", "last reply", ""]);
    for peer in status["peers"].as_array().into_iter().flatten() {
        let pair = &peer["pair"];
        let last_reply = pair["last_reply_ms"].as_u64().map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
        let suspect = if peer["suspect"] == Value::Bool(true) { "suspect" } else { "" };
        table.add_row([
            word(&peer["name"]),
            time(&peer["offset_ns"]),
            time(&peer["error_ns"]),
            time(&pair["round_trip_ns"]),
            last_reply,
            suspect.to_owned(),
        ]);
    }
    lines.push(table.to_string());
    Ok(lines.join("\n"))
}
