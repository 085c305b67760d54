#!/usr/bin/env python3
"""Checks numbers in the prose of the papers' pages against what was measured.

    docs/paper_numbers.py [PAGE...]

A comment right behind a number and its unit names the measurement that the number is of:

    a mean round trip of 13.7 ms<!--P fig9 mean-rtt-->
    2.9 times<!--P fig4 cubic-dcn x/78e-5-->

It has the scale (`Q` is the quick one, `P` the paper's), the figure (`PAPER/FIGURE` on a page that is not PAPER's), and a claim's id (`ID#2` for
the second value of several) or a cell of a table (`ROW:COLUMN`, words joined by `_`). The last word may be an expression in
`x`, the measured value in base units (seconds, bytes, bits per second, shares of one). The measured value is the one in
papers/PAPER/results of that scale. The number in prose must be its rounding: it may be off by half of a unit of its last digit,
and so may the half of an interval behind it where nothing is computed.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

import record
from record import ROOT, UNITS

MARK = re.compile(r"<!--(Q|P|quick|paper) ([^>]*?)-->")
SCALES = {"Q": "quick", "P": "paper"}
NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
BEHIND = re.compile(rf"({NUMBER})(?:\s?±\s?({NUMBER}))?(?:\s?([%µA-Za-z/]+))?\*{{0,2}}$")


class Fault(Exception):
    pass


def of_claim(scale: str, paper: str, figure: str, claim: str) -> str:
    claims = [row for row in record.read(paper, scale, "claims") if row["figure"] == figure]
    found = next((row for row in claims if row["id"] == claim), None)
    if found is None:
        known = ", ".join(row["id"] for row in claims) or "none"
        raise Fault(f"`{paper}/{figure}` has no recorded claim `{claim}` at the scale `{scale}`; there are: {known}")
    return found["measured"]


def of_table(scale: str, paper: str, figure: str, name: str) -> str:
    scheme, _, column = name.replace("_", " ").partition(":")
    for row in record.read(paper, scale, figure):
        if (row["scheme"], row["metric"]) == (scheme, column):
            half = f" ± {row['half']}" if row["half"] else ""
            return f"{row['mean']}{half} {row['unit']}".rstrip()
    raise Fault(f"no table of `{paper}/{figure}` has the row `{scheme}` and the column `{column}`")


class Value(NamedTuple):
    """A measured value in base units, half of its interval, and both as they are written."""

    amount: float
    margin: float | None
    written: str


def measured(scale: str, words: str, home: str) -> Value:
    """Returns the value that a mark on a page of the paper `home` names."""
    place, name, *expression = words.split()
    paper, figure = place.split("/", 1) if "/" in place else (home, place)
    name, _, number = name.partition("#")
    cell = of_table(scale, paper, figure, name) if ":" in name else of_claim(scale, paper, figure, name)
    found = record.values(cell)
    if len(found) < int(number or 1):
        raise Fault(f"`{cell}` has no number {number or 1}")
    value, half, _ = found[int(number or 1) - 1]
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


def check(text: str, mark: re.Match[str], home: str) -> None:
    """Compares the number before a mark on a page of the paper `home` with the value that it names."""
    before = MARK.sub("", text[: mark.start()]).rstrip()
    found = BEHIND.search(before)
    if not found:
        raise Fault(f"no number stands before the mark: `{before[-30:]}`")
    number, margin, unit = found.groups()
    scale = UNITS.get(unit or "", 1.0)
    value = measured(SCALES.get(mark.group(1), mark.group(1)), mark.group(2), home)
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
                check(text, mark, page.stem.removesuffix("-causes"))
            except (Fault, record.Fault, OSError, KeyError, ValueError, SyntaxError, NameError) as fault:
                bad += 1
                print(f"{page}:{text.count(chr(10), 0, mark.start()) + 1}: <!--{mark.group(1)} {mark.group(2)}-->: {fault}")
    print(f"{marks} numbers, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
