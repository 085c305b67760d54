//! The listener: prints a ticket, admits clients that have it, and serves tests.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use proto::closed::Code;
use transport::{Connection, Endpoint};

use super::control::{Answer, MOST_STREAMS, Request};
use super::meter::{Meter, Watch};
use super::test::{Outcome, of_listener};
use crate::args::PerfArgs;
use crate::exit::{Failure, tell};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};
use crate::peer::desk::{self, Asked, Desk, Terms};
use crate::peer::end::{End, LONGEST_PACKET, MOST_PATHS, Room};
use crate::peer::patience::{explained, wait_for};
use crate::peer::quantity::{amount, rate};
use crate::peer::service::PERF;
use crate::peer::trouble::Trouble;

/// Tests at a time.
const MOST_TESTS: usize = 64;

/// The outcome of a test, in words.
type Tested = Result<String, Trouble>;

pub(super) fn listen(address: &str, args: &PerfArgs) -> Result<(), Failure> {
    let terms = Terms::new(Asked { insecure: args.call.insecure, ..Asked::new(address, &args.desk) })?;
    let room = Room { paths: MOST_PATHS, packet: LONGEST_PACKET, both_ways: 1, one_way: MOST_STREAMS.into() };
    let end = End::new(&args.end, PERF, room)?;
    listen_for_interrupts();
    let endpoint = terms.listen(&end)?;
    let mut desk = Desk::open(&endpoint, terms, &end)?;
    let done = serve(&endpoint, &end, &mut desk);
    endpoint.end(Code::NONE, if interrupted() { "the listener was interrupted" } else { "" });
    done
}

/// Serves callers until the only one is served, or for ever.
fn serve(endpoint: &Endpoint, end: &End, desk: &mut Desk) -> Result<(), Failure> {
    let mut tests: Vec<JoinHandle<Tested>> = Vec::new();
    loop {
        let is_last = desk.is_done();
        let look = || {
            desk.tell_of_strays(endpoint);
            let is_over = !tests.is_empty() && tests.iter().all(JoinHandle::is_finished);
            if interrupted() || (is_last && is_over) { Err(Trouble::Interrupted) } else { Ok(()) }
        };
        let accepted = wait_for(endpoint.accept(), look);
        if interrupted() {
            return Err(Failure::Interrupted("the listener ended".to_owned()));
        }
        tests.retain(|test| is_last || !test.is_finished());
        match accepted {
            Ok(Some(incoming)) => {
                let Some(connection) = desk.admit(incoming) else { continue };
                if tests.len() >= MOST_TESTS {
                    connection.close(Code::BUSY, "as many tests run here as there may be");
                    tell(&format!("refused a caller: {MOST_TESTS} tests run already"));
                    continue;
                }
                tests.push(begin(connection, end, desk.keeps())?);
            }
            Ok(None) => return Err(desk::ended(endpoint)),
            Err(_) => break,
        }
    }
    match tests.pop().map(JoinHandle::join) {
        Some(Ok(Err(trouble))) => Err(Failure::Run(anyhow::anyhow!("the test did not end well: {trouble}"))),
        Some(Err(_)) => Err(Failure::Run(anyhow::anyhow!("the test failed within this program"))),
        Some(Ok(Ok(_))) | None => Ok(()),
    }
}

/// Begins a test in a thread of its own.
fn begin(connection: Connection, end: &End, keeps: bool) -> Result<JoinHandle<Tested>, Failure> {
    let (answer, idle) = (Answer::new(end.law.name(), end.window), end.idle);
    let thread = thread::Builder::new().name("narrows test".into()).spawn(move || {
        let who = connection.paths().first().map_or_else(String::new, |path| path.via.remote.to_string());
        let tested = test(&connection, &answer, idle);
        match &tested {
            Ok(text) => tell(&format!("{who}: {text}")),
            Err(trouble) if keeps => tell(&format!("{who}: the test did not end well: {trouble}")),
            Err(_) => {}
        }
        tested
    });
    thread.map_err(|error| Failure::Run(error.into()))
}

fn test(connection: &Connection, answer: &Answer, idle: Duration) -> Tested {
    let meter = Meter::new(connection);
    let mut watch = Watch::new(&meter, idle);
    // Closed before its streams are, so that the peer learns why.
    let close = |trouble: &Trouble| connection.close(Code::APPLICATION, &trouble.to_peer());
    let tested = wait_for(of_listener(answer, &meter), || watch.look().inspect_err(close)).and_then(|outcome| outcome);
    let tested = tested.map_err(|trouble| explained(connection, trouble));
    let (request, outcome) = tested.inspect_err(close)?;
    Ok(summary(&request, &outcome))
}

fn summary(request: &Request, Outcome { own, .. }: &Outcome) -> String {
    let verb = if request.reverse { "sent" } else { "received" };
    let streams = if request.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", request.streams) };
    let (bytes, time) = (own.sum(), own.time());
    format!("{verb} {} on {streams} in {:.2} s, {}", amount(bytes), time.as_secs_f64(), rate(bytes, time))
}
