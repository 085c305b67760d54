//! Slots of a listener for clients that it has not admitted yet, and the choice of the client that is evicted when no
//! slot is free. `docs/src/transport-security.md`, "Under load".
//!
//! A client is silent until it has sent AUTH, which it may never do. The silent client with the largest product of its
//! age and its network's slots is evicted. So a network that floods the listener has its own clients evicted, the
//! oldest first, while a genuine client needs its slot for one round trip; and several genuine clients of one network,
//! which are younger, outlast as many of a flood. Clients that have finished TLS are silent as others are: TLS needs no
//! ticket, so a preference for them would let an attacker keep its slots.

use alloc::collections::{BTreeMap, BTreeSet};
use core::cmp::Reverse;
use core::net::SocketAddr;

use units::Time;

use crate::handle::ConnectionHandle;
use crate::listener_group::{HandshakeSlot, network};
use crate::parameters::OriginalDestinationId;

/// The address of a client, and the ID to which it sends its Initial packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct HandshakeKey {
    pub(crate) remote: SocketAddr,
    pub(crate) first_id: OriginalDestinationId,
}

/// A client that is not admitted.
#[derive(Debug)]
struct Stranger {
    client: HandshakeKey,
    started_at: Time,
    slot: HandshakeSlot,
}

/// The clients of a network.
#[derive(Default, Debug)]
struct SourceNetwork {
    slots: usize,
    silent: BTreeSet<ConnectionHandle>,
}

/// The clients of an endpoint that are not admitted.
#[derive(Debug)]
pub(crate) struct Strangers {
    max_slots: usize,
    all: BTreeMap<ConnectionHandle, Stranger>,
    /// Clients that are silent.
    silent: usize,
    networks: BTreeMap<u64, SourceNetwork>,
    handles: BTreeMap<HandshakeKey, ConnectionHandle>,
}

impl Strangers {
    /// Creates an endpoint's slots, all free.
    pub(crate) fn new(max_slots: usize) -> Self {
        debug_assert!(max_slots > 0);
        Self { max_slots, all: BTreeMap::new(), silent: 0, networks: BTreeMap::new(), handles: BTreeMap::new() }
    }

    /// Returns the connection of a client.
    pub(crate) fn find(&self, client: &HandshakeKey) -> Option<ConnectionHandle> {
        self.handles.get(client).copied()
    }

    /// Returns whether a connection has a slot.
    pub(crate) fn contains(&self, handle: ConnectionHandle) -> bool {
        self.all.contains_key(&handle)
    }

    /// Returns whether a slot is free, or can be made free.
    pub(crate) fn have_room(&self) -> bool {
        self.all.len() < self.max_slots || self.silent > 0
    }

    /// Returns the connection that is evicted for another client; none if a slot is free, or no client is silent. Of
    /// clients with the same product it is the oldest one.
    pub(crate) fn next_evicted(&self, now: Time) -> Option<ConnectionHandle> {
        if self.all.len() < self.max_slots {
            return None;
        }
        let oldest = self.networks.values().filter_map(|network| Some((network.slots, *network.silent.first()?)));
        let product = |&(slots, handle): &(usize, ConnectionHandle)| {
            let age = now.saturating_since(self.all[&handle].started_at);
            (u128::from(age.unsigned_ps()) * slots as u128, Reverse(handle))
        };
        oldest.max_by_key(product).map(|(_, handle)| handle)
    }

    /// Assigns a slot to a new connection.
    pub(crate) fn insert(&mut self, now: Time, handle: ConnectionHandle, client: HandshakeKey, slot: HandshakeSlot) {
        debug_assert!(self.all.len() < self.max_slots, "no slot is free");
        let network = self.networks.entry(network(client.remote.ip())).or_default();
        network.slots += 1;
        network.silent.insert(handle);
        self.silent += 1;
        self.handles.insert(client, handle);
        let before = self.all.insert(handle, Stranger { client, started_at: now, slot });
        debug_assert!(before.is_none(), "a connection has one slot");
    }

    /// Notes that a client has validated its address.
    pub(crate) fn validate(&mut self, handle: ConnectionHandle) {
        if let Some(stranger) = self.all.get_mut(&handle) {
            stranger.slot.validate();
        }
    }

    /// Marks a client as not silent any more: it keeps its slot until the application has decided.
    pub(crate) fn claim(&mut self, handle: ConnectionHandle) {
        let Some(Stranger { client, .. }) = self.all.get(&handle) else { return };
        let network = self.networks.get_mut(&network(client.remote.ip()));
        debug_assert!(network.is_some(), "a connection has a slot, and its network has none");
        if network.is_some_and(|network| network.silent.remove(&handle)) {
            self.silent -= 1;
        }
    }

    /// Frees the slot of a connection, if it has one.
    pub(crate) fn remove(&mut self, handle: ConnectionHandle) {
        self.claim(handle);
        let Some(Stranger { client, .. }) = self.all.remove(&handle) else { return };
        let named = self.handles.remove(&client);
        debug_assert!(named.is_some(), "a connection has a slot, and its client no name");
        let key = network(client.remote.ip());
        if let Some(network) = self.networks.get_mut(&key) {
            network.slots -= 1;
            if network.slots == 0 {
                self.networks.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener_group::GroupMember;

    /// Clients of four slots that came one after another, from these networks.
    fn strangers(networks: &[u8]) -> Strangers {
        let mut strangers = Strangers::new(4);
        for (at, &network) in networks.iter().enumerate() {
            insert(&mut strangers, at as u64, network);
        }
        strangers
    }

    fn insert(strangers: &mut Strangers, at: u64, network: u8) {
        let remote = SocketAddr::from(([10, 0, 0, network], 1 + at as u16));
        let client = HandshakeKey { remote, first_id: OriginalDestinationId::from([network; 8]) };
        let slot = GroupMember::alone().admit_validated();
        strangers.insert(Time::from_ms(at), ConnectionHandle(at), client, slot);
        assert_eq!(strangers.find(&client), Some(ConnectionHandle(at)));
    }

    fn evicted(strangers: &Strangers, ms: u64) -> Option<u64> {
        strangers.next_evicted(Time::from_ms(ms)).map(|handle| handle.0)
    }

    #[test]
    fn the_largest_network_makes_room() {
        let mut strangers = strangers(&[1, 2, 2]);
        assert_eq!(evicted(&strangers, 100), None);
        insert(&mut strangers, 3, 3);
        assert_eq!(evicted(&strangers, 100), Some(1));
        strangers.remove(ConnectionHandle(1));
        assert_eq!(evicted(&strangers, 100), None);
        insert(&mut strangers, 4, 3);
        assert_eq!(evicted(&strangers, 100), Some(3));
        // Among networks with equal numbers of slots the oldest client is evicted.
        strangers.remove(ConnectionHandle(3));
        insert(&mut strangers, 5, 4);
        assert_eq!(evicted(&strangers, 100), Some(0));
    }

    #[test]
    fn clients_of_a_small_network_outlast_a_larger_one() {
        let strangers = strangers(&[1, 2, 2, 2]);
        // Three clients since 1 ms, and one since 0 ms.
        assert_eq!(evicted(&strangers, 10), Some(1));
        let mut strangers = Strangers::new(4);
        for (at, network) in [(0, 1), (80, 2), (81, 2), (82, 2)] {
            insert(&mut strangers, at, network);
        }
        assert_eq!((evicted(&strangers, 119), evicted(&strangers, 121)), (Some(0), Some(80)));
    }

    #[test]
    fn a_client_that_sent_auth_keeps_its_slot() {
        let mut strangers = strangers(&[1, 2, 2, 2]);
        strangers.claim(ConnectionHandle(1));
        assert_eq!(evicted(&strangers, 10), Some(2));
        for handle in [2, 3, 3] {
            strangers.claim(ConnectionHandle(handle));
        }
        assert_eq!(evicted(&strangers, 10), Some(0));
        strangers.claim(ConnectionHandle(0));
        assert!(evicted(&strangers, 9_999).is_none() && !strangers.have_room());
        strangers.remove(ConnectionHandle(3));
        assert!(strangers.have_room());
    }

    #[test]
    fn removed_clients_leave_no_state() {
        let mut strangers = strangers(&[1, 2, 2, 2]);
        strangers.claim(ConnectionHandle(2));
        for handle in 0..5 {
            strangers.remove(ConnectionHandle(handle));
        }
        assert!(strangers.all.is_empty() && strangers.silent == 0);
        assert!(strangers.networks.is_empty() && strangers.handles.is_empty());
    }
}
