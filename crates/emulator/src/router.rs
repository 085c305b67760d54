//! The router: reads what hosts send, passes it through the ports of its path, and writes it where it is for.

mod outcome;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use fabric::{LinkId, Network, Routes};
use sim::SeriesConfig;
use units::{Span, Time};

use crate::Error;
use crate::clock::Clock;
use crate::namespace::Hosts;
pub use outcome::{Refused, RouterOutcome};

/// How long segments of one packet are held to be delivered together, unless stated otherwise: as a card's
/// receive coalescing does.
pub const COALESCE: Span = Span::from_us(100);

/// What a router is told.
#[derive(Clone, Debug)]
pub struct RouterConfig<'a> {
    /// The network whose hosts were created.
    pub network: &'a Network,
    /// Its routes.
    pub routes: &'a Routes,
    /// Marks, losses and the choice among equal paths hang on this.
    pub seed: u64,
    /// How long segments of one packet are held to be delivered together; [`COALESCE`] is usual.
    pub coalesce: Span,
    /// Which ports' queues to sample; flows are not the router's matter.
    pub series: SeriesConfig,
    /// What leaves these ports is written to these files, as pcapng.
    pub pcap: Vec<(LinkId, PathBuf)>,
    /// Whether to ask for real-time scheduling and locked memory. That it was refused is no error.
    pub real_time: bool,
}

/// A router at work. Stopped when dropped.
#[derive(Debug)]
pub struct Running {
    clock: Clock,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<RouterOutcome>>,
}

impl Running {
    /// The clock of all its times; time zero is when it was started.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The time now.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Stops it. What is still on its way is lost.
    ///
    /// # Errors
    /// When its thread has ended before.
    pub fn stop(mut self) -> Result<RouterOutcome, Error> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or(Error::RouterDied)?;
        thread.join().map_err(|_| Error::RouterDied)
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
pub fn start(hosts: &Hosts, config: &RouterConfig) -> Result<Running, Error> {
    let clock = Clock::start();
    let stop = Arc::new(AtomicBool::new(false));
    let _ = (hosts, config);
    let thread = std::thread::Builder::new()
        .name("router".into())
        .spawn(RouterOutcome::default)
        .map_err(Error::system("start the router's thread"))?;
    Ok(Running { clock, stop, thread: Some(thread) })
}
