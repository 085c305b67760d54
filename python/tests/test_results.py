"""Runs and what they leave."""

from __future__ import annotations

import html
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from waits import within

import narrows as nw
from narrows import config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from narrows.progress import Progress


def test_runs_have_names_points_and_seeds(results: nw.Results) -> None:
    assert len(results) == 12
    assert (results[0].name, results[0].scheme, results[0].point, results[0].seed) == (
        "dctcp,traffic.0.load=20%,seed=1",
        "dctcp",
        {"traffic.0.load": 0.2},
        1,
    )
    assert [run.seed for run in results.select(scheme="cubic", load=0.4)] == [1, 2, 3]
    with pytest.raises(KeyError, match="no run 'x'"):
        results["x"]
    with pytest.raises(KeyError, match="6 runs are called 'DCTCP'"):
        results["DCTCP"]
    assert results.select(scheme="dctcp", load=0.2, seed=2)["DCTCP"].seed == 2


def test_tables_are_read_by_all(results: nw.Results) -> None:
    flows = results.flows
    assert len(flows) == 12 * 30
    frame = flows.to_polars()
    assert frame.height == len(flows)
    assert frame["seed"].unique().sort().to_list() == [1, 2, 3]
    assert flows.to_arrow().num_rows == len(flows)
    assert isinstance(flows.to_pandas(), pd.DataFrame)
    assert pa.table(flows).column_names == list(flows.columns)
    # A stream can be taken as often as one likes.
    assert pl.DataFrame(flows).equals(frame)
    assert results.summaries.to_polars().height == 12
    one = results[0]
    assert one.flows.to_polars().equals(
        frame.filter((pl.col("scheme") == "dctcp") & (pl.col("traffic.0.load") == 0.2) & (pl.col("seed") == 1))
    )


def test_a_selection_is_of_all_that_is_asked(results: nw.Results, tmp_path: Path) -> None:
    chosen = results.select(scheme="cubic", load=0.4)
    assert chosen.summaries.to_polars()["run"].to_list() == [run.name for run in chosen]
    assert len(chosen.summaries) == 3
    assert results.subset(reversed(chosen.runs)).summaries.to_polars()["seed"].to_list() == [3, 2, 1]
    everything = results.summaries.to_polars()
    assert chosen.summaries.to_polars().equals(everything.filter((pl.col("scheme") == "cubic") & (pl.col("traffic.0.load") == 0.4)))
    # A page of the chosen runs, and none that looks like one.
    with pytest.raises(ValueError, match="is of all 12 runs; `write_report` writes one of these 3"):
        _ = chosen.report
    page = chosen.write_report(tmp_path / "chosen.html").read_text(encoding="utf-8")
    assert "cubic,traffic.0.load=40%,seed=1" in page
    assert "dctcp,traffic.0.load=40%,seed=1" not in page
    assert html.escape(page[:1000]) in chosen._repr_html_()
    with pytest.raises(FileExistsError):
        chosen.write_report(tmp_path / "chosen.html")
    # All of them are no selection.
    assert results.select().report == results.report
    assert results.select().summaries.to_polars().equals(everything)


def test_all_files_of_a_sweep_have_one_schema(small: nw.Scenario, tmp_path: Path) -> None:
    """Laws trace other states, and a shard may have one scheme alone."""
    small.monitor = config.Monitor(interval="1ms", flows="all")
    small.grid = None
    small.schemes["gemini"] = config.Scheme(law="gemini")
    whole = nw.run(small, tmp_path / "whole", progress=False)
    shards = [nw.sweep(small, tmp_path / str(n), shard=f"{n}/2", progress=False) for n in (1, 2)]
    expected = whole.flow_samples.columns
    assert {"trace_alpha_ppm", "trace_w_max_bytes", "trace_factor_ppm"} <= expected.keys()
    for run in [*whole, *shards[0], *shards[1]]:
        assert run.flow_samples.columns == expected
    for name in ("flows", "port_samples"):
        assert shards[0].table(name).columns == shards[1].table(name).columns == whole.table(name).columns
    assert shards[0].summaries.columns == whole.summaries.columns
    rates = whole.flow_samples.to_polars()
    cubic = rates.filter(pl.col("scheme") == "cubic")
    assert cubic["trace_w_max_bytes"].null_count() == 0
    assert cubic["trace_alpha_ppm"].null_count() == len(cubic) > 0
    # Files of earlier versions lack columns that others have.
    dctcp, old = whole["dctcp"].directory / "flow_samples.parquet", tmp_path / "old.parquet"
    pl.read_parquet(dctcp).drop("trace_w_max_bytes").write_parquet(old, compression="uncompressed")
    both = nw.Table([old, whole["cubic"].directory / "flow_samples.parquet"])
    assert both.columns.keys() == expected.keys()
    read = both.to_polars()
    assert len(read) == len(both)
    assert read.filter(pl.col("scheme") == "dctcp")["trace_w_max_bytes"].null_count() == len(pl.read_parquet(old))
    pl.read_parquet(dctcp).with_columns(pl.col("flow").cast(pl.String)).write_parquet(old, compression="uncompressed")
    with pytest.raises(OSError, match=r"old\.parquet`, column `flow`: is of type"):
        nw.Table([dctcp, old])


def test_pooled_quantiles_are_of_all_flows(results: nw.Results) -> None:
    rows = results.pooled()
    assert [(row["point"], row["class"]) for row in rows[:2]] == [("traffic.0.load = 20%", "intra")] * 2
    first, second = rows[:2]
    flows = results.flows.to_polars().filter((pl.col("scheme") == second["label"].lower()) & (pl.col("traffic.0.load") == 0.2))
    slowdowns = flows["slowdown"].drop_nulls().sort()
    assert (second["seeds"], second["flows"]) == (3, len(slowdowns))
    assert second["p99"]["value"] == slowdowns[-(-99 * len(slowdowns) // 100) - 1]
    assert second["p50"]["low"] <= second["p50"]["value"] <= second["p50"]["high"]
    assert first["ratios"] is None
    assert len(second["ratios"]) == 2


def test_a_metric_is_what_the_table_says(results: nw.Results) -> None:
    of_run = results[0].flows.to_polars()["slowdown"].drop_nulls().sort()
    # By nearest rank.
    rank = -(-99 * len(of_run) // 100)
    assert results[0].metric("p99(slowdown)") == pytest.approx(of_run[rank - 1])
    assert results.metric("slowdown.p99")[0] == results[0].metric("all.slowdown.p99")
    assert results.check("p99(slowdown) > 0") == [True] * 12
    with pytest.raises(ValueError, match="no such function"):
        results.metric("p98(slowdown)")
    with pytest.raises(ValueError, match="none of its 0 flows"):
        results[0].metric("p99(inter.slowdown)")


def test_a_second_call_runs_nothing(small: nw.Scenario, tmp_path: Path) -> None:
    first = nw.run(small, tmp_path / "out", progress=False)
    times = {path: path.stat().st_mtime_ns for path in first.directory.glob("runs/*/flows.parquet")}
    assert len(times) == 4
    again = nw.run(small, tmp_path / "out", progress=False)
    assert {path: path.stat().st_mtime_ns for path in again.directory.glob("runs/*/flows.parquet")} == times


def test_parts_are_merged_to_the_same_bytes(small: nw.Scenario, tmp_path: Path) -> None:
    whole = nw.run(small, tmp_path / "whole", progress=False)
    parts = [nw.sweep(small, tmp_path / f"{n}", shard=f"{n}/3", progress=False).directory for n in (1, 2, 3)]
    merged = nw.sweep(small, tmp_path / "merged", merge=parts, progress=False)
    for one, other in zip(whole, merged, strict=True):
        for name in ("flows", "port_samples", "flow_samples"):
            file = f"{name}.parquet"
            assert (one.directory / file).read_bytes() == (other.directory / file).read_bytes()
    with pytest.raises(nw.StudyError, match="missing") as caught:
        nw.sweep(small, tmp_path / "less", merge=parts[:2], progress=False)
    assert caught.value.missing == ["dctcp,traffic.0.load=40%"]
    with pytest.raises(nw.ScenarioError, match="no shard"):
        nw.sweep(small, tmp_path / "bad", shard="4/3")


def test_runs_are_selected_by_keys_as_the_scenario_has_them(small: nw.Scenario, tmp_path: Path) -> None:
    vary = {"port.buffer": ["1MB", "200kB"], "traffic.0.size": ["10KB", "20KB"]}
    small.traffic = [config.Incast(intra=3, size="10KB"), config.Incast(intra=2, size="10KB")]
    small.grid = None
    made = nw.run(small, tmp_path / "out", vary=vary, schemes=["dctcp"], progress=False)
    first = [run for run in made if run.name.startswith("dctcp,port.buffer=1MB")]
    assert len(first) == 2
    for key in ("port.buffer", "buffer", "port.buffer_bytes"):
        for value in ("1MB", "1000kB", 1e6, ["1MB", 1e6]):
            assert made.select(**{key: value}).runs == first, (key, value)
    assert len(made.select(**{"traffic.0.size": "20KB"})) == 2
    # The other traffic is the same in all runs: it is not the key that varies.
    assert len(made.select(**{"traffic.1.size": "10KB"})) == 4
    with pytest.raises(nw.ScenarioError, match=r"no run has traffic\.1\.size=20KB; there are 10KB"):
        made.select(**{"traffic.1.size": "20KB"})
    assert len(made.select(stop="2s", scheme=["dctcp"], seed=1)) == 4
    figure = nw.plot(made.select(**{"port.buffer": "1MB"}), y="fct.max", x="traffic.0.size")
    assert figure.axes[0].get_xlabel() == "traffic.0.size (kB)"
    with pytest.raises(
        nw.ScenarioError, match=r"no key `traffic\.1\.size`; there are scheme, port\.buffer_bytes, traffic\.0\.size_bytes, seed"
    ):
        nw.plot(made, y="fct.max", x="traffic.1.size")


def test_keys_may_be_shortened_to_their_last_parts(small: nw.Scenario, tmp_path: Path) -> None:
    variant = config.Variant(label="without a load", grid={"traffic.0.load": []})
    small.grid = {"traffic.0.load": ["20%", "40%"], "port.buffer": ["1MB", "2MB"]}
    small.variants = {"other": variant}
    made = nw.run(small, tmp_path / "out", schemes=["dctcp"], progress=False)
    by_load = [run.name for run in made if ",traffic.0.load=20%" in run.name]
    assert len(by_load) == 2
    for key in ("load", "0.load", "traffic.0.load", "traffic[0].load"):
        assert [run.name for run in made.select(**{key: "20%"})] == by_load, key
    assert made["dctcp,load=20%,buffer=2MB"].name == "dctcp,traffic.0.load=20%,port.buffer=2MB"
    # The variant lacks the first key, and has the second one's first value under its own column.
    shallow = made.select(**{"port.buffer": "1MB"})
    assert [run.point["port.buffer_bytes"] for run in shallow] == [1e6] * 3
    assert [run.point["variant"] for run in shallow] == ["", "", "other"]


def test_a_key_in_full_is_itself_and_no_end_of_another(small: nw.Scenario, tmp_path: Path) -> None:
    small.port = config.Port(buffer="300KB")
    small.grid = {"schemes.dctcp.port.buffer": ["1MB", "2MB"]}
    made = nw.run(small, tmp_path / "one", schemes=["dctcp"], progress=False)
    assert len(made.select(**{"port.buffer": "300KB"})) == 2
    assert len(made.select(buffer="2MB")) == 1
    small.grid["port.buffer"] = ["300KB", "400KB"]
    made = nw.run(small, tmp_path / "two", schemes=["dctcp"], progress=False)
    assert len(made.select(**{"port.buffer": "300KB"})) == 2
    with pytest.raises(nw.ScenarioError, match=r"`buffer` is the end of several keys: schemes\.dctcp\.port\.buffer, port\.buffer"):
        made.select(buffer="1MB")


@pytest.mark.parametrize(
    ("wanted", "what", "accepted"),
    [
        ({"foo": 1}, "runs have no key `foo`; there are scheme, traffic.0.load, seed", "such as `port.buffer`"),
        ({"lod": 0.2}, "runs have no key `lod`", "did you mean `load`?"),
        ({"port.bufer": "1MB"}, "runs have no key `port.bufer`", "did you mean `port.buffer`?"),
        ({"scheme": "dctp"}, "no run has scheme=dctp; there are dctcp, cubic", "did you mean `dctcp`?"),
        ({"seed": 9}, "no run has seed=9; there are 1, 2, 3", ""),
        ({"load": 0.9}, "no run has load=0.9; there are 0.2, 0.4", ""),
        ({"load": [0.2, "90%"]}, "no run has load=90%; there are 0.2, 0.4", ""),
        ({"variant": "small"}, "no run has variant=small", ""),
    ],
)
def test_a_selection_of_what_is_not_there(results: nw.Results, wanted: dict[str, object], what: str, accepted: str) -> None:
    with pytest.raises(nw.ScenarioError) as caught:
        results.select(**wanted)
    assert what in str(caught.value)
    assert accepted in caught.value.help
    assert bool(accepted) == bool(caught.value.help)


def test_tables_and_parts_of_them(results: nw.Results) -> None:
    whole = results.flows.to_polars()
    part = results.table("flows", columns=["fct_ns", "seed"])
    assert list(part.columns) == ["fct_ns", "seed"]
    assert part.to_polars().equals(whole.select("fct_ns", "seed"))
    for made in (results.flows.to_arrow("slowdown"), results[0].flows.to_arrow(columns=["slowdown"])):
        assert made.column_names == ["slowdown"]
    assert results.flows.to_pandas(["class"])["class"].unique().tolist() == ["intra"]
    assert len(results.table("flows", class_="intra")) == len(whole)
    inter = results[0].table("flows", columns="fct_ns", class_="inter")
    assert (len(inter), inter.to_arrow().column_names) == (0, ["fct_ns"])
    refused: list[tuple[Callable[[], object], str, str]] = [
        (
            lambda: results.table("flow"),
            "there is no table `flow`; there are flows, port_samples, flow_samples",
            "did you mean `flows`?",
        ),
        (
            lambda: results.table("flows", class_="itner"),
            "there is no class `itner`; there are intra, inter",
            "did you mean `inter`?",
        ),
        (
            lambda: results.flows.select("fct_n"),
            "the table has no column `fct_n`; there are scheme, traffic.0.load, seed, ",
            "`fct_ns`",
        ),
        (lambda: results.flows.select([]), "no column is asked for", "expected some of"),
        (lambda: results.port_samples.of_class("inter"), "the table is not one of flows", "expected `flows`"),
        (lambda: results.table("pauses"), "no run has a table `pauses`", "PFC"),
        (lambda: results.subset([]).flows, "no run is chosen", "`select`"),
    ]
    for call, what, accepted in refused:
        with pytest.raises(nw.ScenarioError) as caught:
            call()
        assert what in str(caught.value)
        assert accepted in caught.value.help


def test_classes_that_no_run_has_are_no_metrics(results: nw.Results) -> None:
    for ask in (results.metric, results[0].metric):
        with pytest.raises(ValueError, match="no class of flows `itner`; it has: "):
            ask("p99(itner.fct)")
    with pytest.raises(ValueError, match="no class of flows `itner`"):
        results.check("p99(itner.fct) <= 5ms")
    # A class without flows is a class.
    assert results.metric("p99(inter.fct)") == [None] * 12
    with (
        pytest.raises(ValueError, match=r"no cell is of flows `itner`; there are p50\(intra"),
        pytest.warns(UserWarning, match="not scored"),
    ):
        nw.pareto_front(results, x="itner")


def test_a_scan_is_lazy_and_of_the_chosen_runs(results: nw.Results) -> None:
    chosen = results.select(load=0.4)
    scan = chosen.scan()
    assert isinstance(scan, pl.LazyFrame)
    assert scan.collect().equals(chosen.flows.to_polars())
    assert "Parquet SCAN" in scan.explain()
    few = scan.filter(pl.col("seed") == 2).select("scheme", "fct_ns")
    assert few.collect().shape == (60, 2)
    assert "PROJECT 2/" in few.explain() or "PROJECT 3/" in few.explain()
    backwards = results.subset(reversed(chosen.runs))
    assert backwards.scan("summaries").collect().equals(backwards.summaries.to_polars())
    assert results[0].scan("port_samples").collect().equals(results[0].port_samples.to_polars())
    assert results.table("flows", class_="inter").scan().collect().height == 0


def test_results_are_equal_by_what_they_hold(small: nw.Scenario, results: nw.Results, tmp_path: Path) -> None:
    again = nw.run(small, tmp_path / "again", seeds=3, progress=False)
    assert again.directory != results.directory
    assert again == results
    assert len({again, results}) == 1
    assert again[0] == results[0]
    assert again[0] != results[1]
    assert again.select(seed=1) != results
    assert again.subset(reversed(again.runs)) != results
    other = nw.run(small, tmp_path / "other", seed=7, progress=False)
    assert other != results.select(seed=1)
    assert results != 3


def test_slices_are_results(results: nw.Results) -> None:
    assert [run.name for run in results[2:5]] == [run.name for run in results.runs[2:5]]
    assert isinstance(results[2:5], nw.Results)
    assert results[2:5].summaries.to_polars()["run"].to_list() == [run.name for run in results.runs[2:5]]
    assert results[-1] == results.runs[-1]
    assert results[::-1][0] == results[-1]
    for number in (12, -13):
        with pytest.raises(IndexError, match=rf"there is no run {number}\nhelp: there are 12, from 0 or from -12"):
            results[number]


def test_arrow_batches_are_large(results: nw.Results, tmp_path: Path) -> None:
    rows = 1 << 16
    # Files of few rows are joined, and those of many are not cut into small parts.
    sizes = [rows // 4] * 6 + [3 * rows + 5, 7]
    files = []
    for number, size in enumerate(sizes):
        files.append(tmp_path / f"{number}.parquet")
        frame = pl.DataFrame({"row": range(size), "text": [f"{number}"] * size})
        frame.write_parquet(files[-1], compression="uncompressed", row_group_size=rows // 2)
    table = nw.Table(files)
    batches = table.to_arrow().to_batches()
    assert len(batches) > 3
    assert all(rows <= batch.num_rows < 2 * rows for batch in batches[:-1])
    assert sum(batch.num_rows for batch in batches) == len(table) == sum(sizes)
    assert table.to_polars().equals(pl.concat([pl.read_parquet(file) for file in files]))
    # Of one file the columns are decoded apart.
    alone = nw.Table(files[6:7])
    assert alone.to_polars().equals(pl.read_parquet(files[6]))
    assert alone.select(["text"]).to_polars().equals(pl.read_parquet(files[6], columns=["text"]))
    assert len(results.flows.to_arrow().to_batches()) == 1


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    rows = 200_000
    file = tmp_path / "one.parquet"
    pl.DataFrame({"a": range(rows), "b": range(rows)}).write_parquet(file, compression="uncompressed")
    table, content = nw.Table([file]), file.read_bytes()
    file.write_bytes(content[:4] + b"\xff" * 4096 + content[4100:])
    with pytest.raises((OSError, pa.ArrowException)):
        table.to_arrow()
    file.unlink()
    with pytest.raises((OSError, pa.ArrowException), match="No such file"):
        table.to_arrow()


def test_iterations_of_jobs_are_rows(small: nw.Scenario, results: nw.Results, tmp_path: Path) -> None:
    assert len(results.jobs) == 0
    assert list(results.jobs.columns)[-6:] == [
        "job",
        "iteration",
        "took_ns",
        "took_mean_ns",
        "compute_mean_ns",
        "exposed_mean_ns",
    ]
    job = config.Job(
        name="gpt",
        model=config.Model(params=1_000_000, layers=2, hidden=64, sequence=16),
        parallel=config.Parallel(pipeline=2),
        placement="0..2",
        micro_batches=2,
        iterations=3,
        compute=config.ComputeTimes(forward="1ms", backward="2ms"),
    )
    made = nw.run(small.replace(traffic=None, job=[job], grid=None), tmp_path / "out", seeds=2, progress=False)
    rows = made.jobs.to_polars()
    assert rows.columns[:5] == ["scheme", "seed", "job", "iteration", "took_ns"]
    assert rows.height == 2 * 2 * 3
    first = made[0].jobs.to_polars()
    assert first.equals(rows.head(3))
    training = made[0].summary["jobs"]["gpt"]["training"]
    assert first["took_ns"].to_list() == training["iteration_ns"]
    assert first["iteration"].to_list() == [0, 1, 2]
    for column, key in [
        ("took_mean_ns", "iteration_mean_ns"),
        ("compute_mean_ns", "compute_ns"),
        ("exposed_mean_ns", "exposed_ns"),
    ]:
        assert first[column].to_list() == [training[key]] * 3
    assert made.select(scheme="cubic").jobs.to_polars()["scheme"].unique().to_list() == ["cubic"]


def test_a_lone_run_has_the_columns_of_a_sweep(small: nw.Scenario, results: nw.Results, tmp_path: Path) -> None:
    small.grid = None
    one = nw.run(small, tmp_path / "one", schemes=["dctcp"], seed=5, progress=False)
    for name in ("flows", "port_samples", "flow_samples"):
        columns = list(one.table(name).columns)
        assert columns[:2] == ["scheme", "seed"]
        assert ["traffic.0.load" not in columns, *columns] == [
            True,
            *(it for it in results.table(name).columns if it != "traffic.0.load"),
        ]
    flows = one.flows.to_polars()
    assert (flows["scheme"].unique().to_list(), flows["seed"].unique().to_list()) == (["dctcp"], [5])
    summaries = one.summaries.to_polars()
    assert summaries.select("run", "scheme", "seed").rows() == [("dctcp", "dctcp", 5)]
    assert summaries["flows.all.count"].to_list() == [30]


def test_a_lone_run_has_no_points(small: nw.Scenario, tmp_path: Path) -> None:
    small.grid = None
    one = nw.run(small, tmp_path / "one", schemes=["dctcp"], progress=False)
    assert len(one) == 1
    assert isinstance(one.summary, dict)
    assert one[0].scheme == "dctcp"
    assert one[0].point == {}
    with pytest.raises(nw.ScenarioError, match="no scheme `dctp`"):
        nw.run(small, tmp_path / "two", schemes=["dctp"])


def test_whatever_is_no_results_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no complete results"):
        nw.Results(tmp_path)


class Seen:
    """Notes what it is shown, and in which thread."""

    def __init__(self) -> None:
        self.shown: list[tuple[int, int]] = []
        self.said: list[str] = []
        self.threads: set[int] = set()

    def show(self, of: int, finished: int, running: list[float]) -> None:
        assert all(0.0 <= share <= 1.0 for share in running)
        self.shown.append((of, finished))
        self.threads.add(threading.get_ident())

    def tell(self, text: str) -> None:
        self.said.append(text)

    def end(self) -> None:
        self.said.append("end")


def test_progress_comes_in_the_callers_thread(small: nw.Scenario, tmp_path: Path) -> None:
    seen: Progress = Seen()
    nw.run(small, tmp_path / "out", progress=seen)
    assert isinstance(seen, Seen)
    assert seen.shown[-1] == (4, 4)
    assert seen.threads == {threading.get_ident()}
    assert seen.said[-1] == "end"


def test_what_a_progress_raises_ends_the_study(small: nw.Scenario, tmp_path: Path) -> None:
    class Stop(Seen):
        def show(self, of: int, finished: int, running: list[float]) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        nw.run(small, tmp_path / "out", vary={"seed": range(1, 400)}, progress=Stop())


ENDLESS = """
import sys, narrows as nw
made = nw.Scenario.load(sys.argv[1])
print("ready", flush=True)
try:
    nw.run(made, sys.argv[2], vary={"seed": range(1, 300)})
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_ctrl_c_ends_a_run_and_keeps_what_is_finished(small: nw.Scenario, tmp_path: Path) -> None:
    small.save(tmp_path / "small.toml")
    program = [sys.executable, "-c", ENDLESS, str(tmp_path / "small.toml"), str(tmp_path / "out")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child, within(200, child):
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        ends = time.monotonic() + 120
        while not list(tmp_path.glob("out/.next/runs/*")):
            assert time.monotonic() < ends, "nothing ran"
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGINT)
        began = time.monotonic()
        assert child.stdout.read() == "stopped\n"
        assert time.monotonic() - began < 10
        assert child.wait(timeout=60) == 0


def test_another_thread_of_python_goes_on_meanwhile(small: nw.Scenario, tmp_path: Path) -> None:
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    other = threading.Thread(target=count, daemon=True)
    other.start()
    began = time.monotonic()
    nw.run(small, tmp_path / "out", seeds=4, progress=False)
    took = time.monotonic() - began
    done.set()
    other.join(timeout=60)
    assert not other.is_alive(), "the other thread does not end"
    assert counted > 100 * took, (counted, took)


def test_the_report_is_shown_in_a_notebook(results: nw.Results) -> None:
    page = results._repr_html_()
    assert page.startswith("<iframe srcdoc=")
    assert "DCTCP" in page


def test_importing_is_quick() -> None:
    program = "import time; began = time.perf_counter(); import narrows; print(time.perf_counter() - began)"
    took = min(float(subprocess.check_output([sys.executable, "-c", program], text=True, timeout=300)) for _ in range(3))
    assert took < 0.3, took


def test_runs_of_other_settings_stay(small: nw.Scenario, tmp_path: Path) -> None:
    small.grid = None
    first = nw.run(small, tmp_path / "out", progress=False)
    before = first.flows.to_polars()
    with pytest.raises(nw.StudyError, match=r"finished runs of other settings.*stop: 2s -> 1s"):
        nw.run(small, tmp_path / "out", set={"stop": "1s"}, progress=False)
    with pytest.raises(nw.StudyError, match="that this command leaves out"):
        nw.run(small, tmp_path / "out", schemes="dctcp", progress=False)
    assert nw.Results(tmp_path / "out").flows.to_polars().equals(before)
    assert len(nw.run(small, tmp_path / "out", schemes="dctcp", force=True, progress=False)) == 1


def test_metrics_of_samples_are_those_of_the_tables(small: nw.Scenario, tmp_path: Path) -> None:
    small.monitor = config.Monitor(interval="1ms", ports=["left>right"])
    made = nw.run(small, tmp_path / "out", schemes=["dctcp"], progress=False)
    longest = [run.port_samples.to_polars()["queue_bytes"].max() for run in made]
    assert made.metric('queue("left>right").max') == longest
    assert made[0].metric('queue("left>right").max') == longest[0]
    assert made.check('queue("left>right").max <= 1GB') == [True, True]


def test_the_grid_is_chosen_without_its_variants(small: nw.Scenario, results: nw.Results, tmp_path: Path) -> None:
    variant = config.Variant(label="other buffers", set={"port.buffer": "64KB"}, schemes=["cubic"])
    both = nw.run(small.replace(variants={"small": variant}), tmp_path / "out", seeds=1, progress=False)
    grid = [run.name for run in both.select(variant=None)]
    assert sorted(grid) == [
        "cubic,traffic.0.load=20%",
        "cubic,traffic.0.load=40%",
        "dctcp,traffic.0.load=20%",
        "dctcp,traffic.0.load=40%",
    ]
    assert [run.point["variant"] for run in both.select(variant="small")] == ["small"] * (len(both) - 4)
    assert len(both) > 4
    assert both.select(variant="none") == both.select(variant=None)
    # Where there are none, these are all.
    assert len(results.select(variant=None)) == len(results)
