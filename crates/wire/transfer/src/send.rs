//! The sender: lists its files, and sends those that the receiver requests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex};

use nix::fcntl::OFlag;
use transport::{Connection, SendStream, wait};

use crate::chunks::ChunkSet;
use crate::digest::{Digest, HashTree, ValuesHash, chunks_of, read_chunk};
use crate::entry::Mtime;
use crate::error::Error;
use crate::message::{Amount, SendOptions};
use crate::message::{
    DataMessage, Hello, Listing, MessageReader, ReceiverMessage, Start, Summary, URGENT, Welcome, brief, first_frame,
    put,
};
use crate::message_writer::MessageWriter;
use crate::progress::{ProgressCounters, ProgressObserver, add, get};
use crate::walk::{SourcePath, WalkItem, mtime_of, shown_path, walk};
use crate::worker_pool::{WorkerPool, lock, wait_for_change};

/// Entries that were listed and are not over: enough for small files to fill a long path, few enough for memory.
pub const MAX_OPEN: usize = 16_384;
/// Bytes of records that are sent at a time.
const FULL: usize = 256 << 10;
/// Minimum size of chunks that are not copied into the records, in bytes.
const LARGE: usize = 32 << 10;

/// Result of a transfer.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TransferOutcome {
    /// The receiver's counters.
    pub summary: Summary,
    /// Entries that failed, as counted by this end.
    pub failed: u64,
}

/// A file, or something else, that was listed and is not over.
struct ListedEntry {
    path: PathBuf,
    name: String,
    size: u64,
    mtime: Mtime,
    /// False if it is no file, and once the receiver has requested it.
    may_be_wanted: bool,
}

/// A file that the receiver has requested.
struct FileJob {
    number: u64,
    path: PathBuf,
    name: String,
    size: u64,
    mtime: Mtime,
    have: Option<Digest>,
    start: Option<Start>,
}

#[derive(Default)]
struct State {
    open: BTreeMap<u64, ListedEntry>,
    jobs: VecDeque<FileJob>,
    /// Open entries that failed here, until the receiver is notified.
    broken: BTreeSet<u64>,
    /// Entries that failed according to the receiver.
    failed: BTreeSet<u64>,
    listed: u64,
    is_listed: bool,
}

struct Sender<'a> {
    workers: WorkerPool<'a>,
    options: SendOptions,
    watch: &'a dyn ProgressObserver,
    counts: ProgressCounters,
    state: Mutex<State>,
    changed: Condvar,
    message_writer: MessageWriter,
    summary: Mutex<Option<Summary>>,
}

/// Sends all sources, and waits until the receiver has them on its disk. `amount` is the result of [`survey`](crate::survey).
///
/// # Errors
/// If the connection ends, the peer violates the protocol, or `watch` ends it. Files that fail are no error: they are
/// in the outcome, and `watch` was notified of each.
pub fn send(
    connection: &Connection,
    sources: &[SourcePath],
    options: SendOptions,
    amount: Amount,
    watch: &dyn ProgressObserver,
) -> Result<TransferOutcome, Error> {
    let sender = Sender {
        workers: WorkerPool::new(connection),
        options,
        watch,
        counts: ProgressCounters::default(),
        state: Mutex::default(),
        changed: Condvar::new(),
        message_writer: MessageWriter::default(),
        summary: Mutex::default(),
    };
    add(&sender.counts.total_bytes, amount.bytes);
    add(&sender.counts.total_entries, amount.entries);
    std::thread::scope(|scope| {
        let it = &sender;
        it.workers.spawn(scope, move || it.begin(connection, sources, amount, scope));
        it.workers.wait(|| watch.on_progress(&it.counts.progress()));
    });
    connection.announce(None);
    let (summary, counts) = (lock(&sender.summary).take(), sender.counts);
    sender.workers.end()?;
    let summary = summary.ok_or_else(|| Error::Peer("ended without a summary".to_owned()))?;
    let own = (get(&counts.made), get(&counts.same));
    if (summary.made, summary.same) != own {
        return Err(Error::Peer(format!(
            "reports that it made {} entries and had {}, and reported {} and {} before",
            summary.made, summary.same, own.0, own.1
        )));
    }
    Ok(TransferOutcome { summary, failed: get(&counts.failed) })
}

impl<'a> Sender<'a> {
    fn begin<'s>(
        &'s self,
        connection: &'s Connection,
        sources: &'s [SourcePath],
        amount: Amount,
        scope: &'s std::thread::Scope<'s, '_>,
    ) -> Result<(), Error>
    where
        'a: 's,
    {
        wait(connection.admitted())?;
        connection.announce(Some(amount.bytes));
        let (mut control, replies) = wait(connection.open())?;
        control.set_priority(URGENT);
        let hello = Hello::new(self.options, amount);
        wait(control.write_all(&first_frame(&hello)))?;
        let mut replies = MessageReader::new(replies);
        let welcome: Welcome = replies.first()?;
        if welcome.free_bytes < amount.bytes {
            self.watch.note(&format!(
                "the receiver has {} bytes free, and there are {} bytes to send: without what it has already, not all fits",
                welcome.free_bytes, amount.bytes
            ));
        }
        self.workers.spawn(scope, move || self.message_writer.run(&self.workers, control));
        self.workers.spawn(scope, move || self.receive_replies(replies));
        for _ in 0..self.options.lanes {
            let stream = wait(connection.open_one_way())?;
            self.workers.spawn(scope, move || DataStreamSender::new(self, stream).run());
        }
        self.list(sources);
        Ok(())
    }

    /// Lists the contents of all sources.
    fn list(&self, sources: &[SourcePath]) {
        let mut refused = 0;
        let ended = walk(sources, |found| {
            let (entry, path) = match found {
                WalkItem::Entry(entry, path) => (entry, path),
                WalkItem::Refused(path, why) => {
                    refused += 1;
                    add(&self.counts.entries, 1);
                    self.failed(&shown_path(&path), &why);
                    return Ok(());
                }
            };
            let mut state = lock(&self.state);
            while state.open.len() >= MAX_OPEN && !self.workers.is_over() {
                state = wait_for_change(&self.changed, state);
            }
            if self.workers.is_over() {
                return Err(());
            }
            let is_file = matches!(entry.kind, crate::entry::EntryKind::File { .. });
            let listed = ListedEntry {
                name: shown_path(&path),
                path,
                size: entry.size(),
                mtime: entry.mtime,
                may_be_wanted: is_file,
            };
            let number = state.listed;
            state.listed += 1;
            state.open.insert(number, listed);
            drop(state);
            self.message_writer.push(&self.workers, &Listing::Entry(entry));
            Ok(())
        });
        if ended.is_ok() {
            let mut state = lock(&self.state);
            state.is_listed = true;
            let entries = state.listed;
            drop(state);
            self.changed.notify_all();
            self.message_writer.push(&self.workers, &Listing::End { entries, failed: refused });
            self.message_writer.end();
        }
    }

    /// Withdraws bytes that were announced to the law and are not sent: the receiver has them, or they have failed.
    /// Listings and heads of records are subtracted from the rest as data are.
    fn withdraw(&self, bytes: u64) {
        self.workers.connection().withdraw(bytes);
    }

    /// Counts and reports an entry that failed here.
    fn failed(&self, name: &str, why: &str) {
        add(&self.counts.failed, 1);
        self.watch.note(&format!("`{name}` is not sent: {why}"));
    }

    /// Completes a listed entry. Returns it, if it was not complete before.
    fn complete_entry(&self, number: u64) -> Option<ListedEntry> {
        let mut state = lock(&self.state);
        let listed = state.open.remove(&number);
        // The listing continues when there is room for more, and lanes end when nothing is left.
        if state.open.len() + MAX_OPEN / 8 == MAX_OPEN || state.open.is_empty() {
            self.changed.notify_all();
        }
        drop(state);
        if listed.is_some() {
            add(&self.counts.entries, 1);
        }
        listed
    }

    fn receive_replies(&self, mut replies: MessageReader<transport::RecvStream>) -> Result<(), Error> {
        let unknown = |number| Error::Peer(format!("refers to entry {number}, which is not open"));
        while let Some(reply) = replies.next::<ReceiverMessage>()? {
            if lock(&self.summary).is_some() {
                return Err(Error::Peer("continues after its summary".to_owned()));
            }
            match reply {
                ReceiverMessage::Want { number, have, start } => {
                    if have.is_none() && start.is_none() {
                        return Err(Error::Peer(format!("asks for entry {number}, and for nothing of it")));
                    }
                    let mut state = lock(&self.state);
                    let listed =
                        state.open.get_mut(&number).filter(|it| it.may_be_wanted).ok_or_else(|| unknown(number))?;
                    if start.as_ref().is_some_and(|start| start.have.end() > chunks_of(listed.size)) {
                        return Err(Error::Peer(format!("has more chunks of entry {number} than there are")));
                    }
                    listed.may_be_wanted = false;
                    let (path, name) = (std::mem::take(&mut listed.path), listed.name.clone());
                    let job = FileJob { number, path, name, size: listed.size, mtime: listed.mtime, have, start };
                    state.jobs.push_back(job);
                    self.changed.notify_all();
                }
                ReceiverMessage::Settled { number, was_there } => {
                    let listed = self.complete_entry(number).ok_or_else(|| unknown(number))?;
                    add(if was_there { &self.counts.same } else { &self.counts.made }, 1);
                    if was_there {
                        add(&self.counts.had_bytes, listed.size);
                    }
                    // Otherwise a lane has subtracted it.
                    if was_there && listed.may_be_wanted {
                        self.withdraw(listed.size);
                    }
                }
                ReceiverMessage::Failed { number, name, why } => {
                    let mut state = lock(&self.state);
                    if number >= state.listed {
                        return Err(unknown(number));
                    }
                    if !state.failed.insert(number) {
                        return Err(Error::Peer(format!("reports twice that entry {number} has failed")));
                    }
                    let is_known = state.broken.remove(&number);
                    drop(state);
                    let listed = self.complete_entry(number);
                    let is_over = listed.is_none();
                    // A lane that has its job, or will get it, does this itself.
                    if let Some(listed) = listed.filter(|listed| listed.may_be_wanted) {
                        self.withdraw(listed.size);
                    }
                    if is_known {
                        continue;
                    }
                    add(&self.counts.failed, 1);
                    // Links and directories may still fail after they were noted.
                    if is_over {
                        let less = |made: u64| made.checked_sub(1);
                        // A dishonest receiver may withdraw entries that it never had.
                        let _ = self.counts.made.fetch_update(Relaxed, Relaxed, less);
                    }
                    self.watch.note(&format!("`{name}` is not received: {}", crate::name::shown(why.as_bytes())));
                }
                ReceiverMessage::Summary(summary) => {
                    let state = lock(&self.state);
                    if !state.is_listed || !state.open.is_empty() {
                        return Err(Error::Peer("ended before all was done".to_owned()));
                    }
                    drop(state);
                    *lock(&self.summary) = Some(summary);
                    self.workers.done();
                }
            }
        }
        if lock(&self.summary).is_none() {
            return Err(Error::Peer("ended before all was done".to_owned()));
        }
        Ok(())
    }

    /// Returns whether the receiver still waits for that file.
    fn is_open(&self, number: u64) -> bool {
        !self.workers.is_over() && lock(&self.state).open.contains_key(&number)
    }
}

/// A stream for data, and the files that are sent on it.
struct DataStreamSender<'a, 's> {
    sender: &'s Sender<'a>,
    stream: SendStream,
    /// Records that wait to be sent.
    records: Vec<u8>,
    chunk: Vec<u8>,
    /// Bytes of its newest file that are written, or existed before.
    done: u64,
}

/// The reason why a file is aborted.
enum Stop {
    /// End of the transfer.
    All(Error),
    /// Failure of this file before it has begun.
    Before(String),
    /// Failure of this file.
    File(String),
    /// Cancellation by the receiver.
    Unwanted,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::All(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::File(in_words(&error))
    }
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it became shorter while it was read".to_owned(),
        _ => error.to_string(),
    }
}

impl<'a, 's> DataStreamSender<'a, 's> {
    fn new(sender: &'s Sender<'a>, stream: SendStream) -> Self {
        Self { sender, stream, records: Vec::new(), chunk: Vec::new(), done: 0 }
    }

    fn run(mut self) -> Result<(), Error> {
        while let Some(job) = self.next_job()? {
            self.done = 0;
            let sent = self.send(&job);
            // It has failed, or the receiver has it already.
            self.sender.withdraw(job.size.saturating_sub(self.done));
            match sent {
                Ok(()) => {}
                Err(Stop::All(error)) => return Err(error),
                Err(Stop::Unwanted) => self.put(&DataMessage::Broken { why: String::new() })?,
                Err(Stop::Before(why)) => {
                    self.failed(&job, &why);
                    self.put(&DataMessage::Unsent { number: job.number, why: brief(&why) })?;
                }
                Err(Stop::File(why)) => {
                    self.failed(&job, &why);
                    self.put(&DataMessage::Broken { why: brief(&why) })?;
                }
            }
        }
        self.flush()?;
        self.stream.finish()?;
        Ok(wait(self.stream.delivered())?)
    }

    /// Fails a file. It is complete when the receiver is notified.
    fn failed(&self, job: &FileJob, why: &str) {
        lock(&self.sender.state).broken.insert(job.number);
        self.sender.failed(&job.name, why);
    }

    /// Returns the next file; none when there will be no more.
    fn next_job(&mut self) -> Result<Option<FileJob>, Error> {
        loop {
            let mut state = lock(&self.sender.state);
            if self.sender.workers.is_over() {
                return Ok(None);
            }
            if let Some(job) = state.jobs.pop_front() {
                return Ok(Some(job));
            }
            if state.is_listed && state.open.is_empty() {
                return Ok(None);
            }
            if self.records.is_empty() {
                drop(wait_for_change(&self.sender.changed, state));
            } else {
                drop(state);
                self.flush()?;
            }
        }
    }

    fn put(&mut self, record: &DataMessage) -> Result<(), Error> {
        put(&mut self.records, record);
        if self.records.len() >= FULL { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        wait(self.stream.write_all(&self.records))?;
        self.records.clear();
        Ok(())
    }

    fn send(&mut self, job: &FileJob) -> Result<(), Stop> {
        let number = job.number;
        let before = |error: io::Error| Stop::Before(in_words(&error));
        let file = open(&job.path).map_err(before)?;
        if changed(&file, job).map_err(before)? {
            return Err(Stop::Before("it has changed since it was listed".to_owned()));
        }
        if job.have.is_some() || job.start.as_ref().is_some_and(|start| !start.have.is_empty()) {
            // The file is read here first, which may take long.
            self.flush()?;
        }
        if let Some(have) = job.have {
            if self.digest(&file, job).map_err(before)? == have {
                return Ok(self.put(&DataMessage::Same { number })?);
            }
            if job.start.is_none() {
                return Ok(self.put(&DataMessage::Differs { number })?);
            }
        }
        let skipped_chunks = self.skipped_chunks(&file, job).map_err(before)?;
        self.put(&DataMessage::File { number, chunks: skipped_chunks.chunks.count() })?;
        let had = skipped_chunks.chunks.bytes(job.size);
        add(&self.sender.counts.had_bytes, had);
        self.sender.withdraw(had);
        self.done = had;
        let mut tree = HashTree::default();
        let mut skipped_chunks = skipped_chunks.chunks.iter().zip(&skipped_chunks.values).peekable();
        for chunk in 0..chunks_of(job.size) {
            if let Some((_, value)) = skipped_chunks.next_if(|&(it, _)| it == chunk) {
                tree.push(*value);
                continue;
            }
            if !self.sender.is_open(number) {
                return Err(Stop::Unwanted);
            }
            let value = read_chunk(&file, &mut self.chunk, job.size, chunk)?;
            tree.push(value);
            let data = std::mem::take(&mut self.chunk);
            #[expect(clippy::cast_possible_truncation, reason = "a chunk has at most `CHUNK` bytes, 1 MiB")]
            let len = data.len() as u32;
            put(&mut self.records, &DataMessage::Chunk { len, value });
            let sent = if data.len() >= LARGE {
                self.flush().and_then(|()| Ok(wait(self.stream.write_all(&data))?))
            } else {
                self.records.extend_from_slice(&data);
                Ok(())
            };
            add(&self.sender.counts.moved_bytes, data.len() as u64);
            self.done += data.len() as u64;
            self.chunk = data;
            sent?;
        }
        if changed(&file, job)? {
            return Err(Stop::File("it changed while it was sent".to_owned()));
        }
        ended(&file, job.size)?;
        Ok(self.put(&DataMessage::End { digest: tree.root() })?)
    }

    /// The hash of a file.
    fn digest(&mut self, file: &File, job: &FileJob) -> io::Result<Digest> {
        let mut tree = HashTree::default();
        for chunk in 0..chunks_of(job.size) {
            if self.sender.workers.is_over() {
                break;
            }
            tree.push(read_chunk(file, &mut self.chunk, job.size, chunk)?);
        }
        if changed(file, job)? {
            return Err(io::Error::other("it changed while it was read"));
        }
        if !self.sender.workers.is_over() {
            ended(file, job.size)?;
        }
        Ok(tree.root())
    }

    /// Reads the chunks that the receiver has. If they differ, all are sent.
    fn skipped_chunks(&mut self, file: &File, job: &FileJob) -> io::Result<SkippedChunks> {
        let Some(start) = &job.start else { return Ok(SkippedChunks::default()) };
        let (mut values, mut hash) = (Vec::new(), ValuesHash::default());
        for chunk in start.have.iter() {
            if self.sender.workers.is_over() {
                break;
            }
            let value = read_chunk(file, &mut self.chunk, job.size, chunk)?;
            values.push(value);
            hash.push(&value);
        }
        let is_same = hash.digest() == start.values;
        Ok(if is_same { SkippedChunks { chunks: start.have.clone(), values } } else { SkippedChunks::default() })
    }
}

/// Chunks that are not sent, because the receiver has them, and their values in the same order.
#[derive(Default)]
struct SkippedChunks {
    chunks: ChunkSet,
    values: Vec<Digest>,
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    File::options().read(true).custom_flags(flags.bits()).open(path)
}

/// Fails if a file has more bytes than its size, as do some files that a kernel generates while they are read.
fn ended(file: &File, size: u64) -> io::Result<()> {
    match file.read_at(&mut [0], size)? {
        0 => Ok(()),
        _ => Err(io::Error::other("it has more bytes than its size")),
    }
}

/// Returns whether a file is no longer the one that was listed.
fn changed(file: &File, job: &FileJob) -> io::Result<bool> {
    let now = file.metadata()?;
    Ok(!now.is_file() || now.size() != job.size || mtime_of(&now) != job.mtime)
}
