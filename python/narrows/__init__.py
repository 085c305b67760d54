"""Congestion control for traffic that crosses datacenters: simulate, compare, reproduce.

`run` does the runs of a scenario, `sweep` those of many points, `reproduce` a paper's experiment; `Results` are what they
leave on the disk, and `plot` and `front` draw them. A `Law` is a congestion-control law written in Python.
"""

from narrows._narrows import Ack, LawError, LawPath, Loss, ScenarioError, StudyError, Timeout, __version__
from narrows.fronts import front
from narrows.imports import import_network, import_traffic
from narrows.law import Law
from narrows.papers import reproduce
from narrows.plotting import plot, save
from narrows.porting import law_to_rust
from narrows.results import Results, Run, Table
from narrows.scenario import Scenario
from narrows.study import run, sweep
from narrows.tuning import Choice, Range, Tuned, tune

__all__ = [
    "Ack",
    "Choice",
    "Law",
    "LawError",
    "LawPath",
    "Loss",
    "Range",
    "Results",
    "Run",
    "Scenario",
    "ScenarioError",
    "StudyError",
    "Table",
    "Timeout",
    "Tuned",
    "__version__",
    "front",
    "import_network",
    "import_traffic",
    "law_to_rust",
    "plot",
    "reproduce",
    "run",
    "save",
    "sweep",
    "tune",
]
