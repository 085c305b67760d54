//! Every TCP socket of every host, sampled through the kernel's socket monitor: flows of ours and of any program.
//!
//! A sample is what `ss -ti` shows. The kernel also tells of sockets as they go (`SKNLGRP_INET_TCP_DESTROY`), so that
//! the last word on a connection is known even if it lived between two samples.

mod message;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use fabric::HostId;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, socket,
};
use units::{Span, Time};

use crate::clock::Clock;
use crate::error::Error;
use crate::namespace::Hosts;
use crate::socket_calls::set_option;
use crate::traffic::{LEAST_INTERVAL, MOST_SAMPLES};
use crate::witness::{Reading, Witness};
use message::Message;

pub use message::Socket;

/// For the fuzz targets: how many messages are in what the kernel answered.
pub(crate) fn count_messages(bytes: &[u8]) -> usize {
    message::messages(bytes).count()
}

/// The kernel's groups of messages on TCP sockets that go, for IPv4 and for IPv6.
const DESTROYED: [i32; 2] = [1, 3];

/// A socket at one time.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// When; all samples that were taken together have the same time.
    pub time: Time,
    /// Whose.
    pub host: HostId,
    /// What the kernel said.
    pub socket: Socket,
    /// Whether it is the kernel's last word on it.
    pub last: bool,
}

/// What was sampled, in order of time.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Samples {
    /// The samples.
    pub rows: Vec<Sample>,
    /// What the laws knew at these times.
    pub readings: Vec<(Time, Reading)>,
    /// Whether there would have been more than are kept.
    pub cut_short: bool,
}

/// Samples all hosts, on a thread of its own, until it is stopped.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Samples>>,
}

/// The monitor of one host.
struct Monitor {
    host: HostId,
    asked: OwnedFd,
    told: OwnedFd,
}

impl Sampler {
    /// Begins. Sockets that `keep` does not want are left out; `witness` is asked what the laws know. `interval` is at least [`LEAST_INTERVAL`].
    ///
    /// # Errors
    /// When the kernel has no socket monitor, or no thread can be started.
    pub fn start(
        hosts: &Hosts,
        clock: Clock,
        interval: Span,
        keep: impl Fn(&Socket) -> bool + Send + 'static,
        witness: Option<Box<dyn Witness>>,
    ) -> Result<Self, Error> {
        let monitor = |host| {
            let host = HostId(host as u32);
            let failed = || Error::system("ask the kernel for its sockets (inet_diag)");
            hosts.enter(host, || Monitor::open(host))?.map_err(failed())
        };
        let monitors = (0..hosts.plan().len()).map(monitor).collect::<Result<Vec<_>, _>>()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let interval = interval.max(LEAST_INTERVAL);
        let thread = std::thread::Builder::new()
            .name("sampler".into())
            .spawn(move || sample(&monitors, clock, interval, &keep, witness, &stopped))
            .map_err(Error::system("start the sampler's thread"))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Takes the last samples and ends.
    pub fn stop(mut self) -> Samples {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn sample(
    monitors: &[Monitor],
    clock: Clock,
    interval: Span,
    keep: &dyn Fn(&Socket) -> bool,
    mut witness: Option<Box<dyn Witness>>,
    stop: &AtomicBool,
) -> Samples {
    let mut samples = Samples::default();
    let mut buffer = vec![0; 64 << 10];
    let mut next = clock.now();
    loop {
        // Looked at first: what is stopped now is sampled once more.
        let last = stop.load(Ordering::Relaxed);
        let time = clock.now();
        for monitor in monitors {
            monitor.take(time, &mut buffer, &mut |row| {
                if !keep(&row.socket) {
                    return;
                }
                if samples.rows.len() >= MOST_SAMPLES {
                    samples.cut_short = true;
                } else {
                    samples.rows.push(row);
                }
            });
        }
        if let Some(witness) = witness.as_mut().filter(|_| samples.readings.len() < MOST_SAMPLES) {
            samples.readings.extend(witness.readings().into_iter().map(|reading| (time, reading)));
        }
        if last {
            return samples;
        }
        // Times that were missed are left out.
        while next <= clock.now() {
            next += interval;
        }
        std::thread::sleep(until(clock, next));
    }
}

fn until(clock: Clock, time: Time) -> std::time::Duration {
    std::time::Duration::from_nanos(time.since(clock.now()).unsigned_ps() / 1_000)
}

impl Monitor {
    /// In the namespace that the calling thread is in.
    fn open(host: HostId) -> io::Result<Self> {
        let open = || -> io::Result<OwnedFd> {
            let flags = SockFlag::SOCK_CLOEXEC;
            let made = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkSockDiag)?;
            Ok(made)
        };
        let (asked, told) = (open()?, open()?);
        // A socket without an address is told nothing.
        bind(told.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        for group in DESTROYED {
            set_option(told.as_fd(), libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group)?;
        }
        let monitor = Self { host, asked, told };
        // Found out now whether the kernel can.
        let mut failed = None;
        monitor.ask(false, &mut vec![0; 64 << 10], &mut |message| {
            if let Message::Failed(code) = message {
                failed = Some(io::Error::from_raw_os_error(code));
            }
        })?;
        failed.map_or(Ok(monitor), Err)
    }

    /// All sockets there are, then those that went since it was last asked.
    fn take(&self, time: Time, buffer: &mut [u8], row: &mut dyn FnMut(Sample)) {
        let host = self.host;
        let mut keep = |message, last| {
            if let Message::Socket(socket) = message {
                row(Sample { time, host, socket: *socket, last });
            }
        };
        for ipv6 in [false, true] {
            // A dump that fails is a sample that is missing.
            let _ = self.ask(ipv6, buffer, &mut |message| keep(message, false));
        }
        while let Ok(length) = recv(self.told.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
            message::messages(&buffer[..length]).for_each(|message| keep(message, true));
        }
    }

    fn ask(&self, ipv6: bool, buffer: &mut [u8], each: &mut dyn FnMut(Message)) -> io::Result<()> {
        send(self.asked.as_raw_fd(), &message::request(ipv6), MsgFlags::empty())?;
        loop {
            let length = recv(self.asked.as_raw_fd(), buffer, MsgFlags::empty())?;
            for message in message::messages(&buffer[..length]) {
                let end = matches!(message, Message::Done | Message::Failed(_));
                each(message);
                if end {
                    return Ok(());
                }
            }
        }
    }
}
