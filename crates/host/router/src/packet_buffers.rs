//! The packets that the router holds: one buffer each, however many segments it is cut into, in buffers that are
//! used again.

use std::collections::BTreeMap;

use fabric::HostId;

use crate::packet::{Headers, VNET_LEN, is_open, join, joined};

/// The longest frame of a device: an IP packet and the virtio header.
pub const MAX_FRAME: usize = VNET_LEN + 65_535;

/// Sizes of buffers. A packet that is longer than the last but one swaps its buffer with the reader's, without a copy.
const CLASSES: [usize; 3] = [2_048, 16_384, MAX_FRAME];

#[derive(Debug)]
pub(crate) struct PacketBuffer {
    /// Whole buffers; the packet is `length` of it.
    buffer: Vec<u8>,
    length: usize,
    pub(crate) headers: Headers,
    pub(crate) to: HostId,
    /// Segments that are on their way, copies included.
    pub(crate) left: u32,
}

impl PacketBuffer {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// Packets by number; a number is used again when all segments of the packet are gone.
#[derive(Debug)]
pub(crate) struct PacketBuffers {
    slots: Vec<PacketBuffer>,
    free: Vec<u32>,
    spare: [Vec<Vec<u8>>; CLASSES.len()],
    /// By flow: the newest packet, as long as others may be joined to it.
    open: BTreeMap<u64, u32>,
    held: usize,
    limit: usize,
}

impl PacketBuffers {
    /// At most `limit` bytes of buffers are held.
    pub(crate) fn new(limit: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), spare: Default::default(), open: BTreeMap::new(), held: 0, limit }
    }

    /// Keeps the first `length` bytes of `buffer`, which is replaced by another buffer with arbitrary contents. None if
    /// that is over the limit.
    pub(crate) fn keep(&mut self, buffer: &mut Vec<u8>, length: usize, headers: Headers, to: HostId) -> Option<u32> {
        let class = CLASSES.iter().position(|&size| length <= size)?;
        if self.held + CLASSES[class] > self.limit {
            return None;
        }
        self.held += CLASSES[class];
        let mut kept = self.spare[class].pop().unwrap_or_else(|| vec![0; CLASSES[class]]);
        if class == CLASSES.len() - 1 && buffer.len() == MAX_FRAME {
            std::mem::swap(&mut kept, buffer);
        } else {
            kept[..length].copy_from_slice(&buffer[..length]);
        }
        let left = headers.segments().into();
        let frame = PacketBuffer { buffer: kept, length, headers, to, left };
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = frame;
            return Some(number);
        }
        self.slots.push(frame);
        Some(self.slots.len() as u32 - 1)
    }

    /// Lets packets be joined to one that was just kept, if it allows that, and to no other of its flow.
    pub(crate) fn open(&mut self, number: u32) {
        let frame = &self.slots[number as usize];
        if is_open(frame.bytes(), &frame.headers) {
            self.open.insert(frame.headers.flow, number);
        } else {
            self.open.remove(&frame.headers.flow);
        }
    }

    /// Joins a packet to the newest of its flow, if it continues that one and there is room. Returns that packet's
    /// number and which of its segments this is.
    pub(crate) fn join(&mut self, next: &[u8], headers: &Headers) -> Option<(u32, u16)> {
        let &number = self.open.get(&headers.flow)?;
        let frame = &mut self.slots[number as usize];
        let both = joined(frame.bytes(), &frame.headers, next, headers)?;
        let (from, payload) = (frame.length, &next[VNET_LEN + usize::from(headers.payload_at)..]);
        let payload = &payload[..headers.payload().into()];
        let length = from + payload.len();
        if length > frame.buffer.len() {
            let class = CLASSES.iter().position(|&size| length <= size)?;
            let more = CLASSES[class] - frame.buffer.len();
            if self.held + more > self.limit {
                return None;
            }
            self.held += more;
            let mut larger = self.spare[class].pop().unwrap_or_else(|| vec![0; CLASSES[class]]);
            larger[..from].copy_from_slice(frame.bytes());
            let smaller = std::mem::replace(&mut frame.buffer, larger);
            if let Some(class) = CLASSES.iter().position(|&size| smaller.len() == size) {
                self.spare[class].push(smaller);
            }
        }
        frame.buffer[from..length].copy_from_slice(payload);
        join(&mut frame.buffer, &frame.headers, next, &both);
        let index = frame.headers.segments();
        (frame.length, frame.headers, frame.left) = (length, both, frame.left + 1);
        self.open(number);
        Some((number, index))
    }

    pub(crate) fn get(&self, number: u32) -> &PacketBuffer {
        &self.slots[number as usize]
    }

    /// Keeps a packet for one more segment: a copy of one that is on its way.
    pub(crate) fn retain(&mut self, number: u32) {
        let frame = &mut self.slots[number as usize];
        debug_assert!(frame.left > 0, "a copy of a segment that is gone");
        frame.left += 1;
    }

    /// Releases segments of a packet that have left.
    pub(crate) fn release(&mut self, number: u32, segments: u32) {
        let frame = &mut self.slots[number as usize];
        debug_assert!(frame.left >= segments, "more segments gone than there were");
        frame.left -= segments;
        if frame.left > 0 {
            return;
        }
        if self.open.get(&frame.headers.flow) == Some(&number) {
            self.open.remove(&frame.headers.flow);
        }
        let buffer = std::mem::take(&mut frame.buffer);
        if let Some(class) = CLASSES.iter().position(|&size| buffer.len() == size) {
            self.held -= CLASSES[class];
            self.spare[class].push(buffer);
        }
        self.free.push(number);
    }

    /// Returns the number of packets held.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::sample::PacketSample;

    fn keep(frames: &mut PacketBuffers, payload: usize) -> Option<u32> {
        let frame = PacketSample { payload: vec![3; payload], ..PacketSample::default() }.frame();
        let headers = Headers::parse(&frame).unwrap();
        let mut buffer = vec![0; MAX_FRAME];
        buffer[..frame.len()].copy_from_slice(&frame);
        let kept = frames.keep(&mut buffer, frame.len(), headers, HostId(0));
        assert_eq!(buffer.len(), MAX_FRAME, "the reader's buffer is as good as new");
        if let Some(number) = kept {
            assert_eq!(frames.get(number).bytes(), frame);
        }
        kept
    }

    #[test]
    fn buffers_of_every_size_are_reused() {
        let mut frames = PacketBuffers::new(1 << 20);
        for _ in 0..100 {
            let kept: Vec<u32> = [0, 1448, 15_000, 60_000].map(|it| keep(&mut frames, it).unwrap()).into();
            assert_eq!(frames.count(), 4);
            for number in kept {
                let segments = frames.get(number).left;
                frames.release(number, segments);
            }
        }
        assert_eq!((frames.count(), frames.held, frames.slots.len()), (0, 0, 4));
        assert_eq!(frames.spare.each_ref().map(Vec::len), [2, 1, 1]);
    }

    #[test]
    fn held_frames_are_limited() {
        let mut frames = PacketBuffers::new(2 * MAX_FRAME);
        let first = keep(&mut frames, 60_000).unwrap();
        keep(&mut frames, 60_000).unwrap();
        assert_eq!(keep(&mut frames, 0), None);
        let segments = frames.get(first).left;
        frames.release(first, segments);
        assert!(keep(&mut frames, 0).is_some());
    }
}
