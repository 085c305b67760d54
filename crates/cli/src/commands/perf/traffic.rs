//! The data of a test: streams that one end fills and the other one empties.

use std::cell::Cell;
use std::future::pending;
use std::time::Duration;

use transport::{RecvStream, SendStream};
use units::Span;

use super::control::Amount;
use super::meter::ThroughputMeter;
use crate::peer::session_error::SessionError;
use crate::peer::wait::{JoinedFuture, all, pause, unless};
use study::Stopwatch;

/// Bytes that are written or read at a time.
const CHUNK: usize = 256 << 10;
/// The time after the end of the test in which data of a sender may still arrive.
const GRACE: Duration = Duration::from_secs(5);

/// Round trips between two messages, so that each finds the connection idle.
const IDLE_RTTS: u32 = 2;

/// The load of a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) streams: u16,
    pub(super) amount: Amount,
    /// Bytes of each stream that may be under way when the time is over.
    pub(super) window: u64,
}

impl Load {
    /// The bytes of a stream; none if time decides.
    fn share(&self, stream: usize) -> Option<u64> {
        let streams = u64::from(self.streams);
        match self.amount {
            Amount::Bytes(bytes) => Some(bytes / streams + u64::from((stream as u64) < bytes % streams)),
            Amount::Messages { count, bytes } => Some(bytes.saturating_mul(count.into())),
            Amount::TimeMs(_) => None,
        }
    }

    /// The bytes of all streams, where time does not decide.
    fn share_of_all(&self) -> u64 {
        (0..usize::from(self.streams)).filter_map(|stream| self.share(stream)).fold(0, u64::saturating_add)
    }

    fn time(&self) -> Duration {
        match self.amount {
            Amount::Bytes(_) | Amount::Messages { .. } => Duration::MAX,
            Amount::TimeMs(ms) => Duration::from_millis(ms),
        }
    }
}

/// Sends until the peer has all.
pub(super) async fn send(load: &Load, meter: &ThroughputMeter<'_>) -> Result<(), SessionError> {
    if let Amount::Messages { count, bytes } = load.amount {
        return send_messages(count, bytes, meter).await;
    }
    let mut streams = Vec::new();
    for _ in 0..load.streams {
        streams.push(meter.connection.open_one_way().await?);
    }
    meter.begin(streams.iter().map(SendStream::id).collect());
    let data = vec![0x6e; CHUNK];
    let task = |(at, stream)| -> JoinedFuture<'_> { Box::pin(send_one(stream, load, at, meter, &data)) };
    all(streams.iter_mut().enumerate().map(task).collect()).await?;
    meter.end();
    Ok(())
}

/// Sends one message after the other. Each begins on an idle connection, [`IDLE_RTTS`] round trips after this end
/// knew that the one before was delivered, and its time counts from the first write until this end knows that all of it was delivered.
async fn send_messages(count: u32, bytes: u64, meter: &ThroughputMeter<'_>) -> Result<(), SessionError> {
    let data = vec![0x6e; CHUNK];
    for at in 0..count {
        if at > 0 {
            let (clock, gap) = (Stopwatch::start(), meter.rtt().map_or(Duration::ZERO, to_duration) * IDLE_RTTS);
            unless(|| clock.elapsed() >= gap, pending::<()>()).await;
        }
        let mut stream = meter.connection.open_message(bytes).await?;
        meter.begin(Vec::new());
        let clock = Stopwatch::start();
        let mut left = bytes;
        while left > 0 {
            let written = stream.write(&data[..left.min(data.len() as u64) as usize]).await? as u64;
            left -= written;
            meter.counts()[0].set(meter.counts()[0].get() + written);
        }
        stream.delivered().await?;
        meter.durations.borrow_mut().push(clock.elapsed());
    }
    meter.end();
    Ok(())
}

fn to_duration(span: Span) -> Duration {
    Duration::from_nanos(span.ns().unsigned_abs())
}

async fn send_one(
    stream: &mut SendStream,
    load: &Load,
    at: usize,
    meter: &ThroughputMeter<'_>,
    data: &[u8],
) -> Result<(), SessionError> {
    let (count, share, time) = (&meter.counts()[at], load.share(at).unwrap_or(u64::MAX), load.time());
    let is_over = || meter.elapsed() >= time;
    while count.get() < share {
        let len = (share - count.get()).min(data.len() as u64) as usize;
        let Some(written) = unless(is_over, stream.write(&data[..len])).await else { break };
        count.set(count.get() + written? as u64);
        pause().await;
    }
    stream.finish()?;
    Ok(stream.delivered().await?)
}

/// Receives until all streams have ended.
pub(super) async fn receive(load: &Load, meter: &ThroughputMeter<'_>) -> Result<(), SessionError> {
    let limit = SenderLimit { load, counted_at_deadline: Cell::new(None) };
    if let Amount::Messages { count, bytes } = load.amount {
        for _ in 0..count {
            let mut stream = accept_one(meter).await?;
            let before = meter.counted();
            receive_one(&mut stream, &meter.counts()[0], &limit, meter).await?;
            if meter.counted() - before != bytes {
                return Err(SessionError::Peer(format!("sent a message of {} bytes", meter.counted() - before)));
            }
        }
        meter.end();
        return Ok(());
    }
    let mut streams: Vec<RecvStream> = Vec::new();
    for _ in 0..load.streams {
        streams.push(accept_one(meter).await?);
    }
    streams.sort_by_key(RecvStream::id);
    let task = |(at, stream)| -> JoinedFuture<'_> { Box::pin(receive_one(stream, &meter.counts()[at], &limit, meter)) };
    all(streams.iter_mut().enumerate().map(task).collect()).await?;
    meter.end();
    Ok(())
}

async fn accept_one(meter: &ThroughputMeter<'_>) -> Result<RecvStream, SessionError> {
    let stream = meter.connection.accept_stream().await?;
    if stream.send.is_some() {
        return Err(SessionError::Peer("opened a stream of two directions for data".to_owned()));
    }
    meter.begin(Vec::new());
    Ok(stream.receive)
}

async fn receive_one(
    stream: &mut RecvStream,
    count: &Cell<u64>,
    limit: &SenderLimit<'_>,
    meter: &ThroughputMeter<'_>,
) -> Result<(), SessionError> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            bytes => count.set(count.get() + bytes as u64),
        }
        limit.check(meter.counted(), meter.elapsed()).map_err(SessionError::Peer)?;
        pause().await;
    }
}

/// The limit of a sender.
struct SenderLimit<'a> {
    load: &'a Load,
    /// The bytes that had arrived when its time was over.
    counted_at_deadline: Cell<Option<u64>>,
}

impl SenderLimit<'_> {
    fn check(&self, counted: u64, elapsed: Duration) -> Result<(), String> {
        match self.load.amount {
            Amount::Bytes(_) | Amount::Messages { .. } if counted > self.load.share_of_all() => {
                Err(format!("sends more than the {} bytes that were agreed", self.load.share_of_all()))
            }
            Amount::TimeMs(ms) if elapsed > self.load.time() + GRACE => {
                let before = self.counted_at_deadline.get().unwrap_or(counted);
                self.counted_at_deadline.set(Some(before));
                let window = self.load.window.saturating_mul(self.load.streams.into());
                if counted - before > window {
                    return Err(format!("goes on sending though the {ms} ms that were agreed are over"));
                }
                Ok(())
            }
            Amount::Bytes(_) | Amount::Messages { .. } | Amount::TimeMs(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(streams: u16, amount: Amount) -> Load {
        Load { streams, amount, window: 100 }
    }

    #[test]
    fn bytes_are_split_over_streams() {
        let load = load(4, Amount::Bytes(10));
        assert_eq!([0, 1, 2, 3].map(|at| load.share(at)), [3, 3, 2, 2].map(Some));
    }

    #[test]
    fn senders_over_the_limit_are_errors() {
        let bytes = load(2, Amount::Bytes(10));
        let limit = SenderLimit { load: &bytes, counted_at_deadline: Cell::new(None) };
        assert_eq!(limit.check(10, Duration::ZERO), Ok(()));
        assert_eq!(limit.check(11, Duration::ZERO).unwrap_err(), "sends more than the 10 bytes that were agreed");
        let time = load(2, Amount::TimeMs(1_000));
        let limit = SenderLimit { load: &time, counted_at_deadline: Cell::new(None) };
        for (counted, elapsed_s) in [(1_000_000, 5), (1_000_001, 7), (1_000_201, 8)] {
            assert_eq!(limit.check(counted, Duration::from_secs(elapsed_s)), Ok(()));
        }
        assert!(limit.check(1_000_202, Duration::from_secs(9)).unwrap_err().starts_with("goes on sending"));
    }
}
