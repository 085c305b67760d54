//! The messages of the kernel's socket monitor (`sock_diag(7)`): a request for all TCP sockets of a namespace, and
//! what comes back. What comes back is not trusted: a length that points outside is the end of the message.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::tcp_info::TcpInfo;

/// A netlink header's length.
const HEADER: usize = 16;
/// `struct inet_diag_msg`'s length.
const BODY: usize = 72;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;

const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;

/// Connections that have or had two ends: not those that listen, are being made, or only wait for old packets.
const STATES: u32 = {
    let (established, fin_wait_1, fin_wait_2, close_wait, last_ack, closing) = (1, 4, 5, 8, 9, 11);
    1 << established | 1 << fin_wait_1 | 1 << fin_wait_2 | 1 << close_wait | 1 << last_ack | 1 << closing
};

/// What the kernel says of a TCP socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Socket {
    /// Its own address and port.
    pub local: SocketAddr,
    /// The other end's.
    pub peer: SocketAddr,
    /// A number that no other socket of the namespace has or had.
    pub cookie: u64,
    /// Its congestion control; empty where that was not said.
    pub congestion: String,
    /// Its counters.
    pub info: TcpInfo,
}

/// One netlink message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    Socket(Box<Socket>),
    /// No more sockets.
    Done,
    /// The request failed, with this `errno`.
    Failed(i32),
    /// None of ours.
    Other,
}

/// A request for all connections of IPv4, or of IPv6.
pub(super) fn request(ipv6: bool) -> [u8; HEADER + 56] {
    let mut bytes = [0; HEADER + 56];
    let length = bytes.len() as u32;
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &length.to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    let family = if ipv6 { libc::AF_INET6 } else { libc::AF_INET };
    let wanted = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    put(HEADER, &[family as u8, libc::IPPROTO_TCP as u8, wanted]);
    put(HEADER + 4, &STATES.to_ne_bytes());
    bytes
}

/// The messages in what was received at a time.
pub(super) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message> {
    std::iter::from_fn(move || {
        let (header, _) = bytes.split_at_checked(HEADER)?;
        let length = u32::from_ne_bytes(array(header, 0)?) as usize;
        let message = bytes.get(HEADER..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or(&[]);
        Some(match u16::from_ne_bytes(array(header, 4)?) {
            SOCK_DIAG_BY_FAMILY => socket(message).map_or(Message::Other, |it| Message::Socket(Box::new(it))),
            NLMSG_DONE => Message::Done,
            NLMSG_ERROR => match array(message, 0).map_or(0, i32::from_ne_bytes) {
                0 => Message::Other,
                code => Message::Failed(code.saturating_neg()),
            },
            _ => Message::Other,
        })
    })
}

fn socket(message: &[u8]) -> Option<Socket> {
    let (body, mut rest) = message.split_at_checked(BODY)?;
    let port = |at| array(body, at).map(u16::from_be_bytes);
    let address = |at| match i32::from(body[0]) {
        libc::AF_INET => array::<4>(body, at).map(|it| IpAddr::from(Ipv4Addr::from(it))),
        // A socket of IPv6 may speak IPv4.
        libc::AF_INET6 => array::<16>(body, at).map(|it| Ipv6Addr::from(it).to_canonical()),
        _ => None,
    };
    let mut socket = Socket {
        local: SocketAddr::new(address(8)?, port(4)?),
        peer: SocketAddr::new(address(24)?, port(6)?),
        cookie: u64::from_ne_bytes(array(body, 44)?),
        congestion: String::new(),
        info: TcpInfo { state: body[1], ..TcpInfo::default() },
    };
    while let Some((kind, value)) = attribute(&mut rest) {
        match kind {
            INET_DIAG_INFO => socket.info = TcpInfo::parse(value),
            INET_DIAG_CONG => {
                let name = value.split(|&byte| byte == 0).next().unwrap_or(&[]);
                socket.congestion = String::from_utf8_lossy(name).into_owned();
            }
            _ => {}
        }
    }
    Some(socket)
}

/// The next attribute, kind and value; none at the end, or where a length cannot be.
fn attribute<'a>(rest: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
    let length = usize::from(u16::from_ne_bytes(array(rest, 0)?));
    let kind = u16::from_ne_bytes(array(rest, 2)?);
    let value = rest.get(4..length)?;
    *rest = rest.get(aligned(length)..).unwrap_or(&[]);
    Some((kind, value))
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
            payload.extend((4 + value.len() as u16).to_ne_bytes());
            payload.extend(kind.to_ne_bytes());
            payload.extend(*value);
            payload.resize(aligned(payload.len()), 0);
        }
        made(SOCK_DIAG_BY_FAMILY, &payload)
    }

    #[test]
    fn a_socket_is_read() {
        let mut info = vec![0u8; 248];
        info[80..84].copy_from_slice(&42u32.to_ne_bytes());
        let mut bytes =
            socket_message(libc::AF_INET, &[(9, &[1]), (INET_DIAG_CONG, b"cubic\0"), (INET_DIAG_INFO, &info)]);
        bytes.extend(made(NLMSG_DONE, &[0; 4]));
        let all: Vec<Message> = messages(&bytes).collect();
        let [Message::Socket(socket), Message::Done] = &all[..] else { panic!("{all:?}") };
        assert_eq!(socket.local.to_string(), "10.198.0.1:10000");
        assert_eq!(socket.peer.to_string(), "10.198.1.1:5001");
        assert_eq!((socket.cookie, socket.congestion.as_str(), socket.info.cwnd), (77, "cubic", 42));
        assert_eq!(messages(&made(NLMSG_ERROR, &(-13i32).to_ne_bytes())).next(), Some(Message::Failed(13)));
    }

    proptest! {
        #[test]
        fn garbage_is_read_to_its_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            // Every message takes at least its header.
            prop_assert!(messages(&bytes).count() <= bytes.len() / HEADER);
        }

        #[test]
        fn a_message_cut_short_or_changed_is_no_panic(
            cut in 0usize..400,
            at in 0usize..400,
            byte: u8,
            family in prop::sample::select(vec![libc::AF_INET, libc::AF_INET6, 0]),
            name in prop::collection::vec(any::<u8>(), 0..20),
            info in prop::collection::vec(any::<u8>(), 0..260),
        ) {
            let mut bytes = socket_message(family, &[(INET_DIAG_CONG, &name), (INET_DIAG_INFO, &info)]);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(cut);
            prop_assert!(messages(&bytes).count() <= 1 + cut / HEADER);
        }
    }
}
