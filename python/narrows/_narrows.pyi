"""The native part of the package."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, final

__version__: str
__engine__: str

class ScenarioError(ValueError):
    """Something in a scenario, or in what was asked for, is wrong."""

    file: str | None
    line: int | None
    column: int | None
    help: str

class StudyError(RuntimeError):
    """Runs failed, or their results could not be written or read."""

    missing: list[str]

@final
class Scenario:
    """A scenario, read and resolved, with all that is varied."""

    def __new__(
        cls,
        text: str,
        origin: str,
        *,
        set: Sequence[tuple[str, str]],  # noqa: A002
        seed: int | None,
        scale: str | None,
        over: Sequence[tuple[str, str]],
        seeds: int | None,
    ) -> Scenario: ...
    @property
    def name(self) -> str: ...
    def resolved(self) -> str: ...
    def runs(self) -> list[str]: ...
    def inputs(self) -> list[tuple[str, str]]: ...
    def check(self) -> list[tuple[str, list[str]]]: ...

@final
class Ends:
    """A range of a scenario's values. Numbers are in base units: ps, bytes, bits a second."""

    def __new__(cls, text: str) -> Ends: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def is_whole(self) -> bool: ...
    def value(self, number: float) -> str: ...

@final
class Tables:
    """Tables of the same columns, one file after the other."""

    def __new__(cls, files: Sequence[str | PathLike[str]]) -> Tables: ...
    def columns(self) -> list[tuple[str, str]]: ...
    def rows(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Metrics:
    """Summaries of runs, and the directories with their samples, for metrics."""

    def __new__(cls, summaries: Sequence[str], directories: Sequence[str | PathLike[str]] = ()) -> Metrics: ...
    def values(self, metric: str) -> tuple[list[float | None], list[str | None], str]: ...
    def hold(self, check: str) -> list[bool | None]: ...

def schema() -> str: ...
def as_written(text: str, origin: str) -> str: ...
def text_of(path: str) -> str: ...
def toml_of(json: str) -> str: ...
def drawing(json: str, origin: str) -> str: ...
def mean(values: Sequence[float]) -> tuple[float, float | None] | None: ...
def run_command(words: Sequence[str], again: Sequence[str]) -> int: ...
def run_study(
    scenario: Scenario,
    out: str | PathLike[str],
    *,
    schemes: Sequence[str],
    shard: str | None,
    only: Sequence[str],
    take: Sequence[str | PathLike[str]],
    runs_missing: bool,
    threads: int | None,
    anew: bool,
    checked: bool,
    replay: str,
    tell: Callable[[str], Any],
    show: Callable[[int, int, list[float]], Any],
) -> tuple[list[str], list[str]]: ...
