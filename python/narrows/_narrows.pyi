"""The native part of the package."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, final

__version__: str
__engine__: str

class ScenarioError(ValueError):
    """An invalid scenario or an invalid request."""

    file: str | None
    line: int | None
    column: int | None
    help: str

class StudyError(RuntimeError):
    """Runs failed, or their results could not be written or read."""

    missing: list[str]

class LawError(StudyError):
    """A law written in Python failed, or returned an impossible limit; `__cause__` is the exception that it raised."""

    law: str
    method: str
    #: Number of the flow for which the law's object was made; on a persistent connection, the number of its first flow.
    flow: int | None
    #: Simulated time in picoseconds; None before the flow's first event.
    time_ps: int | None

@final
class PathInfo:
    """Properties of a flow that its law knows before the first packet leaves."""

    def __new__(cls, base_rtt: int, intra_rtt: int, line_rate: int, mss: int) -> PathInfo: ...
    @property
    def base_rtt(self) -> int:
        """Picoseconds: round trip of a full packet and its acknowledgement with every queue empty."""
    @property
    def intra_rtt(self) -> int:
        """Picoseconds: base round trip between two hosts of one datacenter."""
    @property
    def line_rate(self) -> int:
        """Bits a second: rate of the narrowest link."""
    @property
    def mss(self) -> int:
        """Bytes: payload of a full packet."""
    @property
    def bdp(self) -> int:
        """Bytes: `line_rate` times `base_rtt`."""
    @property
    def intra_bdp(self) -> int:
        """Bytes: `line_rate` times `intra_rtt`."""
    @property
    def is_inter(self) -> bool:
        """True if the round trip is longer than any inside a datacenter."""

@final
class Ack:
    """An acknowledgement of one packet, or of several consecutive ones that are all marked or all unmarked."""

    @property
    def now(self) -> int:
        """Picoseconds: time of arrival."""
    @property
    def sent_at(self) -> int:
        """Picoseconds: time at which the (newest) acknowledged packet was last sent."""
    @property
    def rtt(self) -> int:
        """Picoseconds: `now - sent_at`, without the wait in the host's own queue."""
    @property
    def acked(self) -> int:
        """Bytes newly acknowledged; 0 if it only repeats an acknowledgement or reports a late mark."""
    @property
    def marked(self) -> int:
        """Bytes of `acked` that were ECN-marked."""
    @property
    def in_flight(self) -> int:
        """Bytes still in flight."""
    @property
    def delivered(self) -> int:
        """Bytes acknowledged since the flow began, including these."""
    @property
    def bytes_remaining(self) -> int | None:
        """Bytes of the flow not yet acknowledged, if its host knows the flow's size (`size_aware`); else None."""
    @property
    def delivered_at_send(self) -> int:
        """Bytes: `delivered` when the acknowledged packet was sent; the round trip that ends now began then."""
    @property
    def delivered_time_at_send(self) -> int:
        """Picoseconds: time of the last increase of `delivered` before the packet was sent."""
    @property
    def send_elapsed(self) -> int:
        """Picoseconds from the first packet of the flight to this one, by send time."""
    @property
    def app_limited(self) -> bool:
        """True if the window was not filled: an unused window does not grow (RFC 9002, section 7.8)."""

@final
class Loss:
    """All packets declared lost at one time. Never a mark."""

    @property
    def now(self) -> int:
        """Picoseconds: time at which the sender declared them lost."""
    @property
    def sent_at(self) -> int:
        """Picoseconds: time at which the (newest) lost packet was sent."""
    @property
    def lost(self) -> int:
        """Bytes lost."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight without the lost packets."""
    @property
    def cause(self) -> str:
        """`reordered`: packets sent later were acknowledged. `nack`: the receiver requested a retransmission."""

@final
class Timeout:
    """The retransmission timer expired."""

    @property
    def now(self) -> int:
        """Picoseconds: time at which the timer expired."""
    @property
    def sent_at(self) -> int:
        """Picoseconds: time at which the (newest) lost packet was sent."""
    @property
    def lost(self) -> int:
        """Bytes lost."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight without the lost packets."""

@final
class Scenario:
    """A parsed and resolved scenario, with all its points."""

    def __new__(
        cls,
        text: str,
        origin: str,
        *,
        set: Sequence[tuple[str, str]],  # noqa: A002
        seed: int | None,
        scale: str | None,
        vary: Sequence[tuple[str, str]],
        seeds: int | None,
    ) -> Scenario: ...
    @property
    def name(self) -> str: ...
    def resolved(self) -> str: ...
    def runs(self) -> list[str]: ...
    def inputs(self) -> list[tuple[str, bytes]]: ...
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
    """Tables of several files, concatenated, with the columns of all of them."""

    def __new__(cls, files: Sequence[str | PathLike[str]], runs: Sequence[str] | None = None) -> Tables: ...
    def columns(self) -> list[tuple[str, str]]: ...
    def are_alike(self) -> bool: ...
    def select(self, columns: Sequence[str]) -> Tables: ...
    def of_class(self, class_: str) -> Tables: ...
    def rows(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Metrics:
    """Summaries of runs, and the directories with their samples, as input for metrics."""

    def __new__(cls, summaries: Sequence[str], directories: Sequence[str | PathLike[str]] = ()) -> Metrics: ...
    def values(self, metric: str) -> tuple[list[float | None], list[str | None], str]: ...
    def check(self, check: str) -> list[bool | None]: ...

def jobs(manifests: Sequence[str], summaries: Sequence[str]) -> Tables: ...
def summaries(manifests: Sequence[str], summaries: Sequence[str]) -> Tables: ...
def report(directory: str | PathLike[str], names: Sequence[str]) -> str: ...
def schema() -> str: ...
def as_written(text: str, origin: str) -> str: ...
def text_of(path: str) -> str: ...
def amount(text: str) -> tuple[float, str] | None: ...
def nearest(name: str, names: Sequence[str]) -> str | None: ...
def replacement(key: str, names: Sequence[str]) -> str | None: ...
def toml_of(json: str) -> str: ...
def drawing(json: str, origin: str) -> str: ...
def pooled(directory: str | PathLike[str], names: Sequence[str]) -> str: ...
def check_reference(json: str, scenario: str) -> None: ...
def score(
    directory: str | PathLike[str],
    names: Sequence[str],
    metrics: Sequence[str],
    reference: str | None = None,
    not_in_baseline: Sequence[str] = (),
) -> str: ...
def mean(values: Sequence[float]) -> tuple[float, float | None] | None: ...
def import_files(words: Sequence[str], *, base: tuple[str, str] | None, written: bool) -> tuple[str, str | None, list[str]]: ...
def new_law(name: str, checkout: str, draft: str) -> list[str]: ...
def python_command(words: Sequence[str]) -> tuple[str, str] | None: ...
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
    force: bool,
    check_invariants: bool,
    replay: str,
    tell: Callable[[str], Any],
    show: Callable[[int, int, list[float]], Any],
    laws: Mapping[str, Callable[[str], Callable[[PathInfo], Any]]],
) -> tuple[list[str], list[str]]: ...
