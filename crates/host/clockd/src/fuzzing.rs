//! Functions for the fuzz target only.

use clocks::{Header, Member, MemberConfig, MeshConfig, Node, Reading, Session};
use units::Time;

use crate::inbox::{HEADER_LENGTH, Inbox, MessageKind};
use crate::seal::MeshKey;
use crate::utc::{UtcLine, UtcLines};

/// A member of a mesh of three that takes any datagrams.
#[derive(Debug)]
pub struct FuzzedMember {
    key: MeshKey,
    inbox: Inbox,
    node: Node,
    utc: UtcLines,
    number: u64,
}

impl Default for FuzzedMember {
    fn default() -> Self {
        let key = MeshKey::derive(b"0123456789abcdef", b"");
        let members = (0..3).map(|id| MemberConfig { id, site: 0 }).collect();
        let node = Node::new(MeshConfig::new(members), Member(1), Session(7), 1, Time::ZERO);
        Self { inbox: Inbox::new(key.clone(), Member(1), 3), key, node, utc: UtcLines::new(3), number: 0 }
    }
}

impl FuzzedMember {
    /// Takes a datagram as from the network. Returns whether it was accepted.
    pub fn receive(&mut self, now: Time, datagram: &[u8]) -> bool {
        let Some(accepted) = self.inbox.open(now, datagram) else { return false };
        match accepted.kind {
            MessageKind::Node => {
                self.node.receive(now, Reading(now.ns() as i64), accepted.message);
            }
            MessageKind::Utc => {
                if let Some(line) = UtcLine::decode(accepted.message) {
                    self.utc.take(now, line);
                    let _ = self.utc.at(now, Reading(0));
                }
            }
        }
        true
    }

    /// Takes a message that another member with the key has sealed: only its content is arbitrary. Taken again, as it was or
    /// with a bit changed, it is refused.
    ///
    /// # Panics
    /// If it is not refused then.
    pub fn receive_sealed(&mut self, now: Time, message: &[u8]) {
        self.number += 1;
        let sealed = self.key.seal(message, self.number);
        self.receive(now, &sealed);
        assert!(!self.receive(now, &sealed), "accepted twice");
        let mut changed = sealed.clone();
        let at = self.number as usize % changed.len();
        changed[at] ^= 1;
        assert!(!self.receive(now, &changed), "accepted with a bit changed");
    }

    /// Does the node's work up to `now`, and discards what it sends.
    pub fn wake(&mut self, now: Time) {
        self.node.wake(now, Reading(now.ns() as i64));
        while self.node.poll_outgoing().is_some() {}
        while self.node.poll_event().is_some() {}
    }

    /// Returns a message with a valid header from `sender` and this second byte and content.
    pub fn message(sender: u16, kind: u8, content: &[u8]) -> Vec<u8> {
        let header = Header {
            sender: Member(sender),
            receiver: Member(1),
            sender_session: Session(5),
            receiver_session: Some(Session(7)),
            era: clocks::Era(0),
        };
        let mut message = Vec::with_capacity(HEADER_LENGTH + content.len());
        crate::inbox::write_header(&header, kind, &mut message);
        message.extend_from_slice(content);
        message
    }
}
