#!/usr/bin/env bash
# Makes the tables of docs/src/sim-to-real.md: runs the scenarios of scenarios/sim-to-real simulated, then as real
# packets, and puts the two side by side. Needs root and a quiet machine, and takes about 9 minutes.
#   cargo build --release -p narrows --features bpf && sudo env PATH="$PWD/target/release:$PATH" docs/sim-to-real.sh
#
#   NARROWS  the program; by default the `narrows` that the PATH finds first
#   SET      a setting for all runs, such as stop=4s: a trial. Then PAGE says which copy of the page is written.
#   PAGE     the page; by default docs/src/sim-to-real.md
#   OUT      where results are kept; by default out/sim-to-real
set -euo pipefail
cd "$(dirname "$0")/.."

narrows=${NARROWS:-narrows}
page=${PAGE:-docs/src/sim-to-real.md}
out=${OUT:-out/sim-to-real}
settings=()
if [ -n "${SET:-}" ]; then
  if [ -z "${PAGE:-}" ]; then
    echo "SET is for trials: name the copy of the page that is written, PAGE=FILE" >&2
    exit 2
  fi
  settings=(--set "$SET")
fi
if [ "$(id -u)" != 0 ]; then
  echo "real packets need root; about 9 minutes with it" >&2
  exit 2
fi
if ! command -v "$narrows" > /dev/null; then
  echo "no \`$narrows\`: build it (cargo build --release -p narrows --features bpf) and put it into the PATH" >&2
  exit 2
fi

mkdir -p "$out"
# A scenario's name, and what `narrows emulate` is told beside it.
side_by_side() {
  local name=$1
  shift
  local scenario=scenarios/sim-to-real/$name.toml
  "$narrows" run "$scenario" "${settings[@]}" --out "$out/$name-simulated"
  "$narrows" emulate "$scenario" "$@" "${settings[@]}" --out "$out/$name-emulated"
  "$narrows" compare "$out/$name-simulated" "$out/$name-emulated" --flows --page "$out/$name.md"
}
side_by_side two --burst 1500
side_by_side eight --burst 1500
side_by_side deep

# All is measured: now the page.
python3 - "$page" "$out" "$("$narrows" --version), Linux $(uname -r), $(nproc) cores" << 'END'
import json
import re
import sys
from pathlib import Path

page, out, machine = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
names = ("two", "eight", "deep")


def emulator() -> str:
    """How late the emulator was, a row a run."""
    lines = ["| scenario | run | late by, p50 | p99 | most | of a core | in the way of the network |"]
    lines.append("|---|---|--:|--:|--:|--:|---|")
    for name in names:
        for run in json.loads((out / f"{name}-emulated/summary.json").read_text())["runs"]:
            it = run["emulator"]
            late = [f"{it[f'lateness_{key}_ns'] / 1e3:.0f} us" for key in ("p50", "p99", "max")]
            why = (it["bottleneck"] or "no").replace("|", "\\|")
            cells = [name, run["label"], *late, f"{it['cpu_share'] * 100:.0f} %", why]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# Without the last line, a comment by which narrows knows its pages again.
parts = {name: (out / f"{name}.md").read_text().strip().rpartition("\n<!--")[0].strip() for name in names}
parts["emulator"] = emulator()
parts["machine"] = f"Measured with {machine}."
text = page.read_text()
for name, part in parts.items():
    marked = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.S)
    if len(marked.findall(text)) != 1:
        sys.exit(f"{page}: not exactly one part `<!-- generated: {name} -->` to `<!-- end -->`")
    text = marked.sub(lambda found: f"{found.group(1)}\n{part}\n\n{found.group(2)}", text)
page.write_text(text)
print(f"wrote {page}")
END
