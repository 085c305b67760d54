//! The log of one connection: events become records in memory, which another thread writes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laws::catalog::LawKind;
use laws::{ControlLaw, Law, LossCause};
use proto::blocks::BlockEvent;
use proto::observe::{ConnectionStart, Establishment, Event, Metrics, ObservedPacket, Observer};
use proto::side::Side;
use serde::Serialize;
use units::Time;

use crate::frames::{FrameList, SetBits};
use crate::record::{
    BlockData, ClosedData, GapData, KeyData, LostData, PacketData, PacketHeader, ParametersData, PathData, RawInfo,
    SizeData, Started, StateData, header, keys_of, metrics, state_of,
};
use crate::sequence::{EventRecord, LawData, MetricsData, ms, put};
use crate::wakeup::{Urgency, WriterWakeup};

/// Maximum number of bytes that wait to be written: further events are only counted.
const MAX_WAITING: usize = 16 << 20;
/// Maximum number of bytes that wait before it is known whether the connection is logged.
const MAX_EARLY: usize = 64 << 10;
/// Number of bytes at which the writer thread is woken at once.
const MANY: usize = 256 << 10;

/// The last recorded state of a path, so that only changes are recorded.
#[derive(Default)]
struct LastPathState {
    metrics: MetricsData,
    state: Option<&'static str>,
    law: Vec<(&'static str, i64)>,
}

/// Data not yet written.
pub(crate) struct UnwrittenData {
    /// Start of the connection: times of records are relative to it.
    began: Time,
    bytes: Vec<u8>,
    /// Events for which there was no room.
    missed: u64,
    /// Time of the last event.
    last: Time,
    paths: BTreeMap<u32, LastPathState>,
    /// Set if the log should be written: a listener's log once its client is admitted, otherwise unknown senders could fill
    /// the disk.
    pub(crate) is_wanted: bool,
    /// Set if nothing more is written, as the file cannot be.
    is_given_up: bool,
    /// Set if no event follows.
    pub(crate) is_over: bool,
}

/// The log of one connection.
pub(crate) struct ConnectionLog {
    pub(crate) start: ConnectionStart,
    /// The wall clock when it began, in ms since 1970.
    pub(crate) began_ms: u64,
    waiting: Mutex<UnwrittenData>,
}

impl ConnectionLog {
    pub(crate) fn new(start: ConnectionStart, began_ms: u64) -> Self {
        let mut bytes = Vec::new();
        put(&mut bytes, &header(&start, began_ms as f64));
        let mut waiting = UnwrittenData {
            began: start.now,
            bytes,
            missed: 0,
            last: start.now,
            paths: BTreeMap::new(),
            is_wanted: start.side == Side::Client,
            is_given_up: false,
            is_over: false,
        };
        let remote = start.four_tuple.remote;
        let started = Started {
            ip_version: if remote.is_ipv4() { "v4" } else { "v6" },
            dst_ip: remote.ip().to_string(),
            dst_port: remote.port(),
            protocol: start.service.to_string(),
        };
        waiting.put(start.now, "connectivity:connection_started", None, started);
        Self { start, began_ms, waiting: Mutex::new(waiting) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, UnwrittenData> {
        // Records are appended completely or not at all.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Discards the data, and keeps no more: it cannot be written.
    pub(crate) fn give_up(&self) {
        let mut waiting = self.lock();
        waiting.is_given_up = true;
        waiting.bytes = Vec::new();
    }
}

impl UnwrittenData {
    /// Returns the number of bytes to write.
    fn to_write(&self) -> usize {
        if self.is_wanted { self.bytes.len() } else { 0 }
    }

    /// Returns the data to write now.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        if self.is_wanted { std::mem::take(&mut self.bytes) } else { Vec::new() }
    }

    fn put(&mut self, now: Time, name: &'static str, path_id: Option<u32>, data: impl Serialize) {
        if self.is_given_up {
            return;
        }
        self.last = now;
        let max_len = if self.is_wanted { MAX_WAITING } else { MAX_EARLY };
        if self.bytes.len() >= max_len {
            self.missed += 1;
            return;
        }
        self.put_gap();
        put(&mut self.bytes, &EventRecord { time: ms(now.since(self.began)), path_id, name, data });
    }

    /// Records the number of events that are missing here, if any.
    fn put_gap(&mut self) {
        if self.missed > 0 {
            let time = ms(self.last.since(self.began));
            let data = GapData { events: std::mem::take(&mut self.missed) };
            put(&mut self.bytes, &EventRecord { time, path_id: None, name: "narrows:events_missed", data });
        }
    }

    fn packet(&mut self, now: Time, name: &'static str, packet: &ObservedPacket, in_flight: Option<bool>) {
        let &ObservedPacket { space, path, number, len, payload, .. } = packet;
        let header = PacketHeader::new(space, number);
        let raw = RawInfo { length: len, payload_length: payload.len() };
        let data = PacketData { header, raw, in_flight, frames: FrameList(payload) };
        self.put(now, name, Some(path), data);
    }

    fn metrics(&mut self, now: Time, path: u32, observed: &Metrics, law: &Law) {
        let known = self.paths.entry(path).or_default();
        let ssthresh = law.ssthresh();
        let new = metrics(observed, ssthresh);
        let changed = new.since(&known.metrics);
        known.metrics = new;
        let state = ssthresh.map(|end| if observed.window < end { "slow_start" } else { "congestion_avoidance" });
        let before = known.state;
        known.state = state.or(before);
        let new_state = state.filter(|_| state != before).map(|new| StateData { old: before, new });
        let mut values = Vec::with_capacity(known.law.len());
        law.trace(&mut |name, value| values.push((name, value)));
        let actions = law.actions();
        for (name, count) in [
            ("increases", actions.increases),
            ("cuts", actions.cuts),
            ("loss_cuts", actions.loss_cuts),
            ("quick_adapts", actions.quick_adapts),
            ("probe_rtts", actions.probe_rtts),
        ] {
            values.push((name, count.cast_signed()));
        }
        let law_changed = known.law != values;
        if law_changed {
            known.law.clone_from(&values);
        }
        if changed != MetricsData::default() {
            self.put(now, "recovery:metrics_updated", Some(path), changed);
        }
        if let Some(state) = new_state {
            self.put(now, "recovery:congestion_state_updated", Some(path), state);
        }
        if law_changed {
            let data = LawData { law: LawKind::of(law).info().name, values };
            self.put(now, "narrows:law_updated", Some(path), data);
        }
    }

    fn block(&mut self, now: Time, event: BlockEvent) {
        let (sender, receiver) = ("sender", "receiver");
        let (name, data) = match event {
            BlockEvent::Begun { block, shape } => (
                "narrows:block_opened",
                BlockData::Shape { owner: sender, block, data: shape.data, parity: shape.parity },
            ),
            BlockEvent::Opened { block, shape } => (
                "narrows:block_opened",
                BlockData::Shape { owner: receiver, block, data: shape.data, parity: shape.parity },
            ),
            BlockEvent::Requested { block, missing } => {
                ("narrows:block_nack_received", BlockData::Missing { block, missing: SetBits(missing) })
            }
            BlockEvent::Missing { block, missing } => {
                ("narrows:block_nack_sent", BlockData::Missing { block, missing: SetBits(missing) })
            }
            BlockEvent::Repair(tag) => (
                "narrows:block_repair_sent",
                BlockData::Repair { block: tag.block, place: tag.place, is_parity: tag.is_parity() },
            ),
            BlockEvent::Recovered { block, packets } => {
                ("narrows:block_recovered", BlockData::Recovered { block, packets })
            }
            BlockEvent::GivenUp { block } => ("narrows:block_given_up", BlockData::Over { owner: sender, block }),
            BlockEvent::Forgotten { block } => ("narrows:block_given_up", BlockData::Over { owner: receiver, block }),
        };
        self.put(now, name, None, data);
    }

    fn take_event(&mut self, now: Time, event: &Event) {
        match *event {
            Event::Sent(ref packet) => {
                self.packet(now, "transport:packet_sent", packet, Some(packet.in_flight));
            }
            Event::Received(ref packet) => self.packet(now, "transport:packet_received", packet, None),
            Event::Lost { space, path, number, cause } => {
                let trigger = match cause {
                    LossCause::Reordered => "time_threshold",
                    LossCause::Timeout => "pto_expired",
                    LossCause::Nack => "nack",
                };
                let data = LostData { header: PacketHeader::new(space, number), trigger };
                self.put(now, "recovery:packet_lost", Some(path), data);
            }
            Event::Progress(progress) => {
                let (old, new) = match progress {
                    Establishment::Connected => ("handshake_started", "handshake_complete"),
                    Establishment::Admitted => ("handshake_complete", "handshake_confirmed"),
                };
                self.is_wanted |= progress == Establishment::Admitted;
                let data = StateData { old: Some(old), new };
                self.put(now, "connectivity:connection_state_updated", None, data);
            }
            Event::Parameters { ours, theirs } => {
                for (owner, of) in [("local", ours), ("remote", theirs)] {
                    self.put(now, "transport:parameters_set", None, ParametersData::new(owner, of));
                }
            }
            Event::Metrics { path, ref metrics, law } => self.metrics(now, path, metrics, law),
            Event::PacketSize { path, old, new, is_done } => {
                self.put(now, "connectivity:mtu_updated", Some(path), SizeData { old, new, done: is_done });
            }
            Event::Path { path, four_tuple, change } => {
                let data = PathData {
                    state: state_of(change),
                    remote: four_tuple.remote.to_string(),
                    socket: four_tuple.socket,
                };
                self.put(now, "narrows:path_updated", Some(path), data);
            }
            Event::Keys { space, updates, cause } => {
                let (names, trigger) = keys_of(space, cause);
                let key_phase = (space == proto::observe::Space::Data).then_some(updates);
                for key_type in names {
                    let data = KeyData { key_type, key_phase, trigger };
                    self.put(now, "security:key_updated", None, data);
                }
            }
            Event::Block(event) => self.block(now, event),
            Event::Closed(closed) => {
                self.put(now, "connectivity:connection_closed", None, ClosedData::new(closed));
            }
            _ => {}
        }
    }
}

/// A connection's handle of its log.
pub(crate) struct LogHandle {
    pub(crate) log: Arc<ConnectionLog>,
    pub(crate) wakeup: Arc<WriterWakeup>,
}

impl Observer for LogHandle {
    fn on_event(&self, now: Time, event: &Event) {
        let mut waiting = self.log.lock();
        let before = waiting.to_write();
        waiting.take_event(now, event);
        let after = waiting.to_write();
        drop(waiting);
        let is_many = before < MANY && after >= MANY;
        if is_many || (before == 0 && after > 0) {
            self.wakeup.notify(if is_many { Urgency::AtOnce } else { Urgency::Soon });
        }
    }
}

impl Drop for LogHandle {
    fn drop(&mut self) {
        let mut waiting = self.log.lock();
        waiting.put_gap();
        waiting.is_over = true;
        drop(waiting);
        self.wakeup.notify(Urgency::Soon);
    }
}
