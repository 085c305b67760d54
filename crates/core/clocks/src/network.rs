//! Offsets of all members from the estimates of all pairs: Huygens' network effect (On-Ramp §4.1).
//!
//! The offsets round a loop of the mesh sum to zero, so the estimates of a loop's pairs show their errors. The offsets with
//! the least sum of squared surpluses use every loop at once. Each pair's interval also bounds the difference of two
//! clocks, and intervals along a path bound the difference of its ends. The bound that is published covers the whole
//! interval of the best path, so it does not depend on the least squares.
//!
//! If no offsets are within all intervals, a member lies or its clock has stepped. Then pairs with surpluses beyond their own interval
//! are removed until some are: first all pairs of a member with such surpluses at most of its pairs, a suspect; without a
//! suspect the pair with the largest one.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::least_squares::{Edge, least_squares};
use crate::line::{OffsetLine, Reading, Skew};
use crate::mesh::{Member, Neighbours};

/// Estimate of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PairInterval {
    /// The pair.
    pub pair: Neighbours,
    /// Offset of the responder's clock from the prober's, by the prober's clock.
    pub line: OffsetLine,
    /// Largest error of the offset at the anchor of the line, in nanoseconds.
    pub error: i64,
    /// Largest error of the skew, from the anchor on.
    pub skew_error: Skew,
    /// Deviation that is expected of the offset, in nanoseconds: its square is the inverse of the pair's weight.
    pub deviation: u32,
}

impl PairInterval {
    /// Returns whether the values are possible for pairs of real clocks.
    pub fn is_plausible(&self) -> bool {
        self.line.skew.abs() <= MAX_SKEW
            && (0..=MAX_ERROR).contains(&self.error)
            && (Skew::ZERO..=MAX_SKEW).contains(&self.skew_error)
    }
}

/// Clock of a member relative to the host's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberOffset {
    /// Offset of the member's clock, by the host's clock, anchored at the time of the solution.
    pub line: OffsetLine,
    /// Largest error of the offset at the anchor, in nanoseconds.
    pub error: i64,
    /// Largest error of the skew, from the anchor on.
    pub skew_error: Skew,
}

/// Offsets of the members of a mesh.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Solution {
    /// By member; none for a member that no trusted pair connects with the host.
    pub members: Vec<Option<MemberOffset>>,
    /// Members with contradictions at most of their pairs, in order. If the host's own is among them, nothing is known of
    /// the others: its clock has stepped, or its pairs do not agree.
    pub suspects: Vec<Member>,
    /// Pairs left out because they contradict the others, apart from those of suspects.
    pub contradictions: Vec<Neighbours>,
    /// Root of the mean squared surplus of the pairs in use, in nanoseconds.
    pub surplus: i64,
    /// The host.
    own: Member,
    /// By pair: in use.
    used: Vec<bool>,
}

impl Solution {
    /// Returns the offset of a member with an error that holds even if the pairs of one other member on the way are wrong:
    /// its clock has stepped unnoticed, or it lies. The error covers the best path and, for each member
    /// on it, the best path without that member, if there is one. `pairs` are those of the solution.
    ///
    /// # Panics
    /// If there are other pairs.
    pub fn robust_offset(&self, pairs: &[PairInterval], target: Member) -> Option<MemberOffset> {
        assert_eq!(pairs.len(), self.used.len(), "the pairs of the solution");
        let best = self.members.get(target.index()).copied().flatten()?;
        if target == self.own {
            return Some(best);
        }
        let graph = Graph::new(self.members.len(), pairs, self.used.clone());
        let at = best.line.at;
        let (_, before) = graph.shortest(self.own, at, None);
        let (mut error, mut skew_error) = (best.error, best.skew_error);
        let mut member = before[target.index()];
        while let Some(without) = member.filter(|&member| member != self.own.index()) {
            let (positions, _) = graph.shortest(self.own, at, Some(without));
            if let Some(position) = positions[target.index()] {
                let distance = position.line.offset.wrapping_sub(best.line.offset).saturating_abs();
                error = error.max(position.error.saturating_add(distance));
                let turned = (position.line.skew - best.line.skew).abs();
                skew_error = skew_error.max(position.skew_error + turned);
            }
            member = before[without];
        }
        Some(MemberOffset { line: best.line, error, skew_error })
    }
}

/// Largest correction, in nanoseconds and [`FRACTION`] bits.
const MAX_CORRECTION: f64 = (1u64 << 58) as f64;

/// Fractional bits of nanoseconds in surpluses.
const FRACTION: u32 = 10;

/// A pair as seen by a member: the neighbour and the estimate.
#[derive(Clone, Copy, Debug)]
struct Link {
    to: usize,
    pair: usize,
    /// True if the member is the pair's prober.
    is_prober: bool,
}

/// A set of members and pairs while contradictions are removed.
struct Graph<'a> {
    pairs: &'a [PairInterval],
    /// By member.
    links: Vec<Vec<Link>>,
    /// By pair: in use.
    used: Vec<bool>,
}

/// Solves for the offsets of all members from `own` at its clock's reading `at`. Pairs with values that are not plausible
/// are left out as contradictions.
///
/// # Panics
/// If a pair has a member of `members` or more.
pub fn solve(members: usize, own: Member, at: Reading, pairs: &[PairInterval]) -> Solution {
    let mut graph = Graph::new(members, pairs, vec![true; pairs.len()]);
    let (mut suspects, mut contradictions) = (Vec::new(), Vec::new());
    for (index, pair) in pairs.iter().enumerate().filter(|(_, pair)| !pair.is_plausible()) {
        contradictions.push(pair.pair);
        graph.used[index] = false;
    }
    loop {
        let fit = graph.fit(own, at);
        match graph.worst(own, &fit) {
            Some(Culprit::Member(member)) => {
                suspects.push(Member(member as u16));
                if member == own.index() {
                    let members = vec![None; members];
                    return Solution { members, suspects, contradictions, surplus: 0, own, used: graph.used };
                }
                graph.links[member].iter().for_each(|link| graph.used[link.pair] = false);
            }
            Some(Culprit::Pair(pair)) => {
                contradictions.push(pairs[pair].pair);
                graph.used[pair] = false;
            }
            None => {
                suspects.sort_unstable();
                contradictions.sort_unstable();
                let (surplus, members) = (graph.surplus(&fit), Graph::bound(fit));
                return Solution { members, suspects, contradictions, surplus, own, used: graph.used };
            }
        }
    }
}

/// A member's position: clock and bounds along the best path from the host.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// Offset along the best path, anchored at the time of the solution.
    line: OffsetLine,
    error: i64,
    skew_error: Skew,
    /// Least squares' offset less that of the path, in nanoseconds and [`FRACTION`] bits.
    correction: i64,
}

/// Limit to the difference of two corrections: the surplus of a pair, and its largest error at this time. In nanoseconds and
/// [`FRACTION`] bits.
#[derive(Clone, Copy, Debug)]
struct Limit {
    pair: usize,
    from: usize,
    to: usize,
    surplus: i64,
    error: i64,
}

/// Use of a pair in a fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PairUse {
    Used,
    Removed,
}

/// Contradictions of a member's pairs.
#[derive(Clone, Copy, Default, Debug)]
struct Score {
    bad: usize,
    sum: i64,
}

/// Maximum number of members that are tried as suspects.
const MAX_CANDIDATES: usize = 8;

/// Part of a fit that contradicts the rest.
enum Culprit {
    Member(usize),
    Pair(usize),
}

/// Positions by the paths with the smallest error, and each member's predecessor on its path.
type Paths = (Vec<Option<Position>>, Vec<Option<usize>>);

impl<'a> Graph<'a> {
    fn new(members: usize, pairs: &'a [PairInterval], used: Vec<bool>) -> Self {
        let mut links = vec![Vec::new(); members];
        for (index, PairInterval { pair, .. }) in pairs.iter().enumerate() {
            let (prober, responder) = (pair.prober.index(), pair.responder.index());
            links[prober].push(Link { to: responder, pair: index, is_prober: true });
            links[responder].push(Link { to: prober, pair: index, is_prober: false });
        }
        Self { pairs, links, used }
    }

    fn links_of(&self, member: usize) -> impl Iterator<Item = Link> + '_ {
        self.links[member].iter().copied().filter(|link| self.used[link.pair])
    }

    /// Returns the clock at the other end of a link, from the position of a member.
    fn across(&self, from: &Position, link: Link) -> Position {
        let PairInterval { line, error, skew_error, .. } = self.pairs[link.pair];
        let (here, at) = (from.line.remote(from.line.at), from.line.at);
        // The pair's line is by the prober's clock. From the responder it is evaluated at the prober's reading: one step of
        // the inversion leaves an error of the skew squared, below a nanosecond a second at 30 ppm.
        let (offset, skew, age) = if link.is_prober {
            (line.offset_at(here), line.skew, here.since(line.at))
        } else {
            let prober = here.after(-line.offset_at(here.after(-line.offset)));
            let inverse = Skew(line.skew.over(line.skew.0)) - line.skew;
            (-line.offset_at(prober), inverse, prober.since(line.at))
        };
        let product = Skew(from.line.skew.over(skew.0));
        let line =
            OffsetLine { at, offset: from.line.offset.wrapping_add(offset), skew: from.line.skew + skew + product };
        let aged = skew_error.over(age.saturating_abs().min(MAX_AGE)).saturating_add(1);
        Position {
            line,
            error: from.error.saturating_add(error).saturating_add(aged),
            skew_error: from.skew_error + skew_error,
            correction: 0,
        }
    }

    /// Returns the position of each member: along the path with the smallest error, corrected by least squares.
    fn fit(&self, own: Member, at: Reading) -> Vec<Option<Position>> {
        let (mut positions, _) = self.shortest(own, at, None);
        self.correct(own, &mut positions);
        positions
    }

    /// Returns the paths with the smallest error (Dijkstra), without those through one member.
    fn shortest(&self, own: Member, at: Reading, without: Option<usize>) -> Paths {
        let mut positions: Vec<Option<Position>> = vec![None; self.links.len()];
        let mut before = vec![None; self.links.len()];
        let origin = Position {
            line: OffsetLine { at, offset: 0, skew: Skew::ZERO },
            error: 0,
            skew_error: Skew::ZERO,
            correction: 0,
        };
        let mut queue = BinaryHeap::from([Reverse((0, own.index()))]);
        let mut done = vec![false; self.links.len()];
        if let Some(without) = without {
            done[without] = true;
        }
        positions[own.index()] = Some(origin);
        while let Some(Reverse((_, member))) = queue.pop() {
            let Some(position) = positions[member].filter(|_| !core::mem::replace(&mut done[member], true)) else {
                continue;
            };
            for link in self.links_of(member).filter(|link| Some(link.to) != without) {
                let next = self.across(&position, link);
                if positions[link.to].is_none_or(|known| !done[link.to] && next.error < known.error) {
                    positions[link.to] = Some(next);
                    before[link.to] = Some(member);
                    queue.push(Reverse((next.error, link.to)));
                }
            }
        }
        (positions, before)
    }

    /// Moves positions to the least sum of squared surpluses, weighted by the pairs' errors. The host's own stays.
    fn correct(&self, own: Member, positions: &mut [Option<Position>]) {
        // By pair: the surplus along the paths, prober to responder.
        let surpluses: Vec<i64> = (0..self.pairs.len()).map(|pair| self.surplus_of(pair, positions)).collect();
        let weight = |pair: usize| {
            let deviation = i64::from(self.pairs[pair].deviation.clamp(MIN_DEVIATION, 1 << 20));
            1.0 / (deviation * deviation) as f64
        };
        let edges: Vec<Edge> = (0..self.pairs.len())
            .filter(|&pair| self.used[pair])
            .map(|pair| {
                let Neighbours { prober, responder } = self.pairs[pair].pair;
                Edge {
                    from: prober.index(),
                    to: responder.index(),
                    weight: weight(pair),
                    surplus: surpluses[pair] as f64,
                }
            })
            .filter(|edge| positions[edge.from].is_some() && positions[edge.to].is_some())
            .collect();
        let corrections = least_squares(positions.len(), own.index(), &edges);
        for (position, correction) in positions.iter_mut().zip(corrections) {
            if let Some(position) = position {
                position.correction = correction.clamp(-MAX_CORRECTION, MAX_CORRECTION) as i64;
            }
        }
    }

    /// Returns a pair's offset less the difference of its ends' positions along the paths, in nanoseconds and [`FRACTION`]
    /// bits; 0 if a position is unknown or the pair is not in use.
    fn surplus_of(&self, pair: usize, positions: &[Option<Position>]) -> i64 {
        let Neighbours { prober, responder } = self.pairs[pair].pair;
        let (Some(from), Some(to), true) = (positions[prober.index()], positions[responder.index()], self.used[pair])
        else {
            return 0;
        };
        let across = self.across(&from, Link { to: responder.index(), pair, is_prober: true });
        let surplus = across.line.offset.wrapping_sub(to.line.offset);
        surplus.clamp(-MAX_SURPLUS, MAX_SURPLUS) << FRACTION
    }

    /// Returns a pair's surplus beyond its interval, for each pair in use, in nanoseconds and [`FRACTION`] bits; below 0
    /// within.
    fn excesses(&self, positions: &[Option<Position>]) -> Vec<i64> {
        let correction = |member: usize| positions[member].map_or(0, |it| it.correction);
        let mut excesses = vec![0; self.pairs.len()];
        for limit in self.limits(positions) {
            let residual = limit.surplus - (correction(limit.to) - correction(limit.from));
            excesses[limit.pair] = residual.abs() - limit.error;
        }
        excesses
    }

    /// Returns the member or pair that contradicts most; none if some offsets are within all intervals.
    fn worst(&mut self, own: Member, positions: &[Option<Position>]) -> Option<Culprit> {
        let excesses = self.excesses(positions);
        let worst_pair = (0..excesses.len()).max_by_key(|&pair| excesses[pair]).filter(|&pair| excesses[pair] > 0)?;
        let corrections: Vec<i64> = positions.iter().map(|it| it.map_or(0, |it| it.correction)).collect();
        if Self::are_satisfiable(&self.limits(positions), corrections) {
            return None;
        }
        // A liar makes most of its pairs contradict; so may neighbours of several pairs with it. The suspect is the one
        // without which the others agree best.
        let score = |member: usize| {
            let bad = self.links_of(member).filter(|link| excesses[link.pair] > 0);
            bad.fold(Score::default(), |score, link| Score {
                bad: score.bad + 1,
                sum: score.sum.saturating_add(excesses[link.pair]),
            })
        };
        let mut candidates: Vec<(i64, usize)> = (0..positions.len())
            .filter(|&member| positions[member].is_some())
            .map(|member| (member, score(member)))
            .filter(|&(member, score)| score.bad >= 2 && 2 * score.bad > self.links_of(member).count())
            .map(|(member, score)| (-score.sum, member))
            .collect();
        candidates.sort_unstable();
        candidates.truncate(MAX_CANDIDATES);
        // Of several, the one with the fewest pairs: the others have more that agree.
        let rank = |graph: &mut Self, member: usize| {
            (graph.excess_without(member, own, positions), graph.links_of(member).count(), member)
        };
        let suspect = candidates.into_iter().map(|(_, member)| rank(self, member)).min();
        Some(suspect.map_or(Culprit::Pair(worst_pair), |(_, _, member)| Culprit::Member(member)))
    }

    /// Returns the sum of the surpluses beyond the intervals that remain without a member.
    fn excess_without(&mut self, member: usize, own: Member, positions: &[Option<Position>]) -> i64 {
        let removed: Vec<usize> = self.links_of(member).map(|link| link.pair).collect();
        let neighbour = self.links_of(member).map(|link| link.to).find(|&to| to != member);
        let root = if member == own.index() { neighbour.unwrap_or(member) } else { own.index() };
        let at = positions[root].map_or(Reading(0), |it| it.line.remote(it.line.at));
        self.use_pairs(&removed, PairUse::Removed);
        let fit = self.fit(Member(root as u16), at);
        let sum = self.excesses(&fit).into_iter().filter(|&excess| excess > 0).fold(0, i64::saturating_add);
        self.use_pairs(&removed, PairUse::Used);
        sum
    }

    fn use_pairs(&mut self, pairs: &[usize], usage: PairUse) {
        for &pair in pairs {
            self.used[pair] = usage == PairUse::Used;
        }
    }

    /// Returns the limits that the pairs in use set to corrections.
    fn limits(&self, positions: &[Option<Position>]) -> Vec<Limit> {
        let used = (0..self.pairs.len()).filter(|&pair| self.used[pair]);
        used.filter_map(|pair| {
            let PairInterval { pair: Neighbours { prober, responder }, line, error, skew_error, .. } = self.pairs[pair];
            let [from, _] = [positions[prober.index()]?, positions[responder.index()]?];
            let age = from.line.remote(from.line.at).since(line.at).saturating_abs().min(MAX_AGE);
            // Two nanoseconds for the rounding of lines.
            let error = (error + skew_error.over(age) + 2) << FRACTION;
            let surplus = self.surplus_of(pair, positions);
            Some(Limit { pair, from: prober.index(), to: responder.index(), surplus, error })
        })
        .collect()
    }

    /// Returns whether some corrections are within all limits: no loop of limits is negative (Bellman and Ford).
    fn are_satisfiable(limits: &[Limit], mut corrections: Vec<i64>) -> bool {
        for _ in 0..=corrections.len() {
            let mut is_changed = false;
            for &Limit { from, to, surplus, error, .. } in limits {
                let difference = corrections[to] - corrections[from];
                if difference > surplus + error {
                    corrections[to] = corrections[from] + surplus + error;
                } else if difference < surplus - error {
                    corrections[from] = corrections[to] - (surplus - error);
                } else {
                    continue;
                }
                is_changed = true;
            }
            if !is_changed {
                return true;
            }
        }
        false
    }

    /// Returns the root of the mean squared surplus that remains.
    fn surplus(&self, positions: &[Option<Position>]) -> i64 {
        let correction = |member: Member| positions[member.index()].map_or(0, |it| it.correction);
        let (mut sum, mut count) = (0u128, 0u128);
        for pair in (0..self.pairs.len()).filter(|&pair| self.used[pair]) {
            let Neighbours { prober, responder } = self.pairs[pair].pair;
            let rest = self.surplus_of(pair, positions) - (correction(responder) - correction(prober));
            sum += u128::from(rest.unsigned_abs()).pow(2);
            count += 1;
        }
        (sum.checked_div(count).unwrap_or(0).isqrt() >> FRACTION) as i64
    }

    /// Returns the offsets with bounds that cover the interval of the best path.
    fn bound(positions: Vec<Option<Position>>) -> Vec<Option<MemberOffset>> {
        let offset = |position: Position| {
            let moved = (position.correction >> FRACTION).clamp(-position.error, position.error);
            MemberOffset {
                line: OffsetLine { offset: position.line.offset.wrapping_add(moved), ..position.line },
                error: position.error.saturating_add(moved.abs()),
                skew_error: position.skew_error,
            }
        };
        positions.into_iter().map(|position| position.map(offset)).collect()
    }
}

/// Smallest deviation in use, in nanoseconds: no pair decides alone.
const MIN_DEVIATION: u32 = 200;

/// Largest plausible skew of two clocks: 1,000 ppm.
const MAX_SKEW: Skew = Skew::from_ppb(1_000_000);

/// Largest plausible error of a pair, in nanoseconds: an hour.
const MAX_ERROR: i64 = MAX_AGE;

/// Ages of estimates above this are taken as this, in nanoseconds: an hour.
const MAX_AGE: i64 = 3_600_000_000_000;

/// Surpluses above this are taken as this, in nanoseconds: 36 minutes.
const MAX_SURPLUS: i64 = 1 << 41;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::neighbours;
    use proptest::prelude::*;
    use units::mix64;

    /// Clocks with random offsets and skews, and pairs with errors within their intervals.
    struct World {
        /// By member: its clock by true time.
        clocks: Vec<OffsetLine>,
        pairs: Vec<PairInterval>,
    }

    /// Returns a number from `-limit` to `limit`.
    fn draw(salt: u64, limit: i64) -> i64 {
        (mix64(salt) % (2 * limit as u64 + 1)) as i64 - limit
    }

    /// Largest error of a pair's offset.
    const ERROR: i64 = 1_000;

    impl World {
        fn new(members: usize, seed: u64) -> Self {
            let seed = mix64(seed);
            let clock = |member: u64| OffsetLine {
                at: Reading(0),
                offset: draw(seed ^ member << 8, 1_000_000_000_000),
                skew: Skew::from_ppb(draw(seed ^ member << 8 ^ 1, 50_000)),
            };
            let clocks: Vec<OffsetLine> = (0..members as u64).map(clock).collect();
            let ids: Vec<u64> = (0..members as u64).collect();
            let pairs = neighbours(&ids, seed).into_iter().enumerate().map(|(index, pair)| {
                // Estimates are of different times in the last 2 s.
                let time = -(mix64(seed ^ index as u64) as i64 & 0x7fff_ffff);
                let [prober, responder] = [pair.prober, pair.responder].map(|it| clocks[it.index()]);
                let at = prober.remote(Reading(time));
                let skew = Skew::ratio((responder.skew - prober.skew).0, (1 << 48) + prober.skew.0);
                let error = draw(seed ^ 7 << 40 ^ index as u64, ERROR);
                let line = OffsetLine { at, offset: responder.remote(Reading(time)).since(at) + error, skew };
                PairInterval { pair, line, error: ERROR, skew_error: Skew::from_ppb(10), deviation: 500 }
            });
            Self { pairs: pairs.collect(), clocks }
        }

        fn solve(&self, own: usize) -> Solution {
            solve(self.clocks.len(), Member(own as u16), self.clocks[own].remote(Reading(0)), &self.pairs)
        }

        /// Error of a member's offset in the view of another one, now.
        fn error(&self, own: usize, member: usize, offset: &MemberOffset) -> i64 {
            let [own, member] = [own, member].map(|it| self.clocks[it].remote(Reading(0)));
            offset.line.offset_at(own) - member.since(own)
        }
    }

    proptest! {
        /// All offsets are within their bounds, in every member's view.
        #[test]
        fn offsets_are_within_their_bounds(members in 2usize..60, seed: u64, own: u16) {
            let world = World::new(members, seed);
            let own = usize::from(own) % members;
            let solution = world.solve(own);
            prop_assert_eq!((&solution.suspects[..], &solution.contradictions[..]), (&[][..], &[][..]));
            for (member, offset) in solution.members.iter().enumerate() {
                let offset = offset.unwrap();
                let error = world.error(own, member, &offset);
                prop_assert!(error.abs() <= offset.error, "{member}: {error} of {}", offset.error);
            }
        }

        /// A member that answers each neighbour with another offset is a suspect, and all others stay within their bounds.
        #[test]
        fn a_liar_is_left_out(members in 8usize..60, seed: u64, own: u16) {
            let mut world = World::new(members, seed);
            let liar = Member((mix64(seed) % members as u64) as u16);
            for (index, it) in world.pairs.iter_mut().enumerate() {
                if [it.pair.prober, it.pair.responder].contains(&liar) {
                    it.line.offset += draw(seed ^ 9 << 40 ^ index as u64, 500 * ERROR);
                }
            }
            let own = usize::from(own) % members;
            prop_assume!(own != liar.index());
            let solution = world.solve(own);
            for (member, offset) in solution.members.iter().enumerate() {
                let Some(offset) = offset else { continue };
                let error = world.error(own, member, offset);
                let is_known = member == liar.index() || error.abs() <= offset.error;
                prop_assert!(is_known, "{member}: {error} of {} {solution:?}", offset.error);
            }
        }

        /// Any estimates: no overflow, and no panic.
        #[test]
        fn any_estimates_are_handled(
            lines in proptest::collection::vec((0u16..9, 0u16..9, any::<[i64; 5]>()), 0..30),
            at: i64,
        ) {
            let pairs: Vec<PairInterval> = lines
                .into_iter()
                .filter(|(prober, responder, _)| prober != responder)
                .map(|(prober, responder, [at, offset, skew, error, skew_error])| PairInterval {
                    pair: Neighbours { prober: Member(prober), responder: Member(responder) },
                    line: OffsetLine { at: Reading(at), offset, skew: Skew(skew) },
                    error: error.saturating_abs(),
                    skew_error: Skew(skew_error).abs(),
                    deviation: skew_error as u32,
                })
                .collect();
            let _ = solve(9, Member(0), Reading(at), &pairs);
        }
    }

    /// With wrong pairs of one member that are not detectable, robust offsets of other members hold.
    #[test]
    fn robust_offsets_survive_one_wrong_member() {
        let (mut wrong, mut without) = (0, 0);
        for seed in 0..200 {
            let mut world = World::new(20, seed);
            let culprit = Member((mix64(seed) % 20) as u16);
            for it in &mut world.pairs {
                // Its pairs look better than all others, and those that it probes are of a time before a step.
                let Neighbours { prober, responder } = it.pair;
                if [prober, responder].contains(&culprit) {
                    let truth = world.clocks[responder.index()].remote(Reading(0));
                    let at = world.clocks[prober.index()].remote(Reading(0));
                    it.line = OffsetLine { at, offset: truth.since(at), skew: it.line.skew };
                    (it.error, it.deviation) = (ERROR / 10, 50);
                }
                if prober == culprit {
                    it.line.offset += ERROR / 2;
                }
            }
            for own in (0..20).filter(|&own| Member(own as u16) != culprit) {
                let solution = world.solve(own);
                for target in (0..20).filter(|&target| Member(target) != culprit) {
                    let robust = solution.robust_offset(&world.pairs, Member(target)).unwrap();
                    let best = solution.members[usize::from(target)].unwrap();
                    let error = world.error(own, target.into(), &robust).abs();
                    wrong += u32::from(error > robust.error);
                    without += u32::from(world.error(own, target.into(), &best).abs() > best.error);
                }
            }
        }
        assert_eq!(wrong, 0);
        assert!(without > 0, "the test does not need robust offsets");
    }

    /// Least squares over loops are better than the paths alone.
    #[test]
    fn loops_reduce_errors() {
        let (mut by_path, mut by_loops) = (0, 0);
        for seed in 0..20 {
            let world = World::new(40, seed);
            let solution = world.solve(0);
            let graph = Graph::new(40, &world.pairs, vec![true; world.pairs.len()]);
            let own = world.clocks[0].remote(Reading(0));
            for (member, position) in graph.fit(Member(0), own).into_iter().enumerate() {
                let path = position.unwrap().line.offset - world.clocks[member].remote(Reading(0)).since(own);
                let error = world.error(0, member, &solution.members[member].unwrap());
                (by_path, by_loops) = (by_path + path.pow(2), by_loops + error.pow(2));
            }
        }
        // Errors of a path of 2 to 3 pairs against the mean of some 8 pairs at each end.
        assert!(by_loops * 3 < by_path, "mean squares {by_loops} and {by_path}");
    }

    /// Members and pairs that nothing connects with the host have no offset.
    #[test]
    fn unconnected_members_are_unknown() {
        let mut world = World::new(6, 3);
        world.pairs.retain(|it| ![it.pair.prober, it.pair.responder].contains(&Member(4)));
        let solution = world.solve(0);
        assert!(solution.members[4].is_none() && solution.members[3].is_some());
    }

    /// A host with a clock that has stepped since the estimates of its pairs' other ends suspects itself.
    #[test]
    fn a_host_that_contradicts_all_others_suspects_itself() {
        let mut world = World::new(12, 5);
        for (index, it) in world.pairs.iter_mut().enumerate() {
            if [it.pair.prober, it.pair.responder].contains(&Member(2)) {
                it.line.offset += 100 * ERROR * (1 + index as i64);
            }
        }
        assert_eq!(world.solve(2).suspects, [Member(2)]);
        assert_eq!(world.solve(1).suspects, [Member(2)]);
    }
}
