//! The mesh: the pairs of members that probe each other.
//!
//! A union of rings. Each ring has the members in the order of a hash, and neighbours in a ring probe each other. So the
//! mesh is connected, its degree is at most twice the number of rings, and a member that joins or leaves changes two pairs
//! in each ring. Such random graphs have short paths and many loops (Firefly, SIGCOMM 2025; Huygens uses a random graph of
//! degree 10 or so).

use alloc::vec::Vec;

use units::mix64;

/// Index of a member of a mesh, in the order of its configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Member(pub u16);

impl Member {
    /// Returns the number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A pair of neighbours. The first one sends probes, and estimates the offset of the second one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Neighbours {
    /// The member that sends probes.
    pub prober: Member,
    /// The member that answers.
    pub responder: Member,
}

/// Maximum number of rings: a degree of 10.
const MAX_RINGS: u32 = 5;

/// Returns the number of rings for this many members: half of their binary logarithm, rounded up, from 1 to 5, so that the
/// degree grows as their logarithm.
fn rings(members: usize) -> u32 {
    (usize::BITS - members.saturating_sub(1).leading_zeros()).clamp(1, MAX_RINGS)
}

/// Returns the members in the order of a ring, as indices.
fn ring(ids: &[u64], seed: u64, ring: u32) -> Vec<u16> {
    let salt = mix64(seed ^ mix64(u64::from(ring)));
    let mut order: Vec<(u64, u64, u16)> =
        ids.iter().enumerate().map(|(index, &id)| (mix64(id ^ salt), id, index as u16)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, index)| index).collect()
}

/// Number of rings along which reports are forwarded: enough to reach all members with some missing.
const FORWARDING_RINGS: u32 = 3;

/// Returns the successors of a member in up to three rings, each once. A message that each member forwards to its successors
/// reaches all.
pub fn successors(ids: &[u64], seed: u64, member: Member) -> Vec<Member> {
    let mut successors = Vec::new();
    for index in 0..rings(ids.len()).min(FORWARDING_RINGS) {
        let order = ring(ids, seed, index);
        let place = order.iter().position(|&it| it == member.0).map_or(0, |place| (place + 1) % order.len());
        successors.extend(order.get(place).map(|&it| Member(it)).filter(|&it| it != member));
    }
    successors.sort_unstable();
    successors.dedup();
    successors
}

/// Returns the pairs of neighbours among members with these IDs, in order, each once.
///
/// The pairs depend on the IDs and the seed, not on the order of members, except that this determines the indices.
pub fn neighbours(ids: &[u64], seed: u64) -> Vec<Neighbours> {
    let mut pairs = Vec::new();
    for index in 0..rings(ids.len()) {
        let order = ring(ids, seed, index);
        for (place, &prober) in order.iter().enumerate() {
            let responder = order[(place + 1) % order.len()];
            let reversed = Neighbours { prober: Member(responder), responder: Member(prober) };
            if prober != responder && !pairs.contains(&reversed) {
                pairs.push(Neighbours { prober: Member(prober), responder: Member(responder) });
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn degree(pairs: &[Neighbours], member: usize) -> usize {
        pairs.iter().filter(|pair| [pair.prober, pair.responder].contains(&Member(member as u16))).count()
    }

    /// Number of hops from a member to the farthest one; none if the mesh is not connected.
    fn eccentricity(pairs: &[Neighbours], members: usize, from: u16) -> Option<usize> {
        let mut reached = BTreeSet::from([Member(from)]);
        for hops in 0..=members {
            if reached.len() == members {
                return Some(hops);
            }
            let next: Vec<Member> = pairs
                .iter()
                .flat_map(|pair| [(pair.prober, pair.responder), (pair.responder, pair.prober)])
                .filter_map(|(one, other)| reached.contains(&one).then_some(other))
                .collect();
            reached.extend(next);
        }
        None
    }

    #[test]
    fn small_meshes() {
        assert_eq!(neighbours(&[], 1), []);
        assert_eq!(neighbours(&[5], 1), []);
        assert_eq!(neighbours(&[5, 9], 1).len(), 1);
        assert_eq!(neighbours(&[5, 9, 2], 1).len(), 3);
    }

    #[test]
    fn large_meshes_have_short_paths() {
        for members in [20u64, 100, 500] {
            let ids: Vec<u64> = (0..members).collect();
            let pairs = neighbours(&ids, 7);
            let degrees: Vec<usize> = (0..members as usize).map(|member| degree(&pairs, member)).collect();
            assert!(degrees.iter().all(|&degree| (5..=10).contains(&degree)), "{degrees:?}");
            let hops = eccentricity(&pairs, members as usize, 0).unwrap();
            assert!(hops <= 5, "{members} members: {hops} hops");
        }
    }

    /// Reports reach all others although one member is missing, within a few hops.
    #[test]
    fn reports_reach_all_members() {
        for members in [4u64, 20, 500] {
            let ids: Vec<u64> = (0..members).collect();
            let missing = Member(1);
            let mut reached = BTreeSet::from([Member(0)]);
            let mut hops = 0;
            while reached.len() < members as usize - 1 {
                let next: Vec<Member> = reached.iter().flat_map(|&member| successors(&ids, 7, member)).collect();
                reached.extend(next.into_iter().filter(|&member| member != missing));
                hops += 1;
                assert!(hops <= 12, "{} of {members} after {hops} hops", reached.len());
            }
        }
    }

    proptest! {
        /// Connected; no pair twice or with itself; the same for any order of members.
        #[test]
        fn any_mesh_is_connected(ids in proptest::collection::btree_set(any::<u64>(), 1..60), seed: u64) {
            let ids: Vec<u64> = ids.into_iter().collect();
            let pairs = neighbours(&ids, seed);
            prop_assert!(eccentricity(&pairs, ids.len(), 0).is_some());
            let unordered: BTreeSet<[Member; 2]> = pairs
                .iter()
                .map(|pair| [pair.prober.min(pair.responder), pair.prober.max(pair.responder)])
                .collect();
            prop_assert_eq!(unordered.len(), pairs.len());
            prop_assert!(pairs.iter().all(|pair| pair.prober != pair.responder));
            let reversed: Vec<u64> = ids.iter().rev().copied().collect();
            let name = |ids: &[u64], pairs: &[Neighbours]| -> BTreeSet<[u64; 2]> {
                pairs.iter().map(|pair| [ids[pair.prober.index()], ids[pair.responder.index()]]).collect()
            };
            prop_assert_eq!(name(&ids, &pairs), name(&reversed, &neighbours(&reversed, seed)));
        }

        /// One more member changes two pairs in each ring at most.
        #[test]
        fn a_new_member_changes_few_pairs(seed: u64) {
            let ids: Vec<u64> = (0..40).collect();
            let before: BTreeSet<_> = neighbours(&ids[..39], seed).into_iter().collect();
            let after: BTreeSet<_> = neighbours(&ids, seed).into_iter().collect();
            prop_assert!(before.difference(&after).count() <= MAX_RINGS as usize);
        }
    }
}
