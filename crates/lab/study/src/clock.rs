//! Measured cost of work. The only module of a study that reads a clock; no result depends on it.

use std::time::{Duration, Instant, SystemTime};

use nix::sys::resource::{UsageWho, getrusage};
use results::EngineTimes;

/// Stopwatch that starts when it is created.
#[derive(Debug)]
pub struct Stopwatch {
    started_at: Instant,
    usage_who: UsageWho,
    cpu: Duration,
}

impl Stopwatch {
    /// Measures the processor time of all threads of the process.
    pub fn start() -> Self {
        Self::of(UsageWho::RUSAGE_SELF)
    }

    /// Measures the processor time of this thread only, if the system supports it.
    pub fn of_this_thread() -> Self {
        #[cfg(target_os = "linux")]
        let usage_who = UsageWho::RUSAGE_THREAD;
        #[cfg(not(target_os = "linux"))]
        let usage_who = UsageWho::RUSAGE_SELF;
        Self::of(usage_who)
    }

    #[expect(clippy::disallowed_methods, reason = "measuring is what this is for; no result depends on it")]
    fn of(usage_who: UsageWho) -> Self {
        Self { started_at: Instant::now(), usage_who, cpu: cpu_time(usage_who) }
    }

    /// Returns the wall time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// Returns wall and processor time since the start, and the peak memory of the process.
    pub fn times(&self) -> EngineTimes {
        EngineTimes {
            wall_s: self.elapsed().as_secs_f64(),
            cpu_s: cpu_time(self.usage_who).saturating_sub(self.cpu).as_secs_f64(),
            peak_rss_bytes: peak_rss_bytes(),
        }
    }
}

/// Returns the seconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "when something was done, and when a ticket ends; no result depends on it"
)]
pub fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn cpu_time(usage_who: UsageWho) -> Duration {
    let Ok(usage) = getrusage(usage_who) else { return Duration::ZERO };
    [usage.user_time(), usage.system_time()]
        .iter()
        .map(|time| Duration::from_micros((time.tv_sec() * 1_000_000 + time.tv_usec()).unsigned_abs()))
        .sum()
}

fn peak_rss_bytes() -> u64 {
    // Linux and the BSDs count in KiB, macOS in bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.max_rss().unsigned_abs() * unit)
}
