//! Received datagrams: authentic, for this member, and new; else they change nothing.

use clocks::{Era, Header, Member, Session};
use serde::Serialize;
use units::Time;

use crate::seal::{MeshKey, Opened, ReplayWindow};

/// Length of the header that all messages begin with.
pub(crate) const HEADER_LENGTH: usize = 24;

/// Datagrams that were refused, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Refusals {
    /// Not authentic: another key, another list of members, forged or damaged.
    pub unauthentic: u64,
    /// Authentic, but not for this member or not by another member.
    pub misdirected: u64,
    /// Received before.
    pub replayed: u64,
    /// Authentic and new, but not valid.
    pub malformed: u64,
}

/// Kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MessageKind {
    /// A message of [`clocks::Node`].
    Node,
    /// An announcement of UTC.
    Utc,
}

/// Second byte of an announcement of UTC; the node has kinds from 1 on.
pub(crate) const UTC_KIND: u8 = 129;

/// First byte of all messages.
pub(crate) const VERSION: u8 = 1;

/// An accepted message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Accepted<'a> {
    /// The whole message.
    pub(crate) message: &'a [u8],
    /// Its header.
    pub(crate) header: Header,
    /// Its kind.
    pub(crate) kind: MessageKind,
}

/// The checks of a member's datagrams.
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    key: MeshKey,
    own: Member,
    /// By member.
    windows: Vec<ReplayWindow>,
    /// Datagrams that were refused.
    pub(crate) refusals: Refusals,
}

impl Inbox {
    /// Creates the checks of member `own` of `members` members.
    pub(crate) fn new(key: MeshKey, own: Member, members: usize) -> Self {
        Self { key, own, windows: vec![ReplayWindow::default(); members], refusals: Refusals::default() }
    }

    /// Lets times begin at zero again. What has been received stays known.
    pub(crate) fn restart_time(&mut self) {
        self.windows.iter_mut().for_each(ReplayWindow::restart_time);
    }

    /// Returns the message in a datagram, unless it is refused.
    pub(crate) fn open<'a>(&mut self, now: Time, datagram: &'a [u8]) -> Option<Accepted<'a>> {
        let Some(Opened { message, number }) = self.key.open(datagram) else {
            self.refusals.unauthentic += 1;
            return None;
        };
        let Some(Parsed { header, kind }) = parse_header(message) else {
            self.refusals.malformed += 1;
            return None;
        };
        let is_other = header.sender != self.own;
        let Some(window) =
            self.windows.get_mut(header.sender.index()).filter(|_| header.receiver == self.own && is_other)
        else {
            self.refusals.misdirected += 1;
            return None;
        };
        if !window.accept(now, header.sender_session, number) {
            self.refusals.replayed += 1;
            return None;
        }
        Some(Accepted { message, header, kind })
    }
}

struct Parsed {
    header: Header,
    kind: MessageKind,
}

/// Parses the header; see the table of the messages of [`clocks`].
fn parse_header(message: &[u8]) -> Option<Parsed> {
    let header = message.first_chunk::<HEADER_LENGTH>()?;
    let two = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let eight = |at: usize| {
        u64::from(two(at)) << 48 | u64::from(two(at + 2)) << 32 | u64::from(two(at + 4)) << 16 | u64::from(two(at + 6))
    };
    let kind = match header {
        [VERSION, UTC_KIND, ..] => MessageKind::Utc,
        [VERSION, 1..=3, ..] => MessageKind::Node,
        _ => return None,
    };
    let header = Header {
        sender: Member(two(2)),
        receiver: Member(two(4)),
        sender_session: Session(eight(6)),
        receiver_session: Some(eight(14)).filter(|&session| session != 0).map(Session),
        era: Era(two(22)),
    };
    Some(Parsed { header, kind })
}

/// Writes a header.
pub(crate) fn write_header(header: &Header, kind: u8, bytes: &mut Vec<u8>) {
    bytes.extend([VERSION, kind]);
    bytes.extend(header.sender.0.to_be_bytes());
    bytes.extend(header.receiver.0.to_be_bytes());
    bytes.extend(header.sender_session.0.to_be_bytes());
    bytes.extend(header.receiver_session.map_or(0, |session| session.0).to_be_bytes());
    bytes.extend(header.era.0.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use clocks::{Agreement, Body, Message, PairIndex, Probe};

    fn key() -> MeshKey {
        MeshKey::derive(b"0123456789abcdef", b"mesh")
    }

    fn probe(members: [u16; 2], session: u64) -> Message {
        let [sender, receiver] = members.map(Member);
        let header = Header {
            sender,
            receiver,
            sender_session: Session(session),
            receiver_session: Some(Session(0x0102_0304_0506_0708)),
            era: Era(9),
        };
        Message {
            header,
            body: Body::Probe(Probe { nonce: 5, index: PairIndex::Second, agreement: Agreement::Agrees }),
        }
    }

    #[test]
    fn headers_are_those_of_the_node() {
        let message = probe([3, 1], 77);
        let bytes = message.encode();
        assert_eq!(parse_header(&bytes).unwrap().header, message.header);
        let mut written = Vec::new();
        write_header(&message.header, 1, &mut written);
        assert_eq!(written, bytes[..HEADER_LENGTH]);
    }

    #[test]
    fn each_refusal_has_its_reason() {
        let mut inbox = Inbox::new(key(), Member(1), 4);
        let sealed = key().seal(&probe([3, 1], 77).encode(), 12);
        assert_eq!(inbox.open(Time::ZERO, &sealed).unwrap().header.sender, Member(3));
        let before = inbox.clone();
        assert!(inbox.open(Time::ZERO, &sealed).is_none());
        assert!(inbox.open(Time::ZERO, &sealed[1..]).is_none());
        let other = [[3, 2], [1, 1], [4, 1]].map(|members| key().seal(&probe(members, 77).encode(), 13));
        assert!(other.iter().all(|datagram| inbox.open(Time::ZERO, datagram).is_none()));
        assert!(inbox.open(Time::ZERO, &key().seal(b"short", 14)).is_none());
        let expected = Refusals { unauthentic: 1, misdirected: 3, replayed: 1, malformed: 1 };
        assert_eq!(inbox.refusals, expected);
        assert_eq!(inbox.windows, before.windows, "what is refused changes nothing");
    }
}
