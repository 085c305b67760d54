"""The `narrows` command: `python -m narrows`, or the script that the package installs."""

from __future__ import annotations

import signal
import sys

from narrows import _narrows
from narrows.commands import IN_PYTHON


def main() -> int:
    """Do what the command line says, and return the exit code."""
    words = sys.argv[1:]
    if words and (command := IN_PYTHON.get(words[0])) is not None:
        return command(words[1:])
    if words[:1] == ["sweep"] and any(word == "--ray" or word.startswith("--ray=") for word in words):
        return IN_PYTHON["sweep --ray"](words[1:])
    # Until the command listens itself, Ctrl-C ends it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _narrows.run_command(["narrows", *words], [sys.executable, "-m", "narrows"])


if __name__ == "__main__":
    sys.exit(main())
