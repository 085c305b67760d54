//! The listener: prints a ticket, admits clients that have it, and serves tests.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use proto::closed::CloseCode;
use transport::{Connection, Endpoint};

use super::control::{MAX_STREAMS, PerfRequest, PerfResponse};
use super::meter::{TestMonitor, ThroughputMeter};
use super::test::{TestCounts, of_listener};
use crate::args::PerfArgs;
use crate::exit::{CommandFailure, tell};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};
use crate::peer::end::{EndpointSpec, MAX_PACKET, MAX_PATHS, PeerLimits};
use crate::peer::patience::{explained, wait_for};
use crate::peer::quantity::{amount, rate};
use crate::peer::service::PERF;
use crate::peer::session_error::SessionError;
use crate::peer::ticket_listener::{self, ListenConfig, ListenRequest, TicketListener};

/// Tests at a time.
const MAX_TESTS: usize = 64;

/// The outcome of a test, in words.
type Tested = Result<String, SessionError>;

pub(super) fn listen(address: &str, args: &PerfArgs) -> Result<(), CommandFailure> {
    let terms =
        ListenConfig::new(ListenRequest { insecure: args.call.insecure, ..ListenRequest::new(address, &args.desk) })?;
    let room = PeerLimits { paths: MAX_PATHS, packet: MAX_PACKET, both_ways: 1, one_way: MAX_STREAMS.into() };
    let end = EndpointSpec::new(&args.end, PERF, room)?;
    listen_for_interrupts();
    let endpoint = terms.listen(&end)?;
    let mut desk = TicketListener::open(&endpoint, terms, &end)?;
    let done = serve(&endpoint, &end, &mut desk);
    endpoint.end(CloseCode::NONE, if interrupted() { "the listener was interrupted" } else { "" });
    done
}

/// Serves callers until the only one is served, or for ever.
fn serve(endpoint: &Endpoint, end: &EndpointSpec, desk: &mut TicketListener) -> Result<(), CommandFailure> {
    let mut tests: Vec<JoinHandle<Tested>> = Vec::new();
    loop {
        let is_last = desk.is_done();
        let look = || {
            desk.tell_of_strays(endpoint);
            let is_over = !tests.is_empty() && tests.iter().all(JoinHandle::is_finished);
            if interrupted() || (is_last && is_over) { Err(SessionError::Interrupted) } else { Ok(()) }
        };
        let accepted = wait_for(endpoint.accept(), look);
        if interrupted() {
            return Err(CommandFailure::Interrupted("the listener ended".to_owned()));
        }
        tests.retain(|test| is_last || !test.is_finished());
        match accepted {
            Ok(Some(incoming)) => {
                let Some(connection) = desk.admit(incoming) else { continue };
                if tests.len() >= MAX_TESTS {
                    connection.close(CloseCode::BUSY, "as many tests run here as there may be");
                    tell(&format!("refused a caller: {MAX_TESTS} tests run already"));
                    continue;
                }
                tests.push(begin(connection, end, desk)?);
            }
            Ok(None) => return Err(ticket_listener::ended(endpoint)),
            Err(_) => break,
        }
    }
    match tests.pop().map(JoinHandle::join) {
        Some(Ok(Err(trouble))) => Err(CommandFailure::Run(anyhow::anyhow!("the test did not end well: {trouble}"))),
        Some(Err(_)) => Err(CommandFailure::Run(anyhow::anyhow!("the test failed within this program"))),
        Some(Ok(Ok(_))) | None => Ok(()),
    }
}

/// Begins a test in a thread of its own.
fn begin(
    connection: Connection,
    end: &EndpointSpec,
    desk: &TicketListener,
) -> Result<JoinHandle<Tested>, CommandFailure> {
    let (answer, idle, keeps) = (PerfResponse::new(end.law.name(), end.window), end.idle, desk.keeps());
    let thread = thread::Builder::new().name("narrows test".into()).spawn(move || {
        let label = connection.paths().first().map_or_else(String::new, |path| path.via.remote.to_string());
        let tested = test(&connection, &answer, idle);
        match &tested {
            Ok(text) => tell(&format!("{label}: {text}")),
            Err(trouble) if keeps => tell(&format!("{label}: the test did not end well: {trouble}")),
            Err(_) => {}
        }
        tested
    });
    thread.map_err(|error| CommandFailure::Run(error.into()))
}

fn test(connection: &Connection, answer: &PerfResponse, idle: Duration) -> Tested {
    let meter = ThroughputMeter::new(connection);
    let mut watch = TestMonitor::new(&meter, idle);
    // Closed before its streams are, so that the peer learns why.
    let close = |trouble: &SessionError| connection.close(CloseCode::APPLICATION, &trouble.to_peer());
    let tested = wait_for(of_listener(answer, &meter), || watch.look().inspect_err(close)).and_then(|outcome| outcome);
    let tested = tested.map_err(|trouble| explained(connection, trouble));
    let (request, outcome) = tested.inspect_err(close)?;
    Ok(summary(&request, &outcome))
}

fn summary(request: &PerfRequest, TestCounts { own, .. }: &TestCounts) -> String {
    let verb = if request.reverse { "sent" } else { "received" };
    let streams = if request.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", request.streams) };
    let (bytes, time) = (own.sum(), own.time());
    format!("{verb} {} on {streams} in {:.2} s, {}", amount(bytes), time.as_secs_f64(), rate(bytes, time))
}
