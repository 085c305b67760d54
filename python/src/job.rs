//! A study, done in threads of its own while the caller's thread listens for Ctrl-C and shows how far it is.

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
use crate::law::Bringing;
use crate::scenario::Scenario;

/// Interval at which the caller's thread looks.
const EVERY: Duration = Duration::from_millis(50);
/// Stack of the study's thread, as much as a main thread has: laws and engines are not made for less.
const STACK_BYTES: usize = 8 << 20;

/// Progress of the runs.
#[derive(Default)]
struct Far {
    of: usize,
    finished: usize,
    /// Share of its longest time that each run in progress has done, by the run's name.
    running: BTreeMap<String, f64>,
    said: Vec<String>,
}

/// Observer of the study: the caller's thread, at intervals.
#[derive(Default)]
struct Caller {
    stop: AtomicBool,
    /// Thread in which laws are called, as Python numbers it; 0: none.
    law_thread: AtomicU64,
    far: Mutex<Far>,
}

impl Caller {
    fn far(&self) -> MutexGuard<'_, Far> {
        self.far.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SweepObserver for Caller {
    fn tell(&self, text: &str) {
        self.far().said.push(text.to_owned());
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn board<'a>(&'a self, names: &[String], kept: usize) -> Box<dyn ProgressDisplay + 'a> {
        let mut far = self.far();
        (far.of, far.finished) = (names.len(), kept);
        Box::new(Runs(self))
    }
}

struct Runs<'a>(&'a Caller);

impl ProgressDisplay for Runs<'_> {
    fn run<'a>(&'a self, name: &str, stop: Time, flows: u64) -> Box<dyn Line + 'a> {
        self.0.far().running.insert(name.to_owned(), 0.0);
        Box::new(One { caller: self.0, name: name.to_owned(), stop, flows })
    }
}

struct One<'a> {
    caller: &'a Caller,
    name: String,
    stop: Time,
    flows: u64,
}

impl One<'_> {
    fn of_time(&self, time: Time) -> f64 {
        time.ps() as f64 / self.stop.ps().max(1) as f64
    }

    fn at(&self, share: f64) {
        self.caller.far().running.insert(self.name.clone(), share.clamp(0.0, 1.0));
    }
}

impl Line for One<'_> {
    fn update(&self, progress: &engine::RunProgress) {
        let of_flows = 1.0 - progress.open as f64 / self.flows.max(1) as f64;
        self.at(of_flows.max(self.of_time(progress.time)));
    }

    fn update_real(&self, time: Time, _: usize) {
        self.at(self.of_time(time));
    }
}

impl Drop for One<'_> {
    fn drop(&mut self) {
        let mut far = self.caller.far();
        far.running.remove(&self.name);
        far.finished += 1;
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
    let shard = shard.map(str::parse::<Shard>).transpose().map_err(|said| error::asked(py, &said))?;
    let caller = Caller::default();
    let notes = Ledger::default();
    let backend = Bringing::new(Simulator { checked: check_invariants }, laws, &caller.stop, &caller.law_thread);
    let study = Study {
        scenario: &scenario.get().scenario,
        backend: &backend,
        watch: &caller,
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
    let (finished, stopped) = py.detach(|| done(&study, &caller, &tell, &show));
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
        let said = |what| format!("{}, seed {}: {what}", summary.run, summary.seed);
        summary.broken_identities().map(said).collect::<Vec<_>>()
    };
    Ok((study::warnings(&finished.runs), finished.runs.iter().flat_map(of).collect()))
}

/// Runs the study. Returns its result, none after a panic, and the exception raised in the caller's thread meanwhile.
fn done(
    study: &Study<'_>,
    caller: &Caller,
    tell: &Py<PyAny>,
    show: &Py<PyAny>,
) -> (Option<Result<Finished, study::Error>>, Option<PyErr>) {
    std::thread::scope(|scope| {
        let here = std::thread::current();
        let work = move || {
            let result = study.run();
            here.unpark();
            result
        };
        let mut stopped = None;
        let worker = match std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work) {
            Ok(worker) => worker,
            Err(error) => return (Some(Err(study::Error::host(error))), None),
        };
        while !worker.is_finished() {
            std::thread::park_timeout(EVERY);
            if stopped.is_none()
                && let Err(raised) = Python::attach(|py| look(py, caller, tell, show))
            {
                caller.stop.store(true, Ordering::Relaxed);
                stopped = Some(raised);
                interrupt(caller.law_thread.load(Ordering::Relaxed));
            }
        }
        let result = worker.join().ok();
        if stopped.is_none() {
            stopped = Python::attach(|py| look(py, caller, tell, show)).err();
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
fn look(py: Python<'_>, caller: &Caller, tell: &Py<PyAny>, show: &Py<PyAny>) -> PyResult<()> {
    py.check_signals()?;
    let (said, of, finished, running) = {
        let mut far = caller.far();
        let said = std::mem::take(&mut far.said);
        (said, far.of, far.finished, far.running.values().copied().collect::<Vec<f64>>())
    };
    for text in said {
        tell.call1(py, (text,))?;
    }
    if of > 0 {
        show.call1(py, (of, finished, running))?;
    }
    Ok(())
}
