"""Pareto fronts: the scores of schemes for two kinds of flows, and the schemes that no other one dominates."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from narrows import _renamed
from narrows._canvas import COLOURS, STYLES, canvas, doubt, matplotlib, warned
from narrows.results import Results

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

#: Offsets of a label from its dot in points, with its alignment; the first free one is used.
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


#: Factor by which the axes extend beyond the outermost schemes.
MARGIN = 1.3


@dataclass(frozen=True)
class Place:
    """A scheme with its two scores; less is better."""

    label: str
    x: float
    y: float


def places(
    results: Results,
    *,
    x: str = "intra",
    y: str = "inter",
    baseline: str | Path | None = None,
    metrics: Iterable[str] = (),
    not_in_baseline: Iterable[str] = (),
) -> list[Place]:
    """Return each scheme's scores over the metrics of two kinds of flows.

    `x` and `y` are the first words of names of size bins or classes. `baseline`, `metrics` and `not_in_baseline` are as in
    `Results.score`.

    Raises `ValueError` if a kind of flows has no metric, or without a score.
    """
    scored = results._scored(baseline, metrics, not_in_baseline)
    cells: list[str] = scored["reference"]["cells"]
    kinds = {}
    for kind in (x, y):
        kinds[kind] = [place for place, cell in enumerate(cells) if re.search(rf"\b{re.escape(kind)}(_|\b)", cell)]
        if not kinds[kind]:
            said = f"no cell is of flows `{kind}`; there are {', '.join(cells)}"
            raise ValueError(said)

    def g(score: dict[str, Any], kind: str) -> float:
        logs = [math.log(ratios[place]) for _, ratios in score["ratios"] for place in kinds[kind]]
        return math.exp(sum(logs) / len(logs))

    return [Place(score["label"], g(score, x), g(score, y)) for score in scored["scores"]]


def unbeaten(all_of_them: Sequence[Place]) -> list[Place]:
    """Return the places that no other one dominates, in order of x."""

    def beats(a: Place, b: Place) -> bool:
        return a.x <= b.x and a.y <= b.y and (a.x < b.x or a.y < b.y)

    return sorted((place for place in all_of_them if not any(beats(other, place) for other in all_of_them)), key=lambda it: it.x)


@_renamed.arguments
def pareto_front(
    results: Results | str | Path,
    *,
    x: str = "intra",
    y: str = "inter",
    baseline: str | Path | None = None,
    metrics: Iterable[str] = (),
    not_in_baseline: Iterable[str] = (),
    style: str = "screen",
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Figure:
    """Draw the schemes by two scores, and the Pareto front: the schemes that no other one dominates.

    A score is the geometric mean, over the metrics of one kind of flows, of the ratio to the best scheme of each metric, as in
    `Results.score`; less is better. `x` and `y` are the first words of names of size bins or classes: by default, intra flows
    are on the x axis and inter flows on the y axis. Both axes are logarithmic. `baseline`, `metrics` and `not_in_baseline` are
    as in `Results.score`, and `style` is as in `plot`.

    Raises `ValueError` if a kind of flows has no metric, or without a score.
    """
    matplotlib()
    results = results if isinstance(results, Results) else Results(results)
    found = places(results, x=x, y=y, baseline=baseline, metrics=metrics, not_in_baseline=not_in_baseline)
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
    """Draw the boundary of the dominated region, to the ends of the axes."""
    xs, ys = [place.x for place in best], [place.y for place in best]
    line = ([xs[0], *xs, axes.get_xlim()[1]], [axes.get_ylim()[1], *ys, ys[-1]])
    axes.plot(*line, drawstyle="steps-post", color=COLOURS[0], alpha=0.5, zorder=1)


def _ticks(axes: Axes) -> None:
    """Label axes with plain numbers, also if they span less than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def _distance(box: Bbox, dot: tuple[float, ...]) -> float:
    """Distance from a dot to the middle line of a label."""
    x, y = dot
    return math.hypot(max(box.x0 - x, x - box.x1, 0.0), y - (box.y0 + box.y1) / 2)


def _label(figure: Figure, axes: Axes, found: Sequence[Place], best: Sequence[Place], size: float) -> None:
    """Write each scheme's label next to its dot, if possible without overlap and farther from all other dots."""
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
