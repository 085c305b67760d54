#!/usr/bin/env python3
"""Runs the commands that the documentation shows, and compares what they print with what it says.

    docs/outputs.py [--update] [--all] [PAGE...]

A block ```console holds commands after `$ ` and their output. A block whose first line is `# NAME.toml` (or another
file name) is written to that file first. Each page runs in a directory of its own. Blocks ```console,slow run only
with --all, blocks ```console,norun never. With --update the pages are rewritten. The program is the `narrows` that
the PATH finds first.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.M | re.S)
PROGRESS = re.compile(r"^run \d+/\d+ .* left( in all)?\n", re.M)
FILE = re.compile(r"^# ([\w.-]+\.\w+)\n")


# A command of a page that takes longer hangs.
LONGEST_S = 3600


def run(command: str, directory: str) -> str:
    try:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_S,
        )
    except subprocess.TimeoutExpired:
        sys.exit(f"error: not within {LONGEST_S} s: `{command}` ends")
    # How far a long run has come depends on the machine.
    return PROGRESS.sub("", done.stdout).rstrip("\n")


def block(body: str, directory: str) -> str:
    commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
    parts = []
    for command in commands:
        output = run(command, directory)
        parts.append(f"$ {command}\n" + (output + "\n" if output else ""))
    return "".join(parts)


def page(path: Path, update: bool, slow: bool) -> bool:
    text = path.read_text()
    with tempfile.TemporaryDirectory() as directory:
        # The papers are looked for where a command runs, and some pages speak of the repository's root.
        for name in ("papers", "scenarios"):
            (Path(directory) / name).symlink_to(ROOT / name)

        def replaced(match: re.Match[str]) -> str:
            language, body = match.groups()
            kind, *options = language.split(",")
            if named := FILE.match(body):
                (Path(directory) / named.group(1)).write_text(body[named.end() :])
            if kind != "console" or "norun" in options or ("slow" in options and not slow):
                return match.group(0)
            return f"```{language}\n{block(body, directory)}```"

        new = FENCE.sub(replaced, text)
    if new == text:
        return True
    if update:
        path.write_text(new)
        print(f"updated {path.relative_to(ROOT)}")
        return True
    with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
        file.write(new)
        file.flush()
        subprocess.run(["diff", "-u", path, file.name])
    return False


def main() -> int:
    if not shutil.which("narrows"):
        print("no `narrows` in the PATH", file=sys.stderr)
        return 2
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    book = ROOT / "docs/src"
    pages = [Path(name).resolve() for name in arguments] or [
        ROOT / "README.md",
        *sorted(book.glob("*.md")),
        *sorted(book.glob("reference/import*.md")),
        *sorted(book.glob("reference/import/*.md")),
    ]
    same = [page(path, "--update" in sys.argv, "--all" in sys.argv) for path in pages]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
