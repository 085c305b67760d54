//! UDP socket with the kernel's software timestamps of both directions (`SO_TIMESTAMPING`,
//! Documentation/networking/timestamping.rst), as readings of `CLOCK_MONOTONIC_RAW`.
//!
//! Receive timestamps arrive with the datagrams. The kernel turns them on a short time after it is asked to, so the first
//! datagrams may have none. Transmit timestamps arrive in the socket's error queue, with the number of the datagram among
//! those that asked for one. A failed call may have used a number or not, so a timestamp must lie between the call and its
//! arrival in the queue; where it does not, numbers start again.
//!
//! Timestamps of the NIC are not used.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use serde::Serialize;

use crate::host_clock::raw_ns;
use crate::real_time::{ClockPair, Continuity, RealTimeMap};
use crate::sys::{self, RECEIVE_BATCH, ReceiveBuffers, Received, SocketQueue, TransmitStamp};

/// Maximum number of entries of a queue in one batch: the caller's timers are not delayed for long.
const MAX_BATCH: usize = 256;

/// Maximum number of datagrams that wait for a transmit timestamp.
const MAX_PENDING: usize = 1_024;

/// Consecutive datagrams without a timestamp after which numbers start again.
const MAX_MISSED: u32 = 8;

/// Time for which a transmit timestamp is awaited, in nanoseconds.
const PATIENCE: i64 = 1_000_000_000;

/// Error of a timestamp's conversion that is not a contradiction, in nanoseconds.
const CONVERSION_ERROR: i64 = 5_000;

/// A datagram with its receive timestamp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddr,
    pub(crate) bytes: Vec<u8>,
    /// By `CLOCK_MONOTONIC_RAW`.
    pub(crate) received: i64,
}

/// A datagram's transmit timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent<T> {
    pub(crate) token: T,
    /// By `CLOCK_MONOTONIC_RAW`.
    pub(crate) at: i64,
}

/// Queues that have entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadyQueues {
    /// Transmit timestamps.
    pub(crate) stamps: bool,
    /// Datagrams.
    pub(crate) datagrams: bool,
}

impl ReadyQueues {
    /// Both, as far as is known.
    pub(crate) const ALL: Self = Self { stamps: true, datagrams: true };
}

/// Contents of both queues.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Batch<T> {
    pub(crate) sent: Vec<Sent<T>>,
    pub(crate) datagrams: Vec<Datagram>,
    /// A step of `CLOCK_REALTIME` that discarded all timestamps of the batch, in nanoseconds.
    pub(crate) real_time_step: Option<i64>,
}

/// Counters of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct SocketCounters {
    /// Datagrams sent.
    pub sent: u64,
    /// Calls that failed.
    pub send_errors: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams without a usable receive timestamp.
    pub unstamped: u64,
    /// Transmit timestamps.
    pub transmit_stamps: u64,
    /// Transmit timestamps that did not arrive or were not usable.
    pub missing_transmit_stamps: u64,
    /// Restarts of the numbers of transmit timestamps.
    pub resets: u64,
    /// Calls to turn timestamps on again that failed: without timestamps members lose contact.
    pub timestamp_errors: u64,
    /// Steps of `CLOCK_REALTIME`, and changes of its rate, which discarded timestamps.
    pub system_clock_steps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pending<T> {
    id: u32,
    token: T,
    /// Reading of `CLOCK_MONOTONIC_RAW` before the call.
    called: i64,
}

/// A UDP socket with timestamps. A token identifies a datagram with a transmit timestamp.
#[derive(Debug)]
pub(crate) struct StampedSocket<T> {
    socket: UdpSocket,
    next_id: u32,
    pending: VecDeque<Pending<T>>,
    missed: u32,
    real_time: RealTimeMap,
    buffers: ReceiveBuffers,
    pub(crate) counters: SocketCounters,
}

impl<T: Copy> StampedSocket<T> {
    /// Binds the socket and turns timestamps on.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        sys::enable_timestamps(socket.as_fd())?;
        let counters = SocketCounters::default();
        let (pending, real_time, buffers) = (VecDeque::new(), RealTimeMap::default(), ReceiveBuffers::new());
        Ok(Self { socket, next_id: 0, pending, missed: 0, real_time, buffers, counters })
    }

    /// Returns the descriptor, which is readable if there are datagrams, and in error if there are transmit timestamps.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Returns two pairs of readings that show the rate of `CLOCK_REALTIME`; see [`RealTimeMap::ends`].
    pub(crate) fn real_time_ends(&self) -> Option<[ClockPair; 2]> {
        self.real_time.ends()
    }

    /// Sends a datagram; with a token also its transmit timestamp is wanted. A full queue and an unreachable network count
    /// as losses.
    pub(crate) fn send(&mut self, to: SocketAddr, bytes: &[u8], token: Option<T>) {
        let stamp = if token.is_some() { TransmitStamp::Wanted } else { TransmitStamp::Unwanted };
        let called = raw_ns();
        if sys::send(self.socket.as_fd(), to, bytes, stamp).is_err() {
            self.counters.send_errors += 1;
            if token.is_some() {
                self.reset();
            }
            return;
        }
        self.counters.sent += 1;
        if let Some(token) = token {
            if self.pending.len() >= MAX_PENDING {
                self.pending.pop_front();
            }
            self.pending.push_back(Pending { id: self.next_id, token, called });
            self.next_id = self.next_id.wrapping_add(1);
        }
    }

    /// Lets the numbers of transmit timestamps begin at 0 again.
    fn reset(&mut self) {
        self.counters.resets += 1;
        self.counters.missing_transmit_stamps += self.pending.len() as u64;
        self.pending.clear();
        (self.next_id, self.missed) = (0, 0);
        if sys::enable_timestamps(self.socket.as_fd()).is_err() {
            self.counters.timestamp_errors += 1;
        }
    }

    /// Discards the relation of the clocks, after a suspend.
    pub(crate) fn discard_real_time(&mut self) {
        self.real_time.clear();
    }

    /// Reads the clocks before a batch, so that its timestamps lie between two pairs.
    pub(crate) fn begin(&mut self) -> Option<i64> {
        let step = ClockPair::read().map(|pair| self.real_time.push(pair));
        match step {
            Some(Continuity::Stepped(ns)) => {
                self.counters.system_clock_steps += 1;
                // All that is in the queues may be from before the step.
                self.drain();
                Some(ns)
            }
            _ => None,
        }
    }

    /// Takes what is in the queues that are ready.
    ///
    /// # Errors
    /// If the socket fails.
    pub(crate) fn collect(&mut self, ready: ReadyQueues) -> io::Result<Batch<T>> {
        let (mut stamps, mut datagrams) = (Vec::new(), Vec::new());
        while ready.stamps && stamps.len() < MAX_BATCH {
            let entries = self.next(SocketQueue::Errors)?;
            stamps.extend_from_slice(&entries);
            if entries.len() < RECEIVE_BATCH {
                break;
            }
        }
        // An error of the socket itself is taken with the datagrams.
        let datagrams_ready = ready.datagrams || ready.stamps && stamps.is_empty();
        while datagrams_ready && datagrams.len() < MAX_BATCH {
            let entries = self.next(SocketQueue::Datagrams)?;
            self.counters.received += entries.len() as u64;
            for (index, entry) in entries.iter().enumerate() {
                datagrams.push((*entry, self.buffers.bytes(index, entry).unwrap_or_default().to_vec()));
            }
            if entries.len() < RECEIVE_BATCH {
                break;
            }
        }
        let mut batch = Batch { sent: Vec::new(), datagrams: Vec::new(), real_time_step: None };
        if stamps.is_empty() && datagrams.is_empty() {
            return Ok(batch);
        }
        let continuity = ClockPair::read().map(|pair| self.real_time.push(pair));
        if let Some(Continuity::Stepped(ns)) = continuity {
            self.counters.system_clock_steps += 1;
            batch.real_time_step = Some(ns);
        }
        let now = raw_ns();
        for entry in stamps {
            let at = entry.stamp.and_then(|stamp| self.real_time.raw_at(stamp));
            if let Some(id) = entry.sent_id
                && let Some(sent) = self.match_stamp(id, at, now)
            {
                batch.sent.push(sent);
            }
        }
        for (entry, bytes) in datagrams {
            let received = entry.stamp.and_then(|stamp| self.real_time.raw_at(stamp));
            match (received, entry.from) {
                (Some(received), Some(from)) => batch.datagrams.push(Datagram { from, bytes, received }),
                _ => self.counters.unstamped += 1,
            }
        }
        self.forget(now);
        Ok(batch)
    }

    /// Discards the contents of both queues.
    fn drain(&mut self) {
        for queue in [SocketQueue::Errors, SocketQueue::Datagrams] {
            for _ in 0..MAX_BATCH / RECEIVE_BATCH {
                let count = self.next(queue).map_or(0, |entries| entries.len());
                if queue == SocketQueue::Datagrams {
                    self.counters.received += count as u64;
                    self.counters.unstamped += count as u64;
                }
                if count < RECEIVE_BATCH {
                    break;
                }
            }
        }
        self.counters.missing_transmit_stamps += self.pending.len() as u64;
        self.pending.clear();
    }

    fn next(&mut self, queue: SocketQueue) -> io::Result<Vec<Received>> {
        match sys::receive(self.socket.as_fd(), queue, &mut self.buffers) {
            // Reports of the network, such as an unreachable port, and signals.
            Err(error) if is_transient(&error) => Ok(Vec::new()),
            other => other,
        }
    }

    /// Returns the datagram of a transmit timestamp, if it is awaited and possible.
    fn match_stamp(&mut self, id: u32, at: Option<i64>, now: i64) -> Option<Sent<T>> {
        let index = self.pending.iter().position(|pending| pending.id == id)?;
        let pending = self.pending.remove(index)?;
        let Some(at) = at else {
            self.counters.missing_transmit_stamps += 1;
            return None;
        };
        if at < pending.called - CONVERSION_ERROR || at > now + CONVERSION_ERROR {
            // It belongs to another datagram.
            self.counters.missing_transmit_stamps += 1;
            self.reset();
            return None;
        }
        self.counters.transmit_stamps += 1;
        self.missed = 0;
        Some(Sent { token: pending.token, at })
    }

    /// Stops waiting for transmit timestamps that have not arrived.
    fn forget(&mut self, now: i64) {
        while self.pending.pop_front_if(|pending| now.saturating_sub(pending.called) > PATIENCE).is_some() {
            self.counters.missing_transmit_stamps += 1;
            self.missed += 1;
        }
        if self.missed >= MAX_MISSED {
            self.reset();
        }
    }
}

/// Returns whether an error is one of the network or of a moment, and not of the socket.
fn is_transient(error: &io::Error) -> bool {
    let of_socket = [libc::EBADF, libc::ENOTSOCK, libc::EFAULT, libc::EINVAL, libc::ENOSYS, libc::EOPNOTSUPP];
    error.raw_os_error().is_some_and(|code| !of_socket.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Two sockets on the loopback that have exchanged datagrams until timestamps are on; none where the kernel refuses them.
    fn pair(host: &str) -> Option<[StampedSocket<u32>; 2]> {
        let bound = [host, host].map(|host| StampedSocket::bind(SocketAddr::new(host.parse().unwrap(), 0)));
        let [Ok(mut one), Ok(mut other)] = bound else {
            testing::skipped_here("no timestamps, or no such address");
            return None;
        };
        let to = other.socket.local_addr().unwrap();
        testing::eventually(Duration::from_secs(5), "receive timestamps", || {
            other.begin();
            one.send(to, b"warm up", None);
            std::thread::sleep(Duration::from_millis(2));
            !other.collect(ReadyQueues::ALL).unwrap().datagrams.is_empty()
        });
        other.collect(ReadyQueues::ALL).unwrap();
        Some([one, other])
    }

    fn exchange(host: &str) {
        let Some([mut one, mut other]) = pair(host) else { return };
        let to = other.socket.local_addr().unwrap();
        for token in 0..50 {
            one.begin();
            other.begin();
            // Datagrams without a timestamp use no number.
            one.send(to, b"other", None);
            let before = raw_ns();
            one.send(to, b"datagram", Some(token));
            let mut sent = Vec::new();
            testing::eventually(Duration::from_secs(5), "a transmit timestamp", || {
                sent.extend(one.collect(ReadyQueues::ALL).unwrap().sent);
                !sent.is_empty()
            });
            let batch = other.collect(ReadyQueues::ALL).unwrap();
            let after = raw_ns();
            assert_eq!((sent.len(), sent[0].token), (1, token));
            assert_eq!(batch.datagrams.len(), 2, "{token}");
            let received = &batch.datagrams[1];
            assert_eq!((&received.bytes[..], received.from), (&b"datagram"[..], one.socket.local_addr().unwrap()));
            let order = [before - 2_000, sent[0].at, received.received + 2_000, after + 4_000];
            assert!(order.is_sorted(), "{order:?}");
        }
        assert_eq!((one.counters.transmit_stamps, one.counters.resets), (50, 0));
    }

    #[test]
    fn timestamps_over_ipv4() {
        exchange("127.0.0.1");
    }

    #[test]
    fn timestamps_over_ipv6() {
        exchange("::1");
    }

    /// A failed call may use a number or not; timestamps are assigned rightly in both cases.
    #[test]
    fn timestamps_after_failed_calls() {
        let Some([mut one, mut other]) = pair("127.0.0.1") else { return };
        let to = other.socket.local_addr().unwrap();
        for token in 0..20u32 {
            one.begin();
            // Too large for UDP.
            one.send(to, &vec![0; 70_000], Some(1_000 + token));
            let before = raw_ns();
            one.send(to, b"x", Some(token));
            let mut sent = Vec::new();
            testing::eventually(Duration::from_secs(5), "a transmit timestamp", || {
                sent.extend(one.collect(ReadyQueues::ALL).unwrap().sent);
                !sent.is_empty()
            });
            assert_eq!(sent[0].token, token);
            assert!((before - 2_000..raw_ns() + 2_000).contains(&sent[0].at));
            other.collect(ReadyQueues::ALL).unwrap();
        }
        assert_eq!(one.counters.send_errors, 20);
    }

    #[test]
    fn wrong_numbers_are_noticed() {
        let Some([mut one, other]) = pair("127.0.0.1") else { return };
        let to = other.socket.local_addr().unwrap();
        // As if a call had used a number without the socket's knowledge.
        one.next_id += 1;
        let mut right = 0;
        for token in 0..40 {
            one.begin();
            let before = raw_ns();
            one.send(to, b"x", Some(token));
            one.send(to, b"y", Some(token + 100));
            std::thread::sleep(Duration::from_micros(300));
            for sent in one.collect(ReadyQueues::ALL).unwrap().sent {
                // The second one's timestamp is never taken for the first one's.
                assert!(sent.at > before - CONVERSION_ERROR, "{sent:?}");
                right += u32::from([token, token + 100].contains(&sent.token));
            }
        }
        assert!(right > 0, "{:?}", one.counters);
    }

    #[test]
    fn steps_of_the_system_clock_discard_timestamps() {
        let Some([mut one, mut other]) = pair("127.0.0.1") else { return };
        let to = other.socket.local_addr().unwrap();
        other.begin();
        one.send(to, b"before", None);
        // As if the clock had been a second ahead until now.
        let pair = ClockPair::read().unwrap();
        other.real_time.clear();
        other.real_time.push(ClockPair { raw: pair.raw - 1_000_000, real: pair.real + 999_000_000, ..pair });
        assert!(other.begin().is_some_and(|step| (step + 1_000_000_000).abs() < 10_000));
        assert!(other.collect(ReadyQueues::ALL).unwrap().datagrams.is_empty());
        other.begin();
        one.send(to, b"after", None);
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(other.collect(ReadyQueues::ALL).unwrap().datagrams.len(), 1);
    }
}
