#!/usr/bin/env python3
"""Writes the tables of bake-off.md and bake-off-scores.md in docs/src/papers from results of papers/bake-off.

usage: NARROWS=PROGRAM bake_off.py PAGES OUT [MORE]

PAGES is docs/src/papers, or a folder with copies of both pages.

OUT has a directory of results for each network: `trees`, `border` and so on, as `narrows run` or `reproduce` leaves them. What
is said of a network that OUT does not have stays as it is, but for the table of all networks. MORE may have directories of the
same names with newcomers that were run later, alone: their rows are over the best of OUT's schemes.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from generated import fill

NETWORKS = ("trees", "border", "triangle", "haul", "wan")
# No part of the reference.
NEWCOMERS = ("strait", "strait_trim", "strait_sizes", "strait_trim_sizes")
CELLS = {
    "p50(intra_small.slowdown)": "small in: p50",
    "p99(intra_small.slowdown)": "p99",
    "p50(intra_large.slowdown)": "large in: p50",
    "p99(intra_large.slowdown)": "p99",
    "p50(inter_small.slowdown)": "small across: p50",
    "p99(inter_small.slowdown)": "p99",
    "p50(inter_large.slowdown)": "large across: p50",
    "p99(inter_large.slowdown)": "p99",
}
FACTORS = {
    "shallow": "shallow",
    "deep": "deep",
    "near": "a tenth as far",
    "rtt8": "8 times",
    "rtt32": "32 times",
    "rtt512": "512 times",
    "failing": "link fails",
}
# Two-sided 95 % quantiles of Student's t, by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}

Run = dict[str, Any]
Scores = dict[str, Any]


def said(*args: str) -> Any:
    """What the program prints as JSON. What it refuses ends this one, too."""
    ran = subprocess.run([os.environ.get("NARROWS", "narrows"), *args, "--json"], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(args)}: {ran.stderr.strip()}")
    return json.loads(ran.stdout)


class Results:
    """A network's: a directory with all schemes, and one with newcomers alone if there is one."""

    def __init__(self, directory: Path, more: Path | None) -> None:
        """Read their summaries."""
        self.directories = [directory] + ([more] if more is not None and more.is_dir() else [])
        summaries = [said("show", str(each)) for each in self.directories]
        self.runs: list[Run] = [run for summary in summaries for run in summary["runs"]]
        reference = {run["point"]["scheme"] for run in summaries[0]["runs"]}
        self.newcomers = [arg for each in NEWCOMERS if each in reference for arg in ("--not-in-baseline", each)]

    def score(self, *filters: str) -> Scores:
        """All schemes, the best first, over the best of the first directory."""
        chosen = [arg for each in filters for arg in ("--filter", each)]
        against = ["--baseline", str(self.directories[0]), *self.newcomers]
        made: list[Scores] = [said("score", str(each), *chosen, *against) for each in self.directories]
        scores = [one for each in made for one in each["scores"]]
        return {**made[0], "scores": sorted(scores, key=lambda one: one["g"])}


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def name(label: str) -> str:
    return label.replace("*", "\\*")


def ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def interval(one: Run) -> str:
    if one["interval"] is None:
        return ratio(one["g"])
    low, high = one["interval"]
    return f"{ratio(one['g'])} ({ratio(low)} to {ratio(high)})"


def where(one: Run) -> str:
    """`large inside, p99, 80 %` of a point and a metric."""
    point, cell = one["worst"]
    (quantile, side, size), *_ = re.findall(r"(p\d+)\((intra|inter)_(\w+)\.slowdown\)", cell)
    percent = [f"{100 * float(load):.0f} %" for load in re.findall(r"load = ([\d.]+)", point)]
    measure = "median" if quantile == "p50" else quantile
    return ", ".join([f"{size} {'inside' if side == 'intra' else 'across'}", measure, *percent])


def of_point(made: Scores, runs: list[Run], load: float) -> str:
    """Every ratio at a load, the best scheme of each cell below, and what is lost and carried."""
    place = next(at for at, best in enumerate(made["reference"]["points"]) if f"load = {load}" in best["point"])
    best = made["reference"]["points"][place]["cells"]

    def mean(scheme: str, value: Any) -> float:
        there = [value(run) for run in runs if run["point"]["scheme"] == scheme and run["point"].get("load") == load]
        return fmean(there)

    rows = []
    for one in made["scores"]:
        cells = [ratio(each) for each in one["ratios"][place][1]]
        lost = 100 * mean(one["scheme"], lambda run: run["network"]["drops"] / run["network"]["data_packets"])
        goodput = mean(one["scheme"], lambda run: run["flows"]["inter"]["goodput_bps"] / 1e9)
        rows.append([name(one["label"]), *cells, f"{lost:.2g}" if lost else "0", f"{goodput:.3g}"])
    rows.append(["*slowdown of the best*", *(f"{fmean(cell['by_seed']):.3g}" for cell in best), "", ""])
    rows.append(["*and whose that is*", *(f"`{cell['scheme']}`" for cell in best), "", ""])
    head = ["", *(CELLS[cell] for cell in made["reference"]["cells"]), "lost (%)", "Gb/s across"]
    return table(head, rows)


def factors(results: Results, base: Scores) -> str:
    """G of each scheme where one factor differs, by the best there, and of the base point with the same seeds."""
    of = [run for run in results.runs if run["point"].get("variant") in FACTORS]
    variants = [each for each in FACTORS if any(run["point"]["variant"] == each for run in of)]
    seeds = [f"seed={seed}" for seed in sorted({run["seed"] for run in of})]
    made = {"base": results.score("variant=none", "load=0.4", *seeds)}
    made |= {each: results.score(f"variant={each}") for each in variants}
    found = {each: {one["scheme"]: one for one in it["scores"]} for each, it in made.items()}
    rows = []
    for one in base["scores"]:
        cells = [ratio(found[each][one["scheme"]]["g"]) if one["scheme"] in found[each] else "" for each in found]
        rows.append([name(one["label"]), *cells])
    return table(["", *(FACTORS.get(each, each) for each in found)], rows)


def shares(runs: list[Run], order: list[str]) -> str:
    """Long flows into one receiver: Jain's index of the last interval, when it is 0.95 first, and from when on always."""

    def when(key: str, there: list[Run]) -> str:
        since = [run["fairness"][key] for run in there]
        fair = [each / 1e6 for each in since if each is not None]
        if not fair:
            return "never"
        of = f" ({len(fair)} of {len(since)} runs)" if len(fair) < len(since) else ""
        return f"{fmean(fair):.0f} ms{of}"

    rows = []
    for scheme in order:
        there = [run for run in runs if run["point"]["scheme"] == scheme and run["point"].get("variant") == "share"]
        if not there:
            continue
        index = [run["fairness"]["jain_final"] for run in there]
        if len(index) - 1 not in STUDENT:
            raise SystemExit(f"`share`: expected 2 to {len(STUDENT) + 1} seeds of {there[0]['label']}, found {len(index)}")
        middle = fmean(index)
        spread = STUDENT[len(index) - 1] * (sum((each - middle) ** 2 for each in index) / (len(index) - 1) / len(index)) ** 0.5
        across = fmean(run["flows"]["inter"]["goodput_bps"] / run["flows"]["intra"]["goodput_bps"] for run in there)
        times = [when(key, there) for key in ("reached_at_ns", "converged_at_ns")]
        rows.append([name(there[0]["label"]), f"{middle:.2f} ± {spread:.2f}", *times, ratio(across)])
    rows.sort(key=lambda row: -float(row[1].split(" ")[0]))
    return table(["", "Jain's index", "0.95 first", "and until the end from", "across over inside"], rows)


def jobs(runs: list[Run], order: list[str]) -> str:
    """How long an iteration of the training job takes, by load."""
    rows = []
    for scheme in order:
        there = [run for run in runs if run["point"]["scheme"] == scheme]
        cells = []
        for load in (0.4, 0.8):
            training = [run["jobs"]["training"]["training"] for run in there if run["point"]["load"] == load]
            cells.append(f"{fmean(each['iteration_mean_ns'] for each in training) / 1e6:.0f} ms")
        rows.append([name(there[0]["label"]), *cells])
    rows.sort(key=lambda row: float(row[1].split(" ")[0]))
    return table(["", "40 %", "80 %"], rows)


def main() -> int:
    pages, out, *more = map(Path, sys.argv[1:])
    parts: dict[str, str] = {}
    every: dict[str, dict[str, Run]] = {}
    for network in NETWORKS:
        if not (out / network).is_dir():
            continue
        results = Results(out / network, more[0] / network if more else None)
        made, runs = results.score("variant=none"), results.runs
        base = [run for run in runs if not run["point"].get("variant")]
        rows = [[name(one["label"]), interval(one), ratio(one["w"]), where(one)] for one in made["scores"]]
        parts[f"{network}-scores"] = table(["scheme", "G", "W", "where"], rows)
        for load in (0.4, 0.8):
            parts[f"{network}-{100 * load:.0f}"] = of_point(made, base, load)
        if len(base) != len(runs):
            parts[f"{network}-factors"] = factors(results, made)
            parts[f"{network}-shares"] = shares(runs, [one["scheme"] for one in made["scores"]])
        if any(run["jobs"] for run in runs):
            parts[f"{network}-jobs"] = jobs(base, [one["scheme"] for one in made["scores"]])
        every[network] = {one["scheme"]: one for one in made["scores"]}
    if set(every) == set(NETWORKS):
        # A scheme is called as on the first network that has it.
        labels = {scheme: one["label"] for found in reversed(every.values()) for scheme, one in found.items()}
        order = dict.fromkeys(scheme for found in every.values() for scheme in found)
        rows = [
            [name(labels[scheme]), *(ratio(found[scheme]["g"]) if scheme in found else "" for found in every.values())]
            for scheme in order
        ]
        if not fill(pages / "bake-off.md", {"every": table(["", *(f"`{each}`" for each in NETWORKS)], rows)}):
            return 1
    return 0 if fill(pages / "bake-off-scores.md", parts) else 1


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main())
