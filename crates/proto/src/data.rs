//! A connection when both ends have the keys of data: its paths, and the channel that sends over them.

mod reroute;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::mem;

use flow::{AckError, Acks, Answering, Channel, ChannelConfig, Codepoint, Pacing, Range, SendState};
use laws::{Law, Notification};
use units::{Bytes, Frac, Span, Time, mix64};

use crate::blocks::{BlockError, Coder, Coding, Conditions, Rebuilding};
use crate::closed::{Code, Fault};
use crate::frame::{Ack, Frame, Frames};
use crate::header::{SHORTEST_PACKET, put_short};
use crate::keys::{DataKeys, MOST_FAILURES, Numbered, Opened, Place, SEAL_LEN, leave_number};
use crate::observe::{self, Event, KeyCause, LostNote, Metrics, PathChange, Watch};
use crate::outbox::{DATAGRAM_HEAD, DatagramError, HEAD_LEN, LostFull, NUMBER_LEN, OVERHEAD, Outbox, Own};
use crate::parameters::Parameters;
use crate::path::{Budget, Challenge, Path, Response, SHORTEST_ANSWER, State, Told};
use crate::search::{SMALLEST, Search};
use crate::settings::{LONGEST_ACK_DELAY, Settings};
use crate::shared::Shared;
use crate::side::Side;
use crate::space::FIRST_RTT;
use crate::streams::{Limits, Streams, Taken};
use crate::via::Via;
use crate::{ID_LEN, Id, TOKEN_LEN};
use reroute::Rerouting;

/// Packets that only acknowledge, after which one asks for an acknowledgement: what was told is forgotten then.
const SILENT: u32 = 32;
/// What leaves at once has so many bytes at most: the longest payload that UDP takes over IPv4.
const LONGEST_BATCH: usize = 65_507;
/// One number in so many is left out, on the average.
const SKIP_EVERY: u64 = 1_024;
/// Bytes that an acknowledgement's ranges may take in a packet that carries something else.
const ACK_ROOM: usize = 300;
/// Bytes of frames in a packet of the smallest size.
const SMALLEST_MSS: u32 = SMALLEST as u32 - OVERHEAD as u32;
/// Frames of the connection itself that wait; blocks keep theirs beyond.
const MOST_OWN: usize = 64;
/// Frames of the connection itself that may wait because of what a peer asks for: two for each path that there may be, twice.
const MOST_WAITING: usize = 256;
/// Datagrams that nobody has read count so many bytes together; the next are dropped.
const MOST_UNREAD: usize = 1 << 20;
/// What each of them counts beside its length.
const DATAGRAM_COST: usize = 64;
/// So many full packets lost in a row show that they are too long.
const MOST_LOST_FULL: u8 = 3;
/// So may as many strikes of a timer in a row.
const MOST_STRIKES: u8 = 2;
/// The last answer of a burst with losses leaves twice, this part of a round trip apart: losses that come together are over by
/// then, and its sender has not timed out.
const ECHOES: u32 = 8;
/// A probe of the packet size is lost after so long at least: hosts are late at times.
const PROBE_WAIT: Span = Span::from_ms(200);
/// Strikes show it only after so long, as hosts are late at times.
const BLACK_HOLE_WAIT: Span = Span::from_ms(100);
/// A timer waits so long at least beyond what the path and the peer's delay take, for the same reason.
const LATENESS: Span = Span::from_ms(2);
/// Timeouts do not grow beyond: a packet in 5 s burdens nobody, and after an outage the transfer soon goes on.
const LONGEST_TIMEOUT: Span = Span::from_s(5);
/// So long at least is a challenge repeated.
const CHALLENGE_WAIT: Span = Span::from_ms(500);
/// A stream's buffer for what is not acknowledged has so many bytes at least.
const LEAST_SEND_BUFFER: u64 = 1 << 20;

/// What a packet is sent with, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) via: Via,
    pub(crate) codepoint: Codepoint,
}

/// Something that the connection's owner must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// The peer sends to this ID from now on.
    NewId(Id),
    /// It does not any more.
    OldId(Id),
    /// Another path may be opened, maybe.
    MorePaths,
    /// A path carries data now.
    PathOpen(u32),
    /// A path is no more.
    PathGone(u32),
    /// The peer, or the network, wants this path to be replaced.
    PathWanted(u32),
    /// The listener knows the caller.
    Done,
}

/// What became of a packet's frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Read,
    /// There was no room for part of it: it is not acknowledged.
    Dropped,
    /// The peer has closed the connection.
    Closed(Fault),
}

/// A packet that was opened, and how it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Time,
    /// The path that it came on.
    pub(crate) path: u32,
    pub(crate) number: u64,
    pub(crate) codepoint: Codepoint,
    pub(crate) via: Via,
    /// How long the datagram is.
    pub(crate) len: usize,
}

/// A packet whose frames are written and that is not sealed yet.
#[derive(Clone, Copy)]
struct Written {
    /// Its path, by place.
    at: usize,
    /// Where it leaves to.
    via: Via,
    /// Where it begins.
    start: usize,
    number: u64,
    /// Whether it counts as in flight.
    in_flight: bool,
}

pub(crate) struct Data {
    rerouting: Rerouting,
    shared: Shared,
    side: Side,
    watch: Watch,
    keys: DataKeys,
    updates: u64,
    pub(crate) channel: Channel<Law, Outbox>,
    /// Rebuilds packets, if this end takes blocks.
    rebuilding: Option<Rebuilding>,
    paths: Vec<Path>,
    /// IDs that the peer gave for paths that are not open.
    offered: BTreeMap<u32, (Id, [u8; TOKEN_LEN])>,
    /// The first path for which neither end has given an ID, and how many paths there may be.
    next_path: u32,
    most_paths: u32,
    theirs: Parameters,
    answering: Answering,
    base_rtt: Span,
    /// Whether both ends know each other: DONE was sent, or came.
    is_confirmed: bool,
    /// Both ends' times count from when the first packet came.
    began: Time,
    /// Where choices come from that a peer must not guess.
    chance: u64,
    /// When a packet may leave that pacing holds back.
    wake: Time,
    /// Datagrams that nobody has read, and what they count.
    datagrams: VecDeque<Vec<u8>>,
    datagram_bytes: usize,
    news: Vec<News>,
    ranges: Vec<Range>,
    times: Vec<(u64, Time)>,
}

impl Data {
    /// Path 0 is open, from where the handshake took place.
    pub(crate) fn new(
        (now, shared, side): (Time, Shared, Side),
        (keys, watch): (DataKeys, Watch),
        theirs: Parameters,
        (own_id, peer_id): (Id, Id),
        (via, rtt): (Via, Option<Span>),
    ) -> Result<Self, Fault> {
        let settings = &shared.settings;
        // No path is shorter than this, and no law can do with none.
        let base_rtt = rtt.unwrap_or(FIRST_RTT).max(Span::from_us(1));
        let answering = Answering {
            every: settings.ack_every.max(1),
            delay: settings.ack_delay.clamp(Span::ZERO, LONGEST_ACK_DELAY),
            echo: base_rtt.over(ECHOES),
            timestamps: theirs.times == 1,
        };
        let reset = theirs.reset.unwrap_or_default();
        let most_packet = settings.max_packet.min(theirs.max_packet as u16);
        let ids = (own_id, (peer_id, reset));
        let mut path = Path::new(0, ids, via, State::Open, answering, most_packet);
        (path.budget, path.subflow) = (Budget::PROVED, Some(0));
        let mut streams = Streams::new(side, settings.limits, LEAST_SEND_BUFFER.min(settings.send_buffer));
        streams.set_send_pool(settings.send_pool);
        streams.set_peer_limits(Limits {
            max_data: theirs.max_data,
            max_stream_data: theirs.max_stream_data,
            max_streams_bidi: theirs.max_streams_bidi,
            max_streams_uni: theirs.max_streams_uni,
        });
        let mut config = ChannelConfig::new(base_rtt, SMALLEST_MSS);
        // A probe that leaves too early costs a packet. So the timeout is the least that RFC 9002 §6.2.1 has, and hosts' lateness.
        config.timing.rto_min = base_rtt + Span::from_us(theirs.ack_delay as i64) + LATENESS;
        config.timing.rto_max = LONGEST_TIMEOUT;
        config.on_ramp = settings.on_ramp;
        config.pacing = Pacing { header: OVERHEAD as u32, burst: settings.burst, ..Pacing::PLAIN };
        let law = make_law(&shared, base_rtt, SMALLEST_MSS);
        let chance = u64::from_be_bytes(shared.random()?);
        let may_code = settings.coding != Coding::Off && theirs.coding_window > 0;
        let mut coder = may_code.then(|| Coder::new(settings.coding, theirs.coding_window));
        let mut rebuilding = (settings.coding_window > 0).then(|| Rebuilding::new(settings.coding_window.into()));
        if let Some(rebuilding) = &mut rebuilding {
            rebuilding.set_timing(Span::from_us(theirs.ack_delay as i64), base_rtt);
        }
        if watch.is_on() {
            if let Some(coder) = &mut coder {
                coder.notes.begin();
            }
            if let Some(rebuilding) = &mut rebuilding {
                rebuilding.notes.begin();
            }
        }
        let most_paths = u32::from(settings.paths.clamp(1, 64)).min(theirs.paths as u32);
        path.skip_at = 1 + chance % SKIP_EVERY;
        let mut outbox = Outbox::new(streams, coder, SMALLEST_MSS);
        if watch.is_on() {
            outbox.lost.begin();
        }
        let this = Self {
            channel: Channel::new(config, law, outbox, now),
            rebuilding,
            side,
            watch,
            updates: keys.updates(),
            keys,
            paths: alloc::vec![path],
            offered: BTreeMap::new(),
            next_path: 1,
            most_paths,
            theirs,
            answering,
            rerouting: Rerouting::default(),
            base_rtt,
            is_confirmed: false,
            began: now,
            chance,
            wake: Time::NEVER,
            datagrams: VecDeque::new(),
            datagram_bytes: 0,
            news: Vec::new(),
            ranges: Vec::new(),
            times: Vec::new(),
            shared,
        };
        this.tell_of_path(now, 0, PathChange::Validated);
        this.tell_metrics(now, 0, None);
        Ok(this)
    }

    /// Tells whoever watches what becomes of a path.
    fn tell_of_path(&self, now: Time, at: usize, change: PathChange) {
        let Path { number, via, .. } = self.paths[at];
        self.watch.tell(now, || Event::Path { path: number, via, change });
    }

    /// Tells whoever watches what a path sends by: its law was told something.
    fn tell_metrics(&self, now: Time, at: usize, latest_rtt: Option<Span>) {
        let path = &self.paths[at];
        let Some(subflow) = path.subflow.filter(|_| self.watch.is_on()) else { return };
        let (permit, in_flight) = self.channel.state(subflow);
        let metrics = Metrics {
            window: permit.window,
            in_flight,
            pacing: permit.pacing,
            smoothed_rtt: self.channel.smoothed_rtt(subflow),
            least_rtt: (path.least_rtt < Span::MAX).then_some(path.least_rtt),
            latest_rtt,
            strikes: self.channel.strikes(subflow),
        };
        self.watch.tell(now, || Event::Metrics { path: path.number, metrics, law: self.channel.law(subflow) });
    }

    /// Tells whoever watches that the longest packet of a path is another one.
    fn tell_of_size(&self, now: Time, at: usize, old: u16) {
        let Path { number: path, search, .. } = &self.paths[at];
        let (path, new, is_done) = (*path, search.size(), search.is_done());
        if old != new {
            self.watch.tell(now, || Event::PacketSize { path, old, new, is_done });
        }
    }

    /// Tells whoever watches what was lost, and what happened to blocks.
    fn tell_notes(&mut self, now: Time) {
        if !self.watch.is_on() {
            return;
        }
        let outbox = self.channel.work_mut();
        let lost = outbox.lost.take();
        let mut blocks = outbox.coder.as_mut().map_or_else(Vec::new, |coder| coder.notes.take());
        blocks.extend(self.rebuilding.iter_mut().flat_map(|rebuilding| rebuilding.notes.take()));
        for LostNote { subflow, number, cause } in lost {
            if let Some(path) = self.paths.iter().find(|path| path.subflow == Some(subflow)) {
                let (space, path) = (observe::Space::Data, path.number);
                self.watch.tell(now, || Event::Lost { space, path, number, cause });
            }
        }
        for event in blocks {
            self.watch.tell(now, || Event::Block(event));
        }
    }

    pub(crate) fn outbox(&mut self) -> &mut Outbox {
        self.channel.work_mut()
    }

    pub(crate) fn outbox_ref(&self) -> &Outbox {
        self.channel.work()
    }

    pub(crate) fn take_news(&mut self) -> Vec<News> {
        mem::take(&mut self.news)
    }

    /// Sends a datagram, if it fits into a packet of every path.
    pub(crate) fn send_datagram(&mut self, datagram: &[u8]) -> Result<(), DatagramError> {
        // A path may fall back to the smallest size at any time.
        let most = (SMALLEST_MSS as usize - DATAGRAM_HEAD).min(self.theirs.max_datagram as usize);
        self.outbox().push_datagram(datagram, most)
    }

    /// The next datagram that came.
    pub(crate) fn next_datagram(&mut self) -> Option<Vec<u8>> {
        let datagram = self.datagrams.pop_front()?;
        self.datagram_bytes -= datagram.len() + DATAGRAM_COST;
        Some(datagram)
    }

    pub(crate) fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Both ends know each other: paths may be opened.
    pub(crate) fn confirm(&mut self) -> Result<(), Fault> {
        if !mem::replace(&mut self.is_confirmed, true) {
            while self.next_path < self.most_paths {
                self.give_id()?;
            }
        }
        Ok(())
    }

    /// Gives the peer an ID for one path more.
    fn give_id(&mut self) -> Result<(), Fault> {
        let (path, id) = (self.next_path, self.shared.new_id()?);
        let token = self.shared.reset_token(id);
        self.next_path += 1;
        self.outbox().given.insert(path, (id, token));
        self.outbox().push(Own::PathId(path));
        self.news.push(News::NewId(id));
        // The peer may have forgotten an old path sooner, and given its ID before.
        if self.offered.contains_key(&path) {
            self.news.push(News::MorePaths);
        }
        Ok(())
    }

    /// Updates the keys, if that may be now. Gives whether it did.
    pub(crate) fn update_keys(&mut self, now: Time) -> bool {
        let timeout = self.timeout();
        let updated = self.is_confirmed && self.keys.update(now, timeout);
        self.note_update(now, KeyCause::Local);
        updated
    }

    /// How long an answer takes at most, over the paths that are open.
    pub(crate) fn timeout(&self) -> Span {
        let open = self.paths.iter().filter_map(|path| path.subflow);
        open.map(|subflow| self.channel.timeout(subflow)).max().unwrap_or_else(|| self.base_rtt.times(3))
            + Span::from_us(self.theirs.ack_delay as i64)
    }

    /// When a challenge is given up that is sent now.
    fn gives_up_at(&self, now: Time) -> Time {
        now.saturating_add(self.timeout().times(8).max(CHALLENGE_WAIT))
    }

    /// The path whose packets the peer sends to this ID. Opens it if it is new.
    fn path_of(&mut self, now: Time, id: Id, via: Via) -> Option<usize> {
        if let Some(at) = self.paths.iter().position(|path| path.ours == id) {
            return Some(at);
        }
        // The caller alone opens paths.
        let number = *self.outbox_ref().given.iter().find(|(_, given)| given.0 == id)?.0;
        if self.side == Side::Caller {
            return None;
        }
        let theirs = self.offered.remove(&number)?;
        let (ours, _) = *self.outbox_ref().given.get(&number)?;
        let (at, until) = (self.add_path(now, number, (ours, theirs), via)?, self.gives_up_at(now));
        self.paths[at].challenge = Some(Challenge::new(via, None, now, until));
        Some(at)
    }

    /// A path that carries nothing yet.
    fn add_path(&mut self, now: Time, number: u32, ids: (Id, (Id, [u8; TOKEN_LEN])), via: Via) -> Option<usize> {
        let law = self.own_law();
        let unused =
            (0..self.channel.subflows()).find(|&slot| self.paths.iter().all(|path| path.subflow != Some(slot)));
        let subflow = if let Some(slot) = unused {
            self.channel.renew_subflow(slot, law, true, now);
            slot
        } else {
            self.channel.add_subflow(law, now)?
        };
        self.channel.set_open(subflow, false);
        *self.outbox().lost_full(subflow) = LostFull::default();
        let mut path = Path::new(number, ids, via, State::Opening, self.answering, self.most_packet());
        path.subflow = Some(subflow);
        path.skip_at = 1 + self.draw() % SKIP_EVERY;
        self.paths.push(path);
        let at = self.paths.len() - 1;
        self.tell_of_path(now, at, PathChange::Probing);
        Some(at)
    }

    /// The law of a path that begins; none if one decides for all.
    fn own_law(&self) -> Option<Law> {
        (!self.shared.settings.one_law).then(|| make_law(&self.shared, self.base_rtt, SMALLEST_MSS))
    }

    /// The longest packet that is tried.
    fn most_packet(&self) -> u16 {
        self.shared.settings.max_packet.min(self.theirs.max_packet as u16)
    }

    fn draw(&mut self) -> u64 {
        self.chance = mix64(self.chance.wrapping_add(1));
        self.chance
    }

    /// A caller opens the next path from another of its ports. Gives the path's number; none if none is free now.
    pub(crate) fn open_path(&mut self, now: Time, socket: u16) -> Option<u32> {
        let used = self.paths.iter().filter(|path| path.is_used()).count() as u32;
        let number = *self.offered.keys().find(|number| self.outbox_ref().given.contains_key(number))?;
        if self.side == Side::Listener || used >= self.most_paths {
            return None;
        }
        let remote = self.paths.iter().find(|path| path.is_used())?.via.remote;
        let (theirs, (ours, _)) = (self.offered.remove(&number)?, *self.outbox_ref().given.get(&number)?);
        let via = Via { socket, remote };
        let until = self.gives_up_at(now);
        let at = self.add_path(now, number, (ours, theirs), via)?;
        let path = &mut self.paths[at];
        (path.budget, path.challenge) = (Budget::PROVED, Some(Challenge::new(via, None, now, until)));
        Some(number)
    }

    /// Takes a path out of use, and tells the peer.
    pub(crate) fn retire_path(&mut self, now: Time, number: u32) -> Result<(), Fault> {
        let until = now.saturating_add(self.timeout().times(3));
        let others = self.paths.iter().any(|path| path.number != number && path.is_used());
        let Some(path) = self.paths.iter_mut().find(|path| path.number == number && path.is_used()) else {
            return Ok(());
        };
        if !others {
            return Err(Fault::new(Code::NONE, "the last path was retired"));
        }
        let was_open = path.state == State::Open;
        (path.state, path.challenge) = (State::Retired(until), None);
        if let Some(subflow) = path.subflow.take() {
            if was_open && !self.shared.settings.one_law {
                let law = (self.channel.law(subflow).clone(), self.channel.delivered(subflow));
                self.rerouting.keep(law, self.most_paths);
            }
            self.channel.close_subflow(subflow);
        }
        let via = path.via;
        self.watch.tell(now, || Event::Path { path: number, via, change: PathChange::Abandoned });
        self.outbox().push(Own::PathRetire { path: number, reason: 0 });
        self.news.push(News::PathGone(number));
        Ok(())
    }

    /// Opens a packet with a short header. Gives the number of its path, and where its frames are; none if it does not open.
    pub(crate) fn open(
        &mut self,
        now: Time,
        id: Id,
        via: Via,
        packet: &mut [u8],
    ) -> Result<Option<(u32, Opened)>, Fault> {
        let Some(at) = self.path_of(now, id, via) else { return Ok(None) };
        let timeout = self.timeout();
        let path = &mut self.paths[at];
        let from = (path.number, path.arrivals.newest(), &mut path.seen);
        let opened = self.keys.open((now, timeout), packet, 1 + ID_LEN, from).ok();
        if self.keys.failures >= MOST_FAILURES {
            return Err(Fault::new(Code::KEYS, "too many packets that do not open"));
        }
        self.note_update(now, KeyCause::Remote);
        let Some(opened) = opened else {
            // A path that nobody has proved to want is not kept.
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

    /// If the key has changed, the peer may have changed it: packets from now on are under the new one.
    fn note_update(&mut self, now: Time, cause: KeyCause) {
        if self.updates != self.keys.updates() {
            self.updates = self.keys.updates();
            let (space, updates) = (observe::Space::Data, self.updates);
            self.watch.tell(now, || Event::Keys { space, updates, cause });
            self.paths.iter_mut().for_each(|path| path.phase_from = path.next);
        }
    }

    fn path_mut(&mut self, number: u32) -> Option<&mut Path> {
        self.paths.iter_mut().find(|path| path.number == number)
    }

    /// Reads the frames of a packet that opened; each was checked by itself. AUTH is passed over: it was looked at before.
    pub(crate) fn read(&mut self, arrival: Arrival, payload: &[u8]) -> Result<Outcome, Fault> {
        let Arrival { now, path, number, codepoint, via, len } = arrival;
        if self.came(&arrival).is_none() {
            return Ok(Outcome::Dropped);
        }
        let mut wants = false;
        let mut frames = Frames::new(payload);
        let (mut source, mut challenge) = (None, None);
        while let Some(frame) = frames.next() {
            let frame = frame?;
            wants |= frame.counts();
            match frame {
                Frame::Source { block, shape, place } if source.is_none() => {
                    source = Some((block, shape, place, frames.rest()));
                }
                Frame::Stream(_) | Frame::Padding(_) if source.is_some() => {
                    if self.read_frame(now, &frame)? == Taken::Dropped {
                        return Ok(Outcome::Dropped);
                    }
                }
                _ if source.is_some() => return Err(no_symbol()),
                Frame::Close { code, reason, .. } => return Ok(Outcome::Closed(Fault::new(Code(code), reason))),
                Frame::PathResponse(value) => self.on_response(now, path, via, value),
                Frame::PathChallenge(value) => challenge = Some(value),
                frame => {
                    if self.read_frame(now, &frame)? == Taken::Dropped {
                        return Ok(Outcome::Dropped);
                    }
                }
            }
        }
        if let Some((block, shape, place, symbol)) = source {
            let rebuilding = self.rebuilding.as_mut().ok_or_else(no_blocks)?;
            rebuilding.on_source(now, block, shape, place, symbol)?;
            self.read_rebuilt(block)?;
        }
        let Some(path) = self.path_mut(path) else { return Ok(Outcome::Dropped) };
        if let Some(value) = challenge {
            path.respond(value, via, len);
        }
        let is_newest = path.arrivals.newest().is_none_or(|newest| newest < number);
        path.arrivals.on_packet(now, number, codepoint, wants);
        if is_newest && path.via != via {
            self.on_moved(&arrival);
        }
        self.tell_notes(now);
        Ok(Outcome::Read)
    }

    /// A packet of a path opened. None if it came from where it must not.
    fn came(&mut self, arrival: &Arrival) -> Option<()> {
        let (side, &Arrival { path, via, len, .. }) = (self.side, arrival);
        let path = self.path_mut(path)?;
        if side == Side::Caller && path.via.remote != via.remote {
            return None;
        }
        if path.via == via {
            path.budget.came(len);
        } else if let Some((before, budget)) = &mut path.before
            && *before == via
        {
            budget.came(len);
        }
        Some(())
    }

    fn read_frame(&mut self, now: Time, frame: &Frame) -> Result<Taken, Fault> {
        let streams = &mut self.channel.work_mut().streams;
        match *frame {
            Frame::Ack(ref ack) => self.on_ack(now, ack)?,
            Frame::Done if self.side == Side::Caller => {
                self.news.push(News::Done);
                self.confirm()?;
            }
            Frame::PathId { path, id, token } => self.on_path_id(path, id, token)?,
            Frame::PathRetire { path, reason } => self.on_path_retire(now, path, reason)?,
            Frame::MaxData(bytes) => streams.on_max_data(bytes),
            Frame::MaxStreamData { stream, bytes } => streams.on_max_stream_data(stream, bytes)?,
            Frame::MaxStreams { one_way, count } => streams.on_max_streams(one_way, count),
            Frame::Blocked { stream, .. } => streams.on_blocked(stream)?,
            Frame::ResetStream { stream, code, total } => streams.on_reset(stream, code, total)?,
            Frame::StopSending { stream, code } => streams.on_stop(stream, code)?,
            Frame::Stream(ref stream) => return Ok(streams.on_stream(stream)?),
            Frame::Datagram(data) => self.on_datagram(data)?,
            Frame::Parity { block, shape, place, symbol } => {
                self.rebuilding.as_mut().ok_or_else(no_blocks)?.on_parity(now, block, shape, place, symbol)?;
                self.read_rebuilt(block)?;
            }
            Frame::BlockNack { block, missing } => self.coder(block)?.on_nack(block, missing, now)?,
            Frame::BlockWhole { first, count } => {
                self.coder(first)?.on_whole(first, count)?;
                self.outbox().settle_blocks();
            }
            Frame::Auth { .. } if self.side == Side::Listener => {}
            Frame::Crypto { .. } | Frame::Done | Frame::Auth { .. } | Frame::Source { .. } => {
                return Err(Fault::new(Code::FRAME, "a frame that this end may not get, or not in such a packet"));
            }
            // Of the latter three it matters where they come from: they are read with their packet.
            Frame::Padding(_)
            | Frame::Ping
            | Frame::Close { .. }
            | Frame::PathChallenge(_)
            | Frame::PathResponse(_) => {}
        }
        Ok(Taken::Yes)
    }

    /// The blocks of this end, of which a frame speaks.
    fn coder(&mut self, block: u64) -> Result<&mut Coder, Fault> {
        Ok(self.outbox().coder.as_mut().ok_or(BlockError::Unsent { block, sent: 0 })?)
    }

    /// Reads what was rebuilt of a block, as if its packets had come.
    fn read_rebuilt(&mut self, block: u64) -> Result<(), Fault> {
        let Some(rebuilding) = &mut self.rebuilding else { return Ok(()) };
        let outbox = self.channel.work_mut();
        let mut all = true;
        while let Some(symbol) = rebuilding.next_rebuilt() {
            for frame in Frames::new(symbol).take_while(|_| !symbol.is_empty()) {
                match frame? {
                    Frame::Stream(stream) => all &= outbox.streams.on_stream(&stream)? == Taken::Yes,
                    Frame::Padding(_) => {}
                    _ => return Err(no_symbol()),
                }
            }
        }
        if !all {
            // Its sender hears nothing of it, and sends it again.
            rebuilding.is_not_read(block);
        }
        Ok(())
    }

    /// What blocks have to say is to be sent, unless much waits already: what they have not said they keep, in bounded memory.
    fn speak_of_blocks(&mut self) {
        let outbox = self.channel.work_mut();
        while let Some(rebuilding) = &mut self.rebuilding
            && outbox.waiting() < MOST_OWN
        {
            if let Some((first, count)) = rebuilding.next_whole() {
                outbox.say_whole(first, count);
            } else if let Some((block, missing)) = rebuilding.next_nack() {
                outbox.push(Own::Nack { block, missing });
            } else {
                return;
            }
        }
    }

    fn on_datagram(&mut self, data: &[u8]) -> Result<(), Fault> {
        if data.len() > self.shared.settings.max_datagram.into() {
            return Err(Fault::new(Code::FLOW, "a datagram that is longer than was allowed"));
        }
        let cost = data.len() + DATAGRAM_COST;
        if self.datagram_bytes + cost <= MOST_UNREAD {
            self.datagram_bytes += cost;
            self.datagrams.push_back(data.to_vec());
        }
        Ok(())
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) -> Result<(), Fault> {
        let Some(at) = self.paths.iter().position(|path| path.number == ack.path) else {
            // A path that is forgotten, or that never was.
            let known = ack.path < self.next_path && !self.offered.contains_key(&ack.path);
            return if known {
                Ok(())
            } else {
                Err(Fault::new(Code::ACK, "an acknowledgement for a path that was never open"))
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
        let mut acks = Acks { ranges: &self.ranges, ecn, delay: ack.delay, received: &self.times };
        let acked = match self.channel.acked(now, subflow, &acks) {
            Err(AckError::EcnRunsBack { .. } | AckError::EcnTooMany { .. }) => {
                path.ecn = false;
                acks.ecn = None;
                self.channel.acked(now, subflow, &acks)?
            }
            acked => acked?,
        };
        path.ecn &= self.channel.ecn_works(subflow);
        if acked.packets > 0 {
            path.acked_at = now;
        }
        path.acked += acked.bytes;
        path.marked += acked.marked;
        if ack.newest.last >= path.phase_from {
            self.keys.acknowledged(self.updates);
        }
        let named = |number| self.ranges.iter().any(|range| range.contains(number));
        if let Some(Told { newest, .. }) = path.told.take_if(|told| named(told.number)) {
            path.arrivals.forget_below(newest);
        }
        let old = path.search.size();
        if path.search.acked(now, named) {
            let mss = u32::from(path.search.size()) - OVERHEAD as u32;
            self.channel.set_mss(subflow, mss);
            self.tell_of_size(now, at, old);
        }
        let path = &mut self.paths[at];
        if let Some(rtt) = acked.rtt.filter(|&rtt| rtt < path.least_rtt && rtt > Span::ZERO) {
            path.least_rtt = rtt;
            let is_least = rtt < self.base_rtt;
            if is_least {
                self.base_rtt = rtt;
            }
            if is_least || !self.shared.settings.one_law {
                self.channel.notify(subflow, &Notification::BaseRtt(rtt));
            }
        }
        self.look_for_black_hole(now, at, subflow);
        self.tell_blocks(subflow);
        self.size_buffers();
        if acked.packets > 0 {
            self.tell_notes(now);
            self.tell_metrics(now, at, acked.rtt);
        }
        Ok(())
    }

    /// A stream's buffer holds two windows: what is in flight, and what may leave when that is acknowledged. More would only
    /// fill the processor's caches.
    fn size_buffers(&mut self) {
        let most = self.shared.settings.send_buffer;
        let wanted = self.channel.permit().window.get().saturating_mul(2);
        self.outbox().streams.set_send_buffer(wanted.clamp(LEAST_SEND_BUFFER.min(most), most));
    }

    /// Tells both ends of blocks what the network does.
    fn tell_blocks(&mut self, subflow: u8) {
        let (stats, rtt) = (*self.channel.stats(), self.channel.smoothed_rtt(subflow));
        let (ack_delay, bdp) = (Span::from_us(self.theirs.ack_delay as i64), self.channel.permit().window);
        let slowest = self.paths.iter().filter_map(|path| path.subflow).map(|it| self.channel.smoothed_rtt(it)).max();
        let slowest = slowest.unwrap_or(rtt);
        if let Some(rebuilding) = &mut self.rebuilding {
            rebuilding.set_timing(ack_delay, slowest);
        }
        let outbox = self.channel.work_mut();
        if let Some(coder) = &mut outbox.coder {
            coder.set_timing(slowest.times(2) + ack_delay.times(2) + LATENESS, slowest);
            let lost = stats.lost.saturating_sub(stats.spurious).min(stats.packets_sent);
            outbox.conditions = Conditions { loss: Frac::ratio(lost, stats.packets_sent.max(1)), bdp: bdp.get() };
        }
    }

    /// Where only the long packets of a path are lost, or nothing comes any more, they may be too long for it now (RFC 8899
    /// §4.3).
    fn look_for_black_hole(&mut self, now: Time, at: usize, subflow: u8) {
        let path = &mut self.paths[at];
        let &mut LostFull { in_a_row, small_came, .. } = self.channel.work_mut().lost_full(subflow);
        let only_small_come = in_a_row >= MOST_LOST_FULL && small_came;
        let nothing_comes =
            self.channel.strikes(subflow) >= MOST_STRIKES && now.saturating_since(path.acked_at) >= BLACK_HOLE_WAIT;
        if (only_small_come || nothing_comes) && path.search.size() > SMALLEST {
            let old = path.search.size();
            path.search.fall(now);
            *self.channel.work_mut().lost_full(subflow) = LostFull::default();
            self.channel.set_mss(subflow, SMALLEST_MSS);
            self.tell_of_size(now, at, old);
        }
    }

    fn on_path_id(&mut self, path: u32, id: Id, token: [u8; TOKEN_LEN]) -> Result<(), Fault> {
        let contradicts = self.paths.iter().any(|open| open.number == path && open.theirs.0 != id)
            || self.offered.get(&path).is_some_and(|offered| offered.0 != id);
        if contradicts {
            return Err(Fault::new(Code::FRAME, "a path's ID has changed"));
        }
        if path == 0 || self.paths.iter().any(|open| open.number == path) {
            return Ok(());
        }
        // Paths that went are behind those that are offered: so many are not retired at a time.
        let gone = self.paths.iter().filter(|path| !path.is_used()).count() as u32;
        if path >= self.next_path.max(self.most_paths) + self.most_paths + gone {
            return Err(Fault::new(Code::FLOW, "more paths than were allowed"));
        }
        // An ID that comes again for a path that is over says nothing.
        if self.outbox_ref().given.contains_key(&path) || path >= self.next_path {
            self.offered.insert(path, (id, token));
            self.news.push(News::MorePaths);
        }
        if self.offered.len() > 2 * self.most_paths as usize {
            return Err(Fault::new(Code::FLOW, "more paths than were allowed"));
        }
        Ok(())
    }

    fn on_path_retire(&mut self, now: Time, path: u32, reason: u64) -> Result<(), Fault> {
        if path >= self.next_path {
            return Err(Fault::new(Code::FRAME, "a path is retired that there never was"));
        }
        if reason == 1 && self.side == Side::Caller {
            self.news.push(News::PathWanted(path));
            return Ok(());
        }
        self.retire_path(now, path)?;
        if let Some(path) = self.path_mut(path) {
            path.peer_let_go = true;
            return Ok(());
        }
        // It was never open here: it is answered all the same, and there may be another one.
        if let Some((id, _)) = self.outbox().given.remove(&path) {
            self.offered.remove(&path);
            self.outbox().push(Own::PathRetire { path, reason: 0 });
            self.news.push(News::OldId(id));
            self.give_id()?;
            // Each costs two frames, so a peer that retires paths faster than it hears of new ones is not served.
            if self.outbox().waiting() > MOST_WAITING {
                return Err(Fault::new(Code::FLOW, "more paths than were allowed"));
            }
        }
        Ok(())
    }

    /// The peer has answered a challenge.
    fn on_response(&mut self, now: Time, number: u32, via: Via, value: [u8; 8]) {
        // Who is the only one under a law has it for itself.
        let alone = self.paths.iter().filter(|path| path.is_used()).count() == 1;
        let law = if alone { Some(make_law(&self.shared, self.base_rtt, SMALLEST_MSS)) } else { self.own_law() };
        let most = self.most_packet();
        let settles_at = self.gives_up_at(now);
        let Some(at) = self.paths.iter().position(|path| path.number == number) else { return };
        let path = &mut self.paths[at];
        let Some(subflow) = path.subflow else { return };
        let old = path.search.size();
        let Some(challenge) = path.challenge.as_ref().filter(|challenge| challenge.values.contains(&value)) else {
            return;
        };
        let mut change = PathChange::Validated;
        match path.before {
            Some((before, budget)) if before == via => {
                // The peer is still where it was: somebody forwarded its packets.
                (path.via, path.budget) = (before, budget);
                change = PathChange::MovedBack;
            }
            // From elsewhere: that proves nothing.
            _ if challenge.via != via || path.via != via => return,
            None => {
                path.budget.prove();
                if path.state == State::Opening {
                    (path.state, path.settles_at) = (State::Open, settles_at);
                    self.news.push(News::PathOpen(number));
                    if let Some(law) = self.rerouting.take() {
                        self.channel.adopt(subflow, law, now);
                        self.channel.set_mss(subflow, SMALLEST_MSS);
                    }
                }
            }
            Some(_) => {
                // The way to the new address is another one.
                path.budget.prove();
                (path.search, path.least_rtt) = (Search::new(most), Span::MAX);
                self.channel.renew_subflow(subflow, law, false, now);
            }
        }
        (path.before, path.challenge) = (None, None);
        self.channel.set_open(subflow, true);
        self.tell_of_path(now, at, change);
        self.tell_of_size(now, at, old);
        self.tell_metrics(now, at, None);
    }

    /// A packet came from another address than those before, with the highest number of its path.
    fn on_moved(&mut self, arrival: &Arrival) {
        let &Arrival { now, path, via, len, .. } = arrival;
        let until = self.gives_up_at(now);
        if self.side == Side::Caller || !self.is_confirmed {
            return;
        }
        let Some(at) = self.paths.iter().position(|it| it.number == path) else { return };
        let path = &mut self.paths[at];
        let Some(subflow) = path.subflow else { return };
        let present = (path.via, path.budget);
        match path.before.take() {
            Some((before, budget)) if before == via => {
                (path.via, path.budget, path.challenge) = (before, budget, None);
                self.channel.set_open(subflow, true);
                self.tell_of_path(now, at, PathChange::MovedBack);
                return;
            }
            // The address that is proved is remembered, not one that came between.
            before => path.before = before.or_else(|| (path.state == State::Open).then_some(present)),
        }
        (path.via, path.budget) = (via, Budget::default());
        path.budget.came(len);
        path.challenge = Some(Challenge::new(via, path.before.map(|(via, _)| via), now, until));
        self.channel.set_open(subflow, false);
        self.tell_of_path(now, at, PathChange::Moved);
    }

    /// When [`Data::on_timer`] wants to be called, or [`Data::write`] has something.
    pub(crate) fn next_timer(&mut self) -> Time {
        let paths = self.paths.iter().map(Path::next_timer).min().unwrap_or(Time::NEVER);
        let asks = self.rebuilding.as_mut().map_or(Time::NEVER, Rebuilding::next_timer);
        let gives_up = self.outbox().coder.as_mut().map_or(Time::NEVER, Coder::next_timer);
        self.channel.next_timer().min(self.wake).min(paths).min(asks).min(gives_up)
    }

    pub(crate) fn on_timer(&mut self, now: Time) -> Result<(), Fault> {
        if self.channel.next_timer() <= now {
            self.channel.on_timer(now);
            for at in 0..self.paths.len() {
                if let Some(subflow) = self.paths[at].subflow {
                    self.look_for_black_hole(now, at, subflow);
                    self.tell_metrics(now, at, None);
                }
            }
            self.tell_notes(now);
            self.leave_silent(now)?;
        }
        if let Some(rebuilding) = &mut self.rebuilding {
            rebuilding.on_timer(now);
        }
        if let Some(coder) = &mut self.outbox().coder {
            coder.on_timer(now);
        }
        self.tell_notes(now);
        let mut failed = Vec::new();
        for path in &mut self.paths {
            if path.state == State::Open {
                path.search.on_timer(now);
            }
            if path.challenge.take_if(|challenge| challenge.until <= now).is_none() {
                continue;
            }
            if let Some((before, budget)) = path.before.take() {
                (path.via, path.budget) = (before, budget);
                path.subflow.into_iter().for_each(|subflow| self.channel.set_open(subflow, true));
                let (path, via, change) = (path.number, path.via, PathChange::MovedBack);
                self.watch.tell(now, || Event::Path { path, via, change });
            } else if path.state == State::Opening {
                failed.push(path.number);
            }
        }
        for number in failed {
            self.retire_path(now, number)?;
        }
        let (news, given) = (&mut self.news, &mut self.channel.work_mut().given);
        let before = self.paths.len();
        self.paths.retain(|path| {
            let stays = !matches!(path.state, State::Retired(until) if until <= now && path.peer_let_go);
            if !stays {
                news.push(News::OldId(path.ours));
                given.remove(&path.number);
            }
            stays
        });
        // Only now there may be others, so no peer can have more of them than there may be at a time.
        for _ in self.paths.len()..before {
            self.give_id()?;
        }
        Ok(())
    }

    /// Appends packets of one size, the last one may be shorter, for one datagram each. Gives where they go and that size.
    pub(crate) fn write(&mut self, now: Time, most: usize, out: &mut Vec<u8>) -> Result<Option<(Sent, usize)>, Fault> {
        if self.keys.wants_update() {
            self.update_keys(now);
        }
        self.speak_of_blocks();
        self.wake = Time::NEVER;
        if self.keys.is_used_up() {
            return Ok(None);
        }
        for at in 0..self.paths.len() {
            if let Some(sent) = self.write_challenge(now, at, out)? {
                return Ok(Some(sent));
            }
        }
        if let Some(sent) = self.write_probe(now, out) {
            return Ok(Some(sent));
        }
        match self.channel.choose(now) {
            Ok(subflow) => {
                if let Some(sent) = self.write_batch(now, subflow, most, out) {
                    return Ok(Some(sent));
                }
            }
            Err(SendState::At(time)) => self.wake = time,
            Err(_) => {}
        }
        Ok(self.write_answer(now, out))
    }

    /// Appends a packet's header. Gives where it begins.
    fn begin(&self, at: usize, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        put_short(out, self.paths[at].theirs.0, self.keys.phase(), NUMBER_LEN);
        leave_number(out, NUMBER_LEN);
        start
    }

    /// Seals the packet at the end of `out`. Gives its length.
    fn finish(&mut self, now: Time, out: &mut Vec<u8>, packet: Written) -> usize {
        let Written { at, via, start, number, in_flight } = packet;
        let shortest = start + SHORTEST_PACKET - SEAL_LEN;
        if out.len() < shortest {
            out.resize(shortest, 0);
        }
        let path = &mut self.paths[at];
        self.watch.tell(now, || {
            let (len, payload) = (out.len() + SEAL_LEN - start, &out[start + HEAD_LEN..]);
            let (space, path) = (observe::Space::Data, path.number);
            Event::Sent(observe::Packet { space, path, number, len, payload, in_flight })
        });
        let place = Place { start, number_at: start + HEAD_LEN - NUMBER_LEN, number_len: NUMBER_LEN };
        self.keys.seal(out, place, Numbered { path: path.number, number });
        path.next = number + 1;
        let len = out.len() - start;
        if path.via == via {
            path.budget.left(len);
        }
        len
    }

    /// Appends a packet that the work knows nothing of.
    fn write_apart(
        &mut self,
        now: Time,
        (at, via): (usize, Via),
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Option<usize> {
        let number = self.channel.number_apart(self.paths[at].subflow?, now)?;
        let start = self.begin(at, out);
        fill(out);
        Some(self.finish(now, out, Written { at, via, start, number, in_flight: false }))
    }

    /// Appends a packet with a challenge, or a response, if one is due on this path.
    fn write_challenge(&mut self, now: Time, at: usize, out: &mut Vec<u8>) -> Result<Option<(Sent, usize)>, Fault> {
        let (wait, path) = (self.timeout(), &mut self.paths[at]);
        if !path.is_used() {
            return Ok(None);
        }
        let mut frames = Vec::new();
        let (via, most) = if let Some(Response { value, via, most }) = path.next_response() {
            Frame::PathResponse(value).put(&mut frames);
            (via, most)
        } else if let Some(challenge) = path.challenge.as_mut().filter(|challenge| challenge.due() <= now) {
            if let (Some(value), Some(before)) = (challenge.owed.take(), challenge.before) {
                // There it was proved to be.
                Frame::PathChallenge(value).put(&mut frames);
                (before, usize::MAX)
            } else {
                let value = self.shared.random()?;
                challenge.left(value, now, wait);
                Frame::PathChallenge(value).put(&mut frames);
                (challenge.via, usize::MAX)
            }
        } else {
            return Ok(None);
        };
        let room = if via == path.via { path.budget.room().min(SMALLEST.into()) as usize } else { SMALLEST.into() };
        let len = room.min(most);
        if len < SHORTEST_PACKET {
            return Ok(None);
        }
        let sent = self.write_apart(now, (at, via), out, |out| {
            let end = out.len() + len - OVERHEAD;
            out.append(&mut frames);
            out.resize(end, 0);
        });
        Ok(sent.map(|len| (Sent { via, codepoint: Codepoint::NotEct }, len)))
    }

    /// Appends a packet that shows whether a path takes longer ones, if one is due.
    fn write_probe(&mut self, now: Time, out: &mut Vec<u8>) -> Option<(Sent, usize)> {
        let due = |path: &&Path| path.state == State::Open && path.budget.is_proved() && path.search.due().is_some();
        let at = self.paths.iter().position(|path| due(&path)).filter(|_| self.is_confirmed)?;
        let (size, via) = (usize::from(self.paths[at].search.due()?), self.paths[at].via);
        let len = self.write_apart(now, (at, via), out, |out| {
            let end = out.len() + size - OVERHEAD;
            Frame::Ping.put(out);
            out.resize(end, 0);
        })?;
        let wait = self.timeout().times(2).max(PROBE_WAIT);
        let path = &mut self.paths[at];
        path.search.left(path.next - 1, now, wait);
        Some((Sent { via, codepoint: Codepoint::NotEct }, len))
    }

    /// Appends packets of the work on one subflow.
    fn write_batch(&mut self, now: Time, subflow: u8, most: usize, out: &mut Vec<u8>) -> Option<(Sent, usize)> {
        let at = self.paths.iter().position(|path| path.subflow == Some(subflow) && path.budget.is_proved())?;
        let (full, via) = (usize::from(self.paths[at].search.size()), self.paths[at].via);
        let most = most.min(LONGEST_BATCH / full).max(1);
        let (mut segment, mut count) = (0, 0);
        let sizes = self.paths.iter().filter(|path| path.state == State::Open).map(|path| path.search.size());
        let least = u32::from(sizes.min().unwrap_or(SMALLEST)) - OVERHEAD as u32;
        let outbox = self.channel.work_mut();
        (outbox.least_mss, outbox.now) = (least, now);
        while count < most {
            self.leave_out_numbers(now, at, subflow);
            let start = self.begin(at, out);
            let frames_at = out.len();
            let is_due = self.paths[at].arrivals.answer_at().is_set();
            let has_room = count == 0 && !self.outbox().needs_whole_packet();
            let newest = if is_due && has_room { self.put_answer(now, at, out, ACK_ROOM) } else { None };
            let work = self.channel.work_mut();
            work.frames_at = frames_at;
            mem::swap(&mut work.packet, out);
            let departed = self.channel.send_on(now, subflow);
            mem::swap(&mut self.channel.work_mut().packet, out);
            let Some(departed) = departed else {
                out.truncate(start);
                break;
            };
            self.note_told(at, departed.number, newest);
            self.paths[at].silent = 0;
            let len = self.finish(now, out, Written { at, via, start, number: departed.number, in_flight: true });
            count += 1;
            if count == 1 {
                segment = len;
            }
            if len < full {
                break;
            }
        }
        self.tell_notes(now);
        let path = &self.paths[at];
        let codepoint = if path.ecn { Codepoint::Ect0 } else { Codepoint::NotEct };
        (count > 0).then_some((Sent { via, codepoint }, segment))
    }

    /// A number is left out now and then: whoever acknowledges it acknowledges what did not come.
    fn leave_out_numbers(&mut self, now: Time, at: usize, subflow: u8) {
        if self.paths[at].next >= self.paths[at].skip_at {
            let step = 1 + self.draw() % (2 * SKIP_EVERY);
            if let Some(number) = self.channel.skip_number(subflow, now) {
                let path = &mut self.paths[at];
                (path.next, path.skip_at) = (number + 1, number + 1 + step);
            }
        }
    }

    /// Appends an acknowledgement of what has come on a path, if anything has, in about `room` bytes. Gives the highest number that
    /// it names.
    fn put_answer(&mut self, now: Time, at: usize, out: &mut Vec<u8>, room: usize) -> Option<u64> {
        let (began, path) = (self.began, &mut self.paths[at]);
        if path.arrivals.is_echo() {
            self.channel.work_mut().say_wholes_again();
        }
        let acks = path.arrivals.answer(now)?;
        // A range takes 16 bytes at most.
        let ranges = &acks.ranges[..acks.ranges.len().min(room / 16)];
        let newest = ranges.first()?.last;
        self.times.clear();
        self.times.extend(acks.received.iter().filter(|(number, _)| *number <= newest));
        self.times.sort_unstable_by_key(|&(number, _)| core::cmp::Reverse(number));
        self.times.iter_mut().for_each(|(_, time)| *time = Time::from_ps(time.saturating_since(began).unsigned_ps()));
        Ack::put(out, (path.number, acks.delay), ranges, acks.ecn.unwrap_or_default(), &self.times);
        path.arrivals.answered();
        Some(newest)
    }

    /// A packet with an acknowledgement left.
    fn note_told(&mut self, at: usize, number: u64, newest: Option<u64>) {
        let told = &mut self.paths[at].told;
        if let Some(newest) = newest
            && told.is_none_or(|told| told.number + 256 < number)
        {
            *told = Some(Told { number, newest });
        }
    }

    /// Appends a packet that only acknowledges, if one is due.
    fn write_answer(&mut self, now: Time, out: &mut Vec<u8>) -> Option<(Sent, usize)> {
        let due = |path: &Path| path.can_answer() && path.arrivals.answer_at() <= now;
        let at = self.paths.iter().position(due)?;
        let number = self.channel.number_apart(self.paths[at].subflow?, now)?;
        let (start, via) = (self.begin(at, out), self.paths[at].via);
        // As much as the address may get, less what a packet has besides.
        let room = self.paths[at].budget.room().min(u64::from(SMALLEST)) as usize;
        self.put_answer(now, at, out, room - SHORTEST_ANSWER);
        let len = self.finish(now, out, Written { at, via, start, number, in_flight: false });
        let path = &mut self.paths[at];
        path.silent += 1;
        if path.silent >= SILENT {
            path.silent = 0;
            self.outbox().push(Own::Ping);
        }
        Some((Sent { via, codepoint: Codepoint::NotEct }, len))
    }

    /// Appends a packet with this CLOSE.
    pub(crate) fn write_close(&mut self, now: Time, out: &mut Vec<u8>, fault: &Fault) -> Option<(Sent, usize)> {
        let at = self.paths.iter().position(Path::is_used)?;
        let number = self.channel.number_apart(self.paths[at].subflow?, now)?;
        let (start, via) = (self.begin(at, out), self.paths[at].via);
        // What has come before is acknowledged, once more if need be: whatever said so may come after this, and then nobody reads it.
        for path in 0..self.paths.len() {
            if out.len() - start < usize::from(SMALLEST) / 2 {
                self.put_answer(now, path, out, ACK_ROOM);
            }
        }
        Frame::Close { code: fault.code.0, kind: 0, reason: &fault.reason }.put(out);
        let len = self.finish(now, out, Written { at, via, start, number, in_flight: false });
        Some((Sent { via, codepoint: Codepoint::NotEct }, len))
    }
}

fn no_symbol() -> Fault {
    Fault::new(Code::FRAME, "a symbol holds other frames than STREAM and PADDING")
}

fn no_blocks() -> Fault {
    Fault::new(Code::FLOW, "a block, and none were allowed")
}

fn make_law(shared: &Shared, base_rtt: Span, mss: u32) -> Law {
    let Settings { law, line_rate, intra_rtt, .. } = &*shared.settings;
    law(&laws::Path { base_rtt, intra_rtt: *intra_rtt, line_rate: *line_rate, mss: Bytes::new(mss.into()) })
}
