//! The progress of runs: a line that renews itself on a terminal, a plain line now and then elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::RunProgress;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use study::{Line, Stopwatch, SweepObserver};
use units::Time;

use crate::interrupt::{interrupted, listen};

/// Standard error, where the user of a command looks on.
pub(crate) struct Terminal {
    /// Set if progress is not shown.
    pub(crate) quiet: bool,
}

impl SweepObserver for Terminal {
    fn tell(&self, text: &str) {
        crate::exit::print_stderr(text);
    }

    fn interrupted(&self) -> bool {
        interrupted()
    }

    fn listen(&self) {
        listen();
    }

    fn board<'a>(&'a self, names: &[String], kept: usize) -> Box<dyn study::ProgressDisplay + 'a> {
        if kept > 0 && !self.quiet {
            let all = study::count(names.len(), "run");
            self.tell(&format!("{kept} of {all} finished before: kept; --force runs them again"));
        }
        Box::new(RunsDisplay::new(self, names, kept))
    }
}

/// The progress display of a command's runs.
struct RunsDisplay {
    terminal: Option<MultiProgress>,
    /// The bar of all runs together, where there are several.
    total: Option<ProgressBar>,
    quiet: bool,
    width: usize,
    state: Mutex<State>,
    clock: Stopwatch,
}

/// The progress of all runs.
struct State {
    /// The number of runs, and of those among them that an earlier command had finished.
    runs: usize,
    kept: usize,
    started: usize,
    finished: usize,
    /// The part, 0 to 1, that is done of each current run, by the run's number.
    running: BTreeMap<usize, f64>,
    /// The time of the last plain line.
    last_printed: Duration,
}

impl State {
    /// Returns the time left, if the other runs take as long as those so far. None until a fiftieth of a run is done.
    fn left(&self, elapsed: Duration) -> Option<Duration> {
        let done = self.finished as f64 + self.running.values().sum::<f64>();
        let all = self.runs.saturating_sub(self.kept) as f64;
        (done > 0.02).then(|| elapsed.mul_f64((all / done - 1.0).max(0.0)))
    }

    /// `own` is the remaining time of the reporting run: the total is at least as long.
    fn left_in_words(&self, elapsed: Duration, own: Duration) -> String {
        self.left(elapsed).map_or_else(String::new, |left| format!(", about {} left in all", words(left.max(own))))
    }
}

/// A time in its largest usual unit.
pub(crate) fn words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

/// Minimum time between plain lines.
pub(crate) const PLAIN_EVERY: Duration = Duration::from_secs(10);

impl RunsDisplay {
    /// Returns a display for runs of these names. `kept` is the number of runs that were finished before.
    fn new(&Terminal { quiet }: &Terminal, names: &[String], kept: usize) -> Self {
        let terminal = (!quiet && std::io::stderr().is_terminal()).then(MultiProgress::new);
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let runs = names.len();
        let total = terminal.as_ref().filter(|_| runs > 1).map(|terminal| terminal.add(bar(runs as u64)));
        let state =
            State { runs, kept, started: kept, finished: 0, running: BTreeMap::new(), last_printed: Duration::ZERO };
        Self { terminal, total, quiet, width, state: Mutex::new(state), clock: Stopwatch::start() }
    }

    fn begin(&self, name: &str, stop: Time, flows: u64) -> RunLine<'_> {
        let mut state = self.lock();
        state.started += 1;
        let number = state.started;
        let name = if state.runs > 1 { format!("run {number}/{} {name}", state.runs) } else { name.to_owned() };
        state.running.insert(number, 0.0);
        let digits = if state.runs > 1 { 6 + 2 * state.runs.to_string().len() } else { 0 };
        drop(state);
        let bar = self.terminal.as_ref().map(|terminal| {
            let bar = match &self.total {
                Some(total) => terminal.insert_before(total, bar(1000)),
                None => terminal.add(bar(1000)),
            };
            bar.set_prefix(format!("{name:width$}", width = self.width + digits));
            bar
        });
        RunLine { display: self, bar, name, number, stop, flows, clock: Stopwatch::start() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl study::ProgressDisplay for RunsDisplay {
    fn run<'a>(&'a self, name: &str, stop: Time, flows: u64) -> Box<dyn Line + 'a> {
        Box::new(self.begin(name, stop, flows))
    }
}

fn bar(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template("{prefix} {wide_bar:.cyan/blue} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

impl Drop for RunsDisplay {
    fn drop(&mut self) {
        if let Some(total) = &self.total {
            total.finish_and_clear();
        }
    }
}

/// One run's line.
struct RunLine<'a> {
    display: &'a RunsDisplay,
    bar: Option<ProgressBar>,
    name: String,
    number: usize,
    stop: Time,
    flows: u64,
    clock: Stopwatch,
}

impl Line for RunLine<'_> {
    fn update_real(&self, time: Time, completed: usize) {
        let open = self.flows.saturating_sub(completed as u64);
        let progress = RunProgress { time, packet_hops: 0, open };
        let text = || {
            let seconds = |time: Time| time.ps() as f64 / 1e12;
            let (now, stop) = (seconds(time), seconds(self.stop));
            format!("{now:.1} s of at most {stop:.1} s, {completed} of {} flows done", self.flows)
        };
        self.tell(self.done(&progress), text);
    }

    fn update(&self, progress: &RunProgress) {
        let wall = self.clock.elapsed().as_secs_f64().max(1e-9);
        let done = self.done(progress);
        let text = || {
            let simulated = progress.time.ps() as f64 / 1e12;
            let left = self.left(done).map_or_else(|| "-".into(), |left| format!("{:.0} s left", left.as_secs_f64()));
            let (times, than) =
                if simulated < wall { (wall / simulated.max(1e-12), "slower") } else { (simulated / wall, "faster") };
            let rate = progress.packet_hops as f64 / wall / 1e6;
            format!("{:.3} ms simulated, {times:.0} times {than} than real, {rate:.1} Mhop/s, {left}", simulated * 1e3)
        };
        self.tell(done, text);
    }
}

impl RunLine<'_> {
    /// Returns the time left of this run; none until a thousandth is done.
    fn left(&self, done: f64) -> Option<Duration> {
        (done > 0.001).then(|| self.clock.elapsed().mul_f64((1.0 / done - 1.0).max(0.0)))
    }

    fn tell(&self, done: f64, text: impl Fn() -> String) {
        if self.display.quiet {
            return;
        }
        let now = self.display.clock.elapsed();
        let own = self.left(done).unwrap_or_default();
        let mut state = self.display.lock();
        state.running.insert(self.number, done);
        if let Some(bar) = &self.bar {
            if let Some(total) = &self.display.total {
                let completed_runs = state.kept + state.finished;
                total.set_position(completed_runs as u64);
                total.set_message(format!(
                    "{completed_runs} of {} runs done{}",
                    state.runs,
                    state.left_in_words(now, own)
                ));
            }
            drop(state);
            bar.set_position((done * 1000.0) as u64);
            bar.set_message(text());
        } else if now.saturating_sub(state.last_printed) >= PLAIN_EVERY {
            state.last_printed = now;
            let left = if state.runs > 1 { state.left_in_words(now, own) } else { String::new() };
            drop(state);
            crate::exit::print_stderr(&format!("{}: {}{left}", self.name, text()));
        }
    }

    /// The part that is done: by flows or by time, whichever is further.
    fn done(&self, progress: &RunProgress) -> f64 {
        let by_flows = 1.0 - progress.open as f64 / self.flows.max(1) as f64;
        let by_time = progress.time.ps() as f64 / self.stop.ps().max(1) as f64;
        by_flows.max(by_time).clamp(0.0, 1.0)
    }
}

impl Drop for RunLine<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let mut state = self.display.lock();
        state.running.remove(&self.number);
        state.finished += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_covers_all_runs() {
        let names: Vec<String> = (0..60).map(|run| format!("uno,load=0.{run}")).collect();
        let display = RunsDisplay::new(&Terminal { quiet: true }, &names, 20);
        drop(display.begin("kept ones are counted", Time::from_ps(1), 1));
        let line = display.begin("uno,load=0.4", Time::from_ps(1), 1);
        assert_eq!(line.name, "run 22/60 uno,load=0.4");
        let mut state = display.lock();
        assert_eq!((state.finished, state.left(Duration::from_secs(5))), (1, Some(Duration::from_secs(195))));
        // One and a half of the forty that are to do took 30 s: 38.5 take 770 s.
        state.running.insert(22, 0.5);
        assert_eq!(state.left_in_words(Duration::from_secs(30), Duration::ZERO), ", about 12 min left in all");
        assert_eq!(state.left_in_words(Duration::from_secs(30), Duration::from_hours(2)), ", about 2.0 h left in all");
        drop(state);
        let single = RunsDisplay::new(&Terminal { quiet: true }, &names[..1], 0);
        assert_eq!(single.begin("uno", Time::from_ps(1), 1).name, "uno");
        assert_eq!(single.lock().left(Duration::ZERO), Some(Duration::ZERO));
        let new = RunsDisplay::new(&Terminal { quiet: true }, &names, 0);
        assert_eq!((new.lock().left(Duration::from_secs(9)), words(Duration::from_mins(150))), (None, "2.5 h".into()));
    }
}
