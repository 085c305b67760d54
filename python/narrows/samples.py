"""Samples of a run over time and values of its flows, by expressions such as `rate("0..4", 1s, 2s)` and `inter.fct`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from narrows import _given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import polars as pl

    from narrows.results import Run

#: Times and values, by name of a flow, port or switch.
Samples = dict[str, tuple[list[float], list[float]]]

#: Expressions for samples over time, such as `rate("0..4", 1s, 2s)`, and flows, such as `inter.fct`.
SAMPLED = re.compile(r'(?P<what>\w+)\(["\'](?P<of>[^"\']*)["\'](?:,\s*(?P<start>[^,]+),\s*(?P<end>[^,]+))?\)')
OF_FLOWS = re.compile(r"(?P<of>all|intra|inter)\.(?P<what>fct|slowdown)")

#: Columns of `port_samples`, by word of a claim.
COLUMNS = {
    "queue": "queue_bytes",
    "phantom": "phantom_bytes",
    "ingress": "ingress_bytes",
    "pseudo": "pseudo_bytes",
    "feedback": "feedback_bps",
}


def of(run: Run, asked: str, time_of: Callable[[str], float]) -> tuple[Samples, str]:
    """Return the values of an expression, and their unit; those of flows have no times. `time_of` parses a time to ns."""
    if (match := OF_FLOWS.fullmatch(asked)) is not None:
        flows = _frame(run, "flows")
        chosen = flows if match["of"] == "all" else flows.filter(flows["class"] == match["of"])
        column = "fct_ns" if match["what"] == "fct" else "slowdown"
        return {asked: ([], chosen[column].drop_nulls().to_list())}, "ns" if column == "fct_ns" else ""
    match = SAMPLED.fullmatch(asked)
    if match is None:
        said = f'`{asked}`: expected flows, such as all.fct, or samples, such as queue("receiver")'
        raise ValueError(said)
    made, unit = _over_time(run, match["what"], match["of"])
    if match["start"] is not None:
        start, end = time_of(match["start"].strip()), time_of(match["end"].strip())
        made = {name: _between(times, values, start, end) for name, (times, values) in made.items()}
    return made, unit


def averaged(times: list[float], values: list[float], window: float) -> tuple[list[float], list[float]]:
    """Return the means of samples in windows of time, each at the middle of its window."""
    spans: dict[int, list[float]] = {}
    for time, value in zip(times, values, strict=True):
        spans.setdefault(int(time // window), []).append(value)
    return [(span + 0.5) * window for span in spans], [sum(found) / len(found) for found in spans.values()]


def _over_time(run: Run, what: str, places: str) -> tuple[Samples, str]:
    if what == "rate":
        return _rates(run, places), "bps"
    if what == "buffer":
        rows = _frame(run, "switches")
        fits = [places in {"all", name} or (places.startswith("*") and name.endswith(places[1:])) for name in rows["name"]]
        return _by_name(rows, fits, "buffer_bytes"), "bytes"
    if what not in COLUMNS:
        said = f"`{what}`: expected one of rate, buffer, {', '.join(COLUMNS)}"
        raise ValueError(said)
    rows = _frame(run, "port_samples")
    if places == "receiver":
        fits = rows["receiver"].to_list()
    elif places.startswith("class:"):
        fits = [name == places.removeprefix("class:") for name in rows["class"]]
    else:
        fits = [places in {name, name.split("#")[0]} for name in rows["name"]]
    return _by_name(rows, fits, COLUMNS[what]), COLUMNS[what].rpartition("_")[2]


def _frame(run: Run, table: str) -> pl.DataFrame:
    try:
        return run.table(table).to_polars()
    except ModuleNotFoundError:
        raise _given.needs("Polars", "a figure of samples") from None


def _by_name(rows: pl.DataFrame, fits: list[bool], column: str) -> Samples:
    import polars as pl

    chosen = rows.filter(pl.Series(fits, dtype=pl.Boolean)).drop_nulls(column)
    made = {}
    for (name,), part in chosen.group_by(["name"], maintain_order=True):
        made[str(name)] = (part["time_ns"].to_list(), part[column].to_list())
    return made


#: Maximum number of flows with labels of their own; more are labelled by class.
NAMED_FLOWS = 6
CLASSES = {"intra": "inside a datacenter", "inter": "between datacenters"}


def _rates(run: Run, which: str) -> Samples:
    """Return the rates of flows between consecutive samples."""
    rows = _frame(run, "flow_samples")
    first, _, end = which.partition("..")
    made = {}
    for (flow,), part in rows.group_by(["flow"], maintain_order=True):
        number = int(str(flow))
        if which != "all" and not (int(first) <= number < int(end) if end else number == int(first)):
            continue
        times, sent = part["time_ns"].to_list(), part["delivered_bytes"].to_list()
        rates = [8e9 * (after - before) / (later - earlier) for earlier, later, before, after in _pairs(times, sent)]
        made[number] = (times[1:], rates)
    # Of many flows each is one of its class.
    classes = _classes(run) if len(made) > NAMED_FLOWS else {}
    named = {number: f"flow {number + 1}" for number in made}
    if len(set(classes.values())) > 1:
        named = {number: f"{name}: {CLASSES[classes[number]]}" for number, name in named.items()}
    return {named[number]: samples for number, samples in made.items()}


def _classes(run: Run) -> dict[int, str]:
    flows = _frame(run, "flows")
    return dict(zip(flows["flow"].to_list(), flows["class"].to_list(), strict=True))


def _pairs(times: list[int], values: list[int]) -> Iterable[tuple[int, int, int, int]]:
    return zip(times, times[1:], values, values[1:], strict=False)


def _between(times: list[float], values: list[float], start: float, end: float) -> tuple[list[float], list[float]]:
    chosen = [(time, value) for time, value in zip(times, values, strict=True) if start <= time <= end]
    return [time for time, _ in chosen], [value for _, value in chosen]
