"""Parts that all figures share: styles, units, the canvas, lines over an axis, and the notes under them.

`plotting`, `fronts`, `figures` and `panels` draw on it.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from narrows import _given

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from narrows._means import Dot
    from narrows.results import Results

#: Colours for readers with colour-vision deficiency (Okabe and Ito), with markers and strokes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = "osD^vP*X"
STROKES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (5, 5)))

#: Width and height of a panel in inches, and font size in points: a column of a paper, a screen.
STYLES = {"paper": (3.3, 2.3, 8.0), "screen": (5.5, 3.8, 10.0)}

#: Units of axes for each unit of a column, the largest first, with their size in the column's unit.
UNITS = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "bps": ((1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s")),
}

#: Points between the marks of two lines at the same place of the x axis.
SHIFT = 2.5
#: Maximum distance, in points, between the first and the last of them.
WIDEST = 10.0

#: Maximum number of places on an x axis with a tick each.
FEW = 8


def matplotlib() -> ModuleType:
    """Returns Matplotlib. Raises `ModuleNotFoundError` if it is not installed."""
    try:
        import matplotlib as found
    except ModuleNotFoundError:
        raise _given.needs("Matplotlib", "a figure") from None
    return found


@contextmanager
def canvas(count: int, *, columns: int, style: str, title: str | None) -> Iterator[tuple[Figure, list[Axes]]]:
    """Yields an empty figure of `count` panels, and the panels, within a context that sets the style.

    Raises `ValueError` for an unknown style.
    """
    if style not in STYLES:
        raise _given.unknown(f"there is no style `{style}`", style, STYLES)
    mpl = matplotlib()
    from narrows._figure import Shown

    width, height, size = STYLES[style]
    rows = math.ceil(count / columns)
    with mpl.rc_context({"font.size": size, "axes.grid": True, "grid.alpha": 0.3}):
        figure = Shown(figsize=(width * columns, height * rows), layout="constrained")
        panels = [figure.add_subplot(rows, columns, place + 1) for place in range(count)]
        if title is not None:
            figure.suptitle(title)
        yield figure, panels


def doubt(figure: Figure, said: str, style: str) -> None:
    """Writes a warning about the numbers of a figure under it."""
    if said:
        figure.supxlabel(said, fontsize=0.8 * STYLES[style][2], color="#B00020", wrap=True)


def scale(unit: str, largest: float) -> tuple[float, str]:
    """Returns the largest unit that does not exceed the largest value: its size in `unit`, and its name."""
    units = UNITS.get(unit, ((1.0, unit),))
    return next(((per, name) for per, name in units if largest >= per), units[-1])


def lines(
    axes: Axes,
    groups: dict[Any, list[Dot]],
    per: float,
    x: str,
    looks: dict[str, int] | None = None,
    xlabel: str | None = None,
) -> float:
    """Draws a line per group over a key of the points, and returns the size of the axis's unit in the key's.

    `looks` has the number of each group's colour, marker and stroke; by default they are those of its place.
    """
    from matplotlib.transforms import ScaledTranslation

    values = [dot.x for of in groups.values() for dot in of]
    numbers = all(isinstance(value, (int, float)) for value in values)
    name, _, unit = x.rpartition("_")
    places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    across, suffix = (1.0, "")
    if numbers and unit in UNITS:
        across, suffix = scale(unit, max(values))
    for order, (label, of) in enumerate(groups.items()):
        place = order if looks is None else looks[label]
        drawn = axes.errorbar(
            [dot.x / across if numbers else places[dot.x] for dot in of],
            [dot.mean / per for dot in of],
            yerr=[0.0 if dot.margin is None else dot.margin / per for dot in of],
            label=str(label),
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            linestyle=STROKES[place % len(STROKES)],
            markersize=4,
            capsize=2,
            linewidth=1.2,
        )
        # Side by side, so that intervals do not hide each other. The values are what they were.
        points = min(SHIFT, WIDEST / len(groups)) * (order - (len(groups) - 1) / 2)
        aside = ScaledTranslation(points / 72, 0.0, axes.figure.dpi_scale_trans)
        for artist in drawn.get_children():
            artist.set_transform(axes.transData + aside)
    if not numbers:
        axes.set_xticks(list(places.values()), [str(value) for value in places])
    elif len(places) <= FEW:
        axes.set_xticks([value / across for value in places], [f"{value / across:g}" for value in places])
    axes.set_xlabel(f"{xlabel or name} ({suffix})" if suffix else xlabel or x)
    return across


def warned(results: Results) -> list[str]:
    """Returns a line with the number of runs that have warnings, and the first warning; no line without warnings."""
    runs = [run for run in results.runs if run.summary["warnings"]]
    return [f"{len(runs)} of {len(results.runs)} runs have warnings: {runs[0].summary['warnings'][0]}"] if runs else []


def labels_of(results: Results, by: str) -> dict[Any, str]:
    """Returns the names of lines: the labels of schemes, if they are unique."""
    if by != "scheme":
        return {}
    labels = {run.scheme: run.label for run in results.runs}
    return labels if len(set(labels.values())) == len(labels) else {}
