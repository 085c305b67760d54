//! Samples of every TCP socket of every host, through the kernel's `inet_diag`: of the scenario's flows and of any
//! program.
//!
//! A sample has the values of `ss -ti`, and the state of the socket's law if the law is ours. The kernel also notifies of
//! destroyed sockets, so the last state of a connection is known even if it lived between two samples.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use experiment::MAX_SAMPLES;
use fabric::HostId;
use inet_diag::{DestroyedSockets, DiagSocket, DumpRequest, SockDiag};
use units::{Span, Time};

use crate::clock::Clock;
use crate::error::Error;
use crate::law_state::{LawReading, LawStateReader};
use crate::namespace::HostNamespaces;
use crate::traffic::MIN_INTERVAL;

/// A socket at one time.
#[derive(Clone, PartialEq, Debug)]
pub struct SocketSample {
    /// Time; the same for all samples of one pass over the hosts.
    pub time: Time,
    /// The socket's host.
    pub host: HostId,
    /// The socket, without its BPF storage.
    pub socket: DiagSocket,
    /// State of its law.
    pub law: Option<LawReading>,
    /// Set if the kernel has destroyed the socket.
    pub last: bool,
}

/// Samples in order of time.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct SocketSamples {
    /// The samples.
    pub rows: Vec<SocketSample>,
    /// The kernel's reason for not listing the laws' state, if it refused.
    pub law_state_refused: Option<String>,
    /// Set if there were more samples than are kept.
    pub truncated: bool,
}

/// Samples all hosts, on a thread of its own, until it is stopped.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<SocketSamples>>,
}

/// The sockets of one host.
struct HostSockets {
    host: HostId,
    current: SockDiag,
    destroyed: DestroyedSockets,
}

impl Sampler {
    /// Starts the thread. Sockets that `keep` rejects are left out. `interval` is at least [`MIN_INTERVAL`]. If the
    /// kernel refuses to list the state that `laws` decodes, sampling goes on without it and
    /// [`SocketSamples::law_state_refused`] returns the reason.
    ///
    /// # Errors
    /// If the kernel has no `inet_diag`, refuses to list sockets, or no thread can be started.
    pub fn start(
        hosts: &HostNamespaces,
        clock: Clock,
        interval: Span,
        keep: impl Fn(&DiagSocket) -> bool + Send + 'static,
        mut laws: Option<Box<dyn LawStateReader>>,
    ) -> Result<Self, Error> {
        let mut opened = Vec::new();
        for (host, _) in hosts.all() {
            opened.push(hosts.enter(host, || HostSockets::open(host))??);
        }
        // Found out now, not at the first sample.
        let mut law_state_refused = None;
        for sockets in &mut opened {
            match sockets.current.dump(&request(laws.as_deref()), |_| {}) {
                Err(error @ inet_diag::Error::StorageRefused(_)) => {
                    law_state_refused = Some(error.to_string());
                    laws = None;
                    sockets.current.dump(&request(None), |_| {}).map(drop)?;
                }
                other => drop(other?),
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let interval = interval.max(MIN_INTERVAL);
        let thread = std::thread::Builder::new()
            .name("sampler".into())
            .spawn(move || {
                let samples = sample(&mut opened, clock, interval, &keep, laws.as_deref(), &stopped);
                SocketSamples { law_state_refused, ..samples }
            })
            .map_err(Error::system("start the sampler's thread"))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Takes the last samples and ends.
    pub fn stop(mut self) -> SocketSamples {
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

fn request(laws: Option<&dyn LawStateReader>) -> DumpRequest<'_> {
    DumpRequest::connections().with_storages(laws.into_iter().flat_map(LawStateReader::maps))
}

fn sample(
    hosts: &mut [HostSockets],
    clock: Clock,
    interval: Span,
    keep: &dyn Fn(&DiagSocket) -> bool,
    laws: Option<&dyn LawStateReader>,
    stop: &AtomicBool,
) -> SocketSamples {
    let mut samples = SocketSamples::default();
    let request = request(laws);
    let mut next = clock.now();
    loop {
        // Read first: a run that is stopped now is sampled once more.
        let last = stop.load(Ordering::Relaxed);
        let time = clock.now();
        for host in &mut *hosts {
            host.take(time, &request, &mut |mut row| {
                if !keep(&row.socket) {
                    return;
                }
                if samples.rows.len() >= MAX_SAMPLES {
                    samples.truncated = true;
                } else {
                    row.law = laws.and_then(|laws| laws.decode(&row.socket));
                    row.socket.storages = Vec::new();
                    samples.rows.push(row);
                }
            });
        }
        if last {
            return samples;
        }
        // Missed times are left out.
        while next <= clock.now() {
            next += interval;
        }
        std::thread::sleep(until(clock, next));
    }
}

fn until(clock: Clock, time: Time) -> std::time::Duration {
    std::time::Duration::from_nanos(time.since(clock.now()).unsigned_ps() / 1_000)
}

impl HostSockets {
    /// Opens them in the calling thread's network namespace.
    fn open(host: HostId) -> Result<Self, Error> {
        Ok(Self { host, current: SockDiag::open()?, destroyed: DestroyedSockets::open()? })
    }

    /// Samples all current sockets, then those destroyed since the last call.
    fn take(&mut self, time: Time, request: &DumpRequest<'_>, row: &mut dyn FnMut(SocketSample)) {
        let host = self.host;
        let mut sample = |socket, last| row(SocketSample { time, host, socket, law: None, last });
        // A dump that fails is a missing sample.
        let _ = self.current.dump(request, |socket| sample(socket, false));
        self.destroyed.drain(|socket| sample(socket, true));
    }
}
