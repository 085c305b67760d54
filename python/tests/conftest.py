"""A small scenario that every test may run, a second or less; and skips that are counted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import narrows as nw
from narrows import config


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _count_skip(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _count_skip(report)


def _count_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Tells `make test` of a skip: it prints how many there were, last."""
    file = os.environ.get("NARROWS_SKIPPED")
    if file and report.skipped and isinstance(report.longrepr, tuple):
        why = " ".join(report.longrepr[2].removeprefix("Skipped: ").split())
        with Path(file).open("a", encoding="utf-8") as skips:
            skips.write(f"{report.nodeid}: {why}\n")


def scenario() -> nw.Scenario:
    """Two schemes at two loads."""
    return nw.Scenario(
        name="small",
        stop="2s",
        topology=config.Dumbbell(left=4, right=4, rate="10Gbps", delay="100us"),
        schemes={"dctcp": config.Scheme(law="dctcp"), "cubic": config.Scheme(law="cubic")},
        traffic=[config.Poisson(intra="websearch", load="30%", load_of="host", flows=30)],
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
