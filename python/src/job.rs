//! A study, done in threads of its own while the caller's thread listens for Ctrl-C and shows its progress.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use study::{Finished, Ledger, Line, Others, ProgressDisplay, Shard, Simulator, Study, SweepObserver};
use units::Time;

use crate::error;
use crate::law::PythonBackend;
use crate::scenario::Scenario;

/// Interval at which the caller's thread polls.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Stack of the study's thread, as much as a main thread has: laws and engines are not made for less.
const STACK_BYTES: usize = 8 << 20;

/// Progress of the runs.
#[derive(Default)]
struct StudyProgress {
    of: usize,
    finished: usize,
    /// Share of its longest time that each run in progress has done, by the run's name.
    running: BTreeMap<String, f64>,
    messages: Vec<String>,
}

/// Observer of the study: the caller's thread, at intervals.
#[derive(Default)]
struct StudyObserver {
    stop: AtomicBool,
    /// Thread in which laws are called, as Python numbers it; 0: none.
    law_thread: AtomicU64,
    progress: Mutex<StudyProgress>,
}

impl StudyObserver {
    fn progress(&self) -> MutexGuard<'_, StudyProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SweepObserver for StudyObserver {
    fn tell(&self, text: &str) {
        self.progress().messages.push(text.to_owned());
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn board<'a>(&'a self, names: &[String], kept: usize) -> Box<dyn ProgressDisplay + 'a> {
        let mut progress = self.progress();
        (progress.of, progress.finished) = (names.len(), kept);
        Box::new(StudyDisplay(self))
    }
}

struct StudyDisplay<'a>(&'a StudyObserver);

impl ProgressDisplay for StudyDisplay<'_> {
    fn run<'a>(&'a self, name: &str, stop: Time, flows: u64) -> Box<dyn Line + 'a> {
        self.0.progress().running.insert(name.to_owned(), 0.0);
        Box::new(RunLine { observer: self.0, name: name.to_owned(), stop, flows })
    }
}

struct RunLine<'a> {
    observer: &'a StudyObserver,
    name: String,
    stop: Time,
    flows: u64,
}

impl RunLine<'_> {
    fn time_share(&self, time: Time) -> f64 {
        time.ps() as f64 / self.stop.ps().max(1) as f64
    }

    fn set_share(&self, share: f64) {
        self.observer.progress().running.insert(self.name.clone(), share.clamp(0.0, 1.0));
    }
}

impl Line for RunLine<'_> {
    fn update(&self, progress: &engine::RunProgress) {
        let flow_share = 1.0 - progress.open as f64 / self.flows.max(1) as f64;
        self.set_share(flow_share.max(self.time_share(progress.time)));
    }

    fn update_real(&self, time: Time, _: usize) {
        self.set_share(self.time_share(time));
    }
}

impl Drop for RunLine<'_> {
    fn drop(&mut self) {
        let mut progress = self.observer.progress();
        progress.running.remove(&self.name);
        progress.finished += 1;
    }
}

/// Does the runs of a scenario and writes their results into `out`. `tell` is called with each message for the user, `show`
/// with the number of runs, the number of finished ones, and the share of each run in progress that is done. Both are called in
/// the caller's thread. Ctrl-C ends the study; finished runs are kept. Returns warnings by their causes, and the identities
/// that runs broke. `laws` are those in Python, by name: each is called with its parameters as JSON, and the callable that it
/// returns is called with a path for each flow.
#[pyfunction]
#[pyo3(signature = (scenario, out, *, schemes, shard, only, take, runs_missing, threads, force, check_invariants, replay, tell, show, laws))]
#[expect(clippy::too_many_arguments, reason = "all of them by name, from one caller")]
pub(crate) fn run_study(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    out: PathBuf,
    schemes: Vec<String>,
    shard: Option<&str>,
    only: Vec<String>,
    take: Vec<PathBuf>,
    runs_missing: bool,
    threads: Option<u16>,
    force: bool,
    check_invariants: bool,
    replay: String,
    tell: Py<PyAny>,
    show: Py<PyAny>,
    laws: BTreeMap<String, Py<PyAny>>,
) -> PyResult<(Vec<String>, Vec<String>)> {
    let shard = shard.map(str::parse::<Shard>).transpose().map_err(|message| error::invalid_request(py, &message))?;
    let observer = StudyObserver::default();
    let notes = Ledger::default();
    let backend =
        PythonBackend::new(Simulator { checked: check_invariants }, laws, &observer.stop, &observer.law_thread);
    let study = Study {
        scenario: &scenario.get().scenario,
        backend: &backend,
        watch: &observer,
        notes: &notes,
        schemes: &schemes,
        shard,
        only: &only,
        from: &take,
        runs_missing,
        threads,
        out,
        replay: vec![replay],
        claims: &[],
        tables: &[],
        force,
        others: if force { Others::Replace } else { Others::Keep },
    };
    let (finished, stopped) = py.detach(|| run_and_poll(&study, &observer, &tell, &show));
    if let Some(raised) = backend.raised() {
        if let Some(Err(study::Error::Stopped { finished, of, .. })) = &finished
            && *of > 1
        {
            tell.call1(py, (study::kept(*finished, *of),))?;
        }
        return Err(raised);
    }
    // An exception of the caller's thread comes before the result of the study.
    let finished = match (finished, stopped) {
        (Some(Err(error @ study::Error::Stopped { .. })), Some(stopped)) => {
            tell.call1(py, (error.to_string(),))?;
            return Err(stopped);
        }
        (_, Some(stopped)) => return Err(stopped),
        (None, None) => return Err(PyRuntimeError::new_err("a bug in Narrows: the study ended in a panic")),
        (Some(finished), None) => finished,
    };
    let finished = finished.map_err(|error| error::of_study(py, &error))?;
    let of = |run: &results::RunResults| {
        let summary = &run.summary;
        let describe = |identity| format!("{}, seed {}: {identity}", summary.run, summary.seed);
        summary.broken_identities().map(describe).collect::<Vec<_>>()
    };
    Ok((study::warnings(&finished.runs), finished.runs.iter().flat_map(of).collect()))
}

/// Runs the study. Returns its result, none after a panic, and the exception raised in the caller's thread meanwhile.
fn run_and_poll(
    study: &Study<'_>,
    observer: &StudyObserver,
    tell: &Py<PyAny>,
    show: &Py<PyAny>,
) -> (Option<Result<Finished, study::Error>>, Option<PyErr>) {
    std::thread::scope(|scope| {
        let main_thread = std::thread::current();
        let work = move || {
            let result = study.run();
            main_thread.unpark();
            result
        };
        let mut stopped = None;
        let worker = match std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work) {
            Ok(worker) => worker,
            Err(error) => return (Some(Err(study::Error::host(error))), None),
        };
        while !worker.is_finished() {
            std::thread::park_timeout(POLL_INTERVAL);
            if stopped.is_none()
                && let Err(raised) = Python::attach(|py| poll(py, observer, tell, show))
            {
                observer.stop.store(true, Ordering::Relaxed);
                stopped = Some(raised);
                interrupt(observer.law_thread.load(Ordering::Relaxed));
            }
        }
        let result = worker.join().ok();
        if stopped.is_none() {
            stopped = Python::attach(|py| poll(py, observer, tell, show)).err();
        }
        (result, stopped)
    })
}

/// Interrupts the law in that thread: it may be in a loop that has no end.
fn interrupt(thread: u64) {
    if thread == 0 {
        return;
    }
    // Without it the run ends when the law returns.
    let _ = Python::attach(|py| py.import("narrows.law")?.call_method1("interrupt", (thread,)).map(drop));
}

/// Lets Python handle its signals, passes messages on, and shows the progress of the runs.
fn poll(py: Python<'_>, observer: &StudyObserver, tell: &Py<PyAny>, show: &Py<PyAny>) -> PyResult<()> {
    py.check_signals()?;
    let (messages, of, finished, running) = {
        let mut progress = observer.progress();
        let messages = std::mem::take(&mut progress.messages);
        (messages, progress.of, progress.finished, progress.running.values().copied().collect::<Vec<f64>>())
    };
    for text in messages {
        tell.call1(py, (text,))?;
    }
    if of > 0 {
        show.call1(py, (of, finished, running))?;
    }
    Ok(())
}
