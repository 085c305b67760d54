//! Packets on links: one in-order FIFO a link, in chunks of eight that a pool lends, so that a link's packets lie
//! together and chunks that were just read are written next.

use crate::packet::Packet;

const CHUNK: usize = 8;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Ends {
    head: u32,
    tail: u32,
    head_place: u8,
    tail_place: u8,
}

/// The FIFOs of all links into a partition's nodes.
pub(crate) struct Fifos {
    ends: Vec<Ends>,
    /// When each link's first packet arrives; `u64::MAX` for an empty link.
    heads: Vec<u64>,
    chunks: Vec<[Packet; CHUNK]>,
    next: Vec<u32>,
    free: u32,
}

impl Fifos {
    pub(crate) fn new(links: usize) -> Self {
        Self {
            ends: vec![Ends { head: NONE, tail: NONE, head_place: 0, tail_place: 0 }; links],
            heads: vec![u64::MAX; links],
            chunks: Vec::new(),
            next: Vec::new(),
            free: NONE,
        }
    }

    /// When the first packet on each link of a range arrives.
    #[inline]
    pub(crate) fn heads(&self, links: std::ops::Range<usize>) -> &[u64] {
        &self.heads[links]
    }

    #[inline]
    pub(crate) fn head(&self, link: usize) -> u64 {
        self.heads[link]
    }

    /// Appends a packet, which arrives no earlier than those before it. Returns whether the link was empty.
    #[inline(always)]
    pub(crate) fn push(&mut self, link: usize, packet: Packet) -> bool {
        let ends = &mut self.ends[link];
        if ends.tail_place as usize & (CHUNK - 1) != 0 {
            self.chunks[ends.tail as usize][ends.tail_place as usize & (CHUNK - 1)] = packet;
            ends.tail_place += 1;
            return false;
        }
        self.push_chunk(link, packet)
    }

    fn push_chunk(&mut self, link: usize, packet: Packet) -> bool {
        let chunk = self.take_chunk();
        self.chunks[chunk as usize][0] = packet;
        let ends = &mut self.ends[link];
        ends.tail_place = 1;
        let was_empty = ends.head == NONE;
        if was_empty {
            ends.head = chunk;
            ends.head_place = 0;
            self.heads[link] = packet.time_ps;
        } else {
            self.next[ends.tail as usize] = chunk;
        }
        ends.tail = chunk;
        was_empty
    }

    fn take_chunk(&mut self) -> u32 {
        if self.free == NONE {
            self.chunks.push([Packet::default(); CHUNK]);
            self.next.push(NONE);
            return self.chunks.len() as u32 - 1;
        }
        let chunk = self.free;
        self.free = self.next[chunk as usize];
        self.next[chunk as usize] = NONE;
        chunk
    }

    /// Takes the first packet of a link that is not empty.
    #[inline(always)]
    pub(crate) fn pop(&mut self, link: usize) -> Packet {
        let ends = &mut self.ends[link];
        let chunk = ends.head;
        let place = ends.head_place as usize;
        let packets = &self.chunks[chunk as usize];
        let packet = packets[place & (CHUNK - 1)];
        let place = place + 1;
        if chunk == ends.tail && place == ends.tail_place as usize {
            *ends = Ends { head: NONE, tail: NONE, head_place: 0, tail_place: 0 };
            self.heads[link] = u64::MAX;
            self.give_back(chunk);
        } else if place == CHUNK {
            let following = self.next[chunk as usize];
            ends.head = following;
            ends.head_place = 0;
            self.heads[link] = self.chunks[following as usize][0].time_ps;
            self.give_back(chunk);
        } else {
            ends.head_place = place as u8;
            self.heads[link] = packets[place].time_ps;
        }
        packet
    }

    #[inline]
    fn give_back(&mut self, chunk: u32) {
        self.next[chunk as usize] = self.free;
        self.free = chunk;
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
            let mut fifos = Fifos::new(3);
            let mut model: [VecDeque<u64>; 3] = Default::default();
            for (time, (link, push)) in steps.into_iter().enumerate() {
                if push {
                    let was_empty = fifos.push(link, Packet { time_ps: time as u64, ..Packet::default() });
                    prop_assert_eq!(was_empty, model[link].is_empty());
                    model[link].push_back(time as u64);
                } else if let Some(expected) = model[link].pop_front() {
                    prop_assert_eq!(fifos.pop(link).time_ps, expected);
                }
                for (link, model) in model.iter().enumerate() {
                    prop_assert_eq!(fifos.head(link), model.front().copied().unwrap_or(u64::MAX));
                }
            }
        }
    }
}
