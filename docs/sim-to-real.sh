#!/usr/bin/env bash
# Makes the tables of docs/src/sim-to-real-tables.md: runs the scenarios of scenarios/sim-to-real simulated, then as real
# packets, several times, and puts them side by side. Needs root and a quiet machine: 14 minutes for each time. The part
# `virtual`, the transport in virtual time, needs neither: some 10 minutes, once.
#   cargo build --release -p narrows --features bpf && sudo env PATH="$PWD/target/release:$PATH" docs/sim-to-real.sh
#
#   NARROWS  the program; by default the `narrows` that the PATH finds first
#   TIMES    how often each scenario is sent; by default 5
#   PARTS    which scenarios; by default "virtual two eight deep transport". Rows of others stay as they are.
#   SET      a setting for all runs, such as stop=4s: a trial. PAGE and DATA then name copies that are written.
#   PAGE     the page; by default docs/src/sim-to-real-tables.md
#   DATA     the directory of the CSV files; by default docs/data/sim-to-real
#   OUT      where results are kept; by default out/sim-to-real
set -euo pipefail
cd "$(dirname "$0")/.."

narrows=${NARROWS:-narrows}
times=${TIMES:-5}
page=${PAGE:-docs/src/sim-to-real-tables.md}
data=${DATA:-docs/data/sim-to-real}
out=${OUT:-out/sim-to-real}
read -r -a parts <<< "${PARTS:-virtual two eight deep transport}"
settings=()
if [ -n "${SET:-}" ]; then
  if [ -z "${PAGE:-}" ] || [ -z "${DATA:-}" ]; then
    echo "SET is for trials: name the copies that are written, PAGE=FILE DATA=DIR" >&2
    exit 2
  fi
  settings=(--set "$SET")
fi
for part in "${parts[@]}"; do
  if ! [[ $part =~ ^(virtual|two|eight|deep|transport)$ ]]; then
    echo "PARTS: no scenario $part; there are virtual, two, eight, deep and transport" >&2
    exit 2
  fi
done
if ! [[ $times =~ ^[1-9][0-9]?$ ]]; then
  echo "TIMES=$times is not a number from 1 to 99" >&2
  exit 2
fi
if [ "$(id -u)" != 0 ] && [ "${parts[*]}" != virtual ]; then
  echo "real packets need root; about 14 minutes for each of $times times with it" >&2
  exit 2
fi
if ! command -v "$narrows" > /dev/null; then
  echo "no \`$narrows\`: build it (cargo build --release -p narrows --features bpf) and put it into the PATH" >&2
  exit 2
fi

mkdir -p "$out"
# What an earlier call compared, maybe more often: the page is of this one.
rm -f "$out"/{two,eight,deep,transport,stacks,virtual-two,virtual-eight,virtual-permutation,virtual-incast}-[0-9]*.json
real=()
for part in "${parts[@]}"; do
  if [ "$part" != virtual ]; then
    real+=("$part")
    continue
  fi
  for name in two eight permutation incast; do
    # Completion times are of complete runs.
    case $name in
      two | eight) window=() ;;
      *) window=(--from 0s) ;;
    esac
    "$narrows" run "scenarios/sim-to-real/transport-$name.toml" "${settings[@]}" --out "$out/virtual-$name-simulated"
    "$narrows" emulate "scenarios/sim-to-real/transport-$name.toml" --virtual "${settings[@]}" --out "$out/virtual-$name"
    "$narrows" compare "$out/virtual-$name-simulated" "$out/virtual-$name" --flows "${window[@]}" --json \
      > "$out/virtual-$name-1.json"
  done
done
for name in "${real[@]}"; do
  "$narrows" run "scenarios/sim-to-real/$name.toml" "${settings[@]}" --out "$out/$name-simulated"
done
# A scenario's name, and what `narrows emulate` is told beside it.
send() {
  local name=$1
  shift
  "$narrows" emulate "scenarios/sim-to-real/$name.toml" "$@" "${settings[@]}" --out "$out/$name-emulated-$time"
  "$narrows" compare "$out/$name-simulated" "$out/$name-emulated-$time" --flows --json > "$out/$name-$time.json"
}
# The same law over both stacks: the kernel's first.
send_both() {
  local kernel="$out/kernel-emulated-$time"
  "$narrows" emulate scenarios/sim-to-real/transport.toml --scheme unocc --gso-max-size 1500 "${settings[@]}" \
    --out "$kernel"
  "$narrows" compare "$kernel" "$out/transport-emulated-$time" --flows --json > "$out/stacks-$time.json"
}
for ((time = 1; time <= times; time++)); do
  for name in "${real[@]}"; do
    case $name in
      deep) send deep ;;
      transport)
        send transport --stack narrows --gso-max-size 1500
        send_both
        ;;
      *) send "$name" --gso-max-size 1500 ;;
    esac
  done
done

# All is measured: now the page.
python3 docs/sim_to_real.py "$out" "$data" "$page" "$("$narrows" --version), Linux $(uname -r), $(nproc) cores"
