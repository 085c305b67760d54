//! Packet captures (pcapng) of ports: every segment as it leaves, at the time at which it was due to, with all its
//! checksums. A thread of its own writes them, so that a slow disk delays no packet; what it cannot keep up with is
//! counted and missing.

use std::borrow::Cow;
use std::fs::File;
use std::io::BufWriter;
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
    thread: JoinHandle<Result<(), Error>>,
    missed: u64,
}

type Writer = PcapNgWriter<BufWriter<File>>;

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

    /// Writes what is left and closes the files. Returns how many packets are missing.
    ///
    /// # Errors
    /// When a file could not be written.
    pub(crate) fn finish(self) -> Result<u64, Error> {
        drop(self.sender);
        self.thread.join().map_err(|_| Error::RouterDied)??;
        Ok(self.missed)
    }
}

fn failed(path: &Path, message: String) -> Error {
    Error::Capture { path: path.display().to_string(), message }
}

fn open(path: &Path, name: &str) -> Result<Writer, Error> {
    let file = File::create(path).map_err(|error| failed(path, error.to_string()))?;
    let mut writer = PcapNgWriter::new(BufWriter::new(file)).map_err(|error| failed(path, error.to_string()))?;
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::RAW,
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    };
    writer.write_pcapng_block(interface).map_err(|error| failed(path, error.to_string()))?;
    Ok(writer)
}

fn write(receiver: &Receiver<Captured>, mut files: Vec<(Writer, PathBuf)>) -> Result<(), Error> {
    for captured in receiver {
        let (writer, path) = &mut files[captured.file];
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: captured.since_1970,
            original_len: captured.bytes.len() as u32,
            data: Cow::Owned(captured.bytes),
            options: Vec::new(),
        };
        writer.write_pcapng_block(packet).map_err(|error| failed(path, error.to_string()))?;
    }
    for (writer, path) in files {
        writer.into_inner().into_inner().map_err(|error| failed(&path, error.to_string()))?;
    }
    Ok(())
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
    fn a_full_disk_is_an_error_at_the_end() {
        let mut captures = Captures::start(&network(), &[(LinkId(0), "/dev/full".into())]).unwrap().unwrap();
        captures.record(LinkId(0), 1, &[0x45; 40]);
        captures.record(LinkId(1), 1, &[0x45; 40]);
        assert!(matches!(captures.finish(), Err(Error::Capture { .. })));
    }
}
