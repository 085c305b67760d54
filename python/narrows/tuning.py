"""Search for the best parameters with Optuna, and a check on scenarios that the search did not use.

A trial sets the parameters in the scenario and runs it over several seeds: the same seeds, and so the same traffic, in every
trial (common random numbers). With one objective, bad trials can end early: by successive halving or racing. The runs of a
trial are a sweep like any other, and a second call keeps finished ones.
"""

from __future__ import annotations

import builtins
import contextlib
import fcntl
import hashlib
import importlib
import json
import math
import os
import re
import shlex
import sys
import threading
import warnings
from collections import deque
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from narrows import _given, _narrows, _renamed
from narrows import progress as watching
from narrows import study as studies
from narrows._words import FAILED, ended, pair, value_of
from narrows.scenario import Scenario, inline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import optuna

    from narrows.results import Results

T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """Range of values of a key, both ends included: `Range("100KB..2MB")`."""

    text: str
    log: bool = False

    def ends(self) -> _narrows.Ends:
        """Return its ends. Raises `ScenarioError` when the text is no range, or has no logarithm."""
        ends = _narrows.Ends(self.text)
        if self.log and ends.low <= 0:
            said = f"`{self.text}` begins with 0, which has no logarithm"
            raise ValueError(said)
        return ends

    def suggest(self, trial: optuna.Trial, key: str) -> Any:
        """Return the trial's value, as a scenario has it."""
        ends = self.ends()
        if ends.is_whole:
            number: float = trial.suggest_int(key, int(ends.low), int(ends.high), log=self.log)
        else:
            number = trial.suggest_float(key, ends.low, ends.high, log=self.log)
        return json.loads(ends.value(number))

    def extremes(self) -> list[Any]:
        """Return the values at both ends."""
        ends = self.ends()
        return [json.loads(ends.value(number)) for number in (ends.low, ends.high)]


@dataclass(frozen=True)
class Choice:
    """Choice among values."""

    values: tuple[Any, ...]

    def suggest(self, trial: optuna.Trial, key: str) -> Any:
        """Return the trial's value."""
        return trial.suggest_categorical(key, self.values)

    def extremes(self) -> list[Any]:
        """Return all of them."""
        return list(self.values)


Space = Range | Choice


@dataclass(frozen=True)
class TuneResult:
    """Result of tuning."""

    #: Optuna's study, with all trials.
    study: optuna.Study
    #: The best settings; with several objectives, those of the Pareto front.
    best: list[Setting]
    directory: Path
    #: Results of the best settings and of the scenario's own ones in the held-out scenarios.
    held_out: list[HeldOutResult] = field(default_factory=list)

    def __repr__(self) -> str:
        """List the best settings."""
        lines = [f"{len(_finished(self.study))} trials in {self.directory}"]
        lines += [str(setting) for setting in self.best]
        lines += [str(held) for held in self.held_out]
        return "\n".join(lines)


@dataclass(frozen=True)
class Setting:
    """Values of keys, with the objectives that they reach."""

    #: The number of its trial.
    number: int
    set: dict[str, Any]
    objectives: dict[str, float]

    def __str__(self) -> str:
        """Write the setting as options of the command line."""
        words = " ".join(f"--set {shlex.quote(f'{key}={_word(value)}')}" for key, value in self.set.items())
        return f"{_listed(self.objectives)}  {words}"


@dataclass(frozen=True)
class HeldOutResult:
    """Result of a setting in a held-out scenario."""

    scenario: str
    #: The number of the setting's trial.
    number: int
    tuned: dict[str, float]
    untuned: dict[str, float]
    #: Whether the constraints hold there.
    holds: bool

    def __str__(self) -> str:
        """Write the tuned and the untuned objectives."""
        held = "" if self.holds else "  (a constraint does not hold)"
        return f"held out: {self.scenario}, trial {self.number}: {_listed(self.tuned)}; untuned: {_listed(self.untuned)}{held}"


def _word(value: Any) -> str:
    return value if isinstance(value, str) else inline(value)


def _listed(objectives: Mapping[str, float]) -> str:
    return ", ".join(f"{metric} = {value:.6g}" for metric, value in objectives.items())


@_renamed.arguments
def tune(
    scenario: Scenario | str | Path,
    *,
    minimize: str | Sequence[str] = (),
    maximize: str | Sequence[str] = (),
    where: Mapping[str, Space | tuple[Any, Any] | Sequence[Any]],
    subject_to: str | Sequence[str] = (),
    trials: int = 50,
    seeds: int = 3,
    schemes: str | Sequence[str] = (),
    set: Mapping[str, Any] | None = None,  # noqa: A002
    scale: str | None = None,
    held_out: Sequence[Scenario | str | Path] = (),
    successive_halving: bool = False,
    racing: bool = False,
    parallel: int = 1,
    out: str | Path | None = None,
    storage: str | None = None,
    sampler: optuna.samplers.BaseSampler | None = None,
    sampler_seed: int = 1,
    threads: int | None = None,
    progress: bool | watching.Progress = True,
) -> TuneResult:
    """Find the values of keys that minimize or maximize metrics, each a mean over runs and seeds.

    `where` has keys of the scenario, such as `"schemes.dctcp.params.g"`, with a pair (the ends of a range), a list of choices, a
    `Range` or a `Choice`. A metric may be `"G(reference.toml)"` or `"W(reference.toml)"`: the score against a file from
    `narrows score --save-baseline`, with several schemes their mean. Several metrics give a Pareto front. `subject_to` has
    comparisons that must hold in every run, such as `"p99(intra.slowdown) <= 5"`. `held_out` are scenarios for checking the
    result, not used in the search.

    `successive_halving` first runs a trial for a quarter and half of the duration; only the better half of the trials continues.
    `racing` runs a trial seed by seed, and ends it once it is worse than the best trial on the same seeds (Wilcoxon's signed-rank
    test, p = 0.1). Both are for one objective.

    `parallel` trials run at the same time. The values of a trial are chosen once the trial `parallel` places before it has
    finished. They depend on `parallel` and `sampler_seed` (with a sampler of your own: on its seed), but not on the order in
    which trials finish; with `successive_halving` or `racing` they depend on that, too. `threads` is the number of threads of
    each trial: by default all cores, divided among the trials that run at the same time. `storage` is the URL of Optuna's
    storage (a SQLite file in `out` by default), from which a second call resumes and which `optuna-dashboard` shows.

    Raises `ScenarioError` or `ValueError` before the first trial if an argument is invalid.
    """
    try:
        import optuna
    except ModuleNotFoundError:
        raise _given.needs("Optuna", "narrows.tune") from None
    unseen = [held_out] if isinstance(held_out, (str, os.PathLike, Scenario)) else list(held_out)
    scenario, *others = (it if isinstance(it, Scenario) else Scenario.load(it) for it in (scenario, *unseen))
    metrics = [*_given.names("minimize", minimize), *_given.names("maximize", maximize)]
    for name, number in (("trials", trials), ("seeds", seeds), ("parallel", parallel), ("threads", threads)):
        _given.count(name, number)
    _check(metrics, seeds=seeds, successive_halving=successive_halving, racing=racing)
    space = {key: _space(value) for key, value in (_given.keyed("where", where) or {}).items()}
    if not space:
        said = "expected at least one key to tune"
        raise ValueError(said)
    task = Task(
        scenario,
        metrics,
        len(_list(maximize)),
        _list(subject_to),
        space,
        Path(out) if out is not None else Path("out") / f"{scenario.name}-tuned",
        dict(set or {}),
        seeds,
        tuple(_list(schemes)),
        scale,
        _threads(threads, parallel),
        successive_halving,
        racing,
    )
    if others and task.references():
        said = "a score's reference is of one scenario: leave out held-out ones, or score them by `narrows score` afterwards"
        raise ValueError(said)
    names = [it.name for it in others]
    if len(builtins.set(names)) < len(names):
        said = f"scenarios that are held out need names of their own; there are {', '.join(names)}"
        raise ValueError(said)
    task.look()
    pruner = _pruner(successive_halving=successive_halving, racing=racing)
    task.directory.mkdir(parents=True, exist_ok=True)
    place = storage or f"sqlite:///{task.directory / 'trials.sqlite'}"
    with _alone(task.directory), _kept(place):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        least, most = optuna.study.StudyDirection.MINIMIZE, optuna.study.StudyDirection.MAXIMIZE
        study = optuna.create_study(
            storage=place,
            study_name=task.name(),
            load_if_exists=True,
            directions=[least] * len(_list(minimize)) + [most] * len(_list(maximize)),
            pruner=pruner,
        )
        # Values drawn before are not drawn again, and interrupted trials run first.
        study.sampler = sampler or optuna.samplers.TPESampler(seed=sampler_seed + len(study.trials))
        for params in _unfinished(study):
            study.enqueue_trial(params)
        watch = watching.of_here(progress)
        try:
            _work(task, study, trials, parallel, watch)
        finally:
            watch.end()
        best = task.best(study)
        held = [task.held(other, setting) for other in others for setting in best]
    return TuneResult(study, best, task.directory, held)


def _threads(threads: int | None, parallel: int) -> int | None:
    """Return the threads of a trial: None for all cores."""
    if threads is not None or parallel == 1:
        return threads
    return max(1, len(os.sched_getaffinity(0)) // parallel)


class _Here(Executor):
    """Executor in the calling thread, which Ctrl-C reaches."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run the call at once."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


def _work(task: Task, study: optuna.Study, trials: int, parallel: int, watch: watching.Progress) -> None:
    """Run trials, `parallel` at a time, until `trials` have finished.

    Optuna receives the outcomes in the order of the trials, and is asked for one more trial after each. So it has the same
    outcomes whenever it chooses values, whichever trial finishes first.
    """
    import optuna

    done = len(_finished(study))
    stop = threading.Event()
    running: deque[tuple[optuna.Trial, Future[_Outcome]]] = deque()
    with _Here() if parallel == 1 else ThreadPoolExecutor(parallel) as pool:
        try:
            while done < trials:
                watch.show(trials, done, [])
                while len(running) < min(parallel, trials - done):
                    with _STORED:
                        trial = study.ask()
                        # Here, and not where the trial runs: a sampler draws values in the order in which it is asked.
                        setting = {key: space.suggest(trial, key) for key, space in task.space.items()}
                        trial.set_user_attr("set", setting)
                    running.append((trial, pool.submit(task.trial, trial, setting, stop)))
                trial, future = running[0]
                outcome = future.result()
                with _STORED:
                    _tell(task, study, trial, outcome)
                running.popleft()
                done += 1
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            for trial, _ in running:
                study.tell(trial, state=optuna.trial.TrialState.FAIL, skip_if_finished=True)
            raise


def _tell(task: Task, study: optuna.Study, trial: optuna.Trial, outcome: _Outcome) -> None:
    """Report the outcome of a trial to Optuna."""
    import optuna

    if outcome.why:
        trial.set_user_attr("why", outcome.why)
    if outcome.broken is not None:
        trial.set_user_attr("constraints", outcome.broken)
        for constraint, share in zip(task.constraints, outcome.broken, strict=True):
            trial.set_constraint(constraint, share)
    if outcome.values is None:
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    else:
        study.tell(trial, outcome.values)


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Lock a directory against other tunings while this one runs."""
    with (directory / "tune.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            said = f"another `narrows tune` is at work in `{directory}`; wait for it, or give another directory"
            raise ValueError(said) from error
        yield


@contextlib.contextmanager
def _kept(place: str) -> Iterator[None]:
    """Translate errors of the storage into `OSError`."""
    import optuna
    import sqlalchemy

    try:
        yield
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        why = next(iter(str(error.__cause__ or error).splitlines()), type(error).__name__)
        said = f"trials cannot be kept in `{place}`: {why}; what is finished there is left as it is"
        raise OSError(said) from error


@dataclass(frozen=True)
class _Outcome:
    """Outcome of a trial."""

    #: The objectives; None if the trial was pruned.
    values: list[float] | None = None
    #: Share of the runs that violate each constraint; None if the trial was pruned before that is known.
    broken: list[float] | None = None
    #: Reason of the pruning, if not the pruner's.
    why: str = ""


class _CutOffError(Exception):
    """The pruner ends a trial."""


@dataclass(frozen=True)
class Task:
    """Settings of a tuning."""

    scenario: Scenario
    #: Those to minimize, then those to maximize.
    metrics: list[str]
    #: The number of those to maximize.
    maximized: int
    constraints: list[str]
    space: dict[str, Space]
    directory: Path
    set: dict[str, Any]
    seeds: int
    schemes: tuple[str, ...]
    scale: str | None
    threads: int | None
    successive_halving: bool
    racing: bool

    def name(self) -> str:
        """Return the name of the task's Optuna study: other settings in the same directory make another study."""
        said = [self.scenario.to_toml(), self.metrics, self.maximized, self.constraints, repr(self.space), self.set, self.seeds]
        said += [
            self.schemes,
            self.scale,
            self.successive_halving,
            self.racing,
            self.references(),
            self.inputs(),
            _narrows.__engine__,
        ]
        return f"{self.scenario.name}-{hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]}"

    def references(self) -> dict[str, str]:
        """Return the files of scores that are asked for, and their hashes."""
        asked = [_score(text) for text in (*self.metrics, *(left for left, _ in map(_sides, self.constraints)))]
        files = sorted({of[1] for of in asked if of is not None})
        return {file: hashlib.sha256(_narrows.text_of(file).encode()).hexdigest() for file in files}

    def inputs(self) -> list[tuple[str, str]]:
        """Return the files that the scenario names, and their hashes."""
        read = self.scenario.read(set=self.set, scale=self.scale)
        read.check()
        return [(path, hashlib.sha256(content).hexdigest()) for path, content in read.inputs()]

    def look(self) -> None:
        """Check keys, ends of ranges, metrics, constraints and references before the first trial."""
        for key, space in self.space.items():
            for value in space.extremes():
                self.scenario.read(set={**self.set, key: value}, scale=self.scale, seeds=self.several()).check()
        resolved = self.scenario.read(set=self.set, scale=self.scale).resolved()
        written = json.loads(_narrows.as_written(resolved, "resolved"))
        known = list(written["schemes"])
        for scheme in self.schemes:
            if scheme not in known:
                raise _given.unknown(f"there is no scheme `{scheme}`", scheme, known)
        nothing = _narrows.Metrics([])
        for metric in self.metrics:
            if _score(metric) is None:
                nothing.values(metric)
        for constraint in self.constraints:
            left, right = _sides(constraint)
            if not right and re.match(r"\s*[GW]\(", constraint):
                said = f"`{constraint}`: expected {constraint.strip()[0]}(FILE) <= NUMBER"
                raise ValueError(said)
            if _score(left) is None:
                nothing.check(constraint)
        for file in self.references():
            try:
                _narrows.check_reference(_narrows.as_written(_narrows.text_of(file), file), written["name"])
            except ValueError as error:
                said = f"`{file}`: {error}"
                raise ValueError(said) from error

    def several(self) -> int | None:
        """Return the number of seeds if there are several, else None."""
        return self.seeds if self.seeds > 1 else None

    def run(
        self,
        setting: dict[str, Any],
        out: Path,
        scenario: Scenario | None = None,
        stop: str | None = None,
        vary: Mapping[str, Sequence[int]] | None = None,
        ended: threading.Event | None = None,
    ) -> Results:
        """Run a setting over the seeds, or over those of `vary`, until `ended` is set."""
        given = {**self.set, **setting, **({} if stop is None else {"stop": stop})}
        return studies.run(
            scenario or self.scenario,
            out,
            set=given,
            seeds=self.several() if vary is None else None,
            vary=vary,
            schemes=self.schemes,
            scale=self.scale if scenario is None else None,
            threads=self.threads,
            progress=_Quiet(ended),
        )

    def objectives(self, results: Results) -> list[float]:
        """Return the mean of each metric over the runs; NaN if a run lacks a value."""
        return [_mean(_values(results, metric)) for metric in self.metrics]

    def by_seed(self, results: Results) -> list[float]:
        """Return the objective of each seed, in order."""
        asked = _score(self.metrics[0])
        if asked is None:
            of: dict[int, list[float | None]] = {}
            for run, value in zip(results, results.metric(self.metrics[0]), strict=True):
                of.setdefault(run.seed, []).append(value)
            return [_mean(values) for _, values in sorted(of.items())]
        # Each seed's own G stands for W, too: that is of one cell, and another one in each seed.
        scores = _scores(results, asked[1])
        if scores is None:
            return [math.nan]
        return [_mean([score["by_seed"][place][1] for score in scores]) for place in range(len(scores[0]["by_seed"]))]

    def broken(self, results: Results) -> list[float]:
        """Return the share of the runs that violate each constraint or lack its value."""
        shares = []
        for constraint in self.constraints:
            left, right = _sides(constraint)
            holds: list[bool | None] = (
                results.check(constraint)
                if _score(left) is None
                else [value is not None and value <= float(right) for value in _values(results, left)]
            )
            shares.append(sum(1.0 for it in holds if it is not True) / max(1, len(holds)))
        return shares

    def raced(self, trial: optuna.Trial, setting: dict[str, Any], place: Path, stop: threading.Event) -> Results:
        """Run a setting seed by seed, until it is worse than the best one."""
        written = _narrows.as_written(self.scenario.read(set=self.set, scale=self.scale).resolved(), "resolved")
        first = int(json.loads(written).get("seed", 1))
        for count in range(1, self.seeds):
            of_seeds = self.by_seed(self.run(setting, place, vary={"seed": list(range(first, first + count))}, ended=stop))
            if math.isnan(of_seeds[-1]):
                raise _CutOffError(NO_VALUE)
            _report(trial, of_seeds[-1], count)
        results = self.run(setting, place, vary={"seed": list(range(first, first + self.seeds))}, ended=stop)
        with _STORED:
            trial.report(self.by_seed(results)[-1], self.seeds)
        return results

    def trial(self, trial: optuna.Trial, setting: dict[str, Any], stop: threading.Event) -> _Outcome:
        """Run one trial, until `stop` is set."""
        place = self.directory / "trials" / self.name() / f"{trial.number:04}"
        try:
            if self.successive_halving:
                for step, share in enumerate((0.25, 0.5), start=1):
                    part = _part(self.scenario.read(set=self.set, scale=self.scale), share)
                    results = self.run(setting, place.with_name(f"{place.name}-{share}"), stop=part, ended=stop)
                    _report(trial, self.objectives(results)[0], step)
            results = self.raced(trial, setting, place, stop) if self.racing else self.run(setting, place, ended=stop)
        except _narrows.ScenarioError as error:
            # Values that are each valid may exclude each other.
            return _Outcome(why=str(error))
        except _CutOffError as error:
            return _Outcome(why=str(error))
        broken, values = self.broken(results), self.objectives(results)
        if any(math.isnan(value) for value in values):
            # With flows that do not finish, a mean says nothing.
            return _Outcome(broken=broken, why=NO_VALUE)
        return _Outcome(values, broken)

    def best(self, study: optuna.Study) -> list[Setting]:
        """Return the best settings that meet the constraints."""
        finished = [
            trial for trial in study.trials if trial.state.name == "COMPLETE" and not any(trial.user_attrs.get("constraints", []))
        ]
        signs = [1.0 if direction.name == "MINIMIZE" else -1.0 for direction in study.directions]

        def keys(trial: optuna.trial.FrozenTrial) -> list[float]:
            return [sign * value for sign, value in zip(signs, trial.values, strict=True)]

        def is_beaten(trial: optuna.trial.FrozenTrial) -> bool:
            mine = keys(trial)
            return any(
                other is not trial
                and all(a <= b for a, b in zip(keys(other), mine, strict=True))
                and (keys(other) != mine or other.number < trial.number)
                for other in finished
            )

        best = sorted((trial for trial in finished if not is_beaten(trial)), key=keys)
        return [
            Setting(trial.number, trial.user_attrs["set"], dict(zip(self.metrics, trial.values, strict=True))) for trial in best
        ]

    def held(self, scenario: Scenario, best: Setting) -> HeldOutResult:
        """Run the best setting and the scenario's own one in a held-out scenario."""
        place = self.directory / "held-out" / self.name() / scenario.name
        tuned = self.run(best.set, place / f"tuned-{best.number:04}", scenario)
        untuned = self.run({}, place / "untuned", scenario)
        of = [dict(zip(self.metrics, self.objectives(it), strict=True)) for it in (tuned, untuned)]
        return HeldOutResult(scenario.name, best.number, of[0], of[1], not any(self.broken(tuned)))


class _Quiet(watching.Silent):
    """Progress of a trial: hides its warnings, which are in its report."""

    def __init__(self, ended: threading.Event | None) -> None:
        """Keep the event that ends the trial: Ctrl-C reaches only the main thread."""
        self.ended = ended

    def show(self, of: int, finished: int, running: list[float]) -> None:  # noqa: ARG002
        """Interrupt the runs if the tuning ends."""
        if self.ended is not None and self.ended.is_set():
            raise KeyboardInterrupt

    def tell(self, text: str) -> None:
        """Discard a message."""


#: Reason for which a trial is pruned if an objective has no value.
NO_VALUE = "a run has no value of an objective"

#: Held by the thread that uses the storage: trials run in threads, and a SQLite file has one writer at a time.
_STORED = threading.Lock()


def _report(trial: optuna.Trial, value: float, step: int) -> None:
    """Report an intermediate value. Raises `_CutOffError` if the pruner ends the trial."""
    with _STORED:
        trial.report(value, step)
        if trial.should_prune():
            raise _CutOffError


#: Minimum number of seeds for racing: with fewer, the test is never significant at p = 0.1 before the last seed.
FEWEST_TO_RACE = 5


def _check(metrics: list[str], *, seeds: int, successive_halving: bool, racing: bool) -> None:
    """Refuse arguments that exclude each other."""
    if not metrics:
        said = "expected something to minimize or to maximize, such as 'p99(inter.slowdown)'"
        raise ValueError(said)
    if (successive_halving or racing) and len(metrics) > 1:
        said = f"{'halving' if successive_halving else 'racing'} needs one objective: with several, two trials cannot be ranked"
        raise ValueError(said)
    if successive_halving and racing:
        said = "a trial is cut off by halving or by racing, not by both"
        raise ValueError(said)
    if racing and seeds < FEWEST_TO_RACE:
        said = f"racing needs at least {FEWEST_TO_RACE} seeds, found {seeds}"
        raise ValueError(said)


def _pruner(*, successive_halving: bool, racing: bool) -> optuna.pruners.BasePruner | None:
    """Return the pruner."""
    import optuna

    if successive_halving:
        return optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    if not racing:
        return None
    try:
        importlib.import_module("scipy")
    except ModuleNotFoundError:
        raise _given.needs("SciPy", "racing") from None
    with warnings.catch_warnings():
        # Its interface is experimental; the tests cover what is used here.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.pruners.WilcoxonPruner(p_threshold=0.1)


def _score(metric: str) -> tuple[str, str] | None:
    """Read `G(FILE)` or `W(FILE)`; none of another metric."""
    found = re.fullmatch(r"\s*([GW])\((.+)\)\s*", metric)
    return None if found is None else (found[1].lower(), found[2])


def _sides(constraint: str) -> tuple[str, str]:
    """Return both sides of `W(FILE) <= NUMBER`; of anything else the whole, and nothing."""
    found = re.fullmatch(r"\s*([GW]\(.+\))\s*<=\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*", constraint)
    return (constraint, "") if found is None else (found[1], found[2])


def _values(results: Results, metric: str) -> list[float | None]:
    """Return a metric of each run, or a score of each scheme."""
    asked = _score(metric)
    if asked is None:
        return results.metric(metric)
    which, file = asked
    scores = _scores(results, file)
    return [None] if scores is None else [score[which] for score in scores]


def _scores(results: Results, file: str) -> list[dict[str, Any]] | None:
    """Return the schemes' scores against a file's reference; None if no flow of a cell finished."""
    try:
        return results.score(file)
    except ValueError as error:
        # This error is about a run; those about a reference have other texts.
        if "` over zero: " not in str(error):
            raise
        return None


def _finished(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """Return the trials that completed or were pruned."""
    return [trial for trial in study.trials if trial.state.name in ("COMPLETE", "PRUNED")]


def _unfinished(study: optuna.Study) -> list[dict[str, Any]]:
    """Return the parameters of interrupted trials that have not been repeated."""
    done = [trial.params for trial in _finished(study)]
    waiting = [trial.system_attrs.get("fixed_params") for trial in study.trials if trial.state.name == "WAITING"]
    left: list[dict[str, Any]] = []
    for trial in study.trials:
        if trial.state.name in ("FAIL", "RUNNING") and trial.params not in [*done, *waiting, *left, {}]:
            left.append(trial.params)
    return left


def _mean(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return math.nan if len(known) < len(values) or not known else sum(known) / len(known)


def _part(scenario: _narrows.Scenario, share: float) -> str:
    """Return a part of a scenario's duration."""
    written = json.loads(_narrows.as_written(scenario.resolved(), "resolved"))
    ends = _narrows.Ends(f"0s..{written['stop']}")
    return str(json.loads(ends.value(share * ends.high)))


def _list(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _space(value: Space | tuple[Any, Any] | Sequence[Any]) -> Space:
    if isinstance(value, (Range, Choice)):
        return value
    if isinstance(value, tuple) and len(value) == 2:  # noqa: PLR2004
        return Range(f"{value[0]}..{value[1]}")
    if isinstance(value, str):
        return _space_of_text(value)
    return Choice(tuple(value))


def _space_of_text(text: str) -> Space:
    """Read `LOW..HIGH`, `log LOW..HIGH`, or values between commas."""
    if ".." in text:
        return Range(text.removeprefix("log ").strip(), log=text.startswith("log "))
    values = tuple(value_of(it.strip()) for it in text.split(","))
    return Choice(values)


def main(options: dict[str, Any]) -> int:
    """`narrows tune`, with options as `args/python.rs` of the command defines them."""
    return ended(lambda: _tuned(options))


def _tuned(options: dict[str, Any]) -> int:
    where = {key: _space_of_text(text) for key, text in map(pair, options.pop("where"))}
    given = {key: value_of(value) for key, value in map(pair, options.pop("set"))}
    early = {"successive_halving": options.pop("halve"), "racing": options.pop("race")}
    done = tune(options.pop("scenario"), where=where, set=given, **early, **options)
    print(done)
    if not done.best:
        print("error: no trial holds the constraints", file=sys.stderr)
        return FAILED
    return 0
