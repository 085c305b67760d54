"""Figures of papers: results of `reproduce`, drawn as the paper draws them, with the values that it states.

`[[paper.plot]]` of a figure's file says how it is drawn; the book's page on claims has the keys. `_canvas` has the styles, and
`plotting` saves figures.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import _canvas, _choice, _narrows
from narrows.panels import MARK, Panel, Spec, quantity, value_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from narrows.results import Results

#: Number of columns, by number of panels.
COLUMNS_OF = {1: 1, 2: 2, 3: 3, 4: 2}


def draw(results: Results, *, papers: str | Path | None = None, style: str = "screen", title: str | None = None) -> Figure:
    """Draw results of a paper's figure as the paper draws it: means over seeds with their 95 % confidence intervals.

    Raises `ValueError` when the results are not of a paper's figure, or the figure has no drawing.
    """
    root = home(papers)
    name = name_of(results, root)
    looks: dict[str, int] = {}
    groups = [_apart(Panel(results, _by_columns(results, spec), looks)) for spec in drawing(name, root)]
    panels = [panel for group in groups for panel in group]
    columns = COLUMNS_OF.get(len(panels), 3)
    with _canvas.canvas(len(panels), columns=columns, style=style, title=title) as (figure, places):
        for axes, panel in zip(places, panels, strict=True):
            panel.draw(axes)
        _share(groups, dict(zip(map(id, panels), places, strict=True)))
        _legends(figure, panels, places, style)
        doubts = [said for panel in panels for said in panel.doubts]
        _canvas.doubt(figure, "\n".join([*dict.fromkeys(doubts), *_canvas.warned(results)]), style)
    return figure


def _by_columns(results: Results, spec: Spec) -> Spec:
    """Return a panel's keys with the columns that they stand for: `traffic.0.load` for `load`."""
    named = {key: spec[key] and _choice.column(results.runs, spec[key]) for key in ("x", "by", "each")}
    return {**spec, **named, "only": {_choice.column(results.runs, key): value for key, value in spec["only"].items()}}


def home(papers: str | Path | None) -> Path:
    """Return the directory of the papers' files: `papers` in the working directory if it exists, else the package's."""
    if papers is not None:
        return Path(papers)
    here = Path("papers")
    return here if any(here.glob("*/*.toml")) else Path(__file__).parent / "papers"


def name_of(results: Results, papers: Path) -> str:
    """Return the name of the figure that results belong to, as in `uno/fig10`.

    Raises `ValueError` when there is no such file.
    """
    scenario = str(results.runs[0].manifest["scenario"]) if results.runs else ""
    found = [name for name in _names(papers) if name.replace("/", "-") == scenario]
    if not found:
        said = (
            f"`{results.directory}` has results of the scenario `{scenario}`, which is no figure of `{papers}`: name what to "
            "draw (`y`, --y METRIC), or where the papers' files are (`papers`, --papers DIR)"
        )
        raise ValueError(said)
    return found[0]


def drawing(name: str, papers: Path) -> list[Spec]:
    """Return the panels of a figure's file, with every key.

    Raises `ValueError` when the file has none, or one is wrong.
    """
    path = papers / f"{name}.toml"
    stated = _stated(path)
    if stated is None:
        have = [other for other in _names(papers) if _stated(papers / f"{other}.toml") is not None]
        by_paper: dict[str, list[str]] = {}
        for other in sorted(have, key=_natural):
            by_paper.setdefault(other.split("/")[0], []).append(other.split("/")[1])
        listed = "\n".join(f"  {paper}: {', '.join(figures)}" for paper, figures in by_paper.items())
        said = f"`{path}` does not say how the figure is drawn ([[paper.plot]]); `y`, or --y METRIC, does, too\nthese do:\n{listed}"
        raise ValueError(said)
    made: str | list[Spec] = json.loads(_narrows.drawing(json.dumps(stated), str(path)))
    if isinstance(made, list):
        return made
    beside = path.with_name(f"{made}.toml")
    panels = json.loads(_narrows.drawing(json.dumps(_stated(beside)), str(beside))) if beside.is_file() else None
    if not isinstance(panels, list):
        said = f"{path}: `plot = {made!r}`: `{beside}` has no [[paper.plot]]"
        raise ValueError(said)
    return panels


def _names(papers: Path) -> list[str]:
    return [f"{path.parent.name}/{path.stem}" for path in papers.glob("*/*.toml")]


def _natural(name: str) -> list[Any]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


@functools.cache
def _read(path: Path, _changed: int) -> Any:
    return json.loads(_narrows.as_written(path.read_text(encoding="utf-8"), str(path))).get("paper", {}).get("plot")


def _stated(path: Path) -> Any:
    """Return `paper.plot` of a file."""
    return _read(path, path.stat().st_mtime_ns)


def _apart(panel: Panel) -> list[Panel]:
    """Return a panel for each value of the key in `each`, or the panel itself."""
    each = panel.spec["each"]
    if each is None:
        return [panel]
    if each == "scheme":
        return [panel.of({"schemes": [scheme]}, panel.labels[scheme]) for scheme in panel.schemes]
    values = list(dict.fromkeys(value_at(run, each) for run in panel.runs))
    key, _, unit = each.rpartition("_")
    known = unit in _canvas.UNITS
    names = panel.spec["places"] or [f"{key} = {quantity(value, unit)}" if known else f"{each} = {value}" for value in values]
    made = zip(values, names, strict=False)
    return [panel.of({"only": {**panel.spec["only"], each: value}, "places": []}, str(name)) for value, name in made]


#: Maximum ratio of y axes that are unified.
ALIKE = 10


def _share(groups: list[list[Panel]], places: dict[int, Axes]) -> None:
    """Give panels that differ in one key the same y axis, if all are readable on it."""
    for group in groups:
        axes = [places[id(panel)] for panel in group]
        ends = [one.get_ylim() for one in axes]
        low, high = min((low for low, _ in ends), default=0.0), max((high for _, high in ends), default=1.0)
        if len({one.get_ylabel() for one in axes}) == 1 and all(high <= ALIKE * top for _, top in ends):
            for one in axes:
                one.set_ylim(low, high)


def _legends(figure: Figure, panels: list[Panel], places: list[Axes], style: str) -> None:
    """Draw one legend above all panels if they have the same lines, else one in each panel."""
    told = []
    for axes in places:
        handles, labels = axes.get_legend_handles_labels()
        told.append(dict(zip(labels, handles, strict=True)))
    ours = [{label for label, handle in of.items() if not _is_mark(handle)} for of in told]
    if all(labels == ours[0] for labels in ours):
        of = _marks_last({label: handle for of in told for label, handle in of.items()})
        # An entry's letters, its sign and the space between two, in inches.
        wide = _canvas.STYLES[style][2] * (0.008 * max(map(len, of), default=0) + 0.075)
        if _needed(of):
            columns = max(1, min(len(of), int(figure.get_figwidth() / wide)))
            figure.legend(of.values(), of.keys(), loc="outside upper center", ncols=columns, frameon=False)
        return
    for panel, axes, every in zip(panels, places, told, strict=True):
        of = {label: handle for label, handle in every.items() if not panel.alone or _is_mark(handle)}
        if panel.alone:
            panel.name_bars(axes)
        if _needed(of):
            if panel.spec["kind"] == "bars" and axes.get_yscale() == "linear":
                # Room for it.
                axes.set_ylim(top=1.3 * axes.get_ylim()[1])
            axes.legend(_marks_last(of).values(), _marks_last(of).keys(), frameon=False, fontsize="small")


def _is_mark(handle: Any) -> bool:
    from matplotlib.artist import Artist

    return isinstance(handle, Artist) and handle.get_gid() == MARK


def _marks_last(of: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(of.items(), key=lambda item: _is_mark(item[1])))


def _needed(of: dict[str, Any]) -> bool:
    return len(of) > 1 or any(map(_is_mark, of.values()))
