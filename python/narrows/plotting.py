"""Figures of results with Matplotlib: `plot`, `save` and `narrows plot`."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from narrows import _choice, _given, figures, fronts
from narrows._canvas import COLOURS, UNITS, canvas, doubt, labels_of, lines, matplotlib, scale, warned
from narrows._means import Dot, dots
from narrows._words import ended, pair
from narrows.results import Results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["UNITS", "Dot", "canvas", "dots", "main", "plot", "save"]

#: File endings of figures, with the marks of a comment. Readers of PNG ignore data after the image.
SEALS = {".pdf": ("% ", ""), ".svg": ("<!-- ", " -->"), ".png": ("", "")}

#: Axes that may be logarithmic.
LOG = ("", "x", "y", "xy")


def plot(
    results: Results | str | Path,
    *,
    y: str | Sequence[str] | None = None,
    x: str | None = None,
    by: str = "scheme",
    style: str = "screen",
    log: str = "",
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | Sequence[str] | None = None,
    papers: str | Path | None = None,
) -> Figure:
    """Draw metrics over a key of the points: means over seeds with their 95 % confidence intervals.

    `y` is a metric such as `"p99(inter.slowdown)"`, or several, a panel each; the book's page on claims has all of them. `x` is
    a key of the points, such as `load`; by default the one that varies, and where none does, bars are drawn. `by` is what
    has a line of its own. `xlabel` and `ylabel` are what the axes are called, with the unit, if there is one, in parentheses
    behind; by default they are the key and the metric. `style` is `"screen"` or `"paper"`; `log` has the axes that are
    logarithmic: `"x"`, `"y"`, `"xy"`.

    Without `y`, results of a paper's figure are drawn as the paper draws it; `papers` has the papers' files, as in `reproduce`.

    Raises `ValueError` for a metric or a key that there is not, or a figure that has no drawing.
    """
    matplotlib()
    results = results if isinstance(results, Results) else Results(results)
    if y is None:
        if x is not None or by != "scheme" or log or xlabel or ylabel:
            said = "`x`, `by`, `log`, `xlabel` and `ylabel` go with `y`; without it, the paper's own drawing is taken"
            raise ValueError(said)
        return figures.draw(results, papers=papers, style=style, title=title)
    metrics = _given.names("y", y)
    if not metrics:
        said = "expected at least one metric"
        raise ValueError(said)
    if log not in LOG:
        raise _given.wrong(f"`log={log!r}` are no axes", 'expected "x", "y", "xy", or "" for none')
    names = metrics if ylabel is None else _given.names("ylabel", ylabel)
    if len(names) != len(metrics):
        said = f"expected as many ylabels as metrics, {len(metrics)}, and not {len(names)}"
        raise ValueError(said)
    by = _choice.column(results.runs, by)
    x = _varied(results, by) if x is None else _choice.column(results.runs, x)
    with canvas(len(metrics), columns=len(metrics), style=style, title=title) as (figure, panels):
        for axes, metric, name in zip(panels, metrics, names, strict=True):
            _panel(axes, results, metric, x, by, log, name, xlabel)
        doubt(figure, _doubts(results, metrics), style)
    return figure


def _varied(results: Results, by: str) -> str | None:
    """Return the only key that varies in addition to the one with separate lines."""
    found: dict[str, set[Any]] = {}
    for run in results.runs:
        for key, value in run.point.items():
            if key != by:
                found.setdefault(key, set()).add(value)
    keys = [key for key, values in found.items() if len(values) > 1]
    if len(keys) > 1:
        said = f"several keys vary: {', '.join(keys)}; name one as x"
        raise ValueError(said)
    return keys[0] if keys else None


def _panel(axes: Axes, results: Results, metric: str, x: str | None, by: str, log: str, ylabel: str, xlabel: str | None) -> None:
    groups, unit = dots(results, metric, x, by)
    labels = labels_of(results, by)
    groups = {labels.get(name, name): of for name, of in groups.items()}
    shown = [abs(dot.mean) for of in groups.values() for dot in of if math.isfinite(dot.mean)]
    per, suffix = scale(unit, max(shown, default=0.0))
    axes.set_ylabel(f"{ylabel} ({suffix})" if suffix else ylabel)
    if x is None:
        _bars(axes, groups, per)
        axes.set_xlabel(xlabel or "")
    else:
        lines(axes, groups, per, x, xlabel=xlabel)
        axes.legend(frameon=False)
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    else:
        # The interval of a mean may go below what the metric can be.
        least = min((dot.mean for of in groups.values() for dot in of if math.isfinite(dot.mean)), default=0.0)
        axes.set_ylim(bottom=0.0 if least >= 0 else axes.get_ylim()[0])


def _bars(axes: Axes, groups: dict[Any, list[Dot]], per: float) -> None:
    for place, (_, (dot, *_rest)) in enumerate(groups.items()):
        margin = None if dot.margin is None else dot.margin / per
        axes.bar(place, dot.mean / per, yerr=margin, color=COLOURS[place % len(COLOURS)], capsize=3)
    axes.set_xticks(range(len(groups)), [str(name) for name in groups], rotation=20 if len(groups) > 3 else 0)  # noqa: PLR2004
    axes.grid(visible=False, axis="x")


def _doubts(results: Results, metrics: list[str]) -> str:
    """Return the caveats about the numbers, in a line or two."""
    said = []
    for metric in metrics:
        missing = sum(1 for value in results.metric(metric) if value is None)
        if missing:
            said.append(f"{missing} of {len(results.runs)} runs have no {metric}: means are of the others")
    return "\n".join([*said, *warned(results)])


def main(options: dict[str, Any]) -> int:
    """`narrows plot`, with options as `args/python.rs` of the command defines them."""
    return ended(lambda: _drawn(SimpleNamespace(**options)))


def _drawn(args: SimpleNamespace) -> int:
    path = Path(args.out)
    _may_replace(path)
    matplotlib()
    chosen = _chosen(args.results, args.only)
    shared = {"style": args.style, "title": args.title, "xlabel": args.xlabel}
    if args.front:
        figure = _front(args, chosen, shared)
    elif args.baseline or args.not_in_baseline:
        said = "--baseline and --not-in-baseline go with --front"
        raise ValueError(said)
    else:
        given = {"y": args.y or None, "x": args.x, "by": args.by, "log": args.log or "", "ylabel": args.ylabel or None}
        figure = plot(chosen, **given, papers=args.papers, **shared)
    save(figure, path)
    print(f"wrote {args.out}")
    return 0


def _front(args: SimpleNamespace, chosen: Results, shared: dict[str, Any]) -> Figure:
    if args.y or args.x or args.by != "scheme" or args.log or args.papers:
        said = "--y, --x, --by, --log and --papers do not go with --front"
        raise ValueError(said)
    if len(args.ylabel) > 1:
        said = "--front has one y axis: give --ylabel once"
        raise ValueError(said)
    ylabel = args.ylabel[0] if args.ylabel else None
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
        return fronts.pareto_front(chosen, baseline=args.baseline, not_in_baseline=args.not_in_baseline, ylabel=ylabel, **shared)


def _chosen(directory: str, only: list[str]) -> Results:
    """Open results, and select runs by values."""
    wanted: dict[str, list[str]] = {}
    for key, text in map(pair, only):
        wanted.setdefault(key, []).append(text)
    results = Results(directory)
    return results.subset(_choice.chosen(results.runs, wanted))


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure. An existing file is replaced, atomically, only if `save` wrote it and it was not edited since.

    The file's name ends in .pdf, .svg or .png.

    Raises `FileExistsError` for another file, and `ValueError` for another ending.
    """
    path = Path(path)
    _may_replace(path)
    mpl = matplotlib()
    partial = path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")
    try:
        # Letters stay letters, and the same figure makes the same file: no date is in it.
        undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix, {})
        with mpl.rc_context({"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "narrows"}):
            figure.savefig(partial, dpi=200, metadata=undated)
        with partial.open("ab") as file:
            file.write(_seal(path.suffix, partial.read_bytes()))
        _may_replace(path)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _seal(suffix: str, content: bytes) -> bytes:
    """Return the last line of a figure: a comment with the hash of the content before it, which identifies the file."""
    before, after = SEALS[suffix]
    return f"\n{before}narrows plot, SHA-256 {hashlib.sha256(content).hexdigest()}{after}\n".encode()


def _may_replace(path: Path) -> None:
    """Raise for an unknown ending, and for an existing file that `save` did not write or that was edited since."""
    if path.suffix not in SEALS:
        what = f"`{path}`: there are no figures that end in `{path.suffix}`" if path.suffix else f"`{path}` has no ending"
        raise _given.wrong(what, f"expected a name that ends in {', '.join(SEALS)}")
    if not path.exists() and not path.is_symlink():
        return
    content = path.read_bytes() if path.is_file() else b"?"
    size = len(_seal(path.suffix, b""))
    if content and _seal(path.suffix, content[:-size]) != content[-size:]:
        said = f"`{path}` is no figure that Narrows wrote and nobody edited, so it is not replaced; choose another name, or move it"
        raise FileExistsError(said)
