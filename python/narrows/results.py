"""Results of runs on the disk, as tables and numbers."""

from __future__ import annotations

import copy
import html
import json
import operator
import warnings
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from narrows import _choice, _given, _narrows, _renamed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import ModuleType

    import pandas as pd
    import polars as pl
    import pyarrow as pa

#: Tables that have a file only if they have rows.
_ONLY_WITH_ROWS = {"switches", "pauses"}
#: Help if no run has such a table.
_WITHOUT_ROWS = {
    "switches": "it has samples of shared buffers: give the scenario `switch.buffer` and `monitor.switches`",
    "pauses": "it has the pauses of sampled ports (PFC), and there was none",
}
#: Tables of a run.
_TABLES = ("flows", "port_samples", "flow_samples", "switches", "pauses")
#: Classes of flows: inside a datacenter, and between two.
CLASSES = ("intra", "inter")


class Table:
    """A table of results, read from the disk on demand.

    Libraries with support for Arrow's PyCapsule interface read it directly: `polars.DataFrame(table)`, `pyarrow.table(table)`,
    `duckdb.from_arrow(pyarrow.table(table))`. Units are the last word of a column's name: `fct_ns`, `size_bytes`.
    """

    def __init__(self, files: Sequence[Path], runs: Sequence[str] | None = None) -> None:
        """Open tables of several files, concatenated, with the columns of all files; a missing column is null.

        `runs` selects rows of a table of summaries.
        """
        self._files: list[Path] | None = list(files)
        self._runs = None if runs is None else list(runs)
        self._class: str | None = None
        self._native = _narrows.Tables(self._files, self._runs)

    @classmethod
    def _held(cls, native: _narrows.Tables) -> Table:
        """Return a table without a file."""
        made = cls.__new__(cls)
        made._files, made._runs, made._class, made._native = None, None, None, native
        return made

    @property
    def columns(self) -> dict[str, str]:
        """The names of the columns and their types."""
        return dict(self._native.columns())

    def select(self, columns: str | Sequence[str]) -> Table:
        """Return the same rows with these columns only, in this order. Only these are read from the disk.

        Raises `ScenarioError`, a `ValueError`, for an unknown column.
        """
        names = _given.names("columns", columns)
        known = list(self.columns)
        for name in names:
            if name not in known:
                raise _given.unknown(f"the table has no column `{name}`", name, known)
        if not names:
            raise _given.wrong("no column is asked for", f"expected some of {', '.join(known)}")
        if len(set(names)) < len(names):
            raise _given.wrong("a column is asked for twice", "expected each column once")
        made = copy.copy(self)
        made._native = self._native.select(names)
        return made

    def of_class(self, class_: str) -> Table:
        """Return the rows of one class of flows, `"intra"` (inside a datacenter) or `"inter"` (between two).

        Raises `ScenarioError`, a `ValueError`, for an unknown class, or if the table has no classes.
        """
        if not {"flow", "class"} <= self.columns.keys():
            raise _given.wrong("the table is not one of flows with their class", 'expected `flows`, or `table("flows")`')
        if class_ not in CLASSES:
            raise _given.unknown(f"there is no class `{class_}`", class_, CLASSES)
        made = copy.copy(self)
        made._class, made._native = class_, self._native.of_class(class_)
        return made

    def __len__(self) -> int:
        """Count the rows."""
        return self._native.rows()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as an Arrow stream."""
        return self._native.__arrow_c_stream__(requested_schema)

    def to_polars(self, columns: str | Sequence[str] | None = None) -> pl.DataFrame:
        """Return the table, or some columns, as a data frame of Polars, which must be installed."""
        if self._files is None:
            frame: pl.DataFrame = _polars().DataFrame(self._of(columns))
            return frame
        # Polars' own reader keeps texts as it has them in memory; an Arrow stream would be converted.
        return self._of(columns).scan().collect()

    def to_arrow(self, columns: str | Sequence[str] | None = None) -> pa.Table:
        """Return the table, or some columns, as a table of PyArrow, which must be installed."""
        try:
            import pyarrow
        except ModuleNotFoundError:
            raise _given.needs("PyArrow", "`to_arrow`") from None
        return pyarrow.table(self._of(columns))

    def to_pandas(self, columns: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Return the table, or some columns, as a data frame of pandas; pandas and PyArrow must be installed."""
        try:
            import pandas  # noqa: F401
        except ModuleNotFoundError:
            raise _given.needs("pandas", "`to_pandas`") from None
        return self.to_arrow(columns).to_pandas()

    def scan(self) -> pl.LazyFrame:
        """Return a lazy frame of Polars, which must be installed: a query reads only the columns and rows that it needs."""
        polars = _polars()
        if self._files is None:
            held: pl.LazyFrame = polars.DataFrame(self).lazy()
            return held
        # No part of a path is a pattern, nor a column.
        options = {"glob": False, "hive_partitioning": False}
        frame: pl.LazyFrame
        if self._native.are_alike():
            frame = polars.scan_parquet(self._files, **options)
        else:
            # Files of earlier versions lack columns.
            frame = polars.concat([polars.scan_parquet(file, **options) for file in self._files], how="diagonal")
        if self._class is not None:
            frame = frame.filter(polars.col("class") == self._class)
        if self._runs is not None:
            frame = polars.LazyFrame({"run": self._runs}).join(frame, on="run", how="left", maintain_order="left")
        return frame.select(list(self.columns))

    def _of(self, columns: str | Sequence[str] | None) -> Table:
        return self if columns is None else self.select(columns)

    def __repr__(self) -> str:
        """Show the number of rows and the columns."""
        columns = ", ".join(f"{name}: {kind}" for name, kind in self.columns.items())
        return f"Table({len(self)} rows; {columns})"


def _polars() -> ModuleType:
    """Return Polars. Raises `ModuleNotFoundError` if it is not installed."""
    try:
        import polars
    except ModuleNotFoundError:
        raise _given.needs("Polars", "a data frame of Polars") from None
    return polars


class Run(_renamed.Attributes):
    """One run: a scheme at a point, with a seed."""

    def __init__(self, directory: Path) -> None:
        """Open the directory of a run."""
        self.directory = directory

    @cached_property
    def _manifest_text(self) -> str:
        return (self.directory / "manifest.json").read_text(encoding="utf-8")

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The run's seed, inputs and settings."""
        made: dict[str, Any] = json.loads(self._manifest_text)
        return made

    @cached_property
    def _summary_text(self) -> str:
        return (self.directory / "summary.json").read_text(encoding="utf-8")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The numbers of the run, as in the book's page on results."""
        made: dict[str, Any] = json.loads(self._summary_text)
        return made

    @property
    def name(self) -> str:
        """Return its identifier within the scenario: `uno`, or `uno,traffic.0.load=0.4`."""
        return str(self.manifest["run"])

    @property
    def label(self) -> str:
        """Label of the scheme in plots."""
        return str(self.manifest["label"])

    @property
    def scheme(self) -> str:
        """Name of the scheme in the scenario."""
        return str(self.manifest.get("point", {}).get("scheme", self.name))

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.manifest["seed"])

    @cached_property
    def point(self) -> dict[str, Any]:
        """The run's point as in its tables: keys with units, and values, without scheme and seed."""
        columns = self.manifest.get("columns", [])
        return {it["name"]: it.get("value") for it in columns if it["name"] not in {"scheme", "seed"}}

    @property
    def keys(self) -> dict[str, Any]:
        """Scheme, point and seed: the first columns of the run's tables."""
        return {"scheme": self.scheme, **self.point, "seed": self.seed}

    @property
    def names(self) -> list[str]:
        """The keys of the point, in the order of `point`: `port.buffer` for the column `port.buffer_bytes`."""
        return [key for key in self.manifest.get("point", {}) if key not in {"scheme", "seed"}]

    @cached_property
    def _identity(self) -> tuple[str, ...]:
        """The run's name, its key, and the hashes of its files."""
        files = self.manifest.get("files", [])
        return (self.name, str(self.manifest.get("key", "")), *(f"{it['name']}:{it['sha256']}" for it in files))

    def __eq__(self, other: object) -> bool:
        """Return True for the same run with the same results in any directory, by key and file hashes in the manifest."""
        if not isinstance(other, Run):
            return NotImplemented
        # Runs of earlier versions have no key.
        alike = self.directory == other.directory or (bool(self.manifest.get("key")) and bool(self.manifest.get("files")))
        return alike and self._identity == other._identity

    def __hash__(self) -> int:
        """Hash the values that `__eq__` compares."""
        return hash(self._identity)

    @property
    def flows(self) -> Table:
        """One row per flow."""
        return self.table("flows")

    @property
    def port_samples(self) -> Table:
        """Samples of queues over time, if the scenario has them."""
        return self.table("port_samples")

    @property
    def flow_samples(self) -> Table:
        """Samples of flows over time, if the scenario has them."""
        return self.table("flow_samples")

    @property
    def jobs(self) -> Table:
        """One row per iteration of a training job, as `Results.jobs`."""
        return Table._held(_narrows.jobs([self._manifest_text], [self._summary_text]))

    def table(self, name: str, *, columns: str | Sequence[str] | None = None, class_: str | None = None) -> Table:
        """Return the table in `NAME.parquet`, or some columns of it, or the flows of one class: as `Results.table`."""
        return _table([self], name, columns, class_)

    def scan(self, name: str = "flows") -> pl.LazyFrame:
        """Return a table as a lazy frame of Polars, as `Results.scan`."""
        return self.table(name).scan()

    def metric(self, metric: str) -> float:
        """Return a metric such as `p99(inter.slowdown)` or `network.drops`, in the unit of tables' columns (ns, bytes, bps).

        The book's page on claims lists all metrics. Raises `ValueError` for an unknown metric, or if the run lacks a value.
        """
        (value,), (reason,), _ = _narrows.Metrics([self._summary_text], [self.directory]).values(metric)
        if value is None:
            raise ValueError(reason)
        return value

    def __repr__(self) -> str:
        """Show the run's name and seed."""
        return f"Run({self.name}, seed {self.seed})"


class Results(_renamed.Attributes):
    """The results of a scenario's runs, in a directory as the `narrows` command writes and reads it."""

    def __init__(self, directory: str | Path) -> None:
        """Open a directory of complete results. Raises `FileNotFoundError` if it has none."""
        self.directory = Path(directory)
        manifest = self.directory / "manifest.json"
        if not manifest.is_file():
            more = (
                "; finished runs of an interrupted sweep are kept, and the command that wrote them resumes"
                if (self.directory / ".next").is_dir()
                else ""
            )
            said = f"`{self.directory}` has no complete results{more}"
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
        """Iterate over the runs, in the scenario's order."""
        return iter(self.runs)

    @overload
    def __getitem__(self, name: str | int) -> Run: ...

    @overload
    def __getitem__(self, name: slice) -> Results: ...

    def __getitem__(self, name: str | int | slice) -> Run | Results:
        """Return a run by its name, its number or a unique label; for a slice, the results of these runs.

        In a name, keys may be shortened to their last parts: `uno,load=0.4` for `uno,traffic.0.load=0.4`.
        """
        if isinstance(name, slice):
            return self.subset(self.runs[name])
        if not isinstance(name, str):
            number = operator.index(name)
            if not -len(self) <= number < len(self):
                said = _given.said(f"there is no run {number}", f"there are {len(self)}, from 0 or from -{len(self)}")
                raise IndexError(said)
            return self.runs[number]
        found = [run for run in self.runs if run.name == name] or [run for run in self.runs if run.label == name]
        found = found or [run for run in self.runs if _choice.is_run(run.name, name)]
        if len(found) == 1:
            return found[0]
        what = f"{len(found)} runs are called {name!r}" if found else f"there is no run {name!r}"
        raise KeyError(f"{what}; there are {', '.join(run.name for run in self.runs)}")

    def __eq__(self, other: object) -> bool:
        """Return True for the same runs in the same order with the same results, in any directory."""
        return self.runs == other.runs if isinstance(other, Results) else NotImplemented

    def __hash__(self) -> int:
        """Hash the runs."""
        return hash(tuple(self.runs))

    def select(self, *, scheme: Any = None, seed: Any = None, **point: Any) -> Results:
        """Return the results of runs with these schemes, seeds and values of keys. Several values of a key are alternatives.

        A key is one of the grid, in full or by its last part, as in `select(load=0.4)` and `select(**{"traffic.0.load": 0.4})`; a
        column of the tables (`port.buffer_bytes`); or any other key of the scenario. A value may be text with a unit.
        `variant=None` selects the grid without its variants. `subset` takes any runs, as in
        `results.subset(run for run in results if run.scheme != "cubic")`.

        Raises `ScenarioError`, a `ValueError`, for a key or a value that no run has. It lists those that exist.
        """
        wanted = {key: value for key, value in (("scheme", scheme), ("seed", seed)) if value is not None}
        return self.subset(_choice.chosen(self.runs, {**wanted, **point}))

    def subset(self, runs: Iterable[Run]) -> Results:
        """Return the results of some of the runs: tables, summaries, metrics and the report include only these."""
        chosen = copy.copy(self)
        chosen.__dict__.pop("summary", None)
        chosen.runs = list(runs)
        return chosen

    @cached_property
    def summary(self) -> dict[str, Any] | list[dict[str, Any]]:
        """The numbers of the run; for several runs, a list."""
        all_of_them = [run.summary for run in self.runs]
        return all_of_them[0] if len(all_of_them) == 1 else all_of_them

    @property
    def flows(self) -> Table:
        """One row per flow of all runs; with several runs, columns identify the run."""
        return self.table("flows")

    @property
    def port_samples(self) -> Table:
        """Samples of queues over time, of all runs."""
        return self.table("port_samples")

    @property
    def flow_samples(self) -> Table:
        """Samples of flows over time, of all runs."""
        return self.table("flow_samples")

    @property
    def summaries(self) -> Table:
        """One row per run, with its point and all numbers of its summary."""
        file = self.directory / "summary.parquet"
        if file.is_file():
            return Table([file], self._names if self._is_selection else None)
        return Table._held(_narrows.summaries(*self._texts))

    @property
    def jobs(self) -> Table:
        """One row per iteration of a training job: its run, the job's name, the iteration's number, and its duration.

        `took_mean_ns`, `compute_mean_ns` and `exposed_mean_ns` are means over the job's iterations, the same in all of its rows:
        of the iteration, of computing on its critical path, and of communication that computing does not hide. Without a training
        job there are no rows.
        """
        return Table._held(_narrows.jobs(*self._texts))

    def table(self, name: str, *, columns: str | Sequence[str] | None = None, class_: str | None = None) -> Table:
        """Return the tables in each run's `NAME.parquet` as one, or some columns, or one class of flows.

        Raises `ScenarioError`, a `ValueError`, for an unknown table, column or class. It lists those that exist.
        """
        return _table(self.runs, name, columns, class_)

    def scan(self, name: str = "flows") -> pl.LazyFrame:
        """Return a table of all runs as a lazy frame of Polars, which must be installed.

        `name` is `flows`, `port_samples`, `flow_samples`, `switches`, `pauses` or `summaries`. A query reads only the columns
        and rows that it needs.
        """
        return (self.summaries if name == "summaries" else self.table(name)).scan()

    def metric(self, metric: str) -> list[float | None]:
        """Return a metric of each run, as `Run.metric`; None if a run lacks a value."""
        return self.measured(metric)[0]

    def measured(self, metric: str) -> tuple[list[float | None], list[str | None], str]:
        """Return a metric of each run, the reason for each missing value, and the unit."""
        return self._metrics.values(metric)

    def check(self, check: str) -> list[bool | None]:
        """Return whether comparisons such as `p99(intra.slowdown) <= 5` hold in each run; None if a run lacks a value."""
        return self._metrics.check(check)

    def pooled(self) -> list[dict[str, Any]]:
        """Return quantiles of the slowdown over all seeds together: a row per point, class of flows and scheme.

        `label` names the scheme, `run` the first of its runs.
        `p50` and `p99` are dictionaries of `value`, `low` and `high`, the latter two the ends of a 95 % interval by bootstrap.
        `ratios` are those of both quantiles to the first scheme's, over the flows that finished under both; None for the first.
        A p99 of fewer than 100 `flows` is one of the slowest. Points with a single seed are left out.
        """
        parts: list[dict[str, Any]] = json.loads(_narrows.pooled(self.directory, self._names))
        return [{"point": part["point"], **row} for part in parts for row in part["rows"]]

    @_renamed.arguments
    def score(
        self, baseline: str | Path | None = None, *, metrics: Iterable[str] = (), not_in_baseline: Iterable[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the schemes' scores, the best first: dictionaries with `label`, `g`, `interval`, `w` and `ratios`.

        `baseline` is a file from `narrows score --save-baseline`; without it, each of `metrics` is compared with the best of these
        schemes. Metrics are such that less is better, as `"p99(inter.slowdown)"`. By default these are the median and the p99 of
        the slowdown of each size bin, or of each class; a warning names those without flows. The best are taken without the
        schemes of `not_in_baseline`, which may therefore score below 1.

        Raises `ValueError` without a score: a run lacks a value, or points or seeds differ from the baseline's.
        """
        scores: list[dict[str, Any]] = self._scored(baseline, metrics, not_in_baseline)["scores"]
        return scores

    def _scored(self, baseline: str | Path | None, metrics: Iterable[str], not_in_baseline: Iterable[str]) -> dict[str, Any]:
        """Return the scores and their reference."""
        reference = None
        if baseline is not None:
            reference = _narrows.as_written(_narrows.text_of(str(baseline)), str(baseline))
        metrics = _given.names("metrics", metrics)
        not_in_baseline = _given.names("not_in_baseline", not_in_baseline)
        made = _narrows.score(self.directory, self._names, metrics, reference, not_in_baseline)
        scored: dict[str, Any] = json.loads(made)
        for why in scored["without"]:
            warnings.warn(why, stacklevel=4)
        return scored

    @property
    def _texts(self) -> tuple[list[str], list[str]]:
        """The texts of the runs' manifests and summaries."""
        return [run._manifest_text for run in self.runs], [run._summary_text for run in self.runs]

    @property
    def _names(self) -> list[str]:
        return [run.name for run in self.runs]

    @property
    def _metrics(self) -> _narrows.Metrics:
        return _narrows.Metrics([run._summary_text for run in self.runs], [run.directory for run in self.runs])

    def warnings(self) -> dict[str, list[str]]:
        """Return the warnings of runs that have some, by name."""
        return {run.name: run.summary["warnings"] for run in self.runs if run.summary["warnings"]}

    @property
    def _is_selection(self) -> bool:
        return [id(run) for run in self.runs] != [id(run) for run in self._all]

    @property
    def report(self) -> Path:
        """The path of the report, a self-contained page.

        It covers all runs of the directory. Raises `ValueError` for a selection of runs: `write_report` writes their report.
        """
        if self._is_selection:
            said = (
                f"the report in `{self.directory}` is of all {len(self._all)} runs; `write_report` writes one of these {len(self)}"
            )
            raise ValueError(said)
        return self.directory / "report.html"

    def write_report(self, path: str | Path) -> Path:
        """Write a report of these runs to a new file, and return its path.

        Raises `FileExistsError` if the file exists.
        """
        written = Path(path)
        page = self._page()
        with written.open("x", encoding="utf-8") as file:
            file.write(page)
        return written

    def _page(self) -> str:
        """Return the report of these runs."""
        if not self._is_selection:
            return self.report.read_text(encoding="utf-8")
        return _narrows.report(self.directory, self._names)

    def _repr_html_(self) -> str:
        """Show the report of these runs in a notebook."""
        page = html.escape(self._page())
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 60em; border: 1px solid #ccc"></iframe>'

    def __repr__(self) -> str:
        """Show the number of runs and the directory."""
        return f"Results({len(self.runs)} runs in {str(self.directory)!r})"


def _table(runs: Sequence[Run], name: str, columns: str | Sequence[str] | None, class_: str | None) -> Table:
    """Return the tables of runs as one."""
    if name not in _TABLES:
        raise _given.unknown(f"there is no table `{name}`", name, _TABLES)
    if not runs:
        raise _given.wrong("no run is chosen, so there is no table", "choose other values of keys in `select`")
    files = [run.directory / f"{name}.parquet" for run in runs]
    if name in _ONLY_WITH_ROWS:
        files = [file for file in files if file.exists()]
        if not files:
            raise _given.wrong(f"no run has a table `{name}`", _WITHOUT_ROWS[name])
    table = Table(files)
    if class_ is not None:
        table = table.of_class(class_)
    return table if columns is None else table.select(columns)


def _json(path: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return made
