//! Netlink messages of the kernel's `sock_diag(7)`: a request for the TCP sockets of a network namespace, and the
//! replies. Replies are not trusted: a length that points outside ends the message.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::tcp_info::TcpInfo;

/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Length of `struct inet_diag_msg`.
const BODY: usize = 72;
/// Length of `struct inet_diag_req_v2`.
const REQUEST: usize = 56;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP_INTR: u16 = 0x10;
const NLM_F_DUMP: u16 = 0x300;
const NLA_F_NESTED: u16 = 1 << 15;
/// Mask of an attribute's kind, without its flags.
const NLA_TYPE_MASK: u16 = !(3 << 14);

const INET_DIAG_REQ_SK_BPF_STORAGES: u16 = 2;
const SK_DIAG_BPF_STORAGE_REQ_MAP_FD: u16 = 1;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SK_BPF_STORAGES: u16 = 20;
const SK_DIAG_BPF_STORAGE: u16 = 1;
const SK_DIAG_BPF_STORAGE_MAP_ID: u16 = 2;
const SK_DIAG_BPF_STORAGE_MAP_VALUE: u16 = 3;

/// States with two ends after the handshake, without TIME-WAIT.
const CONNECTED: u32 = {
    let (established, fin_wait_1, fin_wait_2, close_wait, last_ack, closing) = (1, 4, 5, 8, 9, 11);
    1 << established | 1 << fin_wait_1 | 1 << fin_wait_2 | 1 << close_wait | 1 << last_ack | 1 << closing
};
/// SYN-SENT and SYN-RECEIVED.
const CONNECTING: u32 = 1 << 2 | 1 << 3;

/// A BPF socket-storage value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Storage {
    /// The map's ID in the kernel.
    pub map_id: u32,
    /// The map's value for this socket.
    pub value: Vec<u8>,
}

/// A TCP socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiagSocket {
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub peer: SocketAddr,
    /// Unique number of the socket in its namespace; the kernel never reuses it.
    pub cookie: u64,
    /// Name of its congestion control; empty if the kernel did not report it.
    pub congestion: String,
    /// Counters and state.
    pub info: TcpInfo,
    /// BPF storages of the requested maps.
    pub storages: Vec<Storage>,
}

impl DiagSocket {
    /// Returns the socket's value in the map with that ID.
    pub fn storage(&self, map_id: u32) -> Option<&[u8]> {
        let storage = self.storages.iter().find(|storage| storage.map_id == map_id)?;
        Some(&storage.value)
    }
}

/// Sockets and attributes to dump.
#[derive(Clone, Debug)]
pub struct DumpRequest<'a> {
    states: u32,
    maps: Vec<BorrowedFd<'a>>,
}

impl<'a> DumpRequest<'a> {
    /// Connections after their handshake: no listeners, no sockets in TIME-WAIT.
    pub fn connections() -> Self {
        Self { states: CONNECTED, maps: Vec::new() }
    }

    /// Adds connections during their handshake.
    #[must_use]
    pub fn and_connecting(mut self) -> Self {
        self.states |= CONNECTING;
        self
    }

    /// Adds the sockets' values in these BPF maps of type `sk_storage`. Needs `CAP_BPF`.
    #[must_use]
    pub fn with_storages(mut self, maps: impl IntoIterator<Item = BorrowedFd<'a>>) -> Self {
        self.maps.extend(maps);
        self
    }

    /// Returns true if the request includes BPF storage.
    pub(crate) fn has_storages(&self) -> bool {
        !self.maps.is_empty()
    }

    /// The netlink message for one address family.
    pub(crate) fn encode(&self, family: Family, sequence: u32) -> Vec<u8> {
        let family = match family {
            Family::V4 => libc::AF_INET,
            Family::V6 => libc::AF_INET6,
        };
        let mut bytes = vec![0; HEADER + REQUEST];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        put(6, &(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        put(8, &sequence.to_ne_bytes());
        let extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
        put(HEADER, &[family as u8, libc::IPPROTO_TCP as u8, extensions]);
        put(HEADER + 4, &self.states.to_ne_bytes());
        if self.has_storages() {
            let map =
                |map: &BorrowedFd<'_>| attribute_bytes(SK_DIAG_BPF_STORAGE_REQ_MAP_FD, &map.as_raw_fd().to_ne_bytes());
            let maps: Vec<u8> = self.maps.iter().flat_map(map).collect();
            bytes.extend(attribute_bytes(INET_DIAG_REQ_SK_BPF_STORAGES | NLA_F_NESTED, &maps));
        }
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes
    }
}

/// Address family of a dump. The kernel dumps one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    V4,
    V6,
}

/// A netlink message and the fields of its header that matter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NetlinkReply {
    /// The request's sequence number; 0 for a notification.
    pub(crate) sequence: u32,
    /// Set if the kernel's table changed during the dump, so sockets may be missing (`NLM_F_DUMP_INTR`).
    pub(crate) interrupted: bool,
    pub(crate) message: NetlinkContent,
}

/// Content of a netlink message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NetlinkContent {
    Socket(Box<DiagSocket>),
    /// End of the dump.
    Done,
    /// The request failed with this `errno`.
    Failed(i32),
    /// A message of another kind, or malformed.
    Other,
}

/// The messages of one received datagram.
pub(crate) fn replies(mut bytes: &[u8]) -> impl Iterator<Item = NetlinkReply> {
    std::iter::from_fn(move || {
        let (header, _) = bytes.split_at_checked(HEADER)?;
        let length = u32::from_ne_bytes(array(header, 0)?) as usize;
        let body = bytes.get(HEADER..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or(&[]);
        let message = match u16::from_ne_bytes(array(header, 4)?) {
            SOCK_DIAG_BY_FAMILY => {
                socket(body).map_or(NetlinkContent::Other, |it| NetlinkContent::Socket(Box::new(it)))
            }
            // A dump that fails after its first message ends with the error's negated number.
            NLMSG_DONE => match array(body, 0).map_or(0, i32::from_ne_bytes) {
                error if error < 0 => NetlinkContent::Failed(error.saturating_neg()),
                _ => NetlinkContent::Done,
            },
            NLMSG_ERROR => match array(body, 0).map_or(0, i32::from_ne_bytes) {
                0 => NetlinkContent::Other,
                error => NetlinkContent::Failed(error.saturating_neg()),
            },
            _ => NetlinkContent::Other,
        };
        let flags = u16::from_ne_bytes(array(header, 6)?);
        let sequence = u32::from_ne_bytes(array(header, 8)?);
        Some(NetlinkReply { sequence, interrupted: flags & NLM_F_DUMP_INTR != 0, message })
    })
}

fn socket(message: &[u8]) -> Option<DiagSocket> {
    let (body, mut rest) = message.split_at_checked(BODY)?;
    let port = |at| array(body, at).map(u16::from_be_bytes);
    let address = |at| match i32::from(body[0]) {
        libc::AF_INET => array::<4>(body, at).map(|it| IpAddr::from(Ipv4Addr::from(it))),
        // A socket of IPv6 may use IPv4.
        libc::AF_INET6 => array::<16>(body, at).map(|it| Ipv6Addr::from(it).to_canonical()),
        _ => None,
    };
    let mut socket = DiagSocket {
        local: SocketAddr::new(address(8)?, port(4)?),
        peer: SocketAddr::new(address(24)?, port(6)?),
        cookie: u64::from_ne_bytes(array(body, 44)?),
        congestion: String::new(),
        info: TcpInfo { state: body[1], ..TcpInfo::default() },
        storages: Vec::new(),
    };
    while let Some((kind, value)) = attribute(&mut rest) {
        match kind {
            INET_DIAG_INFO => socket.info = TcpInfo::parse(value),
            INET_DIAG_CONG => {
                let name = value.split(|&byte| byte == 0).next().unwrap_or(&[]);
                socket.congestion = String::from_utf8_lossy(name).into_owned();
            }
            INET_DIAG_SK_BPF_STORAGES => {
                let mut nest = value;
                while let Some((kind, value)) = attribute(&mut nest) {
                    if kind == SK_DIAG_BPF_STORAGE {
                        socket.storages.extend(storage(value));
                    }
                }
            }
            _ => {}
        }
    }
    Some(socket)
}

fn storage(mut nest: &[u8]) -> Option<Storage> {
    let (mut map_id, mut bytes) = (None, None);
    while let Some((kind, value)) = attribute(&mut nest) {
        match kind {
            SK_DIAG_BPF_STORAGE_MAP_ID => map_id = array(value, 0).map(u32::from_ne_bytes),
            SK_DIAG_BPF_STORAGE_MAP_VALUE => bytes = Some(value.to_vec()),
            _ => {}
        }
    }
    Some(Storage { map_id: map_id?, value: bytes? })
}

/// The next attribute, kind and value; none at the end, or if its length is invalid.
fn attribute<'a>(rest: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
    let length = usize::from(u16::from_ne_bytes(array(rest, 0)?));
    let kind = u16::from_ne_bytes(array(rest, 2)?) & NLA_TYPE_MASK;
    let value = rest.get(4..length)?;
    *rest = rest.get(aligned(length)..).unwrap_or(&[]);
    Some((kind, value))
}

/// An attribute as it is sent, padded.
fn attribute_bytes(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

/// Messages and attributes begin at multiples of four bytes.
fn aligned(length: usize) -> usize {
    length.div_ceil(4) * 4
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;
    use proptest::prelude::*;

    /// A message as the kernel makes it.
    fn made(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (HEADER as u32 + payload.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(payload);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn socket_message(family: i32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut payload = vec![0u8; BODY];
        payload[0] = family as u8;
        payload[1] = 1;
        payload[4..8].copy_from_slice(&[0x27, 0x10, 0x13, 0x89]);
        payload[8..12].copy_from_slice(&[10, 198, 0, 1]);
        payload[24..28].copy_from_slice(&[10, 198, 1, 1]);
        payload[44..52].copy_from_slice(&77u64.to_ne_bytes());
        for (kind, value) in attributes {
            payload.extend(attribute_bytes(*kind, value));
        }
        made(SOCK_DIAG_BY_FAMILY, &payload)
    }

    /// The attribute with a map's value, with the padding attribute that the kernel puts before it.
    fn storage_bytes(map_id: u32, value: &[u8]) -> Vec<u8> {
        let parts = [
            attribute_bytes(SK_DIAG_BPF_STORAGE_MAP_ID, &map_id.to_ne_bytes()),
            attribute_bytes(1, &[]),
            attribute_bytes(SK_DIAG_BPF_STORAGE_MAP_VALUE, value),
        ];
        attribute_bytes(SK_DIAG_BPF_STORAGE | NLA_F_NESTED, &parts.concat())
    }

    fn messages(bytes: &[u8]) -> Vec<NetlinkContent> {
        replies(bytes).map(|reply| reply.message).collect()
    }

    #[test]
    fn socket_is_parsed() {
        let mut info = vec![0u8; 248];
        info[80..84].copy_from_slice(&42u32.to_ne_bytes());
        let storages = [storage_bytes(5, &[1; 688]), storage_bytes(6, b"two")].concat();
        let mut bytes = socket_message(
            libc::AF_INET,
            &[
                (9, &[1]),
                (INET_DIAG_CONG, b"cubic\0"),
                (INET_DIAG_INFO, &info),
                (INET_DIAG_SK_BPF_STORAGES | NLA_F_NESTED, &storages),
            ],
        );
        bytes.extend(made(NLMSG_DONE, &[0; 4]));
        let all = messages(&bytes);
        let [NetlinkContent::Socket(socket), NetlinkContent::Done] = &all[..] else { panic!("{all:?}") };
        assert_eq!(socket.local.to_string(), "10.198.0.1:10000");
        assert_eq!(socket.peer.to_string(), "10.198.1.1:5001");
        assert_eq!((socket.cookie, socket.congestion.as_str(), socket.info.cwnd), (77, "cubic", 42));
        assert_eq!((socket.storage(5), socket.storage(6)), (Some(&[1; 688][..]), Some(&b"two"[..])));
        assert_eq!(socket.storage(7), None);
        for kind in [NLMSG_ERROR, NLMSG_DONE] {
            assert_eq!(messages(&made(kind, &(-13i32).to_ne_bytes())), [NetlinkContent::Failed(13)]);
        }
    }

    #[test]
    fn request_names_each_map_once() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let plain = DumpRequest::connections();
        assert_eq!(plain.encode(Family::V4, 1).len(), HEADER + REQUEST);
        let bytes = plain.and_connecting().with_storages([file.as_fd(), file.as_fd()]).encode(Family::V6, 9);
        assert_eq!(u32::from_ne_bytes(array(&bytes, 0).unwrap()) as usize, bytes.len());
        assert_eq!(bytes[8..12], 9u32.to_ne_bytes());
        assert_eq!(i32::from(bytes[HEADER]), libc::AF_INET6);
        let mut rest = &bytes[HEADER + REQUEST..];
        let (kind, mut maps) = attribute(&mut rest).unwrap();
        assert_eq!((kind, rest.len()), (INET_DIAG_REQ_SK_BPF_STORAGES, 0));
        for _ in 0..2 {
            let descriptor = file.as_raw_fd().to_ne_bytes();
            assert_eq!(attribute(&mut maps), Some((SK_DIAG_BPF_STORAGE_REQ_MAP_FD, &descriptor[..])));
        }
        assert_eq!(attribute(&mut maps), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_bounded_number_of_messages(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            // Every message takes at least its header.
            prop_assert!(replies(&bytes).count() <= bytes.len() / HEADER);
        }

        #[test]
        fn truncated_or_corrupted_message_does_not_panic(
            cut in 0usize..800,
            at in 0usize..800,
            byte: u8,
            family in prop::sample::select(vec![libc::AF_INET, libc::AF_INET6, 0]),
            name in prop::collection::vec(any::<u8>(), 0..20),
            info in prop::collection::vec(any::<u8>(), 0..260),
            value in prop::collection::vec(any::<u8>(), 0..260),
        ) {
            let storages = [storage_bytes(3, &value), storage_bytes(4, &name)].concat();
            let attributes = [
                (INET_DIAG_CONG, &name[..]),
                (INET_DIAG_SK_BPF_STORAGES, &storages[..]),
                (INET_DIAG_INFO, &info[..]),
            ];
            let mut bytes = socket_message(family, &attributes);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(cut);
            prop_assert!(replies(&bytes).count() <= 1 + cut / HEADER);
        }
    }
}
