"""Laws written in Python: their contract, parameters, declaration and source.

`LawBase` has all of a law but `to_rust`, which is on top of scenarios and runs: laws build on `narrows.Law` (`law.py`).
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import inspect
import json
import linecache
import re
import sys
import textwrap
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, get_origin, get_type_hints

from narrows import _given, config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from narrows._narrows import Ack, Loss, PathInfo, Timeout

    #: Takes a run's parameters as JSON, and returns the function that makes a flow's law on a path.
    Maker = Callable[[str], Callable[[PathInfo], "LawBase"]]
    #: A parameter of a law.
    Value = bool | int | float

#: Names of laws in scenario files.
_NAME = re.compile(r"[A-Z][A-Za-z0-9_]{0,63}")
#: Base classes without behaviour.
_EMPTY: frozenset[Any] = frozenset({object, ABC, Generic, Protocol})
#: Annotation of a class variable, of any type.
_CLASS_VAR = re.compile(r"(\w+\.)?ClassVar\b")
#: Send limits, which are not parameters.
_PERMITTED = frozenset({"cwnd", "pacing_rate"})


class LawBase(ABC):
    """Contract of a law, its parameters and its source. `narrows.law` has the units."""

    #: The window: bytes that may be in flight, 1 to 2**40; a fraction is cut off. 10 packets until the law sets it.
    cwnd: float
    #: Pacing rate in bits a second, 1e3 to 1e14; None: packets leave as soon as the window permits.
    pacing_rate: float | None = None

    #: Source texts of the class and its bases (`_hashed`) at the time of import: the files may have changed since. None if
    #: Python did not know a text. They are copied to other machines with the class.
    _texts: ClassVar[list[str | None]]

    def __init_subclass__(cls, **given: Any) -> None:
        """Store the source texts."""
        super().__init_subclass__(**given)
        cls._texts = [_kept(cls, base) for base in _hashed(cls)]

    def __init__(self, path: PathInfo) -> None:  # noqa: B027
        """Start a flow on `path`; `cwnd` is 10 packets, and the parameters are set."""

    @abstractmethod
    def on_ack(self, ack: Ack) -> None:
        """Handle an acknowledgement."""

    @abstractmethod
    def on_loss(self, loss: Loss) -> None:
        """Handle all packets declared lost at one time. Never a mark."""

    @abstractmethod
    def on_timeout(self, timeout: Timeout) -> None:
        """Handle a retransmission timeout: all packets in flight are declared lost."""

    @classmethod
    def parameters(cls) -> dict[str, Value]:
        """Return the parameters and their defaults, in the order of the source.

        Raises `TypeError` for one that is of another type, or whose default is.
        """
        found: dict[str, Value] = {}
        hints: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            for name, written in inspect.get_annotations(base).items():
                # A type that is not needed may be one that only type checkers import.
                if name in _PERMITTED or name.startswith("_") or not hasattr(cls, name):
                    continue
                hints[name] = _type(cls, base, name, written)
        for name, kind in hints.items():
            if kind is not ClassVar and get_origin(kind) is not ClassVar:
                found[name] = _value(cls, name, kind, getattr(cls, name))
        return found

    @classmethod
    def source(cls) -> str:
        """Return the source texts of the class and its base classes. Their hash is part of a run's key.

        `Law` itself, `object`, `ABC`, `Generic` and `Protocol` are left out. Raises `OSError` where Python does not know a text.
        """
        bases = _hashed(cls)
        return "\n\n".join(kept or _text(base) for base, kept in zip(bases, cls.__dict__["_texts"], strict=True))


def declared(laws: Iterable[type[LawBase]]) -> dict[str, config.ExternalLaw]:
    """Return the table `external_laws` of a scenario with these laws.

    Raises `TypeError` for what is no law, and `OSError` for a law whose source Python does not know.
    """
    made: dict[str, config.ExternalLaw] = {}
    for law in laws:
        _check(law)
        if law.__name__ in made:
            said = f"two laws are called {law.__name__}; rename one of them"
            raise TypeError(said)
        digest = hashlib.sha256(f"{law.__name__}\n{law.source()}".encode()).hexdigest()
        made[law.__name__] = config.ExternalLaw(language="Python", sha256=digest, params=dict(law.parameters()))
    return made


def undeclared(written: Mapping[str, Any]) -> dict[str, config.ExternalLaw]:
    """Return placeholders for the laws that a scenario file names and does not declare, so that the rest of it can be read.

    `written` holds its keys and values. Parameters are those that it sets.
    """
    names: set[str] = set()
    given: dict[str, dict[str, list[Any]]] = {}

    def look(keys: tuple[str, ...], value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                # Those of grids and points have dots.
                look((*keys, *key.split(".")), inner)
        elif isinstance(value, list):
            for inner in value:
                look(keys, inner)
        elif keys[-3:-2] == ("params",):
            given.setdefault(keys[-2], {}).setdefault(keys[-1], []).append(value)
        elif keys[-1] in {"law", "intra", "inter"} and isinstance(value, str) and _NAME.fullmatch(value):
            names.add(value)

    look((), written)
    known = written.get("external_laws", {})
    if not isinstance(known, dict):
        return {}
    return {
        name: config.ExternalLaw(
            language="Python",
            sha256="0" * 64,
            params={key: _like(values) for key, values in given.get(name, {}).items()},
        )
        for name in sorted(names - set(known))
    }


def makers(laws: Iterable[type[LawBase]]) -> dict[str, Maker]:
    """Return the functions that make laws for runs, by name of the law."""
    return {law.__name__: _maker(law) for law in laws}


def slow(laws: Iterable[type[LawBase]]) -> str:
    """Return the notice printed before runs with these laws; empty without laws."""
    names = ", ".join(law.__name__ for law in laws)
    if not names:
        return ""
    return (
        f"{names}: written in Python, for trying out. A run takes one thread and about 1 to 2 us more for each acknowledgement, "
        "1.5 to 4 times the time of a built-in law; to_rust() begins the law in Rust"
    )


def _maker(law: type[LawBase]) -> Maker:
    def of_run(params: str) -> Callable[[PathInfo], LawBase]:
        given = json.loads(params)

        def of_flow(path: PathInfo) -> LawBase:
            made = law.__new__(law)
            made.cwnd = 10 * path.mss
            for name, value in given.items():
                setattr(made, name, value)
            made.__init__(path)  # type: ignore[misc]
            return made

        return of_flow

    return of_run


def _check(law: Any) -> None:
    """Raise `TypeError` for a class that cannot run as a law."""
    if not (isinstance(law, type) and issubclass(law, LawBase)) or _is_root(law):
        raise TypeError(_given.said(f"{law!r} is no law", "expected a class that builds on narrows.Law"))
    if not _NAME.fullmatch(law.__name__):
        said = f"the law {law.__name__} needs a name of at most 64 letters, digits and _, a capital letter first"
        raise TypeError(said)
    missing = sorted(law.__abstractmethods__)
    if missing:
        said = f"the law {law.__name__} has no {' and no '.join(missing)}; where nothing is to be done, say so: `pass`"
        raise TypeError(said)


def _type(law: type[LawBase], base: type, name: str, written: Any) -> Any:
    """Return the type that an annotation in `base` names. Raises `TypeError` where that is unknown."""
    if isinstance(written, str) and _CLASS_VAR.match(written):
        return ClassVar
    alone = type(base.__name__, (), {"__annotations__": {name: written}, "__module__": base.__module__})
    try:
        return get_type_hints(alone, None, dict(vars(base)))[name]
    except NameError as error:
        said = (
            f"{law.__name__}.{name}: {written}: {error} when the law runs; a parameter is an int, a float or a bool; what is "
            "none is a ClassVar or begins with _"
        )
        raise TypeError(said) from error


def _value(law: type[LawBase], name: str, kind: Any, value: Any) -> Value:
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


def _hashed(law: type[LawBase]) -> list[type]:
    """Return a law's class and its base classes, laws or not, except those without behaviour."""
    return [base for base in law.__mro__ if not _is_root(base) and base not in _EMPTY]


def _is_root(cls: type) -> bool:
    """Returns True for `LawBase` and `narrows.Law`, the only class directly on it."""
    return cls is LawBase or LawBase in cls.__bases__


def _kept(law: type[LawBase], base: type) -> str | None:
    """Return the source text of a base class of a new law; for another law, the one stored at its import."""
    if base is not law and issubclass(base, LawBase):
        return base._texts[0]
    with contextlib.suppress(OSError):
        return _text(base)
    return None


def _like(values: list[Any]) -> Value:
    """Return a default that parameters with these values can have."""
    if all(isinstance(value, bool) for value in values):
        return False
    return 0 if all(isinstance(value, int) and not isinstance(value, bool) for value in values) else 0.0


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
    """Return the text of a class from the source around its methods, as in a notebook's cell."""
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
