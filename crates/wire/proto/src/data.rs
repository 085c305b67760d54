//! A connection when both ends have the keys of data: its paths, and the channel that sends over them.

mod paths;
mod reading;
mod reroute;
mod writing;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem;

use flow::{AckPolicy, Channel, ChannelConfig, Codepoint, DataSending, Pacing, Range};
use laws::Law;
use units::{Bytes, Span, Time};

use crate::ConnectionId;
use crate::blocks::{BlockReceiver, BlockSender, CodingPolicy, CodingStats};
use crate::closed::CloseReason;
use crate::datagrams::Datagrams;
use crate::endpoint_state::EndpointState;
use crate::four_tuple::FourTuple;
use crate::frame_queue::{DATAGRAM_HEAD, DatagramError, FrameQueue, OVERHEAD};
use crate::keys::DataKeys;
use crate::narrow::{to_i64, to_u16, to_u32, to_usize};
use crate::observe::{self, Event, KeyCause, LostNote, Metrics, ObserverSlot, PathChange};
use crate::parameters::Parameters;
use crate::path::{AmplificationLimit, IssuedId, Path, PathIds, State};
use crate::settings::{MAX_ACK_DELAY, Settings};
use crate::side::Side;
use crate::space::FIRST_RTT;
use crate::streams::{Limits, Streams};
use reroute::Rerouting;

/// Average interval between skipped packet numbers.
const SKIP_EVERY: u64 = 1_024;
/// Returns the bytes of frames in a packet of this size.
const fn mss_of(packet_size: u16) -> u32 {
    to_u32(packet_size as u64 - OVERHEAD as u64)
}

/// The last ACK of a burst with losses is sent twice, this fraction of a round trip apart: losses that occur together
/// are over by then, and its sender has not timed out.
const ECHOES: u32 = 8;
/// Minimum wait of a timer beyond the delays of the path and the peer: hosts are sometimes late.
const LATENESS: Span = Span::from_ms(2);
/// Maximum timeout: a packet per 5 s burdens no network, and after an outage the transfer soon resumes.
const MAX_TIMEOUT: Span = Span::from_s(5);
/// Minimum interval between challenges.
const CHALLENGE_WAIT: Span = Span::from_ms(500);
/// Time without new bytes after which a stream's unused receive memory is released.
const IDLE_ROOM: Span = Span::from_s(1);
/// Minimum buffer of a stream for unacknowledged data, in bytes.
const MIN_SEND_BUFFER: u64 = 1 << 20;

/// Four-tuple and ECN codepoint of sent packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SendPath {
    pub(crate) four_tuple: FourTuple,
    pub(crate) codepoint: Codepoint,
}

/// Update for the owner of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectionUpdate {
    /// The peer sends to this ID from now on.
    NewId(ConnectionId),
    /// The peer no longer sends to this ID.
    OldId(ConnectionId),
    /// Another path can perhaps be opened.
    MorePaths,
    /// A path carries data now.
    PathOpen(u32),
    /// A path no longer exists.
    PathGone(u32),
    /// Request of the peer or the network to replace this path.
    PathWanted(u32),
    /// The listener knows the client.
    Done,
}

/// Result of reading a packet's frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ReadOutcome {
    Read,
    /// Part of it found no room: the packet is not acknowledged.
    Dropped,
    /// The peer has closed the connection.
    Closed(CloseReason),
}

/// A packet that was opened, and the circumstances of its arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenedPacket {
    pub(crate) now: Time,
    /// Arrival time: earlier than `now` if the packet had to wait.
    pub(crate) received_at: Time,
    /// The path on which it arrived.
    pub(crate) path: u32,
    pub(crate) number: u64,
    pub(crate) codepoint: Codepoint,
    pub(crate) four_tuple: FourTuple,
    /// Length of the datagram, in bytes.
    pub(crate) len: usize,
}

pub(crate) struct Data {
    rerouting: Rerouting,
    shared: EndpointState,
    side: Side,
    observer: ObserverSlot,
    keys: DataKeys,
    updates: u64,
    pub(crate) channel: Channel<Law, FrameQueue>,
    /// Rebuilds packets, if this end takes blocks.
    block_receiver: Option<BlockReceiver>,
    paths: Vec<Path>,
    /// IDs that the peer issued for paths that are not open.
    offered: BTreeMap<u32, IssuedId>,
    /// The first path for which neither end has issued an ID, and the maximum number of paths.
    next_path: u32,
    max_paths: u32,
    theirs: Parameters,
    ack_policy: AckPolicy,
    base_rtt: Span,
    /// Set if both ends know each other: DONE was sent, or received.
    is_confirmed: bool,
    /// Origin of both ends' times: the arrival of the first packet.
    started_at: Time,
    /// State of the generator for choices that a peer must not guess.
    rng_state: u64,
    /// Time at which a packet delayed by pacing may be sent.
    pacing_at: Time,
    /// Time of the next release of idle receive memory.
    release_at: Time,
    /// Received datagrams that are not read yet.
    datagrams: Datagrams,
    pending_updates: Vec<ConnectionUpdate>,
    ranges: Vec<Range>,
    times: Vec<(u64, Time)>,
}

/// Parameters of a data phase.
pub(crate) struct NewData {
    pub(crate) now: Time,
    pub(crate) shared: EndpointState,
    pub(crate) side: Side,
    pub(crate) keys: DataKeys,
    pub(crate) observer: ObserverSlot,
    pub(crate) theirs: Parameters,
    /// The IDs of path 0, to which the peer and this end send.
    pub(crate) own_id: ConnectionId,
    pub(crate) peer_id: ConnectionId,
    /// Four-tuple of the handshake.
    pub(crate) four_tuple: FourTuple,
    /// The shortest round trip of the handshake, if one was measured.
    pub(crate) rtt: Option<Span>,
}

impl Data {
    /// Creates the data phase. Path 0 is open, on the four-tuple of the handshake.
    pub(crate) fn new(new: NewData) -> Result<Self, CloseReason> {
        let NewData { now, shared, side, keys, observer, theirs, own_id, peer_id, four_tuple, rtt } = new;
        let settings = &shared.settings;
        // No path has a shorter RTT, and no law supports an RTT of zero.
        let base_rtt = rtt.unwrap_or(FIRST_RTT).max(Span::from_us(1));
        let ack_policy = AckPolicy {
            every: settings.ack_every.max(1),
            delay: settings.ack_delay.clamp(Span::ZERO, MAX_ACK_DELAY),
            echo: base_rtt.over(ECHOES),
            timestamps: theirs.times == 1,
        };
        let reset = theirs.reset.unwrap_or_default();
        let max_packet_size = settings.max_packet.min(to_u16(theirs.max_packet));
        let ids = PathIds { ours: own_id, theirs: IssuedId { id: peer_id, token: reset } };
        let mut path = Path::new(0, ids, four_tuple, State::Open, ack_policy, max_packet_size);
        (path.amplification_limit, path.subflow) = (AmplificationLimit::VALIDATED, Some(0));
        let base_mss = mss_of(path.search.base());
        let mut streams = Streams::new(side, settings.limits, MIN_SEND_BUFFER.min(settings.send_buffer));
        streams.set_send_pool(settings.send_pool);
        streams.set_receive_memory(shared.memory.clone());
        streams.set_peer_limits(Limits {
            max_data: theirs.max_data,
            max_stream_data: theirs.max_stream_data,
            max_streams_bidi: theirs.max_streams_bidi,
            max_streams_uni: theirs.max_streams_uni,
        });
        let mut config = ChannelConfig::new(base_rtt, base_mss);
        // A probe that is sent too early costs a packet. So the timeout is the minimum of RFC 9002 §6.2.1, plus the
        // lateness of hosts.
        config.timing.rto_min = base_rtt + Span::from_us(to_i64(theirs.ack_delay)) + LATENESS;
        config.timing.rto_max = MAX_TIMEOUT;
        config.on_ramp = settings.on_ramp;
        config.pacing = Pacing { header: to_u32(OVERHEAD as u64), burst: settings.burst, ..Pacing::PLAIN };
        let law = make_law(&shared, base_rtt, base_mss);
        let rng_state = u64::from_be_bytes(shared.random()?);
        let may_code = settings.coding != CodingPolicy::Off && theirs.coding_window > 0;
        let mut block_sender = may_code.then(|| BlockSender::new(settings.coding, theirs.coding_window));
        let mut block_receiver =
            (settings.coding_window > 0).then(|| BlockReceiver::new(settings.coding_window.into()));
        if let Some(block_receiver) = &mut block_receiver {
            block_receiver.set_timing(Span::from_us(to_i64(theirs.ack_delay)), base_rtt);
        }
        if observer.is_on() {
            if let Some(block_sender) = &mut block_sender {
                block_sender.events.enable();
            }
            if let Some(block_receiver) = &mut block_receiver {
                block_receiver.events.enable();
            }
        }
        let max_paths = u32::from(settings.paths.clamp(1, 64)).min(to_u32(theirs.paths));
        path.skip_at = 1 + rng_state % SKIP_EVERY;
        let mut frame_queue = FrameQueue::new(streams, block_sender, base_mss);
        if observer.is_on() {
            frame_queue.lost.enable();
        }
        let this = Self {
            channel: Channel::new(config, law, frame_queue, now),
            block_receiver,
            side,
            observer,
            updates: keys.updates(),
            keys,
            paths: alloc::vec![path],
            offered: BTreeMap::new(),
            next_path: 1,
            max_paths,
            theirs,
            ack_policy,
            rerouting: Rerouting::default(),
            base_rtt,
            is_confirmed: false,
            started_at: now,
            rng_state,
            pacing_at: Time::NEVER,
            release_at: Time::NEVER,
            datagrams: Datagrams::default(),
            pending_updates: Vec::new(),
            ranges: Vec::new(),
            times: Vec::new(),
            shared,
        };
        this.report_path(now, 0, PathChange::Validated);
        this.report_metrics(now, 0, None);
        Ok(this)
    }

    /// Reports the metrics of a path to the observer, after its law has processed an event.
    fn report_metrics(&self, now: Time, at: usize, latest_rtt: Option<Span>) {
        let path = &self.paths[at];
        let Some(subflow) = path.subflow.filter(|_| self.observer.is_on()) else { return };
        let (permit, in_flight) = self.channel.state(subflow);
        let metrics = Metrics {
            window: permit.window,
            in_flight,
            pacing: permit.pacing,
            smoothed_rtt: self.channel.smoothed_rtt(subflow),
            min_rtt: path.min_rtt,
            latest_rtt,
            pto_count: self.channel.pto_count(subflow),
        };
        self.observer.report(now, || Event::Metrics { path: path.number, metrics, law: self.channel.law(subflow) });
    }

    /// Reports losses and block events to the observer.
    fn report_events(&mut self, now: Time) {
        if !self.observer.is_on() {
            return;
        }
        let frame_queue = self.channel.work_mut();
        let lost = frame_queue.lost.take();
        let mut blocks =
            frame_queue.block_sender.as_mut().map_or_else(Vec::new, |block_sender| block_sender.events.take());
        blocks.extend(self.block_receiver.iter_mut().flat_map(|block_receiver| block_receiver.events.take()));
        for LostNote { subflow, number, cause } in lost {
            if let Some(path) = self.paths.iter().find(|path| path.subflow == Some(subflow)) {
                let (space, path) = (observe::Space::Data, path.number);
                self.observer.report(now, || Event::Lost { space, path, number, cause });
            }
        }
        for event in blocks {
            self.observer.report(now, || Event::Block(event));
        }
    }

    pub(crate) fn frame_queue(&mut self) -> &mut FrameQueue {
        self.channel.work_mut()
    }

    /// Returns the coding counters.
    pub(crate) fn coding(&self) -> CodingStats {
        CodingStats {
            parity: self.frame_queue_ref().block_sender.as_ref().map_or(0, BlockSender::parity_sent),
            recovered: self.block_receiver.as_ref().map_or(0, BlockReceiver::recovered),
        }
    }

    pub(crate) fn frame_queue_ref(&self) -> &FrameQueue {
        self.channel.work()
    }

    pub(crate) fn take_updates(&mut self) -> Vec<ConnectionUpdate> {
        mem::take(&mut self.pending_updates)
    }

    /// Sends a datagram, if it fits into a packet of every path.
    pub(crate) fn send_datagram(&mut self, datagram: &[u8]) -> Result<(), DatagramError> {
        // A path may fall back to the smallest size at any time.
        let max_len = (to_usize(self.base_mss().into()) - DATAGRAM_HEAD).min(to_usize(self.theirs.max_datagram));
        self.frame_queue().push_datagram(datagram, max_len)
    }

    /// Returns the next received datagram.
    pub(crate) fn next_datagram(&mut self) -> Option<Vec<u8>> {
        self.datagrams.pop()
    }

    pub(crate) fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Updates the keys, if that is allowed now. Returns whether it did.
    pub(crate) fn update_keys(&mut self, now: Time) -> bool {
        let timeout = self.timeout();
        let updated = self.is_confirmed && self.keys.update(now, timeout);
        self.note_update(now, KeyCause::Local);
        updated
    }

    /// Returns the maximum time until a packet is acknowledged, over the open paths.
    pub(crate) fn timeout(&self) -> Span {
        let open = self.paths.iter().filter_map(|path| path.subflow);
        open.map(|subflow| self.channel.timeout(subflow)).max().unwrap_or_else(|| self.base_rtt.times(3))
            + Span::from_us(to_i64(self.theirs.ack_delay))
    }

    /// Returns the largest of the open paths' minimum round trips.
    pub(crate) fn min_rtt(&self) -> Span {
        let open = self.paths.iter().filter(|path| path.subflow.is_some());
        let measured = open.filter_map(|path| path.min_rtt);
        measured.max().unwrap_or(self.base_rtt)
    }

    /// Queues the PING of a liveness probe on each open path. Returns the probe timeout of the slowest (RFC 9002
    /// §6.2.1), without backoff.
    pub(crate) fn probe(&mut self) -> Span {
        let open = self.paths.iter_mut().filter(|path| path.subflow.is_some());
        let pto = open.map(|path| {
            path.is_ping_due = true;
            path.pto
        });
        let pto = pto.max().flatten().unwrap_or_else(|| self.base_rtt.times(3));
        pto + Span::from_us(to_i64(self.theirs.ack_delay))
    }

    /// Returns the time at which a challenge sent now is given up.
    fn challenge_expiry(&self, now: Time) -> Time {
        now.saturating_add(self.timeout().times(8).max(CHALLENGE_WAIT))
    }

    /// Returns the time of the next [`Data::on_timer`] call, or of the next output of [`Data::write`].
    pub(crate) fn next_timer(&mut self) -> Time {
        let paths = self.paths.iter().map(Path::next_timer).min().unwrap_or(Time::NEVER);
        let asks = self.block_receiver.as_mut().map_or(Time::NEVER, BlockReceiver::next_timer);
        let gives_up = self.frame_queue().block_sender.as_mut().map_or(Time::NEVER, BlockSender::next_timer);
        self.channel.next_timer().min(self.pacing_at).min(self.release_at).min(paths).min(asks).min(gives_up)
    }

    /// Starts the timer that releases idle receive memory, if there is some.
    fn arm_release_timer(&mut self, now: Time) {
        if !self.release_at.is_set() && self.frame_queue_ref().streams.is_large() {
            self.release_at = now.saturating_add(IDLE_ROOM);
        }
    }

    pub(crate) fn on_timer(&mut self, now: Time) -> Result<(), CloseReason> {
        if self.channel.next_timer() <= now {
            self.channel.on_timer(now);
            for at in 0..self.paths.len() {
                if let Some(subflow) = self.paths[at].subflow {
                    self.detect_black_hole(now, at, subflow);
                    self.report_metrics(now, at, None);
                }
            }
            self.report_events(now);
            self.replace_silent_path(now)?;
        }
        if self.release_at <= now {
            self.frame_queue().streams.release_idle();
            self.release_at = Time::NEVER;
            self.arm_release_timer(now);
        }
        if let Some(block_receiver) = &mut self.block_receiver {
            block_receiver.on_timer(now);
        }
        if let Some(block_sender) = &mut self.frame_queue().block_sender {
            block_sender.on_timer(now);
        }
        self.report_events(now);
        let mut failed = Vec::new();
        for path in &mut self.paths {
            if path.state == State::Open {
                path.search.on_timer(now);
            }
            if path.challenge.take_if(|challenge| challenge.until <= now).is_none() {
                continue;
            }
            if let Some((before, amplification_limit)) = path.before.take() {
                (path.four_tuple, path.amplification_limit) = (before, amplification_limit);
                if let Some(subflow) = path.subflow {
                    self.channel.set_data_sending(subflow, DataSending::Allowed);
                }
                let (path, four_tuple, change) = (path.number, path.four_tuple, PathChange::MovedBack);
                self.observer.report(now, || Event::Path { path, four_tuple, change });
            } else if path.state == State::Opening {
                failed.push(path.number);
            }
        }
        for number in failed {
            self.retire_path(now, number)?;
        }
        let (pending_updates, issued_ids) = (&mut self.pending_updates, &mut self.channel.work_mut().issued_ids);
        let before = self.paths.len();
        self.paths.retain(|path| {
            let stays = !matches!(path.state, State::Retired(until) if until <= now && path.peer_retired);
            if !stays {
                pending_updates.push(ConnectionUpdate::OldId(path.ours));
                issued_ids.remove(&path.number);
            }
            stays
        });
        // Others are permitted only now, so no peer can have more paths than the limit.
        for _ in self.paths.len()..before {
            self.issue_id()?;
        }
        Ok(())
    }
}

fn make_law(shared: &EndpointState, base_rtt: Span, mss: u32) -> Law {
    let Settings { law, line_rate, intra_rtt, .. } = &*shared.settings;
    law(&laws::PathInfo { base_rtt, intra_rtt: *intra_rtt, line_rate: *line_rate, mss: Bytes::new(mss.into()) })
}
