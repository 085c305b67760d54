"""The record of reproduced figures: CSV files in papers/PAPER/results/SCALE, as `narrows reproduce --results papers` writes them."""

import csv
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAPERS = ROOT / "papers"
SCALES = ("quick", "paper")
VERDICTS = ("reproduced", "direction only", "undecided", "not reproduced", "pending", "cannot judge")
OUTCOMES = ("shown", "in part", "undecided", "refuted", "nothing to explain", "cannot judge")
COLUMNS = {
    "figures": ("figure", "in_paper", "title", "scaled", "seeds", "version", "engine"),
    "claims": ("figure", "id", "claim", "paper", "measured", "verdict", "note", "seeds"),
    "causes": (
        "figure", "claim", "cause", "text", "change", "measured", "with_change", "outcome", "removed_percent", "seeds", "engine",
    ),
    "scores": ("network", "table", "scheme", "metric", "value", "half", "low", "high", "unit", "note"),
}  # fmt: skip
TABLE = ("table", "point", "scheme", "metric", "mean", "half", "unit", "note")
# The table of initial windows: the words are in `note`.
WINDOWS = "initial window"

Row = dict[str, str]


class Fault(Exception):
    """An error in a file: its name, the line, the value and what is accepted."""


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def rows(path: Path, columns: tuple[str, ...]) -> list[Row]:
    """Returns the rows of a file, by column."""
    found: list[Row] = []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file, strict=True)
        try:
            for number, fields in enumerate(reader):
                if number == 0:
                    if tuple(fields) != columns:
                        raise Fault(f"{shown(path)}:1: columns `{','.join(fields)}`; expected `{','.join(columns)}`")
                elif len(fields) != len(columns):
                    raise Fault(f"{shown(path)}:{reader.line_num}: {len(fields)} fields; expected {len(columns)}")
                else:
                    found.append(dict(zip(columns, fields, strict=True)))
        except (csv.Error, UnicodeDecodeError) as error:
            raise Fault(f"{shown(path)}:{reader.line_num}: {error}; expected CSV in UTF-8") from error
    return found


def read(paper: str, scale: str, name: str) -> list[Row]:
    """Returns the rows of `figures`, `claims`, `causes`, `scores` or a figure; none where the file does not exist."""
    path = PAPERS / paper / "results" / scale / f"{name}.csv"
    if not path.exists():
        return []
    found = rows(path, COLUMNS.get(name, TABLE))
    for number, row in enumerate(found):
        # The program writes one line per row.
        place = f"{shown(path)}:{number + 2}"
        for column, accepted in (("verdict", VERDICTS), ("outcome", OUTCOMES)):
            if column in row and row[column] not in accepted:
                raise Fault(f"{place}: {column} `{row[column]}`; expected one of: {', '.join(accepted)}")
        for column in ("mean", "half", "value", "low", "high"):
            if not re.fullmatch(rf"({NUMBER}|never)?", row.get(column, "")):
                raise Fault(f"{place}: {column} `{row[column]}`; expected a number, `never` or nothing")
    return found


class Value(NamedTuple):
    """A number with half of its 95 % interval, in base units: seconds, bytes, bits per second, shares of one."""

    amount: float
    half: float | None
    unit: str


UNITS = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "seconds": 1.0,
    "B": 1.0, "KB": 1e3, "kB": 1e3, "MB": 1e6, "GB": 1e9,
    "kbps": 1e3, "kb/s": 1e3, "Mbps": 1e6, "Mb/s": 1e6, "Gbps": 1e9, "Gb/s": 1e9, "Tbps": 1e12,
    "%": 0.01,
}  # fmt: skip
NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
MEASURED = re.compile(rf"({NUMBER})(?:\s([%µA-Za-z/]+))?(?:\s±\s({NUMBER})(?:\s([%µA-Za-z/]+))?)?")


def values(text: str) -> list[Value]:
    """Returns the numbers of a text such as `2.14 ± 0.85`, `34.6 ± 9.2 ms against 39.2 ± 6.2 ms` or `1.5 ms ± 3 ns`."""
    found = []
    for match in MEASURED.finditer(text):
        number, own, margin, common = match.groups()
        own, common = (unit if unit in UNITS else None for unit in (own, common))
        unit, of_margin = own or common or "", common or own or ""
        amount = float(number.replace(",", "")) * UNITS.get(unit, 1.0)
        half = float(margin.replace(",", "")) * UNITS.get(of_margin, 1.0) if margin else None
        found.append(Value(amount, half, unit))
    return found


def cell(row: Row) -> Value | None:
    """Returns the value of a row of a figure's tables; none for `never`."""
    if not re.fullmatch(NUMBER, row["mean"]):
        return None
    factor = UNITS.get(row["unit"], 1.0)
    half = float(row["half"]) * factor if row["half"] else None
    return Value(float(row["mean"]) * factor, half, row["unit"])


def natural(name: str) -> tuple[str, int, str]:
    """Orders `fig9` before `fig10`."""
    match = re.match(r"(\D*)(\d*)(.*)", name, re.S)
    assert match
    return match[1], int(match[2] or 0), match[3]
