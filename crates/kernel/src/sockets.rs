//! The sockets that run a law: their addresses, and the law's own state as the kernel holds it.

#![allow(unsafe_code, reason = "it talks to the kernel")]

use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use laws::{Acted, Configured};
use libbpf_rs::{MapCore, MapFlags};
use units::{Bytes, Span};

use crate::host::{FLOW_WORDS, Flow, Report, Verdict};
use crate::{Error, Row};

/// A socket that runs a law.
#[derive(Clone, PartialEq, Debug)]
pub struct Socket {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The kernel's name of its state, as `ss` prints it.
    pub state: &'static str,
    /// Packets that may be in flight (`snd_cwnd`).
    pub cwnd_packets: u32,
    /// Packets sent again.
    pub retransmits: u32,
    /// Payload acknowledged.
    pub acked: Bytes,
    /// Whether ECN was agreed on.
    pub ecn: bool,
    /// What the law knows; none before the connection is set up.
    pub law: Option<LawState>,
}

/// A law's state, read from the kernel and understood by the very code that the simulator runs.
#[derive(Clone, PartialEq, Debug)]
pub struct LawState {
    /// Payload of a full packet.
    pub mss: Bytes,
    /// The last smoothed round trip.
    pub srtt: Span,
    /// The base round trip.
    pub base_rtt: Span,
    /// Payload delivered.
    pub delivered: Bytes,
    /// Of that, payload that was marked.
    pub marked: Bytes,
    /// Acknowledgements that the law heard of.
    pub acks: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// What it permits now: packets, and bytes per second (`u64::MAX` is not paced).
    pub verdict: Verdict,
    /// How often it has acted.
    pub acted: Acted,
    /// Its own state by name.
    pub trace: Vec<(&'static str, i64)>,
}

/// The slot of a socket in the shell's map.
#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    report: Report,
    verdict: Verdict,
    flow: [u64; FLOW_WORDS],
}

/// What the shell's iterator writes of a socket after its slot.
#[derive(Clone, Copy)]
#[repr(C)]
struct Record {
    local: [u8; 16],
    remote: [u8; 16],
    bytes_acked: u64,
    family: u32,
    local_port: u32,
    remote_port: u32,
    state: u32,
    cwnd: u32,
    retransmits: u32,
    ecn_flags: u32,
    began: u32,
}

const ENTRY: usize = size_of::<Slot>() + size_of::<Record>();

/// As the kernel's `AF_INET`.
const IPV4: u32 = 2;
/// ECN was agreed on (`TCP_ECN_MODE_RFC3168`).
const ECN_AGREED: u32 = 1;

/// What [`refused`] does, for errors.
pub(crate) const COUNT: &str = "count the sockets without the law";

/// Reads the shell's count of sockets that run without the law.
pub(crate) fn refused(map: &impl MapCore) -> Result<u64, Error> {
    let failed = |reason: String| Error::Failed { action: COUNT, reason };
    let bytes = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(|error| failed(error.to_string()))?;
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| failed("it is no number".into()))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Runs the iterator over the map.
pub(crate) fn list(row: &Row, program: BorrowedFd<'_>, flows: BorrowedFd<'_>) -> Result<Vec<Socket>, Error> {
    let failed = |error: std::io::Error| Error::Failed { action: "list sockets", reason: error.to_string() };
    // SAFETY: all zero is a valid value of this union of plain numbers.
    let mut info: libbpf_sys::bpf_iter_link_info = unsafe { std::mem::zeroed() };
    info.map.map_fd = flows.as_raw_fd() as u32;
    // SAFETY: as above, for a struct of numbers and pointers that may be null.
    let mut options: libbpf_sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of::<libbpf_sys::bpf_link_create_opts>() as _;
    options.iter_info = &raw mut info;
    options.iter_info_len = size_of::<libbpf_sys::bpf_iter_link_info>() as u32;
    // SAFETY: `options` and `info` live through the call; descriptors that come back are ours.
    let link = unsafe {
        owned(libbpf_sys::bpf_link_create(program.as_raw_fd(), 0, libbpf_sys::BPF_TRACE_ITER, &raw const options))
    };
    let link = link.map_err(failed)?;
    // SAFETY: a valid descriptor; the one that comes back is ours.
    let iterator = unsafe { owned(libbpf_sys::bpf_iter_create(link.as_raw_fd())) }.map_err(failed)?;
    let mut bytes = Vec::new();
    File::from(iterator).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes.chunks_exact(ENTRY).map(|entry| socket(row, entry)).collect())
}

/// # Safety
/// A descriptor that is not negative is nobody else's.
unsafe fn owned(descriptor: i32) -> std::io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(std::io::Error::from_raw_os_error(-descriptor));
    }
    // SAFETY: the caller's.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn socket(row: &Row, entry: &[u8]) -> Socket {
    let (slot, record) = entry.split_at(size_of::<Slot>());
    // SAFETY: both are plain numbers, of which all bytes are valid, and the slices are as long.
    let (slot, record): (Slot, Record) =
        unsafe { (slot.as_ptr().cast::<Slot>().read_unaligned(), record.as_ptr().cast::<Record>().read_unaligned()) };
    let address = |bytes: [u8; 16], port: u32| {
        let ip = if record.family == IPV4 {
            IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]))
        } else {
            IpAddr::V6(Ipv6Addr::from(bytes))
        };
        SocketAddr::new(ip.to_canonical(), port as u16)
    };
    Socket {
        local: address(record.local, record.local_port),
        remote: address(record.remote, record.remote_port),
        state: state_name(record.state),
        cwnd_packets: record.cwnd,
        retransmits: record.retransmits,
        acked: Bytes::new(record.bytes_acked),
        ecn: record.ecn_flags & ECN_AGREED != 0,
        law: (record.began != 0).then(|| law_state(row, &slot)),
    }
}

fn law_state(row: &Row, slot: &Slot) -> LawState {
    macro_rules! state {
        ($law:ident kernel) => {
            of_flow(&flow::<laws::$law>(&slot.flow), slot)
        };
    }
    macro_rules! states {
        ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
            match row.kind {
                $($(laws::catalog::Kind::$law => state!($law $kernel),)?)*
                // Rows are the only way to a `Row`.
                _ => of_flow(&flow::<laws::Dctcp>(&slot.flow), slot),
            }
        };
    }
    laws::laws!(states)
}

/// A flow from its bytes in the kernel.
pub(crate) fn flow<L: Configured>(words: &[u64; FLOW_WORDS]) -> Flow<L> {
    const { assert!(size_of::<Flow<L>>() <= FLOW_WORDS * 8 && align_of::<Flow<L>>() <= 8) };
    // SAFETY: the words were written by the same source, compiled for the kernel; all its types are `repr(C)` of
    // numbers, switches and small enums, and the two machines agree on their sizes, alignment and byte order. The
    // loader refuses maps of another build.
    unsafe { words.as_ptr().cast::<Flow<L>>().read() }
}

fn of_flow<L: Configured>(flow: &Flow<L>, slot: &Slot) -> LawState {
    let mut trace = Vec::new();
    flow.law.trace(&mut |name, value| trace.push((name, value)));
    LawState {
        mss: Bytes::new(flow.mss),
        srtt: Span::from_ns((slot.report.srtt_eighths_us * 125) as i64),
        base_rtt: flow.base_rtt,
        delivered: flow.delivered,
        marked: flow.marked,
        acks: flow.acks,
        timeouts: flow.timeouts,
        verdict: slot.verdict,
        acted: flow.law.acted(),
        trace,
    }
}

fn state_name(state: u32) -> &'static str {
    const NAMES: [&str; 13] = [
        "unknown",
        "established",
        "syn-sent",
        "syn-received",
        "fin-wait-1",
        "fin-wait-2",
        "time-wait",
        "closed",
        "close-wait",
        "last-ack",
        "listening",
        "closing",
        "new-syn-received",
    ];
    NAMES.get(state as usize).copied().unwrap_or("unknown")
}
