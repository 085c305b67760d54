"""Calls that run scenarios and sweeps, on this machine or on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import _given, _renamed, _runs
from narrows.scenario import Scenario, with_laws

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from narrows import progress as watching
    from narrows._laws import LawBase
    from narrows.results import Results
    from narrows.scenario import Values


@_renamed.arguments
def run(
    scenario: Scenario | str | Path,
    out: str | Path | None = None,
    *,
    schemes: str | Iterable[str] = (),
    set: Mapping[str, Any] | None = None,  # noqa: A002
    seed: int | None = None,
    seeds: int | None = None,
    scale: str | None = None,
    vary: Mapping[str, Values] | None = None,
    threads: int | None = None,
    force: bool = False,
    check_invariants: bool = False,
    progress: bool | watching.Progress = True,
    laws: Iterable[type[LawBase]] = (),
) -> Results:
    """Run a scenario, and return its results from the directory `out` (`out/NAME` by default).

    `scenario` is a `Scenario` or a file. Each scheme (or each of `schemes`) runs at every point. `set` overrides keys of the
    scenario, as in `{"topology.k": 4}`; `vary` gives keys several values, as in `{"traffic.0.load": ["20%", "40%"]}`; `seeds`
    is the number of seeds at each point. Finished runs in `out` are kept. A call that would replace finished runs of other
    settings, or leave some out, raises `StudyError`; `force` repeats all runs instead. Results do not depend on `threads`.
    `check_invariants` makes the engine check its invariants. `laws` are laws written in Python, which schemes name by their
    classes: `law = "Halve"`.

    Raises `ScenarioError` if the scenario or an argument is invalid, and `StudyError` if runs fail (`LawError` if a law in
    Python does). Ctrl-C ends the call with `KeyboardInterrupt`; finished runs are kept, and the same call resumes.
    """
    return sweep(
        scenario,
        out,
        schemes=schemes,
        set=set,
        seed=seed,
        seeds=seeds,
        scale=scale,
        vary=vary,
        threads=threads,
        force=force,
        check_invariants=check_invariants,
        progress=progress,
        laws=laws,
    )


@_renamed.arguments
def sweep(
    scenario: Scenario | str | Path,
    out: str | Path | None = None,
    *,
    schemes: str | Iterable[str] = (),
    set: Mapping[str, Any] | None = None,  # noqa: A002
    seed: int | None = None,
    seeds: int | None = None,
    scale: str | None = None,
    vary: Mapping[str, Values] | None = None,
    shard: str | None = None,
    only: Iterable[str] = (),
    merge: Iterable[str | Path] | None = None,
    cluster: str | None = None,
    threads: int | None = None,
    force: bool = False,
    check_invariants: bool = False,
    progress: bool | watching.Progress = True,
    laws: Iterable[type[LawBase]] = (),
) -> Results:
    """Run a scenario at many points: as `run`, and in parts.

    `shard` selects a part of the runs, as in `"3/8"`, and `only` selects runs by name; `merge` merges the results of such parts
    and runs nothing. `cluster="ray"` runs on a Ray cluster (the connected one, or else a local one);
    `cluster="ray://HOST:PORT"` connects to one.
    """
    laws = _given.laws(laws)
    seed, seeds, threads, shard = (
        _given.seed(seed),
        _given.count("seeds", seeds),
        _given.count("threads", threads),
        _given.shard(shard),
    )
    set, vary = _given.keyed("set", set), _given.keyed("vary", vary)  # noqa: A001
    schemes, only = _given.names("schemes", schemes), _given.names("only", only)
    parts = None if merge is None else _given.paths("merge", merge)
    if not isinstance(scenario, Scenario):
        scenario = Scenario.load(scenario, laws=laws)
    settings = _runs.SweepSettings(
        schemes=tuple(schemes),
        set=dict(set or {}),
        seed=seed,
        seeds=seeds,
        scale=scale,
        vary=dict(vary or {}),
        check_invariants=check_invariants,
        laws=tuple(laws),
    )
    target = None if out is None else Path(out)
    if cluster is None:
        return _runs.sweep(
            scenario,
            target,
            settings,
            shard=shard,
            only=only,
            merge=parts,
            threads=threads,
            force=force,
            progress=progress,
        )
    from narrows import cluster as ray_cluster

    scenario = with_laws(scenario, laws)
    read = settings.read(scenario)
    for option, value in {"shard": shard, "only": only, "merge": parts, "threads": threads}.items():
        if value:
            said = f"`{option}` does not go with `cluster`: the cluster has its own"
            raise ValueError(said)
    return ray_cluster.sweep(
        scenario,
        _runs.default_out(read.name) if target is None else target,
        settings,
        address=cluster,
        force=force,
        progress=progress,
    )
