//! The sockets that run a law: addresses and counters from `inet_diag`, and the law's state in BPF socket storage.

#![allow(unsafe_code, reason = "the kernel's bytes are read as the law's type")]

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use inet_diag::{DumpRequest, Machine};
use laws::{Configured, LawActions};
use libbpf_rs::{MapCore, MapFlags, MapInfo};
use units::{Bytes, Span};

use crate::tcp_adapter::{FLOW_WORDS, KernelFlow, SocketReport, SocketSettings};
use crate::{Error, KernelLaw};

/// A socket that runs a law.
#[derive(Clone, PartialEq, Debug)]
pub struct LawSocket {
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// TCP state, named as `ss` does.
    pub state: &'static str,
    /// Congestion window in packets (`snd_cwnd`).
    pub cwnd_packets: u32,
    /// Retransmitted packets.
    pub retransmits: u32,
    /// Payload acknowledged.
    pub acked: Bytes,
    /// Set if both ends agreed on ECN.
    pub ecn: bool,
    /// State of the law; none before it begins.
    pub law: Option<LawState>,
}

/// A law's state, read from the kernel and decoded with the type that the simulator uses.
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
    /// Marked part of the delivered payload.
    pub marked: Bytes,
    /// Acknowledgements reported to the law.
    pub acks: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Current limits: packets, and bytes per second (`u64::MAX` is not paced).
    pub settings: SocketSettings,
    /// Counts of its actions.
    pub actions: LawActions,
    /// Its own state by name.
    pub trace: Vec<(&'static str, i64)>,
}

/// `struct narrows_slot` of the C adapter.
#[derive(Clone, Copy)]
#[repr(C)]
struct KernelSlot {
    report: SocketReport,
    settings: SocketSettings,
    flow: [u64; FLOW_WORDS],
}

/// `struct storage` of the C adapter: the value of the map `flows`.
#[derive(Clone, Copy)]
#[repr(C)]
struct FlowStorage {
    slot: KernelSlot,
    has_begun: u32,
    prior_rcv_nxt: u32,
    congestion_seen: u32,
    unused: u32,
}

impl FlowStorage {
    /// The value as `inet_diag` returns it; none if its length is that of another build.
    fn of(bytes: &[u8]) -> Option<Self> {
        // SAFETY: `FlowStorage` has only integers, for which every bit pattern is valid, and the slice has its length;
        // `read_unaligned` needs no alignment.
        (bytes.len() == size_of::<Self>()).then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

/// Action of [`refused`], for errors.
pub(crate) const COUNT: &str = "count the sockets without the law";

/// Reads the C adapter's count of sockets that run without the law.
pub(crate) fn refused(map: &impl MapCore) -> Result<u64, Error> {
    let failed = |reason: String| Error::Failed { action: COUNT, reason };
    let bytes = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(|error| failed(error.to_string()))?;
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| failed("it is no number".into()))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The sockets of a law.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LawSockets {
    /// The sockets, of all network namespaces that were found.
    pub sockets: Vec<LawSocket>,
    /// Namespaces with sockets that may be missing from the list, and the reasons.
    pub unlisted: Vec<String>,
}

/// Reader of a law's sockets. It may move to another thread.
#[derive(Debug)]
pub struct SocketWatcher {
    row: &'static KernelLaw,
    flows: OwnedFd,
    map_id: u32,
}

impl SocketWatcher {
    /// A reader of the law's map `flows`.
    pub(crate) fn new(row: &'static KernelLaw, flows: BorrowedFd<'_>) -> Result<Self, Error> {
        let failed = |reason: String| Error::Failed { action: "read the map of flows", reason };
        let map_id = MapInfo::new(flows).map_err(|error| failed(error.to_string()))?.info.id;
        let flows = flows.try_clone_to_owned().map_err(|error| failed(error.to_string()))?;
        Ok(Self { row, flows, map_id })
    }

    /// The BPF map with the law's state, for an `inet_diag` request.
    pub fn map(&self) -> BorrowedFd<'_> {
        self.flows.as_fd()
    }

    /// Lists the law's sockets, of all network namespaces.
    ///
    /// # Errors
    /// [`Error::Sockets`] if the kernel lists none.
    pub fn sockets(&self, machine: &mut Machine) -> Result<LawSockets, Error> {
        let request = DumpRequest::connections().and_connecting().with_storages([self.map()]);
        let own = |socket: &inet_diag::DiagSocket| socket.storage(self.map_id).is_some();
        let listing = machine.list(&request, own).map_err(Error::Sockets)?;
        let sockets = listing.sockets.iter().map(|socket| self.socket(socket)).collect();
        Ok(LawSockets { sockets, unlisted: listing.unlisted })
    }

    /// Decodes the law's state from a socket that was requested with [`Self::map`]; none if the socket does not run the
    /// law, or the law has not begun.
    pub fn law_state(&self, socket: &inet_diag::DiagSocket) -> Option<LawState> {
        let storage = FlowStorage::of(socket.storage(self.map_id)?)?;
        (storage.has_begun != 0).then(|| law_state(self.row, &storage.slot))
    }

    fn socket(&self, socket: &inet_diag::DiagSocket) -> LawSocket {
        LawSocket {
            local: socket.local,
            remote: socket.peer,
            state: state_name(socket.info.state),
            cwnd_packets: socket.info.cwnd,
            retransmits: socket.info.total_retrans,
            acked: socket.info.bytes_acked,
            ecn: socket.info.ecn(),
            law: self.law_state(socket),
        }
    }
}

fn law_state(row: &KernelLaw, slot: &KernelSlot) -> LawState {
    macro_rules! state {
        ($law:ident kernel) => {
            of_flow(&flow::<laws::$law>(&slot.flow), slot)
        };
    }
    macro_rules! states {
        ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
            match row.kind {
                $($(laws::catalog::LawKind::$law => state!($law $kernel),)?)*
                // Rows are the only way to a `KernelLaw`.
                _ => of_flow(&flow::<laws::Dctcp>(&slot.flow), slot),
            }
        };
    }
    laws::laws!(states)
}

/// A flow from its bytes in the kernel.
pub(crate) fn flow<L: Configured>(words: &[u64; FLOW_WORDS]) -> KernelFlow<L> {
    const { assert!(size_of::<KernelFlow<L>>() <= FLOW_WORDS * 8 && align_of::<KernelFlow<L>>() <= 8) };
    // SAFETY: the words were written by the same source, compiled for the kernel; all its types are `repr(C)` of
    // numbers, switches and small enums, and the two machines agree on their sizes, alignment and byte order. The
    // loader refuses maps of another build.
    unsafe { words.as_ptr().cast::<KernelFlow<L>>().read() }
}

fn of_flow<L: Configured>(flow: &KernelFlow<L>, slot: &KernelSlot) -> LawState {
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
        settings: slot.settings,
        actions: flow.law.actions(),
        trace,
    }
}

fn state_name(state: u8) -> &'static str {
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
    NAMES.get(usize::from(state)).copied().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_has_the_adapters_layout() {
        // FLOW_WORDS, SocketReport and SocketSettings are the C adapter's; four numbers of 32 bits follow.
        assert_eq!(size_of::<FlowStorage>(), 18 * 8 + 2 * 8 + FLOW_WORDS * 8 + 4 * 4);
        let mut bytes = vec![0; size_of::<FlowStorage>()];
        let has_begun = std::mem::offset_of!(FlowStorage, has_begun);
        bytes[has_begun..has_begun + 4].copy_from_slice(&1u32.to_ne_bytes());
        assert_eq!(FlowStorage::of(&bytes).map(|storage| storage.has_begun), Some(1));
        assert!(FlowStorage::of(&bytes[1..]).is_none());
        assert!(FlowStorage::of(&[]).is_none());
    }

    #[test]
    fn state_names_follow_kernel_numbers() {
        assert_eq!([1, 6, 10, 200].map(state_name), ["established", "time-wait", "listening", "unknown"]);
    }
}
