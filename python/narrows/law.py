"""Laws written in Python, for trying out.

A `Law` decides how much its flow may send. It runs in the simulator as a built-in law does and leaves the same results, but
each acknowledgement is a call of Python, so it is slow. `Law.to_rust` writes the beginning of the same law in Rust.

Units: times are whole picoseconds, data is in bytes, rates are in bits a second.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import hashlib
import inspect
import json
import linecache
import re
import sys
import textwrap
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, get_origin, get_type_hints

from narrows import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from narrows._narrows import Ack, LawPath, Loss, Timeout
    from narrows.scenario import Scenario

    #: What a run's parameters, as JSON, make: what makes the law of a flow on a path.
    Maker = Callable[[str], Callable[[LawPath], "Law"]]
    #: A parameter of a law.
    Value = bool | int | float

#: Names that scenario files can have for a law.
_NAME = re.compile(r"[A-Z][A-Za-z0-9_]{0,63}")
#: What a law permits is none of its parameters.
_PERMITTED = frozenset({"cwnd", "pacing_rate"})


class Law(ABC):
    """A congestion-control law: the base class of laws in Python.

    A subclass says what it does in `on_ack`, `on_loss` and `on_timeout`, and sets what it permits. Every flow has an object of its
    own. Parameters are the attributes of the class with a type (`int`, `float` or `bool`) and a value; a scheme sets others in
    `params`. A `ClassVar`, and what begins with an underscore, is no parameter.
    """

    #: The window: bytes that may be in flight, 1 to 2**40; a fraction is cut off. 10 packets until the law sets it.
    cwnd: float
    #: The pace in bits a second, 1e3 to 1e14; None: packets leave as soon as the window lets them.
    pacing_rate: float | None = None

    #: The text of the class as it was when Python read it: its file may be another one by now. Copies on other machines take it
    #: along.
    _text: ClassVar[str]

    def __init_subclass__(cls, **given: Any) -> None:
        """Keep the text, if Python knows it."""
        super().__init_subclass__(**given)
        with contextlib.suppress(OSError):
            cls._text = _text(cls)

    def __init__(self, path: LawPath) -> None:  # noqa: B027
        """Begin a flow on `path`: `cwnd` is 10 packets by now, and the parameters are set."""

    @abstractmethod
    def on_ack(self, ack: Ack) -> None:
        """An acknowledgement came."""

    @abstractmethod
    def on_loss(self, loss: Loss) -> None:
        """Packets are lost: all that were found at one moment. Never a mark."""

    @abstractmethod
    def on_timeout(self, timeout: Timeout) -> None:
        """Nothing was heard for a retransmission timeout: all that was in flight is lost."""

    @classmethod
    def parameters(cls) -> dict[str, Value]:
        """Return the parameters and their defaults, in the order of the source.

        Raises `TypeError` for one that is of another type, or whose default is.
        """
        found: dict[str, Value] = {}
        hints = get_type_hints(cls)
        for base in reversed(cls.__mro__):
            for name in inspect.get_annotations(base):
                kind = hints[name]
                if name in _PERMITTED or name.startswith("_") or kind is ClassVar or get_origin(kind) is ClassVar:
                    continue
                if name in vars(cls) or hasattr(cls, name):
                    found[name] = _value(cls, name, kind, getattr(cls, name))
        return found

    @classmethod
    def source(cls) -> str:
        """Return the text of the class, and those of the classes that it builds on. The hash of it is part of a run's key.

        Raises `OSError` where Python does not know the text.
        """
        bases = [base for base in cls.__mro__ if issubclass(base, Law) and base is not Law]
        return "\n\n".join(base.__dict__.get("_text") or _text(base) for base in bases)

    @classmethod
    def to_rust(
        cls,
        checkout: str | Path,
        *,
        name: str | None = None,
        scenario: Scenario | None = None,
        events: int = 2000,
    ) -> list[Path]:
        """Begin the same law in Rust: see `law_to_rust`."""
        from narrows.porting import law_to_rust

        return law_to_rust(cls, checkout, name=name, scenario=scenario, events=events)


def declared(laws: Iterable[type[Law]]) -> dict[str, tables.BroughtLaw]:
    """Return the table `laws` of a scenario that runs these laws.

    Raises `TypeError` for what is no law, and `OSError` for a law whose source Python does not know.
    """
    made: dict[str, tables.BroughtLaw] = {}
    for law in laws:
        _check(law)
        if law.__name__ in made:
            said = f"two laws are called {law.__name__}; rename one of them"
            raise TypeError(said)
        digest = hashlib.sha256(f"{law.__name__}\n{law.source()}".encode()).hexdigest()
        made[law.__name__] = tables.BroughtLaw(language="Python", sha256=digest, params=dict(law.parameters()))
    return made


def with_laws(scenario: Scenario, laws: Iterable[type[Law]]) -> Scenario:
    """Return the scenario with these laws, which its schemes name by their classes: `law = "Halve"`."""
    laws = list(laws)
    return scenario.replace(laws={**(scenario.laws or {}), **declared(laws)}) if laws else scenario


def makers(laws: Iterable[type[Law]]) -> dict[str, Maker]:
    """Return what makes laws for runs, by their names."""
    return {law.__name__: _maker(law) for law in laws}


def slow(laws: Iterable[type[Law]]) -> str:
    """Return what users must know before runs with these laws begin; nothing without laws."""
    names = ", ".join(law.__name__ for law in laws)
    if not names:
        return ""
    return (
        f"{names}: written in Python, for trying out. A run takes one thread and about 1 to 2 us more for each acknowledgement, "
        "1.5 to 4 times the time of a built-in law; to_rust() begins the law in Rust"
    )


def interrupt(thread: int) -> None:
    """Raise `KeyboardInterrupt` in a thread: a law in it may be in a loop that has no end."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


def _maker(law: type[Law]) -> Maker:
    def of_run(params: str) -> Callable[[LawPath], Law]:
        given = json.loads(params)

        def of_flow(path: LawPath) -> Law:
            made = law.__new__(law)
            made.cwnd = 10 * path.mss
            for name, value in given.items():
                setattr(made, name, value)
            made.__init__(path)  # type: ignore[misc]
            return made

        return of_flow

    return of_run


def _check(law: Any) -> None:
    """Refuse what is no law that can run."""
    if not (isinstance(law, type) and issubclass(law, Law)) or law is Law:
        said = f"expected a class that builds on narrows.Law, found {law!r}"
        raise TypeError(said)
    if not _NAME.fullmatch(law.__name__):
        said = f"the law {law.__name__} needs a name of at most 64 letters, digits and _, a capital letter first"
        raise TypeError(said)
    missing = sorted(law.__abstractmethods__)
    if missing:
        said = f"the law {law.__name__} has no {' and no '.join(missing)}; where nothing is to be done, say so: `pass`"
        raise TypeError(said)


def _value(law: type[Law], name: str, kind: Any, value: Any) -> Value:
    """Return a parameter's default, if it is of its type."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and whole and -(2**63) <= value < 2**63:
        return int(value)
    if kind is float and (whole or isinstance(value, float)) and abs(value) <= sys.float_info.max:
        return float(value)
    shown = getattr(kind, "__name__", str(kind))
    said = (
        f"{law.__name__}.{name}: {shown} = {value!r}: a parameter is an int (of 64 bits), a float (finite) or a bool; what is none "
        "is a ClassVar or begins with _"
    )
    raise TypeError(said)


def _text(law: type) -> str:
    """Return the text of a class."""
    try:
        return textwrap.dedent(inspect.getsource(law))
    except (OSError, TypeError, SyntaxError):
        found = _text_around(law)
    if found is None:
        said = (
            f"Python does not know the source of {law.__name__}, which a run's key needs: put the class into a file and import it "
            "from there, or define it in a notebook"
        )
        raise OSError(said)
    return found


def _text_around(law: type) -> str | None:
    """Return the text of a class by where its methods are: that of a notebook's cell."""
    for method in vars(law).values():
        code = getattr(method, "__code__", None)
        if code is None:
            continue
        lines = linecache.getlines(code.co_filename)
        try:
            tree = ast.parse("".join(lines))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == law.__name__:
                last = node.end_lineno or node.lineno
                if node.lineno <= code.co_firstlineno <= last:
                    return textwrap.dedent("".join(lines[node.lineno - 1 : last]))
    return None
