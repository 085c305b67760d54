"""Fronts: schemes by what they are for two kinds of flows, and which no other one beats at both."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrows._canvas import COLOURS, STYLES, canvas, doubt, matplotlib, warned
from narrows.results import Results

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

#: Where a label may stand, in points from its dot, and which of its sides is there: the first place that is free.
PLACES = (
    (5, 2, "left", "bottom"),
    (5, 0, "left", "center"),
    (-5, 0, "right", "center"),
    (0, 6, "center", "bottom"),
    (0, -6, "center", "top"),
    (6, 7, "left", "bottom"),
    (-6, -7, "right", "top"),
    (-6, 7, "right", "bottom"),
    (6, -7, "left", "top"),
    (6, 18, "left", "bottom"),
    (6, -18, "left", "top"),
    (-6, 18, "right", "bottom"),
    (-6, -18, "right", "top"),
)


#: How far the axes go beyond the outermost schemes.
MARGIN = 1.3


@dataclass(frozen=True)
class Place:
    """A scheme's two scores, of which less is better."""

    label: str
    x: float
    y: float


def places(
    results: Results,
    *,
    x: str = "intra",
    y: str = "inter",
    against: str | Path | None = None,
    cells: Iterable[str] = (),
    newcomers: Iterable[str] = (),
) -> list[Place]:
    """Return each scheme's scores over the cells of two kinds of flows.

    `x` and `y` are how the names of size bins or classes begin. `against`, `cells` and `newcomers` are as in `Results.score`.

    Raises `ValueError` where a kind of flows has no cell, or there is no score.
    """
    scored = results._scored(against, cells, newcomers)
    metrics: list[str] = scored["reference"]["cells"]
    kinds = {}
    for kind in (x, y):
        kinds[kind] = [place for place, metric in enumerate(metrics) if re.search(rf"\b{re.escape(kind)}(_|\b)", metric)]
        if not kinds[kind]:
            said = f"no cell is of flows `{kind}`; there are {', '.join(metrics)}"
            raise ValueError(said)

    def g(score: dict[str, Any], kind: str) -> float:
        logs = [math.log(ratios[place]) for _, ratios in score["ratios"] for place in kinds[kind]]
        return math.exp(sum(logs) / len(logs))

    return [Place(score["label"], g(score, x), g(score, y)) for score in scored["scores"]]


def unbeaten(all_of_them: Sequence[Place]) -> list[Place]:
    """Return those to which no other one is at least equal at both and better at one, by x."""

    def beats(a: Place, b: Place) -> bool:
        return a.x <= b.x and a.y <= b.y and (a.x < b.x or a.y < b.y)

    return sorted((place for place in all_of_them if not any(beats(other, place) for other in all_of_them)), key=lambda it: it.x)


def front(
    results: Results | str | Path,
    *,
    x: str = "intra",
    y: str = "inter",
    against: str | Path | None = None,
    cells: Iterable[str] = (),
    newcomers: Iterable[str] = (),
    style: str = "screen",
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Figure:
    """Draw the schemes by two scores, and the Pareto front: the schemes that no other one beats at both.

    A score is the geometric mean over cells of a kind of flows of the ratio to the best scheme of the cell, as in
    `Results.score`; less is better. `x` and `y` are how the names of size bins or classes begin: by default flows inside are on
    the x axis, flows across on the y axis. Both axes are logarithmic. `against`, `cells` and `newcomers` are as in `Results.score`,
    and `style` is as in `plot`.

    Raises `ValueError` where a kind of flows has no cell, or there is no score.
    """
    matplotlib()
    results = results if isinstance(results, Results) else Results(results)
    found = places(results, x=x, y=y, against=against, cells=cells, newcomers=newcomers)
    with canvas(1, columns=1, style=style, title=title) as (figure, (axes,)):
        best = unbeaten(found)
        axes.set_xscale("log")
        axes.set_yscale("log")
        for place in found:
            on = place in best
            axes.plot(place.x, place.y, "o" if on else "s", color=COLOURS[0] if on else "#808080", markersize=6 if on else 4)
        axes.set_xlim(min(place.x for place in found) / MARGIN, max(place.x for place in found) * MARGIN)
        axes.set_ylim(min(place.y for place in found) / MARGIN, max(place.y for place in found) * MARGIN)
        _step(axes, best)
        axes.set_xlabel(xlabel or f"{x}: times the best of each cell")
        axes.set_ylabel(ylabel or f"{y}: times the best of each cell")
        _ticks(axes)
        doubt(figure, "\n".join(warned(results)), style)
        _label(figure, axes, found, best, 0.8 * STYLES[style][2])
    return figure


def _step(axes: Axes, best: Sequence[Place]) -> None:
    """Draw a line that divides what some scheme beats from the rest, to the ends of the axes."""
    xs, ys = [place.x for place in best], [place.y for place in best]
    line = ([xs[0], *xs, axes.get_xlim()[1]], [axes.get_ylim()[1], *ys, ys[-1]])
    axes.plot(*line, drawstyle="steps-post", color=COLOURS[0], alpha=0.5, zorder=1)


def _ticks(axes: Axes) -> None:
    """Numbers that people read, on axes of less than a decade or more."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def _distance(box: Bbox, dot: tuple[float, ...]) -> float:
    """From a dot to the line of a label, at half its height."""
    x, y = dot
    return math.hypot(max(box.x0 - x, x - box.x1, 0.0), y - (box.y0 + box.y1) / 2)


def _label(figure: Figure, axes: Axes, found: Sequence[Place], best: Sequence[Place], size: float) -> None:
    """Write each scheme's label beside its dot, where it hides nothing and is nearer to no other dot if there is such a place."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    figure.draw(renderer)
    around = 4.0
    dots = {place: tuple(axes.transData.transform((place.x, place.y))) for place in found}
    taken = [Bbox.from_extents(x - around, y - around, x + around, y + around) for x, y in dots.values()]
    inside = axes.get_window_extent()
    for place in sorted(found, key=lambda it: (it not in best, it.y, it.x)):
        tried = []
        for across, up, horizontal, vertical in PLACES:
            text = axes.annotate(
                place.label,
                (place.x, place.y),
                (across, up),
                textcoords="offset points",
                ha=horizontal,
                va=vertical,
                fontsize=size,
            )
            # Lines of text may come as near as on a page, where most letters reach neither edge.
            box = text.get_window_extent(renderer)
            box = Bbox.from_extents(box.x0, box.y0 + 0.1 * box.height, box.x1, box.y1 - 0.1 * box.height)
            hidden = sum(box.overlaps(other) for other in taken)
            out = box.x0 < inside.x0 or box.x1 > inside.x1 or box.y0 < inside.y0 or box.y1 > inside.y1
            own = _distance(box, dots[place])
            nearer = sum(_distance(box, dot) <= own for other, dot in dots.items() if other != place)
            cost = 100 * out + 10 * hidden + nearer
            tried.append((cost, text, box))
            if cost == 0:
                break
        _, chosen, box = min(tried, key=lambda it: it[0])
        for _, text, _ in tried:
            if text is not chosen:
                text.remove()
        taken.append(box)
