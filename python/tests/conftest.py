"""A small scenario that every test may run: a second or less."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import narrows as nw
from narrows import tables

if TYPE_CHECKING:
    from pathlib import Path


def scenario() -> nw.Scenario:
    """Two schemes at two loads."""
    return nw.Scenario(
        name="small",
        stop="2s",
        topology=tables.Dumbbell(left=4, right=4, rate="10Gbps", delay="100us"),
        schemes={"dctcp": tables.Scheme(law="dctcp"), "cubic": tables.Scheme(law="cubic")},
        traffic=[tables.Poisson(intra="websearch", load="30%", load_of="host", flows=30)],
        grid={"traffic.0.load": ["20%", "40%"]},
    )


@pytest.fixture
def small() -> nw.Scenario:
    return scenario()


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> nw.Results:
    """The small scenario over three seeds."""
    out: Path = tmp_path_factory.mktemp("results") / "small"
    return nw.run(scenario(), out, seeds=3, progress=False)
