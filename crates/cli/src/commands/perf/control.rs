//! Messages between both ends on the first stream: version 1. Each message is its length, 4 bytes in network byte
//! order, and that many bytes of JSON, at most 8 KiB.
//!
//! The client sends a [`PerfRequest`], the listener accepts it with a [`PerfResponse`], and when the data is through each sends
//! its counts ([`Totals`]). An end that does not agree closes the connection with the reason. Everything that a peer
//! sends is checked here.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use transport::{RecvStream, SendStream};

use crate::peer::end::MAX_WINDOW;
use crate::peer::session_error::SessionError;

/// The version of these messages.
const VERSION: u64 = 1;
/// The longest message, in bytes: 128 counts of 20 digits, and some words.
const MAX_MESSAGE_LEN: usize = 8 << 10;
/// The most streams of a test.
pub(super) const MAX_STREAMS: u16 = 128;
/// The longest test that sends by time.
pub(super) const MAX_TIME: Duration = Duration::from_hours(24);
/// The most bytes of a test.
pub(super) const MAX_BYTES: u64 = 1_000_000_000_000_000;

/// Maximum number of messages of a test: the time of each is stored.
pub(super) const MAX_MESSAGES: u32 = 1_000_000;

/// The amount of data to send.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum Amount {
    /// Bytes over all streams.
    Bytes(u64),
    /// All that can be sent in this time, in milliseconds.
    TimeMs(u64),
    /// `count` messages of `bytes` bytes each, one at a time, each on a stream of its own.
    Messages {
        /// The number of messages.
        count: u32,
        /// Bytes of each.
        bytes: u64,
    },
}

/// The client's request.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct PerfRequest {
    version: u64,
    /// Set if the listener sends.
    pub(super) reverse: bool,
    /// Streams at a time.
    pub(super) streams: u16,
    /// The amount.
    pub(super) amount: Amount,
    /// Bytes of each stream that may be under way.
    pub(super) window_bytes: u64,
}

/// The listener's answer to a request.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct PerfResponse {
    version: u64,
    /// The law by which it sends.
    pub(super) law: String,
    /// Bytes of each stream that may be under way.
    pub(super) window_bytes: u64,
}

/// The counts of an end.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Totals {
    version: u64,
    /// Bytes of each stream that were delivered, in the order in which the streams were opened.
    pub(super) bytes: Vec<u64>,
    /// From the first byte to the last, by its own clock.
    pub(super) time_ns: u64,
    /// Processor time of its process.
    pub(super) cpu_ns: u64,
    /// Packets that it sent, and those that it declared lost.
    pub(super) packets: u64,
    pub(super) lost: u64,
}

/// Part of an end in a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TestRole {
    Sender,
    Receiver,
}

impl PerfRequest {
    /// Returns a request of a client that takes the part of `client`.
    pub(super) fn new(client: TestRole, streams: u16, amount: Amount, window_bytes: u64) -> Self {
        Self { version: VERSION, reverse: client == TestRole::Receiver, streams, amount, window_bytes }
    }

    /// Returns the client's part.
    pub(super) fn client(&self) -> TestRole {
        if self.reverse { TestRole::Receiver } else { TestRole::Sender }
    }

    /// Returns the listener's part.
    pub(super) fn listener(&self) -> TestRole {
        if self.reverse { TestRole::Sender } else { TestRole::Receiver }
    }

    fn check(&self) -> Result<(), String> {
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            return Err(format!("asks for {} streams; there may be 1 to {MAX_STREAMS}", self.streams));
        }
        let (value, max, unit) = match self.amount {
            Amount::Bytes(bytes) => (bytes, MAX_BYTES, "bytes"),
            Amount::TimeMs(ms) => (ms, MAX_TIME.as_millis() as u64, "ms"),
            Amount::Messages { count, .. } if !(1..=MAX_MESSAGES).contains(&count) => {
                (count.into(), MAX_MESSAGES.into(), "messages")
            }
            Amount::Messages { count, bytes } => (bytes, MAX_BYTES / u64::from(count), "bytes a message"),
        };
        if !(1..=max).contains(&value) {
            return Err(format!("asks for {value} {unit}; there may be 1 to {max}"));
        }
        check_window(self.window_bytes)
    }
}

impl PerfResponse {
    pub(super) fn new(law: &str, window_bytes: u64) -> Self {
        Self { version: VERSION, law: law.to_owned(), window_bytes }
    }

    fn check(&self) -> Result<(), String> {
        if laws::catalog::LawKind::from_name(&self.law).is_none() {
            // The name is printed on a terminal.
            let name: String = self.law.chars().take(40).collect();
            return Err(format!("sends by a law that is not known here, `{}`", name.escape_default()));
        }
        check_window(self.window_bytes)
    }
}

fn check_window(bytes: u64) -> Result<(), String> {
    if bytes <= MAX_WINDOW { Ok(()) } else { Err(format!("has a window of {bytes} bytes; it may have {MAX_WINDOW}")) }
}

impl Totals {
    pub(super) fn new(bytes: Vec<u64>, time: Duration, cpu: Duration, packets: u64, lost: u64) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self { version: VERSION, bytes, time_ns: ns(time), cpu_ns: ns(cpu), packets, lost }
    }

    /// Bytes of all streams. Both ends have agreed on each, so their sum is as small as this end's own.
    pub(super) fn sum(&self) -> u64 {
        self.bytes.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes))
    }

    pub(super) fn time(&self) -> Duration {
        Duration::from_nanos(self.time_ns)
    }

    /// Compares the peer's counts with those of this end in a test that took `elapsed`. `verb` is the peer's action.
    pub(super) fn agrees(&self, own: &Self, verb: &str, elapsed: Duration) -> Result<(), String> {
        if self.bytes.len() != own.bytes.len() {
            return Err(format!("counts {} streams, and there were {}", self.bytes.len(), own.bytes.len()));
        }
        if let Some((at, (theirs, ours))) =
            self.bytes.iter().zip(&own.bytes).enumerate().find(|(_, (theirs, ours))| theirs != ours)
        {
            return Err(format!("reports that it {verb} {theirs} bytes of stream {at}, and this end counted {ours}"));
        }
        // A peer's clock may run otherwise than this one, but not by a second in a test.
        if self.time() > elapsed + elapsed / 100 + Duration::from_secs(1) {
            return Err(format!(
                "reports that it took {:.1} s, and the test took {:.1} s",
                self.time().as_secs_f64(),
                elapsed.as_secs_f64()
            ));
        }
        Ok(())
    }
}

/// A message of a peer that can be wrong in itself.
pub(super) trait ControlMessage: Serialize + DeserializeOwned {
    /// Its kind, with the article.
    const NAME: &'static str;

    /// Returns the error in it, as the rest of a sentence about the peer.
    fn validate(&self) -> Result<(), String>;
}

impl ControlMessage for PerfRequest {
    const NAME: &'static str = "a request";
    fn validate(&self) -> Result<(), String> {
        self.check()
    }
}

impl ControlMessage for PerfResponse {
    const NAME: &'static str = "an answer";
    fn validate(&self) -> Result<(), String> {
        self.check()
    }
}

impl ControlMessage for Totals {
    const NAME: &'static str = "its totals";
    fn validate(&self) -> Result<(), String> {
        if self.lost > self.packets { Err(format!("lost {} packets of {}", self.lost, self.packets)) } else { Ok(()) }
    }
}

/// Reads a message from its bytes. An error is the rest of a sentence about the peer.
fn parse<M: ControlMessage>(bytes: &[u8]) -> Result<M, String> {
    let unreadable = |error: serde_json::Error| {
        format!("sent {} that cannot be read: {}", M::NAME, error.to_string().escape_default())
    };
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(unreadable)?;
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(VERSION) => {}
        Some(version) => {
            return Err(format!(
                "speaks version {version} of perf, and this end version {VERSION}: use one release of narrows"
            ));
        }
        None => return Err(format!("sent {} without a version", M::NAME)),
    }
    let message: M = serde_json::from_value(value).map_err(unreadable)?;
    message.validate()?;
    Ok(message)
}

pub(super) async fn write<M: ControlMessage>(stream: &mut SendStream, message: &M) -> Result<(), SessionError> {
    // Messages of numbers and names can always be serialized.
    let text = serde_json::to_vec(message).unwrap_or_default();
    stream.write_all(&(text.len() as u32).to_be_bytes()).await?;
    Ok(stream.write_all(&text).await?)
}

pub(super) async fn read<M: ControlMessage>(stream: &mut RecvStream) -> Result<M, SessionError> {
    let mut len = [0; 4];
    fill(stream, &mut len, M::NAME).await?;
    let len = u32::from_be_bytes(len) as usize;
    if len > MAX_MESSAGE_LEN {
        return Err(SessionError::Peer(format!("sent {} of {len} bytes; it may have {MAX_MESSAGE_LEN}", M::NAME)));
    }
    let mut text = vec![0; len];
    fill(stream, &mut text, M::NAME).await?;
    parse(&text).map_err(SessionError::Peer)
}

async fn fill(stream: &mut RecvStream, mut out: &mut [u8], name: &str) -> Result<(), SessionError> {
    while !out.is_empty() {
        match stream.read(out).await? {
            0 => return Err(SessionError::Peer(format!("ended before it had sent {name}"))),
            count => out = &mut out[count..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_error<M: ControlMessage + std::fmt::Debug>(text: &str) -> String {
        parse::<M>(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn messages_round_trip() {
        let request = PerfRequest::new(TestRole::Receiver, 4, Amount::TimeMs(10_000), 1);
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(text, r#"{"version":1,"reverse":true,"streams":4,"amount":{"time_ms":10000},"window_bytes":1}"#);
        assert_eq!(parse::<PerfRequest>(text.as_bytes()), Ok(request));
        let max = Totals::new(vec![u64::MAX; MAX_STREAMS.into()], Duration::MAX, Duration::MAX, u64::MAX, u64::MAX);
        assert!(serde_json::to_vec(&max).unwrap().len() <= MAX_MESSAGE_LEN);
    }

    #[test]
    fn invalid_messages_are_errors() {
        let request = |streams: &str, amount: &str| {
            parse_error::<PerfRequest>(&format!(
                r#"{{"version":1,"reverse":false,"streams":{streams},"amount":{amount},"window_bytes":1}}"#
            ))
        };
        assert_eq!(request("0", r#"{"bytes":1}"#), "asks for 0 streams; there may be 1 to 128");
        assert_eq!(request("1", r#"{"bytes":0}"#), "asks for 0 bytes; there may be 1 to 1000000000000000");
        assert_eq!(request("1", r#"{"time_ms":86400001}"#), "asks for 86400001 ms; there may be 1 to 86400000");
        assert!(request("-1", r#"{"bytes":1}"#).starts_with("sent a request that cannot be read: "));
        assert!(request("1", r#"{"bytes":1,"time_ms":1}"#).starts_with("sent a request that cannot be read: "));
        assert!(parse_error::<PerfRequest>("GET / HTTP/1.1").starts_with("sent a request that cannot be read: "));
        assert_eq!(parse_error::<PerfRequest>("[]"), "sent a request without a version");
        assert!(
            parse_error::<PerfRequest>(r#"{"version":2}"#)
                .starts_with("speaks version 2 of perf, and this end version 1")
        );
        let law = parse_error::<PerfResponse>(r#"{"version":1,"law":"\u001b[31m","window_bytes":1}"#);
        assert_eq!(law, "sends by a law that is not known here, `\\u{1b}[31m`");
        assert!(
            parse_error::<PerfResponse>(r#"{"version":1,"law":"cubic","window_bytes":5000000000}"#)
                .contains("5000000000")
        );
        let totals = parse_error::<Totals>(r#"{"version":1,"bytes":[1],"time_ns":1,"cpu_ns":1,"packets":1,"lost":2}"#);
        assert_eq!(totals, "lost 2 packets of 1");
    }

    #[test]
    fn totals_of_both_ends_must_match() {
        let totals = |bytes: &[u64], s| Totals::new(bytes.to_vec(), Duration::from_secs(s), Duration::ZERO, 0, 0);
        let own = totals(&[5, 6], 1);
        let agrees = |theirs: Totals| theirs.agrees(&own, "got", Duration::from_secs(2));
        assert_eq!(agrees(totals(&[5, 6], 2)), Ok(()));
        assert_eq!(agrees(totals(&[5], 1)).unwrap_err(), "counts 1 streams, and there were 2");
        let other = agrees(totals(&[5, 7], 1)).unwrap_err();
        assert_eq!(other, "reports that it got 7 bytes of stream 1, and this end counted 6");
        assert_eq!(agrees(totals(&[5, 6], 9)).unwrap_err(), "reports that it took 9.0 s, and the test took 2.0 s");
    }
}
