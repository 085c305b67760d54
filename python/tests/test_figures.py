"""Figures of papers are drawn as their files say."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import narrows as nw
from narrows import _narrows, figures, plotting
from narrows.panels import RELATIVE, STATED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "papers"

#: A figure of a paper that runs in a second.
FIGURE = """
schema = 1
name = "small-fig1"
stop = "2s"

[topology]
kind = "dumbbell"
left = 4
right = 4
rate = "10Gbps"
delay = "100us"

[schemes.dctcp]
law = "dctcp"

[schemes.cubic]
law = "cubic"

[[traffic]]
kind = "poisson"
intra = "websearch"
load = "30%"
load_of = "host"
flows = 30

[monitor]
interval = "1ms"
ports = ["left>right"]
flows = "all"

[grid]
"traffic.0.load" = ["20%", "40%"]

[scale.quick]
note = "nothing"

[paper]
title = "A paper"
figure = "1"

"""

PANELS = """
[[paper.plot]]
kind = "bars"
y = "all.fct.mean"
x = "load"
ylabel = "completion time"
unit = "ms"
whiskers = "all.fct.p95"
values = { cubic = ["4ms", "5ms"] }
paper = [{ scheme = "dctcp", at = 0.4, value = "1 - 21%", of = "cubic" }]

[[paper.plot]]
kind = "lines"
y = ["all.fct.mean", "all.fct.p99"]
places = ["mean", "p99"]
only = { load = 0.4 }
over = "cubic"
ylabel = "over Cubic"

[[paper.plot]]
kind = "cdf"
y = "all.slowdown"
only = { load = 0.2 }
log = "x"

[[paper.plot]]
kind = "time"
y = 'queue("left>right")'
only = { load = 0.4 }
each = "scheme"
per = "10Gbps"
paper = [{ value = "50us", label = "threshold" }]

[[paper.plot]]
kind = "time"
y = 'rate("all", 0s, 1s)'
schemes = ["dctcp"]
each = "load"
window = "10ms"
"""


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("papers")
    (root / "small").mkdir()
    (root / "small/fig1.toml").write_text(FIGURE + PANELS, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def made(papers: Path, tmp_path_factory: pytest.TempPathFactory) -> nw.papers.Figure:
    (figure,) = nw.reproduce("small/fig1", papers=papers, out=tmp_path_factory.mktemp("out"), seeds=3)
    return figure


def labels(axes: Axes) -> list[str]:
    return [str(label) for label in axes.get_legend_handles_labels()[1]]


def ys(line: Any) -> list[float]:
    return [float(value) for value in np.asarray(line.get_ydata())]


def drawn(panels: str, made: nw.papers.Figure, root: Path) -> list[Axes]:
    """The axes of other panels of the same results."""
    (root / "small").mkdir()
    (root / "small/fig1.toml").write_text(FIGURE + panels, encoding="utf-8")
    return figures.draw(made.results, papers=root).axes


def test_means_stand_beside_what_the_paper_states(made: nw.papers.Figure) -> None:
    figure = made.plot()
    bars, over = figure.axes[:2]
    assert bars.get_ylabel() == "completion time (ms)"
    assert labels(bars)[-2:] == ["DCTCP", "Cubic"]
    assert [text.get_text() for text in bars.get_xticklabels()] == ["0.2", "0.4"]
    means, _ = plotting.dots(made.results, "all.fct.mean", "load", "scheme")
    heights = sorted(patch.get_height() for patch in bars.patches)  # type: ignore[attr-defined]
    assert heights == pytest.approx(sorted(dot.mean / 1e6 for of in means.values() for dot in of))
    marks = {label: [ys(line)[0] for line in bars.lines if line.get_label() == label] for label in (STATED, RELATIVE)}
    assert marks[STATED] == [4.0, 5.0]
    # 21 % under what Cubic has here.
    assert marks[RELATIVE] == pytest.approx([0.79 * means["cubic"][1].mean / 1e6])
    assert [text.get_text() for text in over.get_xticklabels()] == ["mean", "p99"]
    cubic = next(it for it in over.containers if it.get_label() == "Cubic")
    assert ys(cubic[0]) == [1.0, 1.0]


def test_samples_are_drawn(made: nw.papers.Figure) -> None:
    cdf, *queues, low, high = made.plot().axes[2:]
    assert (cdf.get_xscale(), cdf.get_ylabel(), cdf.get_xlabel()) == ("log", "CDF", "all.slowdown")
    line = cdf.lines[0]
    assert ys(line) == pytest.approx([(place + 1) / 90 for place in range(90)])
    assert [axes.get_title() for axes in queues] == ["DCTCP", "Cubic"]
    assert all(re.fullmatch(r'queue\("left>right"\) \((ns|µs|ms)\)', axes.get_ylabel()) for axes in queues)
    assert "threshold" in labels(queues[0])
    run = next(run for run in made.results if run.scheme == "dctcp" and run.point["traffic.0.load"] == 0.4)
    waiting = run.port_samples.to_polars()["queue_bytes"].to_list()
    unit = next(per for per, name in plotting.UNITS["ns"] if f"({name})" in queues[0].get_ylabel())
    assert max(waiting) > 0
    assert ys(queues[0].lines[0]) == pytest.approx([0.8 * value / unit for value in waiting])
    assert [low.get_title(), high.get_title()] == ["traffic.0.load = 0.2", "traffic.0.load = 0.4"]
    assert low.get_xlabel() in {"time (s)", "time (ms)"}


def test_a_figure_is_written(made: nw.papers.Figure, papers: Path, tmp_path: Path) -> None:
    made.savefig(tmp_path / "fig.svg")
    text = html.unescape((tmp_path / "fig.svg").read_text(encoding="utf-8"))
    assert all(f">{said}<" in text for said in ("DCTCP", "Cubic", STATED, RELATIVE, "completion time (ms)", "traffic.0.load = 0.4"))
    words = [sys.executable, "-m", "narrows", "plot", str(made.results.directory), "-o", "fig.pdf"]
    done = subprocess.run([*words, "--papers", str(papers)], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "fig.pdf").stat().st_size > 1000
    refused = subprocess.run([*words, "--x", "load"], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=300)
    assert (refused.returncode, "go with `y`" in refused.stderr) == (2, True), refused.stderr


def test_what_was_not_measured_is_said(made: nw.papers.Figure, tmp_path: Path) -> None:
    panel = 'kind = "bars"\ny = "inter.fct.mean"\nx = "load"\nlog = "y"\nunit = "ms"\nvalues = { cubic = ["4ms", "5ms"] }'
    (axes,) = drawn(f"[[paper.plot]]\n{panel}\n", made, tmp_path)
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    assert figure.get_supxlabel().startswith("12 of 12 runs have no inter.fct.mean")


def test_lines_may_be_those_of_a_key(made: nw.papers.Figure, tmp_path: Path) -> None:
    panel = 'kind = "lines"\ny = ["all.fct.mean", "all.fct.p99"]\nplaces = ["mean", "p99"]\nby = "load"\nschemes = ["cubic"]'
    (axes,) = drawn(f"[[paper.plot]]\n{panel}\n", made, tmp_path)
    assert labels(axes) == ["traffic.0.load = 0.2", "traffic.0.load = 0.4"]


def test_another_figure_is_drawn_the_same(papers: Path) -> None:
    (papers / "small/fig2.toml").write_text(FIGURE.replace("fig1", "fig2") + 'plot = "fig1"\n', encoding="utf-8")
    assert figures.drawing("small/fig2", papers) == figures.drawing("small/fig1", papers)
    (papers / "small/fig3.toml").write_text(FIGURE.replace("fig1", "fig3") + 'plot = "fig9"\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"fig9.toml` has no \[\[paper.plot\]\]"):
        figures.drawing("small/fig3", papers)


def test_a_figure_without_a_drawing_says_which_have_one(results: nw.Results, papers: Path) -> None:
    (papers / "small/fig4.toml").write_text(FIGURE.replace("fig1", "fig4"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"does not say how the figure is drawn[^$]*\n  small: fig1"):
        figures.drawing("small/fig4", papers)
    with pytest.raises(ValueError, match="the scenario `small`, which is no figure"):
        nw.plot(results, papers=papers)


@pytest.mark.parametrize(
    ("panel", "said"),
    [
        ('kind = "bars"\ny = "all.fct.mean"\nx = "load"\ncolour = "red"', r"number 1: .*unknown field `colour`, expected one of"),
        ('kind = "bars"\ny = "all.fct.p98"\nx = "load"', r"number 1, `y`: column 9: expected a statistic"),
        ('kind = "cdf"\ny = "all.fct"\nx = "load"', "`x` is for bars and lines"),
        ('kind = "bars"\ny = "all.fct.mean"', "the runs differ in traffic.0.load, too"),
        ('kind = "bars"\ny = "all.fct.mean"\nx = "lod"', "runs have no key `lod`; there are scheme, traffic.0.load, seed"),
        ('kind = "bars"\ny = "all.fct.mean"\nx = "load"\nunit = "MB"', "the unit `MB` is none of s, ms, µs, ns"),
        ('kind = "bars"\ny = "all.fct.mean"\nx = "load"\npaper = [{ value = "3Gbps" }]', "another unit than the axis"),
        ('kind = "bars"\ny = "all.fct.mean"\nx = "load"\npaper = [{ scheme = "cubic", value = "3ms" }]', "is at 2 places"),
        ('kind = "bars"\ny = "all.fct.mean"\nx = "load"\nvalues = { cubic = ["3ms"] }', "`values` has 1 of `cubic`"),
    ],
)
def test_what_is_wrong_with_a_drawing_is_said(panel: str, said: str, made: nw.papers.Figure, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        drawn(f"[[paper.plot]]\n{panel}\n", made, tmp_path)


def test_reproduce_refuses_a_wrong_drawing_before_it_runs(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    for panel, said in [
        ('kind = "pie"\ny = "all.fct.mean"', "unknown variant `pie`"),
        ('kind = "bars"\ny = "all.fct.mean"\nx = "load"\nschemes = ["cubik"]', "did you mean `cubic`?"),
    ]:
        (tmp_path / "small/fig1.toml").write_text(f"{FIGURE}[[paper.plot]]\n{panel}\n", encoding="utf-8")
        with pytest.raises(nw.ScenarioError, match=re.escape(said)):
            nw.reproduce("small/fig1", papers=tmp_path, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def numbers(text: str) -> set[float]:
    return {float(found) for found in re.findall(r"\d+(?:\.\d+)?", text)}


def plotted() -> list[str]:
    """The figures that have panels of their own."""
    names = sorted(f"{path.parent.name}/{path.stem}" for path in PAPERS.glob("*/*.toml"))
    return [name for name in names if figures._stated(PAPERS / f"{name}.toml") is not None]


@pytest.mark.parametrize("name", plotted())
def test_marks_are_of_values_that_the_file_states(name: str) -> None:
    path = PAPERS / f"{name}.toml"
    read = json.loads(_narrows.as_written(path.read_text(encoding="utf-8"), str(path)))
    panels = figures.drawing(name, PAPERS)
    known = set(read["schemes"])
    stated = numbers(json.dumps(read["claim"], ensure_ascii=False)) | numbers(json.dumps(read["schemes"])) | {0.0, 1.0}
    for panel in panels:
        named = {*(panel["schemes"] or ()), *panel["values"], *(name for it in panel["series"] for name in it["schemes"])}
        assert named - {""} <= known
        for mark in panel["paper"]:
            assert {mark["scheme"], mark["of"]} - {None} <= known
            assert numbers(mark["value"]) <= stated, mark
