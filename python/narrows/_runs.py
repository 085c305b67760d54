"""Runs on this machine: those of a scenario or of a part of it, or a merge of results.

`study` has the public calls, and `cluster` runs on other machines.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import _laws, _narrows
from narrows import progress as watching
from narrows.results import Results
from narrows.scenario import with_laws

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from narrows._laws import LawBase
    from narrows.scenario import Scenario


@dataclass(frozen=True)
class SweepSettings:
    """Settings of a sweep in addition to its scenario, the same on every machine."""

    schemes: tuple[str, ...] = ()
    set: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    seeds: int | None = None
    scale: str | None = None
    vary: dict[str, Any] = field(default_factory=dict)
    check_invariants: bool = False
    laws: tuple[type[LawBase], ...] = ()

    def read(self, scenario: Scenario) -> _narrows.Scenario:
        """Returns the scenario with these settings, as parsed by the native part. Raises `ScenarioError` if it is invalid."""
        return scenario.read(set=self.set, seed=self.seed, scale=self.scale, vary=self.vary, seeds=self.seeds)


def sweep(
    scenario: Scenario,
    out: Path | None,
    settings: SweepSettings,
    *,
    shard: str | None = None,
    only: Sequence[str] = (),
    merge: Iterable[str | Path] | None = None,
    threads: int | None = None,
    force: bool = False,
    progress: bool | watching.Progress = True,
) -> Results:
    """Runs a sweep, or merges the results of its parts; the arguments are those of `study.sweep`."""
    scenario = with_laws(scenario, settings.laws)
    read = settings.read(scenario)
    target = default_out(read.name, shard) if out is None else out
    watch = watching.of_here(progress)
    if settings.laws and merge is None:
        watch.tell(_laws.slow(settings.laws))
    try:
        warnings, broken = _narrows.run_study(
            read,
            target,
            schemes=list(settings.schemes),
            shard=shard,
            only=list(only),
            take=[os.fspath(part) for part in merge or ()],
            runs_missing=merge is None,
            threads=threads,
            force=force,
            check_invariants=settings.check_invariants,
            replay=_replay(scenario, target, settings),
            tell=watch.tell,
            show=watch.show,
            laws=_laws.makers(settings.laws),
        )
    finally:
        watch.end()
    for warning in warnings:
        watch.tell(warning)
    if broken:
        said = "\n".join(broken)
        raise _narrows.StudyError(said)
    return Results(target)


def default_out(name: str, shard: str | None = None) -> Path:
    """Returns the default directory for the results of a scenario, or of a part of it."""
    return Path("out") / (name if shard is None else f"{name}-{shard.replace('/', '-of-')}")


def _replay(scenario: Scenario, target: Path, settings: SweepSettings) -> str:
    """Returns the call that reproduces the results. The report also shows the complete scenario."""
    given: Mapping[str, Any] = {
        "out": str(target),
        "schemes": list(settings.schemes),
        "set": settings.set,
        "seed": settings.seed,
        "seeds": settings.seeds,
        "scale": settings.scale,
        "vary": settings.vary,
    }
    file = str(scenario.source or f"{scenario.name}.toml")
    words = [repr(file)] + [f"{name}={value!r}" for name, value in given.items() if value]
    names = ", ".join(law.__name__ for law in settings.laws)
    words += [f"laws=[{names}]"] if names else []
    return f"narrows.run({', '.join(words)})"
