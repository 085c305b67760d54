#!/usr/bin/env python3
"""Writes the tables of docs/src/sim-to-real-tables.md from results that docs/sim-to-real.sh made.

usage: sim_to_real.py PAGE OUT MACHINE

OUT has, for each scenario, what `narrows compare --flows --json` printed of each time it was emulated
(`two-1.json` and on), and the emulated results themselves (`two-emulated-1`). `stacks-1.json` compares the kernel's TCP with
the transport. What is said of a scenario that OUT does not have stays as it is.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

from generated import fill

# Scenarios that the kernel's TCP carries, and those of the transport.
KERNEL = ("two", "eight", "deep")
TRANSPORT = ("transport",)
SIDES = ("simulator", "emulator")


def rate(bps: float) -> str:
    return f"{bps / 1e6:.1f} Mb/s"


def time(ns: float) -> str:
    return f"{ns / 1e6:.2f} ms"


def size(queue: float) -> str:
    return f"{queue / 1e3:.0f} kB" if queue < 1e6 else f"{queue / 1e6:.1f} MB"


def plain(digits: int) -> Callable[[float], str]:
    return lambda value: f"{value:.{digits}f}"


def row(
    what: str,
    base: str,
    measure: str,
    shown: Callable[[float], str],
    sides: list[dict[str, Any]],
    holds: list[bool | None],
) -> str:
    """One quantity: the simulator's, which is the same each time (of two stacks the mean of the first one's), the mean of the
    emulated ones, the least and the most of them."""
    both = [each for each in sides if each["a"] is not None and each["b"] is not None]
    if not both:
        return ""
    simulated, emulated = mean(each["a"] for each in both), [each["b"] for each in both]
    middle = mean(emulated)
    # Rounded before, so that next to nothing is +0.0 and not -0.0.
    percent = f"{round((middle / simulated - 1) * 100, 1) + 0.0:+.1f} %" if simulated else ""
    judged = [each for each in holds if each is not None]
    target = f"{sum(judged)} of {len(judged)}" if judged else ""
    spread = f"{shown(min(emulated))} to {shown(max(emulated))}"
    return f"| {what} | {base} | {measure} | {shown(simulated)} | {shown(middle)} | {spread} | {percent} | {target} |"


def flows(what: str, numbers: list[int]) -> str:
    return f"{what} {numbers[0]}" if len(numbers) == 1 else f"mean of flows {numbers[0]} to {numbers[-1]}"


def rows(runs: list[dict[str, Any]]) -> Iterator[str]:
    """All rows of one scheme's table; `runs` are the comparisons of one simulated run with each emulated one."""
    first = runs[0]
    # Flows of one round trip are interchangeable: which of them has more is chance, so only their mean is shown.
    grouped = {flow for group in first["groups"] for flow in group["flows"]}
    singles = [index for index, flow in enumerate(first["flows"]) if not grouped.issuperset(flow["flows"])]
    picked = [("flows", index) for index in singles] + [("groups", index) for index in range(len(first["groups"]))]
    for kind, index in picked:
        sides = [run[kind][index] for run in runs]
        name = flows("flow", sides[0]["flows"])
        holds = [each["rate_holds"] for each in sides]
        yield row(name, time(sides[0]["base_rtt_ns"]), "rate", rate, [each["rate_bps"] for each in sides], holds)
        yield row("", "", "round trip", time, [each["rtt_ns"] for each in sides], [])
    for index, port in enumerate(first["ports"]):
        sides = [run["ports"][index] for run in runs]
        name = port["name"].replace(">", "\\>")
        yield row(name, "", "queue", size, [each["queue_bytes"] for each in sides], [])
        holds = [each["delay_holds"] for each in sides]
        yield row("", "", "queueing delay", time, [each["delay_ns"] for each in sides], holds)
    yield row("all", "", "drops a second", plain(1), [run["drops_per_s"] for run in runs], [])
    yield row("", "", "marks a second", plain(1), [run["marks_per_s"] for run in runs], [])
    yield row("", "", "Jain's index", plain(3), [run["jain"] for run in runs], [])


def marked(line: str, runs: list[dict[str, Any]]) -> str:
    """The row, with a word on how many of the runs should not be believed."""
    unsound = [run["unsound"] for run in runs if run["unsound"]]
    words = ", ".join(f"{unsound.count(word)} {word}" for word in sorted(set(unsound)))
    if not words:
        return line
    *cells, target = line.removesuffix(" |").split(" | ")
    return " | ".join([*cells, f"{target}, {words}" if target.strip() else words]) + " |"


def tables(comparisons: list[dict[str, Any]], sides: tuple[str, str] = SIDES) -> str:
    """A table for each scheme of a scenario."""
    made = []
    for index, first in enumerate(comparisons[0]["runs"]):
        runs = [each["runs"][index] for each in comparisons]
        window = f"{first['from_ns'] / 1e9:.0f} s to {first['to_ns'] / 1e9:.0f} s"
        columns = [f"{first['label']}, {window}", "base RTT", "mean", *sides, "least to most"]
        head = f"| {' | '.join([*columns, 'difference', 'target'])} |"
        lines = [head, "|---|--:|---|--:|--:|--:|--:|--:|", *(marked(line, runs) for line in rows(runs) if line)]
        made.append("\n".join(lines))
    return "\n\n".join(made)


def emulator(out: Path, names: Iterable[str], times: int) -> str:
    """How late the emulator was, and its verdicts: a row for each scheme of a scenario."""
    columns = ["scenario", "run", "late by, p50", "p99", "most", "of a core", "hosts waited", "each time", "verdicts"]
    lines = [f"| {' | '.join(columns)} |", "|---|---|--:|--:|--:|--:|--:|--:|---|"]
    for name in names:
        summaries = [out / f"{name}-emulated-{turn}/summary.json" for turn in range(1, times + 1)]
        each = [json.loads(summary.read_text())["runs"] for summary in summaries]
        for runs in zip(*each, strict=True):
            figures = [run["emulator"] for run in runs]
            late = []
            for key in ("p50", "p99", "max"):
                us = [figure[f"lateness_{key}_ns"] / 1e3 for figure in figures]
                late.append(f"{median(us):.0f} us ({min(us):.0f} to {max(us):.0f})")
            shares = []
            for key in ("cpu_share", "thread_wait"):
                share = [figure[key] * 100 for figure in figures]
                shares.append(f"{min(share):.0f} to {max(share):.0f} %")
            means = [figure["thread_wait_mean_ns"] / 1e3 for figure in figures]
            shares.append(f"{min(means):.0f} to {max(means):.0f} us")
            words = [figure["soundness"] for figure in figures]
            verdicts = ", ".join(f"{words.count(word)} {word}" for word in sorted(set(words), reverse=True))
            cells = [name, runs[0]["label"], *late, *shares, verdicts]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    page, out, machine = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    parts = {}
    for names, group in ((KERNEL, ""), (TRANSPORT, "transport-")):
        times = len(list(out.glob(f"{names[0]}-[0-9]*.json")))
        there = [name for name in (*names, "stacks") if (out / f"{name}-1.json").exists()]
        if times == 0 or not set(names) <= set(there):
            continue
        for name in names if group == "" else (*names, "stacks"):
            comparisons = [json.loads((out / f"{name}-{turn}.json").read_text()) for turn in range(1, times + 1)]
            parts[name] = tables(comparisons, ("kernel's TCP", "transport") if name == "stacks" else SIDES)
        parts[f"{group}emulator"] = emulator(out, names, times)
        parts[f"{group}machine"] = f"Measured {times} {'time' if times == 1 else 'times'} with {machine}."
    if not parts:
        print(f"{out}: neither {', '.join(KERNEL)} nor {', '.join(TRANSPORT)} whole", file=sys.stderr)
        return 2
    if not fill(page, parts):
        return 2
    print(f"wrote {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
