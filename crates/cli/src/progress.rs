//! How far the runs have come: a line that renews itself on a terminal, a plain line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use sim::Progress;
use units::Time;

use crate::clock::Stopwatch;

/// Where the runs of a command show how far they are.
pub(crate) struct Board {
    terminal: Option<MultiProgress>,
    quiet: bool,
    width: usize,
    /// When a plain line was last written.
    spoke: Mutex<Duration>,
    clock: Stopwatch,
}

/// Plain lines come this far apart.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

impl Board {
    pub(crate) fn new(quiet: bool, names: &[String]) -> Self {
        let terminal = (!quiet && std::io::stderr().is_terminal()).then(MultiProgress::new);
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        Self { terminal, quiet, width, spoke: Mutex::new(Duration::ZERO), clock: Stopwatch::start() }
    }

    /// A run begins that ends at `stop_ps` at the latest and has `flows` flows.
    pub(crate) fn run(&self, name: &str, stop_ps: u64, flows: u64) -> RunLine<'_> {
        let bar = self.terminal.as_ref().map(|terminal| {
            let bar = terminal.add(ProgressBar::new(1000));
            let style = ProgressStyle::with_template("{prefix} {wide_bar:.cyan/blue} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(format!("{name:width$}", width = self.width));
            bar
        });
        RunLine { board: self, bar, name: name.to_owned(), stop_ps, flows, clock: Stopwatch::start() }
    }
}

/// One run's line.
pub(crate) struct RunLine<'a> {
    board: &'a Board,
    bar: Option<ProgressBar>,
    name: String,
    stop_ps: u64,
    flows: u64,
    clock: Stopwatch,
}

impl RunLine<'_> {
    /// How far a run on real packets is, of which a second takes a second.
    pub(crate) fn update_real(&self, time_ps: u64, completed: usize) {
        let open = self.flows.saturating_sub(completed as u64);
        let progress = Progress { time: Time::from_ps(time_ps), packet_hops: 0, open };
        let text = || {
            let seconds = |ps: u64| ps as f64 / 1e12;
            let (now, stop) = (seconds(time_ps), seconds(self.stop_ps));
            format!("{now:.1} s of at most {stop:.1} s, {completed} of {} flows done", self.flows)
        };
        self.tell(self.done(&progress), text);
    }

    pub(crate) fn update(&self, progress: &Progress) {
        let wall = self.clock.elapsed().as_secs_f64().max(1e-9);
        let done = self.done(progress);
        let text = || {
            let simulated = progress.time.ps() as f64 / 1e12;
            let left = if done > 0.001 { format!("{:.0} s left", wall / done - wall) } else { "-".into() };
            let (times, than) =
                if simulated < wall { (wall / simulated.max(1e-12), "slower") } else { (simulated / wall, "faster") };
            let rate = progress.packet_hops as f64 / wall / 1e6;
            format!("{:.3} ms simulated, {times:.0} times {than} than real, {rate:.1} Mhop/s, {left}", simulated * 1e3)
        };
        self.tell(done, text);
    }

    fn tell(&self, done: f64, text: impl Fn() -> String) {
        if self.board.quiet {
            return;
        }
        if let Some(bar) = &self.bar {
            bar.set_position((done * 1000.0) as u64);
            bar.set_message(text());
        } else if let Ok(mut spoke) = self.board.spoke.lock() {
            let now = self.board.clock.elapsed();
            if now.saturating_sub(*spoke) >= PLAIN_EVERY {
                *spoke = now;
                crate::exit::tell(&format!("{}: {}", self.name, text()));
            }
        }
    }

    /// The part that is done: by flows or by time, whichever is further.
    fn done(&self, progress: &Progress) -> f64 {
        let by_flows = 1.0 - progress.open as f64 / self.flows.max(1) as f64;
        let by_time = progress.time.ps() as f64 / self.stop_ps.max(1) as f64;
        by_flows.max(by_time).clamp(0.0, 1.0)
    }
}

impl Drop for RunLine<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
