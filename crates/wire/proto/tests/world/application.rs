//! An end's application: it writes and reads streams, and checks each byte.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use proto::streams::{Direction, ReadError, StreamEvent, StreamId, Streams, WriteError};
use units::{Span, Time, mix64};

use super::network::NetworkEnd;
use super::{ReadBehaviour, Scene, StreamJob, side};

/// Bytes of one call that writes.
const WRITE_BYTES: u64 = 4 << 10;
/// Maximum number of bytes of one call that reads.
const MAX_READ_BYTES: usize = 64 << 10;

/// Returns the bytes that belong at these offsets of a stream.
fn contents(stream: StreamId, offsets: Range<u64>) -> Vec<u8> {
    let words = offsets.start / 8..offsets.end.div_ceil(8);
    let skipped = (offsets.start % 8) as usize;
    let mut bytes = Vec::with_capacity(8 * (words.end - words.start) as usize);
    bytes.extend(words.flat_map(|word| mix64((stream.number() << 40) ^ word).to_le_bytes()));
    bytes.drain(..skipped);
    bytes.truncate((offsets.end - offsets.start) as usize);
    bytes
}

/// Data of a stream that is written in pieces.
#[derive(Clone, Copy, Debug)]
struct Writing {
    bytes: u64,
    written: u64,
    /// Set from a write that was cut short until the next event of the stream.
    is_blocked: bool,
}

impl Writing {
    fn new(bytes: u64) -> Self {
        Self { bytes, written: 0, is_blocked: false }
    }
}

/// One end's application. It acts on events of the connection, and at times.
#[derive(Debug)]
pub struct Application {
    end: NetworkEnd,
    scene: Rc<Scene>,
    /// Data for streams that are not open yet.
    jobs: Vec<StreamJob>,
    writing: BTreeMap<StreamId, Writing>,
    /// Received bytes, by stream.
    reading: BTreeMap<StreamId, u64>,
    /// Time of the next reads.
    read_at: Time,
    delivered: u64,
    ended: u64,
    /// Time at which the end of each stream was read.
    ends: BTreeMap<StreamId, Time>,
    /// The message of a series in progress, and its start time.
    message: Option<(StreamId, Time)>,
    /// Start time of the next message; never while one is in progress.
    next_message: Time,
    /// Durations of the messages of a series.
    pub took: Vec<Span>,
}

impl Application {
    pub fn new(end: NetworkEnd, scene: Rc<Scene>) -> Self {
        Self {
            end,
            jobs: scene.jobs.iter().filter(|job| job.from == end).copied().collect(),
            scene,
            writing: BTreeMap::new(),
            reading: BTreeMap::new(),
            read_at: Time::NEVER,
            delivered: 0,
            ended: 0,
            ends: BTreeMap::new(),
            message: None,
            next_message: Time::NEVER,
            took: Vec::new(),
        }
    }

    /// Handles the admission of the client, which begins its series of messages.
    pub fn on_admitted(&mut self, now: Time) {
        if self.end == NetworkEnd::Client && self.scene.series.0 > 0 {
            self.next_message = now;
        }
    }

    pub fn on_event(&mut self, now: Time, event: StreamEvent) {
        match event {
            StreamEvent::Readable(_) | StreamEvent::Opened
                if !self.read_at.is_set() || self.scene.reader.1.is_zero() =>
            {
                self.read_at = now;
            }
            StreamEvent::Writable(id) | StreamEvent::Stopped { id, .. } | StreamEvent::Reset { id, .. } => {
                if let Some(writing) = self.writing.get_mut(&id) {
                    writing.is_blocked = false;
                }
            }
            StreamEvent::Delivered(id) => {
                self.delivered += 1;
                if let Some((_, began)) = self.message.take_if(|(message, _)| *message == id) {
                    self.took.push(now.since(began));
                    if (self.took.len() as u64) < self.scene.series.0 {
                        self.next_message = now + self.scene.conditions.delay.times(4);
                    }
                }
            }
            _ => {}
        }
    }

    /// Opens, reads and writes streams, as far as it is possible and due.
    pub fn act(&mut self, now: Time, streams: &mut Streams) {
        self.open_jobs(streams);
        self.begin_message(now, streams);
        if self.read_at <= now {
            self.read(now, streams);
        }
        if self.scene.quiet.is_none_or(|(from, until)| now < from || now >= until) {
            self.write(streams);
        }
    }

    /// Returns the next time after `now` at which it acts without an event.
    pub fn next_wake(&self, now: Time) -> Time {
        let quiet_until = self.scene.quiet.map_or(Time::NEVER, |(_, until)| until);
        let times = [self.read_at, self.next_message, quiet_until];
        times.into_iter().filter(|&at| at > now).min().unwrap_or(Time::NEVER)
    }

    /// Returns whether everything is written.
    pub fn has_written(&self) -> bool {
        let is_series_over = self.message.is_none() && !self.next_message.is_set();
        self.jobs.is_empty() && self.writing.is_empty() && is_series_over
    }

    /// Returns the streams that its peer has acknowledged completely, and those that it has read completely.
    pub fn finished(&self) -> [u64; 2] {
        [self.delivered, self.ended]
    }

    /// Returns the number of bytes read.
    pub fn read_bytes(&self) -> u64 {
        self.reading.values().sum()
    }

    /// Returns the time at which the end of each one-way stream of the peer was read, in the order in which they were
    /// opened.
    pub fn one_way_ends(&self) -> BTreeMap<u64, Time> {
        self.ends.iter().filter(|(id, _)| id.is_one_way()).map(|(id, &at)| (id.nth(), at)).collect()
    }

    fn open_jobs(&mut self, streams: &mut Streams) {
        let Self { jobs, writing, reading, .. } = self;
        jobs.retain(|job| {
            let opened = if job.message {
                streams.open_message(job.bytes)
            } else {
                streams.open(if job.echo { Direction::Both } else { Direction::OneWay })
            };
            let Some(stream) = opened else { return true };
            writing.insert(stream, Writing::new(job.bytes));
            if !stream.is_one_way() {
                reading.insert(stream, 0);
            }
            false
        });
    }

    /// Begins the next message of the series, if it is due.
    fn begin_message(&mut self, now: Time, streams: &mut Streams) {
        let bytes = self.scene.series.1;
        if self.next_message <= now
            && let Some(stream) = streams.open_message(bytes)
        {
            self.message = Some((stream, now));
            self.next_message = Time::NEVER;
            self.writing.insert(stream, Writing::new(bytes));
        }
    }

    fn write(&mut self, streams: &mut Streams) {
        let may_fail = self.scene.forgery > 0;
        self.writing.retain(|&stream, writing| {
            if writing.is_blocked {
                return true;
            }
            match write_more(stream, writing, streams) {
                Ok(is_finished) => !is_finished,
                Err(WriteError::Stopped { .. }) => false,
                Err(_) if may_fail => false,
                Err(error) => panic!("{error}"),
            }
        });
    }

    fn read(&mut self, now: Time, streams: &mut Streams) {
        let (max_bytes, wait) = self.scene.reader;
        self.read_at = Time::NEVER;
        while let Some(stream) = streams.accept() {
            self.reading.insert(stream, 0);
        }
        let known: Vec<StreamId> = self.reading.keys().copied().collect();
        let (mut budget, mut out) = (max_bytes, vec![0; max_bytes.min(MAX_READ_BYTES)]);
        for stream in known {
            match self.behaviour(stream) {
                ReadBehaviour::Pauses(from, until) if (from..until).contains(&now) => {
                    self.read_at = self.read_at.min(until);
                    continue;
                }
                ReadBehaviour::Stops(from) if from <= now => {
                    // It may have ended before.
                    let _ = streams.stop_sending(stream, 1);
                    continue;
                }
                // Possibly no event wakes it in time.
                ReadBehaviour::Pauses(from, _) | ReadBehaviour::Stops(from) if from > now => {
                    self.read_at = self.read_at.min(from);
                }
                _ => {}
            }
            while budget > 0 && !self.ends.contains_key(&stream) {
                let room = out.len().min(budget);
                match streams.read(stream, &mut out[..room]) {
                    Ok(read) => {
                        budget -= read.bytes;
                        self.on_bytes(stream, &out[..read.bytes]);
                        if read.ends {
                            self.on_end(now, stream);
                        }
                    }
                    Err(ReadError::Blocked) => break,
                    Err(_) if self.scene.forgery > 0 => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        if budget == 0 {
            self.read_at = self.read_at.min(now.saturating_add(wait));
        }
    }

    /// Returns the behaviour of this end as the reader of a stream.
    fn behaviour(&self, stream: StreamId) -> ReadBehaviour {
        let is_configured = self.end == NetworkEnd::Listener && stream.is_one_way();
        let reader = self.scene.readers.get(stream.nth() as usize).filter(|_| is_configured);
        reader.copied().unwrap_or(ReadBehaviour::Reads)
    }

    /// Checks the next bytes of a stream.
    fn on_bytes(&mut self, stream: StreamId, got: &[u8]) {
        let offset = self.reading.get_mut(&stream).expect("a known stream");
        if self.scene.forgery == 0 {
            let expected = contents(stream, *offset..*offset + got.len() as u64);
            let wrong = got.iter().zip(&expected).take_while(|(got, expected)| got == expected).count() as u64;
            assert!(got == expected, "byte {} of stream {} is wrong", *offset + wrong, stream.number());
        }
        *offset += got.len() as u64;
    }

    /// Handles the end of a stream. If the peer opened it in both directions, it is answered by as many bytes.
    fn on_end(&mut self, now: Time, stream: StreamId) {
        self.ended += 1;
        self.ends.insert(stream, now);
        if !stream.is_one_way() && stream.opened_by() != side(self.end) {
            self.writing.insert(stream, Writing::new(self.reading[&stream]));
        }
    }
}

/// Writes as much as a stream takes, and its end. Returns whether it is finished.
fn write_more(stream: StreamId, writing: &mut Writing, streams: &mut Streams) -> Result<bool, WriteError> {
    while writing.written < writing.bytes {
        let data = contents(stream, writing.written..writing.bytes.min(writing.written + WRITE_BYTES));
        let count = streams.write(stream, &data)?;
        writing.written += count as u64;
        if count < data.len() {
            writing.is_blocked = true;
            return Ok(false);
        }
    }
    match streams.finish(stream) {
        // A message ends by itself.
        Ok(()) | Err(WriteError::Finished) => Ok(true),
        Err(error) => Err(error),
    }
}
