"""Import of other programs' files as scenarios, as by `narrows import`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from narrows import _given, _narrows
from narrows.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    Network = Literal["graphml", "links", "containerlab", "sndlib"]
    Traffic = Literal["flows", "netflow", "pcap", "goal", "chakra", "msccl", "simai", "htsim", "hpcc"]

#: Formats of networks, with their options.
NETWORKS = {
    "graphml": {"unit", "delay_unit", "rate", "delay", "hosts", "host_rate"},
    "links": {"rate", "delay", "hosts", "host_rate"},
    "containerlab": {"rate", "delay", "hosts", "host_rate"},
    "sndlib": {"unit", "rate", "delay", "hosts", "host_rate"},
}
#: Formats of traffic, with their options.
TRAFFIC = {
    "flows": {"scenario", "placement"},
    "netflow": {"scenario", "placement"},
    "pcap": {"scenario", "placement"},
    "goal": {"scenario", "placement", "eager"},
    "chakra": {"scenario", "placement", "groups"},
    "msccl": {"scenario", "placement", "size"},
    "simai": {"scenario", "placement", "passes", "ranks"},
    "htsim": {"topology", "start_unit"},
    "hpcc": {"topology", "config"},
}
#: Formats by file ending.
NETWORK_ENDINGS = {".graphml": "graphml", ".csv": "links", ".yml": "containerlab", ".yaml": "containerlab"}
TRAFFIC_ENDINGS = {
    ".csv": "flows",
    ".pcap": "pcap",
    ".pcapng": "pcap",
    ".goal": "goal",
    ".et": "chakra",
    ".xml": "msccl",
    ".cm": "htsim",
}


def import_network(
    path: str | Path,
    *,
    format: Network | None = None,  # noqa: A002
    name: str | None = None,
    rate: str | None = None,
    delay: str | None = None,
    unit: str | None = None,
    delay_unit: str | None = None,
    hosts: int | None = None,
    host_rate: str | None = None,
    out: str | Path | None = None,
) -> Scenario:
    """Return the network in another program's file as a scenario; its `description` says what differs from the original.

    `format` is `"graphml"`, `"links"` (CSV), `"containerlab"` or `"sndlib"`; by default the file's ending says it. `rate` and
    `delay` are those of links of which the file has none, `hosts` is how many each switch gets, `host_rate` the rate of their
    links, `unit` and `delay_unit` one unit of a rate and a delay in the file. The scenario is called `name`, by default as the
    file. With `out` it is written, too, as `narrows import ... -o out` does.

    Raises `ScenarioError` where a file is wrong, with its line, or something asked for does not go with the format.
    """
    given = {"rate": rate, "delay": delay, "unit": unit, "delay_unit": delay_unit, "hosts": hosts, "host_rate": host_rate}
    kind = _format(path, format, NETWORKS, NETWORK_ENDINGS)
    return _imported(kind, [_path(path)], NETWORKS[kind], given, None, name, out)


def import_traffic(
    path: str | Path | Sequence[str | Path],
    *,
    format: Traffic | None = None,  # noqa: A002
    scenario: Scenario | str | Path | None = None,
    placement: Literal["block", "cyclic", "packed"] | None = None,
    name: str | None = None,
    groups: str | Path | None = None,
    size: str | None = None,
    eager: str | None = None,
    passes: int | None = None,
    ranks: int | None = None,
    topology: str | Path | None = None,
    config: str | Path | None = None,
    start_unit: Literal["ps", "us"] | None = None,
    out: str | Path | None = None,
) -> Scenario:
    """Return the traffic in another program's file as a scenario; its `description` says what differs from the original.

    `format` is `"flows"` (CSV), `"netflow"`, `"pcap"`, `"goal"`, `"chakra"` (`path` is a list, a trace a rank), `"msccl"`,
    `"simai"`, `"htsim"` (a connection matrix) or `"hpcc"` (flows); by default the file's ending says it. `scenario` is the one
    whose network, ports, hosts and schemes are used, and `placement` says on which hosts ranks are. The others are options of
    `narrows import`, each of some formats: `groups` (chakra), `size` (msccl), `eager` (goal), `passes` and `ranks` (simai),
    `topology` (htsim, hpcc), `config` (hpcc), `start_unit` (htsim).

    The scenario is called `name`, by default as the file. With `out` it is written, too, as `narrows import ... -o out` does.
    More than a thousand flows need it: they lie in a file beside the scenario.

    Raises `ScenarioError` where a file is wrong, with its line, or something asked for does not go with the format.
    """
    several = [_path(path)] if isinstance(path, (str, os.PathLike)) else [_path(it) for it in path]
    if not several:
        raise _given.wrong("no file is given", "expected a path, or a list of paths")
    given: dict[str, Any] = {"placement": placement, "size": size, "eager": eager, "passes": passes, "ranks": ranks}
    given |= {"groups": groups, "topology": topology, "config": config, "start_unit": start_unit, "scenario": scenario}
    kind = _format(several[0], format, TRAFFIC, TRAFFIC_ENDINGS)
    _refuse_others(kind, given, TRAFFIC[kind])
    if len(several) > 1 and kind != "chakra":
        raise _given.wrong(f"{len(several)} files are given, and traffic in the format `{kind}` is in one", "give one path")
    base = given.pop("scenario")
    if kind == "htsim":
        several += [_path(given.pop("topology"))] if topology is not None else []
    elif kind == "hpcc":
        if topology is None:
            raise _given.wrong("the format `hpcc` needs a topology", "give the topology's file as `topology`")
        several = [_path(topology), *several, *([] if config is None else [_path(config)])]
    files = {"topology", "config"}
    rest = {key: value for key, value in given.items() if key not in files}
    return _imported(kind, several, TRAFFIC[kind], rest, _base(base), name, out)


def _imported(
    kind: str,
    files: list[str],
    accepted: set[str],
    given: dict[str, Any],
    base: tuple[str, str] | None,
    name: str | None,
    out: str | Path | None,
) -> Scenario:
    """Run `narrows import`."""
    _refuse_others(kind, given, accepted)
    if name is not None and out is not None:
        raise _given.wrong("`name` does not go with `out`", "a scenario that is written is called as its file")
    target = _path(out) if out is not None else f"{name if name is not None else Path(files[-1]).stem}.toml"
    words = ["narrows", "import", kind]
    for key, value in given.items():
        if value is not None:
            words.append(f"--{key.replace('_', '-')}={value}")
    text, flows, _ = _narrows.import_files([*words, f"--out={target}", "--", *files], base=base, written=out is not None)
    if flows is not None and out is None:
        raise _given.wrong(
            f"the traffic has so many flows that they lie in a file beside the scenario, `{flows}`",
            f'give the scenario\'s file, as in out="{target}"',
        )
    return Scenario.from_toml(text, source=target)


def _refuse_others(kind: str, given: dict[str, Any], accepted: set[str]) -> None:
    for key, value in given.items():
        if value is not None and key not in accepted:
            raise _given.wrong(f"`{key}` does not go with the format `{kind}`", f"its options are {', '.join(sorted(accepted))}")


def _format(path: Any, given: str | None, known: dict[str, set[str]], endings: dict[str, str]) -> str:
    """Return the given format, or that of the file's ending."""
    if given is not None:
        if given not in known:
            raise _given.unknown(f"there is no format `{given}`", given, known)
        return given
    ending = Path(_path(path)).suffix.lower()
    if ending not in endings:
        what = f"`{_path(path)}`: its ending does not say the format"
        raise _given.wrong(what, f"give `format`: {', '.join(known)}")
    return endings[ending]


def _path(value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(_given.said(f"{value!r} is no path", "expected text or a pathlib.Path"))
    return str(os.fspath(value))


def _base(scenario: Scenario | str | Path | None) -> tuple[str, str] | None:
    """Return the text of the scenario with the network, and its name in errors."""
    if scenario is None:
        return None
    if isinstance(scenario, Scenario):
        return scenario.to_toml(), str(scenario.source or f"{scenario.name}.toml")
    path = _given.path_of_scenario(scenario)
    return _narrows.text_of(path), path
