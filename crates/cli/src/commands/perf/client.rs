//! The client: connects, requests a test, and shows the result.

use std::time::Duration;

use proto::closed::CloseCode;

use super::control::{Amount, MAX_BYTES, MAX_STREAMS, MAX_TIME, PerfRequest, TestRole};
use super::meter::{TestMonitor, ThroughputMeter};
use super::show::{PerfReport, TABLES};
use super::test::run_client;
use crate::args::PerfArgs;
use crate::exit::{CommandFailure, print, print_stderr};
use crate::interrupt::listen as listen_for_interrupts;
use crate::peer::access::PeerTarget;
use crate::peer::dial::{OutgoingConnection, connect, failure};
use crate::peer::end::{ETHERNET_PACKET, EndpointSpec, PeerLimits};
use crate::peer::quantity::{bytes, duration};
use crate::peer::service::PERF;
use crate::peer::session_error::SessionError;
use crate::peer::wait::{wait_for, with_close_reason};
use crate::sheet::{check_csv, print_csv};

const PURPOSE: &str = "the test";
/// The default duration of a test, in seconds.
const DEFAULT_TIME: &str = "10";
/// The default size of a message, in bytes.
const DEFAULT_MESSAGE: &str = "100k";

pub(super) fn client(peer: &str, args: &PerfArgs) -> Result<(), CommandFailure> {
    check_csv(&args.csv, &TABLES)?;
    let target = PeerTarget::new(peer, &args.connect)?;
    let amount = if let Some(count) = args.messages {
        let text = args.bytes.as_deref().unwrap_or(DEFAULT_MESSAGE);
        Amount::Messages { count, bytes: bytes("--bytes", text, 1..=MAX_BYTES / u64::from(count))? }
    } else if let Some(text) = &args.bytes {
        Amount::Bytes(bytes("--bytes", text, 1..=MAX_BYTES)?)
    } else {
        let text = args.time.as_deref().unwrap_or(DEFAULT_TIME);
        Amount::TimeMs(duration("--time", text, Duration::from_millis(1)..=MAX_TIME)?.as_millis() as u64)
    };
    let interval = duration("--interval", &args.interval, Duration::from_millis(10)..=Duration::from_hours(1))?;
    let limits =
        PeerLimits { paths: args.paths, packet: ETHERNET_PACKET, bidirectional: 0, unidirectional: MAX_STREAMS.into() };
    let spec = EndpointSpec::new(&args.endpoint, PERF, limits)?;
    listen_for_interrupts();
    let OutgoingConnection { endpoint, connection, address } = connect(&target, &spec, PURPOSE)?;
    let role = if args.reverse { TestRole::Receiver } else { TestRole::Sender };
    let request = PerfRequest::new(role, args.streams, amount, spec.window);
    let meter = ThroughputMeter::new(&connection);
    let is_machine_readable = args.json || args.csv.is_requested();
    let mut monitor = TestMonitor::new(&meter, spec.idle).interval(interval);
    if !is_machine_readable {
        monitor = monitor.print_intervals();
        let (local, path_noun) = (endpoint.address().port(), if args.paths == 1 { "path" } else { "paths" });
        let for_all = if spec.config.settings.one_law && args.paths > 1 { " for all" } else { "" };
        print_stderr(&format!(
            "connected to {address} from port {local}: {} {path_noun}, {}{for_all}",
            args.paths,
            spec.law.name()
        ));
    }
    // The connection is closed before its streams, so that the peer receives the reason.
    let close = |error: &SessionError| connection.close(error.code(), &error.close_reason());
    let tested =
        wait_for(run_client(&request, &meter), || monitor.poll().inspect_err(close)).and_then(|outcome| outcome);
    let (response, outcome) = match tested {
        Ok(tested) => tested,
        Err(error) => {
            let error = with_close_reason(&connection, error);
            endpoint.shut_down(error.code(), &error.close_reason());
            return Err(failure(&error, &target, address, &spec, PURPOSE));
        }
    };
    monitor.finish();
    let paths = connection.paths();
    let durations = meter.durations.take();
    let report = PerfReport {
        request: &request,
        response: &response,
        end: &spec,
        args,
        address,
        outcome: &outcome,
        durations: &durations,
        paths: &paths,
    };
    endpoint.shut_down(CloseCode::NONE, "");
    if args.csv.is_requested() {
        return print_csv(&report.sheets(&monitor.intervals), args.csv.table());
    }
    print(&if args.json { format!("{:#}", report.as_json(&monitor.intervals)) } else { report.as_text() })
}
