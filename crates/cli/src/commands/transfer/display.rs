//! The progress of a transfer: a line that renews itself on a terminal, a plain line now and then elsewhere; and
//! failures.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use transfer::{ProgressObserver, TransferProgress};

use crate::args::ShowArgs;
use crate::exit::print_stderr;
use crate::interrupt::interrupted;
use crate::peer::quantity::{amount, rate};
use crate::progress::{PLAIN_EVERY, words};
use study::Stopwatch;

/// Notes that are shown; the others are counted.
const MAX_NOTES: usize = 100;
/// The period over which the rate is measured, and its steps.
const RATE_WINDOW: Duration = Duration::from_secs(10);
const RATE_STEP: Duration = Duration::from_millis(250);

/// The progress display of a transfer.
pub(super) struct TransferDisplay {
    bar: Option<ProgressBar>,
    prints: bool,
    pub(super) clock: Stopwatch,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Times and the bytes that had moved then.
    steps: VecDeque<(Duration, u64)>,
    /// The time of the last plain line.
    last_printed: Duration,
    notes: Vec<String>,
    left_out: usize,
}

impl TransferDisplay {
    pub(super) fn new(show: ShowArgs) -> Self {
        let prints = !show.quiet && !show.json;
        let bar = (prints && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template("{wide_bar:.cyan/blue} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, prints, clock: Stopwatch::start(), state: Mutex::default() }
    }

    /// Ends the display. Returns the notes, and prints those that were not shown.
    pub(super) fn end(self) -> (Vec<String>, Stopwatch) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if state.left_out > 0 {
            print_stderr(&format!("and {} more", state.left_out));
        }
        (state.notes, self.clock)
    }
}

/// Bytes moved in the last seconds, and the time that they took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Recent {
    bytes: u64,
    time: Duration,
}

impl State {
    fn recent(&mut self, now: Duration, moved: u64) -> Recent {
        if self.steps.back().is_none_or(|last| now >= last.0 + RATE_STEP) {
            self.steps.push_back((now, moved));
        }
        while self.steps.len() > 2 && self.steps[1].0 + RATE_WINDOW < now {
            self.steps.pop_front();
        }
        let &(from, before) = self.steps.front().unwrap_or(&(now, moved));
        Recent { bytes: moved - before, time: now.saturating_sub(from) }
    }
}

/// Such as `1.20 GB of 4.00 GB, 12 of 40 entries, 812 Mbit/s, about 30 s left`.
fn line(progress: &TransferProgress, recent: Recent) -> String {
    let Recent { bytes, time } = recent;
    let done = progress.moved_bytes + progress.had_bytes;
    let left = progress.total_bytes.saturating_sub(done);
    let left = if bytes > 0 && left > 0 {
        let seconds = (time.as_secs_f64() * left as f64 / bytes as f64).min(1e9);
        format!(", about {} left", words(Duration::from_secs_f64(seconds)))
    } else {
        String::new()
    };
    let failed = if progress.failed > 0 { format!(", {} failed", progress.failed) } else { String::new() };
    format!(
        "{} of {}, {} of {} entries, {}{left}{failed}",
        amount(done),
        amount(progress.total_bytes.max(done)),
        progress.entries,
        progress.total_entries.max(progress.entries),
        rate(bytes, time)
    )
}

impl ProgressObserver for TransferDisplay {
    fn on_progress(&self, progress: &TransferProgress) -> bool {
        if self.prints {
            let now = self.clock.elapsed();
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let recent = state.recent(now, progress.moved_bytes);
            if let Some(bar) = &self.bar {
                bar.set_length(progress.total_bytes.max(1));
                bar.set_position(progress.moved_bytes + progress.had_bytes);
                bar.set_message(line(progress, recent));
            } else if now >= state.last_printed + PLAIN_EVERY {
                state.last_printed = now;
                drop(state);
                print_stderr(&line(progress, recent));
            }
        }
        !interrupted()
    }

    fn note(&self, text: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.notes.len() >= MAX_NOTES {
            state.left_out += 1;
            return;
        }
        state.notes.push(text.to_owned());
        match &self.bar {
            Some(bar) => bar.suspend(|| print_stderr(text)),
            None => print_stderr(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_rate_and_time_left() {
        let mut progress = TransferProgress {
            total_bytes: 4_000_000_000,
            total_entries: 40,
            moved_bytes: 1_000_000_000,
            had_bytes: 200_000_000,
            entries: 12,
            failed: 0,
        };
        let recent = Recent { bytes: 1_000_000_000, time: Duration::from_secs(10) };
        let text = "1.20 GB of 4.00 GB, 12 of 40 entries, 800 Mbit/s, about 28 s left";
        assert_eq!(line(&progress, recent), text);
        (progress.moved_bytes, progress.failed) = (5_000_000_000, 2);
        assert_eq!(
            line(&progress, Recent { bytes: 0, time: Duration::ZERO }),
            "5.20 GB of 5.20 GB, 12 of 40 entries, 0 bit/s, 2 failed"
        );
    }

    #[test]
    fn the_rate_is_of_the_last_seconds() {
        let mut state = State::default();
        let s = Duration::from_secs;
        assert_eq!(state.recent(s(0), 0), Recent { bytes: 0, time: s(0) });
        assert_eq!(state.recent(s(2), 20), Recent { bytes: 20, time: s(2) });
        assert_eq!(state.recent(s(20), 30), Recent { bytes: 10, time: s(18) });
        assert_eq!(state.recent(s(29), 130), Recent { bytes: 110, time: s(27) });
        assert_eq!(state.recent(s(31), 230), Recent { bytes: 200, time: s(11) });
    }
}
