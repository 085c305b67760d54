"""Other programs' files become scenarios, as by `narrows import`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import narrows as nw

if TYPE_CHECKING:
    from pathlib import Path

LINKS = """from,to,rate,delay
a,left,100Gbps,1us
left,right,100Gbps,5ms
b,right,100Gbps,1us
"""
FLOWS = """start,src,dst,bytes
0us,a,b,20MB
1ms,b,a,5MB
"""
GOAL = """num_ranks 2
rank 0 {
l1: send 1000b to 1 tag 0
}
rank 1 {
l1: recv 1000b from 0 tag 0
}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in {"net.csv": LINKS, "flows.csv": FLOWS, "a.goal": GOAL}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_it_is_what_the_command_writes(files: Path) -> None:
    network = nw.import_network(files / "net.csv")
    assert network.name == "net"
    assert sorted(path.name for path in files.iterdir()) == ["a.goal", "flows.csv", "net.csv"]
    traffic = nw.import_traffic(files / "flows.csv", scenario=network, placement="packed")
    assert traffic.topology == network.topology

    def narrows(*words: str) -> None:
        subprocess.run([sys.executable, "-m", "narrows", "import", *words], check=True, capture_output=True, cwd=files, timeout=300)

    narrows("links", str(files / "net.csv"), "-o", "net.toml")
    assert nw.Scenario.load(files / "net.toml") == network
    narrows("flows", str(files / "flows.csv"), "--scenario", "net.toml", "--placement", "packed", "-o", "flows.toml")
    assert nw.Scenario.load(files / "flows.toml") == traffic
    assert nw.import_traffic(files / "flows.csv", scenario=files / "net.toml", placement="packed") == traffic
    results = nw.run(traffic, files / "out", progress=False)
    assert results.summary["flows"]["all"]["completed"] == 2  # type: ignore[call-overload]


def test_options_go_through(files: Path) -> None:
    network = nw.import_network(files / "net.csv", name="mine", hosts=3, host_rate="10Gbps")
    assert network.name == "mine"
    assert network != nw.import_network(files / "net.csv", name="mine")
    goal = nw.import_traffic([files / "a.goal"], eager="1KB")
    assert goal.traffic
    assert "1 message" in str(goal.description)


def test_a_long_list_of_flows_lies_beside_the_scenario(files: Path) -> None:
    many = "start,src,dst,bytes\n" + "".join(f"{number}us,a,b,1KB\n" for number in range(1200))
    (files / "many.csv").write_text(many, encoding="utf-8")
    network = nw.import_network(files / "net.csv")
    with pytest.raises(nw.ScenarioError, match=r"in a file beside the scenario, `many.*\nhelp: .*out=\"many\.toml\"") as caught:
        nw.import_traffic(files / "many.csv", scenario=network)
    assert caught.value.help
    made = nw.import_traffic(files / "many.csv", scenario=network, out=files / "made.toml")
    assert made == nw.Scenario.load(files / "made.toml")
    assert len(made.read().inputs()) == 0
    assert made.check() is not None
    # What somebody edited is not replaced.
    text = (files / "made.toml").read_text(encoding="utf-8").replace("name =", "name  =")
    (files / "made.toml").write_text(text, encoding="utf-8")
    with pytest.raises(nw.ScenarioError, match=r"made\.toml"):
        nw.import_traffic(files / "many.csv", scenario=network, out=files / "made.toml")
    assert (files / "made.toml").read_text(encoding="utf-8") == text


def test_errors_have_their_place(files: Path) -> None:
    (files / "bad.csv").write_text(LINKS.replace("5ms", "5parsec"), encoding="utf-8")
    with pytest.raises(nw.ScenarioError) as caught:
        nw.import_network(files / "bad.csv")
    assert (caught.value.file, caught.value.line) == (str(files / "bad.csv"), 3)


@pytest.mark.parametrize(
    ("call", "words", "what", "accepted"),
    [
        (nw.import_network, {"path": "a.foo"}, "`a.foo`: its ending does not say the format", "graphml, links"),
        (nw.import_network, {"path": "a.csv", "format": "link"}, "there is no format `link`", "did you mean `links`?"),
        (
            nw.import_network,
            {"path": "a.csv", "unit": "1Mbps"},
            "`unit` does not go with the format `links`",
            "its options are delay",
        ),
        (nw.import_network, {"path": "a.csv"}, "cannot read `a.csv`", ""),
        (nw.import_traffic, {"path": "a.csv", "size": "1MB"}, "`size` does not go with the format `flows`", "placement, scenario"),
        (nw.import_traffic, {"path": ["a.csv", "b.csv"]}, "2 files are given", "give one path"),
        (nw.import_traffic, {"path": []}, "no file is given", "expected a path"),
        (nw.import_traffic, {"path": "a.csv", "placement": "blck"}, "invalid value 'blck'", ""),
        (nw.import_traffic, {"path": "a.fct", "format": "hpcc"}, "needs a topology", "as `topology`"),
        (nw.import_traffic, {"path": "a.csv", "name": "b", "out": "c.toml"}, "`name` does not go with `out`", "as its file"),
    ],
)
def test_what_does_not_go_together_is_said(
    call: Any, words: dict[str, Any], what: str, accepted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(nw.ScenarioError) as caught:
        call(**words)
    assert what in str(caught.value)
    assert accepted in caught.value.help
    assert not list(tmp_path.iterdir())


def test_a_path_is_a_path() -> None:
    with pytest.raises(TypeError, match=r"3 is no path\nhelp: "):
        nw.import_network(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a int is no scenario"):
        nw.import_traffic("a.csv", scenario=3)  # type: ignore[arg-type]
