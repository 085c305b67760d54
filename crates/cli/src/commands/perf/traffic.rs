//! The data of a test: streams that one end fills and the other one empties.

use std::cell::Cell;
use std::time::Duration;

use transport::{RecvStream, SendStream};

use super::control::Amount;
use super::meter::Meter;
use crate::peer::patience::{Part, all, pause, unless};
use crate::peer::trouble::Trouble;

/// Bytes that are written or read at a time.
const CHUNK: usize = 256 << 10;
/// After the end of its time a sender has so long until no new data may come.
const GRACE: Duration = Duration::from_secs(5);

/// What is to be sent.
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
            Amount::TimeMs(_) => None,
        }
    }

    fn time(&self) -> Duration {
        match self.amount {
            Amount::Bytes(_) => Duration::MAX,
            Amount::TimeMs(ms) => Duration::from_millis(ms),
        }
    }
}

/// Sends until the peer has all.
pub(super) async fn send(load: &Load, meter: &Meter<'_>) -> Result<(), Trouble> {
    let mut streams = Vec::new();
    for _ in 0..load.streams {
        streams.push(meter.connection.open_one_way().await?);
    }
    meter.begin(streams.iter().map(SendStream::id).collect());
    let data = vec![0x6e; CHUNK];
    let part = |(at, stream)| -> Part<'_> { Box::pin(send_one(stream, (load, at), meter, &data)) };
    all(streams.iter_mut().enumerate().map(part).collect()).await?;
    meter.end();
    Ok(())
}

async fn send_one(
    stream: &mut SendStream,
    (load, at): (&Load, usize),
    meter: &Meter<'_>,
    data: &[u8],
) -> Result<(), Trouble> {
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
pub(super) async fn receive(load: &Load, meter: &Meter<'_>) -> Result<(), Trouble> {
    let mut streams: Vec<RecvStream> = Vec::new();
    for _ in 0..load.streams {
        let stream = meter.connection.accept_stream().await?;
        if stream.send.is_some() {
            return Err(Trouble::Peer("opened a stream of two directions for data".to_owned()));
        }
        meter.begin(Vec::new());
        streams.push(stream.receive);
    }
    streams.sort_by_key(RecvStream::id);
    let limit = Limit { load, late: Cell::new(None) };
    let part = |(at, stream)| -> Part<'_> { Box::pin(receive_one(stream, &meter.counts()[at], &limit, meter)) };
    all(streams.iter_mut().enumerate().map(part).collect()).await?;
    meter.end();
    Ok(())
}

async fn receive_one(
    stream: &mut RecvStream,
    count: &Cell<u64>,
    limit: &Limit<'_>,
    meter: &Meter<'_>,
) -> Result<(), Trouble> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            bytes => count.set(count.get() + bytes as u64),
        }
        limit.check(meter.counted(), meter.elapsed()).map_err(Trouble::Peer)?;
        pause().await;
    }
}

/// What a sender must not exceed.
struct Limit<'a> {
    load: &'a Load,
    /// What had come when its time was over.
    late: Cell<Option<u64>>,
}

impl Limit<'_> {
    fn check(&self, counted: u64, elapsed: Duration) -> Result<(), String> {
        match self.load.amount {
            Amount::Bytes(bytes) if counted > bytes => {
                Err(format!("sends more than the {bytes} bytes that were agreed"))
            }
            Amount::TimeMs(ms) if elapsed > self.load.time() + GRACE => {
                let before = self.late.get().unwrap_or(counted);
                self.late.set(Some(before));
                let window = self.load.window.saturating_mul(self.load.streams.into());
                if counted - before > window {
                    return Err(format!("goes on sending though the {ms} ms that were agreed are over"));
                }
                Ok(())
            }
            Amount::Bytes(_) | Amount::TimeMs(_) => Ok(()),
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
    fn bytes_are_shared_out() {
        let load = load(4, Amount::Bytes(10));
        assert_eq!([0, 1, 2, 3].map(|at| load.share(at)), [3, 3, 2, 2].map(Some));
    }

    #[test]
    fn a_sender_that_goes_on_is_noticed() {
        let bytes = load(2, Amount::Bytes(10));
        let limit = Limit { load: &bytes, late: Cell::new(None) };
        assert_eq!(limit.check(10, Duration::ZERO), Ok(()));
        assert_eq!(limit.check(11, Duration::ZERO).unwrap_err(), "sends more than the 10 bytes that were agreed");
        let time = load(2, Amount::TimeMs(1_000));
        let limit = Limit { load: &time, late: Cell::new(None) };
        for (counted, elapsed_s) in [(1_000_000, 5), (1_000_001, 7), (1_000_201, 8)] {
            assert_eq!(limit.check(counted, Duration::from_secs(elapsed_s)), Ok(()));
        }
        assert!(limit.check(1_000_202, Duration::from_secs(9)).unwrap_err().starts_with("goes on sending"));
    }
}
