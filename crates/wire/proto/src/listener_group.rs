//! Listener group: endpoints that listen at one address, each in a thread of its own. Admission limits shared by the
//! group, and the owner of each connection ID. `docs/src/transport-security.md`, "Several threads".
//!
//! Each endpoint has its own connections, so the shared state consists of lock-free counters. If two endpoints count at
//! the same moment, address validation may be required one handshake too early, but never too late.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use units::{Span, Time};

use crate::ConnectionId;

/// Open handshakes above which clients must validate their addresses.
const VALIDATION_THRESHOLD: usize = 64;
/// Slots of a listener, divided among its endpoints ([`MIN_SHARE`]), and the limit of handshakes for one unvalidated
/// address, so that forged packets with that address cannot exhaust it.
const MAX_HANDSHAKES: usize = 1_024;
const MAX_HANDSHAKES_PER_NETWORK: usize = 16;
/// Smallest part of [`MAX_HANDSHAKES`] that an endpoint has for itself.
const MIN_SHARE: usize = 128;
/// Responses to unknown senders per second that cost more than a lookup: resets, errors to clients that request another
/// service, and datagrams that are forwarded to all endpoints.
const MAX_STRANGERS: u64 = 100;

/// An entry for the network of a client that has not validated its address ([`network`]), or none.
#[derive(Debug)]
struct NetworkEntry(AtomicU64);

impl NetworkEntry {
    /// Value of a free entry. As an IPv6 network this would be a multicast network, which is never a source.
    const FREE: u64 = u64::MAX;

    const fn free() -> Self {
        Self(AtomicU64::new(Self::FREE))
    }

    /// Takes the entry for a network if it is free. Returns whether it was.
    fn take(&self, network: u64) -> bool {
        debug_assert_ne!(network, Self::FREE, "the network of a client is a multicast network");
        self.0.compare_exchange(Self::FREE, network, SeqCst, SeqCst).is_ok()
    }

    fn release(&self) {
        let network = self.0.swap(Self::FREE, SeqCst);
        debug_assert_ne!(network, Self::FREE, "an entry is released twice");
    }

    /// Returns whether the entry is taken for this network.
    fn is_of(&self, network: u64) -> bool {
        self.0.load(SeqCst) == network
    }
}

/// State shared by the endpoints of a group.
#[derive(Debug)]
struct ListenerGroup {
    members: u8,
    /// Number of open handshakes.
    open_handshakes: AtomicUsize,
    /// Addresses of clients that are not validated, at most [`VALIDATION_THRESHOLD`].
    unvalidated: [NetworkEntry; VALIDATION_THRESHOLD],
    /// The second of the last response to an unknown sender, and the number of responses in it: 32 bits each.
    strangers: AtomicU64,
}

/// One endpoint of a group.
#[derive(Clone, Debug)]
pub(crate) struct GroupMember {
    group: Arc<ListenerGroup>,
    number: u8,
}

/// Guard of an open handshake, which counts until this is dropped.
#[derive(Debug)]
pub(crate) struct HandshakeSlot {
    group: Arc<ListenerGroup>,
    /// Its entry among the addresses that are not validated.
    entry: Option<usize>,
}

impl ListenerGroup {
    fn new(members: u8) -> Arc<Self> {
        let unvalidated = [const { NetworkEntry::free() }; VALIDATION_THRESHOLD];
        Arc::new(Self { members, open_handshakes: AtomicUsize::new(0), unvalidated, strangers: AtomicU64::new(0) })
    }
}

impl GroupMember {
    /// Creates all members of a group: at least one.
    pub(crate) fn all(members: u8) -> Vec<Self> {
        let group = ListenerGroup::new(members.max(1));
        (0..group.members).map(|number| Self { group: group.clone(), number }).collect()
    }

    /// Creates the only member of a group.
    pub(crate) fn alone() -> Self {
        Self { group: ListenerGroup::new(1), number: 0 }
    }

    /// Returns whether the group has other members.
    pub(crate) fn has_others(&self) -> bool {
        self.group.members > 1
    }

    /// Returns whether this endpoint issued an ID, provided that a member of the group did.
    pub(crate) fn owns(&self, id: ConnectionId) -> bool {
        id[0] % self.group.members == self.number
    }

    /// Converts a random ID to one of this endpoint. The rest of it stays random: at least 58 of 64 bits, in a group of
    /// up to 64.
    pub(crate) fn tag_id(&self, random: ConnectionId) -> ConnectionId {
        let mut id = random;
        // The last values of a byte may be too few for all endpoints.
        id[0] = (id[0] - id[0] % self.group.members).checked_add(self.number).unwrap_or(self.number);
        id
    }

    /// Returns the limit of open handshakes at this endpoint: an equal share, so that clients that the kernel directs
    /// to one endpoint do not use the shares of the others.
    pub(crate) fn share(&self) -> usize {
        (MAX_HANDSHAKES / usize::from(self.group.members)).max(MIN_SHARE)
    }

    /// Admits the handshake of a client without a validated address; none if the client must validate it first.
    pub(crate) fn admit(&self, remote: IpAddr) -> Option<HandshakeSlot> {
        let group = &self.group;
        group
            .open_handshakes
            .fetch_update(SeqCst, SeqCst, |open_handshakes| {
                (open_handshakes < VALIDATION_THRESHOLD).then_some(open_handshakes + 1)
            })
            .ok()?;
        let network = network(remote);
        let slot = HandshakeSlot {
            group: group.clone(),
            entry: group.unvalidated.iter().position(|entry| entry.take(network)),
        };
        // Includes this one. Entries counted at the same time are visible to each other.
        let same_network = group.unvalidated.iter().filter(|entry| entry.is_of(network)).count();
        (slot.entry.is_some() && same_network <= MAX_HANDSHAKES_PER_NETWORK).then_some(slot)
    }

    /// Admits the handshake of a client with a validated address. The endpoint enforces its [`GroupMember::share`].
    pub(crate) fn admit_validated(&self) -> HandshakeSlot {
        self.group.open_handshakes.fetch_add(1, SeqCst);
        HandshakeSlot { group: self.group.clone(), entry: None }
    }

    /// Returns whether an unvalidated sender may receive a response now. The response is counted in that case.
    pub(crate) fn may_reply(&self, now: Time) -> bool {
        // Times end after 213 days.
        let second = now.ps() / Span::from_s(1).unsigned_ps();
        let counted = |word: u64| match (word >> 32, word & 0xffff_ffff) {
            (then, count) if then == second => (count < MAX_STRANGERS).then_some(word + 1),
            _ => Some(second << 32 | 1),
        };
        self.group.strangers.fetch_update(SeqCst, SeqCst, counted).is_ok()
    }
}

impl HandshakeSlot {
    /// Notes that the caller has validated its address.
    pub(crate) fn validate(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.group.unvalidated[entry].release();
        }
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        // In this order: there are never more entries than handshakes.
        self.validate();
        let open_handshakes = self.group.open_handshakes.fetch_sub(1, SeqCst);
        debug_assert!(open_handshakes > 0, "a handshake ends that was not counted");
    }
}

/// Returns the unit in which addresses of clients are counted: an IPv4 address, or a /64 network of IPv6.
pub(crate) fn network(address: IpAddr) -> u64 {
    match address.to_canonical() {
        // As an IPv6 network this would be a multicast network, too.
        IpAddr::V4(address) => 0xff00 << 48 | u64::from(u32::from(address)),
        IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_identifies_its_endpoint() {
        for members in 1..=64 {
            for member in GroupMember::all(members) {
                for first in 0..=255 {
                    let random = [first, 1, 2, 3, 4, 5, 6, 7];
                    let id = member.tag_id(random);
                    assert!(member.owns(id) && id[0] % members == member.number && id[1..] == random[1..]);
                    assert!(members > 1 || id == random);
                }
            }
        }
    }

    #[test]
    fn handshakes_are_counted_over_all_endpoints() {
        let group = GroupMember::all(3);
        let admit = |at: usize, host: u8| group[at % 3].admit(IpAddr::from([10, 0, 0, host]));
        let mut slots: Vec<HandshakeSlot> = (0..16).map(|at| admit(at, 1).unwrap()).collect();
        assert!(admit(0, 1).is_none());
        // A handshake that validates its address and one that ends make room.
        slots[3].validate();
        slots.push(admit(1, 1).unwrap());
        assert!(admit(2, 1).is_none());
        slots.pop();
        slots.push(admit(1, 1).unwrap());
        slots.extend((0..VALIDATION_THRESHOLD - 18).map(|at| admit(at, 2 + at as u8 / 16).unwrap()));
        slots.push(group[2].admit_validated());
        assert!(admit(0, 99).is_none());
        slots.extend((0..MAX_HANDSHAKES).map(|at| group[at % 3].admit_validated()));
        assert!(admit(0, 99).is_none());
        drop(slots);
        assert_eq!(group[0].group.open_handshakes.load(SeqCst), 0);
        assert!(group[0].group.unvalidated.iter().all(|entry| entry.is_of(NetworkEntry::FREE)));
    }

    #[test]
    fn endpoints_have_equal_parts() {
        let shares = [1, 2, 8, 64].map(|members| GroupMember::all(members)[0].share());
        assert_eq!(shares, [1_024, 512, 128, 128]);
    }

    #[test]
    fn networks_are_distinguished() {
        let network = |text: &str| network(text.parse().unwrap());
        assert_eq!(network("2001:db8::1"), network("2001:db8::2:0:0:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
        assert_ne!(network("0.0.0.1"), network("::1"));
    }

    #[test]
    fn the_reply_rate_limit_is_shared() {
        let group = GroupMember::all(2);
        for second in [0, 1, 7] {
            let now = Time::from_ms(1_000 * second);
            let permitted = (0..300).filter(|at| group[at % 2].may_reply(now)).count();
            assert_eq!(permitted as u64, MAX_STRANGERS);
        }
    }
}
