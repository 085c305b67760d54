"""Validation of arguments. An error has a line with the mistake and a line with the accepted values."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from narrows import _narrows

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Maximum values of arguments, as on the command line.
MOST = {"seeds": 10_000, "threads": 1024, "parallel": 1024}


def said(what: str, accepted: str = "") -> str:
    """Return an error's text."""
    return f"{what}\nhelp: {accepted}" if accepted else what


def wrong(what: str, accepted: str = "") -> _narrows.ScenarioError:
    """Return the error for a value that is not accepted."""
    error = _narrows.ScenarioError(said(what, accepted))
    error.help = accepted
    return error


def unknown(what: str, name: object, known: Iterable[object]) -> _narrows.ScenarioError:
    """Return the error for an unknown name. `what` is the message without the list of known ones."""
    names = list(dict.fromkeys(str(it) for it in known))
    return wrong(*not_among(what, name, names))


def not_among(what: str, name: object, names: list[str]) -> tuple[str, str]:
    """Return the message with the list of known names, and the help with the nearest one."""
    near = _narrows.nearest(str(name), names)
    listed = f"there are {', '.join(names)}" if names else "there is none"
    return f"{what}; {listed}", f"did you mean `{near}`?" if near is not None else ""


def count(name: str, value: Any) -> int | None:
    """Return a count, at least 1; None stays None. Raises `TypeError` for a value that is not a whole number."""
    if value is None:
        return None
    most = MOST.get(name)
    accepted = f"expected a whole number from 1{f' to {most}' if most else ''}"
    what = f"number of {'trials at the same time' if name == 'parallel' else name}"
    number = _whole(name, value, what, accepted)
    if number < 1 or (most is not None and number > most):
        raise wrong(f"`{name}={number}` is no {what}", accepted)
    return number


def seed(value: Any) -> int | None:
    """Return a seed; None stays None."""
    if value is None:
        return None
    accepted = f"expected a whole number from 0 to {2**63 - 1}"
    number = _whole("seed", value, "seed", accepted)
    if not 0 <= number < 2**63:
        raise wrong(f"`seed={number}` is no seed", accepted)
    return number


def _whole(name: str, value: Any, what: str, accepted: str) -> int:
    """Return a whole number, from any integer type but `bool`."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    if name in {"seed", "seeds"} and isinstance(value, (list, tuple, range)):
        accepted += f'; vary={{"seed": {list(value)!r}}} runs seeds of your choice'
    raise TypeError(said(f"`{name}={value!r}` is no {what}", accepted))


def names(name: str, value: Any) -> list[str]:
    """Return one name or several as a list."""
    if isinstance(value, str):
        return [value]
    made = _items(name, value, "names")
    for item in made:
        if not isinstance(item, str):
            raise TypeError(said(f"`{name}`: {item!r} is no name", f'expected text, as in {name}=["first", "second"]'))
    return made


def paths(name: str, value: Any) -> list[str]:
    """Return paths as a list of texts."""
    if isinstance(value, (str, os.PathLike)):
        raise TypeError(said(f"`{name}={str(value)!r}` is one path", f"expected several, as in {name}=[{str(value)!r}]"))
    return [os.fspath(item) for item in _items(name, value, "paths")]


def values(name: str, value: Any) -> list[Any]:
    """Return the values that a key takes in turn as a list."""
    if isinstance(value, Mapping):
        raise TypeError(said(f"`{name}={value!r}` is one value", f"expected several, as in {name}=[...]"))
    return _items(name, value, "values")


def _items(name: str, value: Any, what: str) -> list[Any]:
    try:
        return list(value)
    except TypeError:
        raise TypeError(said(f"`{name}={value!r}` are no {what}", f"expected a list of {what}")) from None


def keyed(name: str, value: Any) -> dict[str, Any] | None:
    """Return keys of a scenario with values; None stays None."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(
            said(f"`{name}={value!r}` are no keys with values", f'expected a dictionary, as in {name}={{"topology.k": 4}}')
        )
    return dict(value)


def shard(value: Any) -> str | None:
    """Return a part of a sweep; None stays None."""
    if value is None:
        return None
    accepted = 'expected I/N with I from 1 to N, as in shard="3/8"'
    if not isinstance(value, str):
        raise TypeError(said(f"`shard={value!r}` is no shard", accepted))
    match = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", value, re.ASCII)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise wrong(f"`shard={value!r}` is no shard", accepted)
    return f"{int(match[1])}/{int(match[2])}"


def laws(value: Any) -> list[Any]:
    """Return classes of laws as a list. `declared` rejects other classes."""
    if isinstance(value, type):
        raise TypeError(said(f"`laws={value.__name__}` is one class", f"expected several, as in laws=[{value.__name__}]"))
    return _items("laws", value, "classes")


def path_of_scenario(value: Any) -> str:
    """Return the path of a scenario file. Raises `TypeError` for other types."""
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    accepted = "expected a narrows.Scenario or the path of a scenario file"
    if isinstance(value, Mapping):
        accepted += "; narrows.Scenario.from_dict({...}) makes one of keys and values"
    shown = repr(value)
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
    raise TypeError(said(f"a {type(value).__name__} is no scenario: {shown}", accepted))


#: Maximum number of characters of a value in an error.
SHOWN = 60


def needs(package: str, what: str, install: str | None = None) -> ModuleNotFoundError:
    """Return the error for an optional package that is not installed."""
    text = said(f"{what} needs {package}, which is not installed", f"pip install {install or package.lower()}")
    return ModuleNotFoundError(text, name=(install or package).lower())


def is_sequence(value: Any) -> bool:
    """Return True for sequences except text and bytes."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))
