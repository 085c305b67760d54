//! The page: mesh time for other programs, in a file that they map into their memory.
//!
//! The file is 4,096 bytes long, the page its first 128; native byte order, all fields aligned, offsets in bytes:
//!
//! | offset | field |
//! |---|---|
//! | 0 | magic, 8 bytes: `NARROWSC` |
//! | 8 | u32 version, 1; u32 length of the page, at least 128 |
//! | 16 | u64 sequence number: odd during an update |
//! | 24 | u64 status: 0 unknown, 1 synchronised, 2 disrupted |
//! | 32 | i64 `at`: reading of `CLOCK_MONOTONIC_RAW`, in nanoseconds |
//! | 40 | i64 `mesh`: mesh time at `at`, in nanoseconds |
//! | 48 | i64 `skew`: what mesh time gains on the clock, in 2^-48 |
//! | 56 | i64 `error`: largest error at `at`, in nanoseconds |
//! | 64 | i64 `skew_error`: growth of the error from `at` on, in 2^-48 |
//! | 72 | i64 `valid_until`: last reading of `CLOCK_MONOTONIC_RAW` at which the page holds |
//! | 80 | u64 disruptions: grows when mesh time may not continue as before |
//! | 88 | u64 ID of the reference |
//! | 96 | u64 session of the daemon |
//! | 104 | reserved, 0 |
//!
//! A reader reads the sequence number, the fields and the clock, and the sequence number again, and repeats if it was odd or
//! changed (a seqlock). Mesh time is `mesh + (now - at) + ((now - at) * skew >> 48)`, its error
//! `error + (|now - at| * skew_error >> 48) + 1`. Without status 1, or after `valid_until`, mesh time is unknown. So the page
//! of a daemon that has crashed becomes void by itself. One case is not covered: during a suspend the clock stops, and until
//! the daemon runs again, which is milliseconds after the resume, the page is that from before.
//!
//! [`PageReader`] and `include/narrows_clock.h` read it.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use clocks::{Reading, Skew};
use serde::Serialize;

use crate::host_clock::raw_ns;
use crate::shared_file::{Layout, PageError, SharedFile};
use crate::sys::{Mapping, MappingAccess};

const MAGIC: u64 = u64::from_ne_bytes(*b"NARROWSC");
const VERSION: u32 = 1;
const LENGTH: u32 = 128;
const FILE_LENGTH: u64 = 4_096;

/// Words of the page, by their offsets.
mod word {
    pub(super) const MAGIC: usize = 0;
    pub(super) const VERSION_AND_LENGTH: usize = 1;
    pub(super) const SEQUENCE: usize = 2;
    /// Status and all behind it.
    pub(super) const CONTENT: usize = 3;
}

const WORDS: usize = LENGTH as usize / 8;

/// Number of fields behind the sequence number.
const FIELDS: usize = 10;

/// Attempts of a reader: an update takes less than a microsecond, unless the daemon is interrupted or killed in it.
const ATTEMPTS: u32 = 1_000_000;

/// Attempts after which a reader lets other threads run: the daemon may wait for its processor.
const ATTEMPTS_UNTIL_YIELD: u32 = 256;

/// Status of a page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PageStatus {
    /// Mesh time is not known.
    #[default]
    Unknown,
    /// Mesh time is known.
    Synchronised,
    /// The host's clock has stepped or was suspended, and mesh time is not known yet.
    Disrupted,
}

impl PageStatus {
    #[inline]
    fn parse(value: u64) -> Self {
        match value {
            1 => Self::Synchronised,
            2 => Self::Disrupted,
            _ => Self::Unknown,
        }
    }
}

/// Fields of a page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PageContent {
    /// Status.
    pub status: PageStatus,
    /// Reading of the host's clock at which the map is anchored.
    pub at: Reading,
    /// Mesh time at the anchor.
    pub mesh: Reading,
    /// Rate of mesh time relative to the host's clock.
    pub skew: Skew,
    /// Largest error at the anchor, in nanoseconds.
    pub error: i64,
    /// Growth of the error from the anchor on.
    pub skew_error: Skew,
    /// Last reading of the host's clock at which the map holds.
    pub valid_until: Reading,
    /// Number of times that mesh time may not have continued as before.
    pub disruptions: u64,
    /// ID of the reference.
    pub reference: u64,
    /// Session of the daemon.
    pub session: u64,
}

/// Mesh time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeshTime {
    /// Mesh time, in nanoseconds.
    pub ns: i64,
    /// Largest error, in nanoseconds.
    pub error_ns: i64,
    /// Disruptions so far: times with different counts may not be comparable.
    pub disruptions: u64,
}

/// Reasons for which a page has no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoTime {
    /// The daemon does not know mesh time.
    #[error("mesh time is not known")]
    Unknown,
    /// The host's clock has stepped or was suspended.
    #[error("the clock of this host was disrupted")]
    Disrupted,
    /// The daemon has not updated the page.
    #[error("the page has expired: is the daemon running?")]
    Expired,
    /// An update did not end.
    #[error("the page is being updated: was the daemon killed?")]
    Busy,
}

impl PageContent {
    /// Returns mesh time at a reading of the host's clock.
    ///
    /// # Errors
    /// If it is not known; see [`NoTime`].
    #[inline]
    pub fn time(&self, now: Reading) -> Result<MeshTime, NoTime> {
        match self.status {
            PageStatus::Synchronised => {}
            PageStatus::Unknown => return Err(NoTime::Unknown),
            PageStatus::Disrupted => return Err(NoTime::Disrupted),
        }
        if now > self.valid_until {
            return Err(NoTime::Expired);
        }
        let age = now.since(self.at);
        let gained = shifted(age, self.skew);
        let grown = shifted(age.saturating_abs(), self.skew_error);
        Ok(MeshTime {
            ns: self.mesh.0.wrapping_add(age).wrapping_add(gained),
            error_ns: self.error.saturating_add(grown).saturating_add(1),
            disruptions: self.disruptions,
        })
    }

    fn words(&self) -> [u64; FIELDS] {
        [
            self.status as u64,
            self.at.0 as u64,
            self.mesh.0 as u64,
            self.skew.0 as u64,
            self.error as u64,
            self.skew_error.0 as u64,
            self.valid_until.0 as u64,
            self.disruptions,
            self.reference,
            self.session,
        ]
    }

    #[inline]
    fn parse(words: [u64; FIELDS]) -> Self {
        let [status, at, mesh, skew, error, skew_error, valid_until, disruptions, reference, session] = words;
        Self {
            status: PageStatus::parse(status),
            at: Reading(at as i64),
            mesh: Reading(mesh as i64),
            skew: Skew(skew as i64),
            error: error as i64,
            skew_error: Skew(skew_error as i64),
            valid_until: Reading(valid_until as i64),
            disruptions,
            reference,
            session,
        }
    }
}

/// Returns `ns * skew / 2^48`, rounded down as in C.
#[inline]
fn shifted(ns: i64, skew: Skew) -> i64 {
    ((i128::from(ns) * i128::from(skew.0)) >> 48) as i64
}

/// Reader of a page.
#[derive(Debug)]
pub struct PageReader {
    mapping: Mapping,
}

impl PageReader {
    /// Opens a page.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(path: &Path) -> Result<Self, PageError> {
        let file = File::open(path).map_err(PageError::io("open", path))?;
        let mapping = Mapping::new(&file, WORDS, MappingAccess::Read);
        let mapping = mapping.map_err(|_| PageError::NotPage { path: path.to_path_buf() })?;
        is_page(&mapping).then_some(Self { mapping }).ok_or_else(|| PageError::NotPage { path: path.to_path_buf() })
    }

    /// Returns mesh time now.
    ///
    /// # Errors
    /// If it is not known; see [`NoTime`].
    #[inline]
    pub fn now(&self) -> Result<MeshTime, NoTime> {
        let mut now = 0;
        self.read(|| now = raw_ns())?.time(Reading(now))
    }

    /// Returns the fields of the page.
    ///
    /// # Errors
    /// If an update does not end.
    pub fn content(&self) -> Result<PageContent, NoTime> {
        self.read(|| {})
    }

    /// Reads the fields, and calls `between` while they are in force.
    #[inline]
    fn read(&self, mut between: impl FnMut()) -> Result<PageContent, NoTime> {
        let page = self.mapping.words();
        let (sequence, fields) = (&page[word::SEQUENCE], &page[word::CONTENT..word::CONTENT + FIELDS]);
        for attempt in 1..=ATTEMPTS {
            let before = sequence.load(Ordering::Acquire);
            if before % 2 == 1 {
                wait_for_writer(attempt);
                continue;
            }
            let mut words = [0; FIELDS];
            for (word, field) in words.iter_mut().zip(fields) {
                *word = field.load(Ordering::Relaxed);
            }
            between();
            // Pairs with the writer's release fence: if a field is of an update, its odd number is visible.
            fence(Ordering::Acquire);
            if sequence.load(Ordering::Relaxed) == before {
                return Ok(PageContent::parse(words));
            }
        }
        Err(NoTime::Busy)
    }
}

#[cold]
fn wait_for_writer(attempt: u32) {
    if attempt.is_multiple_of(ATTEMPTS_UNTIL_YIELD) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

fn is_page(mapping: &Mapping) -> bool {
    let versions = mapping.word(word::VERSION_AND_LENGTH).load(Ordering::Relaxed).to_ne_bytes();
    let [version, length] = [0, 4].map(|at| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| versions[at + byte])));
    mapping.word(word::MAGIC).load(Ordering::Relaxed) == MAGIC && version == VERSION && length >= LENGTH
}

fn initialise(mapping: &Mapping) {
    mapping.word(word::MAGIC).store(MAGIC, Ordering::Relaxed);
    let versions = [VERSION, LENGTH].map(u32::to_ne_bytes);
    let versions = u64::from_ne_bytes(std::array::from_fn(|at| versions[at / 4][at % 4]));
    mapping.word(word::VERSION_AND_LENGTH).store(versions, Ordering::Relaxed);
}

const LAYOUT: Layout = Layout { length: FILE_LENGTH, words: WORDS, is_valid: is_page, initialise };

/// Writer of a page. While it lives, no other one can open the page.
#[derive(Debug)]
pub struct PageWriter {
    mapping: Mapping,
    content: PageContent,
    /// Locked.
    _file: File,
}

impl PageWriter {
    /// Opens a page, and states that mesh time is unknown. A page that exists is written on, so that its readers notice;
    /// another file, or none, is replaced atomically. Everybody may read the page.
    ///
    /// # Errors
    /// If the file cannot be written, or another process writes it.
    pub fn open(path: &Path, session: u64) -> Result<Self, PageError> {
        let SharedFile { file, mapping } = SharedFile::open(path, &LAYOUT)?;
        let mut writer = Self { mapping, content: PageContent::default(), _file: file };
        let former = std::array::from_fn(|index| writer.word(index));
        let disruptions = PageContent::parse(former).disruptions.wrapping_add(1);
        // Mesh time may have started again since the page was written.
        writer.write(&PageContent { disruptions, session, ..PageContent::default() });
        Ok(writer)
    }

    fn word(&self, index: usize) -> u64 {
        self.mapping.word(word::CONTENT + index).load(Ordering::Relaxed)
    }

    /// Returns what the page has.
    pub fn content(&self) -> &PageContent {
        &self.content
    }

    /// Replaces the fields.
    pub fn write(&mut self, content: &PageContent) {
        let sequence = self.mapping.word(word::SEQUENCE);
        // A writer that crashed in an update has left an odd number.
        let odd = sequence.load(Ordering::Relaxed) | 1;
        sequence.store(odd, Ordering::Relaxed);
        // No field is stored before the odd number.
        fence(Ordering::Release);
        for (index, word) in content.words().into_iter().enumerate() {
            self.mapping.word(word::CONTENT + index).store(word, Ordering::Relaxed);
        }
        sequence.store(odd.wrapping_add(1), Ordering::Release);
        self.content = *content;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("narrows-clockd-page-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn page(&self) -> PathBuf {
            self.0.join("clock")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn synchronised(now: i64) -> PageContent {
        PageContent {
            status: PageStatus::Synchronised,
            at: Reading(now),
            mesh: Reading(now + 5_000),
            skew: Skew::from_ppb(10_000),
            error: 700,
            skew_error: Skew::from_ppb(100),
            valid_until: Reading(now + 5_000_000_000),
            disruptions: 3,
            reference: 9,
            session: 11,
        }
    }

    #[test]
    fn time_advances_by_the_map_until_it_expires() {
        let content = synchronised(1_000);
        let second = content.time(Reading(1_000_001_000)).unwrap();
        assert_eq!((second.ns, second.error_ns), (1_000_006_000 + 9_999, 700 + 99 + 1));
        assert!(content.time(Reading(5_000_001_000)).is_ok());
        assert_eq!(content.time(Reading(5_000_001_001)), Err(NoTime::Expired));
        let unknown = PageContent { status: PageStatus::Unknown, ..content };
        assert_eq!(unknown.time(Reading(1_000)), Err(NoTime::Unknown));
    }

    #[test]
    fn pages_are_created_and_taken_over() {
        let scratch = Scratch::new("takeover");
        let path = scratch.page();
        assert!(matches!(PageReader::open(&path), Err(PageError::Io { .. })));
        let mut writer = PageWriter::open(&path, 1).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        let reader = PageReader::open(&path).unwrap();
        assert_eq!((reader.now(), writer.content().disruptions), (Err(NoTime::Unknown), 1));
        writer.write(&synchronised(raw_ns()));
        assert!(reader.now().is_ok());
        assert!(matches!(PageWriter::open(&path, 2), Err(PageError::Locked { .. })));
        drop(writer);
        // The reader of the former daemon's page reads that of the next one.
        let mut writer = PageWriter::open(&path, 2).unwrap();
        assert_eq!(reader.now(), Err(NoTime::Unknown));
        assert_eq!(reader.content().unwrap().disruptions, 4);
        writer.write(&synchronised(raw_ns()));
        assert!(reader.now().is_ok());
    }

    #[test]
    fn other_files_are_replaced_and_links_are_not_followed() {
        let scratch = Scratch::new("replace");
        let (path, target) = (scratch.page(), scratch.0.join("target"));
        fs::write(&path, "text").unwrap();
        assert!(matches!(PageReader::open(&path), Err(PageError::NotPage { .. })));
        drop(PageWriter::open(&path, 1).unwrap());
        assert!(PageReader::open(&path).is_ok());
        fs::write(&target, "text").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(PageWriter::open(&path, 1).is_err());
        assert_eq!(fs::read(&target).unwrap(), b"text");
    }

    #[test]
    fn crash_in_an_update_is_noticed_and_repaired() {
        let scratch = Scratch::new("crash");
        let mut writer = PageWriter::open(&scratch.page(), 1).unwrap();
        writer.write(&synchronised(raw_ns()));
        let reader = PageReader::open(&scratch.page()).unwrap();
        let sequence = writer.mapping.word(word::SEQUENCE);
        sequence.store(sequence.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        assert_eq!(reader.now(), Err(NoTime::Busy));
        drop(writer);
        let _writer = PageWriter::open(&scratch.page(), 2).unwrap();
        assert_eq!(reader.now(), Err(NoTime::Unknown));
    }

    /// Readers during updates never see fields of two updates.
    #[test]
    fn reads_are_whole() {
        let scratch = Scratch::new("whole");
        let mut writer = PageWriter::open(&scratch.page(), 1).unwrap();
        let numbered = |number: i64| PageContent {
            status: PageStatus::Synchronised,
            at: Reading(number),
            mesh: Reading(number),
            skew: Skew(number),
            error: number,
            skew_error: Skew(number),
            valid_until: Reading(number),
            disruptions: number as u64,
            reference: number as u64,
            session: number as u64,
        };
        writer.write(&numbered(0));
        let (reader, stop) = (PageReader::open(&scratch.page()).unwrap(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let handle = scope.spawn(|| {
                let mut last = 0;
                while !stop.load(Ordering::Relaxed) || last < 399_999 {
                    // On a busy machine the writer may be interrupted in an update for long.
                    let Ok(content) = reader.content() else { continue };
                    assert_eq!(content, numbered(content.at.0));
                    assert!(content.at.0 >= last);
                    last = content.at.0;
                }
                last
            });
            for number in 1..400_000 {
                writer.write(&numbered(number));
            }
            std::thread::sleep(Duration::from_millis(5));
            stop.store(true, Ordering::Relaxed);
            assert_eq!(handle.join().unwrap(), 399_999);
        });
    }

    proptest! {
        #[test]
        fn fields_survive_the_page(words: [u64; FIELDS], status in 0u64..3) {
            let words: [u64; FIELDS] = std::array::from_fn(|index| if index == 0 { status } else { words[index] });
            prop_assert_eq!(PageContent::parse(words).words(), words);
        }

        /// Any content is evaluated without a panic.
        #[test]
        fn any_content_is_evaluated(words: [u64; FIELDS], now: i64) {
            let content = PageContent { status: PageStatus::Synchronised, ..PageContent::parse(words) };
            let _ = content.time(Reading(now));
        }
    }
}
