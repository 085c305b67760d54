"""Results: what runs leave on the disk, as tables and numbers."""

from __future__ import annotations

import copy
import html
import json
import warnings
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import _narrows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa

#: Tables of which a run has a file only if it has rows.
_ONLY_WITH_ROWS = {"switches", "pauses"}
#: Rows and columns of a table that a notebook shows.
_SHOWN_ROWS = 10


class Table:
    """A table of results, read from the disk as it is asked for.

    Anything that takes Arrow's PyCapsule streams reads it as it is: `polars.DataFrame(table)`, `pyarrow.table(table)`,
    `duckdb.from_arrow(pyarrow.table(table))`. Units are the last word of a column's name: `fct_ns`, `size_bytes`.
    """

    def __init__(self, files: Sequence[Path], runs: Sequence[str] | None = None) -> None:
        """Open tables, one file after the other. They have the columns of all files: where a file lacks one, it is null.

        `runs` chooses the rows of a table of summaries.
        """
        self._native = _narrows.Tables(list(files), None if runs is None else list(runs))

    @property
    def columns(self) -> dict[str, str]:
        """The names of the columns and their types."""
        return dict(self._native.columns())

    def __len__(self) -> int:
        """Count the rows."""
        return self._native.rows()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the rows as an Arrow stream."""
        return self._native.__arrow_c_stream__(requested_schema)

    def to_polars(self) -> pl.DataFrame:
        """Return it as a data frame of Polars, which must be installed."""
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> pa.Table:
        """Return it as a table of PyArrow, which must be installed."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return it as a data frame of pandas, which must be installed, and PyArrow with it."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        """Say how large it is and which columns it has."""
        columns = ", ".join(f"{name}: {kind}" for name, kind in self.columns.items())
        return f"Table({len(self)} rows; {columns})"


class Run:
    """One run: a scheme at a point, with a seed."""

    def __init__(self, directory: Path) -> None:
        """Open the directory of a run."""
        self.directory = directory

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the run was made from: seed, inputs, every setting."""
        return _json(self.directory / "manifest.json")

    @cached_property
    def _summary_text(self) -> str:
        return (self.directory / "summary.json").read_text(encoding="utf-8")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The run in numbers, as in the book's page on results."""
        made: dict[str, Any] = json.loads(self._summary_text)
        return made

    @property
    def name(self) -> str:
        """What tells it from the others: `uno`, or `uno,load=0.4`."""
        return str(self.manifest["run"])

    @property
    def label(self) -> str:
        """What plots call its scheme."""
        return str(self.manifest["label"])

    @property
    def scheme(self) -> str:
        """Its scheme's name in the scenario."""
        return str(self.manifest.get("point", {}).get("scheme", self.name))

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self.manifest["seed"])

    @cached_property
    def point(self) -> dict[str, Any]:
        """Its point, as its tables have it: keys with their units, and values. Without the scheme and the seed."""
        columns = self.manifest.get("columns", [])
        return {it["name"]: it.get("value") for it in columns if it["name"] not in {"scheme", "seed"}}

    @property
    def flows(self) -> Table:
        """One row a flow."""
        return self.table("flows")

    @property
    def ports(self) -> Table:
        """Samples of queues over time, where the scenario samples them."""
        return self.table("ports")

    @property
    def rates(self) -> Table:
        """Samples of flows over time, where the scenario samples them."""
        return self.table("rates")

    def table(self, name: str) -> Table:
        """Return the table in `NAME.parquet`."""
        return Table([self.directory / f"{name}.parquet"])

    def metric(self, metric: str) -> float:
        """Return a metric such as `p99(inter.slowdown)` or `network.drops`, in the unit of tables' columns (ns, bytes, bps).

        The book's page on claims has all of them. Raises `ValueError` where there is none, or the run has no value of it.
        """
        (value,), (reason,), _ = _narrows.Metrics([self._summary_text], [self.directory]).values(metric)
        if value is None:
            raise ValueError(reason)
        return value

    def __repr__(self) -> str:
        """Say which run it is."""
        return f"Run({self.name}, seed {self.seed})"


class Results:
    """The results of a scenario's runs: a directory, the same that the `narrows` command writes and reads."""

    def __init__(self, directory: str | Path) -> None:
        """Open a directory of whole results. Raises `FileNotFoundError` when it has none."""
        self.directory = Path(directory)
        manifest = self.directory / "manifest.json"
        if not manifest.is_file():
            more = (
                "; runs of a set in the making are kept, and the command that wrote them goes on"
                if (self.directory / ".next").is_dir()
                else ""
            )
            said = f"`{self.directory}` has no whole results{more}"
            if not self.directory.is_dir():
                said = f"there is no directory `{self.directory}`"
            raise FileNotFoundError(said)
        made = _json(manifest)
        folders = [entry["folder"] for entry in made["runs"]] if made["kind"] == "grid" else ["."]
        self.runs = [Run(self.directory / folder) for folder in folders]
        self._all = list(self.runs)

    def __len__(self) -> int:
        """Count the runs."""
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        """Go through the runs, in the scenario's order."""
        return iter(self.runs)

    def __getitem__(self, name: str | int) -> Run:
        """Return a run by its name, by its number, or by a label that no other run has."""
        if isinstance(name, int):
            return self.runs[name]
        found = [run for run in self.runs if run.name == name] or [run for run in self.runs if run.label == name]
        if len(found) == 1:
            return found[0]
        what = f"{len(found)} runs are called {name!r}" if found else f"there is no run {name!r}"
        raise KeyError(f"{what}; there are {', '.join(run.name for run in self.runs)}")

    def select(self, *, scheme: str | None = None, seed: int | None = None, **point: Any) -> Results:
        """Return the results of a scheme, a seed, and values of the point's keys alone.

        `variant=None` has the grid without its variants. `of` takes any choice of runs, as in
        `results.of(run for run in results if run.scheme != "cubic")`.
        """
        if "variant" in point:
            point["variant"] = point["variant"] or ""  # runs of the grid have "", or no such key where there are no variants
        return self.of(
            run
            for run in self.runs
            if scheme in (None, run.scheme)
            and seed in (None, run.seed)
            and all(run.point.get(key, "" if key == "variant" else None) == value for key, value in point.items())
        )

    def of(self, runs: Iterable[Run]) -> Results:
        """Return the results of some of its runs alone: tables, summaries, metrics and the report are of these."""
        chosen = copy.copy(self)
        chosen.__dict__.pop("summary", None)
        chosen.runs = list(runs)
        return chosen

    @cached_property
    def summary(self) -> dict[str, Any] | list[dict[str, Any]]:
        """The run in numbers; of several, a list of them."""
        all_of_them = [run.summary for run in self.runs]
        return all_of_them[0] if len(all_of_them) == 1 else all_of_them

    @property
    def flows(self) -> Table:
        """One row a flow, of all runs: of several, with columns that say which run it is of."""
        return self.table("flows")

    @property
    def ports(self) -> Table:
        """Samples of queues over time, of all runs."""
        return self.table("ports")

    @property
    def rates(self) -> Table:
        """Samples of flows over time, of all runs."""
        return self.table("rates")

    @property
    def summaries(self) -> Table:
        """One row a run, with its point and all numbers of its summary; not where the directory has one run only."""
        return Table([self.directory / "summary.parquet"], self._names if self._is_selection else None)

    def table(self, name: str) -> Table:
        """Return the tables in each run's `NAME.parquet` as one."""
        files = [run.directory / f"{name}.parquet" for run in self.runs]
        if name in _ONLY_WITH_ROWS:
            files = [file for file in files if file.exists()] or files
        return Table(files)

    def metric(self, metric: str) -> list[float | None]:
        """Return a metric of each run, as `Run.metric`; None where a run has no value of it."""
        return self.measured(metric)[0]

    def measured(self, metric: str) -> tuple[list[float | None], list[str | None], str]:
        """Return a metric of each run, why a run has no value of it, and the unit."""
        return self._metrics.values(metric)

    def hold(self, check: str) -> list[bool | None]:
        """Say of each run whether comparisons such as `p99(intra.slowdown) <= 5` hold; None where there is no value."""
        return self._metrics.hold(check)

    def pooled(self) -> list[dict[str, Any]]:
        """Return quantiles of the slowdown over all seeds together: a row a point, class of flows and scheme.

        `label` names the scheme, `run` the first of its runs.
        `p50` and `p99` are dictionaries of `value`, `low` and `high`, the latter two the ends of a 95 % interval by bootstrap.
        `ratios` are those of both quantiles to the first scheme's, over the flows that ended under both; None for the first.
        A p99 of fewer than 100 `flows` is one of the slowest. Points with a single seed are left out.
        """
        parts: list[dict[str, Any]] = json.loads(_narrows.pooled(self.directory, self._names))
        return [{"point": part["point"], **row} for part in parts for row in part["rows"]]

    def score(
        self, against: str | Path | None = None, *, cells: Iterable[str] = (), newcomers: Iterable[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the schemes' scores, the best first: dictionaries with `label`, `g`, `interval`, `w` and `ratios`.

        `against` is a file that `narrows score --write` made; without it, the best of these schemes in each of `cells` counts,
        metrics of which less is better, such as `"p99(inter.slowdown)"`. By default these are the median and the p99 of the
        slowdown of each size bin, or of each class; a warning names what has no flows. The `newcomers`, schemes by name, do
        not count there, so their scores may be under 1. Raises `ValueError` where there is no
        score: a run without a value, or other points or seeds than the reference's.
        """
        scores: list[dict[str, Any]] = self._scored(against, cells, newcomers)["scores"]
        return scores

    def _scored(self, against: str | Path | None, cells: Iterable[str], newcomers: Iterable[str]) -> dict[str, Any]:
        """Return the scores and their reference."""
        reference = None
        if against is not None:
            reference = _narrows.as_written(_narrows.text_of(str(against)), str(against))
        made = _narrows.score(self.directory, self._names, list(cells), reference, list(newcomers))
        scored: dict[str, Any] = json.loads(made)
        for why in scored["without"]:
            warnings.warn(why, stacklevel=3)
        return scored

    @property
    def _names(self) -> list[str]:
        return [run.name for run in self.runs]

    @property
    def _metrics(self) -> _narrows.Metrics:
        return _narrows.Metrics([run._summary_text for run in self.runs], [run.directory for run in self.runs])

    def warnings(self) -> dict[str, list[str]]:
        """Return what makes runs doubtful, by the names of those of which something is said."""
        return {run.name: run.summary["warnings"] for run in self.runs if run.summary["warnings"]}

    @property
    def _is_selection(self) -> bool:
        return self.runs != self._all

    @property
    def report(self) -> Path:
        """The report: a page that needs nothing else.

        It is of all runs of the directory. Raises `ValueError` where some were chosen: `write_report` writes a page of those.
        """
        if self._is_selection:
            said = (
                f"the report in `{self.directory}` is of all {len(self._all)} runs; `write_report` writes one of these {len(self)}"
            )
            raise ValueError(said)
        return self.directory / "report.html"

    def write_report(self, path: str | Path) -> Path:
        """Write a report of these runs to a file that does not exist yet, and return its path.

        Raises `FileExistsError` where there is a file.
        """
        written = Path(path)
        page = self._page()
        with written.open("x", encoding="utf-8") as file:
            file.write(page)
        return written

    def _page(self) -> str:
        """Make the report of these runs."""
        if not self._is_selection:
            return self.report.read_text(encoding="utf-8")
        return _narrows.report(self.directory, self._names)

    def _repr_html_(self) -> str:
        """Show the report of these runs in a notebook."""
        page = html.escape(self._page())
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 60em; border: 1px solid #ccc"></iframe>'

    def __repr__(self) -> str:
        """Say how many runs there are and where."""
        return f"Results({len(self.runs)} runs in {str(self.directory)!r})"


def _json(path: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return made
