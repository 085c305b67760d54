//! One test on an existing connection, at either end.

use super::control::{PerfRequest, PerfResponse, TestRole, Totals, read, write};
use super::meter::ThroughputMeter;
use super::traffic::{Load, receive, send};
use crate::peer::session_error::SessionError;

/// The counts of both ends.
#[derive(Clone, Debug)]
pub(super) struct TestCounts {
    pub(super) own: Totals,
    pub(super) theirs: Totals,
}

/// Moves the data. Returns the counts of this end.
async fn transfer(role: TestRole, load: &Load, meter: &ThroughputMeter<'_>) -> Result<Totals, SessionError> {
    meter.plan(load.streams);
    meter.phase.set("data");
    match role {
        TestRole::Sender => send(load, meter).await?,
        TestRole::Receiver => receive(load, meter).await?,
    }
    let stats = meter.connection.stats();
    let bytes = meter.counts().iter().map(std::cell::Cell::get).collect();
    let (time, cpu) = meter.times();
    Ok(Totals::new(bytes, time, cpu, stats.packets_sent, stats.lost))
}

/// The client's end: requests a test, and does its part. Returns the listener's answer, too.
pub(super) async fn run_client(
    request: &PerfRequest,
    meter: &ThroughputMeter<'_>,
) -> Result<(PerfResponse, TestCounts), SessionError> {
    meter.phase.set("the listener to admit this client");
    meter.connection.admitted().await?;
    meter.phase.set("the listener's answer");
    let (mut sender, mut receiver) = meter.connection.open().await?;
    write(&mut sender, request).await?;
    let response: PerfResponse = read(&mut receiver).await?;
    let window = if request.reverse { response.window_bytes } else { request.window_bytes };
    let load = Load { streams: request.streams, amount: request.amount, window };
    let own = transfer(request.client(), &load, meter).await?;
    write(&mut sender, &own).await?;
    let theirs: Totals = read(&mut receiver).await?;
    let verb = if request.reverse { "sent" } else { "got" };
    theirs.agrees(&own, verb, meter.time_since_connected()).map_err(SessionError::Peer)?;
    sender.finish()?;
    // The listener closes its stream when it has read all of this one. Closing the connection before that might lose the
    // end of this stream.
    meter.phase.set("the listener to end");
    match receiver.read(&mut [0]).await? {
        0 => Ok((response, TestCounts { own, theirs })),
        _ => Err(SessionError::Peer("sent data after its totals".to_owned())),
    }
}

/// The listener's end: executes the client's request.
pub(super) async fn run_listener(
    response: &PerfResponse,
    meter: &ThroughputMeter<'_>,
) -> Result<(PerfRequest, TestCounts), SessionError> {
    meter.phase.set("the client's request");
    let stream = meter.connection.accept_stream().await?;
    let (Some(mut sender), mut receiver) = (stream.send, stream.receive) else {
        return Err(SessionError::Peer("opened a stream of one direction before it had asked for a test".to_owned()));
    };
    let request: PerfRequest = read(&mut receiver).await?;
    write(&mut sender, response).await?;
    let window = if request.reverse { response.window_bytes } else { request.window_bytes };
    let load = Load { streams: request.streams, amount: request.amount, window };
    let own = transfer(request.listener(), &load, meter).await?;
    write(&mut sender, &own).await?;
    let theirs: Totals = read(&mut receiver).await?;
    let verb = if request.reverse { "got" } else { "sent" };
    theirs.agrees(&own, verb, meter.time_since_connected()).map_err(SessionError::Peer)?;
    // The client closes the connection when it has received that. If the client has already gone, the test is still valid.
    if sender.finish().is_ok() {
        meter.connection.closed().await;
    }
    Ok((request, TestCounts { own, theirs }))
}
