"""Congestion control for traffic that crosses datacenters: simulate, compare, reproduce.

`run` runs a scenario, `sweep` a sweep in parts or on a cluster, `reproduce` a paper's experiment. `Results` reads their results;
`plot` and `pareto_front` draw them. `tune` searches for parameters. A `Law` is a congestion-control law written in Python.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from narrows import _renamed
from narrows._narrows import Ack, LawError, Loss, PathInfo, ScenarioError, StudyError, Timeout, __version__
from narrows.fronts import pareto_front
from narrows.imports import import_network, import_traffic
from narrows.law import Law
from narrows.papers import reproduce
from narrows.plotting import plot, save
from narrows.porting import law_to_rust
from narrows.results import Results, Run, Table
from narrows.scenario import Scenario
from narrows.study import run, sweep
from narrows.tuning import Choice, Range, TuneResult, tune

__all__ = [
    "Ack",
    "Choice",
    "Law",
    "LawError",
    "Loss",
    "PathInfo",
    "Range",
    "Results",
    "Run",
    "Scenario",
    "ScenarioError",
    "StudyError",
    "Table",
    "Timeout",
    "TuneResult",
    "__version__",
    "import_network",
    "import_traffic",
    "law_to_rust",
    "pareto_front",
    "plot",
    "reproduce",
    "run",
    "save",
    "sweep",
    "tune",
]

if not _TYPE_CHECKING:  # Type checkers would accept any name.

    def __getattr__(name: str) -> object:
        """Refuse a name that the package lacks."""
        raise _renamed.no_name(__name__, name)
