"""The `narrows` command: `python -m narrows`, or the script that the package installs."""

from __future__ import annotations

import json
import signal
import sys

from narrows import _narrows, commands


def main() -> int:
    """Do what the command line says, and return the exit code."""
    words = sys.argv[1:]
    if words[:1] == ["sweep"] and any(word == "--ray" or word.startswith("--ray=") for word in words):
        return commands.cluster(words[1:])
    if (ours := _narrows.python_command(["narrows", *words])) is not None:
        name, options = ours
        return commands.IN_PYTHON[name](json.loads(options))
    # Until the command listens itself, Ctrl-C ends it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _narrows.run_command(["narrows", *words], [sys.executable, "-m", "narrows"])


if __name__ == "__main__":
    sys.exit(main())
