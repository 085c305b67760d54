//! Processor pressure of the run. Its hosts are the kernel's TCP on this machine, and TCP without a processor sends as
//! if the network were slower. The router monitors itself (`bottleneck`); this module monitors the rest.
//!
//! Four counters are read before and after the run:
//!
//! - the machine's pressure (`/proc/pressure/cpu`: the time in which a task was runnable but not running);
//! - the same for the run's own control group (`cpu.pressure`);
//! - the run-queue time of each of the run's threads, the router included, and the number of times that it was
//!   scheduled (`schedstat`);
//! - the time that a hypervisor took away (`/proc/stat`).
//!
//! The router adds the time in which it was stopped.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use units::Span;

use crate::sys;

/// The machine's pressure.
const MACHINE: &str = "/proc/pressure/cpu";
/// The name of the router's thread.
pub(crate) const ROUTER: &str = "router";

/// Time that the run waited for processors.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Pressure {
    /// Time for which the run was monitored.
    pub wall: Span,
    /// Time in which any task on the machine waited for a processor; none if the kernel does not report it.
    pub machine: Option<Span>,
    /// The same for the run's own control group.
    pub group: Option<Span>,
    /// Time that one thread of the run waited for a processor: the maximum over its threads, the router excluded.
    pub thread: Span,
    /// The mean of that thread's waits: the delay that hosts add to the packets they send.
    pub thread_mean: Span,
    /// Time that the router's thread waited.
    pub router: Span,
    /// Time that a hypervisor took a processor away, on average over all processors.
    pub cpu_steal: Span,
    /// Time for which the router was stopped, in periods of over 1 ms: it, its process or its machine.
    pub stalled: Span,
}

/// The counters at one time. Differences of two readings are a [`Pressure`].
struct PressureCounters {
    at_ns: i64,
    machine: Option<u64>,
    group: Option<u64>,
    /// By thread: whether it is the router, and its waits.
    threads: BTreeMap<u32, (bool, Waits)>,
    cpu_steal_ns: u64,
}

/// A thread's waits for a processor.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Waits {
    /// All of them together.
    ns: u64,
    /// Number of times that the thread was scheduled.
    slices: u64,
}

impl Waits {
    fn since(self, before: Self) -> Self {
        Self { ns: self.ns.saturating_sub(before.ns), slices: self.slices.saturating_sub(before.slices) }
    }
}

/// A run that is being watched.
pub(crate) struct PressureMonitor(PressureCounters);

impl PressureMonitor {
    /// Begins. Threads that start later count from their start.
    pub(crate) fn start() -> Self {
        Self(PressureCounters::now())
    }

    /// Ends, while the threads are still there.
    pub(crate) fn end(self) -> Pressure {
        between(&self.0, &PressureCounters::now())
    }
}

impl PressureCounters {
    fn now() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let inside = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            if let Some(waits) = waits(&inside("schedstat")) {
                threads.insert(thread, (inside("comm").trim_end() == ROUTER, waits));
            }
        }
        Self {
            at_ns: sys::monotonic_ns() as i64,
            machine: some_total(&text(MACHINE)),
            group: group_file().and_then(|path| some_total(&fs::read_to_string(path).unwrap_or_default())),
            threads,
            cpu_steal_ns: cpu_steal_ns(&text("/proc/stat")).unwrap_or(0),
        }
    }
}

fn between(before: &PressureCounters, after: &PressureCounters) -> Pressure {
    let micros = |before: Option<u64>, after: Option<u64>| {
        Some(span_of_ns(after?.saturating_sub(before?).saturating_mul(1_000)))
    };
    let longest = |router: bool| {
        let of = after.threads.iter().filter(|(_, (is_router, _))| *is_router == router);
        let waits = |(thread, (_, now)): (&u32, &(bool, Waits))| {
            now.since(before.threads.get(thread).map_or(Waits::default(), |(_, then)| *then))
        };
        of.map(waits).max_by_key(|waits| waits.ns).unwrap_or_default()
    };
    let thread = longest(false);
    Pressure {
        wall: Span::from_ns(after.at_ns.saturating_sub(before.at_ns)),
        machine: micros(before.machine, after.machine),
        group: micros(before.group, after.group),
        thread: span_of_ns(thread.ns),
        thread_mean: span_of_ns(thread.ns / thread.slices.max(1)),
        router: span_of_ns(longest(true).ns),
        cpu_steal: span_of_ns(after.cpu_steal_ns.saturating_sub(before.cpu_steal_ns)),
        // The router measures it, and reports it when it ends.
        stalled: Span::ZERO,
    }
}

/// Nanoseconds that the kernel counted, as far as a span holds them: 53 days.
fn span_of_ns(ns: u64) -> Span {
    const MAX: u64 = i64::MAX as u64 / 1_000;
    Span::from_ns(ns.min(MAX) as i64)
}

/// Microseconds of `some` in a file of pressure.
fn some_total(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// Nanoseconds in run queues and how often that ended: the second and the third number of `schedstat`.
fn waits(text: &str) -> Option<Waits> {
    let mut numbers = text.split_whitespace().skip(1).map(str::parse);
    Some(Waits { ns: numbers.next()?.ok()?, slices: numbers.next()?.ok()? })
}

/// Time that a hypervisor took of a processor on average: the eighth number of all processors' line, in ticks of 10 ms.
fn cpu_steal_ns(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("cpu"));
    let ticks: u64 = lines.next()?.split_whitespace().nth(8)?.parse().ok()?;
    Some(ticks.saturating_mul(10_000_000) / (lines.count() as u64).max(1))
}

/// The pressure file of this process's control group, where groups are of version 2.
fn group_file() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let path = PathBuf::from("/sys/fs/cgroup").join(own).join("cpu.pressure");
    path.exists().then_some(path)
}

/// A thread of the hosts may wait for a processor for 1/50 of the run, and for longer if its waits are short.
const THREAD_SHARE: u64 = 50;
/// Limit for short waits. On a quiet machine of two cores waits were 2 to 56 us on average; with one busy process in
/// addition to the run, 68 to 116 us.
const THREAD_MEAN: Span = Span::from_us(60);
/// The router, which has real-time scheduling and should wait for no other task, may wait for 1/200.
const ROUTER_SHARE: u64 = 200;
/// The router may be stopped for 1/200. A process or machine that is stopped once is late for a few packets only, so
/// limits on shares of packets do not detect it.
const STALLED_SHARE: u64 = 200;
/// A hypervisor may take 1/50 of a processor.
const STOLEN_SHARE: u64 = 50;
/// A task in the run's group, or else on the machine, may wait for a processor for half of the run.
const MACHINE_SHARE: u64 = 2;

impl Pressure {
    /// Returns signs that the hosts lacked processor time, one per line; empty within all limits. The shares of the run
    /// are chosen and not measured.
    pub fn caveats(&self) -> Vec<String> {
        let wall = self.wall.unsigned_ps().max(1);
        let share = |span: Span| format!("{:.1} %", span.unsigned_ps() as f64 / wall as f64 * 100.0);
        let over = |span: Span, part: u64| span.unsigned_ps() > wall / part;
        let mut caveats = Vec::new();
        if over(self.thread, THREAD_SHARE) && self.thread_mean > THREAD_MEAN {
            let (share, mean) = (share(self.thread), self.thread_mean);
            caveats
                .push(format!("a thread of the hosts waited for a processor in {share} of the run, {mean} each time"));
        }
        for (span, part, condition) in [
            (Some(self.router), ROUTER_SHARE, "the router waited for a processor in"),
            (Some(self.stalled), STALLED_SHARE, "the emulator stood still for"),
            (Some(self.cpu_steal), STOLEN_SHARE, "the hypervisor took processors away for"),
            (self.group.or(self.machine), MACHINE_SHARE, "processes waited for a processor in"),
        ] {
            if let Some(span) = span.filter(|span| over(*span, part)) {
                caveats.push(format!("{condition} {} of the run", share(span)));
            }
        }
        caveats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_files_are_parsed() {
        let pressure = "some avg10=1.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 total=9\n";
        assert_eq!(some_total(pressure), Some(1_234));
        assert_eq!(some_total(""), None);
        assert_eq!(waits("123 456 7\n"), Some(Waits { ns: 456, slices: 7 }));
        assert_eq!(waits("123 456\n"), None);
        assert_eq!(cpu_steal_ns("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\ncpu1 1\nintr 1\n"), Some(40_000_000));
        assert_eq!(cpu_steal_ns("nothing"), None);
    }

    #[test]
    fn long_waits_are_caveats() {
        let wall = Span::from_ms(1_000);
        assert_eq!(Pressure { wall, ..Pressure::default() }.caveats(), [""; 0]);
        let starved = Pressure {
            wall,
            machine: Some(Span::from_ms(800)),
            group: None,
            thread: Span::from_ms(100),
            thread_mean: Span::from_us(80),
            router: Span::from_ms(10),
            cpu_steal: Span::from_ms(50),
            stalled: Span::from_ms(200),
        };
        let caveats = starved.caveats();
        assert_eq!(
            caveats[0],
            "a thread of the hosts waited for a processor in 10.0 % of the run, 80.000 us each time"
        );
        assert_eq!((caveats.len(), &*caveats[2]), (5, "the emulator stood still for 20.0 % of the run"));
        // Many short waits are not starvation, nor are few long ones.
        let short = Pressure { thread_mean: Span::from_us(60), ..starved.clone() };
        let few = Pressure { thread: Span::from_ms(20), ..starved.clone() };
        assert_eq!((short.caveats(), few.caveats()), (caveats[1..].to_vec(), caveats[1..].to_vec()));
        // The group's own pressure is nearer to the run than the machine's.
        let calm = Pressure { group: Some(Span::ZERO), thread: Span::ZERO, ..starved };
        assert_eq!(calm.caveats().len(), 3);
    }

    /// With more busy threads than processors some thread waits, and that is seen.
    #[test]
    fn busy_machine_is_detected() {
        let monitor = PressureMonitor::start();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let busy = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) * 3;
        let ended = std::thread::scope(|scope| {
            for _ in 0..busy {
                scope.spawn(|| {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(300));
            let ended = monitor.end();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            ended
        });
        if PressureCounters::now().threads.is_empty() {
            eprintln!("SKIPPED busy_machine_is_detected: no schedstat here");
            return;
        }
        assert!(ended.wall >= Span::from_ms(290), "{ended:?}");
        assert!(ended.caveats().iter().any(|caveat| caveat.starts_with("a thread of the hosts waited")), "{ended:?}");
    }
}
