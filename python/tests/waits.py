"""Waits of tests that end."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator


@contextmanager
def within(seconds: float, child: subprocess.Popen[str]) -> Iterator[None]:
    """Kills a child after so long, which ends all waits for it, and also when its test fails."""

    def kill() -> None:
        print(f"not within {seconds} s, so it was killed: {child.args!r}")
        child.kill()

    timer = threading.Timer(seconds, kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if child.poll() is None:
            child.kill()
        child.wait(timeout=60)
