"""Means of metrics over seeds, with their confidence intervals: the values that figures show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrows import _choice, _narrows

if TYPE_CHECKING:
    from narrows.results import Results


@dataclass(frozen=True)
class Dot:
    """A mean over seeds."""

    x: Any
    mean: float
    #: Half of the 95 % confidence interval (Student's t); None for a single value.
    margin: float | None
    count: int
    #: Number of runs without a value.
    missing: int


def dots(results: Results, y: str, x: str | None, by: str) -> tuple[dict[Any, list[Dot]], str]:
    """Returns the means of a metric over the seeds, by the value of `by` and then of `x`, and their unit.

    Raises `ValueError` for a key that no point has, or a metric of which no run has a value.
    """
    values, reasons, unit = results.measured(y)
    if all(value is None for value in values):
        said = f"no run has a value of `{y}`: {next((reason for reason in reasons if reason), 'there are no runs')}"
        raise ValueError(said)
    by = _choice.column(results.runs, by)
    x = None if x is None else _choice.column(results.runs, x)
    groups: dict[Any, dict[Any, list[float | None]]] = {}
    others: dict[tuple[Any, Any], set[tuple[Any, ...]]] = {}
    for run, value in zip(results.runs, values, strict=True):
        keys = run.keys
        at = (keys[by], None if x is None else keys[x])
        groups.setdefault(at[0], {}).setdefault(at[1], []).append(value)
        # A mean is over seeds, and over nothing else.
        rest = tuple(item for key, item in sorted(keys.items()) if key not in {by, x, "seed"})
        others.setdefault(at, set()).add(rest)
    if any(len(rest) > 1 for rest in others.values()):
        varied = [key for key in results.runs[0].point if key not in {by, x}]
        said = (
            f"the runs differ in {', '.join(varied) or 'their scheme'}, too: name it as x or by, or choose some of them "
            "(Results.select, or --only KEY=VALUE)"
        )
        raise ValueError(said)
    return {name: means(of) for name, of in groups.items()}, unit


def means(of: dict[Any, list[float | None]]) -> list[Dot]:
    """Returns the means of values by their places, in the order of the places."""
    made = []
    for x, values in of.items():
        known = [value for value in values if value is not None]
        mean = _narrows.mean(known)
        if mean is None:
            made.append(Dot(x, math.nan, None, 0, len(values)))
        else:
            made.append(Dot(x, mean[0], mean[1], len(known), len(values) - len(known)))
    return sorted(made, key=lambda dot: (isinstance(dot.x, str), dot.x if dot.x is not None else 0))
