//! Sending: packets of data in batches; acknowledgements, challenges and probes on their own.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::mem;

use flow::{Codepoint, SendState};
use units::{Span, Time};

use super::{Data, SKIP_EVERY, SendPath};
use crate::closed::CloseReason;
use crate::dplpmtud::BASE_PLPMTU;
use crate::four_tuple::FourTuple;
use crate::frame::{Ack, AckContent, Frame};
use crate::frame_queue::{ConnectionFrame, HEAD_LEN, NUMBER_LEN, OVERHEAD};
use crate::header::{SHORTEST_PACKET, put_short};
use crate::keys::{HeaderOffsets, Numbered, SEAL_LEN, leave_number};
use crate::narrow::{to_u32, to_usize};
use crate::observe::{self, Event};
use crate::path::{MIN_ACK_PACKET, Path, Response, SentAck, State};

/// Frames of the connection itself that wait; blocks keep theirs beyond.
const MAX_CONNECTION_FRAMES: usize = 64;
/// Number of ack-only packets after which one requests an acknowledgement, so that ranges which the peer has received
/// can be forgotten.
const MAX_ACK_ONLY: u32 = 32;
/// Maximum length of a batch, in bytes: the longest UDP payload over IPv4.
const MAX_BATCH: usize = 65_507;
/// Bytes that an acknowledgement's ranges may take in a packet that carries something else.
const ACK_ROOM: usize = 300;
/// Minimum time until a probe of the packet size is declared lost: hosts are sometimes late.
const PROBE_WAIT: Span = Span::from_ms(200);

/// Path and four-tuple of a packet. The address that a challenge goes to may not be that of the path.
#[derive(Clone, Copy)]
struct Route {
    /// Index of the path.
    at: usize,
    four_tuple: FourTuple,
}

/// A packet with complete frames that is not sealed yet.
#[derive(Clone, Copy)]
struct UnsealedPacket {
    /// Its path, by index.
    at: usize,
    /// Its four-tuple.
    four_tuple: FourTuple,
    /// Offset at which it begins.
    start: usize,
    number: u64,
    /// Set if it counts as in flight.
    in_flight: bool,
}

impl Data {
    /// Appends packets of one size, one per datagram; the last one may be shorter. Returns their four-tuple and that size.
    pub(crate) fn write(
        &mut self,
        now: Time,
        max_datagrams: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<(SendPath, usize)>, CloseReason> {
        if self.keys.wants_update() {
            self.update_keys(now);
        }
        self.queue_block_reports();
        self.pacing_at = Time::NEVER;
        if self.keys.is_used_up() {
            return Ok(None);
        }
        for at in 0..self.paths.len() {
            if let Some(sent) = self.write_challenge(now, at, out)? {
                return Ok(Some(sent));
            }
        }
        for at in 0..self.paths.len() {
            if let Some(sent) = self.write_ping(now, at, out) {
                return Ok(Some(sent));
            }
        }
        if let Some(sent) = self.write_probe(now, out) {
            return Ok(Some(sent));
        }
        match self.channel.choose(now) {
            Ok(subflow) => {
                if let Some(sent) = self.write_batch(now, subflow, max_datagrams, out) {
                    return Ok(Some(sent));
                }
            }
            Err(SendState::At(time)) => self.pacing_at = time,
            Err(_) => {}
        }
        Ok(self.write_ack(now, out))
    }

    /// Appends a packet's header. Returns the offset at which the packet begins.
    pub(super) fn begin(&self, at: usize, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        put_short(out, self.paths[at].theirs.id, self.keys.phase(), NUMBER_LEN);
        leave_number(out, NUMBER_LEN);
        start
    }

    /// Seals the packet at the end of `out`. Returns its length.
    fn finish(&mut self, now: Time, out: &mut Vec<u8>, packet: UnsealedPacket) -> usize {
        let UnsealedPacket { at, four_tuple, start, number, in_flight } = packet;
        let shortest = start + SHORTEST_PACKET - SEAL_LEN;
        if out.len() < shortest {
            out.resize(shortest, 0);
        }
        let path = &mut self.paths[at];
        self.observer.report(now, || {
            let (len, payload) = (out.len() + SEAL_LEN - start, &out[start + HEAD_LEN..]);
            let (space, path) = (observe::Space::Data, path.number);
            Event::Sent(observe::ObservedPacket { space, path, number, len, payload, in_flight })
        });
        let offsets = HeaderOffsets { start, number_at: start + HEAD_LEN - NUMBER_LEN, number_len: NUMBER_LEN };
        self.keys.seal(out, offsets, Numbered { path: path.number, number });
        path.next = number + 1;
        let len = out.len() - start;
        if path.four_tuple == four_tuple {
            path.amplification_limit.on_sent(len);
        }
        len
    }

    /// Appends a packet outside of the work.
    fn write_untracked(
        &mut self,
        now: Time,
        route: Route,
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Option<usize> {
        let Route { at, four_tuple } = route;
        let number = self.channel.number_apart(self.paths[at].subflow?, now)?;
        let start = self.begin(at, out);
        fill(out);
        Some(self.finish(now, out, UnsealedPacket { at, four_tuple, start, number, in_flight: false }))
    }

    /// Appends a packet with a challenge, or a response, if one is due on this path.
    fn write_challenge(
        &mut self,
        now: Time,
        at: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<(SendPath, usize)>, CloseReason> {
        let (wait, path) = (self.timeout(), &mut self.paths[at]);
        if !path.is_used() {
            return Ok(None);
        }
        let mut frames = Vec::new();
        let (four_tuple, max_len) = if let Some(Response { value, four_tuple, max_len }) = path.next_response() {
            Frame::PathResponse(value).put(&mut frames);
            (four_tuple, Some(max_len))
        } else if let Some(challenge) = path.challenge.as_mut().filter(|challenge| challenge.due() <= now) {
            if let (Some(value), Some(before)) = (challenge.previous_due.take(), challenge.before) {
                // The previous address was validated.
                Frame::PathChallenge(value).put(&mut frames);
                (before, None)
            } else {
                let value = self.shared.random()?;
                challenge.on_sent(value, now, wait);
                Frame::PathChallenge(value).put(&mut frames);
                (challenge.four_tuple, None)
            }
        } else {
            return Ok(None);
        };
        let room = if four_tuple == path.four_tuple {
            to_usize(path.amplification_limit.room().min(BASE_PLPMTU.into()))
        } else {
            BASE_PLPMTU.into()
        };
        let len = max_len.map_or(room, |max_len| room.min(max_len));
        if len < SHORTEST_PACKET {
            return Ok(None);
        }
        let sent = self.write_untracked(now, Route { at, four_tuple }, out, |out| {
            let end = out.len() + len - OVERHEAD;
            out.append(&mut frames);
            out.resize(end, 0);
        });
        Ok(sent.map(|len| (SendPath { four_tuple, codepoint: Codepoint::NotEct }, len)))
    }

    /// Appends the PING of a liveness probe, if this path owes one. Neither window nor pacing delays it: an unsent
    /// probe would look like one without an answer.
    fn write_ping(&mut self, now: Time, at: usize, out: &mut Vec<u8>) -> Option<(SendPath, usize)> {
        let path = &mut self.paths[at];
        if !path.is_ping_due || path.amplification_limit.room() < SHORTEST_PACKET as u64 {
            return None;
        }
        path.is_ping_due = false;
        let four_tuple = path.four_tuple;
        let len = self.write_untracked(now, Route { at, four_tuple }, out, |out| Frame::Ping.put(out))?;
        Some((SendPath { four_tuple, codepoint: Codepoint::NotEct }, len))
    }

    /// Appends a packet that shows whether a path takes longer ones, if one is due.
    fn write_probe(&mut self, now: Time, out: &mut Vec<u8>) -> Option<(SendPath, usize)> {
        let due = |path: &&Path| {
            path.state == State::Open && path.amplification_limit.is_validated() && path.search.due().is_some()
        };
        let at = self.paths.iter().position(|path| due(&path)).filter(|_| self.is_confirmed)?;
        let (size, four_tuple) = (usize::from(self.paths[at].search.due()?), self.paths[at].four_tuple);
        let len = self.write_untracked(now, Route { at, four_tuple }, out, |out| {
            let end = out.len() + size - OVERHEAD;
            Frame::Ping.put(out);
            out.resize(end, 0);
        })?;
        let wait = self.timeout().times(2).max(PROBE_WAIT);
        let path = &mut self.paths[at];
        path.search.on_probe_sent(path.next - 1, now, wait);
        Some((SendPath { four_tuple, codepoint: Codepoint::NotEct }, len))
    }

    /// Queues the reports of blocks, unless many frames wait already: unqueued reports stay with the blocks, in bounded
    /// memory.
    fn queue_block_reports(&mut self) {
        let frame_queue = self.channel.work_mut();
        while let Some(block_receiver) = &mut self.block_receiver
            && frame_queue.waiting() < MAX_CONNECTION_FRAMES
        {
            if let Some((first, count)) = block_receiver.next_block_whole() {
                frame_queue.queue_block_whole(first, count);
            } else if let Some((block, missing)) = block_receiver.next_nack() {
                frame_queue.push(ConnectionFrame::Nack { block, missing });
            } else {
                return;
            }
        }
    }

    /// Appends packets of the work on one subflow.
    fn write_batch(
        &mut self,
        now: Time,
        subflow: u8,
        max_datagrams: usize,
        out: &mut Vec<u8>,
    ) -> Option<(SendPath, usize)> {
        let at = self
            .paths
            .iter()
            .position(|path| path.subflow == Some(subflow) && path.amplification_limit.is_validated())?;
        let (full, four_tuple) = (usize::from(self.paths[at].search.size()), self.paths[at].four_tuple);
        let max_datagrams = max_datagrams.min(MAX_BATCH / full).max(1);
        let (mut segment, mut count) = (0, 0);
        let sizes = self.paths.iter().filter(|path| path.state == State::Open).map(|path| path.search.size());
        let min_mss = u32::from(sizes.min().unwrap_or(BASE_PLPMTU)) - to_u32(OVERHEAD as u64);
        let frame_queue = self.channel.work_mut();
        (frame_queue.min_mss, frame_queue.now) = (min_mss, now);
        while count < max_datagrams {
            self.skip_numbers(now, at, subflow);
            let start = self.begin(at, out);
            let frames_at = out.len();
            let is_due = self.paths[at].arrivals.ack_due_at().is_set();
            let has_room = count == 0 && !self.frame_queue().needs_whole_packet();
            let newest = if is_due && has_room { self.put_ack(now, at, out, ACK_ROOM) } else { None };
            let work = self.channel.work_mut();
            work.frames_at = frames_at;
            mem::swap(&mut work.packet, out);
            let departed = self.channel.send_on(now, subflow);
            mem::swap(&mut self.channel.work_mut().packet, out);
            let Some(departed) = departed else {
                out.truncate(start);
                break;
            };
            self.note_ack(at, departed.number, newest);
            self.paths[at].ack_only_count = 0;
            let len = self.finish(
                now,
                out,
                UnsealedPacket { at, four_tuple, start, number: departed.number, in_flight: true },
            );
            count += 1;
            if count == 1 {
                segment = len;
            }
            if len < full {
                break;
            }
        }
        self.report_events(now);
        let path = &self.paths[at];
        let codepoint = if path.ecn { Codepoint::Ect0 } else { Codepoint::NotEct };
        (count > 0).then_some((SendPath { four_tuple, codepoint }, segment))
    }

    /// Skips a packet number occasionally: a peer that acknowledges it acknowledges packets that it did not receive.
    fn skip_numbers(&mut self, now: Time, at: usize, subflow: u8) {
        if self.paths[at].next >= self.paths[at].skip_at {
            let step = 1 + self.draw() % (2 * SKIP_EVERY);
            if let Some(number) = self.channel.skip_number(subflow, now) {
                let path = &mut self.paths[at];
                (path.next, path.skip_at) = (number + 1, number + 1 + step);
            }
        }
    }

    /// Appends an acknowledgement of the packets received on a path, if there are any, in about `room` bytes. Returns
    /// the highest number that it contains.
    fn put_ack(&mut self, now: Time, at: usize, out: &mut Vec<u8>, room: usize) -> Option<u64> {
        let (started_at, path) = (self.started_at, &mut self.paths[at]);
        if path.arrivals.is_echo() {
            self.channel.work_mut().requeue_block_wholes();
        }
        let acks = path.arrivals.ack(now)?;
        // A range takes 16 bytes at most.
        let ranges = &acks.ranges[..acks.ranges.len().min(room / 16)];
        let newest = ranges.first()?.last;
        self.times.clear();
        // Packets that arrived before the keys have no time on this clock.
        self.times.extend(acks.received.iter().filter(|&&(number, time)| number <= newest && time >= started_at));
        self.times.sort_unstable_by_key(|&(number, _)| Reverse(number));
        self.times
            .iter_mut()
            .for_each(|(_, time)| *time = Time::from_ps(time.saturating_since(started_at).unsigned_ps()));
        let ecn = acks.ecn.unwrap_or_default();
        Ack::put(out, &AckContent { path: path.number, delay: acks.delay, ranges, ecn, times: &self.times });
        path.arrivals.on_ack_sent();
        Some(newest)
    }

    /// Records a packet with an acknowledgement.
    fn note_ack(&mut self, at: usize, number: u64, newest: Option<u64>) {
        let last_ack = &mut self.paths[at].last_ack;
        if let Some(newest) = newest
            && last_ack.is_none_or(|last_ack| last_ack.number + 256 < number)
        {
            *last_ack = Some(SentAck { number, newest });
        }
    }

    /// Appends an ack-only packet, if one is due.
    fn write_ack(&mut self, now: Time, out: &mut Vec<u8>) -> Option<(SendPath, usize)> {
        let due = |path: &Path| path.can_ack() && path.arrivals.ack_due_at() <= now;
        let at = self.paths.iter().position(due)?;
        let number = self.channel.number_apart(self.paths[at].subflow?, now)?;
        let (start, four_tuple) = (self.begin(at, out), self.paths[at].four_tuple);
        // The bytes permitted for the address, less the overhead of a packet.
        let room = to_usize(self.paths[at].amplification_limit.room().min(u64::from(BASE_PLPMTU)));
        self.put_ack(now, at, out, room - MIN_ACK_PACKET);
        let len = self.finish(now, out, UnsealedPacket { at, four_tuple, start, number, in_flight: false });
        let path = &mut self.paths[at];
        path.ack_only_count += 1;
        if path.ack_only_count >= MAX_ACK_ONLY {
            path.ack_only_count = 0;
            self.frame_queue().push(ConnectionFrame::Ping);
        }
        Some((SendPath { four_tuple, codepoint: Codepoint::NotEct }, len))
    }

    /// Appends a packet with this CLOSE, without its reason if that exceeds the limit of the peer's address. None if the
    /// limit permits no packet.
    pub(crate) fn write_close(
        &mut self,
        now: Time,
        out: &mut Vec<u8>,
        close_reason: &CloseReason,
    ) -> Option<(SendPath, usize)> {
        let room = |path: &Path| to_usize(path.amplification_limit.room().min(BASE_PLPMTU.into()));
        // The first path of those with the most room.
        let used = self.paths.iter().enumerate().filter(|(_, path)| path.is_used() && path.subflow.is_some());
        let (at, path) = used.max_by_key(|(at, path)| (room(path), Reverse(*at)))?;
        let (room, four_tuple) = (room(path), path.four_tuple);
        let code = close_reason.code.0;
        let mut close = Vec::new();
        Frame::Close { code, kind: 0, reason: &close_reason.reason }.put(&mut close);
        if OVERHEAD + close.len() > room {
            close.clear();
            Frame::Close { code, kind: 0, reason: "" }.put(&mut close);
        }
        if room < SHORTEST_PACKET.max(OVERHEAD + close.len()) {
            return None;
        }
        let number = self.channel.number_apart(self.paths[at].subflow?, now)?;
        let start = self.begin(at, out);
        // Received packets are acknowledged, again if necessary: an earlier ACK may arrive after this packet, and is then not
        // read.
        for path in 0..self.paths.len() {
            if room == usize::from(BASE_PLPMTU) && out.len() - start < room / 2 {
                self.put_ack(now, path, out, ACK_ROOM);
            }
        }
        out.append(&mut close);
        let len = self.finish(now, out, UnsealedPacket { at, four_tuple, start, number, in_flight: false });
        Some((SendPath { four_tuple, codepoint: Codepoint::NotEct }, len))
    }
}
