//! The router: reads the packets that hosts send, passes them through the ports of their path, and writes them to their
//! destination.

mod outcome;
mod worker;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use experiment::SeriesConfig;
use fabric::{LinkId, Network, Routes};
use units::Span;

use crate::clock::Clock;
use crate::namespace::{HostNamespaces, inside};
use crate::pcapng::Captures;
use crate::pressure::ROUTER;
use crate::{Error, tun};
pub use outcome::RouterOutcome;
use router::{Addresses, Router, RouterInputs, RouterTime, RunStart};
use worker::{Output, Stalls, Worker};

/// Default time for which segments of one packet are held to be delivered together, as a NIC's receive coalescing does.
pub const COALESCE: Span = Span::from_us(100);

/// Configuration of a router.
#[derive(Clone, Debug)]
pub struct RouterConfig<'a> {
    /// The network with the created hosts.
    pub network: &'a Network,
    /// Its routes.
    pub routes: &'a Routes,
    /// Marks, losses and the choice among equal paths depend on this.
    pub seed: u64,
    /// Time for which segments of one packet are held to be delivered together; usually [`COALESCE`].
    pub coalesce: Span,
    /// True if consecutive packets that a host sent one by one are also delivered together.
    pub join: bool,
    /// Ports with queues to sample, in times of the run; the router does not sample flows.
    pub series: SeriesConfig,
    /// Ports to capture: departing packets are written to these files, as pcapng.
    pub pcap: Vec<(LinkId, PathBuf)>,
    /// True to request real-time scheduling and locked memory. A refusal is no error.
    pub real_time: bool,
}

/// A router at work. Stopped when dropped.
#[derive(Debug)]
pub struct Running {
    clock: Clock,
    run_start: RunStart,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<RouterOutcome, Error>>>,
    namespaces: Vec<File>,
    drops_before: u64,
}

impl Running {
    /// Starts the run. Returns its clock, by which failures, samples and flows have their times. Before, the network is without
    /// failures and nothing is sampled. A second call returns the same clock.
    pub fn begin(&self) -> Clock {
        let zero = *self.run_start.get_or_init(|| self.clock.now());
        self.clock.starting_at(zero)
    }

    /// Stops it. Packets still on their way are lost.
    ///
    /// # Errors
    /// If its thread has ended before, or a capture could not be written.
    pub fn stop(mut self) -> Result<RouterOutcome, Error> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or(Error::RouterDied)?;
        let mut outcome = thread.join().map_err(|_| Error::RouterDied)??;
        outcome.device_drops = device_drops(&self.namespaces)?.saturating_sub(self.drops_before);
        outcome.bottleneck = outcome::bottleneck(&outcome);
        Ok(outcome)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts a router between hosts.
///
/// # Errors
/// When a device or a file cannot be opened, or no thread started.
pub fn start(hosts: &HostNamespaces, config: &RouterConfig) -> Result<Running, Error> {
    let tuns = hosts.all().map(|(host, it)| Ok((host, it.tun.try_clone()?))).collect::<Result<_, Error>>()?;
    let namespaces = hosts.all().map(|(_, it)| it.namespace_file()).collect::<Result<Vec<_>, _>>()?;
    let drops_before = device_drops(&namespaces)?;
    let captures = Captures::start(config.network, &config.pcap)?;
    let clock = Clock::start();
    let stop = Arc::new(AtomicBool::new(false));
    let run_start = RunStart::default();
    let router = Router::new(&RouterInputs {
        network: config.network,
        routes: config.routes,
        addresses: &Addresses::new(hosts.plan()),
        seed: config.seed,
        coalesce: config.coalesce,
        join: config.join,
        series: &config.series,
        watched: captures.as_ref().map_or(&[], Captures::links),
        mtu: hosts.mtu(),
        run_start: &run_start,
        time: RouterTime::Real,
    });
    let output = Output::new(clock, clock.realtime_ns, tuns, captures);
    let worker =
        Worker { clock, stop: stop.clone(), router, output, real_time: config.real_time, stalls: Stalls::default() };
    let thread = std::thread::Builder::new()
        .name(ROUTER.into())
        .spawn(|| worker.run())
        .map_err(Error::system("start the router's thread"))?;
    Ok(Running { clock, run_start, stop, thread: Some(thread), namespaces, drops_before })
}

/// Packets that the hosts' devices have dropped on their way to the router.
fn device_drops(namespaces: &[File]) -> Result<u64, Error> {
    namespaces.iter().map(|it| inside(it, tun::packets_dropped)).sum()
}
