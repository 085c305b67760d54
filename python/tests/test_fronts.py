"""Schemes at two kinds of flows, and which of them none beats at both."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import narrows as nw
from narrows import fronts, plotting
from narrows.fronts import Place

if TYPE_CHECKING:
    from pathlib import Path

CELLS = ["p50(intra.slowdown)", "p99(intra.slowdown)", "p50(all.slowdown)"]


def test_the_front_has_what_none_beats() -> None:
    a, b, c, worse = Place("a", 1.0, 3.0), Place("b", 2.0, 2.0), Place("c", 3.0, 1.0), Place("worse", 2.0, 2.5)
    assert fronts.unbeaten([worse, c, b, a]) == [a, b, c]
    assert fronts.unbeaten([a, Place("same", 1.0, 3.0)]) == [a, Place("same", 1.0, 3.0)]


def test_places_are_geometric_means_of_the_scores_ratios(results: nw.Results) -> None:
    (dctcp, cubic) = sorted(fronts.places(results, y="all", metrics=CELLS), key=lambda it: it.label, reverse=True)
    assert (dctcp.label, cubic.label) == ("DCTCP", "Cubic")
    scores = {score["label"]: score for score in results.score(metrics=CELLS)}
    ratios = [ratio for _, of in scores["DCTCP"]["ratios"] for ratio in of[:2]]
    assert dctcp.x == pytest.approx(math.exp(sum(map(math.log, ratios)) / len(ratios)))
    with pytest.raises(ValueError, match="no cell is of flows `inter`; there are p50"):
        fronts.places(results, metrics=CELLS)


def test_a_figure_names_every_scheme(results: nw.Results) -> None:
    (axes,) = nw.pareto_front(results, y="all", metrics=CELLS).axes
    assert {text.get_text() for text in axes.texts} == {"DCTCP", "Cubic"}
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel().startswith("intra: times")


def test_some_of_the_runs_have_a_score_of_their_own(results: nw.Results) -> None:
    chosen = results.select(load=0.2)
    assert [[point for point, _ in score["ratios"]] for score in chosen.score(metrics=CELLS)] == [["traffic.0.load = 20%"]] * 2


def test_the_usual_cells_are_scored_and_what_has_none_is_said(results: nw.Results) -> None:
    with pytest.warns(UserWarning, match="`inter` is not scored"):
        assert {score["label"] for score in results.score()} == {"DCTCP", "Cubic"}


def test_the_command_draws_it(results: nw.Results, tmp_path: Path) -> None:
    file = str(tmp_path / "front.svg")
    words = [sys.executable, "-m", "narrows", "plot", str(results.directory), "-o", file]

    def plot(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*words, *more], capture_output=True, text=True, check=False, timeout=300)

    refused = plot("--front", "--y", "goodput")
    assert (refused.returncode, "do not go with --front" in refused.stderr) == (2, True), refused.stderr
    assert plot("--baseline", "x.toml").returncode == 2
    done = plot("--front")
    assert done.returncode == 2
    said = done.stderr
    assert "warning: `inter` is not scored" in said
    assert "no cell is of flows `inter`" in said


def test_a_label_is_nearest_to_its_own_dot() -> None:
    found = [
        Place(label, x, y) for label, x, y in [("one", 1.0, 1.0), ("two", 1.01, 0.93), ("three", 2.0, 3.0), ("four", 2.03, 3.2)]
    ]
    with plotting.canvas(1, columns=1, style="paper", title="") as (figure, (axes,)):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(0.5, 4.0)
        axes.set_ylim(0.5, 6.0)
        fronts._label(figure, axes, found, found[:1], 6.0)
        figure.canvas.draw()
        dots = {place.label: tuple(axes.transData.transform((place.x, place.y))) for place in found}
        for text in axes.texts:
            away = {label: fronts._distance(text.get_window_extent(), dot) for label, dot in dots.items()}
            assert min(away, key=lambda label: away[label]) == text.get_text()
