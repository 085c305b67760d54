"""Scenarios as objects, and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import narrows as nw
from narrows import config
from narrows._table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
FILES = sorted([*ROOT.glob("scenarios/*.toml"), *ROOT.glob("papers/*/*.toml")])


def test_there_are_files() -> None:
    assert len(FILES) > 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_becomes_an_object_and_the_same_file_again(path: Path) -> None:
    made = nw.Scenario.load(path)
    again = nw.Scenario.from_toml(made.to_toml(), source=path)
    assert again == made
    assert made.read().resolved() == again.read().resolved()
    assert made.read().runs() == again.read().runs()


def test_tables_are_typed() -> None:
    made = nw.Scenario.load(ROOT / "scenarios/training.toml")
    assert isinstance(made.topology, Table)
    assert made.traffic
    assert all(isinstance(it, Table) for it in made.traffic)


def test_plain_dictionaries_do(small: nw.Scenario) -> None:
    small.schemes = {"dctcp": {"law": "dctcp"}}  # type: ignore[dict-item]
    assert small.runs() == ["dctcp,traffic.0.load=20%", "dctcp,traffic.0.load=40%"]


def test_any_sequence_is_a_list_of_the_file(small: nw.Scenario) -> None:
    # Type checkers accept these, too: fields are of `Sequence`.
    several: Sequence[config.Poisson] = (config.Poisson(intra="websearch", load=0.3, load_of="host", flows=30),)
    made = small.replace(traffic=several, grid={"seed": np.array([1, 2]), "traffic.0.load": ("20%", "40%")}, sizes=None)
    flows = config.FlowList(flows=[config.Flow(src=0, dst=int(dst), size="1KB") for dst in range(1, 3)])
    made = made.replace(traffic=[*several, flows])
    assert made.runs()[:2] == small.replace(grid={"seed": [1, 2], "traffic.0.load": ["20%", "40%"]}).runs()[:2]
    assert nw.Scenario.from_toml(made.to_toml()).to_toml() == made.to_toml()
    listed = small.replace(traffic=list(several))
    assert small.replace(traffic=several) == listed == nw.Scenario.from_toml(listed.to_toml())
    assert config.InterPair(between=range(2)).to_dict() == {"between": [0, 1]}


def test_words_of_python_have_an_underscore() -> None:
    cable = config.Cable(between=["a", "b"], rate="1Gbps", delay="1us", class_="edge")
    assert cable.to_dict()["class"] == "edge"
    flow = config.Poisson(load=0.5, traffic_class=1, from_="dc0")
    assert flow.to_dict() == {"kind": "poisson", "load": 0.5, "traffic_class": 1, "from": "dc0"}
    assert config.Poisson.from_dict(flow.to_dict()) == flow


def test_the_classes_are_those_of_the_schema() -> None:
    sys.path.insert(0, str(ROOT / "python"))
    import generate

    made = generate.module()
    assert (ROOT / "python/narrows/config.py").read_text(encoding="utf-8") == made, (
        "run: python python/generate.py > config.new && mv config.new python/narrows/config.py"
    )


def test_errors_have_their_place(small: nw.Scenario) -> None:
    text = small.to_toml().replace('kind = "poisson"', 'kind = "poison"')
    with pytest.raises(nw.ScenarioError) as caught:
        nw.Scenario.from_toml(text, source="mine.toml")
    assert (caught.value.file, caught.value.column) == ("mine.toml", 8)
    assert text.splitlines()[(caught.value.line or 0) - 1] == 'kind = "poison"'
    assert caught.value.help == "did you mean `poisson`?"
    with pytest.raises(nw.ScenarioError, match="unknown key `lod`"):
        nw.run(small, vary={"traffic.0.lod": ["20%"]})
    with pytest.raises(nw.ScenarioError, match=r"cannot read `nowhere\.toml`"):
        nw.Scenario.load("nowhere.toml")


def test_no_value_of_a_file_is_refused(small: nw.Scenario, tmp_path: Path) -> None:
    small.title = object()  # type: ignore[assignment]
    with pytest.raises(TypeError, match="no value of a scenario file"):
        small.to_toml()
    with pytest.raises(TypeError, match="no value of a scenario file"):
        small.save(tmp_path / "none.toml")
    assert not (tmp_path / "none.toml").exists()
    with pytest.raises(TypeError, match="`Dumbbell` has no field `lef`"):
        config.Dumbbell(lef=4)  # type: ignore[call-arg]


def test_a_file_is_not_overwritten(small: nw.Scenario, tmp_path: Path) -> None:
    small.save(tmp_path / "one.toml")
    with pytest.raises(FileExistsError):
        small.save(tmp_path / "one.toml")
    assert nw.Scenario.load(tmp_path / "one.toml") == small


def test_it_is_checked_without_running(small: nw.Scenario) -> None:
    assert small.check() == {}
    assert small.read(seeds=2).runs()[:2] == ["dctcp,traffic.0.load=20%,seed=1", "cubic,traffic.0.load=20%,seed=1"]
    assert "buffer" in small.resolved()
