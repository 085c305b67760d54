"""Pictures of figures as SVG: values with their 95 % intervals, a row per scheme or claim.

They have no script and no font of their own, and follow the reader's light or dark scheme.
"""

import math
from html import escape
from typing import NamedTuple

WIDTH = 720
ROW = 17
SIZE = 11.5
STYLE = """<style>
svg { --ground: #ffffff; --ink: #1a1f26; --ink-2: #57606c; --grid: #e6e9ee; --s0: #0067a5; --s1: #cf4d0a; --s2: #00866a; --s3: #a23f8f;
  --s4: #a87400; --s5: #2f97dc; --s6: #4a5058; --s7: #7a3b20; --good: #0a6b4f; --some: #a87400; --bad: #c23a2b; --off: #7a8494;
  font: 11.5px system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif; font-variant-numeric: tabular-nums; }
@media (prefers-color-scheme: dark) { svg { --ground: #181c23; --ink: #e6e9ee; --ink-2: #9aa5b3; --grid: #2d343f; --s0: #58aef0;
  --s1: #ff8a4c; --s2: #35c9a0; --s3: #e08ad0; --s4: #edc14a; --s5: #8fd6ff; --s6: #c3cad3; --s7: #c99076; --good: #63d3ab;
  --some: #ecc06a; --bad: #ff9a8b; --off: #9aa5b3; } }
text { fill: var(--ink); } .t { font-size: 13px; font-weight: 600; } .a { fill: var(--ink-2); font-size: 10.5px; }
.e { text-anchor: end; } .m { text-anchor: middle; } .g { stroke: var(--grid); fill: none; } .b { fill: var(--ground); }
.i { stroke-width: 1.3; fill: none; }
</style>"""


class Mark(NamedTuple):
    """A value of a row: `kind` indexes the legend."""

    amount: float
    half: float | None
    kind: int


class Panel(NamedTuple):
    """An axis and its marks by row; `dimension` is the base unit of the values, empty for plain numbers."""

    title: str
    dimension: str
    rows: list[tuple[str, list[Mark]]]


class Kind(NamedTuple):
    """An entry of the legend: a colour's name in the style sheet and a shape."""

    label: str
    colour: str
    shape: str


SHAPES = ("circle", "square", "triangle", "diamond")
SCALES = {
    "s": [(1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s")],
    "B": [(1.0, "B"), (1e3, "KB"), (1e6, "MB"), (1e9, "GB")],
    "bps": [(1e3, "kbps"), (1e6, "Mbps"), (1e9, "Gbps")],
    "%": [(0.01, "%")],
    "": [(1.0, "")],
}


def kinds_of(labels: list[str]) -> list[Kind]:
    return [Kind(label, f"s{at % 8}", SHAPES[at % 4]) for at, label in enumerate(labels)]


def width(text: str, size: float = SIZE) -> float:
    """An upper estimate: no font is measured."""
    narrow = sum(text.count(letter) for letter in "ilj.,:;'|!()[]tf ")
    wide = sum(text.count(letter) for letter in "mwMW@%") + sum(letter.isupper() for letter in text) * 0.6
    return size * (0.63 * len(text) - 0.25 * narrow + 0.24 * wide) + 1


def number(value: float) -> str:
    """A tick's label."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.6g}" if size < 10_000 else f"{value:,.0f}".replace(",", "\u202f")


class Axis:
    """A linear or logarithmic axis over the values of a panel, in one unit."""

    def __init__(self, panel: Panel, left: float, right: float) -> None:
        marks = [mark for _, row in panel.rows for mark in row if math.isfinite(mark.amount)]
        largest = max((abs(mark.amount) for mark in marks), default=1.0) or 1.0
        scales = SCALES[panel.dimension]
        self.div, self.unit = next(((div, unit) for div, unit in reversed(scales) if largest >= div * 0.9995), scales[0])
        self.left, self.right = left, right
        amounts = [mark.amount / self.div for mark in marks]
        positive = [amount for amount in amounts if amount > 0]
        negative = any(amount < 0 for amount in amounts)
        self.log = bool(positive) and not negative and max(positive) / min(positive) > 30
        # On a logarithmic axis zeros are at its left end.
        self.has_zero = self.log and len(positive) < len(amounts)
        if self.log:
            low, high = math.log10(min(positive)), math.log10(max(positive))
            pad = 0.06 * (high - low)
            self.low, self.high = low - pad - (0.09 * (high - low) if self.has_zero else 0), high + pad
        else:
            ends = [0.0]
            ends += [(mark.amount + sign * (mark.half or 0.0)) / self.div for mark in marks for sign in (-1, 1)]
            # An interval far beyond the values does not squeeze them.
            most = 3 * max((abs(amount) for amount in amounts), default=1.0) or 1.0
            self.low, self.high = max(-most, min(ends)), min(most, max(ends))
            if negative or self.low < 0 and min(amounts, default=0) >= 0:
                self.low = min(0.0, self.low if negative else max(self.low, -0.15 * self.high))
            self.high = self.high + 0.04 * (self.high - self.low) or 1.0

    def at(self, amount: float) -> float:
        """The place of a value in base units, within the axis."""
        value = amount / self.div
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        share = (value - self.low) / (self.high - self.low)
        return self.left + (self.right - self.left) * min(1.0, max(0.0, share))

    def ticks(self) -> list[tuple[float, str]]:
        room = max(2, int((self.right - self.left) / 48))
        if self.log:
            first, last = math.ceil(self.low), math.floor(self.high)
            powers = [10.0**power for power in range(first, last + 1)]
            if len(powers) < 3:
                powers = [step * 10.0**power for power in range(first - 1, last + 1) for step in (1, 2, 5)]
                powers = [value for value in powers if self.low <= math.log10(value) <= self.high]
            step = math.ceil(len(powers) / room)
            chosen = powers[::step]
            if self.has_zero:
                floor = self.low + 0.08 * (self.high - self.low)
                chosen = [value for value in chosen if math.log10(value) > floor]
            zero = [(self.left, "0")] if self.has_zero else []
            return zero + [(self.at(value * self.div), number(value)) for value in chosen]
        raw = (self.high - self.low) / room
        base = 10.0 ** math.floor(math.log10(raw))
        step = next(base * factor for factor in (1, 2, 5, 10) if base * factor >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        values = [step * place for place in range(first, math.floor(self.high / step + 1e-9) + 1)]
        return [(self.at(value * self.div), number(round(value, 12))) for value in values]


def shape(kind: Kind, x: float, y: float) -> str:
    fill = f'fill="var(--{kind.colour})"'
    x, y = round(x, 1), round(y, 1)
    if kind.shape == "square":
        return f'<rect x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4" {fill}/>'
    if kind.shape == "triangle":
        return f'<path d="M{x} {y - 4:g}l4 7h-8z" {fill}/>'
    if kind.shape == "diamond":
        return f'<path d="M{x} {y - 4.4:g}l4.4 4.4-4.4 4.4-4.4-4.4z" {fill}/>'
    return f'<circle cx="{x}" cy="{y}" r="3.5" {fill}/>'


def text(x: float, y: float, words: str, classes: str = "") -> str:
    of = f' class="{classes}"' if classes else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{of}>{escape(words, quote=False)}</text>'


def cut(words: str, room: float, size: float = SIZE) -> str:
    if width(words, size) <= room + 0.1:
        return words
    while words and width(words + "…", size) > room:
        words = words[:-1]
    return words.rstrip(" ,:;") + "…"


def wrapped(words: str, room: float, size: float) -> list[str]:
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if width(longer, size) <= room or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


class Sheet:
    """A picture that grows downwards."""

    def __init__(self, title: str, alt: str) -> None:
        self.parts: list[str] = []
        self.alt = alt
        self.y = 8.0
        for line in wrapped(title, WIDTH - 40, 13.5):
            self.y += 15
            self.parts.append(text(12, self.y, line, "t"))
        self.y += 8

    def legend(self, kinds: list[Kind]) -> None:
        x, self.y = 12.0, self.y + 14
        for kind in kinds:
            label = cut(kind.label, WIDTH - 60)
            room = 18 + width(label) + 14
            if x + room > WIDTH - 8 and x > 12:
                x, self.y = 12.0, self.y + 16
            self.parts.append(shape(kind, x + 7, self.y - 4))
            self.parts.append(text(x + 18, self.y, label))
            x += room
        self.y += 6

    def svg(self) -> str:
        height = math.ceil(self.y + 8)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">'
        lines = [head, f"<title>{escape(self.alt)}</title>", STYLE, f'<rect class="b" width="{WIDTH}" height="{height}" rx="6"/>']
        return "\n".join([*lines, *self.parts, "</svg>"]) + "\n"


def axis_words(axis: Axis, title: str) -> str:
    notes = [axis.unit] if axis.unit else []
    words = f"{title} ({', '.join(notes)})" if notes else title
    return f"{words}, logarithmic" if axis.log else words


def beside(sheet: Sheet, panels: list[Panel], kinds: list[Kind]) -> None:
    """Draws panels of the same rows beside each other."""
    names = [name for name, _ in panels[0].rows]
    label = min(250.0, max(width(name) for name in names) + 10)
    room = (WIDTH - label - 18) / len(panels)
    top = sheet.y + 4
    bottom = top + ROW * len(names)
    for at, name in enumerate(names):
        y = top + ROW * at + ROW / 2
        sheet.parts.append(text(label, y + 4, cut(name, label - 10), "e"))
    for place, panel in enumerate(panels):
        draw(sheet, panel, kinds, label + 12 + place * room, label + place * room + room - 10, top)
    sheet.y = bottom + 36


def below(sheet: Sheet, panel: Panel, kinds: list[Kind]) -> None:
    """Draws a panel with rows of its own."""
    label = min(250.0, max(width(name) for name, _ in panel.rows) + 10)
    top = sheet.y + 4
    for at, (name, _) in enumerate(panel.rows):
        sheet.parts.append(text(label, top + ROW * at + ROW / 2 + 4, cut(name, label - 10), "e"))
    draw(sheet, panel, kinds, label + 12, WIDTH - 14, top)
    sheet.y = top + ROW * len(panel.rows) + 38


def draw(sheet: Sheet, panel: Panel, kinds: list[Kind], left: float, right: float, top: float) -> None:
    axis = Axis(panel, left, right)
    bottom = top + ROW * len(panel.rows)
    ticks = axis.ticks()
    sheet.parts.append(f'<path class="g" d="{"".join(f"M{x:.1f} {top:g}V{bottom:g}" for x, _ in ticks)}M{left:.1f} {bottom:g}H{right:.1f}"/>')
    sheet.parts += [text(x, bottom + 13, label, "a m") for x, label in ticks]
    words = cut(axis_words(axis, panel.title), right - left + 8, 10.5)
    sheet.parts.append(text((left + right) / 2, bottom + 27, words, "a m"))
    for at, (_, marks) in enumerate(panel.rows):
        # Marks of a row lie a little apart, so that none hides another.
        for place, mark in enumerate(marks):
            offset = (place - (len(marks) - 1) / 2) * min(3.4, 9 / max(1, len(marks) - 1) if len(marks) > 1 else 0)
            y = top + ROW * at + ROW / 2 + offset
            kind = kinds[mark.kind]
            x = axis.at(mark.amount)
            if mark.half:
                low, high = axis.at(mark.amount - mark.half), axis.at(mark.amount + mark.half)
                if high - low > 7:
                    sheet.parts.append(f'<path class="i" stroke="var(--{kind.colour})" d="M{low:.1f} {y:.1f}H{high:.1f}"/>')
            sheet.parts.append(shape(kind, x, y))
        if not marks:
            sheet.parts.append(text(left + 4, top + ROW * at + ROW / 2 + 4, "no value", "a"))
