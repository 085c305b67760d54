//! The client: connects, requests a test, and shows the result.

use std::time::Duration;

use proto::closed::CloseCode;

use super::control::{Amount, MAX_BYTES, MAX_STREAMS, MAX_TIME, PerfRequest, TestRole};
use super::meter::{TestMonitor, ThroughputMeter};
use super::show::{PerfReport, TABLES};
use super::test::of_caller;
use crate::args::PerfArgs;
use crate::exit::{CommandFailure, print, tell};
use crate::interrupt::listen as listen_for_interrupts;
use crate::peer::access::PeerTarget;
use crate::peer::dial::{Dial, connect, failure};
use crate::peer::end::{ETHERNET_PACKET, EndpointSpec, PeerLimits};
use crate::peer::patience::{explained, wait_for};
use crate::peer::quantity::{bytes, duration};
use crate::peer::service::PERF;
use crate::peer::session_error::SessionError;
use crate::sheet::{check_csv, print_csv};

const DEED: &str = "the test";
/// The default duration of a test, in seconds.
const USUAL_TIME: &str = "10";
/// The default size of a message, in bytes.
const USUAL_MESSAGE: &str = "100k";

pub(super) fn call(peer: &str, args: &PerfArgs) -> Result<(), CommandFailure> {
    check_csv(&args.csv, &TABLES)?;
    let way = PeerTarget::new(peer, &args.call)?;
    let amount = if let Some(count) = args.messages {
        let text = args.bytes.as_deref().unwrap_or(USUAL_MESSAGE);
        Amount::Messages { count, bytes: bytes("--bytes", text, 1..=MAX_BYTES / u64::from(count))? }
    } else if let Some(text) = &args.bytes {
        Amount::Bytes(bytes("--bytes", text, 1..=MAX_BYTES)?)
    } else {
        let text = args.time.as_deref().unwrap_or(USUAL_TIME);
        Amount::TimeMs(duration("--time", text, Duration::from_millis(1)..=MAX_TIME)?.as_millis() as u64)
    };
    let every = duration("--interval", &args.interval, Duration::from_millis(10)..=Duration::from_hours(1))?;
    let room = PeerLimits { paths: args.paths, packet: ETHERNET_PACKET, both_ways: 0, one_way: MAX_STREAMS.into() };
    let end = EndpointSpec::new(&args.end, PERF, room)?;
    listen_for_interrupts();
    let Dial { endpoint, connection, address } = connect(&way, &end, DEED)?;
    let role = if args.reverse { TestRole::Receiver } else { TestRole::Sender };
    let request = PerfRequest::new(role, args.streams, amount, end.window);
    let meter = ThroughputMeter::new(&connection);
    let is_data = args.json || args.csv.is_asked();
    let mut watch = TestMonitor::new(&meter, end.idle).every(every);
    if !is_data {
        watch = watch.printed();
        let (local, ways) = (endpoint.address().port(), if args.paths == 1 { "path" } else { "paths" });
        let all = if end.config.settings.one_law && args.paths > 1 { " for all" } else { "" };
        tell(&format!("connected to {address} from port {local}: {} {ways}, {}{all}", args.paths, end.law.name()));
    }
    // Closed before its streams are, so that the peer learns why.
    let close = |trouble: &SessionError| connection.close(trouble.code(), &trouble.to_peer());
    let tested = wait_for(of_caller(&request, &meter), || watch.look().inspect_err(close)).and_then(|outcome| outcome);
    let (answer, outcome) = match tested {
        Ok(tested) => tested,
        Err(trouble) => {
            let trouble = explained(&connection, trouble);
            endpoint.end(trouble.code(), &trouble.to_peer());
            return Err(failure(&trouble, &way, address, &end, DEED));
        }
    };
    watch.finish();
    let paths = connection.paths();
    let took = meter.took.take();
    let shown = PerfReport {
        request: &request,
        answer: &answer,
        end: &end,
        args,
        address,
        outcome: &outcome,
        took: &took,
        paths: &paths,
    };
    endpoint.end(CloseCode::NONE, "");
    if args.csv.is_asked() {
        return print_csv(&shown.sheets(&watch.intervals), args.csv.table());
    }
    print(&if args.json { format!("{:#}", shown.as_json(&watch.intervals)) } else { shown.as_text() })
}
