"""Conversion of a law in Python to Rust: a skeleton, and a test that replays the inputs of the law in Python."""

from __future__ import annotations

import ast
import json
import math
import re
import tempfile
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import _laws, _narrows, config
from narrows._table import plain
from narrows.scenario import Scenario, with_laws

if TYPE_CHECKING:
    from collections.abc import Callable

    from narrows._laws import LawBase, Value

#: Names that parameters in Rust can have.
_PARAM = re.compile(r"[a-z][a-z0-9_]*")
#: By the last word of its name, what a whole number is.
_UNITS = {"ns": "span", "bytes": "bytes", "bps": "rate"}


def law_to_rust(
    cls: type[LawBase],
    checkout: str | Path,
    *,
    name: str | None = None,
    scenario: Scenario | None = None,
    events: int = 2000,
) -> list[Path]:
    """Begin a law in Rust that does what one in Python does, in a checkout of Narrows. Return the files that are new.

    They are those of `narrows new-law`: the law's code, its page, its entries in the lists. Parameters have the defaults of the
    class; the last word of a whole number's name says its unit (`_ns`, `_bytes`, `_bps`). Each method has its Python beside it.
    `name` is the law's name in files, by default the class's in small letters with hyphens.

    The test `matches_the_python_law` fails until the law is written. It replays the events of the law in Python in a run
    of `scenario` (by default four flows through one marking port), and compares the limits of the two after each of the first
    `events` events of one of the law's objects: the one with the most events. The run is at the scenario's first point, with
    the first scheme that names the class; all of its flows run the class with its own parameters.

    Raises `ScenarioError` if that is impossible or files cannot be written, `LawError` if the law fails in the run, `TypeError`
    for a class that is not a law or for an invalid parameter, and `OSError` if Python does not know the source.
    """
    fixture = recorded(cls, scenario, events)
    draft = {
        "class": cls.__name__,
        "about": (cls.__doc__ or "").strip().partition("\n")[0].strip(),
        "params": [_param(cls, key, value) for key, value in cls.parameters().items()],
        "methods": _methods(cls),
        "trace": fixture,
    }
    files = _narrows.new_law(name or _hyphened(cls.__name__), str(checkout), json.dumps(draft))
    return [Path(checkout) / file for file in files]


def recorded(cls: type[LawBase], scenario: Scenario | None = None, events: int = 2000) -> str:
    """Return the events of a law in a run and its limits after each, as the replay in Rust reads them."""
    logs: list[_Log] = []

    def maker(params: str) -> Callable[[_narrows.PathInfo], Any]:
        of_flow = _laws.makers([cls])[cls.__name__](params)

        def of_path(path: _narrows.PathInfo) -> _Recorder:
            log = _Log(path, events)
            logs.append(log)
            return _Recorder(of_flow(path), log)

        return of_path

    traced = with_laws(_traced(cls, scenario), [cls])
    read = traced.read()
    with tempfile.TemporaryDirectory(prefix="narrows-") as directory:
        _narrows.run_study(
            read,
            Path(directory) / "traced",
            schemes=[],
            shard=None,
            only=read.runs()[:1],
            take=[],
            runs_missing=True,
            threads=1,
            force=True,
            check_invariants=False,
            replay="",
            tell=lambda _: None,
            show=lambda *_: None,
            laws={cls.__name__: maker},
        )
    longest = max(logs, key=lambda log: len(log.lines))
    digest = (traced.external_laws or {})[cls.__name__].sha256
    head = f"# {cls.__name__} in Python, SHA-256 {digest}: event | window, pacing rate.\n"
    head += "# Times are in ps, data is in bytes, rates are in bits a second.\n"
    return head + "".join(f"{line}\n" for line in longest.lines)


@dataclass
class _Log:
    """Events of one flow's law, with its limits after each."""

    path: _narrows.PathInfo
    most: int
    lines: list[str] = field(default_factory=list)

    def note(self, of: LawBase, *event: object) -> None:
        """Add an event, if there is room for it."""
        if len(self.lines) <= self.most:
            pace = "-" if of.pacing_rate is None else math.floor(of.pacing_rate)
            self.lines.append(f"{' '.join(map(str, event))} | {math.floor(of.cwnd)} {pace}")


class _Recorder:
    """Law that forwards its events to another one, and logs them."""

    def __init__(self, of: LawBase, log: _Log) -> None:
        self.law = of
        self.log = log
        path = log.path
        log.note(of, "path", path.base_rtt, path.intra_rtt, path.line_rate, path.mss)

    @property
    def cwnd(self) -> float:
        return self.law.cwnd

    @property
    def pacing_rate(self) -> float | None:
        return self.law.pacing_rate

    def on_ack(self, ack: _narrows.Ack) -> None:
        self.law.on_ack(ack)
        event = [ack.now, ack.sent_at, ack.rtt, ack.acked, ack.marked, ack.in_flight, ack.delivered, ack.delivered_at_send]
        event += [ack.delivered_time_at_send, ack.send_elapsed, int(ack.app_limited)]
        if ack.bytes_remaining is not None:
            event.append(ack.bytes_remaining)
        self.log.note(self.law, "ack", *event)

    def on_loss(self, loss: _narrows.Loss) -> None:
        self.law.on_loss(loss)
        self.log.note(self.law, loss.cause, loss.now, loss.sent_at, loss.lost, loss.in_flight)

    def on_timeout(self, timeout: _narrows.Timeout) -> None:
        self.law.on_timeout(timeout)
        self.log.note(self.law, "timeout", timeout.now, timeout.sent_at, timeout.lost, timeout.in_flight)


def _traced(cls: type[LawBase], scenario: Scenario | None) -> Scenario:
    """Return the scenario with one scheme, of this law with its own parameters."""
    if scenario is None:
        return Scenario(
            name="traced",
            stop="200ms",
            topology=config.Dumbbell(left=4, right=4, rate="10Gbps", delay="20us"),
            port=config.Port(buffer="100KB", ecn=config.StepMarking(step="50KB")),
            schemes={"traced": config.Scheme(law=cls.__name__)},
            traffic=[config.LongFlows(flows=[[0, 4], [1, 5], [2, 6], [3, 7]], size="12MB")],
        )
    schemes = [config.Scheme.from_dict(plain(scheme)) for scheme in scenario.schemes.values()]
    found = [scheme for scheme in schemes if cls.__name__ in {scheme.law, scheme.intra, scheme.inter}]
    scheme = found[0] if found else config.Scheme()
    return scenario.replace(schemes={"traced": scheme.replace(law=cls.__name__, intra=None, inter=None, params=None)})


def _param(cls: type[LawBase], name: str, value: Value) -> dict[str, Any]:
    """Return a parameter as the generator takes it."""
    if not _PARAM.fullmatch(name) or value < 0 or (isinstance(value, float) and value > 2**20):
        said = f"{cls.__name__}.{name} = {value!r} can be no parameter in Rust: small letters, 0 or more, and a float at most 2^20"
        raise _narrows.ScenarioError(said)
    if isinstance(value, bool):
        kind = "switch"
    elif isinstance(value, float):
        kind = "fraction"
    else:
        kind = _UNITS.get(name.rpartition("_")[2], "count")
    return {"name": name, "kind": kind, "default": value}


def _methods(cls: type[LawBase]) -> dict[str, str]:
    """Return the texts of the class's functions by their names, and of the rest of it by the empty one."""
    text = cls.source()
    lines = text.splitlines()
    found: dict[str, str] = {}
    rest: list[str] = []
    for node in ast.parse(text).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for inner in node.body:
            part = textwrap.dedent("\n".join(lines[_first(inner) - 1 : inner.end_lineno]))
            if isinstance(inner, ast.FunctionDef) and inner.name in found:
                # It may call this one, too.
                found[inner.name] += f"\n\n# in {node.name}:\n{part}"
            elif isinstance(inner, ast.FunctionDef):
                found[inner.name] = part
            else:
                rest.append(part)
    for name in ("__init__", "on_ack", "on_loss", "on_timeout"):
        found.setdefault(name, "pass")
    others = {key: part for key, part in found.items() if key not in {"__init__", "on_ack", "on_loss", "on_timeout"}}
    return {
        **{key: part for key, part in found.items() if key not in others},
        "": "\n\n".join(["\n".join(rest), *others.values()]).strip(),
    }


def _first(node: ast.stmt) -> int:
    """Return the first line of a statement, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _hyphened(name: str) -> str:
    """Return `MyLaw` as `my-law`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).replace("_", "-").lower()
