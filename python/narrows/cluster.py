"""Sweeps on a Ray cluster.

A task runs one run (or a few, if there are thousands) with the same code as on one machine, in its own directory. Its files
return through Ray's object store and are kept at once, so a killed driver loses none: the same call resumes with the missing
runs. Complete results are merged. Ray reschedules the tasks of a worker that dies.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import io
import logging
import os
import shutil
import tarfile
import tempfile
import traceback
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import _given, _narrows, _runs
from narrows import progress as watching
from narrows._runs import SweepSettings
from narrows._words import ended, pair, value_of
from narrows.results import Results
from narrows.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Maximum number of tasks; with more runs, a task has several.
_MOST_TASKS = 5000
#: File that marks a directory of parts; it is locked while a sweep uses the directory.
_MARK = ".narrows-parts"
#: Number of retries of a task whose worker died.
_RETRIES = 5


def sweep(
    scenario: Scenario,
    out: Path,
    settings: SweepSettings,
    *,
    address: str,
    force: bool,
    progress: bool | watching.Progress,
    tasks: int | None = None,
) -> Results:
    """Run a sweep on the cluster at `address` (`ray://HOST:PORT`), or with `"ray"` on the one that Ray finds or starts here."""
    if address != "ray" and not address.startswith("ray://"):
        said = f'expected cluster="ray" or cluster="ray://HOST:PORT", found {address!r}'
        raise ValueError(said)
    try:
        import ray
    except ModuleNotFoundError:
        raise _given.needs("Ray", 'cluster="ray"') from None
    if force and out.exists():
        said = f"`{out}` exists; choose another directory to repeat a sweep with `force`"
        raise FileExistsError(said)
    if not ray.is_initialized():
        ray.init(address=None if address == "ray" else address, log_to_driver=False, logging_level=logging.ERROR)
    watch = watching.of_here(progress)
    with _parts(out.with_name(f"{out.name}.parts")) as parts:

        def merged() -> Results:
            """Merge the parts."""
            return _runs.sweep(scenario, out, settings, merge=_whole(parts), progress=False)

        try:
            results = merged()
        except _narrows.StudyError as error:
            if not error.missing:
                raise
            count = max(1, min(len(error.missing), tasks or _MOST_TASKS))
            groups = [error.missing[first::count] for first in range(count)]
            try:
                _gather(ray, scenario, settings, groups, parts, watch)
            finally:
                watch.end()
            results = merged()
        # Parts of other sweeps into the same directory stay.
        known = {run.manifest["key"] for run in results.runs}
        for part in _whole(parts):
            if all(run.manifest["key"] in known for run in Results(part)):
                shutil.rmtree(part)
    return results


@contextlib.contextmanager
def _parts(directory: Path) -> Iterator[Path]:
    """Lock the directory of parts, and remove it once it is empty."""
    mark = directory / _MARK
    if directory.is_dir() and any(directory.iterdir()) and not mark.is_file():
        said = f"`{directory}`, where parts of the sweep would be kept, has other files; choose another `out`"
        raise FileExistsError(said)
    directory.mkdir(parents=True, exist_ok=True)
    with mark.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            said = f"another sweep uses `{directory}`; wait until it ends, or choose another `out`"
            raise BlockingIOError(said) from None
        yield directory
        if [path.name for path in directory.iterdir()] == [_MARK]:
            mark.unlink()
            directory.rmdir()


def _whole(parts: Path) -> list[Path]:
    """Return the complete parts."""
    return sorted(part for part in parts.iterdir() if part.is_dir() and not part.name.startswith("."))


def _gather(
    ray: Any,
    scenario: Scenario,
    settings: SweepSettings,
    groups: list[list[str]],
    parts: Path,
    watch: watching.Progress,
) -> None:
    """Run groups of runs as tasks, and store the results of each in its own directory."""
    # The files that the scenario names lie beside it, and workers may be on other machines.
    toml, inputs = scenario.to_toml(), ray.put(_inputs(scenario, settings))
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_some)
    waiting = {task.remote(toml, scenario.name, inputs, settings, group): len(group) for group in groups}
    of = sum(waiting.values())
    failed: list[_Failure] = []
    try:
        while waiting:
            watch.show(of, of - sum(waiting.values()), [])
            ready, _ = ray.wait(list(waiting), timeout=0.5)
            for one in ready:
                packed, error = ray.get(one)
                if packed:
                    _unpack(packed, parts / uuid.uuid4().hex)
                failed += [error] if error else []
                del waiting[one]
    finally:
        for one in waiting:
            ray.cancel(one)
    if failed:
        more = f"\nand {len(failed) - 1} more" if len(failed) > 1 else ""
        first = failed[0]
        raise first.again(f"{first.said}{more}\nfinished runs are kept; the same call goes on from there") from first.cause()


@dataclass(frozen=True)
class _Failure:
    """Failure of a task, in a form that other machines can read."""

    said: str
    #: For a law in Python: the fields of `LawError`, and the traceback of the law's exception.
    law: dict[str, Any] | None = None
    traceback: str = ""

    @classmethod
    def of(cls, error: _narrows.StudyError) -> _Failure:
        """Convert an error."""
        if not isinstance(error, _narrows.LawError):
            return cls(str(error))
        fields = {name: getattr(error, name) for name in ("law", "method", "flow", "time_ps")}
        cause = error.__cause__
        return cls(str(error), fields, "".join(traceback.format_exception(cause)) if cause else "")

    def again(self, said: str) -> _narrows.StudyError:
        """Return the original error, with another text."""
        if self.law is None:
            return _narrows.StudyError(said)
        error = _narrows.LawError(said)
        for name, value in self.law.items():
            setattr(error, name, value)
        return error

    def cause(self) -> RuntimeError | None:
        """Return an error with the traceback of the other machine."""
        return RuntimeError(f"on a worker:\n{self.traceback}") if self.traceback else None


def _some(
    toml: str, name: str, inputs: tuple[int, dict[str, bytes]], settings: SweepSettings, runs: list[str]
) -> tuple[bytes, _Failure | None]:
    """Run some runs in a temporary directory. Return its archive, and the failure if there was one. A Ray task."""
    depth, files = inputs
    with tempfile.TemporaryDirectory(prefix="narrows-") as directory:
        # Deep enough that no relative path leaves the directory.
        root = Path(directory, *["in"] * depth)
        root.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_bytes(content)
        scenario = Scenario.from_toml(toml, source=root / f"{name}.toml")
        out, error = Path(directory) / "results", None
        try:
            _runs.sweep(scenario, out, settings, only=runs, threads=1, progress=False)
        except _narrows.StudyError as failure:
            error = _Failure.of(failure)
        packed = io.BytesIO()
        if (out / "manifest.json").is_file():
            with tarfile.open(fileobj=packed, mode="w") as tar:
                tar.add(out, arcname=".")
        return packed.getvalue(), error


def _unpack(packed: bytes, place: Path) -> None:
    """Unpack a directory atomically."""
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".") as directory:
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            tar.extractall(Path(directory) / "whole", filter="data")
        (Path(directory) / "whole").rename(place)


def _inputs(scenario: Scenario, settings: SweepSettings) -> tuple[int, dict[str, bytes]]:
    """Return the depth of the files that a scenario names outside its directory, and the files by relative path."""
    read = settings.read(scenario)
    read.check()
    beside = Path(scenario.source or ".").parent
    files = {os.path.relpath(path, beside): content for path, content in read.inputs()}
    absolute = [path for path, _ in read.inputs() if Path(path).is_absolute() and not beside.is_absolute()]
    if absolute:
        said = f"`{absolute[0]}` is named by its whole path, which other machines do not have; name it relative to the scenario"
        raise ValueError(said)
    return max((Path(name).parts.count("..") for name in files), default=0), files


def main(words: list[str]) -> int:
    """`narrows sweep --ray`."""
    parser = argparse.ArgumentParser(prog="narrows sweep --ray", description="Do a sweep on a Ray cluster")
    parser.add_argument("scenario", metavar="SCENARIO", help="the scenario file")
    parser.add_argument("--ray", required=True, metavar="ADDRESS", help="ray://HOST:PORT, or `local`")
    parser.add_argument("--vary", action="append", default=[], metavar="KEY=VALUES", help="a key and its values")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds a point")
    parser.add_argument("--seed", type=int, metavar="SEED", help="the first seed")
    parser.add_argument("--scale", help="one of the scenario's scales")
    parser.add_argument("--scheme", action="append", default=[], metavar="NAME", help="only these schemes")
    parser.add_argument("--tasks", type=int, metavar="N", help="how many tasks; default: one a run")
    parser.add_argument("--out", metavar="DIR", help="the directory for results")
    parser.add_argument("--check-invariants", action="store_true", help="check the engine while it runs")
    args = parser.parse_args(words)
    return ended(lambda: _swept(args))


def _swept(args: argparse.Namespace) -> int:
    settings = SweepSettings(
        schemes=tuple(args.scheme),
        set={key: value_of(value) for key, value in map(pair, args.set)},
        seed=args.seed,
        seeds=args.seeds,
        scale=args.scale,
        vary=_once(args.vary),
        check_invariants=args.check_invariants,
    )
    scenario = Scenario.load(args.scenario)
    out = Path(args.out) if args.out else _runs.default_out(scenario.name)
    address = "ray" if args.ray == "local" else args.ray
    try:
        results = sweep(scenario, out, settings, address=address, force=False, progress=True, tasks=args.tasks)
    except Exception as error:
        # What Ray itself says: a worker that dies each time, a cluster that is gone.
        if not type(error).__module__.startswith("ray"):
            raise
        said = f"{error}\nhelp: finished runs are kept; the same command goes on from there"
        raise _narrows.StudyError(said) from None
    print(f"{len(results)} runs\nreport: {results.report}")
    return 0


def _once(given: list[str]) -> dict[str, str]:
    """Return keys and their values from the command line. Raises `ValueError` for a repeated key."""
    varied: dict[str, str] = {}
    for key, values in map(pair, given):
        if key in varied:
            said = f"`{key}` is varied twice: give all of its values at once, with commas between them"
            raise ValueError(said)
        varied[key] = values
    return varied
