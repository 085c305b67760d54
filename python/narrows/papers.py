"""Reproduction of papers' experiments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrows import _given, figures, plotting
from narrows._narrows import ScenarioError, StudyError
from narrows.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn

#: Exit codes of the command.
_REGRESSED = 3
_INPUT = 2


@dataclass(frozen=True)
class Claim:
    """Claim of a paper about an experiment, with the measured value and the verdict."""

    id: str
    text: str
    paper: str
    measured: str
    verdict: str


@dataclass(frozen=True)
class Figure:
    """A reproduced figure or table of a paper."""

    name: str
    claims: list[Claim]
    results: Results
    #: Directory of the papers' files.
    papers: Path

    def plot(self, *, style: str = "screen", title: str | None = None) -> Drawn:
        """Draw it as the paper does, with the values that the paper states, by Matplotlib.

        Raises `ValueError` when its file does not say how.
        """
        return figures.draw(self.results, papers=self.papers, style=style, title=title)

    def savefig(self, path: str | Path, *, style: str = "paper", title: str | None = None) -> None:
        """Write it as `plot` draws it, to a file that ends in .pdf, .svg or .png, as `narrows plot` does."""
        plotting.save(self.plot(style=style, title=title), path)

    def _repr_html_(self) -> str:
        return self.results._repr_html_()


class Reproduction(list[Figure]):
    """Reproduced figures."""

    def __init__(self, figures: list[Figure], *, regressed: bool) -> None:
        """Store the figures."""
        super().__init__(figures)
        #: True if a verdict is worse than the recorded one.
        self.regressed = regressed

    @property
    def claims(self) -> list[Claim]:
        """The claims of all figures."""
        return [claim for figure in self for claim in figure.claims]

    def __repr__(self) -> str:
        """Show a line for each claim."""
        lines = [
            f"{figure.name}  {claim.id}: {claim.verdict} (paper: {claim.paper}; measured: {claim.measured})"
            for figure in self
            for claim in figure.claims
        ]
        return "\n".join(lines)


def reproduce(
    *what: str,
    scale: str = "quick",
    papers: str | Path | None = None,
    out: str | Path | None = None,
    seeds: int | None = None,
    threads: int | None = None,
) -> Reproduction:
    """Reproduce papers, figures, or `"all"`, as in `reproduce("uno/fig8")`, and judge the papers' claims.

    `scale` is `"quick"` or `"paper"`. The papers' files are those in `papers`; by default those in a
    directory `papers` beside, and where there is none those of the package. Results go to `out`
    (`out/reproduce/SCALE` by default). The command `narrows reproduce` does the work.

    Raises `ScenarioError` when there is no such figure, and `StudyError` when runs fail.
    """
    seeds, threads = _given.count("seeds", seeds), _given.count("threads", threads)
    root = figures.home(papers)
    target = Path(out) if out is not None else Path("out") / "reproduce" / scale
    words = [sys.executable, "-m", "narrows", "reproduce", *what, "--scale", scale, "--json"]
    words += ["--papers", str(root), "--out", str(target)]
    words += [] if seeds is None else ["--seeds", str(seeds)]
    words += [] if threads is None else ["--threads", str(threads)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode in (130, -signal.SIGINT):
        raise KeyboardInterrupt(done.stderr.strip())
    if done.returncode == _INPUT:
        raise ScenarioError(done.stderr.strip())
    if done.returncode not in (os.EX_OK, _REGRESSED):
        raise StudyError(done.stderr.strip())
    made: dict[str, Any] = json.loads(done.stdout)
    return Reproduction([_figure(it, target, root) for it in made["figures"]], regressed=done.returncode == _REGRESSED)


def _figure(made: dict[str, Any], target: Path, papers: Path) -> Figure:
    name = f"{made['paper']}/{made['figure']}"
    claims = [Claim(it["id"], it["text"], str(it["paper"]), str(it["measured"]), it["verdict"]) for it in made["claims"]]
    return Figure(name, claims, Results(target / name), papers)
