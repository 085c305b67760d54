//! Laws written in Python: the events that they receive, the send limits read from them, and the backend that has them.
//!
//! The engine that runs them is compiled a second time, for [`AnyLaw`]: runs of the catalog's laws alone take the first one and
//! know nothing of this. A call takes Python's lock for as long as the law decides, and no longer.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use laws::credits::Credits;
use laws::{ControlLaw, Cookie, Law, LawActions, LossCause, Notification, SendLimits, Sent, Window};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};
use pyo3::{create_exception, intern};
use results::RunResults;
use scenario::{BuiltRun, Run};
use study::{Backend, Error, RunSpec, Simulator, StudySize};
use units::{Bytes, Rate, Time};

use crate::error::StudyError;

create_exception!(
    narrows,
    LawError,
    StudyError,
    "A law written in Python failed, or set an impossible limit. `law`, `method`, `flow` (the number of the flow that the object \
     was made for: on a kept connection the first one) and `time_ps` (simulated time in picoseconds) identify the call; `__cause__` is \
     the exception that it raised."
);

/// The lowest and the highest pacing rate that a law may ask for, in bits a second: as in the catalog.
const PACING_RATES: std::ops::RangeInclusive<u64> = 1_000..=100_000_000_000_000;

/// Facts about a flow that its law may know before the first packet leaves. Times are in picoseconds, data in bytes, rates in
/// bits a second.
#[pyclass(frozen, get_all, name = "PathInfo", module = "narrows")]
pub(crate) struct PathInfo {
    base_rtt: i64,
    intra_rtt: i64,
    line_rate: u64,
    mss: u64,
    bdp: u64,
    intra_bdp: u64,
    is_inter: bool,
}

#[pymethods]
impl PathInfo {
    /// Makes a path from its four facts; the others follow.
    #[new]
    fn new(base_rtt: i64, intra_rtt: i64, line_rate: u64, mss: u64) -> Self {
        let span = units::Span::from_ps;
        Self::of(&laws::PathInfo {
            base_rtt: span(base_rtt),
            intra_rtt: span(intra_rtt),
            line_rate: Rate::from_bps(line_rate),
            mss: Bytes::new(mss),
        })
    }

    fn __repr__(&self) -> String {
        let Self { base_rtt, intra_rtt, line_rate, mss, .. } = self;
        format!("PathInfo(base_rtt={base_rtt}, intra_rtt={intra_rtt}, line_rate={line_rate}, mss={mss})")
    }
}

impl PathInfo {
    fn of(path: &laws::PathInfo) -> Self {
        Self {
            base_rtt: path.base_rtt.ps(),
            intra_rtt: path.intra_rtt.ps(),
            line_rate: path.line_rate.bps(),
            mss: path.mss.get(),
            bdp: path.bdp().get(),
            intra_bdp: path.intra_bdp().get(),
            is_inter: path.base_rtt > path.intra_rtt,
        }
    }
}

/// An acknowledgement. Times are in picoseconds, data in bytes.
#[pyclass(frozen, get_all, name = "Ack", module = "narrows")]
pub(crate) struct Ack {
    now: u64,
    sent_at: u64,
    rtt: i64,
    acked: u64,
    marked: u64,
    in_flight: u64,
    delivered: u64,
    bytes_remaining: Option<u64>,
    delivered_at_send: u64,
    delivered_time_at_send: u64,
    send_elapsed: i64,
    app_limited: bool,
}

#[pymethods]
impl Ack {
    /// Answers an attribute that it lacks: with the new name, if it was renamed.
    #[expect(clippy::unused_self, reason = "the signature of Python's method")]
    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let error = py.import("narrows._renamed")?.call_method1("no_attribute", ("Ack", name))?;
        Err(PyErr::from_value(error))
    }
}

/// Loss of packets; never a mark. Times are in picoseconds, data in bytes.
#[pyclass(frozen, get_all, name = "Loss", module = "narrows")]
pub(crate) struct Loss {
    now: u64,
    sent_at: u64,
    lost: u64,
    in_flight: u64,
    cause: &'static str,
}

/// Silence for a retransmission timeout. Times are in picoseconds, data in bytes.
#[pyclass(frozen, get_all, name = "Timeout", module = "narrows")]
pub(crate) struct Timeout {
    now: u64,
    sent_at: u64,
    lost: u64,
    in_flight: u64,
}

/// Panic payload that ends a run after its law failed, or after an interrupt while a law decided: no bug, so not reported.
struct RunAborted;

/// State that all laws of a host share.
pub(crate) struct Calls<'a> {
    /// Set if the caller wants an end.
    stop: &'a AtomicBool,
    /// Thread in which laws are called, as Python numbers it; 0: none yet.
    thread: &'a AtomicU64,
    /// First exception that a law raised.
    failed: Mutex<Option<PyErr>>,
}

impl Calls<'_> {
    fn fail(&self, error: PyErr) -> ! {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        resume_unwind(Box::new(RunAborted));
    }
}

/// The simulator, with laws in Python in addition to those of the catalog.
pub(crate) struct PythonBackend<'a> {
    simulator: Simulator,
    /// Callables by name of law: each takes a run's parameters as JSON and returns the maker of a flow's law on a path.
    makers: BTreeMap<String, Py<PyAny>>,
    calls: Calls<'a>,
}

impl<'a> PythonBackend<'a> {
    pub(crate) fn new(
        simulator: Simulator,
        makers: BTreeMap<String, Py<PyAny>>,
        stop: &'a AtomicBool,
        thread: &'a AtomicU64,
    ) -> Self {
        Self { simulator, makers, calls: Calls { stop, thread, failed: Mutex::default() } }
    }

    /// Takes the exception that a law raised, if one did.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.calls.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Makers of a run's laws, by name.
    fn makers_for(&self, py: Python<'_>, built: &BuiltRun) -> PyResult<BTreeMap<Arc<str>, Py<PyAny>>> {
        let created = built.laws.external_laws().map(|law| {
            let maker = self.makers.get(&*law.name).ok_or_else(|| PyValueError::new_err("a law is missing"))?;
            Ok((Arc::clone(&law.name), maker.call1(py, (law.params.to_string(),))?))
        });
        created.collect()
    }
}

impl Backend for PythonBackend<'_> {
    /// Returns true with laws in Python: Python runs one thread at a time, and laws may share what they like.
    fn needs_exclusive_use(&self) -> bool {
        !self.makers.is_empty()
    }

    fn repeats(&self) -> bool {
        true
    }

    fn options(&self) -> String {
        self.simulator.options()
    }

    fn check(&self, run: &Run, built: &BuiltRun, _: StudySize) -> Result<(), Error> {
        if let Some(law) = built.laws.external_laws().find(|law| !self.makers.contains_key(&*law.name)) {
            return Err(study::refuse(run, law));
        }
        Ok(())
    }

    fn run(&self, one: RunSpec<'_>) -> Result<RunResults, Error> {
        if one.built.laws.external_laws().next().is_none() {
            return self.simulator.run(one);
        }
        let (plan, calls) = (one.built.laws.clone(), &self.calls);
        let started = Python::attach(|py| {
            let thread: u64 = py.import("threading")?.call_method0("get_ident")?.extract()?;
            calls.thread.store(thread, Ordering::Relaxed);
            self.makers_for(py, &one.built)
        });
        let makers = started.map_err(Error::host)?;
        let make_law = |setup: &experiment::Setup, spec: &experiment::FlowSpec, path: &laws::PathInfo| match plan
            .external_law_of(spec)
        {
            None => AnyLaw::Catalog(plan.make(spec, path)),
            Some(law) => {
                let flow = study::flow_number(setup, spec);
                AnyLaw::Python(PythonLaw::new(&law.name, flow, makers.get(&law.name), path, calls))
            }
        };
        // This thread stays attached to Python for as long as the run lasts: taking the lock is cheaper then.
        let run = || self.simulator.run_with(RunSpec { threads: 1, ..one }, make_law);
        let done = catch_unwind(AssertUnwindSafe(|| Python::attach(|py| py.detach(run))));
        calls.thread.store(0, Ordering::Relaxed);
        match done {
            Ok(done) => done,
            Err(panic) if panic.is::<RunAborted>() => {
                let failed = calls.failed.lock().unwrap_or_else(PoisonError::into_inner);
                Err(failed.as_ref().map_or(Error::Interrupted, |error| Error::host(error.to_string())))
            }
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// A law of the catalog, or one in Python.
#[expect(
    clippy::large_enum_variant,
    reason = "a flow holds its law in place: those of the catalog are the larger ones"
)]
enum AnyLaw<'a> {
    Catalog(Law),
    Python(PythonLaw<'a>),
}

/// Evaluates `$call` with `$law` as the law in `$either`.
macro_rules! dispatch {
    ($either:expr, $law:ident => $call:expr) => {
        match $either {
            AnyLaw::Catalog($law) => $call,
            AnyLaw::Python($law) => $call,
        }
    };
}

impl ControlLaw for AnyLaw<'_> {
    fn on_sent(&mut self, sent: &Sent) -> Cookie {
        dispatch!(self, law => law.on_sent(sent))
    }

    fn on_ack(&mut self, ack: &laws::Ack) {
        dispatch!(self, law => law.on_ack(ack));
    }

    fn on_loss(&mut self, loss: &laws::Loss) {
        dispatch!(self, law => law.on_loss(loss));
    }

    fn on_notification(&mut self, notification: &Notification) {
        dispatch!(self, law => law.on_notification(notification));
    }

    fn on_timer(&mut self, now: Time) {
        dispatch!(self, law => law.on_timer(now));
    }

    fn next_timer(&self) -> Time {
        dispatch!(self, law => law.next_timer())
    }

    fn send_limits(&self) -> SendLimits {
        dispatch!(self, law => law.send_limits())
    }

    fn rate_change_is_immediate(&self) -> bool {
        dispatch!(self, law => law.rate_change_is_immediate())
    }

    fn reads_direct_cnps(&self) -> bool {
        dispatch!(self, law => law.reads_direct_cnps())
    }

    fn ssthresh(&self) -> Option<Bytes> {
        dispatch!(self, law => law.ssthresh())
    }

    fn credits(&self) -> Option<Credits> {
        dispatch!(self, law => law.credits())
    }

    fn credit_rate(&self) -> Rate {
        dispatch!(self, law => law.credit_rate())
    }

    fn actions(&self) -> LawActions {
        dispatch!(self, law => law.actions())
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        dispatch!(self, law => law.trace(emit));
    }
}

/// A law in Python, and its last send limits.
struct PythonLaw<'a> {
    object: Py<PyAny>,
    name: Arc<str>,
    /// Number of the flow that it was made for: the first one on a persistent connection.
    flow: Option<usize>,
    calls: &'a Calls<'a>,
    limits: SendLimits,
    actions: LawActions,
}

impl<'a> PythonLaw<'a> {
    /// The law of a flow on `path`.
    fn new(
        name: &Arc<str>,
        flow: Option<usize>,
        maker: Option<&Py<PyAny>>,
        path: &laws::PathInfo,
        calls: &'a Calls<'a>,
    ) -> Self {
        let created = Python::attach(|py| {
            let Some(maker) = maker else { return Err(PyValueError::new_err("the law is missing")) };
            let object = maker.call1(py, (PathInfo::of(path),))?;
            let limits = limits_of(object.bind(py))?;
            Ok((object, limits))
        });
        match created {
            Ok((object, limits)) => {
                Self { object, name: Arc::clone(name), flow, calls, limits, actions: LawActions::default() }
            }
            Err(raised) => abort_run(calls, raised, &CallSite { law: name, method: "__init__", flow, now: None }),
        }
    }

    /// Notifies the law of an event, then reads its send limits.
    fn notify(&mut self, method: &'static str, now: Time, event: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) {
        if self.calls.stop.load(Ordering::Relaxed) {
            resume_unwind(Box::new(RunAborted));
        }
        let limits = Python::attach(|py| {
            let object = self.object.bind(py);
            object.call_method1(method, (event(py)?,))?;
            limits_of(object)
        });
        match limits {
            Ok(limits) => {
                let (before, is_loss) = (std::mem::replace(&mut self.limits, limits), method != "on_ack");
                // The first of window and rate that grows or shrinks decides.
                let change = (limits.window, limits.pacing).cmp(&(before.window, before.pacing));
                match change {
                    std::cmp::Ordering::Greater => self.actions.increases += 1,
                    std::cmp::Ordering::Less if is_loss => self.actions.loss_cuts += 1,
                    std::cmp::Ordering::Less => self.actions.cuts += 1,
                    std::cmp::Ordering::Equal => {}
                }
            }
            Err(raised) => {
                abort_run(self.calls, raised, &CallSite { law: &self.name, method, flow: self.flow, now: Some(now) })
            }
        }
    }
}

impl ControlLaw for PythonLaw<'_> {
    fn on_ack(&mut self, ack: &laws::Ack) {
        let event = Ack {
            now: ack.now.ps(),
            sent_at: ack.sent_at.ps(),
            rtt: ack.rtt.ps(),
            acked: ack.acked.get(),
            marked: ack.marked.get(),
            in_flight: ack.in_flight.get(),
            delivered: ack.delivered.get(),
            bytes_remaining: ack.known_bytes_remaining().map(Bytes::get),
            delivered_at_send: ack.delivered_at_send.get(),
            delivered_time_at_send: ack.delivered_time_at_send.ps(),
            send_elapsed: ack.send_elapsed.ps(),
            app_limited: ack.app_limited,
        };
        self.notify("on_ack", ack.now, |py| Ok(Py::new(py, event)?.into_any()));
    }

    fn on_loss(&mut self, loss: &laws::Loss) {
        let (now, sent_at) = (loss.now.ps(), loss.sent_at.ps());
        let (lost, in_flight) = (loss.lost.get(), loss.in_flight.get());
        let cause = match loss.cause {
            LossCause::Timeout => {
                let event = Timeout { now, sent_at, lost, in_flight };
                return self.notify("on_timeout", loss.now, |py| Ok(Py::new(py, event)?.into_any()));
            }
            LossCause::Reordered => "reordered",
            LossCause::Nack => "nack",
        };
        let event = Loss { now, sent_at, lost, in_flight, cause };
        self.notify("on_loss", loss.now, |py| Ok(Py::new(py, event)?.into_any()));
    }

    fn send_limits(&self) -> SendLimits {
        self.limits
    }

    fn actions(&self) -> LawActions {
        self.actions
    }
}

/// Reads the send limits of a law from its attributes.
fn limits_of(object: &Bound<'_, PyAny>) -> PyResult<SendLimits> {
    let py = object.py();
    let window = number(object, "cwnd", "bytes", 1..=Window::LIMIT.get())?;
    let pacing_rate = object.getattr(intern!(py, "pacing_rate"))?;
    let pacing = if pacing_rate.is_none() {
        Rate::MAX
    } else {
        Rate::from_bps(number(object, "pacing_rate", "bits a second, or None", PACING_RATES)?)
    };
    Ok(SendLimits { window: Bytes::new(window), pacing })
}

/// Reads an attribute that is a number within a range, rounded down.
fn number(object: &Bound<'_, PyAny>, name: &str, unit: &str, range: std::ops::RangeInclusive<u64>) -> PyResult<u64> {
    let value = object.getattr(name)?;
    let message = || format!("self.{name} is {}; expected {} to {} {unit}", shown(&value), range.start(), range.end());
    let is_integer = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    if !is_integer && !value.is_instance_of::<PyFloat>() {
        return Err(PyTypeError::new_err(message()));
    }
    let number = if is_integer {
        value.extract::<u64>().ok()
    } else {
        let value: f64 = value.extract()?;
        // The ends of all ranges are whole and below 2^53, so that this is exact; not a number is in none.
        (value >= *range.start() as f64 && value <= *range.end() as f64).then_some(value as u64)
    };
    number.filter(|number| range.contains(number)).ok_or_else(|| PyValueError::new_err(message()))
}

fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
    if text.chars().count() > 80 { text.chars().take(80).chain("...".chars()).collect() } else { text }
}

/// Place at which a law failed.
struct CallSite<'a> {
    law: &'a str,
    method: &'static str,
    /// Number of the flow; none if it is not known.
    flow: Option<usize>,
    /// Simulated time; none before the flow's first event.
    now: Option<Time>,
}

/// Ends the run, and keeps the exception that was raised.
fn abort_run(calls: &Calls<'_>, raised: PyErr, place: &CallSite<'_>) -> ! {
    if calls.stop.load(Ordering::Relaxed) {
        // The law itself was interrupted.
        resume_unwind(Box::new(RunAborted));
    }
    let error = Python::attach(|py| law_error(py, raised, place));
    calls.fail(error)
}

fn law_error(py: Python<'_>, raised: PyErr, place: &CallSite<'_>) -> PyErr {
    let CallSite { law, method, flow, now } = *place;
    let at = now.map_or_else(|| "when it began".to_owned(), |now| format!("at {now} of simulated time"));
    let of = flow.map_or_else(String::new, |flow| format!(" of flow {flow}"));
    let error = LawError::new_err(format!("the law {law} failed in {method}{of} {at}: {raised}"));
    let value = error.value(py);
    let set = [
        value.setattr(intern!(py, "law"), law),
        value.setattr(intern!(py, "method"), method),
        value.setattr(intern!(py, "flow"), flow),
        value.setattr(intern!(py, "time_ps"), now.map(Time::ps)),
    ];
    let failure = set.into_iter().find_map(Result::err);
    error.set_cause(py, Some(raised));
    failure.unwrap_or(error)
}
