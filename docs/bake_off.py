#!/usr/bin/env python3
"""Writes the scores of the bake-off: papers/bake-off/results/paper/scores.csv, and the table in docs/src/papers/bake-off.md.

usage: NARROWS=PROGRAM bake_off.py ROOT OUT [MORE]

ROOT is the repository, or a folder with copies of both files.

OUT has a directory of results for each network: `trees`, `border` and so on, as `narrows run` or `reproduce` leaves them. The rows
of a network that OUT does not have stay as they are; the table of all networks is written if OUT has all. MORE may have
directories of the same names with newcomers that were run later, alone: their rows are over the best of OUT's schemes.
docs/verdicts.py then writes the page of scores.
"""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import record
from generated import fill

NETWORKS = ("trees", "border", "triangle", "haul", "wan")
# No part of the reference.
NEWCOMERS = ("strait", "strait_trim", "strait_sizes", "strait_trim_sizes")
FACTORS = ("shallow", "deep", "near", "rtt8", "rtt32", "rtt512", "failing")
# Two-sided 95 % quantiles of Student's t, by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}

Run = dict[str, Any]
Scores = dict[str, Any]
# Tables that this script does not write are kept.
TABLES = ("scores", "load 0.4", "load 0.8", "factors", "share", "training iteration")


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


def row(table: str, scheme: str, metric: str, value: str, **more: str) -> record.Row:
    """A row of the record, but for its network."""
    return {"table": table, "scheme": scheme, "metric": metric, "value": value, **more}


def of_schemes(made: Scores) -> list[record.Row]:
    rows = []
    for one in made["scores"]:
        ends = {} if one["interval"] is None else dict(zip(("low", "high"), map(ratio, one["interval"]), strict=True))
        rows += [
            row("scores", one["label"], "G", ratio(one["g"]), **ends),
            row("scores", one["label"], "W", ratio(one["w"]), note=where(one)),
        ]
    return rows


def where(one: Run) -> str:
    """`large inside, p99, 80 %` of a point and a metric."""
    point, cell = one["worst"]
    (quantile, side, size), *_ = re.findall(r"(p\d+)\((intra|inter)_(\w+)\.slowdown\)", cell)
    percent = [f"{100 * float(load):.0f} %" for load in re.findall(r"load = ([\d.]+)", point)]
    measure = "median" if quantile == "p50" else quantile
    return ", ".join([f"{size} {'inside' if side == 'intra' else 'across'}", measure, *percent])


def of_point(made: Scores, runs: list[Run], load: float) -> list[record.Row]:
    """Every ratio at a load, what is lost and carried, and the best scheme of each cell."""
    place = next(at for at, best in enumerate(made["reference"]["points"]) if f"load = {load}" in best["point"])
    best = made["reference"]["points"][place]["cells"]
    name, metrics = f"load {load}", made["reference"]["cells"]

    def mean(scheme: str, value: Any) -> float:
        there = [value(run) for run in runs if run["point"]["scheme"] == scheme and run["point"].get("load") == load]
        return fmean(there)

    rows = []
    for one in made["scores"]:
        ratios = zip(metrics, one["ratios"][place][1], strict=True)
        rows += [row(name, one["label"], metric, ratio(each)) for metric, each in ratios]
        lost = 100 * mean(one["scheme"], lambda run: run["network"]["drops"] / run["network"]["data_packets"])
        goodput = mean(one["scheme"], lambda run: run["flows"]["inter"]["goodput_bps"] / 1e9)
        rows += [
            row(name, one["label"], "lost", f"{lost:.2g}" if lost else "0", unit="%"),
            row(name, one["label"], "goodput across", f"{goodput:.3g}", unit="Gbps"),
        ]
    bests = zip(metrics, best, strict=True)
    return rows + [row(name, "best", metric, f"{fmean(cell['by_seed']):.3g}", note=cell["scheme"]) for metric, cell in bests]


def factors(results: Results, base: Scores) -> list[record.Row]:
    """G of each scheme where one factor differs, by the best there, and of the base point with the same seeds."""
    of = [run for run in results.runs if run["point"].get("variant") in FACTORS]
    variants = [each for each in FACTORS if any(run["point"]["variant"] == each for run in of)]
    seeds = [f"seed={seed}" for seed in sorted({run["seed"] for run in of})]
    made = {"base": results.score("variant=none", "load=0.4", *seeds)}
    made |= {each: results.score(f"variant={each}") for each in variants}
    found = {each: {one["scheme"]: one for one in it["scores"]} for each, it in made.items()}
    return [
        row("factors", one["label"], each, ratio(of_factor[one["scheme"]]["g"]))
        for one in base["scores"]
        for each, of_factor in found.items()
        if one["scheme"] in of_factor
    ]


def shares(runs: list[Run], order: list[str]) -> list[record.Row]:
    """Long flows into one receiver: Jain's index of the last interval, when it is 0.95 first, and from when on always."""

    def when(there: list[Run], label: str, metric: str, key: str) -> record.Row:
        since = [run["fairness"][key] for run in there]
        fair = [each / 1e6 for each in since if each is not None]
        if not fair:
            return row("share", label, metric, "never")
        of = f"{len(fair)} of {len(since)} runs" if len(fair) < len(since) else ""
        return row("share", label, metric, f"{fmean(fair):.0f}", unit="ms", note=of)

    found: list[tuple[float, list[record.Row]]] = []
    for scheme in order:
        there = [run for run in runs if run["point"]["scheme"] == scheme and run["point"].get("variant") == "share"]
        if not there:
            continue
        index, label = [run["fairness"]["jain_final"] for run in there], there[0]["label"]
        if len(index) - 1 not in STUDENT:
            raise SystemExit(f"`share`: expected 2 to {len(STUDENT) + 1} seeds of {label}, found {len(index)}")
        middle = fmean(index)
        spread = STUDENT[len(index) - 1] * (sum((each - middle) ** 2 for each in index) / (len(index) - 1) / len(index)) ** 0.5
        across = fmean(run["flows"]["inter"]["goodput_bps"] / run["flows"]["intra"]["goodput_bps"] for run in there)
        rows = [
            row("share", label, "Jain's index", f"{middle:.2f}", half=f"{spread:.2f}"),
            when(there, label, "0.95 first", "reached_at_ns"),
            when(there, label, "0.95 until the end", "converged_at_ns"),
            row("share", label, "across over inside", ratio(across)),
        ]
        found.append((round(middle, 2), rows))
    found.sort(key=lambda one: -one[0])
    return [each for _, rows in found for each in rows]


def jobs(runs: list[Run], order: list[str]) -> list[record.Row]:
    """How long an iteration of the training job takes, by load."""
    found: list[list[record.Row]] = []
    for scheme in order:
        there = [run for run in runs if run["point"]["scheme"] == scheme]
        rows = []
        for load in (0.4, 0.8):
            training = [run["jobs"]["training"]["training"] for run in there if run["point"]["load"] == load]
            mean = fmean(each["iteration_mean_ns"] for each in training) / 1e6
            rows.append(row("training iteration", there[0]["label"], f"load {load}", f"{mean:.0f}", unit="ms"))
        found.append(rows)
    found.sort(key=lambda rows: float(rows[0]["value"]))
    return [each for rows in found for each in rows]


def put(path: Path, made: dict[str, list[record.Row]]) -> None:
    """Replaces the rows of these networks; those of other networks and tables stay."""
    columns = record.COLUMNS["scores"]
    old = record.rows(path, columns) if path.exists() else []
    kept = [each for each in old if each["network"] not in made or each["table"] not in TABLES]
    new = [{"network": network, **each} for network, rows in made.items() for each in rows]

    def place(each: record.Row) -> tuple[int, int]:
        return NETWORKS.index(each["network"]), TABLES.index(each["table"]) if each["table"] in TABLES else len(TABLES)

    every = sorted(kept + new, key=place)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(every)
    partial = path.with_suffix(".partial")
    partial.write_text(text.getvalue())
    partial.replace(path)


def main() -> int:
    root, out, *more = map(Path, sys.argv[1:])
    parts: dict[str, list[record.Row]] = {}
    every: dict[str, dict[str, Run]] = {}
    for network in NETWORKS:
        if not (out / network).is_dir():
            continue
        results = Results(out / network, more[0] / network if more else None)
        made, runs = results.score("variant=none"), results.runs
        base = [run for run in runs if not run["point"].get("variant")]
        order = [one["scheme"] for one in made["scores"]]
        rows = of_schemes(made)
        for load in (0.4, 0.8):
            rows += of_point(made, base, load)
        if len(base) != len(runs):
            rows += factors(results, made) + shares(runs, order)
        if any(run["jobs"] for run in runs):
            rows += jobs(base, order)
        parts[network] = rows
        every[network] = {one["scheme"]: one for one in made["scores"]}
    if set(every) == set(NETWORKS):
        # A scheme is called as on the first network that has it.
        labels = {scheme: one["label"] for found in reversed(every.values()) for scheme, one in found.items()}
        of_all = [
            [name(labels[scheme]), *(ratio(found[scheme]["g"]) if scheme in found else "" for found in every.values())]
            for scheme in dict.fromkeys(scheme for found in every.values() for scheme in found)
        ]
        page = root / "docs/src/papers/bake-off.md"
        if not fill(page, {"every": table(["", *(f"`{each}`" for each in NETWORKS)], of_all)}):
            return 1
    put(root / "papers/bake-off/results/paper/scores.csv", parts)
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main())
