//! The receiver: requests files, and writes the data that arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver as Queue, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Scope;

use nix::errno::Errno;
use transport::{Connection, RecvStream, wait};

use crate::dest_dir::{
    DestDir, ExistingEntry, FinalMode, Modes, NodeType, OWNER, View, cannot_replace, finish_file, make_link,
};
use crate::digest::CHUNK;
use crate::entry::{Entry, EntryKind};
use crate::error::Error;
use crate::message::{
    DataMessage, Hello, Listing, MessageReader, ReceiverMessage, Summary, URGENT, Welcome, brief, first_frame,
};
use crate::message_writer::MessageWriter;
use crate::name::{Name, PARTIALS, shown};
use crate::partial::{Partial, PartialFiles, Resume, key};
use crate::progress::{ProgressCounters, ProgressObserver, add, get};
use crate::send::MAX_OPEN;
use crate::worker_pool::{POLL_INTERVAL, WorkerPool, lock};

/// Minimum size of files that are synced to the disk one by one, in bytes; smaller ones are synced in batches.
const LARGE: u64 = 4 << 20;
/// The files and bytes of a batch.
const BATCH: (usize, u64) = (2_048, 64 << 20);
/// Files that wait to be put on the disk.
const WAITING: usize = 4_096;
/// Bytes of the names of directories and links, which are remembered until the end.
const MAX_DEFERRED_BYTES: usize = 256 << 20;
/// Additional size that each of them counts.
const LATER_COST: usize = 96;

/// Options of a receiver.
#[derive(Clone, Copy, Default, Debug)]
pub struct ReceiveOptions {
    /// Set if existing files that differ are replaced.
    pub replace: bool,
    /// Permissions that entries get.
    pub modes: Modes,
}

/// A requested file.
struct RequestedFile {
    entry: Entry,
    key: String,
    resume: Resume,
    /// The existing entry that it may replace.
    existing: Option<ExistingEntry>,
    has_hash: bool,
}

#[derive(Default)]
struct State {
    /// Requested files that are not complete; the entry of a file that has begun is empty.
    open: BTreeMap<u64, Option<Box<RequestedFile>>>,
    /// The keys of their partial files.
    keys: BTreeSet<String>,
}

/// A file that was completely received.
struct CompleteFile {
    number: u64,
    wanted: Box<RequestedFile>,
    /// Kept open if it is large.
    file: Option<File>,
}

/// Work that is left until all files are complete.
#[derive(Default)]
struct DeferredEntries {
    bytes: usize,
    directories: Vec<NotedDirectory>,
    links: Vec<(u64, Entry)>,
}

/// A directory that gets its time, and perhaps its mode, at the end.
struct NotedDirectory {
    number: u64,
    entry: Entry,
    mode: FinalMode,
}

/// Comparison of files of equal size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CompareBy {
    /// By their times.
    Times,
    /// By their hashes.
    Hashes,
}

/// Presence of an entry before the transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Presence {
    /// Existed, and is the same.
    Existed,
    /// Made, or brought up to date.
    New,
}

struct TransferReceiver<'a> {
    workers: WorkerPool<'a>,
    folder: &'a DestDir,
    partial_files: PartialFiles<'a>,
    options: ReceiveOptions,
    watch: &'a dyn ProgressObserver,
    counts: ProgressCounters,
    state: Mutex<State>,
    /// Bytes that requested files still need.
    reserved: AtomicU64,
    message_writer: MessageWriter,
    deferred: Mutex<DeferredEntries>,
    is_listed: AtomicBool,
}

/// Receives from a client that was admitted. Returns the result, when all is on the disk and the sender is notified.
///
/// # Errors
/// If the connection ends, the peer violates the protocol, or `watch` ends it. Files that fail are no error: they are
/// counted, and `watch` was notified of each.
pub fn receive(
    connection: &Connection,
    folder: &DestDir,
    options: ReceiveOptions,
    watch: &dyn ProgressObserver,
) -> Result<Summary, Error> {
    let receiver = TransferReceiver {
        workers: WorkerPool::new(connection),
        folder,
        partial_files: PartialFiles::new(folder).map_err(Error::local("read", folder.path().join(PARTIALS)))?,
        options,
        watch,
        counts: ProgressCounters::default(),
        state: Mutex::default(),
        reserved: AtomicU64::new(0),
        message_writer: MessageWriter::default(),
        deferred: Mutex::default(),
        is_listed: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let it = &receiver;
        // The queue ends after the listing, all lanes and the thread that starts them.
        let (completed, queue) = sync_channel(WAITING);
        it.workers.spawn_with(scope, completed, move |completed| it.begin(connection, scope, completed, queue));
        it.workers.wait(|| watch.on_progress(&it.counts.progress()));
    });
    let summary = receiver.summary();
    receiver.workers.end()?;
    Ok(summary)
}

impl<'a> TransferReceiver<'a> {
    fn begin<'s>(
        &'s self,
        connection: &'s Connection,
        scope: &'s Scope<'s, '_>,
        completed: &SyncSender<CompleteFile>,
        queue: Queue<CompleteFile>,
    ) -> Result<(), Error>
    where
        'a: 's,
    {
        let stream = wait(connection.accept_stream())?;
        let Some(mut control) = stream.send else {
            return Err(Error::Peer("opened a unidirectional stream before its first message".to_owned()));
        };
        control.set_priority(URGENT);
        let mut listing = MessageReader::new(stream.receive);
        let hello: Hello = listing.first()?;
        add(&self.counts.total_bytes, hello.bytes);
        add(&self.counts.total_entries, hello.entries);
        wait(control.write_all(&first_frame(&Welcome::new(self.free()?))))?;
        self.workers.spawn(scope, move || self.message_writer.run(&self.workers, control));
        self.workers.spawn(scope, move || self.finish(&queue));
        let comparison = if hello.checksum { CompareBy::Hashes } else { CompareBy::Times };
        self.workers
            .spawn_with(scope, completed.clone(), move |_until_listed| self.handle_listing(listing, comparison));
        for _ in 0..hello.lanes {
            let stream = wait(connection.accept_stream())?;
            if stream.send.is_some() {
                return Err(Error::Peer("opened a stream of two directions for data".to_owned()));
            }
            self.workers.spawn_with(scope, completed.clone(), move |completed| {
                DataStreamReceiver { receiver: self, completed, data: Vec::new() }.run(stream.receive)
            });
        }
        Ok(())
    }

    fn free(&self) -> Result<u64, Error> {
        self.folder.free_bytes().map_err(Error::local("look at", self.folder.path()))
    }

    fn summary(&self) -> Summary {
        let counts = &self.counts;
        Summary {
            made: get(&counts.made),
            same: get(&counts.same),
            failed: get(&counts.failed),
            moved_bytes: get(&counts.moved_bytes),
            had_bytes: get(&counts.had_bytes),
        }
    }

    /// Records an entry that is not received.
    fn fail(&self, number: u64, name: &Name, why: &str) {
        add(&self.counts.failed, 1);
        add(&self.counts.entries, 1);
        self.watch.note(&format!("`{name}` is not received: {why}"));
        self.message_writer
            .push(&self.workers, &ReceiverMessage::Failed { number, name: name.clone(), why: brief(why) });
    }

    fn settle(&self, number: u64, presence: Presence) {
        let was_there = presence == Presence::Existed;
        add(if was_there { &self.counts.same } else { &self.counts.made }, 1);
        add(&self.counts.entries, 1);
        self.message_writer.push(&self.workers, &ReceiverMessage::Settled { number, was_there });
    }

    /// Removes a requested file that is complete.
    fn close(&self, number: u64, key: &str) {
        let mut state = lock(&self.state);
        state.open.remove(&number);
        state.keys.remove(key);
    }

    fn handle_listing(&self, mut listing: MessageReader<RecvStream>, comparison: CompareBy) -> Result<(), Error> {
        let (mut view, mut number) = (View::new(self.folder), 0);
        while let Some(message) = listing.next::<Listing>()? {
            match message {
                Listing::Entry(entry) => {
                    self.handle_entry(&mut view, number, entry, comparison)?;
                    number += 1;
                }
                Listing::End { entries, failed } => {
                    if entries != number {
                        return Err(Error::Peer(format!(
                            "reports that it listed {entries} entries, and listed {number}"
                        )));
                    }
                    add(&self.counts.failed, failed.min(u64::from(u32::MAX)));
                    self.is_listed.store(true, Ordering::Release);
                    return match listing.next::<Listing>()? {
                        None => Ok(()),
                        Some(_) => Err(Error::Peer("continues after the end of its listing".to_owned())),
                    };
                }
            }
        }
        Err(Error::Peer("ended before it had listed all".to_owned()))
    }

    /// Decides the handling of an entry.
    fn handle_entry(&self, view: &mut View, number: u64, entry: Entry, comparison: CompareBy) -> Result<(), Error> {
        match entry.kind {
            EntryKind::File { .. } => self.handle_file(view, number, entry, comparison),
            EntryKind::Directory => {
                match self.make_directory(view, &entry) {
                    // An existing one gets its time, so it counts as made as well.
                    Ok(mode) => {
                        self.note_cost(&entry)?;
                        lock(&self.deferred).directories.push(NotedDirectory { number, entry, mode });
                        self.settle(number, Presence::New);
                    }
                    Err(error) => self.fail(number, &entry.name, &error.to_string()),
                }
                Ok(())
            }
            EntryKind::Link { .. } => {
                if let Err(why) = entry.check_target() {
                    self.fail(number, &entry.name, &why.to_string());
                } else {
                    self.note_cost(&entry)?;
                    lock(&self.deferred).links.push((number, entry));
                    self.settle(number, Presence::New);
                }
                Ok(())
            }
        }
    }

    /// Makes a directory, unless it exists. Returns the change to its mode at the end.
    fn make_directory(&self, view: &mut View, entry: &Entry) -> io::Result<FinalMode> {
        let existing = view.make_directory(&entry.name, entry.mode | OWNER)?;
        if self.options.modes == Modes::Exact {
            existing.map_or(Ok(()), |existing| view.open_to_owner(&entry.name, &existing))?;
            return Ok(FinalMode::Exact);
        }
        let is_open_to_owner = entry.mode & OWNER == OWNER;
        match existing {
            _ if is_open_to_owner => Ok(FinalMode::Kept),
            None => {
                self.partial_files.mark_open(entry)?;
                Ok(FinalMode::Closed)
            }
            // Created by a transfer that did not complete.
            Some(_) if self.partial_files.is_marked_open(entry) => Ok(FinalMode::Closed),
            Some(_) => Ok(FinalMode::Kept),
        }
    }

    /// Sets a directory's time and mode.
    fn finish_directory(&self, view: &mut View, directory: &NotedDirectory) -> io::Result<()> {
        let NotedDirectory { entry, mode, .. } = directory;
        view.finish_directory(&entry.name, *mode, entry.mode, entry.mtime)?;
        if *mode != FinalMode::Kept {
            self.partial_files.unmark_open(entry);
        }
        Ok(())
    }

    /// Counts a directory or a link that is remembered until the end.
    fn note_cost(&self, entry: &Entry) -> Result<(), Error> {
        let mut deferred = lock(&self.deferred);
        let target = if let EntryKind::Link { target } = &entry.kind { target.len() } else { 0 };
        deferred.bytes += entry.name.bytes().len() + target + LATER_COST;
        if deferred.bytes > MAX_DEFERRED_BYTES {
            return Err(Error::Peer(format!(
                "has more directories and links than can be remembered here: their names take over {MAX_DEFERRED_BYTES} bytes"
            )));
        }
        Ok(())
    }

    /// Returns the permissions of a file that is created or updated; `there` is the existing entry of that name.
    fn permissions(&self, entry: &Entry, existing: Option<&ExistingEntry>) -> u32 {
        match (self.options.modes, existing) {
            (Modes::Exact, _) => entry.mode,
            (Modes::OfNew, Some(existing)) => existing.permissions(),
            (Modes::OfNew, None) => entry.mode & self.folder.mask(),
        }
    }

    fn handle_file(&self, view: &mut View, number: u64, entry: Entry, comparison: CompareBy) -> Result<(), Error> {
        let existing = match view.lookup(&entry.name) {
            Ok(existing) => existing,
            Err(error) => {
                self.fail(number, &entry.name, &error.to_string());
                return Ok(());
            }
        };
        let (size, mut have) = (entry.size(), None);
        if let Some(existing) = &existing {
            let may_be_same = existing.node_type == NodeType::File && existing.size == size;
            if existing.node_type != NodeType::File {
                self.fail(number, &entry.name, &cannot_replace(existing).to_string());
                return Ok(());
            }
            if may_be_same && comparison == CompareBy::Hashes {
                have = match view.digest(&entry.name, size, || !self.workers.is_over()) {
                    Ok(digest) => Some(digest),
                    Err(error) => {
                        self.fail(number, &entry.name, &format!("the file that is here cannot be read: {error}"));
                        return Ok(());
                    }
                };
            } else if may_be_same && existing.is_of(entry.mtime) {
                self.is_same(view, number, &entry, existing);
                return Ok(());
            }
            if have.is_none() && !self.options.replace {
                self.fail(number, &entry.name, DIFFERS);
                return Ok(());
            }
        }
        let key = key(&entry);
        {
            let mut state = lock(&self.state);
            if state.open.len() >= MAX_OPEN {
                return Err(Error::Peer(format!("lists more than {MAX_OPEN} files before it sends any")));
            }
            if !state.keys.insert(key.clone()) {
                return Err(Error::Peer(format!("lists `{}` twice", entry.name)));
            }
        }
        let resume = self.partial_files.resume(&entry, || !self.workers.is_over());
        let needs = size - resume.bytes(size);
        let (free, reserved) = (self.free()?, self.reserved.load(Ordering::Relaxed));
        if needs > free.saturating_sub(reserved) {
            lock(&self.state).keys.remove(&key);
            self.fail(number, &entry.name, &no_room(needs, free, reserved));
            return Ok(());
        }
        self.reserved.fetch_add(needs, Ordering::Relaxed);
        let start = (existing.is_none() || self.options.replace).then(|| resume.start());
        let wanted = RequestedFile { entry, key, resume, existing, has_hash: have.is_some() };
        lock(&self.state).open.insert(number, Some(Box::new(wanted)));
        self.message_writer.push(&self.workers, &ReceiverMessage::Want { number, have, start });
        Ok(())
    }

    /// Settles a file that exists and is the same.
    fn is_same(&self, view: &mut View, number: u64, entry: &Entry, existing: &ExistingEntry) {
        match view.touch(&entry.name, existing, self.permissions(entry, Some(existing)), entry.mtime) {
            Ok(()) => {
                add(&self.counts.had_bytes, entry.size());
                self.settle(number, Presence::Existed);
            }
            Err(error) => self.fail(number, &entry.name, &format!("its mode and time cannot be set: {error}")),
        }
    }

    /// Syncs files to the disk and moves them to their final names as they arrive, and concludes the transfer.
    fn finish(&self, queue: &Queue<CompleteFile>) -> Result<(), Error> {
        let mut view = View::new(self.folder);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        loop {
            let next = queue.recv_timeout(POLL_INTERVAL);
            if self.workers.is_over() {
                return Ok(());
            }
            let is_idle = next.is_err();
            let is_over = matches!(next, Err(RecvTimeoutError::Disconnected));
            match next {
                Ok(completed) if completed.file.is_some() => {
                    let synced = completed.file.as_ref().map_or(Ok(()), File::sync_all);
                    self.place(&mut view, completed, synced);
                }
                Ok(completed) => {
                    bytes += completed.wanted.entry.size();
                    batch.push(completed);
                }
                Err(_) => {}
            }
            if !batch.is_empty() && (is_idle || batch.len() >= BATCH.0 || bytes >= BATCH.1) {
                let synced = self.folder.sync();
                for completed in batch.drain(..) {
                    let synced =
                        synced.as_ref().map(drop).map_err(|error| io::Error::new(error.kind(), error.to_string()));
                    self.place(&mut view, completed, synced);
                }
                bytes = 0;
            }
            if is_over {
                return self.conclude(&mut view);
            }
        }
    }

    /// Moves a file to its final name.
    fn place(&self, view: &mut View, completed: CompleteFile, synced: io::Result<()>) {
        let CompleteFile { number, wanted, .. } = completed;
        let (name, key) = (&wanted.entry.name, &wanted.key);
        let placed = synced.and_then(|()| view.place(key, name, wanted.existing.as_ref()));
        self.close(number, key);
        match placed {
            Ok(()) => {
                if wanted.entry.size() > CHUNK as u64 {
                    self.partial_files.remove_sums(key);
                }
                self.settle(number, Presence::New);
            }
            Err(error) => self.fail(number, name, &self.explained(&error, wanted.entry.size(), wanted.entry.size())),
        }
    }

    /// Makes links, sets the modes and times of directories, and notifies the sender.
    fn conclude(&self, view: &mut View) -> Result<(), Error> {
        let open = lock(&self.state).open.len();
        if open > 0 {
            return Err(Error::Peer(format!("ended without {open} files that it was asked for")));
        }
        if !self.is_listed.load(Ordering::Acquire) {
            // The part that failed reports the reason.
            return Ok(());
        }
        let DeferredEntries { mut directories, links, .. } = std::mem::take(&mut *lock(&self.deferred));
        // They were settled when they were noted.
        let undone = |number, name: &Name, error: &io::Error| {
            self.counts.made.fetch_sub(1, Ordering::Relaxed);
            self.fail(number, name, &error.to_string());
        };
        for (number, entry) in links {
            if let Err(error) = self.link(view, &entry) {
                undone(number, &entry.name, &error);
            }
        }
        // A directory's contents come after it, and change its time.
        while let Some(directory) = directories.pop() {
            if let Err(error) = self.finish_directory(view, &directory) {
                undone(directory.number, &directory.entry.name, &error);
            }
        }
        self.folder.sync().map_err(Error::local("write", self.folder.path()))?;
        self.message_writer.push(&self.workers, &ReceiverMessage::Summary(self.summary()));
        self.workers.done();
        self.message_writer.end();
        Ok(())
    }

    fn link(&self, view: &mut View, entry: &Entry) -> io::Result<()> {
        let EntryKind::Link { target } = &entry.kind else { return Ok(()) };
        let existing = view.lookup(&entry.name)?;
        match &existing {
            Some(existing) if existing.node_type != NodeType::Link => return Err(cannot_replace(existing)),
            Some(_) if view.is_link_to(&entry.name, target)? => return Ok(()),
            Some(_) if !self.options.replace => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "a link to another target is here; --overwrite replaces it",
                ));
            }
            _ => {}
        }
        let key = key(entry);
        make_link(self.folder, &key, target, entry.mtime)?;
        let placed = view.place(&key, &entry.name, existing.as_ref());
        if placed.is_err() {
            self.partial_files.remove(&key);
        }
        placed
    }

    /// Returns the reason why a file could not be written, with the free space.
    fn explained(&self, error: &io::Error, at: u64, size: u64) -> String {
        let full = [Errno::ENOSPC, Errno::EDQUOT, Errno::EFBIG].map(|it| it as i32);
        match (error.raw_os_error().filter(|it| full.contains(it)), self.folder.free_bytes()) {
            (Some(_), Ok(free)) => {
                format!(
                    "{error}, after {at} of its {size} bytes; {free} bytes are free; received data is kept, and the next transfer resumes there"
                )
            }
            _ => error.to_string(),
        }
    }
}

/// The reason why an existing file is kept.
const DIFFERS: &str = "a file that differs is here; --overwrite at the receiver replaces it";

fn no_room(needs: u64, free: u64, reserved: u64) -> String {
    let others = if reserved > 0 { format!(", {reserved} of them for other files") } else { String::new() };
    format!("there is no room for it: it needs {needs} bytes, and {free} are free{others}")
}

/// A stream of data.
struct DataStreamReceiver<'a, 's> {
    receiver: &'s TransferReceiver<'a>,
    completed: &'s SyncSender<CompleteFile>,
    data: Vec<u8>,
}

/// The file that is being received on a lane.
struct ReceivingFile {
    number: u64,
    wanted: Box<RequestedFile>,
    /// None if it failed here: its remaining data is dropped.
    partial: Option<Partial>,
    /// Bytes received although it failed.
    surplus: u64,
}

impl DataStreamReceiver<'_, '_> {
    fn run(mut self, stream: RecvStream) -> Result<(), Error> {
        let mut records = MessageReader::new(stream);
        let mut current: Option<ReceivingFile> = None;
        let out_of_turn = || Error::Peer("sent a part of a file out of turn".to_owned());
        while let Some(record) = records.next::<DataMessage>()? {
            match (record, &mut current) {
                (DataMessage::File { number, chunks }, None) => current = Some(self.begin(number, chunks)?),
                (DataMessage::Chunk { len, value }, Some(file)) => {
                    self.data.resize(len as usize, 0);
                    records.data(&mut self.data)?;
                    self.chunk(file, &value)?;
                }
                (DataMessage::End { digest }, Some(_)) => {
                    let Some(file) = current.take() else { continue };
                    self.end(file, &digest)?;
                }
                (DataMessage::Broken { why }, Some(_)) => {
                    let Some(file) = current.take() else { continue };
                    self.broken(&file, &why);
                }
                (DataMessage::Unsent { number, why }, None) => {
                    let wanted = self.take(number)?;
                    self.unreserve(&wanted);
                    self.receiver.close(number, &wanted.key);
                    self.receiver.fail(number, &wanted.entry.name, &at_the_sender(&why));
                }
                (DataMessage::Same { number }, None) => {
                    let wanted = self.take(number)?;
                    let (Some(existing), true) = (&wanted.existing, wanted.has_hash) else { return Err(out_of_turn()) };
                    self.unreserve(&wanted);
                    self.receiver.close(number, &wanted.key);
                    self.receiver.is_same(&mut View::new(self.receiver.folder), number, &wanted.entry, existing);
                }
                (DataMessage::Differs { number }, None) => {
                    let wanted = self.take(number)?;
                    if !wanted.has_hash || self.receiver.options.replace {
                        return Err(out_of_turn());
                    }
                    self.unreserve(&wanted);
                    self.receiver.close(number, &wanted.key);
                    self.receiver.fail(number, &wanted.entry.name, DIFFERS);
                }
                _ => return Err(out_of_turn()),
            }
        }
        if current.is_some() { Err(Error::Peer("ended within a file".to_owned())) } else { Ok(()) }
    }

    /// Takes a requested file that has not begun.
    fn take(&self, number: u64) -> Result<Box<RequestedFile>, Error> {
        let taken = lock(&self.receiver.state).open.get_mut(&number).and_then(Option::take);
        taken.ok_or_else(|| Error::Peer(format!("sends entry {number}, which was not asked for")))
    }

    /// Releases the space reserved for a file that has not begun.
    fn unreserve(&self, wanted: &RequestedFile) {
        self.receiver.reserved.fetch_sub(missing(wanted), Ordering::Relaxed);
    }

    fn begin(&self, number: u64, chunks: u64) -> Result<ReceivingFile, Error> {
        let mut wanted = self.take(number)?;
        let receiver = self.receiver;
        if wanted.existing.is_some() && !receiver.options.replace {
            return Err(Error::Peer(format!("sends entry {number}, which must not be replaced")));
        }
        let before = missing(&wanted);
        if chunks == 0 {
            wanted.resume = Resume::default();
        } else if chunks != wanted.resume.chunks() {
            return Err(Error::Peer(format!("leaves {chunks} chunks of entry {number} out, which are not here")));
        }
        receiver.reserved.fetch_add(missing(&wanted) - before, Ordering::Relaxed);
        let had = wanted.resume.bytes(wanted.entry.size());
        let mut current = ReceivingFile { number, partial: None, wanted, surplus: 0 };
        match Partial::new(&receiver.partial_files, &current.wanted.entry, std::mem::take(&mut current.wanted.resume)) {
            Ok(partial) => {
                add(&receiver.counts.had_bytes, had);
                current.partial = Some(partial);
            }
            Err(error) => {
                receiver.reserved.fetch_sub(current.wanted.entry.size() - had, Ordering::Relaxed);
                self.fail(&current, &format!("it cannot be written: {error}"));
            }
        }
        Ok(current)
    }

    /// Fails a file. Its remaining data is dropped.
    fn fail(&self, file: &ReceivingFile, why: &str) {
        self.receiver.close(file.number, &file.wanted.key);
        self.receiver.fail(file.number, &file.wanted.entry.name, why);
    }

    fn chunk(&self, file: &mut ReceivingFile, value: &crate::digest::Digest) -> Result<(), Error> {
        let (data, receiver) = (&self.data, self.receiver);
        let Some(partial) = &mut file.partial else {
            // The sender had not been notified yet, but it must not send more than the file has.
            file.surplus += data.len() as u64;
            return if file.surplus > file.wanted.entry.size() {
                Err(Error::Peer(format!("sends more of entry {} than it has", file.number)))
            } else {
                Ok(())
            };
        };
        if data.len() != partial.next_len() {
            return Err(Error::Peer(format!(
                "sends a chunk of {} bytes, where entry {} has one of {}",
                data.len(),
                file.number,
                partial.next_len()
            )));
        }
        let size = file.wanted.entry.size();
        let written = if partial.fits(data, value) {
            partial.write(data, *value).map_err(|error| receiver.explained(&error, size - partial.missing(), size))
        } else {
            Err("a part of it came with another checksum than the sender's".to_owned())
        };
        match written {
            Ok(()) => {
                receiver.reserved.fetch_sub(data.len() as u64, Ordering::Relaxed);
                add(&receiver.counts.moved_bytes, data.len() as u64);
            }
            Err(why) => {
                receiver.reserved.fetch_sub(partial.missing(), Ordering::Relaxed);
                file.partial = None;
                self.fail(file, &why);
            }
        }
        Ok(())
    }

    fn end(&self, file: ReceivingFile, digest: &crate::digest::Digest) -> Result<(), Error> {
        let ReceivingFile { number, wanted, partial, .. } = file;
        let Some(partial) = partial else { return Ok(()) };
        if partial.missing() > 0 {
            return Err(Error::Peer(format!("ends entry {number} before its end")));
        }
        let (receiver, entry) = (self.receiver, &wanted.entry);
        let own = match partial.digest() {
            Ok(own) => own,
            Err(error) => {
                receiver.close(number, &wanted.key);
                receiver.fail(number, &entry.name, &format!("the checksums of its parts cannot be read: {error}"));
                return Ok(());
            }
        };
        let (key, data) = partial.end();
        if own != *digest {
            receiver.partial_files.remove(&key);
            receiver.close(number, &wanted.key);
            receiver.fail(number, &entry.name, "it came with another checksum than the sender's");
            return Ok(());
        }
        let permissions = receiver.permissions(entry, wanted.existing.as_ref());
        if let Err(error) = finish_file(&data, permissions, entry.mtime) {
            receiver.close(number, &wanted.key);
            receiver.fail(number, &entry.name, &format!("its mode and time cannot be set: {error}"));
            return Ok(());
        }
        let data = (entry.size() >= LARGE).then_some(data);
        // The part that failed reports the end of the queue.
        let _ = self.completed.send(CompleteFile { number, wanted, file: data });
        Ok(())
    }

    /// Handles a file that the sender aborted.
    fn broken(&self, file: &ReceivingFile, why: &str) {
        let Some(partial) = &file.partial else { return };
        let receiver = self.receiver;
        receiver.reserved.fetch_sub(partial.missing(), Ordering::Relaxed);
        self.fail(file, &at_the_sender(why));
    }
}

/// Returns the sender's reason for a file that failed there.
fn at_the_sender(why: &str) -> String {
    format!("at the sender: {}", shown(why.as_bytes()))
}

/// Bytes that a file which has not begun needs.
fn missing(wanted: &RequestedFile) -> u64 {
    wanted.entry.size() - wanted.resume.bytes(wanted.entry.size())
}
