"""The native part of the package."""

from collections.abc import Callable, Mapping, Sequence
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

class LawError(StudyError):
    """A law written in Python failed, or permitted what cannot be; `__cause__` is what it raised."""

    law: str
    method: str
    #: The number of the flow that the law's object was made for: on a kept connection that of the first one.
    flow: int | None
    #: Simulated time in picoseconds; None before the flow's first event.
    time_ps: int | None

@final
class LawPath:
    """What a law may know of its flow before the first packet leaves."""

    def __new__(cls, base_rtt: int, intra_rtt: int, line_rate: int, mss: int) -> LawPath: ...
    @property
    def base_rtt(self) -> int:
        """Picoseconds: round trip of a full packet and its acknowledgement with every queue empty."""
    @property
    def intra_rtt(self) -> int:
        """Picoseconds: the same between two hosts of one datacenter."""
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
        """Whether the round trip is longer than any inside a datacenter."""

@final
class Ack:
    """An acknowledgement of one packet, or of several consecutive ones whose marks are alike."""

    @property
    def now(self) -> int:
        """Picoseconds: when it arrived."""
    @property
    def sent_at(self) -> int:
        """Picoseconds: when the (newest) acknowledged packet last left."""
    @property
    def rtt(self) -> int:
        """Picoseconds: `now - sent_at`, the host's own queue left out."""
    @property
    def acked(self) -> int:
        """Bytes newly acknowledged; 0 where it only brings a late mark or repeats."""
    @property
    def marked(self) -> int:
        """Bytes of `acked` that met congestion (ECN)."""
    @property
    def in_flight(self) -> int:
        """Bytes still in flight."""
    @property
    def delivered(self) -> int:
        """Bytes acknowledged since the flow began, these included."""
    @property
    def left(self) -> int | None:
        """Bytes of the flow still to be acknowledged, where its host knows how long it is (`known_sizes`); else none."""
    @property
    def delivered_at_send(self) -> int:
        """Bytes: `delivered` when the acknowledged packet left; the round trip that ends here began there."""
    @property
    def delivered_time_at_send(self) -> int:
        """Picoseconds: when that count was last raised before the packet left."""
    @property
    def send_elapsed(self) -> int:
        """Picoseconds: how long before the packet the first one of its flight left."""
    @property
    def app_limited(self) -> bool:
        """Whether the window was not filled: a window that is not used does not grow (RFC 9002, section 7.8)."""

@final
class Loss:
    """Packets are lost: all that were found at one moment. Never a mark."""

    @property
    def now(self) -> int:
        """Picoseconds: when the sender decided so."""
    @property
    def sent_at(self) -> int:
        """Picoseconds: when the (newest) lost packet left."""
    @property
    def lost(self) -> int:
        """Bytes lost."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight without them."""
    @property
    def cause(self) -> str:
        """`reordered`: packets that left later were acknowledged. `nack`: the receiver asked for it again."""

@final
class Timeout:
    """Nothing was heard for a retransmission timeout."""

    @property
    def now(self) -> int:
        """Picoseconds: when it was over."""
    @property
    def sent_at(self) -> int:
        """Picoseconds: when the (newest) lost packet left."""
    @property
    def lost(self) -> int:
        """Bytes lost."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight without them."""

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
    """Tables, one file after the other, with the columns of all of them."""

    def __new__(cls, files: Sequence[str | PathLike[str]], runs: Sequence[str] | None = None) -> Tables: ...
    def columns(self) -> list[tuple[str, str]]: ...
    def are_alike(self) -> bool: ...
    def select(self, columns: Sequence[str]) -> Tables: ...
    def of_class(self, class_: str) -> Tables: ...
    def rows(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Metrics:
    """Summaries of runs, and the directories with their samples, for metrics."""

    def __new__(cls, summaries: Sequence[str], directories: Sequence[str | PathLike[str]] = ()) -> Metrics: ...
    def values(self, metric: str) -> tuple[list[float | None], list[str | None], str]: ...
    def hold(self, check: str) -> list[bool | None]: ...

def jobs(manifests: Sequence[str], summaries: Sequence[str]) -> Tables: ...
def summaries(manifests: Sequence[str], summaries: Sequence[str]) -> Tables: ...
def report(directory: str | PathLike[str], names: Sequence[str]) -> str: ...
def schema() -> str: ...
def as_written(text: str, origin: str) -> str: ...
def text_of(path: str) -> str: ...
def amount(text: str) -> tuple[float, str] | None: ...
def nearest(name: str, names: Sequence[str]) -> str | None: ...
def toml_of(json: str) -> str: ...
def drawing(json: str, origin: str) -> str: ...
def pooled(directory: str | PathLike[str], names: Sequence[str]) -> str: ...
def check_reference(json: str, scenario: str) -> None: ...
def score(
    directory: str | PathLike[str],
    names: Sequence[str],
    cells: Sequence[str],
    reference: str | None = None,
    newcomers: Sequence[str] = (),
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
    anew: bool,
    checked: bool,
    replay: str,
    tell: Callable[[str], Any],
    show: Callable[[int, int, list[float]], Any],
    laws: Mapping[str, Callable[[str], Callable[[LawPath], Any]]],
) -> tuple[list[str], list[str]]: ...
