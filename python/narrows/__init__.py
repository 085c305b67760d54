"""Congestion control for traffic that crosses datacenters: simulate, compare, reproduce.

`run` does the runs of a scenario, `sweep` those of many points, `reproduce` a paper's experiment; `Results` are what they
leave on the disk, and `plot` draws them.
"""

from narrows._narrows import ScenarioError, StudyError, __version__
from narrows.papers import reproduce
from narrows.plotting import plot
from narrows.results import Results, Run, Table
from narrows.scenario import Scenario
from narrows.study import run, sweep
from narrows.tuning import Choice, Range, Tuned, tune

__all__ = [
    "Choice",
    "Range",
    "Results",
    "Run",
    "Scenario",
    "ScenarioError",
    "StudyError",
    "Table",
    "Tuned",
    "__version__",
    "plot",
    "reproduce",
    "run",
    "sweep",
    "tune",
]
