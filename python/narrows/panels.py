"""Panels of a paper's figure, as `[[paper.plot]]` defines them, from runs to axes."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from narrows import _canvas, _choice, _means, samples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from narrows.results import Results, Run
    from narrows.samples import Samples

#: A panel as in a file, with every key.
Spec = dict[str, Any]

#: Labels of the paper's values, drawn hollow or dashed.
STATED, RELATIVE = "paper", "paper's ratio to ours"
INK = "#303030"
#: Group ID of these marks.
MARK = "stated"


@dataclass
class Panel:
    """A panel with its runs."""

    results: Results
    spec: Spec
    #: Number of each row's colour, the same in all panels of a figure.
    looks: dict[str, int] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    #: Position of each row's bar, if there is one place.
    alone: dict[str, float] = field(default_factory=dict)
    #: Minimum of the drawn means.
    least: float = 0.0

    def of(self, change: dict[str, Any], title: str) -> Panel:
        """Return the panel with some keys changed, and with a title of its own."""
        own = self.spec["title"]
        return Panel(self.results, {**self.spec, "each": None, **change, "title": f"{own}: {title}" if own else title}, self.looks)

    def look(self, label: str) -> int:
        """Return the number of the colour of a row."""
        return self.looks.setdefault(label, len(self.looks))

    @functools.cached_property
    def runs(self) -> list[Run]:
        """The runs of the panel."""
        only, schemes = self.spec["only"], self.spec["schemes"]
        of_schemes = [run for run in self.results.runs if schemes is None or self.spec["by"] is None or run.scheme in schemes]
        return [run for run in of_schemes if all(_is(value_at(run, key), value) for key, value in only.items())]

    @functools.cached_property
    def labels(self) -> dict[str, str]:
        """Labels of the schemes, or of the values of `by`."""
        if self.spec["by"] is not None:
            return {name: name for name in map(self.key_of, self.results.runs)}
        labels = _canvas.labels_of(self.results, "scheme")
        return {run.scheme: labels.get(run.scheme, run.scheme) for run in self.results.runs}

    def key_of(self, run: Run) -> str:
        """Return the line that a run belongs to: its scheme, or its value of `by`."""
        by = self.spec["by"]
        if by is None:
            return run.scheme
        key, _, unit = by.rpartition("_")
        value = value_at(run, by)
        return f"{key} = {quantity(value, unit)}" if unit in _canvas.UNITS else f"{by} = {value}"

    @property
    def schemes(self) -> list[str]:
        """The shown schemes, or values of `by`, in their order, without schemes that did not run."""
        ran = list(dict.fromkeys(map(self.key_of, self.runs)))
        asked = self.spec["schemes"]
        return ran if asked is None or self.spec["by"] is not None else [scheme for scheme in asked if scheme in ran]

    def draw(self, axes: Axes) -> None:
        """Draw the panel."""
        if self.spec["title"] is not None:
            axes.set_title(self.spec["title"], fontsize="medium")
        {"bars": self.bars, "lines": self.lines, "cdf": self.cdf, "time": self.time}[self.spec["kind"]](axes)
        # Without anything over zero an axis stays linear.
        log = "".join(axis for axis in self.spec["log"] or "" if math.isfinite(getattr(axes.dataLim, f"minpos{axis}")))
        if "x" in log:
            axes.set_xscale("log")
            _plainly(axes.xaxis, self.places if self.spec["kind"] == "lines" and self.spec["series"] else [])
        if "y" in log:
            axes.set_yscale("log")
            _plainly(axes.yaxis, [])
        elif self.least >= 0.0:
            self.begin_at_zero(axes)
        if self.spec["xlabel"] is not None:
            axes.set_xlabel(self.spec["xlabel"])

    def begin_at_zero(self, axes: Axes) -> None:
        """Begin the y axis at zero, except for lines far above it. Values are not negative, so intervals are cut at zero."""
        low, high = axes.get_ylim()
        if self.spec["kind"] != "lines" or low < high / 2:
            axes.set_ylim(0.0, max(high, 1.05 * axes.dataLim.y1))

    # Means over seeds.

    @functools.cached_property
    def places(self) -> list[Any]:
        """The places on the x axis."""
        if isinstance(self.spec["y"], list) or self.spec["series"]:
            return list(self.spec["places"])
        if self.spec["x"] is None:
            return [None]
        found = dict.fromkeys(value_at(run, self.spec["x"]) for run in self.runs)
        return sorted(found, key=lambda value: (isinstance(value, str), value if not isinstance(value, str) else 0))

    @functools.cached_property
    def rows(self) -> dict[str, list[str | None]]:
        """Rows, each of one colour, with the scheme at each place."""
        ran = set(self.schemes)
        if self.spec["series"]:
            made = {it["label"]: [name if name in ran else None for name in it["schemes"]] for it in self.spec["series"]}
            return {label: schemes for label, schemes in made.items() if any(schemes)}
        return {self.labels[scheme]: [scheme] * len(self.places) for scheme in self.schemes}

    def expression(self, place: int) -> str:
        """Return the expression that is drawn at a place."""
        y = self.spec["y"]
        return str(y[place] if isinstance(y, list) else y)

    def values(self, expression: str) -> tuple[dict[tuple[str, Any, int], float | None], str]:
        """Return the values of an expression by scheme, place and seed, and their unit."""
        values, _, unit = self.results.subset(self.runs).measured(expression)
        made: dict[tuple[str, Any, int], float | None] = {}
        x = self.spec["x"]
        for run, value in zip(self.runs, values, strict=True):
            at = (self.key_of(run), None if x is None else value_at(run, x), run.seed)
            if at in made:
                varied = [key for key in run.point if key not in {x, self.spec["by"]}] or ["scheme"]
                said = f"the runs differ in {', '.join(varied)}, too: give `x`, `by`, `each` or a value in `only` of [[paper.plot]]"
                raise ValueError(said)
            made[at] = value
        return made, unit

    def means(self, of: str | None = None) -> tuple[dict[str, list[_means.Dot]], str]:
        """Return the means over seeds by row and place, and their unit."""
        made: dict[str, list[_means.Dot]] = {label: [] for label in self.rows}
        unit = ""
        over = self.spec["over"]
        missing: dict[str, tuple[int, int]] = {}
        known: dict[str, tuple[dict[tuple[str, Any, int], float | None], str]] = {}
        for place, at in enumerate(self.places):
            expression = of or self.expression(place)
            if expression not in known:
                known[expression] = self.values(expression)
            values, found_unit = known[expression]
            unit = unit or found_unit
            for label, schemes in self.rows.items():
                scheme = schemes[place]
                if scheme is None:
                    continue
                x = None if self.spec["x"] is None else at
                seeds = [seed for name, key, seed in values if (name, key) == (scheme, x)]
                found = [_over(values[scheme, x, seed], 1.0 if over is None else values.get((over, x, seed))) for seed in seeds]
                if not found:
                    continue
                dot = _means.means({at: found})[0]
                made[label].append(dot)
                lacks, all_of_it = missing.get(expression, (0, 0))
                missing[expression] = (lacks + dot.missing, all_of_it + len(found))
        lack = [(what, lacks, count) for what, (lacks, count) in missing.items() if lacks]
        for what, lacks, count in lack:
            rest = ": means are of the others" if lacks < count else ""
            self.doubts.append(f"{lacks} of {count} runs have no {what}{rest}")
        return made, "" if over is not None else unit

    def unit(self, unit: str, largest: float) -> tuple[float, str]:
        """Return the size of the axis's unit in the given unit, and its name."""
        asked = self.spec["unit"]
        if asked is None:
            return _canvas.scale(unit, largest)
        if asked == "%" and not unit:
            return 0.01, "%"
        if not unit and not largest:
            # Nothing was measured, and the doubts say so.
            return 1.0, str(asked)
        found = [per for per, name in _canvas.UNITS.get(unit, ()) if name == asked]
        if not found:
            known = [name for _, name in _canvas.UNITS.get(unit, ((1.0, "%"),))]
            said = f"[[paper.plot]]: the unit `{asked}` is none of {', '.join(known)}"
            raise ValueError(said)
        return found[0], str(asked)

    def name_y(self, axes: Axes, otherwise: str, suffix: str) -> None:
        """Label the y axis, with its unit."""
        name = self.spec["ylabel"] or otherwise
        axes.set_ylabel(f"{name} ({suffix})" if suffix else name)

    def scaled(self, axes: Axes, groups: dict[str, list[_means.Dot]], unit: str) -> float:
        """Label the y axis, and return the size of its unit in that of the means."""
        shown = [abs(dot.mean) for of in groups.values() for dot in of if math.isfinite(dot.mean)]
        per, suffix = self.unit(unit, max(shown, default=0.0))
        self.least = min((dot.mean for of in groups.values() for dot in of if math.isfinite(dot.mean)), default=0.0)
        y = self.spec["y"]
        self.name_y(axes, ", ".join(y) if isinstance(y, list) else y, suffix)
        return per

    def bars(self, axes: Axes) -> None:
        """Draw bars: a group per place, a colour per row."""
        groups, unit = self.means()
        per = self.scaled(axes, groups, unit)
        ends = self.means(self.spec["whiskers"])[0] if self.spec["whiskers"] else {}
        wide = 0.8 / max(len(groups), 1)
        present = {at: [label for label, of in groups.items() if any(dot.x == at for dot in of)] for at in self.places}
        spots: dict[tuple[str, Any], float] = {}
        for label, of in groups.items():
            colour = _canvas.COLOURS[self.look(label) % len(_canvas.COLOURS)]
            for dot in of:
                there = present[dot.x]
                spots[label, dot.x] = self.places.index(dot.x) + (there.index(label) - (len(there) - 1) / 2) * wide
            across = [spots[label, dot.x] for dot in of]
            margins = [0.0 if dot.margin is None else dot.margin / per for dot in of]
            axes.bar(
                across,
                [dot.mean / per for dot in of],
                width=0.9 * wide,
                yerr=margins if any(margins) else None,
                label=label,
                color=colour,
                capsize=min(3.0, 20 * wide),
                error_kw={"linewidth": 0.8},
            )
            tops = {dot.x: dot.mean / per for dot in ends.get(label, ())}
            low = [dot.mean / per for dot in of if dot.x in tops]
            high = [tops[dot.x] for dot in of if dot.x in tops]
            axes.vlines([spots[label, dot.x] for dot in of if dot.x in tops], low, high, color=INK, linewidth=0.8)
            axes.plot([spots[label, dot.x] for dot in of if dot.x in tops], high, "_", color=INK, markersize=max(3.0, 30 * wide))
        axes.grid(visible=False, axis="x")
        self.alone = {label: spot for (label, at), spot in spots.items() if at is None}
        self.name_places(axes)
        self.marks(axes, groups, unit, per, lambda label, at: spots.get((label, at)))

    def name_places(self, axes: Axes) -> None:
        """Write the names of the places under the x axis."""
        x = self.spec["x"]
        if self.places == [None]:
            axes.set_xticks([])
            return
        names = self.spec["places"] or self.places
        key, _, unit = (x or "").rpartition("_")
        if unit in _canvas.UNITS and not self.spec["places"]:
            names = [quantity(value, unit) for value in self.places]
        _write_under(axes, range(len(names)), [str(name) for name in names])
        if x is not None:
            axes.set_xlabel(key if unit in _canvas.UNITS else x)

    def name_bars(self, axes: Axes) -> None:
        """Label each bar on the x axis, instead of in a legend."""
        _write_under(axes, list(self.alone.values()), list(self.alone))

    def lines(self, axes: Axes) -> None:
        """Draw a line per row."""
        groups, unit = self.means()
        per = self.scaled(axes, groups, unit)
        named = bool(self.spec["places"]) and not self.spec["series"] and not isinstance(self.spec["y"], list)
        across = 1.0
        if named:
            # Places of a name each, though their values are numbers.
            names = dict(zip(self.places, map(str, self.spec["places"]), strict=True))
            shown = {label: [_renamed(dot, names[dot.x]) for dot in of] for label, of in groups.items()}
        else:
            shown = groups
        across = _canvas.lines(axes, shown, per, self.spec["x"] or "", {label: self.look(label) for label in shown})
        numbers = not named and all(isinstance(place, (int, float)) for place in self.places)
        spot = (lambda _, at: at / across) if numbers else (lambda _, at: self.places.index(at))
        self.marks(axes, groups, unit, per, spot)

    def marks(self, axes: Axes, groups: dict[str, list[_means.Dot]], unit: str, per: float, spot: Any) -> None:
        """Draw the paper's values, if anything was measured."""
        if not any(math.isfinite(dot.mean) for of in groups.values() for dot in of):
            return
        for mark in [*self.listed(), *self.spec["paper"]]:
            if mark["scheme"] is None:
                self.line(axes, mark, unit, per)
                continue
            if mark["scheme"] not in self.schemes:
                continue
            label, at = self.place_of(mark)
            across = spot(label, at)
            value = self.stated(mark["value"], "" if mark["of"] else unit)
            if mark["of"] is not None:
                ours = self.mean_of(groups, mark["of"], at)
                if ours is None:
                    continue
                value *= ours
            if across is not None:
                stated = mark["label"] or (STATED if mark["of"] is None else RELATIVE)
                sign: dict[str, Any] = {
                    "marker": "D" if mark["of"] is None else "o",
                    "linestyle": "none",
                    "markerfacecolor": "white",
                }
                # Beside lines the colour says of which one a value is stated; the legend has it in ink.
                is_lines = self.spec["kind"] == "lines"
                ink = _canvas.COLOURS[self.look(label) % len(_canvas.COLOURS)] if is_lines else INK
                drawn: dict[str, Any] = {**sign, "gid": MARK, "markersize": 5, "markeredgewidth": 1.1, "zorder": 5}
                axes.plot(across, value / per, markeredgecolor=ink, label="_" if is_lines else stated, **drawn)
                if is_lines:
                    axes.plot([], [], markeredgecolor=INK, label=stated, **drawn)

    def listed(self) -> Iterator[dict[str, Any]]:
        """Yield the paper's values that are listed by scheme."""
        for scheme, values in self.spec["values"].items():
            spots = [at for at, ran in zip(self.places, self.at_places(scheme), strict=True) if ran]
            if scheme in self.schemes and len(spots) != len(values):
                said = f"[[paper.plot]]: `values` has {len(values)} of `{scheme}`, which is at {len(spots)} places"
                raise ValueError(said)
            for at, value in zip(spots, values, strict=False):
                yield {"scheme": scheme, "at": at, "value": value, "of": None, "label": None}

    def at_places(self, scheme: str) -> list[bool]:
        """Return whether a scheme is drawn at each place."""
        return [any(schemes[place] == scheme for schemes in self.rows.values()) for place in range(len(self.places))]

    def line(self, axes: Axes, mark: dict[str, Any], unit: str, per: float) -> None:
        """Draw a value of the paper without a scheme as a line across the panel."""
        axes.axhline(
            self.stated(mark["value"], unit) / per,
            color=INK,
            linestyle="--",
            linewidth=1,
            label=mark["label"] or STATED,
            zorder=4,
            gid=MARK,
        )

    def place_of(self, mark: dict[str, Any]) -> tuple[str, Any]:
        """Return the row and the place of a mark."""
        scheme, at = mark["scheme"], mark["at"]
        spots = [
            (label, place)
            for label, schemes in self.rows.items()
            for place, name in zip(self.places, schemes, strict=True)
            if name == scheme and (at is None or _is(place, at))
        ]
        if len(spots) != 1:
            said = f"[[paper.plot]]: `{mark['value']}` of `{scheme}` is at {len(spots)} places; `at` names one of {self.places}"
            raise ValueError(said)
        return spots[0]

    def mean_of(self, groups: dict[str, list[_means.Dot]], scheme: str, at: Any) -> float | None:
        """Return the mean of a scheme at a place, or at the place where a series has it."""
        rows = [
            (label, place)
            for label, row in self.rows.items()
            for place, name in zip(self.places, row, strict=True)
            if name == scheme
        ]
        spots = [spot for spot in rows if spot[1] == at] or rows
        found = [dot.mean for label, place in spots[:1] for dot in groups[label] if dot.x == place]
        return found[0] if found and math.isfinite(found[0]) else None

    def stated(self, value: str, unit: str) -> float:
        """Return a value of a claim in the unit of tables."""
        values, reasons, found = self.results.measured(value)
        if values[0] is None or found != unit:
            said = f"[[paper.plot]]: the paper's value `{value}` {reasons[0] or 'has another unit than the axis'}"
            raise ValueError(said)
        return values[0]

    # Samples.

    def cdf(self, axes: Axes) -> None:
        """Draw a distribution per scheme, over all seeds together."""
        drawn: dict[str, list[float]] = {}
        unit = ""
        for scheme in self.schemes:
            values: list[float] = []
            for run in (run for run in self.runs if self.key_of(run) == scheme):
                found, unit = self.sampled(run)
                values.extend(value for _, found_values in found.values() for value in found_values)
            drawn[self.labels[scheme]] = sorted(values)
        if not any(drawn.values()):
            self.doubts.append(f"runs have nothing of {self.spec['y']}")
        per, suffix = self.unit(unit, max((values[-1] for values in drawn.values() if values), default=0.0))
        for label, values in drawn.items():
            shares = [(place + 1) / len(values) for place in range(len(values))]
            style = _canvas.STROKES[self.look(label) % len(_canvas.STROKES)]
            colour = _canvas.COLOURS[self.look(label) % len(_canvas.COLOURS)]
            axes.step(
                [value / per for value in values], shares, where="post", label=label, color=colour, linestyle=style, linewidth=1.2
            )
        for mark in self.spec["paper"]:
            value = self.stated(mark["value"], unit) / per
            if mark["at"] is None:
                axes.axvline(value, color=INK, linestyle="--", linewidth=1, label=STATED, gid=MARK)
            else:
                axes.plot(
                    value, mark["at"], "D", markersize=5, markerfacecolor="white", markeredgecolor=INK, zorder=5, label=STATED
                )
        axes.set_ylabel("CDF")
        name = self.spec["ylabel"] or self.spec["y"]
        axes.set_xlabel(f"{name} ({suffix})" if suffix else name)

    def time(self, axes: Axes) -> None:
        """Draw samples over time, of the first seed."""
        drawn: list[tuple[str, list[float], list[float]]] = []
        unit = ""
        for scheme in self.schemes:
            run = next(run for run in self.runs if self.key_of(run) == scheme)
            found, unit = self.sampled(run)
            for name, (times, values) in found.items():
                # What is of one class has one colour.
                own = name.rpartition(": ")[2]
                several = [own] if len(found) > 1 else []
                schemes = [self.labels[scheme]] if len(self.schemes) > 1 or not several else []
                drawn.append((", ".join([*schemes, *several]), times, values))
        if not drawn:
            self.doubts.append(f"runs have no samples of {self.spec['y']}")
        largest = max((value for _, _, values in drawn for value in values), default=0.0)
        per, suffix = self.unit(unit, largest)
        across, seconds = _canvas.scale("ns", max((times[-1] for _, times, _ in drawn if len(times)), default=0.0))
        rows = list(dict.fromkeys(label for label, *_ in drawn))
        # The title of a panel says what its only line is.
        named = set(rows) if len(rows) == 1 and self.spec["title"] else set()
        for label, times, values in drawn:
            axes.plot(
                [time / across for time in times],
                [value / per for value in values],
                color=_canvas.COLOURS[rows.index(label) % len(_canvas.COLOURS)],
                linewidth=0.9,
                label=f"_{label}" if label in named or len(rows) > samples.NAMED_FLOWS else label,
            )
            named.add(label)
        for mark in self.spec["paper"]:
            self.line(axes, mark, unit, per)
        self.name_y(axes, self.spec["y"], suffix)
        axes.set_xlabel(f"time ({seconds})")

    def sampled(self, run: Run) -> tuple[Samples, str]:
        """Return samples of a run by name of flow, port or switch, and their unit."""
        made, unit = samples.of(run, self.spec["y"], lambda time: self.stated(time, "ns"))
        if self.spec["window"] is not None:
            window = self.stated(self.spec["window"], "ns")
            made = {name: samples.averaged(times, values, window) for name, (times, values) in made.items()}
        if self.spec["per"] is None:
            return made, unit
        rate = self.stated(self.spec["per"], "bps")
        return {name: (times, [8e9 * value / rate for value in values]) for name, (times, values) in made.items()}, "ns"


def _is(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list) else bool(value == wanted)


def _over(value: float | None, other: float | None) -> float | None:
    return None if value is None or not other else value / other


def _renamed(dot: _means.Dot, name: str) -> _means.Dot:
    return _means.Dot(name, dot.mean, dot.margin, dot.count, dot.missing)


def quantity(value: float, unit: str) -> str:
    """Write a value with the unit that fits."""
    per, suffix = _canvas.scale(unit, abs(value))
    return f"{value / per:g} {suffix}"


def value_at(run: Run, key: str) -> Any:
    """Return the value of a column of the points of a run. Raises `ScenarioError` for one that the run lacks."""
    if key not in run.keys:
        raise _choice.unknown_key([run], key, list(run.keys))
    return run.keys[key]


#: Maximum number of letters of horizontal labels under an axis.
ROOM = 35


def _write_under(axes: Axes, spots: Sequence[float], names: list[str]) -> None:
    """Label the x axis, with rotated labels if they need room."""
    axes.set_xticks(spots, names)
    if len(names) * max(map(len, names), default=0) > ROOM:
        axes.tick_params(axis="x", rotation=25)
        for text in axes.get_xticklabels():
            text.set_horizontalalignment("right")
            text.set_rotation_mode("anchor")


def _plainly(axis: Axis, places: list[Any]) -> None:
    """Number a logarithmic axis as 1, 10, 100, or at few places as these are."""
    from matplotlib import ticker

    if places and len(places) <= _canvas.FEW:
        axis.set_major_locator(ticker.FixedLocator(places))
        axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axis.set_minor_formatter(ticker.NullFormatter())
        return
    low, high = axis.get_view_interval()
    wide = high / low > 10**2 if low > 0 else True
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.FuncFormatter(lambda value, _: "" if wide or f"{value:e}"[0] not in "25" else f"{value:g}"))
