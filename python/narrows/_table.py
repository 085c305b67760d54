"""Base class of the tables of a scenario file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from narrows import _narrows
from narrows._given import is_sequence, said, wrong

T = TypeVar("T", bound="Table")

#: Classes of tables in a field. They are looked up late: a table may contain others of its own class.
Candidates = dict[str, Callable[[], "tuple[type[Table], ...]"]]


class Table:
    """A table of a scenario file: a dataclass whose fields are the table's keys."""

    #: The table's `kind`, if it has one.
    KIND: ClassVar[str | None] = None
    #: Keys of fields that have other names.
    KEYS: ClassVar[dict[str, str]] = {}
    CANDIDATES: ClassVar[Candidates] = {}
    #: Fields that are not keys.
    BESIDE: ClassVar[frozenset[str]] = frozenset()

    def __new__(cls: type[T], *_args: Any, **fields: Any) -> T:
        """Raise `TypeError` for unknown fields, with the list of known ones; the dataclass would not list them."""
        names = _fields(cls)
        for name in fields:
            if name not in names:
                raise TypeError(cls._no_field(name))
        return super().__new__(cls)

    if not TYPE_CHECKING:  # Type checkers would take it for leave to set any name.

        def __setattr__(self, name: str, value: Any) -> None:
            """Set a field. Raises `AttributeError` for another name: it would silently be missing in the file."""
            if name not in _fields(type(self)):
                raise AttributeError(self._no_field(name))
            # As in a file, so that a table read back is equal.
            super().__setattr__(name, list(value) if is_sequence(value) and not isinstance(value, list) else value)

    @classmethod
    def _no_field(cls, name: str) -> str:
        names = sorted(_fields(cls))
        what = f"`{cls.__name__}` has no field `{name}`; its fields are {', '.join(names)}"
        return said(what, _meant(name, names))

    @classmethod
    def fields_by_key(cls) -> dict[str, str]:
        """Return the table's keys, but for its `kind`, and the fields that hold their values."""
        fields = (field.name for field in dataclasses.fields(cls))  # type: ignore[arg-type]
        return {cls.KEYS.get(name, name): name for name in fields if name not in cls.BESIDE}

    def __repr__(self) -> str:
        """Show the fields that are set."""
        given = ((name, getattr(self, name)) for name in self.fields_by_key().values())
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given if value is not None)})"

    def to_dict(self) -> dict[str, Any]:
        """Return keys and values as in a file, without unset ones."""
        made: dict[str, Any] = {} if self.KIND is None else {"kind": self.KIND}
        for key, name in self.fields_by_key().items():
            value = getattr(self, name)
            if value is not None:
                made[key] = plain(value)
        return made

    @classmethod
    def from_dict(cls: type[T], values: dict[str, Any]) -> T:
        """Make the table from a file's keys and values. Raises `ValueError` for an unknown key."""
        names = cls.fields_by_key()
        given = {key: value for key, value in values.items() if not (key == "kind" and cls.KIND is not None)}
        unknown = [key for key in given if key not in names]
        if unknown:
            known = sorted(names)
            what = f"a table `{cls.__name__}` has no key `{unknown[0]}`; its keys are {', '.join(known)}"
            raise wrong(what, _meant(unknown[0], known))
        fields = {names[key]: cls._typed(names[key], value) for key, value in given.items()}
        return cls(**fields)

    @classmethod
    def _typed(cls, field: str, value: Any) -> Any:
        candidates = cls.CANDIDATES.get(field)
        return value if candidates is None else typed(value, candidates())

    def replace(self: T, **changes: Any) -> T:
        """Return a copy with other values in some fields."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


def _meant(name: str, names: list[str]) -> str:
    """Return the help for a name that is not among those of a table: its new name, or the nearest one."""
    if new := _narrows.replacement(name, names):
        return f"renamed to `{new}`"
    near = _narrows.nearest(name, names)
    return f"did you mean `{near}`?" if near else ""


#: The names of the fields of tables' classes.
_NAMES: dict[type, frozenset[str]] = {}


def _fields(table: type) -> frozenset[str]:
    """Return the names of the fields of a table's class."""
    if table not in _NAMES:
        _NAMES[table] = frozenset(field.name for field in dataclasses.fields(table))
    return _NAMES[table]


def plain(value: Any) -> Any:
    """Convert tables to dictionaries, at any depth."""
    if isinstance(value, Table):
        return value.to_dict()
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if is_sequence(value):
        return [plain(inner) for inner in value]
    # Arrays and numbers of numpy and the like.
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        return tolist()
    what = f"{value!r} is no value of a scenario file; expected text, a number, true or false, a list or a table"
    raise TypeError(what)


def typed(value: Any, candidates: tuple[type[Table], ...]) -> Any:
    """Convert dictionaries to the tables of their kind, or to the table without a kind."""
    if is_sequence(value):
        return [typed(inner, candidates) for inner in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    of_kind = [table for table in candidates if table.KIND is not None and kind == table.KIND]
    without = [table for table in candidates if table.KIND is None]
    for table in (*of_kind, *without):
        known = table.fields_by_key()
        if all(key in known or (key == "kind" and table.KIND is not None) for key in value):
            return table.from_dict(value)
    # Named entries, or an invalid table, which the reader reports better.
    return {key: typed(inner, candidates) for key, inner in value.items()}
