"""Scenarios as objects, read from files and written to them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from narrows import _given, _laws, _narrows, _renamed
from narrows._table import plain
from narrows.config import Config

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from narrows._laws import LawBase

    #: Values of a varied key: a sequence, or a text with commas between them.
    Values = Sequence[Any] | str


@dataclass(kw_only=True, repr=False)
class Scenario(Config):
    """A scenario: a network, traffic, and the schemes that carry it.

    Its fields are the keys of a scenario file; `narrows.config` has the classes of its tables. Plain dictionaries are accepted
    in their places. Nothing is validated before `check`, `to_toml` or a run.
    """

    #: File of the scenario. Paths of other files are relative to its directory.
    source: Path | None = field(default=None, compare=False)

    BESIDE: ClassVar[frozenset[str]] = frozenset({"source"})

    @classmethod
    def load(cls, path: str | Path, *, laws: Iterable[type[LawBase]] = ()) -> Scenario:
        """Read a file. Raises `ScenarioError` if it does not exist or is invalid."""
        path = _given.path_of_scenario(path)
        return cls.from_toml(_narrows.text_of(path), source=path, laws=laws)

    @classmethod
    def from_toml(cls, text: str, *, source: str | Path = "scenario.toml", laws: Iterable[type[LawBase]] = ()) -> Scenario:
        """Read a text. `source` is the file that errors name.

        A law in Python that the text names without a declaration is validated when the scenario runs; those of `laws` are
        declared and validated now.
        """
        laws = _given.laws(laws)
        written = json.loads(_narrows.as_written(text, str(source)))
        known = {**_laws.undeclared(written), **_laws.declared(laws)}
        # First by the reader with the best error messages.
        _parsed(text, str(source), {f"external_laws.{name}": table for name, table in known.items()})
        made = cls.from_dict(written)
        made.source = Path(source)
        return with_laws(made, laws)

    def to_toml(self) -> str:
        """Return the text of the scenario file."""
        return _narrows.toml_of(json.dumps(self.to_dict()))

    def save(self, path: str | Path) -> None:
        """Write a scenario file. Raises `FileExistsError` if the file exists."""
        text = self.to_toml()
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(text)

    def runs(self) -> list[str]:
        """Return the names of the scenario's runs."""
        return self.read().runs()

    def check(self) -> dict[str, list[str]]:
        """Build every run without running it, and return warnings by run."""
        return {run: warnings for run, warnings in self.read().check() if warnings}

    def resolved(self) -> str:
        """Return the text of the file with every constant default; with a grid, of its first point."""
        return self.read().resolved()

    @_renamed.arguments
    def read(
        self,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002
        seed: int | None = None,
        scale: str | None = None,
        vary: Mapping[str, Values] | None = None,
        seeds: int | None = None,
    ) -> _narrows.Scenario:
        """Return the scenario as parsed by the native part. Raises `ScenarioError` if it is invalid."""
        return _parsed(self.to_toml(), str(self.source or f"{self.name}.toml"), set, seed, scale, vary, seeds)

    def _repr_markdown_(self) -> str:
        return f"```toml\n{self.to_toml()}```"


def with_laws(scenario: Scenario, laws: Iterable[type[LawBase]]) -> Scenario:
    """Return the scenario with these laws, which its schemes name by their classes: `law = "Halve"`."""
    laws = list(laws)
    return scenario.replace(external_laws={**(scenario.external_laws or {}), **_laws.declared(laws)}) if laws else scenario


def _parsed(
    text: str,
    origin: str,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    seed: int | None = None,
    scale: str | None = None,
    vary: Mapping[str, Values] | None = None,
    seeds: int | None = None,
) -> _narrows.Scenario:
    seed, seeds = _given.seed(seed), _given.count("seeds", seeds)
    given = [(key, inline(value)) for key, value in (_given.keyed("set", set) or {}).items()]
    # A text is what the command line takes: `20%,40%`.
    several = {key: it if isinstance(it, str) else _given.values(f"vary: {key}", it) for key, it in (vary or {}).items()}
    varied = [(key, it if isinstance(it, str) else inline(it)) for key, it in several.items()]
    return _narrows.Scenario(text, origin, set=given, seed=seed, scale=scale, vary=varied, seeds=seeds)


def inline(value: Any) -> str:
    """Return a value as TOML has it on one line."""
    value = plain(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {inline(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(inline(inner) for inner in value) + "]"
    if value is None:
        said = "None is no value of a scenario file"
        raise TypeError(said)
    return json.dumps(value, ensure_ascii=False)
