"""Parsing of command-line words, and exit codes of commands."""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING, Any

from narrows import _narrows

if TYPE_CHECKING:
    from collections.abc import Callable

#: Exit codes, as of all commands.
FAILED, INPUT, INTERRUPTED = 1, 2, 130


def pair(text: str) -> tuple[str, str]:
    """Read `KEY=VALUE`."""
    key, found, value = text.partition("=")
    if not found:
        said = f"`{text}`: expected KEY=VALUE"
        raise ValueError(said)
    return key.strip(), value.strip()


def value_of(text: str) -> Any:
    """Return a TOML value, or text if it is not one."""
    try:
        return json.loads(_narrows.as_written(f"it = {text}", "--set"))["it"]
    except _narrows.ScenarioError:
        return text


def ended(work: Callable[[], int]) -> int:
    """Run a command's work, print its error, and return the exit code. SIGTERM interrupts it like Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return work()
    except (ValueError, OSError, ImportError) as error:
        print(error if str(error).startswith("error") else f"error: {error}", file=sys.stderr)
        return INPUT
    except _narrows.StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted: what is finished is kept; the same command goes on from there", file=sys.stderr)
        return INTERRUPTED
