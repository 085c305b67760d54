#!/usr/bin/env python3
"""Writes docs/data/sim-to-real/*.csv and the tables of docs/src/sim-to-real-tables.md.

usage: sim_to_real.py OUT DATA PAGE MACHINE    after docs/sim-to-real.sh has measured
       sim_to_real.py --check                  compares the page with the data

OUT has, for each scenario, the output of `narrows compare --flows --json` for each time it was emulated
(`two-1.json` and on), and the emulated results themselves (`two-emulated-1`). `stacks-1.json` compares the kernel's TCP with
the transport, `virtual-two-1.json` and the like the simulator with the transport in virtual time, at each point of the
scenario's grid. Rows of a scenario that OUT does not have stay as they are.
"""

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from generated import fill

DOCS = Path(__file__).resolve().parent
SCENARIOS = ("two", "eight", "deep", "transport", "stacks")
# Scenarios that are the same on any machine.
VIRTUAL = ("virtual-two", "virtual-eight", "virtual-permutation", "virtual-incast")
# Columns of `virtual.csv`: means over the grid's points, the difference of `b` from `a` and its standard error.
POINTS = (
    "scenario,scheme,quantity,unit,points,simulated,virtual,difference_percent,standard_error_percent,verdict".split(",")
)
# Largest differences between simulated and virtual means, as shares: of rates, completion times and queueing delays.
BARS = {"rate": 0.02, "completion time": 0.03, "queueing delay": 0.05}
DELAY_FLOOR_NS = 20_000.0
COUNT_BAR = 0.05
FLOWS = (
    "scenario,scheme,from_s,to_s,item,base_rtt_ms,quantity,unit,a,b,b_min,b_max,difference_percent,runs,"
    "runs_on_target,runs_doubtful"
).split(",")
LATENESS = (
    "scenario,scheme,runs,verdict,lateness_p50_us,lateness_p50_min_us,lateness_p50_max_us,lateness_p99_us,"
    "lateness_p99_min_us,lateness_p99_max_us,lateness_max_us,lateness_max_min_us,lateness_max_max_us,core_min_percent,"
    "core_max_percent,host_wait_min_percent,host_wait_max_percent,mean_wait_min_us,mean_wait_max_us"
).split(",")
QUEUE = ("queueing delay, ms", "right>right.host0", "queueing delay")
EIGHT = (
    ("near flow, Mb/s", "mean of flows 4 to 7", "rate"),
    ("far flow, Mb/s", "mean of flows 0 to 3", "rate"),
    QUEUE,
)
PAIR = (("near flow, Mb/s", "flow 1", "rate"), ("far flow, Mb/s", "flow 0", "rate"), QUEUE)
# Columns of the page's table of each scenario: title, item, quantity.
COLUMNS = {
    "two": PAIR,
    "eight": EIGHT,
    "deep": (("rate, Mb/s", "flow 0", "rate"), ("queueing delay, ms", "left>right", "queueing delay")),
    "transport": PAIR,
    "stacks": PAIR,
}
# Quantities of the page's tables of scenarios in virtual time.
VIRTUAL_COLUMNS = ("near flows", "far flows", "queueing delay", "drops", "marks")
Row = dict[str, str]


def flow_rows(scenario: str, comparisons: list[dict[str, Any]]) -> Iterator[Row]:
    """All rows of a scenario; `comparisons` are those of one simulated run with each emulated one."""
    for index, first in enumerate(comparisons[0]["runs"]):
        runs = [each["runs"][index] for each in comparisons]
        common = {
            "scenario": scenario,
            "scheme": first["label"],
            "from_s": f"{first['from_ns'] / 1e9:.0f}",
            "to_s": f"{first['to_ns'] / 1e9:.0f}",
            "runs": str(len(runs)),
            "runs_doubtful": str(sum(1 for run in runs if run["unsound"])),
        }
        for quantity in quantities(runs):
            yield {**common, **quantity}


def quantities(runs: list[dict[str, Any]]) -> Iterator[Row]:
    first = runs[0]
    # Flows of one round trip are interchangeable: which of them has more is chance, so only their mean is shown.
    grouped = {flow for group in first["groups"] for flow in group["flows"]}
    singles = [index for index, flow in enumerate(first["flows"]) if not grouped.issuperset(flow["flows"])]
    picked = [("flows", index) for index in singles] + [("groups", index) for index in range(len(first["groups"]))]
    for kind, index in picked:
        sides = [run[kind][index] for run in runs]
        numbers = sides[0]["flows"]
        item = f"flow {numbers[0]}" if len(numbers) == 1 else f"mean of flows {numbers[0]} to {numbers[-1]}"
        base = f"{sides[0]['base_rtt_ns'] / 1e6:.2f}"
        holds = [each["rate_holds"] for each in sides]
        yield from one((item, base), ("rate", "Mb/s", 1e6, 1), [each["rate_bps"] for each in sides], holds)
        yield from one((item, base), ("round trip", "ms", 1e6, 2), [each["rtt_ns"] for each in sides], [])
    for index, port in enumerate(first["ports"]):
        sides = [run["ports"][index] for run in runs]
        yield from one((port["name"], ""), ("queue", "kB", 1e3, 0), [each["queue_bytes"] for each in sides], [])
        holds = [each["delay_holds"] for each in sides]
        yield from one((port["name"], ""), ("queueing delay", "ms", 1e6, 2), [it["delay_ns"] for it in sides], holds)
    yield from one(("all", ""), ("drops a second", "1/s", 1, 1), [run["drops_per_s"] for run in runs], [])
    yield from one(("all", ""), ("marks a second", "1/s", 1, 1), [run["marks_per_s"] for run in runs], [])
    yield from one(("all", ""), ("Jain's index", "", 1, 3), [run["jain"] for run in runs], [])


def one(
    item: tuple[str, str],
    quantity: tuple[str, str, float, int],
    sides: list[dict[str, Any]],
    holds: list[bool | None],
) -> Iterator[Row]:
    """The row of a quantity: (name, unit, divisor, digits). Side `a` is the simulator, the same each time, or the mean of the
    first stack; side `b` the mean, least and most of the emulated runs."""
    both = [each for each in sides if each["a"] is not None and each["b"] is not None]
    if not both:
        return
    (name, base), (what, unit, divisor, digits) = item, quantity
    simulated, emulated = mean(each["a"] for each in both), [each["b"] for each in both]
    shown = [f"{value / divisor:.{digits}f}" for value in (simulated, mean(emulated), min(emulated), max(emulated))]
    judged = [each for each in holds if each is not None]
    # Rounded first: a difference of almost nothing is +0.0, not -0.0.
    percent = f"{round((mean(emulated) / simulated - 1) * 100, 1) + 0.0:+.1f}" if simulated else ""
    yield {
        **dict(zip(("item", "base_rtt_ms", "quantity", "unit"), (name, base, what, unit), strict=True)),
        **dict(zip(("a", "b", "b_min", "b_max"), shown, strict=True)),
        "difference_percent": percent,
        "runs_on_target": str(sum(judged)) if judged else "",
    }


def lateness_rows(out: Path, scenario: str, times: int) -> Iterator[Row]:
    """Lateness of the emulator, and its verdicts: a row for each scheme of a scenario."""
    summaries = [out / f"{scenario}-emulated-{turn}/summary.json" for turn in range(1, times + 1)]
    each = [json.loads(summary.read_text())["runs"] for summary in summaries]
    for runs in zip(*each, strict=True):
        figures = [run["emulator"] for run in runs]
        words = sorted({figure["validity"] for figure in figures}, reverse=True)
        row = {"scenario": scenario, "scheme": runs[0]["label"], "runs": str(times), "verdict": ", ".join(words)}
        for key in ("p50", "p99", "max"):
            us = [figure[f"lateness_{key}_ns"] / 1e3 for figure in figures]
            row[f"lateness_{key}_us"] = f"{median(us):.0f}"
            row[f"lateness_{key}_min_us"], row[f"lateness_{key}_max_us"] = f"{min(us):.0f}", f"{max(us):.0f}"
        for key, name in (("cpu_share", "core"), ("thread_wait", "host_wait")):
            share = [figure[key] * 100 for figure in figures]
            row[f"{name}_min_percent"], row[f"{name}_max_percent"] = f"{min(share):.0f}", f"{max(share):.0f}"
        means = [figure["thread_wait_mean_ns"] / 1e3 for figure in figures]
        row["mean_wait_min_us"], row["mean_wait_max_us"] = f"{min(means):.0f}", f"{max(means):.0f}"
        yield row


def pairs(runs: list[dict[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """Both sides of each quantity of a scheme at all points of the grid. Near flows have less than half of the longest base
    round trip."""
    found: dict[str, list[tuple[float, float]]] = {}
    completes = {True: True, False: True}
    flows: list[tuple[bool, dict[str, Any]]] = []
    for run in runs:
        longest = max(flow["base_rtt_ns"] for flow in run["flows"])
        flows += [(flow["base_rtt_ns"] < longest / 2, flow) for flow in run["flows"]]
    for is_near, flow in flows:
        completes[is_near] &= flow["fct_ns"]["a"] is not None and flow["fct_ns"]["b"] is not None
    for run in runs:
        longest = max(flow["base_rtt_ns"] for flow in run["flows"])
        for is_near, name in ((True, "near flows"), (False, "far flows")):
            mine = [flow for flow in run["flows"] if (flow["base_rtt_ns"] < longest / 2) == is_near]
            key, kind = ("fct_ns", "completion time") if completes[is_near] else ("rate_bps", "rate")
            both = [flow[key] for flow in mine if flow[key]["a"] is not None and flow[key]["b"] is not None]
            if both:
                point = (mean(each["a"] for each in both), mean(each["b"] for each in both))
                found.setdefault(f"{name}, {kind}", []).append(point)
        delays = [port["delay_ns"] for port in run["ports"] if None not in (port["delay_ns"]["a"], port["delay_ns"]["b"])]
        if delays:
            point = (mean(each["a"] for each in delays), mean(each["b"] for each in delays))
            found.setdefault("queueing delay", []).append(point)
        for name in ("drops", "marks"):
            found.setdefault(name, []).append((run[name]["a"], run[name]["b"]))
    return found


def verdict(quantity: str, points: list[tuple[float, float]], error: float) -> str:
    """`holds` if the means differ by at most the bar; `chance` if two standard errors reach it; `no` otherwise."""
    a, b = mean(each[0] for each in points), mean(each[1] for each in points)
    if quantity in ("drops", "marks"):
        # Of the counts of all points together.
        bar = max(COUNT_BAR * a, 3 * (a / len(points)) ** 0.5)
    else:
        bar = BARS[quantity.rpartition(", ")[2]] * a
        bar = max(bar, DELAY_FLOOR_NS) if quantity == "queueing delay" else bar
    if abs(b - a) <= bar:
        return "holds"
    return "chance" if len(points) > 1 and abs(b - a) - 2 * error <= bar else "no"


def virtual_rows(scenario: str, comparison: dict[str, Any]) -> Iterator[Row]:
    """The rows of a scenario in virtual time: a quantity of a scheme each."""
    for scheme in dict.fromkeys(run["label"] for run in comparison["runs"]):
        found = pairs([run for run in comparison["runs"] if run["label"] == scheme])
        for quantity, points in found.items():
            kind = quantity.rpartition(", ")[2]
            unit, divisor, digits = {
                "rate": ("Mb/s", 1e6, 1),
                "completion time": ("ms", 1e6, 1),
                "queueing delay": ("us", 1e3, 0),
            }.get(kind, ("", 1, 0))
            a, b = mean(each[0] for each in points), mean(each[1] for each in points)
            differences = [each[1] - each[0] for each in points]
            error = stdev(differences) / len(points) ** 0.5 if len(points) > 1 else 0.0
            yield {
                "scenario": scenario,
                "scheme": scheme,
                "quantity": quantity,
                "unit": unit,
                "points": str(len(points)),
                "simulated": f"{a / divisor:.{digits}f}",
                "virtual": f"{b / divisor:.{digits}f}",
                "difference_percent": f"{round((b / a - 1) * 100, 1) + 0.0:+.1f}" if a else "",
                "standard_error_percent": f"{error / a * 100:.1f}" if a and len(points) > 1 else "",
                "verdict": verdict(quantity, points, error),
            }


def virtual_table(rows: list[Row], real: list[Row]) -> str:
    """The page's table of a scenario in virtual time: simulated / virtual / real, difference of the first two and its standard
    error. `real` are the rows of the same scenario over sockets, if there are any."""
    kind = {name: next((row for row in rows if row["quantity"].startswith(name)), None) for name in VIRTUAL_COLUMNS}
    titles = []
    for name in VIRTUAL_COLUMNS:
        row = kind[name]
        if row is not None:
            titles.append(f"{row['quantity']}{', ' if row['unit'] else ''}{row['unit']}")
    lines = [f"| law | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    of_real = {"near flows": ("flow 1", "rate"), "far flows": ("flow 0", "rate")}
    for scheme in dict.fromkeys(row["scheme"] for row in rows):
        cells = [scheme]
        for name in VIRTUAL_COLUMNS:
            if kind[name] is None:
                continue
            row = next((row for row in rows if row["scheme"] == scheme and row["quantity"].startswith(name)), None)
            if row is None:
                cells.append("")
                continue
            item = of_real.get(name)
            same = [each for each in real if item and (each["scheme"], each["item"], each["quantity"]) == (scheme, *item)]
            sides = [row["simulated"], row["virtual"], *(each["b"] for each in same)]
            # A table has one unit a column; where flows of one law do not complete, theirs is stated.
            unit = "" if row["quantity"] == kind[name]["quantity"] else f" {row['unit']}"
            percent = row["difference_percent"]
            plus_minus = f" ± {row['standard_error_percent']}" if row["standard_error_percent"] else ""
            percent = f", {percent}{plus_minus} %" if percent else ""
            word = {"holds": "", "chance": " (chance)", "no": " (**no**)"}[row["verdict"]]
            cells.append(f"{' / '.join(sides)}{unit}{percent}{word}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def read(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def replace(path: Path, columns: list[str], rows: list[Row]) -> None:
    """Replaces the rows of the scenarios that `rows` has."""
    new = {row["scenario"] for row in rows}
    kept = [row for row in read(path) if row["scenario"] not in new] if path.exists() else []
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted([*kept, *rows], key=lambda row: (SCENARIOS + VIRTUAL).index(row["scenario"])))
    path.write_text(text.getvalue())


def table(rows: list[Row], columns: tuple[tuple[str, str, str], ...]) -> str:
    """The page's table of a scenario: a / b, difference, and the number of runs on target where not all were."""
    lines = [f"| law | {' | '.join(title for title, _, _ in columns)} |", "|---" * (len(columns) + 1) + "|"]
    for scheme in dict.fromkeys(row["scheme"] for row in rows):
        cells = [scheme]
        for _, item, quantity in columns:
            of = (scheme, item, quantity)
            row = next(row for row in rows if (row["scheme"], row["item"], row["quantity"]) == of)
            missed = "" if row["runs_on_target"] == row["runs"] else f" ({row['runs_on_target']})"
            percent = f", {row['difference_percent']} %" if row["difference_percent"] else ""
            cells.append(f"{row['a']} / {row['b']}{percent}{missed}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def tables(data: Path) -> dict[str, str]:
    """The page's tables by scenario."""
    rows = read(data / "flows.csv")
    found = {name: table([row for row in rows if row["scenario"] == name], of) for name, of in COLUMNS.items()}
    in_virtual_time = read(data / "virtual.csv")
    for name in VIRTUAL:
        real = [row for row in rows if name == "virtual-two" and row["scenario"] == "transport"]
        found[name] = virtual_table([row for row in in_virtual_time if row["scenario"] == name], real)
    return found


def check() -> int:
    page = (DOCS / "src/sim-to-real-tables.md").read_text()
    wrong = [name for name, text in tables(DOCS / "data/sim-to-real").items() if text not in page]
    if wrong:
        print(f"sim-to-real-tables.md: the tables of {', '.join(wrong)} are not those of the data", file=sys.stderr)
    return 2 if wrong else 0


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        return check()
    out, data, page, machine = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    flows: list[Row] = []
    lateness: list[Row] = []
    points: list[Row] = []
    for name in VIRTUAL:
        if (out / f"{name}-1.json").exists():
            points += virtual_rows(name, json.loads((out / f"{name}-1.json").read_text()))
    parts: dict[str, str] = {}
    for name in SCENARIOS:
        times = len(list(out.glob(f"{name}-[0-9]*.json")))
        if times == 0:
            continue
        comparisons = [json.loads((out / f"{name}-{turn}.json").read_text()) for turn in range(1, times + 1)]
        flows += flow_rows(name, comparisons)
        if name != "stacks":
            lateness += lateness_rows(out, name, times)
        parts["machine"] = f"Measured {times} {'time' if times == 1 else 'times'} with {machine}."
    if not flows and not points:
        print(f"{out}: no results of {', '.join(SCENARIOS + VIRTUAL)}", file=sys.stderr)
        return 2
    data.mkdir(parents=True, exist_ok=True)
    replace(data / "flows.csv", FLOWS, flows)
    replace(data / "emulator.csv", LATENESS, lateness)
    replace(data / "virtual.csv", POINTS, points)
    parts |= tables(data)
    if not fill(page, parts):
        return 2
    print(f"wrote {data} and {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
