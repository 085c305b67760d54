//! Packet captures (pcapng) of ports: every segment as it leaves, at the time at which it was due to, with all its
//! checksums. A thread of its own writes them, so that a slow disk delays no packet; packets that it cannot keep up with
//! are counted and missing. A disk that is full ends the capture and not the run: the captured packets stay readable, and
//! the last mebibytes are freed, so that there is room for the run's results.
//!
//! A capture is written under a temporary name and renamed when it is complete, so an earlier one stays until then. It
//! names the program that wrote it, and [`is_capture`] knows it by that.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use fabric::{LinkId, Network};
use files::AtomicFile;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness};

use crate::Error;

/// Packets that may wait to be written.
const BACKLOG: usize = 1 << 16;
/// Timestamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Approximate number of bytes freed by a capture that fails.
const FREED_BYTES: u64 = 8 << 20;

/// The program, as captures name it.
const PROGRAM: &str = concat!("narrows ", env!("CARGO_PKG_VERSION"));

/// Returns whether these are the first bytes of a capture written by any version of this program. 4 KiB are enough.
pub fn is_capture(head: &[u8]) -> bool {
    const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
    /// The options begin after the type, the length, the order of bytes, the version and the section's length.
    const OPTIONS: usize = 24;
    const USER_APPLICATION: u16 = 4;
    let number: fn([u8; 2]) -> u16 = match head.get(8..12) {
        Some([0x4d, 0x3c, 0x2b, 0x1a]) => u16::from_le_bytes,
        Some([0x1a, 0x2b, 0x3c, 0x4d]) => u16::from_be_bytes,
        _ => return false,
    };
    let mut options = head.get(OPTIONS..).filter(|_| head.starts_with(&SECTION_HEADER)).unwrap_or_default();
    while let [code0, code1, length0, length1, rest @ ..] = options {
        let length = usize::from(number([*length0, *length1]));
        match number([*code0, *code1]) {
            // The end of options.
            0 => return false,
            USER_APPLICATION => return rest.get(..length).is_some_and(|name| name.starts_with(b"narrows ")),
            _ => options = rest.get(length.next_multiple_of(4)..).unwrap_or_default(),
        }
    }
    false
}

struct Captured {
    file: usize,
    since_1970: Duration,
    bytes: Vec<u8>,
}

/// Captures in progress. Ended by [`Captures::finish`]; if dropped, the packets captured so far are still written.
#[derive(Debug)]
pub(crate) struct Captures {
    links: Vec<LinkId>,
    sender: SyncSender<Captured>,
    thread: JoinHandle<Missing>,
    missed: u64,
}

/// Packets and captures that are missing.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Missing {
    /// Number of packets missed because the disk was too slow or full.
    pub(crate) packets: u64,
    /// Captures that ended early: file and reason.
    pub(crate) ended: Vec<String>,
    /// Captures that do not have their name: file and reason, and where they are.
    pub(crate) unnamed: Vec<String>,
}

impl Missing {
    /// A capture ends early.
    fn end(&mut self, path: &Path, reason: &str, output: Output) {
        let (packets, put) = output.cut();
        self.packets += packets;
        let path = path.display();
        match put {
            Ok(()) => self.ended.push(format!("the capture {path} ended early: {reason}")),
            Err(error) => {
                self.unnamed.push(format!("the capture {path} ended early: {reason}; {error}"));
            }
        }
    }
}

type CaptureWriter = PcapNgWriter<Output>;

/// A capture's file. It knows where its blocks end, and the system's last error.
struct Output {
    file: BufWriter<AtomicFile>,
    written: u64,
    failure: Option<io::Error>,
    /// Ends of blocks, about a mebibyte apart, and how many packets there were by then: the last [`FREED_BYTES`] bytes.
    ends: VecDeque<(u64, u64)>,
    packets: u64,
    /// Ends of packets that the system has not written completely yet.
    buffered: VecDeque<u64>,
}

impl Output {
    fn new(draft: AtomicFile) -> Self {
        let (ends, buffered) = (VecDeque::new(), VecDeque::new());
        Self { file: BufWriter::new(draft), written: 0, failure: None, ends, packets: 0, buffered }
    }

    /// A packet's block is whole.
    fn packet_ends(&mut self) {
        self.packets += 1;
        self.buffered.push_back(self.written);
        self.block_ends();
    }

    /// A block is whole.
    fn block_ends(&mut self) {
        self.drop_flushed();
        if self.ends.back().is_none_or(|last| self.written - last.0 >= 1 << 20) {
            self.ends.push_back((self.written, self.packets));
        }
        while self.ends.get(1).is_some_and(|second| self.written - second.0 >= FREED_BYTES) {
            self.ends.pop_front();
        }
    }

    fn drop_flushed(&mut self) {
        let flushed = self.written - self.file.buffer().len() as u64;
        while self.buffered.front().is_some_and(|&end| end <= flushed) {
            self.buffered.pop_front();
        }
    }

    /// Renames the capture, which is complete and flushed.
    fn put(self) -> io::Result<()> {
        self.file.into_parts().0.put()
    }

    /// Truncates the file at the end of a block to free its last bytes. An earlier capture stays, and this one then keeps
    /// its draft's name. Returns the number of packets lost by that, with those that were not written yet, and the error if
    /// it failed.
    fn cut(mut self) -> (u64, io::Result<()>) {
        self.drop_flushed();
        let (draft, _) = self.file.into_parts();
        let (end, packets) = self.ends.front().copied().unwrap_or_default();
        let length = draft.file().metadata().map_or(0, |metadata| metadata.len());
        // A disk that was full at once took not even the first block, which no packet is in.
        let cut = draft.file().set_len(if length < end { 0 } else { end });
        // An output that cannot be truncated, such as a pipe, keeps all bytes that it received.
        let kept = if cut.is_ok() { packets } else { self.packets - self.buffered.len() as u64 };
        (self.packets - kept, draft.put_if_absent())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.file.write(bytes);
        match result {
            Ok(written) => {
                self.written += written as u64;
                Ok(written)
            }
            Err(error) => {
                let kind = error.kind();
                self.failure = Some(error);
                Err(kind.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Captures {
    /// Opens the files and starts the thread that writes them. None if there are none.
    pub(crate) fn start(network: &Network, requested: &[(LinkId, PathBuf)]) -> Result<Option<Self>, Error> {
        if requested.is_empty() {
            return Ok(None);
        }
        let mut files = Vec::with_capacity(requested.len());
        for (link, path) in requested {
            if link.index() >= network.links().len() {
                return Err(failed(path, format!("there is no link {}", link.0)));
            }
            files.push((open(path, &network.link_name(*link))?, path.clone()));
        }
        let (sender, receiver) = sync_channel(BACKLOG);
        let thread = std::thread::Builder::new()
            .name("captures".into())
            .spawn(move || write(&receiver, files))
            .map_err(Error::system("start the thread that writes captures"))?;
        let links = requested.iter().map(|it| it.0).collect();
        Ok(Some(Self { links, sender, thread, missed: 0 }))
    }

    /// The links that are captured.
    pub(crate) fn links(&self) -> &[LinkId] {
        &self.links
    }

    /// A packet leaves a port: an IP packet with all checksums, that many nanoseconds after 1970.
    pub(crate) fn record(&mut self, link: LinkId, since_1970_ns: u64, bytes: &[u8]) {
        for (file, _) in self.links.iter().enumerate().filter(|it| *it.1 == link) {
            let captured = Captured { file, since_1970: Duration::from_nanos(since_1970_ns), bytes: bytes.to_vec() };
            self.missed += u64::from(self.sender.try_send(captured).is_err());
        }
    }

    /// Writes the remaining packets, closes the files and returns the counts of missing packets.
    ///
    /// # Errors
    /// If the thread has ended.
    pub(crate) fn finish(self) -> Result<Missing, Error> {
        drop(self.sender);
        let mut missing = self.thread.join().map_err(|_| Error::RouterDied)?;
        missing.packets += self.missed;
        Ok(missing)
    }
}

fn failed(path: &Path, message: String) -> Error {
    Error::Capture { path: path.display().to_string(), message }
}

fn open(path: &Path, name: &str) -> Result<CaptureWriter, Error> {
    let draft = AtomicFile::new(path).map_err(|error| failed(path, error.to_string()))?;
    let section = SectionHeaderBlock {
        endianness: Endianness::native(),
        options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(PROGRAM))],
        ..SectionHeaderBlock::default()
    };
    let writer = PcapNgWriter::with_section_header(Output::new(draft), section);
    let mut writer = writer.map_err(|error| failed(path, error.to_string()))?;
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::RAW,
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    };
    writer.write_pcapng_block(interface).map_err(|error| failed(path, error.to_string()))?;
    writer.get_mut().block_ends();
    Ok(writer)
}

fn write(receiver: &Receiver<Captured>, files: Vec<(CaptureWriter, PathBuf)>) -> Missing {
    let mut missing = Missing::default();
    let mut files: Vec<(Option<CaptureWriter>, PathBuf)> =
        files.into_iter().map(|(file, path)| (Some(file), path)).collect();
    for captured in receiver {
        let (file, path) = &mut files[captured.file];
        let Some(writer) = file else {
            missing.packets += 1;
            continue;
        };
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: captured.since_1970,
            original_len: captured.bytes.len() as u32,
            data: Cow::Owned(captured.bytes),
            options: Vec::new(),
        };
        match writer.write_pcapng_block(packet) {
            Ok(_) => writer.get_mut().packet_ends(),
            Err(error) => {
                missing.packets += 1;
                let report =
                    writer.get_mut().failure.take().map_or_else(|| error.to_string(), |report| report.to_string());
                if let Some(writer) = file.take() {
                    missing.end(path, &report, writer.into_inner());
                }
            }
        }
    }
    for (file, path) in &mut files {
        let Some(mut output) = file.take().map(PcapNgWriter::into_inner) else { continue };
        if let Err(error) = output.flush() {
            missing.end(path, &error.to_string(), output);
        } else if let Err(error) = output.put() {
            missing.unnamed.push(format!("the capture {} could not be put in place: {error}", path.display()));
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use fabric::{Builder, LinkClass, PortConfig};
    use units::{Rate, Span};

    use super::*;

    fn network() -> Network {
        let mut builder = Builder::default();
        let port = PortConfig::new(Rate::from_gbps(1), Span::from_us(1));
        let switch = builder.switch(0, "switch");
        for name in ["a", "b"] {
            let host = builder.host(0, name);
            builder.connect(host, switch, LinkClass::Host, port, port);
        }
        builder.finish().unwrap()
    }

    #[test]
    fn capture_files_that_cannot_be_created_are_named() {
        let refused = |link, path: &str| Captures::start(&network(), &[(LinkId(link), path.into())]).unwrap_err();
        let report = refused(0, "/nonesuch/x.pcapng").to_string();
        assert!(report.contains("/nonesuch/x.pcapng"), "{report}");
        assert!(refused(99, "/dev/null").to_string().contains("no link 99"));
    }

    #[test]
    fn full_disk_ends_the_capture() {
        // Found when the file is closed, and when its buffer is full.
        for packets in [1, 1_000] {
            let mut captures = Captures::start(&network(), &[(LinkId(0), "/dev/full".into())]).unwrap().unwrap();
            for _ in 0..packets {
                captures.record(LinkId(0), 1, &[0x45; 1_500]);
                captures.record(LinkId(1), 1, &[0x45; 1_500]);
            }
            let missing = captures.finish().unwrap();
            assert_eq!(
                missing.ended,
                ["the capture /dev/full ended early: No space left on device (os error 28)"],
                "{packets}"
            );
            // No packets were captured, including those that waited in the buffer.
            assert_eq!(missing.packets, packets);
        }
    }

    #[test]
    fn unnamed_captures_are_reported() {
        let directory = path_of("unnamed").with_extension("d");
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("x.pcapng");
        let mut captures = Captures::start(&network(), &[(LinkId(0), path.clone())]).unwrap().unwrap();
        captures.record(LinkId(0), 1, &[0x45; 1_500]);
        std::fs::write(&path, "mine").unwrap();
        let missing = captures.finish().unwrap();
        assert_eq!((missing.packets, missing.ended.len(), missing.unnamed.len()), (0, 0, 1));
        let expected = format!("the capture {} could not be put in place: it was created or changed", path.display());
        assert!(missing.unnamed[0].starts_with(&expected), "{missing:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        std::fs::remove_file(&path).unwrap();
        let captures = Captures::start(&network(), &[(LinkId(0), path)]).unwrap().unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        let missing = captures.finish().unwrap();
        assert!(missing.unnamed[0].ends_with("which was removed"), "{missing:?}");
    }

    fn packet(second: u64) -> EnhancedPacketBlock<'static> {
        let (timestamp, data) = (Duration::from_secs(second), Cow::Owned(vec![0x45; 1_400]));
        EnhancedPacketBlock { interface_id: 0, timestamp, original_len: 1_400, data, options: Vec::new() }
    }

    /// Returns the number of packets in a file.
    fn packets_in(path: &Path) -> u64 {
        let mut reader = pcap_file::pcapng::PcapNgReader::new(std::fs::File::open(path).unwrap()).unwrap();
        let mut packets = 0;
        while let Some(block) = reader.next_block() {
            packets += u64::from(block.unwrap().into_enhanced_packet().is_some());
        }
        packets
    }

    fn path_of(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("narrows-{test}-{}.pcapng", std::process::id()))
    }

    #[test]
    fn truncated_captures_end_at_a_block() {
        const PACKETS: u64 = 20_000;
        let path = path_of("cut");
        let mut writer = open(&path, "port").unwrap();
        for second in 0..PACKETS {
            writer.write_pcapng_block(packet(second)).unwrap();
            writer.get_mut().packet_ends();
        }
        let written = writer.get_ref().written;
        writer.get_mut().flush().unwrap();
        let (lost, put) = writer.into_inner().cut();
        put.unwrap();
        let remaining = std::fs::metadata(&path).unwrap().len();
        assert!((FREED_BYTES..FREED_BYTES + (2 << 20)).contains(&(written - remaining)), "{written} {remaining}");
        let kept = packets_in(&path);
        assert!(kept > 10_000);
        assert_eq!(kept + lost, PACKETS);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn complete_captures_are_renamed_and_recognized() {
        let path = path_of("whole");
        for packets in [1, 3] {
            let mut captures = Captures::start(&network(), &[(LinkId(0), path.clone())]).unwrap().unwrap();
            for _ in 0..packets {
                captures.record(LinkId(0), 1, &[0x45; 1_500]);
            }
            // The earlier one is there until then, and at first none.
            assert_eq!(path.exists(), packets == 3);
            assert_eq!(captures.finish().unwrap(), Missing::default());
            assert_eq!(packets_in(&path), packets);
        }
        let bytes = std::fs::read(&path).unwrap();
        assert!(is_capture(&bytes) && is_capture(&bytes[..200]));
        let mut others = Vec::new();
        PcapNgWriter::new(&mut others).unwrap();
        assert!(!is_capture(&others) && !is_capture(&bytes[..20]) && !is_capture(b"") && !is_capture(b"name = 1"));
        std::fs::remove_file(&path).unwrap();
    }
}
