#!/usr/bin/env python3
"""Checks numbers in the prose of the papers' pages against what was measured.

    docs/paper_numbers.py [PAGE...]

A comment right behind a number and its unit names the measurement that the number is of:

    a mean round trip of 13.7 ms<!--paper gemini/fig9 mean-rtt-->
    2.9 times<!--paper gemini/fig4 cubic-dcn x/78e-5-->

It has the scale (`quick` or `paper`), the figure, and a claim's id (`ID#2` for the second value of several) or a cell of a table (`ROW:COLUMN`,
words joined by `_`). The last word may be an expression in `x`, the measured value in base units (seconds, bytes, bits per
second, shares of one). The measured value is the one in the results page of that scale. The number in prose must be its rounding: it may be off
by half of a unit of its last digit, and so may the half of an interval behind it where nothing is computed.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/src/papers"
MARK = re.compile(r"<!--(quick|paper) ([^>]*?)-->")
NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
BEHIND = re.compile(rf"({NUMBER})(?:\s?±\s?({NUMBER}))?(?:\s?([%µA-Za-z/]+))?\*{{0,2}}$")
MEASURED = re.compile(rf"({NUMBER}(?:e-?\d+)?)(?:\s±\s({NUMBER}(?:e-?\d+)?))?(?:\s([%µA-Za-z/]+))?")
UNITS = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "seconds": 1.0,
    "B": 1.0, "KB": 1e3, "kB": 1e3, "MB": 1e6, "GB": 1e9,
    "Mbps": 1e6, "Gbps": 1e9, "Mb/s": 1e6, "Gb/s": 1e9, "kbps": 1e3, "kb/s": 1e3,
    "%": 0.01,
}  # fmt: skip


class Fault(Exception):
    pass


def results(scale: str, figure: str) -> str:
    """Returns the section of a figure in the results page of a scale."""
    paper = figure.split("/")[0]
    names = [f"{paper}-results.md"] if scale == "quick" else ["uno-paper-size.md", "paper-size.md"]
    for name in names:
        page = (PAGES / name).read_text()
        for section in page.split("\n## ")[1:]:
            if re.split(r",|\n", section, maxsplit=1)[0] == figure:
                return section
    raise Fault(f"no section `{figure}` in {' or '.join(names)}")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def of_claim(section: str, figure: str, claim: str) -> str:
    file = tomllib.loads((ROOT / "papers" / f"{figure}.toml").read_text())
    claims = file.get("claim", [])
    place = next((place for place, it in enumerate(claims) if it["id"] == claim), None)
    if place is None:
        raise Fault(f"`{figure}` has no claim `{claim}`; there are: {', '.join(it['id'] for it in claims)}")
    head = "| claim | paper | measured | verdict |"
    rows = section.partition(head)[2].splitlines()[2 : 2 + len(claims)]
    row = cells(rows[place]) if place < len(rows) else []
    if not row or row[0] != claims[place]["text"].replace("|", "\\|").replace("\n", " "):
        raise Fault(f"claim `{claim}` is not in its place in the section of `{figure}`")
    return row[2]


def of_table(section: str, name: str) -> str:
    row_name, _, column = name.replace("_", " ").partition(":")
    header: list[str] = []
    for line in section.splitlines():
        row = cells(line) if line.startswith("|") else []
        if not row:
            header = []
        elif not header:
            header = row
        elif row[0] == row_name and column in header:
            return row[header.index(column)]
    raise Fault(f"no table has the row `{row_name}` and the column `{column}`")


class Value(NamedTuple):
    """A measured value in base units, half of its interval, and both as they are written."""

    amount: float
    margin: float | None
    written: str


def measured(scale: str, words: str) -> Value:
    figure, name, *expression = words.split()
    section = results(scale, figure)
    name, _, place = name.partition("#")
    cell = of_table(section, name) if ":" in name else of_claim(section, figure, name)
    values = list(MEASURED.finditer(cell))
    if len(values) < int(place or 1):
        raise Fault(f"`{cell}` has no number {place or 1}")
    number, margin, unit = values[int(place or 1) - 1].groups()
    factor = UNITS.get(unit or "", 1.0)
    value = float(number.replace(",", "")) * factor
    half = float(margin.replace(",", "")) * factor if margin else None
    if not expression:
        return Value(value, half, cell)
    if not re.fullmatch(r"(?:abs|[-+*/().\dex])+", "".join(expression)):
        raise Fault(f"`{' '.join(expression)}` is no expression in x")
    return Value(eval("".join(expression), {"__builtins__": {}}, {"x": value, "abs": abs}), None, cell)  # noqa: S307


def rounding(number: str) -> float:
    """Returns half of a unit of the last digit. Whole numbers from 100 on may end in one zero that is none."""
    whole, _, decimals = number.replace(",", "").partition(".")
    if decimals:
        return 0.5 * 10.0 ** -len(decimals)
    return 5.0 if whole.endswith("0") and len(whole.strip("-")) > 2 else 0.5


def check(text: str, mark: re.Match[str]) -> None:
    """Compares the number before a mark with the value that it names."""
    before = MARK.sub("", text[: mark.start()]).rstrip()
    found = BEHIND.search(before)
    if not found:
        raise Fault(f"no number stands before the mark: `{before[-30:]}`")
    number, margin, unit = found.groups()
    scale = UNITS.get(unit or "", 1.0)
    value = measured(mark.group(1), mark.group(2))
    for said, amount in [(number, value.amount), (margin, value.margin)]:
        if said is None or amount is None:
            continue
        if abs(float(said.replace(",", "")) * scale - amount) > rounding(said) * scale * (1 + 1e-9) + 1e-12:
            raise Fault(f"`{found.group(0)}`, and measured is `{value.written}` ({amount:.6g} in base units)")


def main() -> int:
    pages = [Path(page) for page in sys.argv[1:]] or sorted((ROOT / "docs/src").rglob("*.md"))
    bad = marks = 0
    for page in pages:
        text = page.read_text()
        for mark in MARK.finditer(text):
            marks += 1
            try:
                check(text, mark)
            except (Fault, OSError, KeyError, ValueError, SyntaxError, NameError) as fault:
                bad += 1
                print(f"{page}:{text.count(chr(10), 0, mark.start()) + 1}: <!--{mark.group(1)} {mark.group(2)}-->: {fault}")
    print(f"{marks} numbers, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
