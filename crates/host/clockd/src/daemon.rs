//! The daemon: drives a [`Node`] by a socket with timestamps, and publishes mesh time.
//!
//! One thread, which waits for datagrams, timestamps, queries and the node's timers. Datagrams are sent only to the addresses
//! of the peers file, and an answer is as long as its probe, so a forged sender address attracts nothing.
//!
//! Times of the node are those since the session began. They end after 213 days, so a session lasts 60 to 90 days: then the
//! node begins again, as after a restart, and the page is void for some seconds.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clocks::{Departure, Event, Header, Member, Node, Reading, Session, Skew, successors};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use units::{Time, mix64};

use crate::clock_bound::{ClockBoundWriter, UtcReading};
use crate::event::DaemonEvent;
use crate::host_clock::raw_ns;
use crate::inbox::{Inbox, MessageKind};
use crate::page::{PageContent, PageStatus, PageWriter};
use crate::peers::{DaemonConfig, UtcSource};
use crate::real_time::ClockPair;
use crate::shared_file::PageError;
use crate::socket::{Batch, ReadyQueues, StampedSocket};
use crate::status::{PairStatus, PeerStatus, Status, UtcStatus};
use crate::status_socket::{Query, StatusSocket};
use crate::suspend::SuspendWatch;
use crate::sys::{self, KernelClock, clock_ns, clock_source};
use crate::utc::{UtcLine, UtcLines, system_error};

/// Longest wait, in nanoseconds: the request to stop is looked at after it.
const MAX_WAIT: i64 = 100_000_000;

/// Time between two announcements of UTC and two updates of `ClockBound`'s pages, in nanoseconds.
const UTC_INTERVAL: i64 = 1_000_000_000;

/// Time between two updates of the file of metrics, in nanoseconds.
const METRICS_INTERVAL: i64 = 10_000_000_000;

/// Error of a pair of readings of two clocks, in nanoseconds.
const PAIR_ERROR: i64 = 1_000;

/// Smallest step of the system clock that is logged, in nanoseconds: smaller ones are changes of its rate.
const LOGGED_STEP: i64 = 100_000;

/// Attempts to compare the clocks before the daemon starts.
const CLOCK_ATTEMPTS: u32 = 100;

/// Drift of clocks where no other one is configured, in parts per billion.
const MAX_DRIFT_PPB: u32 = 50_000;

/// Least and largest duration of a session, in nanoseconds.
const SESSION_DAYS: [u64; 2] = [60 * DAY, 90 * DAY];
const DAY: u64 = 86_400_000_000_000;

/// Error of a daemon.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The address cannot be bound, or the kernel has no timestamps.
    #[error("cannot use the address {address} with timestamps: {source}")]
    Socket {
        /// The address.
        address: std::net::SocketAddr,
        /// The error.
        source: io::Error,
    },
    /// Clocks cannot be read fast enough to compare them.
    #[error(
        "reading a clock takes longer than a microsecond: the clock source `{name}` is too slow; accepted: one that \
             programs read without a system call, such as tsc or kvm-clock"
    )]
    SlowClock {
        /// The kernel's clock source.
        name: String,
    },
    /// A page cannot be written.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The socket of queries cannot be bound.
    #[error("cannot bind the status socket `{}`: {source}", path.display())]
    StatusSocket {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{action}: {source}")]
    System {
        /// The failed action.
        action: &'static str,
        /// The error.
        source: io::Error,
    },
}

/// State that ends with a session.
#[derive(Debug)]
struct Run {
    node: Node,
    session: Session,
    /// Reading of `CLOCK_MONOTONIC_RAW` at which the session began, and at which it ends.
    begin: i64,
    end: i64,
    /// Number of the last message to each member.
    numbers: Vec<u64>,
    /// Number of the last announcement of UTC.
    announcement: u32,
}

impl Run {
    fn new(config: &DaemonConfig, after: Session) -> Result<Self, DaemonError> {
        let draws =
            sys::random().map_err(|source| DaemonError::System { action: "cannot read random bits", source })?;
        // Ascending from run to run, as long as the system clock is right at each start.
        let real = clock_ns(KernelClock::RealTime).unsigned_abs();
        let session = Session(real.max(after.0.saturating_add(1)));
        let begin = raw_ns();
        let [least, largest] = SESSION_DAYS;
        let duration = least + mix64(draws ^ 1) % (largest - least);
        let numbers = vec![0; config.peers.len()];
        let node = Node::new(config.mesh.clone(), config.own, session, draws, Time::ZERO);
        Ok(Self { node, session, begin, end: begin.saturating_add(duration as i64), numbers, announcement: 0 })
    }

    /// Returns the time of the node at a reading of `CLOCK_MONOTONIC_RAW`.
    fn time(&self, raw: i64) -> Time {
        Time::from_ns(raw.saturating_sub(self.begin).max(0).unsigned_abs())
    }

    /// Returns the reading of `CLOCK_MONOTONIC_RAW` at a time of the node.
    fn raw(&self, time: Time) -> i64 {
        self.begin.saturating_add(i64::try_from(time.ns()).unwrap_or(i64::MAX))
    }
}

/// Work that a wait has found.
#[derive(Clone, Copy, Debug)]
struct Ready {
    queues: ReadyQueues,
    queries: bool,
}

/// A daemon.
#[derive(Debug)]
pub struct Daemon {
    config: DaemonConfig,
    socket: StampedSocket<Departure>,
    inbox: Inbox,
    run: Run,
    page: PageWriter,
    clock_bound: Option<ClockBoundWriter>,
    queries: Option<StatusSocket>,
    suspend: SuspendWatch,
    started: i64,
    /// Sessions of members that have sent fresh messages.
    sessions: Vec<Option<Session>>,
    successors: Vec<Member>,
    utc: UtcLines,
    utc_due: i64,
    metrics_due: i64,
    /// Set from a disruption of the host's clock until mesh time is known.
    is_disrupted: bool,
    /// Set while transmit timestamps are available when a datagram has been sent.
    stamps_are_prompt: bool,
    disruptions: u64,
    events: Vec<DaemonEvent>,
}

impl Daemon {
    /// Binds the sockets and opens the pages; directories that are missing are created.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn new(config: DaemonConfig) -> Result<Self, DaemonError> {
        let address = config.peers[config.own.index()].address;
        let socket = StampedSocket::bind(address).map_err(|source| DaemonError::Socket { address, source })?;
        if (0..CLOCK_ATTEMPTS).all(|_| ClockPair::read().is_none()) {
            return Err(DaemonError::SlowClock { name: clock_source() });
        }
        let run = Run::new(&config, Session(0))?;
        create_parent(&config.page)?;
        let page = PageWriter::open(&config.page, run.session.0)?;
        let open_pages = |pages: &crate::peers::ClockBoundConfig| {
            create_parent(&pages.shm0)?;
            create_parent(&pages.shm1)?;
            Ok::<_, DaemonError>(ClockBoundWriter::open(&pages.shm0, &pages.shm1, pages.max_drift_ppb)?)
        };
        let clock_bound = config.clock_bound.as_ref().map(open_pages).transpose()?;
        let bind = |path: &PathBuf| {
            create_parent(path)?;
            StatusSocket::bind(path).map_err(|source| DaemonError::StatusSocket { path: path.clone(), source })
        };
        let queries = config.status.as_ref().map(bind).transpose()?;
        let members = config.peers.len();
        let ids: Vec<u64> = config.mesh.members.iter().map(|member| member.id).collect();
        let name = config.peers[config.own.index()].name.clone();
        Ok(Self {
            inbox: Inbox::new(config.key.clone(), config.own, members),
            successors: successors(&ids, config.mesh.seed, config.own),
            disruptions: page.content().disruptions,
            started: run.begin,
            sessions: vec![None; members],
            utc: UtcLines::new(members),
            suspend: SuspendWatch::default(),
            utc_due: run.begin,
            metrics_due: run.begin,
            is_disrupted: false,
            stamps_are_prompt: true,
            events: vec![DaemonEvent::Started { name }],
            config,
            socket,
            run,
            page,
            clock_bound,
            queries,
        })
    }

    /// Runs until `stop` is set. `log` receives events.
    ///
    /// # Errors
    /// If a socket fails.
    pub fn run(&mut self, stop: &AtomicBool, log: &mut dyn FnMut(&DaemonEvent)) -> Result<(), DaemonError> {
        let mut ready = Ready { queues: ReadyQueues::ALL, queries: true };
        while !stop.load(Ordering::Relaxed) {
            self.turn(ready)?;
            self.events.drain(..).for_each(|event| log(&event));
            ready = self.wait()?;
        }
        Ok(())
    }

    /// Returns the state.
    pub fn status(&self) -> Status {
        let raw = raw_ns();
        let reading = self.config.clock.at_raw(raw);
        let content = self.page.content();
        let time = content.time(reading).ok();
        let reference = self.run.node.map().filter(|_| time.is_some()).map(|map| self.name(map.reference));
        let members = (0..self.config.peers.len()).map(|index| Member(index as u16));
        let utc = ClockPair::read().and_then(|pair| self.utc_at(&pair));
        Status {
            name: self.name(self.config.own),
            state: if time.is_some() { content.status } else { self.void_status() },
            reference,
            mesh_time_ns: time.map(|time| time.ns),
            offset_ns: time.map(|time| time.ns.wrapping_sub(reading.0)),
            skew_ppb: time.map(|_| content.skew.ppb()),
            error_ns: time.map(|time| time.error_ns),
            disruptions: self.disruptions,
            session: self.run.session.0,
            uptime_ms: (raw.saturating_sub(self.started) / 1_000_000).unsigned_abs(),
            utc: utc
                .map(|utc| UtcStatus { system_clock_offset_ns: utc.real.wrapping_sub(utc.utc), error_ns: utc.error }),
            peers: members.filter(|&member| member != self.config.own).map(|it| self.peer_status(it, raw)).collect(),
            socket: self.socket.counters,
            refused: self.inbox.refusals,
        }
    }

    fn peer_status(&self, member: Member, raw: i64) -> PeerStatus {
        let (node, reading, now) = (&self.run.node, self.config.clock.at_raw(raw), self.run.time(raw));
        let offset = node.solution().and_then(|solution| solution.members[member.index()]);
        let peer = &self.config.peers[member.index()];
        let neighbour = node.neighbours().find(|neighbour| neighbour.member == member);
        let pair = neighbour.map(|it| PairStatus {
            offset_ns: it.interval.map(|interval| interval.line.offset_at(reading)),
            skew_ppb: it.interval.map(|interval| interval.line.skew.ppb()),
            error_ns: it.interval.map(|interval| grown(interval.error, interval.skew_error, interval.line.at, reading)),
            round_trip_ns: it.estimate.map(|estimate| estimate.round_trip),
            samples: it.estimate.map(|estimate| estimate.samples),
            last_reply_ms: it.last_reply.map(|at| (now.saturating_since(at).ns() / 1_000_000).unsigned_abs()),
        });
        PeerStatus {
            name: peer.name.clone(),
            address: peer.address.to_string(),
            offset_ns: offset.map(|offset| offset.line.offset_at(reading)),
            error_ns: offset.map(|offset| grown(offset.error, offset.skew_error, offset.line.at, reading)),
            suspect: node.suspects().contains(&member),
            pair,
        }
    }

    fn name(&self, member: Member) -> String {
        self.config.peers.get(member.index()).map_or_else(String::new, |peer| peer.name.clone())
    }

    /// Waits until there is something to do.
    fn wait(&self) -> Result<Ready, DaemonError> {
        let raw = raw_ns();
        let mut due = self.run.raw(self.run.node.next_wake()).min(self.utc_due).min(raw.saturating_add(MAX_WAIT));
        if self.config.metrics.is_some() {
            due = due.min(self.metrics_due);
        }
        let timeout = due.saturating_sub(raw).max(0);
        let descriptor = |flags| move |descriptor| PollFd::new(descriptor, flags);
        // Errors, that is transmit timestamps, are always reported.
        let mut descriptors = vec![PollFd::new(self.socket.descriptor(), PollFlags::POLLIN)];
        let [readers, writers]: [Vec<BorrowedFd<'_>>; 2] =
            self.queries.as_ref().map_or_else(Default::default, StatusSocket::descriptors);
        descriptors.extend(readers.into_iter().map(descriptor(PollFlags::POLLIN)));
        descriptors.extend(writers.into_iter().map(descriptor(PollFlags::POLLOUT)));
        let timeout = TimeSpec::new(timeout / 1_000_000_000, timeout % 1_000_000_000);
        match ppoll(&mut descriptors, Some(timeout), None) {
            Ok(_) => {
                let events = |descriptor: &PollFd| descriptor.revents().unwrap_or(PollFlags::all());
                let is_ready = |descriptor: &PollFd| !events(descriptor).is_empty();
                let stamps = events(&descriptors[0]).contains(PollFlags::POLLERR);
                let queues = ReadyQueues { stamps, datagrams: events(&descriptors[0]).contains(PollFlags::POLLIN) };
                // Clients that are too slow are looked at as well.
                let queries = descriptors[1..].iter().any(is_ready) || descriptors.len() > 2;
                Ok(Ready { queues, queries })
            }
            Err(Errno::EINTR) => Ok(Ready { queues: ReadyQueues::ALL, queries: true }),
            Err(error) => Err(DaemonError::System { action: "cannot wait", source: error.into() }),
        }
    }

    /// Does all that can be done now.
    fn turn(&mut self, ready: Ready) -> Result<(), DaemonError> {
        if let Some(ns) = self.suspend.check() {
            self.events.push(DaemonEvent::Suspend { ns });
            self.socket.discard_real_time();
            if let Some(pages) = &mut self.clock_bound {
                pages.reset();
            }
            self.restart()?;
        }
        if raw_ns() >= self.run.end {
            self.events.push(DaemonEvent::Renewal);
            self.restart()?;
        }
        let step = self.socket.begin();
        let batch = self
            .socket
            .collect(ready.queues)
            .map_err(|source| DaemonError::System { action: "cannot receive", source })?;
        self.on_system_clock_step(step);
        self.take_stamps(&batch);
        for datagram in batch.datagrams {
            self.receive(&datagram.bytes, datagram.received);
        }
        let now = self.run.time(raw_ns());
        if self.run.node.next_wake() <= now {
            self.run.node.wake(now, self.config.clock.at_raw(raw_ns()));
        }
        let mut is_stamped = false;
        while let Some(outgoing) = self.run.node.poll_outgoing() {
            is_stamped |= outgoing.departure.is_some();
            self.send(outgoing.to, &outgoing.message, outgoing.departure);
        }
        if is_stamped && self.stamps_are_prompt {
            // Devices in software stamp within the call. This saves a wait.
            let queues = ReadyQueues { stamps: true, datagrams: false };
            let batch = self.socket.collect(queues).map_err(cannot_receive)?;
            self.stamps_are_prompt = !batch.sent.is_empty();
            self.take_stamps(&batch);
        }
        self.take_events();
        self.update_page();
        self.do_periodic_work();
        if ready.queries
            && let Some(mut queries) = self.queries.take()
        {
            queries.serve(|query| match query {
                Query::Status => self.status().to_json() + "\n",
                Query::Metrics => self.status().to_prometheus(),
            });
            self.queries = Some(queries);
        }
        Ok(())
    }

    fn on_system_clock_step(&mut self, step: Option<i64>) {
        if let Some(ns) = step {
            if ns.saturating_abs() >= LOGGED_STEP {
                self.events.push(DaemonEvent::SystemClockStep { ns });
            }
            // The distance of the system clock from UTC is another one.
            self.utc_due = raw_ns();
        }
    }

    fn take_stamps(&mut self, batch: &Batch<Departure>) {
        self.on_system_clock_step(batch.real_time_step);
        for sent in &batch.sent {
            self.run.node.on_sent(sent.token, self.config.clock.at_raw(sent.at));
        }
    }

    /// Begins a new session: nothing that was measured holds.
    fn restart(&mut self) -> Result<(), DaemonError> {
        self.run = Run::new(&self.config, self.run.session)?;
        self.inbox.restart_time();
        self.utc_due = self.run.begin;
        self.on_disruption();
        self.is_disrupted = true;
        self.update_page();
        Ok(())
    }

    fn on_disruption(&mut self) {
        self.disruptions = self.disruptions.wrapping_add(1);
        self.utc.clear();
    }

    fn receive(&mut self, datagram: &[u8], received: i64) {
        let now = self.run.time(raw_ns());
        let Some(accepted) = self.inbox.open(now, datagram) else { return };
        let Header { sender, sender_session, receiver_session, .. } = accepted.header;
        let is_fresh = receiver_session == Some(self.run.session);
        match accepted.kind {
            MessageKind::Node => {
                let is_taken = self.run.node.receive(now, self.config.clock.at_raw(received), accepted.message);
                if is_taken && is_fresh {
                    self.sessions[sender.index()] = Some(sender_session);
                }
            }
            MessageKind::Utc if is_fresh => match UtcLine::decode(accepted.message) {
                Some(line) if line.origin != self.config.own => {
                    if self.utc.take(now, line) {
                        self.announce(&line);
                    }
                }
                Some(_) => {}
                None => self.inbox.refusals.malformed += 1,
            },
            MessageKind::Utc => {}
        }
    }

    fn send(&mut self, to: Member, message: &[u8], departure: Option<Departure>) {
        let number = &mut self.run.numbers[to.index()];
        let sealed = self.config.key.seal(message, *number);
        *number += 1;
        self.socket.send(self.config.peers[to.index()].address, &sealed, departure);
    }

    /// Sends an announcement of UTC to the successors.
    fn announce(&mut self, line: &UtcLine) {
        for index in 0..self.successors.len() {
            let to = self.successors[index];
            if let Some(session) = self.sessions[to.index()].filter(|_| to != line.origin) {
                let header = Header {
                    sender: self.config.own,
                    receiver: to,
                    sender_session: self.run.session,
                    receiver_session: Some(session),
                    era: clocks::Era::default(),
                };
                self.send(to, &line.encode(&header), None);
            }
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.run.node.poll_event() {
            match event {
                Event::OwnStep => {
                    self.on_disruption();
                    self.is_disrupted = true;
                }
                Event::Disruption | Event::Lost => self.on_disruption(),
                Event::NeighbourStep(_) | Event::Restart(_) | Event::Suspect(_) | Event::Reference(_) => {}
            }
            let event = DaemonEvent::of_node(event, |member| self.name(member));
            self.events.push(event);
        }
    }

    fn void_status(&self) -> PageStatus {
        if self.is_disrupted { PageStatus::Disrupted } else { PageStatus::Unknown }
    }

    /// Writes the page if it changes.
    fn update_page(&mut self) {
        let now = self.run.time(raw_ns());
        let map = self.run.node.map().filter(|map| map.valid_until >= now);
        self.is_disrupted &= map.is_none();
        let void = PageContent {
            status: self.void_status(),
            disruptions: self.disruptions,
            session: self.run.session.0,
            ..PageContent::default()
        };
        let content = map.map_or(void, |map| PageContent {
            status: PageStatus::Synchronised,
            at: map.mesh.line.at,
            mesh: map.mesh.line.remote(map.mesh.line.at),
            skew: map.mesh.line.skew,
            error: map.mesh.error,
            skew_error: map.mesh.skew_error,
            valid_until: self.config.clock.at_raw(self.run.raw(map.valid_until)),
            reference: self.config.mesh.members.get(map.reference.index()).map_or(0, |member| member.id),
            ..void
        });
        if content != *self.page.content() {
            self.page.write(&content);
        }
    }

    fn do_periodic_work(&mut self) {
        let raw = raw_ns();
        if raw >= self.utc_due {
            self.utc_due = raw.saturating_add(UTC_INTERVAL);
            if let Some(pair) = ClockPair::read() {
                self.announce_own_utc(&pair);
                let utc = self.utc_at(&pair);
                if let Some(pages) = &mut self.clock_bound {
                    pages.write(utc.as_ref(), self.disruptions);
                }
            }
        }
        if raw >= self.metrics_due
            && let Some(path) = self.config.metrics.clone()
        {
            self.metrics_due = raw.saturating_add(METRICS_INTERVAL);
            if let Err(error) = files::replace(&path, &self.status().to_prometheus()) {
                self.events.push(DaemonEvent::Metrics { error: error.to_string() });
            }
        }
    }

    /// Announces UTC if the host has a source of it.
    fn announce_own_utc(&mut self, pair: &ClockPair) {
        let source = self.config.peers[self.config.own.index()].utc;
        if source == UtcSource::None {
            return;
        }
        let reading = self.config.clock.at_raw(pair.raw);
        let (Some(error), Ok(mesh), Some([first, last])) =
            (system_error(source, pair.real), self.page.content().time(reading), self.socket.real_time_ends())
        else {
            return;
        };
        let run = self.config.clock.at_raw(last.raw).since(self.config.clock.at_raw(first.raw)).max(1);
        let rate = Skew::ratio(last.real.wrapping_sub(first.real).wrapping_sub(run), run);
        self.run.announcement = self.run.announcement.wrapping_add(1);
        let line = UtcLine {
            origin: self.config.own,
            session: self.run.session,
            number: self.run.announcement,
            at: Reading(mesh.ns),
            offset: pair.real.wrapping_sub(mesh.ns),
            skew: rate - self.page.content().skew,
            error: error.saturating_add(mesh.error_ns).saturating_add(PAIR_ERROR),
            drift_ppb: self.config.clock_bound.as_ref().map_or(MAX_DRIFT_PPB, |pages| pages.max_drift_ppb),
        };
        if self.utc.take(self.run.time(pair.raw), line) {
            self.announce(&line);
        }
    }

    /// Returns UTC at the time of a pair of readings; none if mesh time or UTC is not known.
    fn utc_at(&self, pair: &ClockPair) -> Option<UtcReading> {
        let content = self.page.content();
        let mesh = content.time(self.config.clock.at_raw(pair.raw)).ok()?;
        let utc = self.utc.at(self.run.time(pair.raw), Reading(mesh.ns))?;
        let error = utc.error.saturating_add(mesh.error_ns).saturating_add(PAIR_ERROR);
        Some(UtcReading { raw: pair.raw, real: pair.real, utc: utc.utc, error, rate: content.skew + utc.skew })
    }
}

fn cannot_receive(source: io::Error) -> DaemonError {
    DaemonError::System { action: "cannot receive", source }
}

/// Returns an error that has grown from a reading to another one.
fn grown(error: i64, skew_error: Skew, from: Reading, to: Reading) -> i64 {
    error.saturating_add(skew_error.over(to.since(from).saturating_abs()))
}

/// Creates the directory of a file.
fn create_parent(path: &Path) -> Result<(), PageError> {
    let parent = files::parent_of(path);
    if parent.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(parent).map_err(|source| PageError::Io {
        action: "create the directory of",
        path: path.to_path_buf(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_clock::HostClock;
    use crate::page::{NoTime, PageReader};
    use crate::peers::PeerConfig;
    use crate::seal::MeshKey;
    use clocks::{MemberConfig, MeshConfig};

    fn daemon(directory: &Path) -> Result<Daemon, DaemonError> {
        let [low, high, ..] = std::process::id().to_le_bytes();
        let peer = |index: u8| PeerConfig {
            name: format!("host{index}"),
            address: std::net::SocketAddr::from(([127, 1 + high % 60, low, index + 1], 7_123)),
            utc: UtcSource::None,
        };
        Daemon::new(DaemonConfig {
            mesh: MeshConfig::new((0..2).map(|id| MemberConfig { id, site: 0 }).collect()),
            peers: (0..2).map(peer).collect(),
            own: Member(0),
            key: MeshKey::derive(b"a key for tests.", b""),
            page: directory.join("page"),
            status: None,
            metrics: Some(directory.join("metrics")),
            clock_bound: None,
            clock: HostClock::default(),
        })
    }

    /// The page is void at once, as after a suspend, and members see another session.
    #[test]
    fn restart_voids_the_page() {
        let directory = std::env::temp_dir().join(format!("narrows-clockd-restart-{}", std::process::id()));
        let mut daemon = match daemon(&directory) {
            Ok(daemon) => daemon,
            Err(error @ DaemonError::Socket { .. }) => return testing::skipped_here(&error.to_string()),
            Err(error) => panic!("{error}"),
        };
        let reader = PageReader::open(&directory.join("page")).unwrap();
        let (session, disruptions) = (daemon.run.session, daemon.disruptions);
        let now = Reading(raw_ns());
        let valid = PageContent {
            status: PageStatus::Synchronised,
            at: now,
            valid_until: now.after(1 << 40),
            ..PageContent::default()
        };
        daemon.page.write(&valid);
        assert!(reader.now().is_ok());
        daemon.restart().unwrap();
        assert_eq!(reader.now(), Err(NoTime::Disrupted));
        let content = reader.content().unwrap();
        assert!(content.disruptions > disruptions && content.session > session.0, "{content:?}");
        assert_eq!(daemon.status().state, PageStatus::Disrupted);
        // A turn without any packet: the metrics are written, and the page stays void.
        daemon.turn(Ready { queues: ReadyQueues::ALL, queries: true }).unwrap();
        assert!(fs::read_to_string(directory.join("metrics")).unwrap().contains("narrows_clock_synchronised 0e0\n"));
        assert_eq!(reader.now(), Err(NoTime::Disrupted));
        fs::remove_dir_all(&directory).unwrap();
    }
}
