//! Messages of both ends: version 1.
//!
//! Each message is its length, 4 bytes in network byte order, and its bytes. The first message of each end is JSON, so
//! that ends of different versions, and of other services, understand why they cannot continue; the others are in
//! postcard's format. A chunk's data follow its message.

use std::io::{BufReader, Read};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::chunks::ChunkSet;
use crate::digest::{CHUNK, Digest};
use crate::entry::Entry;
use crate::error::Error;
use crate::name::Name;

/// The amount of data.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Amount {
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
}

/// Options of a sender.
#[derive(Clone, Copy, Debug)]
pub struct SendOptions {
    /// Files at a time, 1 to [`MAX_LANES`].
    pub lanes: u8,
    /// Compare files of equal size by their hashes, and not by their times.
    pub checksum: bool,
}

/// The priority of the listing and of replies: data waits for them.
pub(crate) const URGENT: i32 = 1;
/// The version of these messages.
pub const VERSION: u64 = 1;
/// The name of this service in the first messages.
const SERVICE: &str = "files";
/// The longest message in bytes, without a chunk's data: a path, a link's target and some numbers.
pub const MAX_FRAME: usize = 16 << 10;
/// The most streams for data: a disk and a processor are busy with fewer.
pub const MAX_LANES: u8 = 16;
/// Maximum length of a reason, in bytes.
const MAX_WHY: usize = 1_000;
/// Bytes that are read from a stream at a time, where messages are short.
const READ: usize = 128 << 10;

/// The sender's first message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    version: u64,
    service: String,
    /// Streams for data, 1 to [`MAX_LANES`].
    pub lanes: u8,
    /// Set if files of equal size are compared by their hashes, and not by their times.
    pub checksum: bool,
    /// Number of entries that the sender found, for display only.
    pub entries: u64,
    /// Bytes of all files that it found, for display only.
    pub bytes: u64,
}

impl Hello {
    /// Creates the first message of a sender that found this amount.
    pub fn new(options: SendOptions, amount: Amount) -> Self {
        let (SendOptions { lanes, checksum }, Amount { entries, bytes }) = (options, amount);
        Self { version: VERSION, service: SERVICE.to_owned(), lanes, checksum, entries, bytes }
    }
}

/// The receiver's first message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Welcome {
    version: u64,
    service: String,
    /// Bytes that are free in its folder.
    pub free_bytes: u64,
}

impl Welcome {
    /// Creates it with this number of free bytes.
    pub fn new(free_bytes: u64) -> Self {
        Self { version: VERSION, service: SERVICE.to_owned(), free_bytes }
    }
}

/// Messages of the sender on the first stream after that. Entries are numbered in their order, from 0.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum Listing {
    /// The next entry.
    Entry(Entry),
    /// All were listed.
    End {
        /// Number of entries.
        entries: u64,
        /// Number of entries that could not be listed.
        failed: u64,
    },
}

/// The verified chunks that a receiver has.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Start {
    /// Their numbers.
    pub have: ChunkSet,
    /// The hash of their values.
    pub values: Digest,
}

/// Messages of the receiver on the first stream.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum ReceiverMessage {
    /// Send this file.
    Want {
        /// Its number.
        number: u64,
        /// The hash of the existing file. If the sender's has the same it is not sent.
        have: Option<Digest>,
        /// The chunks to skip; none if a file that differs must not be replaced.
        start: Option<Start>,
    },
    /// The entry exists. A directory or a link was noted, and is completed at the end.
    Settled {
        /// Its number.
        number: u64,
        /// Set if it existed before.
        was_there: bool,
    },
    /// The entry does not exist, and will not: it failed at either end.
    Failed {
        /// Its number.
        number: u64,
        /// Its name.
        name: Name,
        /// The reason, for people.
        why: String,
    },
    /// All is over, and on the disk.
    Summary(Summary),
}

/// Counters of a receiver.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Summary {
    /// Files, directories and links that were made or brought up to date.
    pub made: u64,
    /// Files that existed before.
    pub same: u64,
    /// Entries that failed, at either end.
    pub failed: u64,
    /// Bytes received.
    pub moved_bytes: u64,
    /// Bytes that were there before, in files that are the same or in verified parts.
    pub had_bytes: u64,
}

/// Messages of the sender on a data stream.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum DataMessage {
    /// A file begins.
    File {
        /// Its number.
        number: u64,
        /// The number of chunks that are left out: none, or all that the receiver has.
        chunks: u64,
    },
    /// The next chunk: its data follow this message.
    Chunk {
        /// In bytes, at most [`CHUNK`].
        len: u32,
        /// Its checksum.
        value: Digest,
    },
    /// The file ends.
    End {
        /// Its hash.
        digest: Digest,
    },
    /// The current file is aborted.
    Broken {
        /// The reason, for people.
        why: String,
    },
    /// A file is aborted before it has begun.
    Unsent {
        /// Its number.
        number: u64,
        /// The reason, for people.
        why: String,
    },
    /// The file that the receiver has is the same.
    Same {
        /// Its number.
        number: u64,
    },
    /// The file that the receiver has differs, and must not be replaced.
    Differs {
        /// Its number.
        number: u64,
    },
}

/// A first message. `validate` describes an error, as the rest of a sentence about the peer.
pub(crate) trait First: Serialize + DeserializeOwned {
    fn validate(&self) -> Result<(), String>;
}

impl First for Hello {
    fn validate(&self) -> Result<(), String> {
        if (1..=MAX_LANES).contains(&self.lanes) {
            Ok(())
        } else {
            Err(format!("asks for {} streams; there may be 1 to {MAX_LANES}", self.lanes))
        }
    }
}

impl First for Welcome {
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A later message.
pub(crate) trait Checked: DeserializeOwned {
    fn validate(&self) -> Result<(), String>;
}

impl Checked for Listing {
    fn validate(&self) -> Result<(), String> {
        if let Self::Entry(entry) = self { entry.validate() } else { Ok(()) }
    }
}

fn check_why(why: &str) -> Result<(), String> {
    if why.len() <= MAX_WHY { Ok(()) } else { Err(format!("explains itself in {} bytes", why.len())) }
}

impl Checked for ReceiverMessage {
    fn validate(&self) -> Result<(), String> {
        match self {
            Self::Failed { why, .. } => check_why(why),
            Self::Want { start: Some(start), .. } => start.have.validate(),
            _ => Ok(()),
        }
    }
}

impl Checked for DataMessage {
    fn validate(&self) -> Result<(), String> {
        match self {
            Self::Broken { why } | Self::Unsent { why, .. } => check_why(why),
            Self::Chunk { len, .. } if *len as usize > CHUNK || *len == 0 => {
                Err(format!("sends a chunk of {len} bytes; it may have 1 to {CHUNK}"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the text of an error, cut to a length that a peer accepts.
pub(crate) fn brief(why: &str) -> String {
    why.chars().take(MAX_WHY / 4).collect()
}

/// Appends a message to the bytes to send.
pub(crate) fn put(out: &mut Vec<u8>, message: &impl Serialize) {
    let at = out.len();
    let buffer = std::mem::take(out);
    // Messages of numbers, names and short texts can always be encoded.
    *out = postcard::to_extend(message, Extended::new(buffer)).map(|it| it.0).unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "a message has at most `MAX_FRAME` bytes")]
    let len = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&len.to_be_bytes());
}

/// Bytes to which a message is added, with room for its length before it.
struct Extended(Vec<u8>);

impl Extended {
    fn new(mut bytes: Vec<u8>) -> Self {
        bytes.extend([0; 4]);
        Self(bytes)
    }
}

impl Extend<u8> for Extended {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        self.0.extend(bytes);
    }
}

/// A first message with its length.
pub(crate) fn first_frame(message: &impl First) -> Vec<u8> {
    let text = serde_json::to_vec(message).unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "the first messages have a few hundred bytes")]
    let len = text.len() as u32;
    [&len.to_be_bytes(), &text[..]].concat()
}

/// Reads a message from its bytes. An error is the rest of a sentence about the peer.
///
/// # Errors
/// If they are not one complete message.
pub fn parse<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, String> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(format!("sent a message with {} bytes too many", rest.len())),
        Err(_) => Err("sent a message that cannot be read, or with a name that may not be".to_owned()),
    }
}

fn parse_first<M: First>(bytes: &[u8]) -> Result<M, String> {
    let not_json = |error: serde_json::Error| {
        format!("does not speak as `narrows send` and `narrows recv` do: {}", error.to_string().escape_default())
    };
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(not_json)?;
    match (value.get("service").and_then(|it| it.as_str()), value.get("version").and_then(serde_json::Value::as_u64)) {
        (Some(SERVICE), Some(VERSION)) => {}
        (Some(SERVICE), Some(version)) => {
            return Err(format!(
                "speaks version {version} of the transfer of files, and this end version {VERSION}: use one release of narrows"
            ));
        }
        _ => return Err("does not transfer files: `narrows send` calls `narrows recv`".to_owned()),
    }
    let message: M = serde_json::from_value(value).map_err(not_json)?;
    message.validate()?;
    Ok(message)
}

/// Messages received on a stream.
pub(crate) struct MessageReader<R> {
    reader: BufReader<R>,
    frame: Vec<u8>,
}

impl<R: Read> MessageReader<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { reader: BufReader::with_capacity(READ, stream), frame: Vec::new() }
    }

    /// The bytes of the next message; none at the stream's end.
    fn frame(&mut self) -> Result<Option<&[u8]>, Error> {
        let mut len = [0; 4];
        // The stream may end before a message, but not within it.
        if self.reader.read(&mut len[..1]).map_err(Error::stream)? == 0 {
            return Ok(None);
        }
        self.fill(|reader, _| reader.read_exact(&mut len[1..]))?;
        let len = u32::from_be_bytes(len) as usize;
        if len > MAX_FRAME {
            return Err(Error::Peer(format!("sent a message of {len} bytes; it may have {MAX_FRAME}")));
        }
        self.frame.resize(len, 0);
        self.fill(Read::read_exact)?;
        Ok(Some(&self.frame))
    }

    fn fill(&mut self, read: impl FnOnce(&mut BufReader<R>, &mut [u8]) -> std::io::Result<()>) -> Result<(), Error> {
        read(&mut self.reader, &mut self.frame).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::Peer("ended within a message".to_owned()),
            _ => Error::stream(error),
        })
    }

    pub(crate) fn first<M: First>(&mut self) -> Result<M, Error> {
        let frame = self.frame()?.ok_or_else(|| Error::Peer("ended before its first message".to_owned()))?;
        parse_first(frame).map_err(Error::Peer)
    }

    /// The next message; none at the stream's end.
    pub(crate) fn next<M: Checked>(&mut self) -> Result<Option<M>, Error> {
        let Some(frame) = self.frame()? else { return Ok(None) };
        let message: M = parse(frame).map_err(Error::Peer)?;
        message.validate().map_err(Error::Peer)?;
        Ok(Some(message))
    }

    /// Reads a chunk's data.
    pub(crate) fn data(&mut self, out: &mut [u8]) -> Result<(), Error> {
        self.fill(|reader, _| reader.read_exact(out))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chunks::{ChunkRun, MAX_RUNS};
    use crate::entry::{EntryKind, Mtime};

    fn name(text: &str) -> Name {
        Name::new(text.into()).unwrap()
    }

    #[test]
    fn written_values_are_read_back() {
        let longest = vec!["n".repeat(251); 16].join("/");
        let entry = |kind| Entry { name: name(&longest), mode: 0o640, mtime: Mtime { s: -1, ns: 999_999_999 }, kind };
        let listing = [
            Listing::Entry(entry(EntryKind::File { size: i64::MAX as u64 })),
            Listing::Entry(entry(EntryKind::Link { target: vec![0xff; 4_095] })),
            Listing::End { entries: u64::MAX, failed: 0 },
        ];
        let mut bytes = Vec::new();
        for message in &listing {
            let at = bytes.len();
            put(&mut bytes, message);
            assert!(bytes.len() - at <= MAX_FRAME + 4);
        }
        let mut frames = MessageReader::new(&bytes[..]);
        for message in listing {
            assert_eq!(frames.next::<Listing>().unwrap(), Some(message));
        }
        assert_eq!(frames.next::<Listing>().unwrap(), None);
        let mut cut = MessageReader::new(&bytes[..bytes.len() - 1]);
        assert!(cut.next::<Listing>().is_ok() && cut.next::<Listing>().is_ok());
        let error = cut.next::<Listing>().unwrap_err().to_string();
        assert_eq!(error, "the peer ended within a message");
    }

    #[test]
    fn forbidden_messages_are_errors() {
        let error_text = |bytes: &[u8]| MessageReader::new(bytes).next::<Listing>().unwrap_err().to_string();
        assert_eq!(error_text(&[0xff; 4]), "the peer sent a message of 4294967295 bytes; it may have 16384");
        assert!(error_text(&[0, 0, 0, 1, 9]).starts_with("the peer sent a message that cannot be read"));
        let mut bytes = Vec::new();
        put(&mut bytes, &DataMessage::Chunk { len: CHUNK as u32 + 1, value: [0; 32] });
        let error = MessageReader::new(&bytes[..]).next::<DataMessage>().unwrap_err().to_string();
        assert_eq!(error, "the peer sends a chunk of 1048577 bytes; it may have 1 to 1048576");
        let entry = |mode, ns, size| {
            let entry = Entry { name: name("x"), mode, mtime: Mtime { s: 0, ns }, kind: EntryKind::File { size } };
            let mut bytes = Vec::new();
            put(&mut bytes, &Listing::Entry(entry));
            error_text(&bytes)
        };
        assert_eq!(entry(0o4755, 0, 0), "the peer sent `x` with the mode 4755; at most 777 is accepted");
        assert_eq!(entry(0, 1_000_000_000, 0), "the peer sent `x` with a time of 1000000000 ns in a second");
        assert_eq!(entry(0, 0, 1 << 63), "the peer sent `x` with a size of 9223372036854775808 bytes");
        // A name that leads out of the folder, which no `Name` encodes.
        let mut out = Vec::new();
        put(&mut out, &(0u8, b"../x".to_vec(), 0u32, 0i64, 0u32, 0u8));
        assert!(error_text(&out).contains("with a name that may not be"), "{}", error_text(&out));
    }

    /// Checks that the largest set of chunks fits into a message, and that an invalid set is rejected.
    #[test]
    fn chunks_that_a_receiver_has_are_a_set() {
        let read = |runs: Vec<ChunkRun>| {
            let start = Some(Start { have: ChunkSet::of_runs(runs), values: [0xff; 32] });
            let mut bytes = Vec::new();
            put(&mut bytes, &ReceiverMessage::Want { number: u64::MAX, have: Some([0xff; 32]), start });
            MessageReader::new(&bytes[..]).next::<ReceiverMessage>()
        };
        let far = |at: u64| ChunkRun { first: (1 << 63) + 2 * at, count: 1 };
        assert!(read((0..MAX_RUNS as u64).map(far).collect()).is_ok());
        let wide = ChunkRun { first: 0, count: 1 << 62 };
        assert!(read(vec![wide, far(0)]).is_ok());
        let error_text = read(vec![far(1), far(0)]).unwrap_err().to_string();
        assert_eq!(error_text, "the peer has runs of chunks that are empty or not in ascending order");
    }

    #[test]
    fn other_services_and_versions_are_distinguished() {
        let error_text = |text: &str| parse_first::<Hello>(text.as_bytes()).unwrap_err();
        let hello = String::from_utf8(
            first_frame(&Hello::new(SendOptions { lanes: 4, checksum: false }, Amount { entries: 1, bytes: 2 }))[4..]
                .to_vec(),
        )
        .unwrap();
        assert_eq!(parse_first::<Hello>(hello.as_bytes()).unwrap().bytes, 2);
        assert!(
            error_text(&hello.replace("\"version\":1", "\"version\":7"))
                .starts_with("speaks version 7 of the transfer")
        );
        assert!(error_text(r#"{"version":1,"reverse":false}"#).starts_with("does not transfer files"));
        assert!(error_text("GET /").starts_with("does not speak as"));
        assert_eq!(
            error_text(&hello.replace("\"lanes\":4", "\"lanes\":17")),
            "asks for 17 streams; there may be 1 to 16"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse::<Listing>(&bytes);
            let _ = parse::<ReceiverMessage>(&bytes);
            if let Ok(record) = parse::<DataMessage>(&bytes) {
                let mut again = Vec::new();
                put(&mut again, &record);
                prop_assert_eq!(parse::<DataMessage>(&again[4..]), Ok(record));
            }
        }
    }
}
