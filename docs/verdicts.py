#!/usr/bin/env python3
"""Writes the pages of verdicts and their pictures from the record of reproduced figures.

usage: docs/verdicts.py [--check]

Reads papers/PAPER/results, as `narrows reproduce --results papers` and `docs/bake_off.py` write it. Writes
docs/src/papers/PAPER-results.md, and docs/src/papers/images/PAPER-FIGURE.svg for each figure. With --check nothing is
written: the exit code is 1 if a file is not as it would be written.
"""

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pictures
from pictures import Kind, Mark, Panel, Sheet
from record import PAPERS, SCALES, VERDICTS, WINDOWS, Fault, Row, Value, cell, natural, read, values

PAGES = Path(__file__).resolve().parent / "src/papers"
TITLES = {
    "uno": "Uno", "on-ramp": "On-Ramp", "lscc": "LSCC", "gemini": "GEMINI", "flashpass": "FlashPass", "bake-off": "The bake-off",
}  # fmt: skip
PUBLISHED = "-as-published"
SCALE_WORDS = {"quick": "Quick scale", "paper": "Paper's size"}
COUNTED = ("reproduced", "direction only", "undecided", "not reproduced")
# The longest measured value that is shown in full, in characters.
LONGEST = 44
# More points of a grid than these do not fit into a row.
MOST_POINTS = 6
# Metrics of the usual table by what claims write.
METRICS = {
    "all.fct.mean": "FCT mean",
    "all.fct.p99": "FCT p99",
    "intra.fct.mean": "intra mean",
    "intra.fct.p99": "intra p99",
    "inter.fct.mean": "inter mean",
    "inter.fct.p99": "inter p99",
    "network.drops": "drops",
    "network.timeouts": "timeouts",
}
WORDS = {
    "FCT mean": "Mean FCT", "FCT p99": "p99 of FCT", "intra mean": "Mean FCT, intra-DC", "intra p99": "p99 of FCT, intra-DC",
    "inter mean": "Mean FCT, inter-DC", "inter p99": "p99 of FCT, inter-DC", "drops": "Dropped packets", "timeouts": "Timeouts",
}  # fmt: skip
VERDICT_KINDS = [
    Kind("reproduced", "good", "circle"),
    Kind("direction only", "some", "triangle"),
    Kind("undecided", "off", "diamond"),
    Kind("not reproduced", "bad", "square"),
]
DIMENSION_WORDS = {"s": "times", "B": "amounts of data", "bps": "rates", "%": "shares", "": "ratios and counts"}
# Metrics of the bake-off's figures without scores.
BAKE_OFF = {"beside": ["Strait's four", "the other four"], "many": ["goodput across", "Jain's index"]}
NETWORKS = {
    "trees": "The pair of fat trees",
    "border": "The oversubscribed border",
    "triangle": "The triangle",
    "haul": "The lossless long haul",
    "wan": "Three datacenters",
}


def dimension(value: Value) -> str:
    if value.unit in ("ns", "us", "ms", "s"):
        return "s"
    if value.unit in ("B", "KB", "MB", "GB"):
        return "B"
    return "bps" if value.unit.endswith("bps") else value.unit


def cut_cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")


def plural(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")


def tally(found: list[Row]) -> str:
    counts = Counter(row["verdict"] for row in found)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])


def of_causes(claims: list[Row], causes: list[Row]) -> str:
    """The counts of claims by the outcomes of their suspected causes; nothing where none was tried."""
    if not causes:
        return ""
    counts: Counter[str] = Counter()
    differing = [row for row in claims if row["verdict"] in ("direction only", "not reproduced")]
    for row in differing:
        outcomes = [it["outcome"] for it in causes if (it["figure"], it["claim"]) == (row["figure"], row["id"])]
        if "shown" in outcomes:
            counts["shown"] += 1
        elif "in part" in outcomes:
            counts["in part"] += 1
        elif "undecided" in outcomes or "refuted" in outcomes:
            counts["unexplained"] += 1
    untried = len(differing) - counts.total()
    return (
        f" Of the {len(differing)} claims in direction only or not reproduced, {counts['shown']} have a cause that is shown, "
        f"{counts['in part']} one that is shown in part, {counts['unexplained']} were tried and are unexplained, and {untried} were "
        "not tried."
    )


class Record:
    """What is recorded of a paper, by scale."""

    def __init__(self, paper: str) -> None:
        self.paper = paper
        self.figures = {scale: {row["figure"]: row for row in read(paper, scale, "figures")} for scale in SCALES}
        self.claims = {scale: read(paper, scale, "claims") for scale in SCALES}
        self.causes = {scale: read(paper, scale, "causes") for scale in SCALES}
        for scale in SCALES:
            for row in self.claims[scale]:
                if row["figure"] not in self.figures[scale]:
                    known = ", ".join(self.figures[scale]) or "none"
                    raise Fault(f"papers/{paper}/results/{scale}/claims.csv: figure `{row['figure']}`; `figures.csv` has: {known}")
        every = {name for found in self.figures.values() for name in found}
        self.names = sorted(every, key=natural)

    def of(self, figure: str, scale: str) -> list[Row]:
        return [row for row in self.claims[scale] if row["figure"] == figure]

    def info(self, figure: str, scale: str) -> Row | None:
        return self.figures[scale].get(figure)

    def larger(self, figure: str) -> str:
        """The larger scale that a figure is recorded at."""
        return "paper" if figure in self.figures["paper"] else "quick"

    def cause(self, figure: str, claim: str) -> str:
        """The best outcome of a claim's suspected causes, with the causes that have it."""
        tried = [row for scale in SCALES for row in self.causes[scale] if (row["figure"], row["claim"]) == (figure, claim)]
        for outcome in ("shown", "in part", "undecided", "refuted"):
            names = [row["cause"] for row in tried if row["outcome"] == outcome]
            if names:
                return f"{outcome}: {', '.join(dict.fromkeys(names))}"
        return ""


# ---------------------------------------------------------------- pictures


def chosen_metrics(paper: str, figure: str) -> list[str]:
    """The one or two metrics of the usual table that most claims are about; none if most are about something else."""
    file = tomllib.loads((PAPERS / paper / f"{figure}.toml").read_text())
    counts: Counter[str] = Counter()
    claims = [claim for claim in file.get("claim", []) if claim.get("check")]
    covered = 0
    for claim in claims:
        check = re.sub(r"(mean|p99)\((?:it\.)?(all|intra|inter)\.fct\)", r"\2.fct.\1", claim["check"])
        named = {name for key, name in METRICS.items() if re.search(rf"\b{re.escape(key)}\b(?!_)", check)}
        counts.update(named)
        covered += bool(named)
    if covered * 3 < len(claims) or not claims:
        return []
    order = list(METRICS.values())
    return sorted([name for name, _ in counts.most_common(2)], key=order.index)


def short_point(point: str) -> str:
    """`load 0.4` of `traffic.0.load = 0.4`."""
    parts = [part.split(" = ", 1) for part in point.split(", ")]
    return ", ".join(" ".join([part[0].split(".")[-1].replace("_", " "), *(re.sub(r"\.0$", "", it) for it in part[1:])]) for part in parts)


def by_scheme(rows: list[Row], metrics: list[str], title: str, alt: str) -> str | None:
    """Values of metrics with a row per scheme, in which points of the grid are marks."""
    found = {(row["metric"], row["scheme"], row["point"]): cell(row) for row in rows if row["table"] != WINDOWS}
    found = {key: value for key, value in found.items() if key[0] in metrics and value}
    points = list(dict.fromkeys(point for _, _, point in found))
    schemes = list(dict.fromkeys(scheme for _, scheme, _ in found))
    if not found or len(points) > MOST_POINTS:
        return None
    sheet = Sheet(title, alt)
    kinds = pictures.kinds_of([short_point(point) for point in points])
    panels = []
    for metric in metrics:
        marks = [
            (scheme, [Mark(value.amount, value.half, at) for at, point in enumerate(points) if (value := found.get((metric, scheme, point)))])
            for scheme in schemes
        ]
        first = next((value for (name, _, _), value in found.items() if name == metric), None)
        if first:
            panels.append(Panel(WORDS.get(metric, metric), dimension(first), marks))
    if len(kinds) > 1:
        sheet.legend(kinds)
    pictures.beside(sheet, panels, kinds)
    return sheet.svg()


def by_claim(claims: list[Row], title: str, alt: str) -> str | None:
    """Measured values of claims, a row each, in a panel per dimension."""
    groups: dict[str, list[tuple[str, list[Mark]]]] = {}
    for row in claims:
        found = values(row["measured"])
        if not found or row["verdict"] not in [kind.label for kind in VERDICT_KINDS]:
            continue
        kind = [kind.label for kind in VERDICT_KINDS].index(row["verdict"])
        same = [value for value in found if dimension(value) == dimension(found[0])]
        groups.setdefault(dimension(found[0]), []).append((row["id"], [Mark(value.amount, value.half, kind) for value in same]))
    if not groups:
        return None
    sheet = Sheet(title, alt)
    sheet.legend(VERDICT_KINDS)
    for of, found in sorted(groups.items(), key=lambda item: -len(item[1])):
        pictures.below(sheet, Panel(f"measured, {DIMENSION_WORDS[of]}", of, found), VERDICT_KINDS)
    return sheet.svg()


def picture(record: Record, figure: str) -> tuple[str, str] | None:
    """A figure's picture and its alternative text."""
    scale = record.larger(figure)
    info = record.info(figure, scale)
    assert info
    over = plural(1, "seed") if info["seeds"] == "1" else f"{info['seeds']} seeds"
    size = "quick scale" if scale == "quick" else "paper's size"
    metrics = chosen_metrics(record.paper, figure)
    rows = read(record.paper, scale, figure)
    named = " and ".join(WORDS[metric] for metric in metrics)
    name = info["in_paper"] or figure
    if metrics:
        alt = f"{named} of each scheme"
        title = f"{name}: {named}, mean over {over} with 95 % interval, {size}"
        drawn = by_scheme(rows, metrics, title if info["seeds"] != "1" else f"{name}: {named}, {over}, {size}", alt)
        if drawn:
            return drawn, alt
    alt = "Measured value of each claim"
    title = f"{name}: measured value of each claim, {over}, {size}"
    drawn = by_claim(record.of(figure, scale), title, alt)
    return (drawn, alt) if drawn else None


# ---------------------------------------------------------------- pages


def counts_line(record: Record, figure: str) -> str:
    """Seeds, what was scaled, and the numbers of verdicts at each scale, in the order of `COUNTED`."""
    parts = []
    for scale in SCALES:
        info = record.info(figure, scale)
        if not info:
            continue
        about = plural(int(info["seeds"]), "seed") if info["seeds"].isdigit() else f"{info['seeds']} seeds"
        if scale == "quick" and not info["scaled"].startswith(("nothing", "the paper's own size")):
            about += f"; {info['scaled']}"
        counts = Counter(row["verdict"] for row in record.of(figure, scale))
        numbers = "/".join(str(counts[verdict]) for verdict in COUNTED)
        parts.append(f"{SCALE_WORDS[scale]} ({about}): {numbers}.")
    return " ".join(parts)


def short(measured: str) -> str:
    """A measured value; of a list of many the first."""
    if len(measured) <= LONGEST:
        return measured
    return measured.split("; ")[0] + "; …"


def claims_table(record: Record, figure: str) -> list[str]:
    """Claims that are not reproduced at the larger recorded scale; undecided ones by name."""
    claims = record.of(figure, record.larger(figure))
    differing = [row for row in claims if row["verdict"] not in ("reproduced", "undecided")]
    undecided = [row["id"] for row in claims if row["verdict"] == "undecided"]
    causes = [record.cause(figure, row["id"]) for row in differing]
    lines = []
    if differing:
        head = ["claim", "paper", "measured", "verdict", *(["cause"] if any(causes) else [])]
        lines += [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for row, cause in zip(differing, causes, strict=True):
            cells = [row["id"], row["paper"], short(row["measured"]), row["verdict"], *([cause] if any(causes) else [])]
            lines.append(f"| {' | '.join(cut_cell(it) for it in cells)} |")
        lines.append("")
    if undecided:
        lines += [f"Undecided: {', '.join(undecided)}.", ""]
    return lines


def verdict_page(paper: str) -> dict[Path, str]:
    record = Record(paper)
    files: dict[Path, str] = {}
    lines = [
        f"# {TITLES[paper]}: what was reproduced",
        "",
        "Verdicts by figure, as defined in [claims](../reference/claims.md); [all claims](../claims.html) can be searched. "
        f"`narrows reproduce {paper} --results papers` writes the record, CSV files in `papers/{paper}/results`; `docs/verdicts.py` "
        "writes this page. Counts are claims reproduced/direction only/undecided/not reproduced. Tables and pictures are of the larger "
        "recorded scale, trials of causes of the quick one.",
        "",
    ]
    for scale in SCALES:
        ours = [row for row in record.claims[scale] if not row["figure"].endswith(PUBLISHED)]
        published = [row for row in record.claims[scale] if row["figure"].endswith(PUBLISHED)]
        for label, found in ((SCALE_WORDS[scale], ours), (f"{SCALE_WORDS[scale]}, as published", published)):
            if found:
                figures = plural(len({row["figure"] for row in found}), "figure")
                causes = of_causes(found, record.causes[scale])
                lines.append(f"- {label}: {figures}, {plural(len(found), 'claim')}: {tally(found)}.{causes}")
    lines.append("")
    for figure in [name for name in record.names if not name.endswith(PUBLISHED)]:
        info = record.info(figure, record.larger(figure))
        assert info
        heading = f"`{figure}`" + (f", {info['in_paper']}" if info["in_paper"] else "")
        lines += [f"## {heading}", "", f"{info['title']}. {counts_line(record, figure)}", ""]
        if f"{figure}{PUBLISHED}" in record.names:
            lines[-2] += f" As published: {counts_line(record, figure + PUBLISHED)}"
        lines += claims_table(record, figure)
        drawn = picture(record, figure)
        if drawn:
            files[PAGES / "images" / f"{paper}-{figure}.svg"] = drawn[0]
            lines += [f"![{drawn[1]}](images/{paper}-{figure}.svg)", ""]
    alone = [name for name in record.names if name.endswith(PUBLISHED) and name.removesuffix(PUBLISHED) not in record.names]
    for figure in alone:
        info = record.info(figure, record.larger(figure))
        assert info
        lines += [f"## `{figure}`", "", f"{info['title']}. {counts_line(record, figure)}", "", *claims_table(record, figure)]
    files[PAGES / f"{paper}-results.md"] = "\n".join(lines).rstrip() + "\n"
    return files


def score_picture(network: str, scores: list[Row]) -> tuple[str, str]:
    rows: dict[str, list[Mark]] = {}
    for row in scores:
        if (row["network"], row["table"], row["metric"]) == (network, "scores", "G"):
            low, high = (float(row[end]) if row[end] else None for end in ("low", "high"))
            half = (high - low) / 2 if low is not None and high is not None else None
            rows.setdefault(row["scheme"], []).append(Mark(float(row["value"]), half, 0))
        if (row["network"], row["table"], row["metric"]) == (network, "scores", "W"):
            rows.setdefault(row["scheme"], []).append(Mark(float(row["value"]), None, 1))
    alt = f"{NETWORKS[network]}: G and W of each scheme"
    sheet = Sheet(f"{alt}, over the best published scheme", alt)
    kinds = [Kind("G, geometric mean, with 95 % interval", "s0", "circle"), Kind("W, greatest ratio", "s1", "diamond")]
    sheet.legend(kinds)
    pictures.beside(sheet, [Panel("ratio of slowdowns", "", list(rows.items()))], kinds)
    return sheet.svg(), alt


def score_table(network: str, scores: list[Row]) -> list[str]:
    """G with its interval, W and its cell of each scheme on a network."""
    cells: dict[str, list[str]] = {}
    for row in scores:
        if (row["network"], row["table"]) == (network, "scores"):
            interval = f" ({row['low']} to {row['high']})" if row["low"] else ""
            of_metric = [f"{row['value']}{interval}"] if row["metric"] == "G" else [row["value"], row["note"]]
            cells.setdefault(row["scheme"].replace("*", "\\*"), []).extend(of_metric)
    return ["| scheme | G | W | where |", "|---|---|---|---|", *(f"| {name} | {' | '.join(of)} |" for name, of in cells.items())]


def bake_off_page() -> dict[Path, str]:
    paper = "bake-off"
    record, scores = Record(paper), read(paper, "paper", "scores")
    files: dict[Path, str] = {}
    lines = [
        "# The bake-off: scores",
        "",
        "Scores of every scheme on the networks of the [bake-off](bake-off.md). A cell is the mean over the seeds of the median or the "
        "99th percentile of the slowdown of small or large flows, inside or across, over the best published scheme's. **G** is the "
        "geometric mean of a scheme's ratios with its 95 % interval, **W** the greatest one: see [Scores](bake-off.md#scores).",
        "",
        "The record is CSV in `papers/bake-off/results/paper`: `scores.csv` has every ratio, the best scheme of each cell, the factors, "
        "fairness and the training job; `trees.csv` and so on have the slowdowns with their intervals, `figures.csv` the seeds and the "
        "engines. To compute one network again, run `narrows reproduce bake-off/trees --scale paper --results papers` (hours), then "
        "`docs/bake_off.py`; `docs/verdicts.py` writes this page.",
        "",
        "All runs have full size; four builds made them. `many` and `beside` are by engine 4ad509b6e06ea143; FlashPass\\* outside `haul`, "
        "the factors of `wan`, and the failing link over ten seeds by 753b41cff98105e5; the rest of `trees`, and Strait with known sizes, "
        "by d808339391442515; all others by aaec1c9950cf7cac. Repeating the best schemes of each cell and the four Straits on four "
        "networks with 753b41cff98105e5 gave the same tables to the last digit. 257 runs of the long haul, made twice on processors of "
        "two makers with 2 and 16 threads, are identical.",
        "",
    ]
    for network, title in NETWORKS.items():
        drawn, alt = score_picture(network, scores)
        files[PAGES / "images" / f"{paper}-{network}.svg"] = drawn
        lines += [f"## {title}", "", *score_table(network, scores), "", f"![{alt}](images/{paper}-{network}.svg)", ""]
    for figure, metrics in BAKE_OFF.items():
        info = record.info(figure, "paper")
        assert info
        alt = f"{figure}: {' and '.join(metrics)} of each scheme"
        title = f"{info['title']}: mean over {info['seeds']} seeds with 95 % interval"
        picture_of = by_scheme(read(paper, "paper", figure), metrics, title, alt)
        assert picture_of
        files[PAGES / "images" / f"{paper}-{figure}.svg"] = picture_of
        lines += [f"## `{figure}`", "", f"![{alt}](images/{paper}-{figure}.svg)", ""]
    files[PAGES / f"{paper}-results.md"] = "\n".join(lines).rstrip() + "\n"
    return files


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        files = bake_off_page()
        for paper in TITLES:
            files |= verdict_page(paper) if paper != "bake-off" else {}
    except (Fault, OSError) as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    images = PAGES / "images"
    ours = re.compile(rf"({'|'.join(TITLES)})-.*\.svg")
    stale = [path for path in sorted(images.glob("*.svg")) if ours.fullmatch(path.name) and path not in files]
    if check:
        wrong = [path for path, text in files.items() if not path.exists() or path.read_text() != text] + stale
        for path in wrong:
            print(f"{path.relative_to(PAGES.parents[2])}: not as the record gives it; run docs/verdicts.py")
        return 1 if wrong else 0
    images.mkdir(exist_ok=True)
    for path, text in files.items():
        path.write_text(text)
    for path in stale:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
