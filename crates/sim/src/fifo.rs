//! Packets on links: one in-order FIFO a link, each a ring in one shared store, packets by value.

use fabric::Passage;
use units::Time;

use crate::packet::{Packet, Report};
use crate::prefetch::{self, AHEAD};
use crate::ties::Since;

/// A link's ring: `size` places of the store from `base` on, a power of two.
#[derive(Clone, Copy, Default)]
struct Ring {
    base: u32,
    mask: u32,
    head: u32,
    len: u32,
}

/// Places of a new ring.
const FIRST_SIZE: u32 = 8;

/// A place of the store. Two fill a line of the cache, and none lies in two lines. (What is aligned so is copied where the
/// store grows, not remapped: it grows a few times in a run.)
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Place(Packet);

const _: () = assert!(size_of::<Place>() == 32);

/// The FIFOs of all links into a partition's nodes.
pub(crate) struct Fifos {
    rings: Vec<Ring>,
    /// When each link's first packet arrives; [`Time::NEVER`] for an empty link.
    heads: Vec<Time>,
    store: Vec<Place>,
    /// What each packet of the store carries; empty where packets carry nothing.
    beside: Vec<Report>,
    /// What is known of what each packet of the store follows from; empty where that does not matter.
    since: Vec<Since>,
    /// Parts of the store that rings have outgrown, by the logarithm of their size.
    outgrown: Vec<Vec<u32>>,
}

impl Fifos {
    /// FIFOs of so many links; packets `carry` something, and are `timed` by what they follow from.
    pub(crate) fn new(links: usize, carry: bool, timed: bool) -> Self {
        let store = vec![Place::default(); links * FIRST_SIZE as usize];
        let ring = |link| Ring { base: link as u32 * FIRST_SIZE, mask: FIRST_SIZE - 1, head: 0, len: 0 };
        Self {
            rings: (0..links).map(ring).collect(),
            heads: vec![Time::NEVER; links],
            beside: vec![Report::NONE; if carry { store.len() } else { 0 }],
            since: vec![Since::BEGINNING; if timed { store.len() } else { 0 }],
            store,
            outgrown: vec![Vec::new(); 32],
        }
    }

    /// When the first packet on each link of a range arrives.
    #[inline]
    pub(crate) fn heads(&self, links: std::ops::Range<usize>) -> &[Time] {
        &self.heads[links]
    }

    #[inline]
    pub(crate) fn head(&self, link: usize) -> Time {
        self.heads[link]
    }

    /// Asks for the first packet of a link ahead.
    #[inline(always)]
    pub(crate) fn prefetch(&self, link: usize) {
        prefetch::element(&self.store, self.rings[link].place(0));
    }

    /// What the packet so many behind the first of a link carries, if it is an acknowledgement.
    #[inline(always)]
    pub(crate) fn acknowledged(&self, link: usize, behind: u32) -> Option<Report> {
        let ring = self.rings[link];
        let place = ring.place(behind);
        if ring.len <= behind || !self.store[place].0.is_ack() { None } else { self.beside.get(place).copied() }
    }

    /// Whether nothing is on a link.
    #[inline(always)]
    pub(crate) fn is_empty(&self, link: usize) -> bool {
        self.rings[link].len == 0
    }

    /// Appends a packet. Returns whether the link was empty.
    #[inline(always)]
    pub(crate) fn push(&mut self, link: usize, packet: Packet) -> bool {
        if self.rings[link].is_full() {
            self.grow(link);
        }
        let (place, was_empty) = self.parts().reserve(link, packet.time);
        self.store[place].0 = packet;
        was_empty
    }

    /// Appends a packet as a port let it pass, with what it carries, and what is known of what it follows from. It is copied
    /// and then changed in its place, as in [`Parts::pass_on`].
    #[inline(always)]
    pub(crate) fn push_passed(
        &mut self,
        link: usize,
        packet: &Packet,
        passage: Passage,
        report: Report,
        since: Since,
    ) -> bool {
        if self.rings[link].is_full() {
            self.grow(link);
        }
        let (place, was_empty) = self.parts().reserve(link, passage.arrives);
        let flags = packet.flags_if(passage.marked);
        let stored = &mut self.store[place].0;
        *stored = *packet;
        stored.time = passage.arrives;
        stored.flags = flags;
        if let Some(beside) = self.beside.get_mut(place) {
            *beside = report;
        }
        if let Some(place) = self.since.get_mut(place) {
            *place = since;
        }
        was_empty
    }

    /// Takes the first packet off a link that is not empty, with what it carries.
    #[inline(always)]
    pub(crate) fn pop_with(&mut self, link: usize) -> (Packet, Report) {
        let mut parts = self.parts();
        let (place, &packet) = parts.first(link);
        parts.drop_first(link);
        (packet, self.beside.get(place).copied().unwrap_or(Report::NONE))
    }

    /// All packets.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.rings.iter().flat_map(|ring| (0..ring.len).map(|after| &self.store[ring.place(after)].0))
    }

    /// What is known of what the first packet of a link follows from.
    pub(crate) fn since(&mut self, link: usize) -> Since {
        let place = self.parts().first(link).0;
        self.since.get(place).copied().unwrap_or(Since::BEGINNING)
    }

    /// Takes the first packet off a link that is not empty.
    #[inline(always)]
    pub(crate) fn pop(&mut self, link: usize) -> Packet {
        let mut parts = self.parts();
        let packet = *parts.first(link).1;
        parts.drop_first(link);
        packet
    }

    /// What the hot path works on, as slices: their places and lengths stay in registers.
    #[inline(always)]
    pub(crate) fn parts(&mut self) -> Parts<'_> {
        Parts { rings: &mut self.rings, heads: &mut self.heads, store: &mut self.store }
    }

    /// Doubles a full ring.
    #[inline(never)]
    pub(crate) fn grow(&mut self, link: usize) {
        let old = self.rings[link];
        let size = (old.mask + 1) * 2;
        let base = self.outgrown[size.ilog2() as usize].pop().unwrap_or_else(|| {
            let base = u32::try_from(self.store.len()).expect("under 2^32 packets on the links of a partition");
            self.store.resize(self.store.len() + size as usize, Place::default());
            if !self.beside.is_empty() {
                self.beside.resize(self.store.len(), Report::NONE);
            }
            if !self.since.is_empty() {
                self.since.resize(self.store.len(), Since::BEGINNING);
            }
            base
        });
        for place in 0..old.len {
            let from = (old.base + ((old.head + place) & old.mask)) as usize;
            self.store[(base + place) as usize] = self.store[from];
            if !self.beside.is_empty() {
                self.beside[(base + place) as usize] = self.beside[from];
            }
            if !self.since.is_empty() {
                self.since[(base + place) as usize] = self.since[from];
            }
        }
        self.outgrown[(size / 2).ilog2() as usize].push(old.base);
        self.rings[link] = Ring { base, mask: size - 1, head: 0, len: old.len };
    }
}

impl Ring {
    #[inline(always)]
    fn is_full(self) -> bool {
        self.len > self.mask
    }

    /// The place so many after the first packet's.
    #[inline(always)]
    fn place(self, after: u32) -> usize {
        (self.base + ((self.head + after) & self.mask)) as usize
    }
}

/// The FIFOs while none of them grows.
pub(crate) struct Parts<'a> {
    rings: &'a mut [Ring],
    heads: &'a mut [Time],
    store: &'a mut [Place],
}

impl Parts<'_> {
    /// Whether a link must grow before it takes another packet.
    #[inline(always)]
    pub(crate) fn is_full(&self, link: usize) -> bool {
        self.rings[link].is_full()
    }

    /// The first packet of a link that is not empty, and its place.
    #[inline(always)]
    pub(crate) fn first(&self, link: usize) -> (usize, &Packet) {
        let ring = self.rings[link];
        let place = (ring.base + ring.head) as usize;
        (place, &self.store[place].0)
    }

    /// The packet at a place.
    #[inline(always)]
    pub(crate) fn at(&self, place: usize) -> Packet {
        self.store[place].0
    }

    /// Takes the first packet off a link that is not empty. Its place stays as it is until the next packet is put
    /// on that link. Gives when the next one arrives; [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub(crate) fn drop_first(&mut self, link: usize) -> Time {
        let ring = &mut self.rings[link];
        ring.head = (ring.head + 1) & ring.mask;
        ring.len -= 1;
        prefetch::element(self.store, ring.place(AHEAD));
        let next = self.store[(ring.base + ring.head) as usize].0.time;
        let next = if ring.len == 0 { Time::NEVER } else { next };
        self.heads[link] = next;
        next
    }

    /// Takes a place at the end of a link that is not full for a packet that arrives at `time`, no earlier than
    /// those before it. Gives the place, and whether the link was empty.
    #[inline(always)]
    fn reserve(&mut self, link: usize, time: Time) -> (usize, bool) {
        let ring = &mut self.rings[link];
        let place = ring.place(ring.len);
        prefetch::element(self.store, ring.place(ring.len + AHEAD));
        let was_empty = ring.len == 0;
        let last = (ring.base + (ring.head.wrapping_add(ring.len).wrapping_sub(1) & ring.mask)) as usize;
        debug_assert!(was_empty || self.store[last].0.time <= time, "a packet overtakes another on link {link}");
        ring.len += 1;
        if was_empty {
            self.heads[link] = time;
        }
        (place, was_empty)
    }

    /// Appends the packet at a place to a link that is not full, to arrive at another time and with a mark if it got
    /// one. Returns whether the link was empty.
    ///
    /// The packet is copied from place to place and then changed there: changing it on the way would make the
    /// copy wait for the change to leave the store buffer, at every hop.
    #[inline(always)]
    pub(crate) fn pass_on(&mut self, from: usize, link: usize, time: Time, marked: bool) -> bool {
        let (place, was_empty) = self.reserve(link, time);
        let flags = self.store[from].0.flags_if(marked);
        self.store[place] = self.store[from];
        let packet = &mut self.store[place].0;
        packet.time = time;
        packet.flags = flags;
        was_empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn each_link_keeps_its_order(steps in proptest::collection::vec((0..3usize, any::<bool>()), 1..500)) {
            let mut fifos = Fifos::new(3, false, false);
            let mut model: [VecDeque<Time>; 3] = Default::default();
            for (time, (link, push)) in steps.into_iter().enumerate() {
                let time = Time::from_ps(time as u64);
                if push {
                    let was_empty = fifos.push(link, Packet { time, ..Packet::default() });
                    prop_assert_eq!(was_empty, model[link].is_empty());
                    model[link].push_back(time);
                } else if let Some(expected) = model[link].pop_front() {
                    prop_assert_eq!(fifos.pop(link).time, expected);
                }
                for (link, model) in model.iter().enumerate() {
                    prop_assert_eq!(fifos.head(link), model.front().copied().unwrap_or(Time::NEVER));
                }
            }
        }
    }
}
