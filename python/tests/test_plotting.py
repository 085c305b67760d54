"""Figures show the means over seeds."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

import narrows as nw
from narrows import plotting

if TYPE_CHECKING:
    from pathlib import Path


def test_dots_are_means_with_students_margin(results: nw.Results) -> None:
    of, unit = plotting.dots(results, "p99(fct)", "load", "scheme")
    assert unit == "ns"
    assert set(of) == {"dctcp", "cubic"}
    assert [dot.x for dot in of["dctcp"]] == [0.2, 0.4]
    values = [run.metric("p99(fct)") for run in results.select(scheme="dctcp", load=0.2)]
    dot = of["dctcp"][0]
    assert dot.mean == pytest.approx(statistics.fmean(values))
    # Of two degrees of freedom.
    assert dot.margin == pytest.approx(4.303 * statistics.stdev(values) / math.sqrt(3))


def test_a_mean_is_over_seeds_alone(results: nw.Results) -> None:
    with pytest.raises(ValueError, match="the runs differ in"):
        plotting.dots(results, "p99(fct)", None, "scheme")
    with pytest.raises(ValueError, match="the runs differ in their scheme"):
        plotting.dots(results, "p99(fct)", "load", "load")
    with pytest.raises(ValueError, match="no run has a value"):
        plotting.dots(results, "p99(inter.fct)", "load", "scheme")


def test_a_figure_has_its_units(results: nw.Results) -> None:
    figure = nw.plot(results, y=["p99(fct)", "p99(slowdown)"], log="y")
    left, right = figure.axes
    assert left.get_ylabel() in {"p99(fct) (ms)", "p99(fct) (µs)", "p99(fct) (s)"}
    assert (right.get_ylabel(), right.get_xlabel(), right.get_yscale()) == ("p99(slowdown)", "traffic.0.load", "log")
    legend, drawn = right.get_legend(), right.containers[0]
    assert legend is not None
    assert isinstance(drawn, ErrorbarContainer)
    assert [text.get_text() for text in legend.get_texts()] == ["DCTCP", "Cubic"]
    line = drawn.lines[0]
    assert line is not None
    assert np.asarray(line.get_ydata())[0] == pytest.approx(
        plotting.dots(results, "p99(slowdown)", "load", "scheme")[0]["dctcp"][0].mean
    )


def test_runs_of_several_values_are_chosen(results: nw.Results) -> None:
    loads = list(dict.fromkeys(run.point["traffic.0.load"] for run in results))
    assert len(loads) > 1
    chosen = plotting._chosen(str(results.directory), [f"load={100 * loads[0]:g}%", f"load={loads[1]}", "scheme=dctcp"])
    assert {run.point["traffic.0.load"] for run in chosen} == set(loads[:2])
    assert {run.scheme for run in chosen} == {"dctcp"}
    with pytest.raises(ValueError, match="no run has load=1%"):
        plotting._chosen(str(results.directory), ["load=1%"])


def test_axes_have_the_names_that_are_given(results: nw.Results) -> None:
    names = ["tail of completion times", "tail of slowdowns"]
    left, right = nw.plot(results, y=["p99(fct)", "p99(slowdown)"], xlabel="load of long links", ylabel=names).axes
    assert left.get_ylabel().startswith("tail of completion times (")
    assert (right.get_ylabel(), right.get_xlabel()) == ("tail of slowdowns", "load of long links")
    with pytest.raises(ValueError, match="expected as many ylabels as metrics, 2, and not 1"):
        nw.plot(results, y=["p99(fct)", "p99(slowdown)"], ylabel="one")


def test_an_axis_of_what_cannot_be_negative_begins_at_zero(results: nw.Results) -> None:
    (axes,) = nw.plot(results, y="p99(slowdown)").axes
    assert axes.get_ylim()[0] == 0.0


def test_without_points_there_are_bars(small: nw.Scenario, tmp_path: object) -> None:
    small.grid = None
    figure = nw.plot(nw.run(small, f"{tmp_path}/out", seeds=2, progress=False), y="goodput", style="paper")
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["DCTCP", "Cubic"]


def test_warnings_stand_under_the_figure(small: nw.Scenario, tmp_path: object) -> None:
    cut = nw.run(small, f"{tmp_path}/out", set={"stop": "5ms"}, progress=False)
    assert "runs have warnings" in nw.plot(cut, y="goodput").get_supxlabel()


def test_runs_without_a_value_are_told(results: nw.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    one = results.select(load=0.2)
    assert len(one) == 6
    figure = nw.plot(one, y="p99(slowdown)")
    assert "have no" not in figure.get_supxlabel()
    monkeypatch.setattr(one, "metric", lambda _: [None, *[1.0] * 5])
    assert plotting._doubts(one, ["goodput"]).startswith("1 of 6 runs have no goodput")


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".png"])
def test_the_same_figure_makes_the_same_file(
    results: nw.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    files = [tmp_path / f"{time}{suffix}" for time in (1_000_000_000, 1_100_000_000)]
    for file in files:
        # What would be written as the date.
        monkeypatch.setenv("SOURCE_DATE_EPOCH", file.stem)
        nw.save(nw.plot(results, x="load", y="p99(fct)"), file)
    assert files[0].read_bytes() == files[1].read_bytes()
