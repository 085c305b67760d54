//! Life cycle of paths: opening, validation, migration and retirement (`docs/src/transport.md`, "Paths").

use core::mem;

use flow::{DataSending, MovedLaw, PacketNumbers};
use laws::Law;
use units::{Span, Time, mix64};

use super::{ConnectionUpdate, Data, OpenedPacket, SKIP_EVERY, make_law, mss_of};
use crate::black_hole::BlackHoleDetector;
use crate::closed::{CloseCode, CloseReason};
use crate::dplpmtud::Dplpmtud;
use crate::four_tuple::FourTuple;
use crate::frame_queue::ConnectionFrame;
use crate::narrow::{to_u16, to_u32};
use crate::observe::{Event, PathChange};
use crate::path::{AmplificationLimit, Challenge, IssuedId, Path, PathIds, State};
use crate::side::Side;
use crate::{ConnectionId, TOKEN_LEN};

/// Maximum number of waiting connection-level frames that a peer's requests cause: two per possible path, twice.
const MAX_WAITING: usize = 256;
/// Consecutive expirations of a timer that may show that packets are too long.
const BLACK_HOLE_PTO_COUNT: u8 = 2;
/// Minimum time since the first of these expirations: busy hosts are silent for hundreds of milliseconds, which is more
/// common than a sudden decrease of a path's maximum packet size.
const BLACK_HOLE_WAIT: Span = Span::from_s(1);

impl Data {
    pub(super) fn path_mut(&mut self, number: u32) -> Option<&mut Path> {
        self.paths.iter_mut().find(|path| path.number == number)
    }

    /// Reports a change of a path to the observer.
    pub(super) fn report_path(&self, now: Time, at: usize, change: PathChange) {
        let Path { number, four_tuple, .. } = self.paths[at];
        self.observer.report(now, || Event::Path { path: number, four_tuple, change });
    }

    /// Reports a new maximum packet size of a path to the observer.
    pub(super) fn report_size(&self, now: Time, at: usize, old: u16) {
        let Path { number: path, search, .. } = &self.paths[at];
        let (path, new, is_done) = (*path, search.size(), search.is_done());
        if old != new {
            self.observer.report(now, || Event::PacketSize { path, old, new, is_done });
        }
    }

    /// Confirms the handshake: both ends know each other, and paths may be opened.
    pub(crate) fn confirm(&mut self) -> Result<(), CloseReason> {
        if !mem::replace(&mut self.is_confirmed, true) {
            while self.next_path < self.max_paths {
                self.issue_id()?;
            }
        }
        Ok(())
    }

    /// Issues an ID to the peer for one more path.
    pub(super) fn issue_id(&mut self) -> Result<(), CloseReason> {
        let (path, id) = (self.next_path, self.shared.new_id()?);
        let token = self.shared.reset_token(id);
        self.next_path += 1;
        self.frame_queue().issued_ids.insert(path, IssuedId { id, token });
        self.frame_queue().push(ConnectionFrame::PathId(path));
        self.pending_updates.push(ConnectionUpdate::NewId(id));
        // The peer may have forgotten an old path sooner, and issued its ID before.
        if self.offered.contains_key(&path) {
            self.pending_updates.push(ConnectionUpdate::MorePaths);
        }
        Ok(())
    }

    /// Returns the path with this ID as destination of the peer's packets. Opens it if it is new.
    pub(super) fn path_of(&mut self, now: Time, id: ConnectionId, four_tuple: FourTuple) -> Option<usize> {
        if let Some(at) = self.paths.iter().position(|path| path.ours == id) {
            return Some(at);
        }
        // The client alone opens paths.
        let number = *self.frame_queue_ref().issued_ids.iter().find(|(_, issued)| issued.id == id)?.0;
        if self.side == Side::Client {
            return None;
        }
        let theirs = self.offered.remove(&number)?;
        let ours = self.frame_queue_ref().issued_ids.get(&number)?.id;
        let (at, until) =
            (self.add_path(now, number, PathIds { ours, theirs }, four_tuple)?, self.challenge_expiry(now));
        self.paths[at].challenge = Some(Challenge::new(four_tuple, None, now, until));
        Some(at)
    }

    /// Adds a path that carries nothing yet.
    fn add_path(&mut self, now: Time, number: u32, ids: PathIds, four_tuple: FourTuple) -> Option<usize> {
        let law = self.own_law();
        let unused =
            (0..self.channel.subflows()).find(|&slot| self.paths.iter().all(|path| path.subflow != Some(slot)));
        let subflow = if let Some(slot) = unused {
            self.channel.reset_subflow(slot, law, PacketNumbers::Restart, now);
            slot
        } else {
            self.channel.add_subflow(law, now)?
        };
        self.channel.set_data_sending(subflow, DataSending::Forbidden);
        *self.frame_queue().black_hole_detector(subflow) = BlackHoleDetector::default();
        let mut path = Path::new(number, ids, four_tuple, State::Opening, self.ack_policy, self.max_packet_size());
        path.subflow = Some(subflow);
        path.skip_at = 1 + self.draw() % SKIP_EVERY;
        debug_assert!(
            self.paths.iter().all(|other| other.number != number && other.ours != path.ours),
            "path {number}"
        );
        self.paths.push(path);
        let at = self.paths.len() - 1;
        self.report_path(now, at, PathChange::Probing);
        Some(at)
    }

    /// Creates the law of a new path; none if one law decides for all.
    fn own_law(&self) -> Option<Law> {
        (!self.shared.settings.one_law).then(|| make_law(&self.shared, self.base_rtt, self.base_mss()))
    }

    /// Returns the maximum packet size to try.
    pub(super) fn max_packet_size(&self) -> u16 {
        self.shared.settings.max_packet.min(to_u16(self.theirs.max_packet))
    }

    /// Returns the bytes of frames in a packet of the size that needs no probe.
    pub(super) fn base_mss(&self) -> u32 {
        mss_of(Dplpmtud::new(self.max_packet_size()).base())
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.rng_state = mix64(self.rng_state.wrapping_add(1));
        self.rng_state
    }

    /// Opens a client's next path, from another of its ports. Returns the path's number; none if none is free now.
    pub(crate) fn open_path(&mut self, now: Time, socket: u16) -> Option<u32> {
        let used = to_u32(self.paths.iter().filter(|path| path.is_used()).count() as u64);
        let number = *self.offered.keys().find(|number| self.frame_queue_ref().issued_ids.contains_key(number))?;
        if self.side == Side::Listener || used >= self.max_paths {
            return None;
        }
        let remote = self.paths.iter().find(|path| path.is_used())?.four_tuple.remote;
        let (theirs, ours) = (self.offered.remove(&number)?, self.frame_queue_ref().issued_ids.get(&number)?.id);
        let four_tuple = FourTuple { socket, remote };
        let until = self.challenge_expiry(now);
        let at = self.add_path(now, number, PathIds { ours, theirs }, four_tuple)?;
        let path = &mut self.paths[at];
        (path.amplification_limit, path.challenge) =
            (AmplificationLimit::VALIDATED, Some(Challenge::new(four_tuple, None, now, until)));
        Some(number)
    }

    /// Retires a path, and notifies the peer.
    pub(crate) fn retire_path(&mut self, now: Time, number: u32) -> Result<(), CloseReason> {
        let until = now.saturating_add(self.timeout().times(3));
        let others = self.paths.iter().any(|path| path.number != number && path.is_used());
        let Some(path) = self.paths.iter_mut().find(|path| path.number == number && path.is_used()) else {
            return Ok(());
        };
        if !others {
            return Err(CloseReason::new(CloseCode::NONE, "the last path was retired"));
        }
        debug_assert!(path.subflow.is_some(), "path {number} is used without a subflow");
        let was_open = path.state == State::Open;
        (path.state, path.challenge) = (State::Retired(until), None);
        if let Some(subflow) = path.subflow.take() {
            if was_open && !self.shared.settings.one_law {
                let (law, delivered) = (self.channel.law(subflow).clone(), self.channel.delivered(subflow));
                self.rerouting.keep(MovedLaw { law, delivered }, self.max_paths);
            }
            self.channel.close_subflow(subflow);
        }
        let four_tuple = path.four_tuple;
        self.observer.report(now, || Event::Path { path: number, four_tuple, change: PathChange::Abandoned });
        self.frame_queue().push(ConnectionFrame::PathRetire { path: number, reason: 0 });
        self.pending_updates.push(ConnectionUpdate::PathGone(number));
        Ok(())
    }

    pub(super) fn on_path_id(
        &mut self,
        path: u32,
        id: ConnectionId,
        token: [u8; TOKEN_LEN],
    ) -> Result<(), CloseReason> {
        let contradicts = self.paths.iter().any(|open| open.number == path && open.theirs.id != id)
            || self.offered.get(&path).is_some_and(|offered| offered.id != id);
        if contradicts {
            return Err(CloseReason::new(CloseCode::FRAME, "a path's ID has changed"));
        }
        if path == 0 || self.paths.iter().any(|open| open.number == path) {
            return Ok(());
        }
        // The peer may number new paths beyond those that are retired here, so the bound includes their number.
        let gone = to_u32(self.paths.iter().filter(|path| !path.is_used()).count() as u64);
        if path >= self.next_path.max(self.max_paths) + self.max_paths + gone {
            return Err(CloseReason::new(CloseCode::FLOW, "more paths than were allowed"));
        }
        // A repeated ID for a path that is over carries no information.
        if self.frame_queue_ref().issued_ids.contains_key(&path) || path >= self.next_path {
            self.offered.insert(path, IssuedId { id, token });
            self.pending_updates.push(ConnectionUpdate::MorePaths);
        }
        if self.offered.len() > 2 * self.max_paths as usize {
            return Err(CloseReason::new(CloseCode::FLOW, "more paths than were allowed"));
        }
        Ok(())
    }

    pub(super) fn on_path_retire(&mut self, now: Time, path: u32, reason: u64) -> Result<(), CloseReason> {
        if path >= self.next_path {
            return Err(CloseReason::new(CloseCode::FRAME, "PATH_RETIRE for a path that was never issued"));
        }
        if reason == 1 && self.side == Side::Client {
            self.pending_updates.push(ConnectionUpdate::PathWanted(path));
            return Ok(());
        }
        self.retire_path(now, path)?;
        if let Some(path) = self.path_mut(path) {
            path.peer_retired = true;
            return Ok(());
        }
        // The path was never open here. The request is answered nevertheless, and another path may be offered.
        if let Some(IssuedId { id, .. }) = self.frame_queue().issued_ids.remove(&path) {
            self.offered.remove(&path);
            self.frame_queue().push(ConnectionFrame::PathRetire { path, reason: 0 });
            self.pending_updates.push(ConnectionUpdate::OldId(id));
            self.issue_id()?;
            // Each costs two frames, so a peer that retires paths faster than it receives new ones is not served.
            if self.frame_queue().waiting() > MAX_WAITING {
                return Err(CloseReason::new(CloseCode::FLOW, "more paths than were allowed"));
            }
        }
        Ok(())
    }

    /// Handles the response to a challenge.
    pub(super) fn on_response(&mut self, now: Time, number: u32, four_tuple: FourTuple, value: [u8; 8]) {
        // The only path under a law has that law for itself.
        let alone = self.paths.iter().filter(|path| path.is_used()).count() == 1;
        let law = if alone { Some(make_law(&self.shared, self.base_rtt, self.base_mss())) } else { self.own_law() };
        let max_packet_size = self.max_packet_size();
        let confirmed_at = self.challenge_expiry(now);
        let Some(at) = self.paths.iter().position(|path| path.number == number) else { return };
        let path = &mut self.paths[at];
        let Some(subflow) = path.subflow else { return };
        let old = path.search.size();
        let Some(challenge) = path.challenge.as_ref().filter(|challenge| challenge.values.contains(&value)) else {
            return;
        };
        let mut change = PathChange::Validated;
        match path.before {
            Some((before, amplification_limit)) if before == four_tuple => {
                // The peer is still at its old address: a third party has forwarded its packets.
                (path.four_tuple, path.amplification_limit) = (before, amplification_limit);
                change = PathChange::MovedBack;
            }
            // A response from another address proves nothing.
            _ if challenge.four_tuple != four_tuple || path.four_tuple != four_tuple => return,
            None => {
                path.amplification_limit.validate();
                if path.state == State::Opening {
                    (path.state, path.confirmed_at) = (State::Open, confirmed_at);
                    self.pending_updates.push(ConnectionUpdate::PathOpen(number));
                    if let Some(law) = self.rerouting.take() {
                        self.channel.adopt(subflow, law, now);
                        self.channel.set_mss(subflow, mss_of(path.search.base()));
                    }
                }
            }
            Some(_) => {
                // The path to the new address is a different one.
                path.amplification_limit.validate();
                (path.search, path.min_rtt) = (Dplpmtud::new(max_packet_size), None);
                self.channel.reset_subflow(subflow, law, PacketNumbers::Continue, now);
            }
        }
        (path.before, path.challenge) = (None, None);
        self.channel.set_data_sending(subflow, DataSending::Allowed);
        self.report_path(now, at, change);
        self.report_size(now, at, old);
        self.report_metrics(now, at, None);
    }

    /// Checks a path for a black hole: if only its long packets are lost, or nothing arrives any more, they may be too
    /// long for it now (RFC 8899 §4.3).
    pub(super) fn detect_black_hole(&mut self, now: Time, at: usize, subflow: u8) {
        let path = &mut self.paths[at];
        let only_small_arrive = self.channel.work_mut().black_hole_detector(subflow).is_black_hole();
        let nothing_arrives = self.channel.pto_count(subflow) >= BLACK_HOLE_PTO_COUNT
            && self.channel.first_timeout_at(subflow).is_some_and(|at| now.saturating_since(at) >= BLACK_HOLE_WAIT);
        if (only_small_arrive || nothing_arrives) && path.search.size() > path.search.base() {
            let (old, base) = (path.search.size(), path.search.base());
            path.search.fall_back(now);
            *self.channel.work_mut().black_hole_detector(subflow) = BlackHoleDetector::default();
            self.channel.set_mss(subflow, mss_of(base));
            self.report_size(now, at, old);
        }
    }

    /// Handles the peer's migration: a packet arrived from another address than those before, with the highest number
    /// of its path.
    pub(super) fn on_moved(&mut self, arrival: &OpenedPacket) {
        let &OpenedPacket { now, path, four_tuple, len, .. } = arrival;
        let until = self.challenge_expiry(now);
        if self.side == Side::Client || !self.is_confirmed {
            return;
        }
        let Some(at) = self.paths.iter().position(|it| it.number == path) else { return };
        let path = &mut self.paths[at];
        let Some(subflow) = path.subflow else { return };
        let present = (path.four_tuple, path.amplification_limit);
        match path.before.take() {
            Some((before, amplification_limit)) if before == four_tuple => {
                (path.four_tuple, path.amplification_limit, path.challenge) = (before, amplification_limit, None);
                self.channel.set_data_sending(subflow, DataSending::Allowed);
                self.report_path(now, at, PathChange::MovedBack);
                return;
            }
            // The validated address is remembered, not an intermediate one.
            before => path.before = before.or_else(|| (path.state == State::Open).then_some(present)),
        }
        (path.four_tuple, path.amplification_limit) = (four_tuple, AmplificationLimit::default());
        path.amplification_limit.on_received(len);
        path.challenge = Some(Challenge::new(four_tuple, path.before.map(|(four_tuple, _)| four_tuple), now, until));
        self.channel.set_data_sending(subflow, DataSending::Forbidden);
        self.report_path(now, at, PathChange::Moved);
    }
}
