//! Packets on links: one in-order FIFO a link, each a ring in one shared store, packets by value. Packets that exceed a
//! ring are kept after it in chunks, so that a long haul uses only the memory of its packets.

use std::collections::VecDeque;
use std::ops::Range;

use fabric::PortTransit;
use units::Time;

use crate::packet::{Packet, TelemetrySlot};
use crate::prefetch::{self, AHEAD};
use crate::tie_break::ScheduleKey;

/// A link's ring: `size` slots of the store from `base` on, a power of two.
#[derive(Clone, Copy, Default)]
struct LinkRing {
    base: u32,
    mask: u32,
    head: u32,
    /// Number of packets in the ring, and [`LONG`] while others are behind it.
    len: u32,
}

/// Places of a new ring.
const FIRST_SIZE: u32 = 8;

/// Places of the largest ring.
const LAST_SIZE: u32 = 1_024;

/// Packets of a chunk behind a ring: less than a ring has slots.
const CHUNK: usize = 256;

/// A flag of a ring's `len`: packets are behind the ring, so it takes no more from outside, even if it has room.
const LONG: u32 = 1 << 31;

/// A slot of the store. Two slots fill a cache line, and none spans two lines. (With this alignment, growing the store
/// copies it instead of remapping it: it grows only a few times in a run.)
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct RingSlot(Packet);

const _: () = assert!(size_of::<RingSlot>() == 32);

/// Kinds of per-packet state that are stored outside of the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BesideKinds {
    /// The reports that packets carry.
    pub(crate) reports: bool,
    /// The origins of their events.
    pub(crate) since: bool,
}

/// State of a queued packet that few runs need, apart from the packet.
#[derive(Clone, Copy)]
struct PacketExtra {
    report: TelemetrySlot,
    since: ScheduleKey,
}

impl PacketExtra {
    const NONE: Self = Self { report: TelemetrySlot::NONE, since: ScheduleKey::BEGINNING };
}

/// Per-packet state stored outside of the packets.
struct PacketExtras {
    /// Set if any of it is kept.
    is_kept: bool,
    /// The reports carried by each packet; empty if packets carry none.
    reports: Vec<TelemetrySlot>,
    /// The origin of each packet's event; empty if that does not matter.
    since: Vec<ScheduleKey>,
}

impl PacketExtras {
    fn of(len: usize, kinds: BesideKinds) -> Self {
        Self {
            is_kept: kinds.reports || kinds.since,
            reports: vec![TelemetrySlot::NONE; if kinds.reports { len } else { 0 }],
            since: vec![ScheduleKey::BEGINNING; if kinds.since { len } else { 0 }],
        }
    }

    fn kinds(&self) -> BesideKinds {
        BesideKinds { reports: !self.reports.is_empty(), since: !self.since.is_empty() }
    }

    fn resize(&mut self, len: usize) {
        if !self.reports.is_empty() {
            self.reports.resize(len, TelemetrySlot::NONE);
        }
        if !self.since.is_empty() {
            self.since.resize(len, ScheduleKey::BEGINNING);
        }
    }

    fn set(&mut self, slot: usize, extra: PacketExtra) {
        if let Some(report) = self.reports.get_mut(slot) {
            *report = extra.report;
        }
        if let Some(since) = self.since.get_mut(slot) {
            *since = extra.since;
        }
    }

    fn get(&self, slot: usize) -> PacketExtra {
        PacketExtra {
            report: self.reports.get(slot).copied().unwrap_or(TelemetrySlot::NONE),
            since: self.since.get(slot).copied().unwrap_or(ScheduleKey::BEGINNING),
        }
    }
}

/// Up to [`CHUNK`] packets.
struct RingChunk {
    slots: Vec<RingSlot>,
    extras: PacketExtras,
}

/// All but the packets of the rings.
struct OverflowStore {
    /// Per-packet state of the packets in the store.
    extras: PacketExtras,
    /// Packets behind each link's ring.
    chunks: Vec<VecDeque<RingChunk>>,
    /// The last chunk that was emptied, for the next that is needed.
    spare: Option<RingChunk>,
    /// Number of rings with packets behind them.
    long: usize,
    /// The range of links that contains all such rings, usually the inputs of one switch; empty if there are none.
    long_among: Range<usize>,
}

/// The FIFOs of all links into a partition's nodes.
pub(crate) struct Fifos {
    rings: Vec<LinkRing>,
    /// Arrival time of each link's first packet; [`Time::NEVER`] for an empty link.
    heads: Vec<Time>,
    store: Vec<RingSlot>,
    overflow: OverflowStore,
    /// Parts of the store that rings have outgrown, by the logarithm of their size.
    outgrown: Vec<Vec<u32>>,
}

impl Fifos {
    /// Creates the FIFOs of `links` links for packets with state of these kinds.
    pub(crate) fn new(links: usize, kinds: BesideKinds) -> Self {
        let store = vec![RingSlot::default(); links * FIRST_SIZE as usize];
        let ring = |link| LinkRing { base: link as u32 * FIRST_SIZE, mask: FIRST_SIZE - 1, head: 0, len: 0 };
        Self {
            rings: (0..links).map(ring).collect(),
            heads: vec![Time::NEVER; links],
            overflow: OverflowStore {
                extras: PacketExtras::of(store.len(), kinds),
                chunks: (0..links).map(|_| VecDeque::new()).collect(),
                spare: None,
                long: 0,
                long_among: 0..0,
            },
            store,
            outgrown: vec![Vec::new(); 32],
        }
    }

    /// Returns the arrival times of the first packets on a range of links.
    #[inline]
    pub(crate) fn heads(&self, links: Range<usize>) -> &[Time] {
        &self.heads[links]
    }

    #[inline]
    pub(crate) fn head(&self, link: usize) -> Time {
        self.heads[link]
    }

    /// Asks for the first packet of a link ahead.
    #[inline(always)]
    pub(crate) fn prefetch(&self, link: usize) {
        prefetch::element(&self.store, self.rings[link].slot(0));
    }

    /// Returns the report of the packet at position `behind` after the first of a link, if it is an acknowledgement.
    #[inline(always)]
    pub(crate) fn acknowledged(&self, link: usize, behind: u32) -> Option<TelemetrySlot> {
        let ring = self.rings[link];
        let slot = ring.slot(behind);
        if ring.count() <= behind || !self.store[slot].0.is_ack() {
            return None;
        }
        self.overflow.extras.reports.get(slot).copied()
    }

    /// Returns whether a link is empty.
    #[inline(always)]
    pub(crate) fn is_empty(&self, link: usize) -> bool {
        self.rings[link].len == 0
    }

    /// Appends a packet. Returns whether the link was empty.
    #[inline(always)]
    pub(crate) fn push(&mut self, link: usize, packet: Packet) -> bool {
        self.append(link, &packet, packet.time, packet.label, PacketExtra::NONE)
    }

    /// Appends a packet with its transit through a port, the data that it carries, and its tie-break key. Returns whether
    /// the link was empty.
    #[inline(always)]
    pub(crate) fn push_passed(
        &mut self,
        link: usize,
        packet: &Packet,
        passage: PortTransit,
        report: TelemetrySlot,
        since: ScheduleKey,
    ) -> bool {
        self.append(link, packet, passage.arrives, packet.label_behind(passage), PacketExtra { report, since })
    }

    /// Appends a packet. It is copied and then changed in its slot, as in [`FifoParts::pass_on`].
    #[inline(always)]
    fn append(&mut self, link: usize, packet: &Packet, time: Time, label: u16, extra: PacketExtra) -> bool {
        let mut ring = &mut self.rings[link];
        if ring.is_full() {
            if !self.grow(link) {
                let mut packet = packet.at(time);
                packet.label = label;
                self.push_behind(link, packet, extra);
                return false;
            }
            ring = &mut self.rings[link];
        }
        let (slot, was_empty) = ring.reserve(&self.store, time);
        if was_empty {
            self.heads[link] = time;
        }
        let stored = &mut self.store[slot].0;
        *stored = *packet;
        stored.time = time;
        stored.label = label;
        if self.overflow.extras.is_kept {
            self.overflow.extras.set(slot, extra);
        }
        was_empty
    }

    /// Appends a packet behind a ring that is full.
    #[inline(never)]
    fn push_behind(&mut self, link: usize, packet: Packet, extra: PacketExtra) {
        let chunks = &mut self.overflow.chunks[link];
        if chunks.back().is_none_or(|chunk| chunk.slots.len() == CHUNK) {
            let kinds = self.overflow.extras.kinds();
            let new = || RingChunk { slots: Vec::with_capacity(CHUNK), extras: PacketExtras::of(CHUNK, kinds) };
            chunks.push_back(self.overflow.spare.take().unwrap_or_else(new));
        }
        let ring = &mut self.rings[link];
        if ring.len < LONG {
            ring.len |= LONG;
            let Range { start, end } = self.overflow.long_among;
            self.overflow.long_among =
                if self.overflow.long == 0 { link..link + 1 } else { start.min(link)..end.max(link + 1) };
            self.overflow.long += 1;
        }
        if let Some(chunk) = chunks.back_mut() {
            let last = chunk.slots.last();
            debug_assert!(
                last.is_none_or(|last| last.0.time <= packet.time),
                "a packet overtakes another on link {link}"
            );
            chunk.extras.set(chunk.slots.len(), extra);
            chunk.slots.push(RingSlot(packet));
        }
    }

    /// Returns the report carried by the packet at a slot.
    #[inline(always)]
    pub(crate) fn report(&self, slot: usize) -> TelemetrySlot {
        let reports = &self.overflow.extras.reports;
        if reports.is_empty() { TelemetrySlot::NONE } else { reports[slot] }
    }

    /// The packet at a slot.
    #[inline(always)]
    pub(crate) fn at(&self, slot: usize) -> Packet {
        self.store[slot].0
    }

    /// Moves packets from behind rings into them, if they have room, before packets are taken off these links until
    /// `end` by [`FifoParts::drop_first`]. If a ring would run out before that, returns the time: the arrival of its last
    /// packet, which is after the first one.
    #[inline(always)]
    pub(crate) fn refill(&mut self, links: Range<usize>, end: Time) -> Option<Time> {
        let among = &self.overflow.long_among;
        let links = links.start.max(among.start)..links.end.min(among.end);
        if links.is_empty() { None } else { self.refill_all(links, end) }
    }

    #[inline(never)]
    fn refill_all(&mut self, links: Range<usize>, end: Time) -> Option<Time> {
        let mut runs_out = end;
        for link in links {
            while self.rings[link].len >= LONG && self.rings[link].count() + CHUNK as u32 <= LAST_SIZE {
                self.refill_one(link);
            }
            let ring = self.rings[link];
            if ring.len >= LONG {
                runs_out = runs_out.min(self.store[ring.slot(ring.count() - 1)].0.time);
            }
        }
        (runs_out < end).then_some(runs_out)
    }

    /// Moves the first chunk behind a ring to the ring's end.
    #[cold]
    #[inline(never)]
    fn refill_one(&mut self, link: usize) {
        let (ring, chunks) = (&mut self.rings[link], &mut self.overflow.chunks[link]);
        let mut count = ring.count();
        if let Some(mut chunk) = chunks.pop_front() {
            for (at, &packet) in chunk.slots.iter().enumerate() {
                let slot = ring.slot(count);
                self.store[slot] = packet;
                self.overflow.extras.set(slot, chunk.extras.get(at));
                count += 1;
            }
            chunk.slots.clear();
            self.overflow.spare = Some(chunk);
        }
        ring.len = if chunks.is_empty() { count } else { count | LONG };
        self.overflow.long -= usize::from(chunks.is_empty());
        if self.overflow.long == 0 {
            self.overflow.long_among = 0..0;
        }
    }

    /// Checks that a link's packets are in order of arrival, none before `now`, and that its ring is not overfull. Returns how
    /// many entries it examined.
    pub(crate) fn check(&self, link: usize, now: Time) -> Result<usize, String> {
        let ring = self.rings[link];
        let behind = &self.overflow.chunks[link];
        if ring.count() > ring.mask + 1 || (ring.len >= LONG) == behind.is_empty() {
            return Err(format!(
                "a ring of {} has {}, and {} chunks behind it",
                ring.mask + 1,
                ring.count(),
                behind.len()
            ));
        }
        let in_ring = (0..ring.count()).map(|after| &self.store[ring.slot(after)]);
        let (mut last, mut examined) = (self.heads[link], 1);
        for (at, slot) in in_ring.chain(behind.iter().flat_map(|chunk| &chunk.slots)).enumerate() {
            let time = slot.0.time;
            if at == 0 && time != last {
                return Err(format!("its first packet arrives at {time:?} instead of {last:?}"));
            }
            if time < last {
                return Err(format!("packet {at} on the link arrives at {time:?}, before the one ahead of it"));
            }
            last = time;
            examined += 1;
        }
        if ring.count() == 0 && last.is_set() {
            return Err(format!("it is empty, and its first packet arrives at {last:?}"));
        }
        if self.heads[link] < now {
            return Err(format!("a packet that arrived at {:?} was not taken", self.heads[link]));
        }
        Ok(examined)
    }

    /// All packets.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        let in_rings = self.rings.iter().flat_map(|ring| (0..ring.count()).map(|after| &self.store[ring.slot(after)]));
        let behind = self.overflow.chunks.iter().flatten().flat_map(|chunk| &chunk.slots);
        in_rings.chain(behind).map(|slot| &slot.0)
    }

    /// The packets of a link's ring, in order of arrival.
    pub(crate) fn in_ring(&self, link: usize) -> impl Iterator<Item = &Packet> {
        let ring = self.rings[link];
        (0..ring.count()).map(move |after| &self.store[ring.slot(after)].0)
    }

    /// Returns the origin of the event of a link's first packet.
    pub(crate) fn since(&mut self, link: usize) -> ScheduleKey {
        let slot = self.parts().first(link).0;
        self.overflow.extras.since.get(slot).copied().unwrap_or(ScheduleKey::BEGINNING)
    }

    /// Takes the first packet off a link that is not empty.
    #[inline(always)]
    pub(crate) fn pop(&mut self, link: usize) -> Packet {
        let (slot, _) = self.pop_slot(link);
        self.at(slot)
    }

    /// Removes the first packet of a link that is not empty. Returns its slot, where it stays until the next packet is
    /// appended to that link, and the arrival time of the following packet; [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub(crate) fn pop_slot(&mut self, link: usize) -> (usize, Time) {
        let mut ring = &mut self.rings[link];
        if ring.len == LONG + 1 {
            self.refill_one(link);
            ring = &mut self.rings[link];
        }
        let slot = (ring.base + ring.head) as usize;
        let next = ring.drop_first(&self.store);
        self.heads[link] = next;
        (slot, next)
    }

    /// Returns the state of the hot path, as slices: their addresses and lengths stay in registers.
    #[inline(always)]
    pub(crate) fn parts(&mut self) -> FifoParts<'_> {
        FifoParts { rings: &mut self.rings, heads: &mut self.heads, store: &mut self.store }
    }

    /// Doubles a full ring, unless it has the largest size: then further packets go behind it. Returns whether the ring
    /// takes another packet.
    #[inline(never)]
    pub(crate) fn grow(&mut self, link: usize) -> bool {
        let old = self.rings[link];
        let size = (old.mask + 1) * 2;
        if size > LAST_SIZE {
            return false;
        }
        let base = self.outgrown[size.ilog2() as usize].pop().unwrap_or_else(|| {
            let base = u32::try_from(self.store.len()).expect("under 2^32 packets on the links of a partition");
            self.store.resize(self.store.len() + size as usize, RingSlot::default());
            self.overflow.extras.resize(self.store.len());
            base
        });
        for after in 0..old.len {
            let (from, to) = (old.slot(after), (base + after) as usize);
            self.store[to] = self.store[from];
            let extra = self.overflow.extras.get(from);
            self.overflow.extras.set(to, extra);
        }
        self.outgrown[(size / 2).ilog2() as usize].push(old.base);
        self.rings[link] = LinkRing { base, mask: size - 1, head: 0, len: old.len };
        true
    }
}

impl LinkRing {
    /// Returns whether it takes no packet as it is: it has no room, or others are behind it.
    #[inline(always)]
    fn is_full(self) -> bool {
        self.len > self.mask
    }

    fn count(self) -> u32 {
        self.len & !LONG
    }

    /// Takes a slot at the end of a ring that is not full, for a packet that arrives at `time`. Returns the slot, and
    /// whether the ring was empty.
    #[inline(always)]
    fn reserve(&mut self, store: &[RingSlot], time: Time) -> (usize, bool) {
        let slot = self.slot(self.len);
        prefetch::element(store, self.slot(self.len + AHEAD));
        let was_empty = self.len == 0;
        let last = (self.base + (self.head.wrapping_add(self.len).wrapping_sub(1) & self.mask)) as usize;
        debug_assert!(was_empty || store[last].0.time <= time, "a packet overtakes another");
        self.len += 1;
        (slot, was_empty)
    }

    /// Releases the first slot. Returns the arrival time of the next packet; [`Time::NEVER`] if there is none.
    #[inline(always)]
    fn drop_first(&mut self, store: &[RingSlot]) -> Time {
        debug_assert!(self.len != 0 && self.len != LONG + 1, "nothing is left in the ring");
        self.head = (self.head + 1) & self.mask;
        self.len -= 1;
        prefetch::element(store, self.slot(AHEAD));
        let next = store[(self.base + self.head) as usize].0.time;
        if self.len == 0 { Time::NEVER } else { next }
    }

    /// Returns the slot `after` packets behind the first.
    #[inline(always)]
    fn slot(self, after: u32) -> usize {
        (self.base + ((self.head + after) & self.mask)) as usize
    }
}

/// The FIFOs while none of them grows.
pub(crate) struct FifoParts<'a> {
    rings: &'a mut [LinkRing],
    heads: &'a mut [Time],
    store: &'a mut [RingSlot],
}

impl FifoParts<'_> {
    /// Returns whether a link must grow before it takes another packet.
    #[inline(always)]
    pub(crate) fn is_full(&self, link: usize) -> bool {
        self.rings[link].is_full()
    }

    /// The first packet of a link that is not empty, and its place.
    #[inline(always)]
    pub(crate) fn first(&self, link: usize) -> (usize, &Packet) {
        let ring = self.rings[link];
        let slot = (ring.base + ring.head) as usize;
        (slot, &self.store[slot].0)
    }

    /// The packet at a slot.
    #[inline(always)]
    pub(crate) fn at(&self, slot: usize) -> Packet {
        self.store[slot].0
    }

    /// Removes the first packet of a link that is not empty. It must not be the last one of a ring with overflow: see
    /// [`Fifos::refill`]. Its slot is unchanged until the next packet is appended to that link. Returns the arrival time of
    /// the next packet; [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub(crate) fn drop_first(&mut self, link: usize) -> Time {
        let next = self.rings[link].drop_first(self.store);
        self.heads[link] = next;
        next
    }

    /// Takes a slot at the end of a link that is not full for a packet that arrives at `time`, no earlier than those
    /// before it. Returns the slot, and whether the link was empty.
    #[inline(always)]
    fn reserve(&mut self, link: usize, time: Time) -> (usize, bool) {
        let (slot, was_empty) = self.rings[link].reserve(self.store, time);
        if was_empty {
            self.heads[link] = time;
        }
        (slot, was_empty)
    }

    /// Appends the packet in a slot to a link that is not full, with its arrival time behind a port and, if the port marked
    /// it, a mark. Returns whether the link was empty.
    ///
    /// The packet is copied from slot to slot and then changed there: a change before the copy would make the copy wait for
    /// the store buffer, at every hop.
    #[inline(always)]
    pub(crate) fn pass_on(&mut self, from: usize, link: usize, passage: PortTransit) -> bool {
        let (slot, was_empty) = self.reserve(link, passage.arrives);
        let label = self.store[from].0.label_behind(passage);
        self.store[slot] = self.store[from];
        let packet = &mut self.store[slot].0;
        packet.time = passage.arrives;
        packet.label = label;
        was_empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn check_finds_each_inconsistency() {
        let ns = Time::from_ns;
        let mut fifos = Fifos::new(1, BesideKinds { reports: false, since: false });
        for at in 1..2_000 {
            fifos.push(0, Packet::default().at(ns(at)));
        }
        assert_eq!(fifos.check(0, ns(1)), Ok(2_000));
        assert!(fifos.check(0, ns(2)).unwrap_err().contains("was not taken"));
        fifos.heads[0] = Time::ZERO;
        assert!(fifos.check(0, Time::ZERO).unwrap_err().contains("first packet arrives"));
        fifos.heads[0] = ns(1);
        let second = fifos.rings[0].slot(1);
        fifos.store[second].0.time = Time::ZERO;
        assert!(fifos.check(0, ns(1)).unwrap_err().contains("before the one ahead"));
        fifos.rings[0].len &= !LONG;
        assert!(fifos.check(0, ns(1)).unwrap_err().contains("chunks behind"));
    }

    proptest! {
        /// Also if a ring grows while its content wraps around.
        #[test]
        fn each_link_keeps_its_order(
            (reports, since) in any::<(bool, bool)>(),
            steps in proptest::collection::vec((0..3usize, any::<bool>(), 1..600u64), 1..60),
        ) {
            let mut fifos = Fifos::new(3, BesideKinds { reports, since });
            let mut model: [VecDeque<Time>; 3] = Default::default();
            let mut now = 0;
            for (turn, (link, push, times)) in steps.into_iter().enumerate() {
                if !push && turn % 2 == 0 {
                    let runs_out = fifos.refill(link..link + 1, Time::NEVER).unwrap_or(Time::NEVER);
                    let mut left = times;
                    while left > 0 && fifos.head(link) < runs_out {
                        let next = fifos.parts().drop_first(link);
                        model[link].pop_front();
                        prop_assert_eq!(next, model[link].front().copied().unwrap_or(Time::NEVER));
                        left -= 1;
                    }
                    continue;
                }
                for _ in 0..times {
                    now += 1;
                    let time = Time::from_ps(now);
                    if push {
                        let was_empty = fifos.push(link, Packet::default().at(time));
                        prop_assert_eq!(was_empty, model[link].is_empty());
                        model[link].push_back(time);
                    } else if let Some(expected) = model[link].pop_front() {
                        let slot = fifos.parts().first(link).0;
                        prop_assert_eq!(fifos.pop(link).time, expected);
                        prop_assert_eq!(fifos.parts().at(slot).time, expected);
                    }
                    prop_assert_eq!(fifos.head(link), model[link].front().copied().unwrap_or(Time::NEVER));
                }
                prop_assert_eq!(fifos.packets().count(), model.iter().map(VecDeque::len).sum::<usize>());
                prop_assert_eq!(fifos.is_empty(link), model[link].is_empty());
            }
        }
    }
}
