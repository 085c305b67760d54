"""Sweeps on a Ray cluster.

Each task does some of the runs by the same code as on one machine, in a directory of its own. Its files come back through Ray's
store and are kept as they come, so a driver that is killed loses none of them: the same call goes on with the runs that are
missing. When all are there they are merged. Ray gives the tasks of a worker that dies out again.
"""

from __future__ import annotations

import io
import logging
import shutil
import sys
import tarfile
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import _narrows
from narrows import progress as watching
from narrows import study as here

if TYPE_CHECKING:
    from narrows.results import Results
    from narrows.scenario import Scenario

#: Tasks a processor, so that processors that end early take more.
_TASKS_A_PROCESSOR = 4
#: How often a task is given out again whose worker died.
_RETRIES = 5


@dataclass(frozen=True)
class Asked:
    """What a sweep is asked for beside its scenario."""

    schemes: tuple[str, ...] = ()
    set: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    seeds: int | None = None
    scale: str | None = None
    over: dict[str, list[Any]] = field(default_factory=dict)
    checked: bool = False

    def words(self) -> dict[str, Any]:
        """Return it as arguments of `sweep`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def sweep(
    scenario: Scenario,
    out: Path,
    asked: Asked,
    *,
    address: str,
    anew: bool,
    progress: bool | watching.Progress,
    tasks: int | None = None,
) -> Results:
    """Do a sweep on the cluster at `address` (`ray://HOST:PORT`), or with `"ray"` on the one that Ray finds or begins here."""
    if address != "ray" and not address.startswith("ray://"):
        said = f'expected on="ray" or on="ray://HOST:PORT", found {address!r}'
        raise ValueError(said)
    try:
        import ray
    except ModuleNotFoundError as error:
        said = "Ray is not installed; `pip install ray` installs it"
        raise ModuleNotFoundError(said) from error
    if anew and out.exists():
        said = f"`{out}` is there; choose another directory for a sweep that is done anew"
        raise FileExistsError(said)
    if not ray.is_initialized():
        ray.init(address=None if address == "ray" else address, log_to_driver=False, logging_level=logging.ERROR)
    parts = out.with_name(f"{out.name}.parts")
    watch = watching.of_here(progress)

    def merged() -> Results:
        """Put together what is there."""
        found = sorted(parts.iterdir()) if parts.is_dir() else []
        return here.sweep(scenario, out, merge=[it for it in found if _is_whole(it)], progress=False, **asked.words())

    try:
        results = merged()
    except _narrows.StudyError as error:
        if not error.missing:
            raise
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        processors = max(1, int(resources.get("CPU", 1)))
        count = max(1, min(len(error.missing), tasks or _TASKS_A_PROCESSOR * processors))
        parts.mkdir(parents=True, exist_ok=True)
        try:
            _gather(ray, scenario, asked, [error.missing[first::count] for first in range(count)], parts, watch)
        finally:
            watch.end()
        results = merged()
    shutil.rmtree(parts, ignore_errors=True)
    return results


def _is_whole(part: Path) -> bool:
    """Whether a part is not one that is being unpacked."""
    return part.is_dir() and not part.name.startswith(".")


def _gather(
    ray: Any,
    scenario: Scenario,
    asked: Asked,
    groups: list[list[str]],
    parts: Path,
    watch: watching.Progress,
) -> None:
    """Have groups of runs done, and put the results of each in a directory of its own as they come."""
    # The files that the scenario names lie beside it, and workers may be on other machines.
    toml, inputs = scenario.to_toml(), ray.put(_inputs(scenario))
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_some)
    waiting = {task.remote(toml, scenario.name, inputs, asked, group): len(group) for group in groups}
    of = sum(waiting.values())
    try:
        while waiting:
            watch.show(of, of - sum(waiting.values()), [])
            ready, _ = ray.wait(list(waiting), timeout=0.5)
            for one in ready:
                _unpack(ray.get(one), parts / uuid.uuid4().hex)
                del waiting[one]
    except ray.exceptions.RayTaskError as error:
        raise _narrows.StudyError(str(error.cause)) from None
    finally:
        for one in waiting:
            ray.cancel(one)


def _some(toml: str, name: str, inputs: dict[str, bytes], asked: Asked, runs: list[str]) -> bytes:
    """Do some runs in a directory of their own, and return the directory packed. A task."""
    from narrows.scenario import Scenario

    with tempfile.TemporaryDirectory(prefix="narrows-") as directory:
        root = Path(directory)
        for file, content in inputs.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_bytes(content)
        scenario = Scenario.from_toml(toml, source=root / f"{name}.toml")
        out = root / "out"
        here.sweep(scenario, out, only=runs, threads=1, progress=False, **asked.words())
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(out, arcname=".")
        return packed.getvalue()


def _unpack(packed: bytes, place: Path) -> None:
    """Unpack a directory, whole or not at all."""
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".") as directory:
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            tar.extractall(Path(directory) / "whole", filter="data")
        (Path(directory) / "whole").rename(place)


def _inputs(scenario: Scenario) -> dict[str, bytes]:
    """Return the files that a scenario names, by their names in it."""
    beside = Path(scenario.source or ".").parent
    found: dict[str, bytes] = {}

    def look(value: Any) -> None:
        if isinstance(value, dict):
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)
        elif isinstance(value, str) and value and not Path(value).is_absolute():
            path = beside / value
            if "\n" not in value and len(value) < 256 and path.is_file():  # noqa: PLR2004
                found[value] = path.read_bytes()

    look(scenario.to_dict())
    return found


def main(words: list[str]) -> int:
    """`narrows sweep --ray`."""
    import argparse

    parser = argparse.ArgumentParser(prog="narrows sweep --ray", description="Do a sweep on a Ray cluster")
    parser.add_argument("scenario", metavar="SCENARIO", help="the scenario file")
    parser.add_argument("--ray", required=True, metavar="ADDRESS", help="ray://HOST:PORT, or `local`")
    parser.add_argument("--over", action="append", default=[], metavar="KEY=VALUES", help="a key and its values")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds a point")
    parser.add_argument("--seed", type=int, metavar="SEED", help="the first seed")
    parser.add_argument("--scale", help="one of the scenario's scales")
    parser.add_argument("--scheme", action="append", default=[], metavar="NAME", help="only these schemes")
    parser.add_argument("--tasks", type=int, metavar="N", help="how many tasks; default: four a processor")
    parser.add_argument("--out", metavar="DIR", help="the directory for results")
    parser.add_argument("--checked", action="store_true", help="check the engine while it runs")
    args = parser.parse_args(words)
    from narrows.scenario import Scenario
    from narrows.tuning import pair, value_of

    try:
        asked = Asked(
            schemes=tuple(args.scheme),
            set={key: value_of(value) for key, value in map(pair, args.set)},
            seed=args.seed,
            seeds=args.seeds,
            scale=args.scale,
            over={key: [value_of(it.strip()) for it in values.split(",")] for key, values in map(pair, args.over)},
            checked=args.checked,
        )
        scenario = Scenario.load(args.scenario)
        out = Path(args.out) if args.out else Path("out") / scenario.name
        address = "ray" if args.ray == "local" else args.ray
        results = sweep(scenario, out, asked, address=address, anew=False, progress=True, tasks=args.tasks)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(error if str(error).startswith("error") else f"error: {error}", file=sys.stderr)
        return 2
    except _narrows.StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{len(results)} runs\nreport: {results.report}")
    return 0
