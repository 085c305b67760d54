//! Incomplete files: their data, and in a second file the values of their verified chunks.
//!
//! A partial file's name is a hash of the file's name and one of its size and time, so another version of the file
//! begins again. After a kill each chunk is checked: a chunk that does not match its recorded value, or has none, is
//! discarded. New directories that their owner may not write to in the end have a mark here until then.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Mutex;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstatat};

use crate::chunks::ChunkSet;
use crate::dest_dir::{DestDir, unlink};
use crate::digest::{CHUNK, Digest, HashTree, ValuesHash, chunk_len, chunks_of, of_bytes, of_chunk, read_chunk};
use crate::entry::Entry;
use crate::message::Start;
use crate::worker_pool::lock;

/// Suffix of the file with the chunks' values.
const SUMS: &str = ".sums";
/// Suffix of a mark's name: of a new directory that its owner may write to only until all files are complete.
const OPEN: &str = ".open";
/// Number of bytes of a hash that are used in a name.
const OF_HASH: usize = 16;
const VALUE: usize = size_of::<Digest>();

/// The directory of partial files.
pub(crate) struct PartialFiles<'a> {
    directory: &'a OwnedFd,
    /// Existing names. Their number is limited: further entries are ignored.
    names: Mutex<BTreeSet<String>>,
}

/// Maximum number of names that are remembered; further ones are ignored, and their files begin again.
const MAX_NAMES: usize = 1 << 20;

/// Existing chunks of a file.
#[derive(Clone, Default, Debug)]
pub(crate) struct Resume {
    have: ChunkSet,
    values: ValuesHash,
}

impl Resume {
    pub(crate) fn start(&self) -> Start {
        Start { have: self.have.clone(), values: self.values.digest() }
    }

    /// Returns the number of existing chunks.
    pub(crate) fn chunks(&self) -> u64 {
        self.have.count()
    }

    /// Returns the number of existing bytes of a file of this size.
    pub(crate) fn bytes(&self, size: u64) -> u64 {
        self.have.bytes(size)
    }
}

/// The first half of a hash in hexadecimal digits.
fn half(bytes: &[u8]) -> String {
    of_bytes(bytes)[..OF_HASH].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The name of an entry's partial file: its first half is of the entry's name.
pub(crate) fn key(entry: &Entry) -> String {
    let version = format!("{} {} {}", entry.size(), entry.mtime.s, entry.mtime.ns);
    format!("{}-{}", half(entry.name.bytes()), half(version.as_bytes()))
}

/// The name of a directory's mark.
fn mark(entry: &Entry) -> String {
    half(entry.name.bytes()) + OPEN
}

impl<'a> PartialFiles<'a> {
    pub(crate) fn new(folder: &'a DestDir) -> io::Result<Self> {
        let directory = folder.partials();
        let mut names = BTreeSet::new();
        let mut opened = Dir::from_fd(directory.try_clone()?)?;
        for entry in opened.iter().take(MAX_NAMES) {
            names.insert(entry?.file_name().to_string_lossy().into_owned());
        }
        let is_left = |name: &&String| name.strip_suffix(SUMS).is_some_and(|key| !names.contains(key));
        if names.len() < MAX_NAMES {
            // A process was killed after the file got its final name and before its checksums were removed.
            names.iter().filter(is_left).for_each(|name| {
                let _ = unlink(directory, name);
            });
        }
        Ok(Self { directory, names: Mutex::new(names) })
    }

    /// Finds the existing chunks of a file, by reading it. Older versions of it are removed.
    pub(crate) fn resume(&self, entry: &Entry, should_continue: impl Fn() -> bool) -> Resume {
        let (key, mut resume) = (key(entry), Resume::default());
        let mut names = lock(&self.names);
        let of_file = format!("{}-", &key[..2 * OF_HASH]);
        let found: Vec<String> =
            names.range(of_file.clone()..).take_while(|name| name.starts_with(&of_file)).cloned().collect();
        for name in found.iter().filter(|name| !name.starts_with(&key)) {
            let _ = unlink(self.directory, name);
            names.remove(name);
        }
        let sums = key.clone() + SUMS;
        let is_there = names.contains(&key) && names.contains(&sums);
        drop(names);
        if is_there {
            // Unreadable chunks begin again.
            let _ = self.verify(&key, &sums, entry.size(), &mut resume, should_continue);
        }
        resume
    }

    fn verify(
        &self,
        key: &str,
        sums: &str,
        size: u64,
        resume: &mut Resume,
        should_continue: impl Fn() -> bool,
    ) -> io::Result<()> {
        let (file, mut sums) = (self.open(key)?, io::BufReader::new(self.open(sums)?));
        let (mut value, mut data) = ([0; VALUE], Vec::new());
        for chunk in (0..chunks_of(size)).take_while(|_| should_continue()) {
            sums.read_exact(&mut value)?;
            // Chunks that do not fit into the set are sent again.
            if read_chunk(&file, &mut data, size, chunk)? == value && resume.have.push(chunk) {
                resume.values.push(&value);
            }
        }
        Ok(())
    }

    fn open(&self, name: &str) -> io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let own = Mode::S_IRUSR | Mode::S_IWUSR;
        let opened = match openat(self.directory, name, flags, own) {
            // It got its final mode, and the process was killed before its final name. No other user can write in this
            // directory.
            Err(Errno::EACCES) => {
                fchmodat(self.directory, name, own, FchmodatFlags::FollowSymlink)?;
                openat(self.directory, name, flags, own)
            }
            opened => opened,
        };
        let file = File::from(opened?);
        let seen = file.metadata()?;
        if seen.is_file() && seen.nlink() > 1 {
            // It already has its final name, by a link: the file to receive now is another one.
            unlink(self.directory, name)?;
            return Ok(File::from(openat(self.directory, name, flags | OFlag::O_EXCL, own)?));
        }
        if seen.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
    }

    /// Marks a directory that this receiver made: its owner has more permissions until the end. Without the mark, a transfer
    /// that resumes after a kill would take it for the user's.
    pub(crate) fn mark_open(&self, directory: &Entry) -> io::Result<()> {
        self.open(&mark(directory)).map(drop)
    }

    pub(crate) fn is_marked_open(&self, directory: &Entry) -> bool {
        fstatat(self.directory, mark(directory).as_str(), AtFlags::AT_SYMLINK_NOFOLLOW).is_ok()
    }

    pub(crate) fn unmark_open(&self, directory: &Entry) {
        let _ = unlink(self.directory, &mark(directory));
    }

    /// Removes a partial file and its associated files.
    pub(crate) fn remove(&self, key: &str) {
        let _ = unlink(self.directory, key);
        self.remove_sums(key);
    }

    /// Removes the chunk values of a file that has its final name.
    pub(crate) fn remove_sums(&self, key: &str) {
        let _ = unlink(self.directory, &(key.to_owned() + SUMS));
    }
}

/// A file that is being received.
pub(crate) struct Partial {
    pub(crate) key: String,
    file: File,
    /// None for a file of one chunk: it is sent completely in any case.
    sums: Option<File>,
    /// The value of the only chunk, where there is no file of values.
    only: Option<Digest>,
    size: u64,
    /// Chunks that were there before.
    have: ChunkSet,
    /// The next chunk; none when all exist.
    next: Option<u64>,
    /// Bytes that are missing.
    missing: u64,
}

impl Partial {
    /// Begins a file, or continues it.
    pub(crate) fn new(partial_files: &PartialFiles, entry: &Entry, resume: Resume) -> io::Result<Self> {
        let (key, size, have) = (key(entry), entry.size(), resume.have);
        let file = partial_files.open(&key)?;
        file.set_len(size.min(have.end() * CHUNK as u64))?;
        let sums = if chunks_of(size) > 1 { Some(partial_files.open(&(key.clone() + SUMS))?) } else { None };
        if let Some(sums) = &sums {
            sums.set_len(have.end() * VALUE as u64)?;
        }
        let (next, missing) = (have.next_missing(0, chunks_of(size)), size - have.bytes(size));
        Ok(Self { key, file, sums, only: None, size, have, next, missing })
    }

    /// The bytes that are missing.
    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// Bytes that the next chunk has; 0 at the end.
    pub(crate) fn next_len(&self) -> usize {
        self.next.map_or(0, |chunk| chunk_len(self.size, chunk))
    }

    /// Returns whether the next chunk's data have this value.
    pub(crate) fn fits(&self, data: &[u8], value: &Digest) -> bool {
        self.next.is_some_and(|chunk| of_chunk(data, self.size, chunk) == *value)
    }

    /// Writes the next chunk.
    pub(crate) fn write(&mut self, data: &[u8], value: Digest) -> io::Result<()> {
        let Some(chunk) = self.next else { return Ok(()) };
        debug_assert!(data.len() as u64 <= self.missing, "{} of {} missing bytes", data.len(), self.missing);
        self.file.write_all_at(data, chunk * CHUNK as u64)?;
        // Data first: a value without its data matches nothing.
        match &self.sums {
            Some(sums) => sums.write_all_at(&value, chunk * VALUE as u64)?,
            None => self.only = Some(value),
        }
        self.missing -= data.len() as u64;
        self.next = self.have.next_missing(chunk + 1, chunks_of(self.size));
        Ok(())
    }

    /// Returns the hash of a file with all chunks, from their values.
    pub(crate) fn digest(&self) -> io::Result<Digest> {
        let mut tree = HashTree::default();
        self.only.iter().for_each(|value| tree.push(*value));
        if let Some(sums) = &self.sums {
            let (mut sums, mut value) = (io::BufReader::new(sums), [0; VALUE]);
            for _ in 0..chunks_of(self.size) {
                sums.read_exact(&mut value)?;
                tree.push(value);
            }
        }
        Ok(tree.root())
    }

    /// The name of the partial file, and the file.
    pub(crate) fn end(self) -> (String, File) {
        (self.key, self.file)
    }
}
