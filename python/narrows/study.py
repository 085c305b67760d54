"""Calls that do runs, of a scenario and of many points: here, or on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import _given, _runs
from narrows.scenario import Scenario, with_laws

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from narrows import progress as watching
    from narrows._laws import LawBase
    from narrows.results import Results
    from narrows.scenario import Values


def run(
    scenario: Scenario | str | Path,
    out: str | Path | None = None,
    *,
    schemes: str | Iterable[str] = (),
    set: Mapping[str, Any] | None = None,  # noqa: A002
    seed: int | None = None,
    seeds: int | None = None,
    scale: str | None = None,
    over: Mapping[str, Values] | None = None,
    threads: int | None = None,
    anew: bool = False,
    checked: bool = False,
    progress: bool | watching.Progress = True,
    laws: Iterable[type[LawBase]] = (),
) -> Results:
    """Do the runs of a scenario, and return their results, which lie in `out` (`out/NAME` by default).

    `scenario` is a `Scenario` or a file. A run is every scheme (or those of `schemes`) at every point. `set` overrides keys of
    the scenario, as in `{"topology.k": 4}`; `over` makes keys take several values in turn, as in
    `{"traffic.0.load": ["20%", "40%"]}`; `seeds` is over how many seeds each point is run. Runs that are in `out` already are
    kept. A call that would replace finished runs of other settings, or leave some out, raises `StudyError`, unless `anew`, which
    does all runs again. Results are the same at any number of `threads`. `checked` makes the engine check itself. `laws` are laws
    written in Python, which schemes name by their classes: `law = "Halve"`.

    Raises `ScenarioError` when something is wrong with the scenario or with what was asked for, and `StudyError` when runs
    fail (`LawError` when a law in Python does). Ctrl-C ends the work with `KeyboardInterrupt`; finished runs are kept, and the
    same call goes on from there.
    """
    return sweep(
        scenario,
        out,
        schemes=schemes,
        set=set,
        seed=seed,
        seeds=seeds,
        scale=scale,
        over=over,
        threads=threads,
        anew=anew,
        checked=checked,
        progress=progress,
        laws=laws,
    )


def sweep(
    scenario: Scenario | str | Path,
    out: str | Path | None = None,
    *,
    schemes: str | Iterable[str] = (),
    set: Mapping[str, Any] | None = None,  # noqa: A002
    seed: int | None = None,
    seeds: int | None = None,
    scale: str | None = None,
    over: Mapping[str, Values] | None = None,
    shard: str | None = None,
    only: Iterable[str] = (),
    merge: Iterable[str | Path] | None = None,
    on: str | None = None,
    threads: int | None = None,
    anew: bool = False,
    checked: bool = False,
    progress: bool | watching.Progress = True,
    laws: Iterable[type[LawBase]] = (),
) -> Results:
    """Do the runs of a scenario at many points: as `run`, and in parts.

    `shard` does a part of the runs, as in `"3/8"`, and `only` those of these names; `merge` puts the results of such parts
    together and runs nothing. `on="ray"` gives the runs to a Ray cluster (the one that Ray is connected to, or else a local
    one); `on="ray://HOST:PORT"` connects to one.
    """
    laws = _given.laws(laws)
    seed, seeds, threads, shard = (
        _given.seed(seed),
        _given.count("seeds", seeds),
        _given.count("threads", threads),
        _given.shard(shard),
    )
    set, over = _given.keyed("set", set), _given.keyed("over", over)  # noqa: A001
    schemes, only = _given.names("schemes", schemes), _given.names("only", only)
    parts = None if merge is None else _given.paths("merge", merge)
    if not isinstance(scenario, Scenario):
        scenario = Scenario.load(scenario, laws=laws)
    asked = _runs.Asked(
        schemes=tuple(schemes),
        set=dict(set or {}),
        seed=seed,
        seeds=seeds,
        scale=scale,
        over=dict(over or {}),
        checked=checked,
        laws=tuple(laws),
    )
    target = None if out is None else Path(out)
    if on is None:
        return _runs.sweep(
            scenario,
            target,
            asked,
            shard=shard,
            only=only,
            merge=parts,
            threads=threads,
            anew=anew,
            progress=progress,
        )
    from narrows import cluster

    scenario = with_laws(scenario, laws)
    read = asked.read(scenario)
    for option, value in {"shard": shard, "only": only, "merge": parts, "threads": threads}.items():
        if value:
            said = f"`{option}` does not go with `on`: the cluster has its own"
            raise ValueError(said)
    return cluster.sweep(
        scenario,
        _runs.default_out(read.name) if target is None else target,
        asked,
        address=on,
        anew=anew,
        progress=progress,
    )
