//! The listener: prints a ticket, admits clients that have it, and serves tests.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use proto::closed::CloseCode;
use transport::{Connection, Endpoint};

use super::control::{MAX_STREAMS, PerfRequest, PerfResponse};
use super::meter::{TestMonitor, ThroughputMeter};
use super::test::{TestCounts, run_listener};
use crate::args::PerfArgs;
use crate::exit::{CommandFailure, print_stderr};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};
use crate::peer::end::{EndpointSpec, MAX_PACKET, MAX_PATHS, PeerLimits};
use crate::peer::quantity::{amount, rate};
use crate::peer::service::PERF;
use crate::peer::session_error::SessionError;
use crate::peer::ticket_listener::{self, ListenConfig, ListenRequest, TicketListener};
use crate::peer::wait::{wait_for, with_close_reason};

/// Tests at a time.
const MAX_TESTS: usize = 64;

/// Describes the outcome of a test.
type TestResult = Result<String, SessionError>;

pub(super) fn listen(address: &str, args: &PerfArgs) -> Result<(), CommandFailure> {
    let listen_config = ListenConfig::new(ListenRequest {
        insecure: args.connect.insecure,
        ..ListenRequest::new(address, &args.admission)
    })?;
    let limits =
        PeerLimits { paths: MAX_PATHS, packet: MAX_PACKET, bidirectional: 1, unidirectional: MAX_STREAMS.into() };
    let end = EndpointSpec::new(&args.endpoint, PERF, limits)?;
    listen_for_interrupts();
    let endpoint = listen_config.listen(&end)?;
    let mut listener = TicketListener::open(&endpoint, listen_config, &end)?;
    let result = serve(&endpoint, &end, &mut listener);
    endpoint.shut_down(CloseCode::NONE, if interrupted() { "the listener was interrupted" } else { "" });
    result
}

/// Serves clients until the only one is served, or for ever.
fn serve(endpoint: &Endpoint, end: &EndpointSpec, listener: &mut TicketListener) -> Result<(), CommandFailure> {
    let mut tests: Vec<JoinHandle<TestResult>> = Vec::new();
    loop {
        let is_last = listener.is_done();
        let poll = || {
            listener.report_alpn_mismatches(endpoint);
            let is_over = !tests.is_empty() && tests.iter().all(JoinHandle::is_finished);
            if interrupted() || (is_last && is_over) { Err(SessionError::Interrupted) } else { Ok(()) }
        };
        let accepted = wait_for(endpoint.accept(), poll);
        if interrupted() {
            return Err(CommandFailure::Interrupted("the listener ended".to_owned()));
        }
        tests.retain(|test| is_last || !test.is_finished());
        match accepted {
            Ok(Some(incoming)) => {
                let Some(connection) = listener.admit(incoming) else { continue };
                if tests.len() >= MAX_TESTS {
                    connection.close(CloseCode::BUSY, "as many tests run here as there may be");
                    print_stderr(&format!("refused a client: {MAX_TESTS} tests run already"));
                    continue;
                }
                tests.push(spawn_test(connection, end, listener)?);
            }
            Ok(None) => return Err(ticket_listener::ended(endpoint)),
            Err(_) => break,
        }
    }
    match tests.pop().map(JoinHandle::join) {
        Some(Ok(Err(error))) => Err(CommandFailure::Run(anyhow::anyhow!("the test did not end well: {error}"))),
        Some(Err(_)) => Err(CommandFailure::Run(anyhow::anyhow!("the test failed within this program"))),
        Some(Ok(Ok(_))) | None => Ok(()),
    }
}

/// Begins a test in a thread of its own.
fn spawn_test(
    connection: Connection,
    end: &EndpointSpec,
    listener: &TicketListener,
) -> Result<JoinHandle<TestResult>, CommandFailure> {
    let (response, idle, is_reusable) =
        (PerfResponse::new(end.law.name(), end.window), end.idle, listener.is_reusable());
    let thread = thread::Builder::new().name("narrows test".into()).spawn(move || {
        let label = connection.paths().first().map_or_else(String::new, |path| path.four_tuple.remote.to_string());
        let tested = test(&connection, &response, idle);
        match &tested {
            Ok(text) => print_stderr(&format!("{label}: {text}")),
            Err(error) if is_reusable => print_stderr(&format!("{label}: the test did not end well: {error}")),
            Err(_) => {}
        }
        tested
    });
    thread.map_err(|error| CommandFailure::Run(error.into()))
}

fn test(connection: &Connection, response: &PerfResponse, idle: Duration) -> TestResult {
    let meter = ThroughputMeter::new(connection);
    let mut monitor = TestMonitor::new(&meter, idle);
    // The connection is closed before its streams, so that the peer receives the reason.
    let close = |error: &SessionError| connection.close(CloseCode::APPLICATION, &error.close_reason());
    let tested =
        wait_for(run_listener(response, &meter), || monitor.poll().inspect_err(close)).and_then(|outcome| outcome);
    let tested = tested.map_err(|error| with_close_reason(connection, error));
    let (request, outcome) = tested.inspect_err(close)?;
    Ok(summary(&request, &outcome))
}

fn summary(request: &PerfRequest, TestCounts { own, .. }: &TestCounts) -> String {
    let verb = if request.reverse { "sent" } else { "received" };
    let streams = if request.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", request.streams) };
    let (bytes, time) = (own.sum(), own.time());
    format!("{verb} {} on {streams} in {:.2} s, {}", amount(bytes), time.as_secs_f64(), rate(bytes, time))
}
