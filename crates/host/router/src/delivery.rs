//! Delivery: segments of one packet that arrive one after another are delivered as one packet again, like receive
//! coalescing in a NIC.

use std::ops::Range;

use fabric::HostId;
use units::{Span, Time};

use crate::packet::{Headers, Mark};
use crate::packet_buffers::PacketBuffers;
use crate::port::PortSegment;

/// A packet for a host: some of the segments of one that a host has sent.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// The destination.
    pub host: HostId,
    /// Time of its delivery.
    pub due: Time,
    /// The packet as it was sent, behind its virtio header.
    pub frame: &'a [u8],
    /// Its headers.
    pub headers: &'a Headers,
    /// Its segments.
    pub segments: Range<u16>,
    /// Its mark.
    pub mark: Mark,
    /// Random bits that select the corrupted bit, if a link has corrupted the packet, which then is one segment:
    /// [`render_corrupted`](crate::packet::render_corrupted) changes it.
    pub corrupted: Option<u32>,
}

/// Adjacent segments of one packet with the same fate, held for those that may follow.
#[derive(Clone, Copy, Debug)]
struct SegmentRun {
    frame: u32,
    first: u16,
    end: u16,
    marked: bool,
    corrupted: Option<u32>,
    due: Time,
}

/// Segments that have arrived at one host and are held.
#[derive(Debug)]
pub(crate) struct Hold {
    host: HostId,
    coalesce: Span,
    /// At most one of a packet, in the order of their beginning.
    runs: Vec<SegmentRun>,
}

impl Hold {
    pub(crate) fn new(host: HostId, coalesce: Span) -> Self {
        Self { host, coalesce, runs: Vec::new() }
    }

    /// Adds a segment that arrives. Returns the deadline of the packet that it began to hold, if any.
    pub(crate) fn arrive(
        &mut self,
        segment: &PortSegment,
        frames: &mut PacketBuffers,
        deliver: &mut impl FnMut(Delivery),
    ) -> Option<Time> {
        let now = segment.arrived;
        let headers = &frames.get(segment.frame).headers;
        let segments = headers.segments();
        if segments == 1 && self.runs.is_empty() {
            let run = self.run_of(segment);
            self.hand_over(run, now, frames, deliver);
            return None;
        }
        let flow = headers.flow;
        let mut index = None;
        let mut at = 0;
        while let Some(&run) = self.runs.get(at) {
            let continues = run.frame == segment.frame && run.end == segment.index && run.marked == segment.marked;
            // A corrupted segment is delivered alone.
            let continues = continues && run.corrupted.is_none() && segment.corrupted.is_none();
            if continues {
                index = Some(at);
            } else if frames.get(run.frame).headers.flow == flow {
                // Segments never overtake earlier segments of their own flow.
                self.runs.remove(at);
                self.hand_over(run, run.due, frames, deliver);
                continue;
            }
            at += 1;
        }
        let index = index.unwrap_or_else(|| {
            self.runs.push(self.run_of(segment));
            self.runs.len() - 1
        });
        let run = &mut self.runs[index];
        run.end = segment.index + 1;
        let run = *run;
        if run.end == segments || self.coalesce.is_zero() {
            self.runs.remove(index);
            self.hand_over(run, now, frames, deliver);
            return None;
        }
        (run.end - run.first == 1).then_some(run.due)
    }

    /// Delivers all packets that are due by now.
    pub(crate) fn flush(&mut self, now: Time, frames: &mut PacketBuffers, deliver: &mut impl FnMut(Delivery)) {
        while let Some(at) = self.runs.iter().position(|run| run.due <= now) {
            let run = self.runs.remove(at);
            self.hand_over(run, run.due, frames, deliver);
        }
    }

    fn run_of(&self, segment: &PortSegment) -> SegmentRun {
        SegmentRun {
            frame: segment.frame,
            first: segment.index,
            end: segment.index + 1,
            marked: segment.marked,
            corrupted: segment.corrupted,
            due: segment.arrived + self.coalesce,
        }
    }

    fn hand_over(&self, run: SegmentRun, due: Time, frames: &mut PacketBuffers, deliver: &mut impl FnMut(Delivery)) {
        let frame = frames.get(run.frame);
        deliver(Delivery {
            host: self.host,
            due,
            frame: frame.bytes(),
            headers: &frame.headers,
            segments: run.first..run.end,
            mark: if run.marked { Mark::Ce } else { Mark::None },
            corrupted: run.corrupted,
        });
        frames.release(run.frame, (run.end - run.first).into());
    }
}
