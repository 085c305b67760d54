//! Received packets: opening them, and reading their frames.

use flow::{AckEliciting, AckError, AckRanges};
use laws::Notification;
use units::{Frac, Span, Time};

use super::{ConnectionUpdate, Data, LATENESS, MIN_SEND_BUFFER, OpenedPacket, ReadOutcome};
use crate::blocks::{BlockError, BlockSender, Conditions};
use crate::closed::{CloseCode, CloseReason};
use crate::four_tuple::FourTuple;
use crate::frame::{Ack, Frame, Frames};
use crate::frame_queue::OVERHEAD;
use crate::keys::{DecryptedPacket, MAX_FAILURES, SealedPacket};
use crate::narrow::{to_i64, to_u32};
use crate::observe::{self, Event, KeyCause};
use crate::path::{SentAck, State};
use crate::side::Side;
use crate::streams::{Direction, FrameResult};
use crate::{ConnectionId, ID_LEN};

impl Data {
    /// Opens a packet with a short header. Returns the number of its path, and the place of its frames; none if it does
    /// not open.
    pub(crate) fn open(
        &mut self,
        now: Time,
        id: ConnectionId,
        four_tuple: FourTuple,
        packet: &mut [u8],
    ) -> Result<Option<(u32, DecryptedPacket)>, CloseReason> {
        let Some(at) = self.path_of(now, id, four_tuple) else { return Ok(None) };
        let timeout = self.timeout();
        let path = &mut self.paths[at];
        let sealed = SealedPacket {
            packet,
            number_at: 1 + ID_LEN,
            path: path.number,
            newest: path.arrivals.newest(),
            seen: &mut path.seen,
        };
        let opened = self.keys.open(now, timeout, sealed).ok();
        if self.keys.failures >= MAX_FAILURES {
            return Err(CloseReason::new(CloseCode::KEYS, "too many packets that do not open"));
        }
        self.note_update(now, KeyCause::Remote);
        let Some(opened) = opened else {
            // A path without an authenticated packet is not kept.
            if self.paths[at].state == State::Opening
                && self.paths[at].arrivals.newest().is_none()
                && self.paths[at].next == 0
                && self.side == Side::Listener
            {
                let path = self.paths.swap_remove(at);
                self.offered.insert(path.number, path.theirs);
            }
            return Ok(None);
        };
        let path = &self.paths[at];
        Ok(path.arrivals.is_new(opened.number).then_some((path.number, opened)))
    }

    /// Reports a key update, if there was one. The peer may have caused it: packets from now on are under the new key.
    pub(super) fn note_update(&mut self, now: Time, cause: KeyCause) {
        if self.updates != self.keys.updates() {
            self.updates = self.keys.updates();
            let (space, updates) = (observe::Space::Data, self.updates);
            self.observer.report(now, || Event::Keys { space, updates, cause });
            self.paths.iter_mut().for_each(|path| path.phase_from = path.next);
        }
    }

    /// Reads the frames of a packet that opened; each was checked by itself. Skips AUTH: it was handled before.
    pub(crate) fn read(&mut self, arrival: OpenedPacket, payload: &[u8]) -> Result<ReadOutcome, CloseReason> {
        let OpenedPacket { now, received_at, path, number, codepoint, four_tuple, len } = arrival;
        if self.count_received(&arrival).is_none() {
            return Ok(ReadOutcome::Dropped);
        }
        let mut wants = false;
        let mut frames = Frames::new(payload);
        let (mut source, mut challenge) = (None, None);
        while let Some(frame) = frames.next() {
            let frame = frame?;
            wants |= frame.is_ack_eliciting();
            match frame {
                Frame::Source { block, shape, place } if source.is_none() => {
                    source = Some((block, shape, place, frames.rest()));
                }
                Frame::Stream(_) | Frame::Padding(_) if source.is_some() => {
                    if self.read_frame(now, &frame)? == FrameResult::Dropped {
                        return Ok(ReadOutcome::Dropped);
                    }
                }
                _ if source.is_some() => return Err(no_symbol()),
                Frame::Close { code, reason, .. } => {
                    return Ok(ReadOutcome::Closed(CloseReason::new(CloseCode(code), reason)));
                }
                Frame::PathResponse(value) => self.on_response(now, path, four_tuple, value),
                Frame::PathChallenge(value) => challenge = Some(value),
                frame => {
                    if self.read_frame(now, &frame)? == FrameResult::Dropped {
                        return Ok(ReadOutcome::Dropped);
                    }
                }
            }
        }
        if let Some((block, shape, place, symbol)) = source {
            let block_receiver = self.block_receiver.as_mut().ok_or_else(no_blocks)?;
            block_receiver.on_source(now, block, shape, place, symbol)?;
            self.read_rebuilt(block)?;
        }
        self.arm_release_timer(now);
        let Some(path) = self.path_mut(path) else { return Ok(ReadOutcome::Dropped) };
        if let Some(value) = challenge {
            path.respond(value, four_tuple, len);
        }
        let is_newest = path.arrivals.newest().is_none_or(|newest| newest < number);
        let eliciting = if wants { AckEliciting::Yes } else { AckEliciting::No };
        path.arrivals.on_packet(received_at, number, codepoint, eliciting);
        if is_newest && path.four_tuple != four_tuple {
            self.on_moved(&arrival);
        }
        self.report_events(now);
        Ok(ReadOutcome::Read)
    }

    /// Counts an opened packet towards its path's amplification limit. None if it arrived from an invalid address.
    pub(super) fn count_received(&mut self, arrival: &OpenedPacket) -> Option<()> {
        let (side, &OpenedPacket { path, four_tuple, len, .. }) = (self.side, arrival);
        let path = self.path_mut(path)?;
        if side == Side::Client && path.four_tuple.remote != four_tuple.remote {
            return None;
        }
        if path.four_tuple == four_tuple {
            path.amplification_limit.on_received(len);
        } else if let Some((before, amplification_limit)) = &mut path.before
            && *before == four_tuple
        {
            amplification_limit.on_received(len);
        }
        Some(())
    }

    fn read_frame(&mut self, now: Time, frame: &Frame) -> Result<FrameResult, CloseReason> {
        let streams = &mut self.channel.work_mut().streams;
        match *frame {
            Frame::Ack(ref ack) => self.on_ack(now, ack)?,
            Frame::Done if self.side == Side::Client => {
                self.pending_updates.push(ConnectionUpdate::Done);
                self.confirm()?;
            }
            Frame::PathId { path, id, token } => self.on_path_id(path, id, token)?,
            Frame::PathRetire { path, reason } => self.on_path_retire(now, path, reason)?,
            Frame::MaxData(bytes) => streams.on_max_data(bytes),
            Frame::MaxStreamData { stream, bytes } => streams.on_max_stream_data(stream, bytes)?,
            Frame::MaxStreams { one_way, count } => {
                streams.on_max_streams(if one_way { Direction::OneWay } else { Direction::Both }, count);
            }
            Frame::Blocked { stream, .. } => streams.on_blocked(stream)?,
            Frame::ResetStream { stream, code, total } => streams.on_reset(stream, code, total)?,
            Frame::StopSending { stream, code } => streams.on_stop(stream, code)?,
            Frame::Stream(ref stream) => return Ok(streams.on_stream(stream)?),
            Frame::Datagram(data) => self.on_datagram(data)?,
            Frame::Parity { block, shape, place, symbol } => {
                self.block_receiver.as_mut().ok_or_else(no_blocks)?.on_parity(now, block, shape, place, symbol)?;
                self.read_rebuilt(block)?;
            }
            Frame::BlockNack { block, missing } => self.block_sender(block)?.on_nack(block, missing, now)?,
            Frame::BlockWhole { first, count } => {
                self.block_sender(first)?.on_block_whole(first, count)?;
                self.frame_queue().settle_blocks();
            }
            Frame::Auth { .. } if self.side == Side::Listener => {}
            Frame::Crypto { .. } | Frame::Done | Frame::Auth { .. } | Frame::Source { .. } => {
                return Err(CloseReason::new(
                    CloseCode::FRAME,
                    "a frame that this end may not get, or not in such a packet",
                ));
            }
            // The source address of the latter three matters: they are read with their packet.
            Frame::Padding(_)
            | Frame::Ping
            | Frame::Close { .. }
            | Frame::PathChallenge(_)
            | Frame::PathResponse(_) => {}
        }
        Ok(FrameResult::Yes)
    }

    /// Returns the blocks that this end sends, for a frame that refers to `block`.
    fn block_sender(&mut self, block: u64) -> Result<&mut BlockSender, CloseReason> {
        Ok(self.frame_queue().block_sender.as_mut().ok_or(BlockError::Unsent { block, sent: 0 })?)
    }

    /// Reads the rebuilt symbols of a block, as if their packets had arrived.
    fn read_rebuilt(&mut self, block: u64) -> Result<(), CloseReason> {
        let Some(block_receiver) = &mut self.block_receiver else { return Ok(()) };
        let frame_queue = self.channel.work_mut();
        let mut all = true;
        while let Some(symbol) = block_receiver.next_rebuilt() {
            for frame in Frames::new(symbol).take_while(|_| !symbol.is_empty()) {
                match frame? {
                    Frame::Stream(stream) => all &= frame_queue.streams.on_stream(&stream)? == FrameResult::Yes,
                    Frame::Padding(_) => {}
                    _ => return Err(no_symbol()),
                }
            }
        }
        if !all {
            // Its sender gets no report of it, and retransmits it.
            block_receiver.withhold_complete(block);
        }
        Ok(())
    }

    fn on_datagram(&mut self, data: &[u8]) -> Result<(), CloseReason> {
        if data.len() > self.shared.settings.max_datagram.into() {
            return Err(CloseReason::new(CloseCode::FLOW, "a datagram that is longer than was allowed"));
        }
        // Without room it is lost, as in the network.
        self.datagrams.push(data);
        Ok(())
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) -> Result<(), CloseReason> {
        let Some(at) = self.paths.iter().position(|path| path.number == ack.path) else {
            // A path that is forgotten, or never existed.
            let known = ack.path < self.next_path && !self.offered.contains_key(&ack.path);
            return if known {
                Ok(())
            } else {
                Err(CloseReason::new(CloseCode::ACK, "an acknowledgement for a path that was never open"))
            };
        };
        let path = &mut self.paths[at];
        if ack.newest.last >= path.next {
            return Err(AckError::NeverSent { number: ack.newest.last, next: path.next }.into());
        }
        let Some(subflow) = path.subflow else { return Ok(()) };
        self.ranges.clear();
        self.ranges.extend(ack.ranges());
        self.times.clear();
        self.times.extend(ack.received());
        let ecn = path.ecn.then_some(ack.ecn);
        let mut acks = AckRanges { ranges: &self.ranges, ecn, delay: ack.delay, received: &self.times };
        let acked = match self.channel.acked(now, subflow, &acks) {
            Err(AckError::EcnDecreased { .. } | AckError::EcnExceedsSent { .. }) => {
                path.ecn = false;
                acks.ecn = None;
                self.channel.acked(now, subflow, &acks)?
            }
            acked => acked?,
        };
        path.ecn &= self.channel.ecn_works(subflow);
        if acked.packets > 0 {
            (path.acked_at, path.pto) = (now, Some(self.channel.timeout(subflow)));
        }
        path.acked += acked.bytes;
        path.marked += acked.marked;
        if ack.newest.last >= path.phase_from {
            self.keys.acknowledged(self.updates);
        }
        let named = |number| self.ranges.iter().any(|range| range.contains(number));
        if let Some(SentAck { newest, .. }) = path.last_ack.take_if(|last_ack| named(last_ack.number)) {
            path.arrivals.forget_below(newest);
        }
        let old = path.search.size();
        if path.search.acked(now, named) {
            let mss = u32::from(path.search.size()) - to_u32(OVERHEAD as u64);
            self.channel.set_mss(subflow, mss);
            self.report_size(now, at, old);
        }
        let path = &mut self.paths[at];
        let is_shorter = |rtt: &Span| path.min_rtt.is_none_or(|current| *rtt < current);
        if let Some(rtt) = acked.rtt.filter(|rtt| is_shorter(rtt) && *rtt > Span::ZERO) {
            path.min_rtt = Some(rtt);
            let is_least = rtt < self.base_rtt;
            if is_least {
                self.base_rtt = rtt;
            }
            if is_least || !self.shared.settings.one_law {
                self.channel.notify(subflow, &Notification::BaseRtt(rtt));
            }
        }
        self.detect_black_hole(now, at, subflow);
        self.update_blocks(subflow);
        self.size_buffers();
        if acked.packets > 0 {
            self.report_events(now);
            self.report_metrics(now, at, acked.rtt);
        }
        Ok(())
    }

    /// Sets the buffer of a stream to four windows. A lost packet is acknowledged 2.25 round trips after it was sent at the
    /// earliest, and 3.5 if its retransmission is lost, too: each loss is detected after a round trip and the reordering window.
    /// All that is sent meanwhile stays in the buffer. More would only fill the processor's caches.
    fn size_buffers(&mut self) {
        let max_buffer = self.shared.settings.send_buffer;
        let wanted = self.channel.send_limits().window.get().saturating_mul(4);
        self.frame_queue().streams.set_send_buffer(wanted.clamp(MIN_SEND_BUFFER.min(max_buffer), max_buffer));
    }

    /// Passes the network conditions to the senders and receivers of blocks.
    fn update_blocks(&mut self, subflow: u8) {
        let (stats, rtt) = (*self.channel.stats(), self.channel.smoothed_rtt(subflow));
        let (ack_delay, bdp) = (Span::from_us(to_i64(self.theirs.ack_delay)), self.channel.send_limits().window);
        let slowest = self.paths.iter().filter_map(|path| path.subflow).map(|it| self.channel.smoothed_rtt(it)).max();
        let slowest = slowest.unwrap_or(rtt);
        if let Some(block_receiver) = &mut self.block_receiver {
            block_receiver.set_timing(ack_delay, slowest);
        }
        let frame_queue = self.channel.work_mut();
        if let Some(block_sender) = &mut frame_queue.block_sender {
            block_sender.set_timing(slowest.times(2) + ack_delay.times(2) + LATENESS, slowest);
            let lost = stats.lost.saturating_sub(stats.spurious).min(stats.packets_sent);
            frame_queue.conditions = Conditions { loss: Frac::ratio(lost, stats.packets_sent.max(1)), bdp: bdp.get() };
        }
    }
}

fn no_symbol() -> CloseReason {
    CloseReason::new(CloseCode::FRAME, "a symbol holds other frames than STREAM and PADDING")
}

fn no_blocks() -> CloseReason {
    CloseReason::new(CloseCode::FLOW, "a block, and none were allowed")
}
