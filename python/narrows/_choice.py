"""Selection of runs by values of keys: columns of tables, keys in the names of runs, and keys of the scenario."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from narrows import _given, _narrows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Key with the name of the variant; for runs of the grid it is "" or missing.
VARIANT = "variant"


class _Absent:
    """The value of a key that a run does not have."""

    def __str__(self) -> str:
        """Write it as the command line does."""
        return "none"


ABSENT = _Absent()


class Keyed(Protocol):
    """Properties of a run that a selection reads: `results.Run`."""

    @property
    def keys(self) -> dict[str, Any]:
        """The scheme, the seed and the values of the point, by columns."""

    @property
    def point(self) -> dict[str, Any]:
        """The values of the point, by columns."""

    @property
    def names(self) -> list[str]:
        """The keys of the point, as the run's name has them."""

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, with the complete scenario in `resolved`."""


R = TypeVar("R", bound=Keyed)


def chosen(runs: Sequence[R], wanted: Mapping[str, Any]) -> list[R]:
    """Return the runs that have these values of keys. Several values of a key are alternatives.

    Raises `ScenarioError` for a key, or a value of one, that no run has; it lists what exists.
    """
    left = list(runs)
    for key, values in wanted.items():
        found = values_of(runs, key)
        several = list(values) if _given.is_sequence(values) or isinstance(values, (set, frozenset, range)) else [values]
        for value in several:
            if runs and not any(_is(it, value, key) for it in found):
                raise _unknown_value(key, value, found)
        kept = {id(run) for run, it in zip(runs, found, strict=True) if any(_is(it, value, key) for value in several)}
        left = [run for run in left if id(run) in kept]
    return left


def values_of(runs: Sequence[Keyed], key: str) -> list[Any]:
    """Return each run's value of a key. Raises `ScenarioError` for a key that no run has."""
    known = [_keys(run) for run in runs]
    key = _with_dots(key)
    # A key in full is itself, also where a longer one ends with it.
    if "." in key and not any(key in keys for keys in known):
        found = [_setting(run, key) for run in runs]
        if any(value is not ABSENT for value in found):
            return found
    named = _named(key, [name for keys in known for name in keys])
    if named is not None:
        return [keys.get(named, ABSENT) for keys in known]
    if key == VARIANT:
        return [""] * len(known)
    found = [_setting(run, key) for run in runs]
    if runs and all(value is ABSENT for value in found):
        raise unknown_key(runs, key)
    return found


def column(runs: Sequence[Keyed], key: str) -> str:
    """Return the name that the tables have for a key of the runs' points, their scheme or seed.

    Raises `ScenarioError` for a key that changes in no run.
    """
    columns = list(dict.fromkeys(name for run in runs for name in run.keys))
    if not runs:
        return key
    names: dict[str, str] = {}
    for run in runs:
        names.update(_columns_of(run))
    named = _named(_with_dots(key), [*names, *columns])
    if named is None:
        raise unknown_key(runs, key, columns)
    return named if named in columns else names[named]


def _named(key: str, names: Iterable[str]) -> str | None:
    """Return the full name of a key: itself, or the only name that ends with a dot and the key.

    Raises `ScenarioError` for the end of several names.
    """
    ending = [name for name in dict.fromkeys(names) if name == key or name.endswith(f".{key}")]
    if key in ending:
        return key
    if len(ending) > 1:
        what = f"`{key}` is the end of several keys: {', '.join(ending)}"
        raise _given.wrong(what, "name one of them in full")
    return ending[0] if ending else None


def is_run(run: str, name: str) -> bool:
    """Return True if a name is that of a run: the same scheme and values, each key in full or by its end."""
    parts, names = run.split(","), name.split(",")
    return len(parts) == len(names) and all(
        part == it or ("=" in it and part.endswith(f".{it}")) for part, it in zip(parts, names, strict=True)
    )


def unknown_key(runs: Sequence[Keyed], key: str, known: Iterable[str] | None = None) -> _narrows.ScenarioError:
    """Return the error for a key that no run has."""
    columns = list(dict.fromkeys(name for run in runs for name in run.keys)) if known is None else list(known)
    what, near = _given.not_among(f"runs have no key `{key}`", key, columns)
    if not near:
        _, near = _given.not_among("", key, [name.rpartition(".")[2] for name in columns])
    if known is None and not near:
        # Keys of the scenario are too many to list.
        _, near = _given.not_among("", key, list(_paths(runs[0].manifest.get("resolved", {}))) if runs else [])
    return _given.wrong(what, near or ("a key of the scenario does, too, such as `port.buffer`" if known is None else ""))


def _unknown_value(key: str, value: Any, found: list[Any]) -> _narrows.ScenarioError:
    values = list(dict.fromkeys(str(it) if it != "" else "none" for it in found))
    shown = "none" if value is None else value
    what, near = _given.not_among(f"no run has {key}={shown}", value, values)
    # No number is meant for another one.
    return _given.wrong(what, near if _amount(value) is None else "")


def _keys(run: Keyed) -> dict[str, Any]:
    """Return a run's values by columns, and by the names that its own name has."""
    return {**{key: run.point[name] for key, name in _columns_of(run).items()}, **run.keys}


def _columns_of(run: Keyed) -> dict[str, str]:
    """Return the column of each key of a run's point: its name, with a unit appended or `point_` prepended where needed."""
    plain = {name: name.removeprefix("point_") for name in run.point}
    return {key: name for key in run.names for name, it in plain.items() if key in (it, it.rpartition("_")[0])}


def _with_dots(key: str) -> str:
    """Return a key with dots before its indices, as in points: `traffic.0.load` for `traffic[0].load`."""
    return key.replace("[", ".").replace("]", "")


def _setting(run: Keyed, key: str) -> Any:
    """Return the value of a key of the scenario, as the run's manifest has it with every default."""
    at: Any = run.manifest.get("resolved", {})
    for part in key.replace("[", ".").replace("]", "").split("."):
        if isinstance(at, dict) and part in at:
            at = at[part]
        elif isinstance(at, list) and part.isdigit() and int(part) < len(at):
            at = at[int(part)]
        else:
            return ABSENT
    return at


def _paths(at: Any, before: str = "") -> Iterable[str]:
    """Return the keys of all settings."""
    parts = at.items() if isinstance(at, dict) else enumerate(at) if isinstance(at, list) else ()
    for part, inner in parts:
        yield f"{before}{part}"
        yield from _paths(inner, f"{before}{part}.")


def _is(found: Any, wanted: Any, key: str = "") -> bool:
    """Return True if two values are equal: the same number in any unit, or the same text."""
    if wanted is None or wanted == "none" or (key == VARIANT and wanted == ""):
        return found is ABSENT or found is None or found in ("", wanted)
    if found is ABSENT or found is None:
        return False
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted or str(found).lower() == str(wanted)
    if found == wanted:
        return True
    one, other = _amount(found), _amount(wanted)
    if one is None or other is None:
        return False
    # A column has its unit in its name, and a plain number is taken to be in that.
    same_unit = one[1] == other[1] or not one[1] or not other[1]
    return same_unit and math.isclose(one[0], other[0], rel_tol=1e-12)


def _amount(value: Any) -> tuple[float, str] | None:
    if isinstance(value, str):
        return _narrows.amount(value)
    try:
        return float(value), ""
    except (TypeError, ValueError):
        return None
