//! Packet captures (pcapng) of ports: every segment as it leaves, at the time at which it was due to, with all its
//! checksums. A thread of its own writes them, so that a slow disk delays no packet; what it cannot keep up with is
//! counted and missing. A disk that is full ends the capture and not the run: what was captured stays readable, and
//! its last mebibytes are given back, so that the run's results have a place.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use fabric::{LinkId, Network};
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};

use crate::Error;

/// Packets that may wait to be written.
const BACKLOG: usize = 1 << 16;
/// Timestamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Of a capture that fails, about so much is given back.
const GIVEN_BACK: u64 = 8 << 20;

struct Captured {
    file: usize,
    since_1970: Duration,
    bytes: Vec<u8>,
}

/// Captures at work. Ended by [`Captures::finish`]; dropped, what was captured so far is still written.
#[derive(Debug)]
pub(crate) struct Captures {
    links: Vec<LinkId>,
    sender: SyncSender<Captured>,
    thread: JoinHandle<Missing>,
    missed: u64,
}

/// What captures lack.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Missing {
    /// Packets, because the disk was too slow, or took no more.
    pub(crate) packets: u64,
    /// Captures that ended early: file and reason.
    pub(crate) ended: Vec<String>,
}

type Writer = PcapNgWriter<Output>;

/// A capture's file: knows where its blocks end, and what the system said.
struct Output {
    file: BufWriter<File>,
    written: u64,
    failure: Option<io::Error>,
    /// Ends of blocks, about a mebibyte apart: the last [`GIVEN_BACK`] bytes of them.
    ends: VecDeque<u64>,
}

impl Output {
    /// A block is whole.
    fn block_ends(&mut self) {
        if self.ends.back().is_none_or(|last| self.written - last >= 1 << 20) {
            self.ends.push_back(self.written);
        }
        while self.ends.get(1).is_some_and(|second| self.written - second >= GIVEN_BACK) {
            self.ends.pop_front();
        }
    }

    /// Cuts the file where a block ends, and what is given back is free.
    fn cut(self) -> io::Result<()> {
        let (file, _) = self.file.into_parts();
        file.set_len(self.ends.front().copied().unwrap_or(0))
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
    pub(crate) fn start(network: &Network, wanted: &[(LinkId, PathBuf)]) -> Result<Option<Self>, Error> {
        if wanted.is_empty() {
            return Ok(None);
        }
        let mut files = Vec::with_capacity(wanted.len());
        for (link, path) in wanted {
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
        let links = wanted.iter().map(|it| it.0).collect();
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

    /// Writes what is left, closes the files and says what is missing in them.
    ///
    /// # Errors
    /// When the thread is gone.
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

fn open(path: &Path, name: &str) -> Result<Writer, Error> {
    let file = File::create(path).map_err(|error| failed(path, error.to_string()))?;
    let output = Output { file: BufWriter::new(file), written: 0, failure: None, ends: VecDeque::new() };
    let mut writer = PcapNgWriter::new(output).map_err(|error| failed(path, error.to_string()))?;
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

fn write(receiver: &Receiver<Captured>, files: Vec<(Writer, PathBuf)>) -> Missing {
    let mut missing = Missing::default();
    let mut files: Vec<(Option<Writer>, PathBuf)> = files.into_iter().map(|(file, path)| (Some(file), path)).collect();
    let ended = |path: &Path, error: String| format!("the capture {} ended early: {error}", path.display());
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
            Ok(_) => writer.get_mut().block_ends(),
            Err(error) => {
                missing.packets += 1;
                let said = writer.get_mut().failure.take();
                missing.ended.push(ended(path, said.map_or_else(|| error.to_string(), |said| said.to_string())));
                // What cannot be cut stays as long as it is.
                let _ = file.take().map(|writer| writer.into_inner().cut());
            }
        }
    }
    for (file, path) in &mut files {
        let Some(mut output) = file.take().map(PcapNgWriter::into_inner) else { continue };
        if let Err(error) = output.flush() {
            missing.ended.push(ended(path, error.to_string()));
            let _ = output.cut();
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
    fn a_capture_that_cannot_be_is_refused_by_name() {
        let refused = |link, path: &str| Captures::start(&network(), &[(LinkId(link), path.into())]).unwrap_err();
        let said = refused(0, "/nonesuch/x.pcapng").to_string();
        assert!(said.contains("/nonesuch/x.pcapng"), "{said}");
        assert!(refused(99, "/dev/null").to_string().contains("no link 99"));
    }

    #[test]
    fn a_full_disk_ends_the_capture_and_says_so() {
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
            assert_eq!(missing.packets > 0, packets > 1);
        }
    }

    #[test]
    fn what_is_cut_ends_with_a_whole_block_and_gives_back_the_rest() {
        let path = std::env::temp_dir().join(format!("narrows-cut-{}.pcapng", std::process::id()));
        let mut writer = open(&path, "port").unwrap();
        for second in 0..20_000 {
            let data = Cow::Owned(vec![0x45; 1_400]);
            let timestamp = Duration::from_secs(second);
            let packet =
                EnhancedPacketBlock { interface_id: 0, timestamp, original_len: 1_400, data, options: Vec::new() };
            writer.write_pcapng_block(packet).unwrap();
            writer.get_mut().block_ends();
        }
        let written = writer.get_ref().written;
        writer.get_mut().flush().unwrap();
        writer.into_inner().cut().unwrap();
        let left = std::fs::metadata(&path).unwrap().len();
        assert!((GIVEN_BACK..GIVEN_BACK + (2 << 20)).contains(&(written - left)), "{written} {left}");
        let mut reader = pcap_file::pcapng::PcapNgReader::new(File::open(&path).unwrap()).unwrap();
        let mut blocks = 0;
        while let Some(block) = reader.next_block() {
            block.unwrap();
            blocks += 1;
        }
        assert!(blocks > 10_000);
        std::fs::remove_file(&path).unwrap();
    }
}
