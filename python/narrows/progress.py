"""Progress of runs on a terminal, in a notebook, or as plain lines."""

from __future__ import annotations

import sys
import time
from typing import Any, Protocol

#: Seconds between two plain lines.
EVERY_S = 10.0
#: Characters of a bar.
WIDTH = 30


class Progress(Protocol):
    """Observer of the progress of runs."""

    def show(self, of: int, finished: int, running: list[float]) -> None:
        """Show the progress: number of runs, number of finished ones, and completed share of each run in progress."""

    def tell(self, text: str) -> None:
        """Show a message."""

    def end(self) -> None:
        """End the display."""


class Silent:
    """Progress that shows only warnings."""

    def show(self, of: int, finished: int, running: list[float]) -> None:
        """Show nothing."""

    def tell(self, text: str) -> None:
        """Print it on standard error."""
        print(text, file=sys.stderr)

    def end(self) -> None:
        """Do nothing."""


class Lines(Silent):
    """Progress as occasional plain lines, for logs."""

    def __init__(self) -> None:
        """Schedule the first line."""
        self.next = time.monotonic() + EVERY_S

    def show(self, of: int, finished: int, running: list[float]) -> None:
        """Print a line if the last one is old enough."""
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + EVERY_S
            print(said(of, finished, running), file=sys.stderr, flush=True)


class Terminal(Silent):
    """Progress as a bar on a terminal."""

    def show(self, of: int, finished: int, running: list[float]) -> None:
        """Draw the bar."""
        full = round(WIDTH * share(of, finished, running))
        bar = "█" * full + "░" * (WIDTH - full)
        print(f"\r{bar} {said(of, finished, running)}\x1b[K", end="", file=sys.stderr, flush=True)

    def tell(self, text: str) -> None:
        """Print it over the bar."""
        print(f"\r{text}\x1b[K", file=sys.stderr)

    def end(self) -> None:
        """Remove the bar."""
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class Notebook(Silent):
    """Progress as a bar in the output of a cell."""

    def __init__(self, display: Any, html: Any) -> None:
        """Draw an empty bar."""
        self.html = html
        self.handle = display(html(""), display_id=True)

    def show(self, of: int, finished: int, running: list[float]) -> None:
        """Draw the bar."""
        done = share(of, finished, running)
        text = f'<progress value="{done:.4f}" style="width: 20em"></progress> {said(of, finished, running)}'
        self.handle.update(self.html(text))

    def end(self) -> None:
        """Remove the bar."""
        self.handle.update(self.html(""))


def share(of: int, finished: int, running: list[float]) -> float:
    """Return the completed share of the work, from 0 to 1."""
    return min(1.0, (finished + sum(running)) / max(of, 1))


def said(of: int, finished: int, running: list[float]) -> str:
    """Return the progress as text."""
    runs = f"{finished} of {of} runs" if of > 1 else "running"
    return f"{runs}, {100 * share(of, finished, running):.0f} %"


def of_here(wanted: bool | Progress) -> Progress:
    """Return the display that suits the program's environment."""
    if not isinstance(wanted, bool):
        return wanted
    if not wanted:
        return Silent()
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    if instance is not None and hasattr(instance, "kernel"):
        from IPython.display import HTML, display

        return Notebook(display, HTML)
    return Terminal() if sys.stderr.isatty() else Lines()
