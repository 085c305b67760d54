"""Sweeps on a real Ray of several workers, one of which is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import narrows as nw
from narrows import config

ray = pytest.importorskip("ray", reason="Ray is not installed")

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def workers() -> list[int]:
    """Processes that do a task now."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                name = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if name.startswith(b"ray::_some"):
                found.append(int(process.name))
    return found


def same(one: nw.Results, other: nw.Results) -> bool:
    """Whether all tables have the same bytes."""
    files = ("flows.parquet", "port_samples.parquet", "flow_samples.parquet")
    pairs = zip(one, other, strict=True)
    return all((a.directory / file).read_bytes() == (b.directory / file).read_bytes() for a, b in pairs for file in files)


@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_costs_no_byte(small: nw.Scenario, tmp_path: Path) -> None:
    (traffic,) = small.traffic or []
    traffic.flows = 3000  # type: ignore[union-attr]
    killed: list[int] = []

    def kill_one() -> None:
        ends = time.monotonic() + 60
        while not killed and time.monotonic() < ends:
            for process in workers()[:1]:
                time.sleep(0.3)
                os.kill(process, signal.SIGKILL)
                killed.append(process)
            time.sleep(0.02)

    killer = threading.Thread(target=kill_one)
    killer.start()
    done = nw.sweep(small, tmp_path / "cluster", seeds=2, cluster="ray", progress=False)
    killer.join(timeout=120)
    assert killed, "no worker was seen"
    here = nw.run(small, tmp_path / "here", seeds=2, progress=False)
    assert len(done) == 8
    assert same(done, here)
    assert not (tmp_path / "cluster.parts").exists()
    # A second call gives nothing to the cluster.
    began = time.monotonic()
    again = nw.sweep(small, tmp_path / "cluster", seeds=2, cluster="ray", progress=False)
    assert same(again, here)
    assert time.monotonic() - began < 30


@pytest.mark.filterwarnings("ignore")
def test_a_sweep_with_more_points_does_what_is_missing(small: nw.Scenario, tmp_path: Path) -> None:
    nw.sweep(small, tmp_path / "out", vary={"seed": [1, 2]}, cluster="ray", progress=False)
    more = nw.sweep(small, tmp_path / "out", vary={"seed": [1, 2, 3]}, cluster="ray", progress=False)
    assert same(more, nw.run(small, tmp_path / "here", vary={"seed": [1, 2, 3]}, progress=False))


@pytest.mark.filterwarnings("ignore")
def test_what_is_wrong_is_said(small: nw.Scenario, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected cluster="):
        nw.sweep(small, tmp_path / "out", cluster="slurm")
    with pytest.raises(nw.ScenarioError, match="unknown key"):
        nw.sweep(small, tmp_path / "out", set={"seedd": 1}, cluster="ray")
    with pytest.raises(FileExistsError, match="choose another directory"):
        nw.sweep(small, tmp_path, cluster="ray", force=True)
    with pytest.raises(ValueError, match="`shard` does not go with `cluster`"):
        nw.sweep(small, tmp_path / "out", shard="1/2", cluster="ray")


@pytest.mark.filterwarnings("ignore")
def test_a_directory_of_the_users_is_not_taken(small: nw.Scenario, tmp_path: Path) -> None:
    mine = tmp_path / "out.parts" / "thesis.txt"
    mine.parent.mkdir()
    mine.write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match="has other files"):
        nw.sweep(small, tmp_path / "out", cluster="ray")
    assert mine.read_text(encoding="utf-8") == "mine"


@pytest.mark.filterwarnings("ignore")
def test_files_beside_the_scenario_go_along(small: nw.Scenario, tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "here").mkdir()
    for name, size in [("a.csv", 100_000), ("b.csv", 200_000)]:
        (tmp_path / "lists" / name).write_text(f"start,src,dst,bytes\n0s,0,4,{size}\n", encoding="utf-8")
    small.grid, small.source = None, tmp_path / "here/small.toml"
    small.traffic = [config.FlowList(file="../lists/a.csv")]
    vary = {"traffic.0.file": ["../lists/a.csv", "../lists/b.csv"]}
    done = nw.sweep(small, tmp_path / "out", vary=vary, cluster="ray", progress=False)
    assert same(done, nw.run(small, tmp_path / "local", vary=vary, progress=False))
