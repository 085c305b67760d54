"""The command that the package carries."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import narrows as nw
from narrows import _narrows

ROOT = Path(__file__).parents[2]


def narrows(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "narrows", *words], capture_output=True, text=True, check=False, cwd=cwd, timeout=300
    )


def test_it_is_the_command(small: nw.Scenario, tmp_path: Path) -> None:
    small.save(tmp_path / "small.toml")
    done = narrows("run", "small.toml", "--json", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["runs"]) == 4
    assert len(nw.Results(tmp_path / "out/small")) == 4
    assert narrows("--version").stdout == f"narrows {nw.__version__} (without the kernel part)\n"
    refused = narrows("run", "smal.toml", cwd=tmp_path)
    assert refused.returncode == 2
    assert "did you mean `small.toml`?" in refused.stderr


def test_a_sweep_on_a_cluster_takes_the_options_of_the_command(tmp_path: Path) -> None:
    words = ["--ray", "local", "--vary", "seed=1,2", "--set", "stop=1s", "--check-invariants"]
    refused = narrows("sweep", "none.toml", *words, cwd=tmp_path)
    assert (refused.returncode, "cannot read `none.toml`" in refused.stderr) == (2, True), refused.stderr


def test_options_are_those_of_the_command() -> None:
    for command, option in (("tune", "--parallel <N>"), ("plot", "--not-in-baseline <SCHEME>"), ("sweep", "--ray <ADDRESS>")):
        done = narrows(command, "--help")
        assert (done.returncode, option in done.stdout) == (0, True), done.stderr
    wrong = narrows("tune", "a.toml", "--trials", "0")
    assert (wrong.returncode, "0 is not in 1.." in wrong.stderr) == (2, True), wrong.stderr
    # Each option has the name of the argument that it is.
    for command, call in (("tune", nw.tune), ("plot", nw.plot)):
        words = [command, "a", "-o", "b.pdf"] if command == "plot" else [command, "a"]
        ours = _narrows.python_command(["narrows", *words])
        assert ours is not None
        others = {"plot": {"results", "only", "front", "baseline", "not_in_baseline", "out"}, "tune": {"halve", "race"}}[command]
        assert json.loads(ours[1]).keys() - others <= inspect.signature(call).parameters.keys()
    assert _narrows.python_command(["narrows", "check", "a.toml"]) is None


def test_a_figure_by_the_command(results: nw.Results, tmp_path: Path) -> None:
    for ending in ("pdf", "svg", "png"):
        done = narrows("plot", str(results.directory), "--y", "p99(slowdown)", "-o", f"fig.{ending}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"fig.{ending}").stat().st_size > 1000
    for words, said in [
        (["--y", "p98(slowdown)", "-o", "a.pdf"], "no such function"),
        (["--y", "p99(slowdown)", "-o", "a.doc"], "expected a name that ends in .pdf, .svg, .png"),
        (["--y", "p99(slowdown)", "--x", "lod", "-o", "a.pdf"], "runs have no key `lod`; there are scheme, traffic.0.load, seed"),
    ]:
        done = narrows("plot", str(results.directory), *words, cwd=tmp_path)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fig.pdf", "fig.png", "fig.svg"]


def test_a_file_of_the_users_is_not_replaced(results: nw.Results, tmp_path: Path) -> None:
    for ending in ("pdf", "svg", "png"):
        path = tmp_path / f"fig.{ending}"
        words = ["plot", str(results.directory), "--y", "p99(slowdown)", "-o", str(path)]
        path.write_text("my thesis", encoding="utf-8")
        done = narrows(*words)
        assert (done.returncode, "is not replaced" in done.stderr) == (2, True), done.stderr
        assert path.read_text(encoding="utf-8") == "my thesis"
        path.unlink()
        assert narrows(*words).returncode == 0
        # Its own figure is replaced, and an edited one is not.
        assert narrows(*words).returncode == 0
        edited = path.read_bytes().replace(b"\n", b" \n", 1)
        path.write_bytes(edited)
        assert narrows(*words).returncode == 2
        assert path.read_bytes() == edited
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fig.pdf", "fig.png", "fig.svg"]


def test_a_figure_of_a_paper_is_reproduced(tmp_path: Path) -> None:
    made = nw.reproduce("lscc/fig2", papers=ROOT / "papers", out=tmp_path, seeds=1)
    assert made.claims
    assert all(claim.verdict for claim in made.claims)
    assert len(made[0].results) > 0
    with pytest.raises(nw.ScenarioError, match=r"nothing in .* is called `gemini/fig99`"):
        nw.reproduce("gemini/fig99", papers=ROOT / "papers", out=tmp_path)
