"""Laws in Python: the same results as built-in ones, errors, keys, and the way to Rust."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import laws_of_tests as mine
import polars as pl
import pytest
from waits import within

import narrows as nw
from narrows import config, law, porting

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
#: A law in Rust counts what it does, of one in Python is counted what changes what it permits.
COUNTED = ("increases", "cuts", "loss_cuts")


def scenario(**schemes: config.Scheme) -> nw.Scenario:
    """Four long flows through one port that drops and marks, and short ones beside them."""
    return nw.Scenario(
        name="law",
        stop="1s",
        topology=config.Dumbbell(left=4, right=4, rate="10Gbps", delay="50us"),
        port=config.Port(buffer="100KB", ecn=config.StepMarking(step="50KB")),
        schemes=schemes,
        traffic=[
            config.LongFlows(flows=[[0, 4], [1, 5], [2, 6], [3, 7]], size="5MB"),
            config.Poisson(intra="websearch", load="30%", load_of="host", flows=60),
        ],
    )


def flows(results: nw.Results, scheme: str) -> pl.DataFrame:
    """What came of the flows, without the names of the scheme and of its law, and what laws count themselves."""
    frame = results.flows.to_polars().filter(pl.col("scheme") == scheme)
    return frame.drop("scheme", "law", *COUNTED)


def of_module(directory: Path, text: str, name: str = "written") -> ModuleType:
    """A new module with this text."""
    file = directory / f"{name}.py"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"{name}_{time.monotonic_ns()}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_newreno_in_python_is_newreno(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = scenario(
        rust=config.Scheme(law="newreno"),
        python=config.Scheme(law="Reno"),
        paced=config.Scheme(law="fixed", params={"fixed": {"window": "90000B"}}),
        fixed=config.Scheme(law="Fixed", params={"Fixed": {"size_bytes": 90_000}}),
    )
    results = nw.run(both, tmp_path / "out", laws=[mine.Reno, mine.Fixed], progress=False)
    summary = {run.scheme: run.summary for run in results}
    # There is something to compare: the law cut, and packets were lost.
    assert summary["python"]["network"]["drops"] > 100
    assert summary["python"]["law"]["actions"]["loss_cuts"] > 10
    assert flows(results, "python").equals(flows(results, "rust"))
    assert flows(results, "fixed").equals(flows(results, "paced"))
    assert not flows(results, "fixed").equals(flows(results, "rust"))
    said = capsys.readouterr().err
    assert "Reno, Fixed: written in Python, for trying out" in said
    assert results["python"].summary["law"]["name"] == "Reno"
    assert any("Reno is an external law in Python (SHA-256 " in warning for warning in results["python"].summary["warnings"])
    assert not any("Reno" in warning for warning in results["rust"].summary["warnings"])
    report = results.report.read_text(encoding="utf-8")
    assert "Reno is an external law in Python" in report
    assert "laws=[Reno, Fixed]" in report


def test_dctcp_in_python_is_nearly_dctcp(tmp_path: Path) -> None:
    """Floats round otherwise than fixed-point numbers, so flows differ a little."""
    both = scenario(rust=config.Scheme(law="dctcp"), python=config.Scheme(law="Dctcp"))
    results = nw.run(both, tmp_path / "out", laws=[mine.Dctcp], progress=False)
    rust, python = (run.metric("mean(fct)") for run in (results["rust"], results["python"]))
    assert python == pytest.approx(rust, rel=0.1)
    assert results["python"].summary["law"]["actions"]["cuts"] > 50


def test_a_law_of_one_class_of_flows_and_threads(tmp_path: Path) -> None:
    """Inside and between datacenters, and at any number of threads."""
    made = scenario(mixed=config.Scheme(intra="dctcp", inter="Reno")).replace(
        topology=config.FatTrees(k=4, rate="10Gbps", inter_rtt="1ms"),
        traffic=[
            config.Poisson(
                intra="websearch", inter="websearch", ratio="4:1", ratio_of="flows", load="30%", load_of="host", flows=60
            )
        ],
    )
    one = nw.run(made, tmp_path / "one", laws=[mine.Reno], threads=1, progress=False)
    many = nw.run(made, tmp_path / "many", laws=[mine.Reno], threads=4, progress=False)
    assert one[0].summary["law"]["name"] == "dctcp+Reno"
    assert one.flows.to_polars().equals(many.flows.to_polars())
    assert many[0].summary["engine"]["threads"] == 1
    rust = made.replace(schemes={"mixed": config.Scheme(intra="dctcp", inter="newreno")})
    alike = nw.run(rust, tmp_path / "rust", progress=False)
    assert alike.flows.to_polars().drop("law", *COUNTED).equals(one.flows.to_polars().drop("law", *COUNTED))


def test_the_key_is_that_of_the_source(tmp_path: Path) -> None:
    text = """
        import narrows as nw

        class Halve(nw.Law):
            gain: int = 4
            def on_ack(self, ack): self.cwnd += {growth} * self.gain
            def on_loss(self, loss): self.cwnd = max(self.cwnd / 2, 4096)
            def on_timeout(self, timeout): self.cwnd = 4096
        """
    made = scenario(mine=config.Scheme(law="Halve"), dctcp=config.Scheme(law="dctcp"))

    def keys(growth: int, **params: int) -> dict[str, str]:
        halve = of_module(tmp_path, text.format(growth=growth)).Halve
        asked = made.replace(schemes={**made.schemes, "mine": config.Scheme(law="Halve", params={"Halve": params})})
        results = nw.run(asked, tmp_path / f"gain {params}", laws=[halve], progress=False)
        mine = results["mine"].manifest["resolved"]["external_laws"]["Halve"]
        assert mine["sha256"] == law.declared([halve])["Halve"].sha256
        assert mine["params"] == {"gain": 4}
        assert "external_laws" not in results["dctcp"].manifest["resolved"]
        return {run.scheme: run.manifest["key"] for run in results}

    first, again, changed, set_other = keys(1), keys(1), keys(2), keys(1, gain=5)
    assert first == again
    assert len({first["mine"], changed["mine"], set_other["mine"]}) == 3
    assert {first["dctcp"], changed["dctcp"], set_other["dctcp"]} == {first["dctcp"]}


def test_the_source_is_the_one_that_runs(tmp_path: Path) -> None:
    """A file that is edited after it was imported changes nothing of the class."""
    text = "import narrows as nw\nclass Halve(nw.Law):\n    gain: int = 4\n    def on_ack(self, ack): self.cwnd = 1\n"
    halve = of_module(tmp_path, text).Halve
    (tmp_path / "written.py").write_text(text.replace("self.cwnd = 1", "self.cwnd = 2"), encoding="utf-8")
    assert "self.cwnd = 1" in halve.source()

    class Child(mine.Reno):
        """Builds on another law."""

    assert Child.source().startswith("class Child(mine.Reno):")
    assert "class Reno(nw.Law):" in Child.source()


def test_the_source_has_bases_that_are_no_laws(tmp_path: Path) -> None:
    """A mixin that changes is another law, and another run."""
    text = """
        from abc import ABC
        from typing import Generic, TypeVar
        import narrows as nw

        T = TypeVar("T")

        class Helper(ABC, Generic[T]):
            def half(self, window): return window / {by}

        class Halve(Helper[int], nw.Law):
            def on_ack(self, ack): self.cwnd += 100
            def on_loss(self, loss): self.cwnd = max(self.half(self.cwnd), 4096)
            def on_timeout(self, timeout): self.cwnd = 4096
        """
    first = of_module(tmp_path, text.format(by=2)).Halve
    second = of_module(tmp_path, text.format(by=3)).Halve
    # As it was when Python read it, though the file is another one by now.
    assert "return window / 2" in first.source()
    assert "return window / 3" in second.source()
    assert first.source().count("class ") == 2
    assert law.declared([first])["Halve"].sha256 != law.declared([second])["Halve"].sha256
    assert "return window / 2" in porting._methods(first)[""]

    names: dict[str, Any] = {}
    exec(compile("class Helper: pass", "<typed>", "exec"), {"__name__": "typed"}, names)

    for base in (names["Helper"], dict):
        # Python says of such a class that it is of `abc`.
        unknown = types.new_class("Mixed", (base, mine.Fixed))
        with pytest.raises(OSError, match="Python does not know the source of Mixed"):
            law.declared([unknown])
        unknown._texts[0] = "class Mixed: pass"  # type: ignore[attr-defined]
        with pytest.raises(OSError, match=f"Python does not know the source of {base.__name__}"):
            law.declared([unknown])


def test_only_types_of_parameters_are_asked_for(tmp_path: Path) -> None:
    text = """
        from __future__ import annotations
        from typing import TYPE_CHECKING, Annotated, ClassVar
        import narrows as nw
        if TYPE_CHECKING:
            from elsewhere import Missing

        class Fine(nw.Law):
            state: Missing
            _hidden: Missing | None = None
            LIMIT: ClassVar[Missing] = 3
            gain: Annotated[int, "packets"] = 4
            def on_ack(self, ack): pass
            def on_loss(self, loss): pass
            def on_timeout(self, timeout): pass

        class Wrong(Fine):
            share: Missing = 0.5
        """
    module = of_module(tmp_path, text)
    assert module.Fine.parameters() == {"gain": 4}
    with pytest.raises(TypeError, match=r"Wrong\.share: Missing: name 'Missing' is not defined"):
        module.Wrong.parameters()


@pytest.mark.parametrize(
    ("kind", "said", "cause"),
    [
        (0, "ZeroDivisionError", ZeroDivisionError),
        (1, "self.cwnd is nan; expected 1 to 1099511627776 bytes", ValueError),
        (2, "self.cwnd is -5;", ValueError),
        (3, "self.cwnd is 'wide';", TypeError),
        (4, "self.cwnd is 2199023255552;", ValueError),
        (5, "self.pacing_rate is 10; expected 1000 to 100000000000000 bits a second, or None", ValueError),
        (6, "self.cwnd is True;", TypeError),
        (7, "self.pacing_rate is inf;", ValueError),
    ],
)
def test_what_a_law_does_wrong_is_said(tmp_path: Path, kind: int, said: str, cause: type[Exception]) -> None:
    made = scenario(wild=config.Scheme(law="Wild", params={"Wild": {"kind": kind}}))
    with pytest.raises(nw.LawError) as caught:
        nw.run(made, tmp_path / "out", laws=[mine.Wild], progress=False)
    error = caught.value
    assert (error.law, error.method) == ("Wild", "on_ack")
    assert error.flow in range(64)
    assert error.time_ps is not None
    assert 0 < error.time_ps < 10**12
    assert str(error).startswith(f"the law Wild failed in on_ack of flow {error.flow} at ")
    assert said in str(error)
    assert isinstance(error.__cause__, cause)
    if kind == 0:
        assert error.__cause__.__traceback__ is not None
        assert error.__cause__.__traceback__.tb_frame.f_code.co_name == "on_ack"
    # Nothing that looks like results.
    assert not (tmp_path / "out" / "manifest.json").exists()
    with pytest.raises((nw.StudyError, FileNotFoundError, ValueError)):
        nw.Results(tmp_path / "out")


def test_a_law_that_cannot_begin(tmp_path: Path) -> None:
    class Late(mine.Fixed):
        """Wants what is not there."""

        def __init__(self, path: nw.PathInfo) -> None:
            raise KeyError("nothing")

    with pytest.raises(nw.LawError, match="the law Late failed in __init__ of flow 0 when it began: KeyError"):
        nw.run(scenario(late=config.Scheme(law="Late")), tmp_path / "out", laws=[Late], progress=False)


def test_runs_that_were_finished_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = scenario(fine=config.Scheme(law="Fixed"), wild=config.Scheme(law="Wild"))
    laws = [mine.Fixed, mine.Wild]
    with pytest.raises(nw.LawError):
        nw.run(made, tmp_path / "out", laws=laws, progress=False)
    assert "1 of 2 runs were finished and are kept" in capsys.readouterr().err
    calm = made.replace(schemes={**made.schemes, "wild": config.Scheme(law="Wild", params={"Wild": {"after": 10**9}})})
    assert len(nw.run(calm, tmp_path / "out", laws=laws, progress=False)) == 2


def test_what_is_no_law_is_refused(small: nw.Scenario, tmp_path: Path) -> None:
    class Half(nw.Law):
        """Does not say what a loss is."""

        def on_ack(self, ack: nw.Ack) -> None:
            pass

    class lower(mine.Fixed):  # noqa: N801
        """Has no capital letter."""

    class Textual(mine.Fixed):
        """Has a parameter that is none."""

        note: str = "x"

    class Fine(mine.Fixed):
        """Has constants that are no parameters."""

        LIMIT: ClassVar[str] = "x"
        _hidden: str = "y"

    out = tmp_path / "out"
    for wrong, said in [
        (Half, "has no on_loss and no on_timeout"),
        (lower, "a capital letter first"),
        (Textual, r"Textual\.note: str = 'x': a parameter is an int"),
        (nw.Law, r"builds on narrows\.Law"),
        ("dctcp", r"builds on narrows\.Law"),
    ]:
        with pytest.raises(TypeError, match=said):
            nw.run(small, out, laws=[wrong], progress=False)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="two laws are called Fixed"):
        law.declared([mine.Fixed, mine.Fixed])
    assert Fine.parameters() == {"size_bytes": 100_000}
    assert mine.Wild.parameters() == {"size_bytes": 100_000, "kind": 0, "after": 100}
    assert not out.exists()


def test_a_scheme_names_what_is_there(tmp_path: Path) -> None:
    def says(said: str, scheme: config.Scheme, laws: list[type[nw.Law]]) -> nw.ScenarioError:
        with pytest.raises(nw.ScenarioError, match=said) as caught:
            nw.run(scenario(it=scheme), tmp_path / "out", laws=laws, progress=False)
        return caught.value

    assert "laws=[Halve]" in says("unknown law `Halve`", config.Scheme(law="Halve"), []).help
    assert says("unknown law `Fixd`", config.Scheme(law="Fixd"), [mine.Fixed]).help == "did you mean `fixed`?"
    gain = config.Scheme(law="Fixed", params={"Fixed": {"gain": 1}})
    says("Fixed has no parameter `gain`", gain, [mine.Fixed])
    size = config.Scheme(law="Fixed", params={"Fixed": {"size_bytes": 1.5}})
    says("`size_bytes` is a whole number, but was given", size, [mine.Fixed])
    # A file that names a law which nobody brings.
    with_law = law.with_laws(scenario(it=config.Scheme(law="Fixed")), [mine.Fixed])
    with pytest.raises(nw.ScenarioError, match=r"runs Fixed, a law in Python; only narrows.run\(..., laws=\[Fixed\]\) can run it"):
        nw.run(with_law, tmp_path / "out", progress=False)
    # Of two laws the one that is missing is named, whichever it is.
    both = law.with_laws(scenario(it=config.Scheme(intra="Fixed", inter="Reno")), [mine.Fixed, mine.Reno])
    with pytest.raises(nw.ScenarioError, match="runs Reno, a law in Python"):
        nw.run(both, tmp_path / "out", laws=[mine.Fixed], progress=False)
    with pytest.raises(nw.ScenarioError, match="runs Fixed, a law in Python"):
        nw.run(both, tmp_path / "out", laws=[mine.Reno], progress=False)


FILE = """
name = "file"
stop = "100ms"
topology = { kind = "dumbbell", left = 1, right = 1, rate = "10Gbps", delay = "50us" }
traffic = [{ kind = "long", flows = [[0, 1]], size = "200KB" }]
[schemes.it]
law = "Fixed"
[schemes.it.params.Fixed]
size_bytes = 50000
[grid]
"schemes.it.params.Fixed.size_bytes" = [40000, 80000]
"""


def test_a_file_that_declares_no_laws(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(FILE, encoding="utf-8")
    run = nw.run(file, tmp_path / "run", laws=[mine.Fixed], progress=False)
    sweep = nw.sweep(str(file), tmp_path / "sweep", laws=[mine.Fixed], progress=False)
    loaded = nw.Scenario.load(file)
    assert loaded.external_laws is None
    of_object = nw.run(loaded, tmp_path / "object", laws=[mine.Fixed], progress=False)
    again = nw.Scenario.load(file, laws=[mine.Fixed])
    assert (again.external_laws or {}).keys() == {"Fixed"}
    assert len(run) == 2
    for other in (sweep, of_object, nw.run(again, tmp_path / "again", laws=[mine.Fixed], progress=False)):
        assert [one.manifest["key"] for one in other] == [one.manifest["key"] for one in run]
    # What is wrong is said as of any file, at its place.
    cases: list[tuple[str, list[type[nw.Law]], str]] = [
        (FILE, [], "unknown law `Fixed`"),
        (FILE, [mine.Reno], "unknown law `Fixed`"),
        (FILE.replace("size_bytes", "size_byte"), [mine.Fixed], "Fixed has no parameter `size_byte`"),
        (FILE.replace("40000", "0.5"), [mine.Fixed], "`size_bytes` is a whole number, but was given"),
        (FILE.replace("40000", '"x"'), [], "`size_bytes` is a"),
        (FILE.replace("100ms", "100km"), [mine.Fixed], "100km"),
        (FILE.replace("name =", "external_laws = 5\nname ="), [], "expected a table of named entries"),
    ]
    for wrong, laws, said in cases:
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(nw.ScenarioError, match=said) as caught:
            nw.run(file, tmp_path / "wrong", laws=laws, progress=False)
        assert caught.value.file == str(file)
    assert not (tmp_path / "wrong").exists()


def test_a_source_that_is_not_known(small: nw.Scenario, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    text = "class Typed(nw.Law):\n" + "".join(f"    def {name}(self, it): pass\n" for name in ("on_ack", "on_loss", "on_timeout"))
    exec(compile(text, "<typed>", "exec"), {"nw": nw, "__name__": "typed"}, names)
    with pytest.raises(OSError, match="put the class into a file and import it from there"):
        nw.run(small, tmp_path / "out", laws=[names["Typed"]], progress=False)


INTERRUPTED = """
import sys, narrows as nw
sys.path.insert(0, {tests!r})
import laws_of_tests as mine
from test_law import scenario
from narrows import config
made = scenario(wild=config.Scheme(law="Wild", params={{"Wild": {{"kind": 9, "after": {after}}}}}))
made.traffic[0].size = "200GB"
made.stop = "1000s"
print("begins", flush=True)
try:
    nw.run(made, {out!r}, laws=[mine.Wild], progress=False)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("after", [50, 10**12], ids=["a loop without an end", "a run"])
def test_ctrl_c_ends_a_run(tmp_path: Path, after: int) -> None:
    text = INTERRUPTED.format(tests=str(Path(__file__).parent), out=str(tmp_path / "out"), after=after)
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    with within(120, process):
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        time.sleep(2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.communicate(timeout=30)[0] == "interrupted\n"
        assert time.monotonic() - began < 10
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_other_threads_go_on(tmp_path: Path) -> None:
    """Python's lock is taken for calls of the law alone."""
    ticks: list[float] = []
    ends = threading.Event()

    def tick() -> None:
        while not ends.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    began = time.monotonic()
    nw.run(scenario(it=config.Scheme(law="Reno")), tmp_path / "out", laws=[mine.Reno], progress=False)
    lasted = time.monotonic() - began
    ends.set()
    thread.join(timeout=60)
    assert not thread.is_alive(), "the other thread does not end"
    assert len(ticks) > lasted / 0.1


def test_a_sweep_over_a_parameter_of_a_law(tmp_path: Path) -> None:
    vary = {"schemes.it.params.Fixed.size_bytes": [50_000, 100_000]}
    results = nw.sweep(scenario(it=config.Scheme(law="Fixed")), tmp_path / "out", vary=vary, laws=[mine.Fixed], progress=False)
    slow, fast = (run.metric("mean(fct)") for run in results)
    assert slow > fast


@pytest.mark.filterwarnings("ignore")
def test_a_law_goes_to_a_cluster(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed")

    class Local(mine.Fixed):
        """Is nowhere but here."""

        size_bytes: int = 80_000

    class Broken(mine.Wild):
        """Divides by zero, nowhere but here."""

    made = scenario(it=config.Scheme(law="Local"))
    wild = scenario(it=config.Scheme(law="Broken"))
    here = nw.sweep(made, tmp_path / "here", laws=[Local], seeds=2, progress=False)
    tests = str(Path(__file__).parent)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": tests}})
    try:
        there = nw.sweep(made, tmp_path / "there", laws=[Local], seeds=2, cluster="ray", progress=False)
        with pytest.raises(nw.LawError, match=r"the law Broken failed in on_ack of flow (?s:.*)the same call goes on") as caught:
            nw.sweep(wild, tmp_path / "wild", laws=[Broken], cluster="ray", progress=False)
    finally:
        ray.shutdown()
    assert there.flows.to_polars().equals(here.flows.to_polars())
    assert [run.manifest["key"] for run in there] == [run.manifest["key"] for run in here]
    error = caught.value
    assert (error.law, error.method) == ("Broken", "on_ack")
    assert error.flow in range(64)
    assert error.time_ps is not None
    assert "ZeroDivisionError" in str(error)
    assert "self.cwnd = 1 / (self.heard - self.after)" in str(error.__cause__)


def checkout(directory: Path) -> Path:
    """What laws in Rust are made of, copied."""
    for part in ("Cargo.toml", "Cargo.lock", "rustfmt.toml", "clippy.toml", "crates/core", "docs/src/laws"):
        to = directory / part
        to.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, to)
        else:
            shutil.copy(ROOT / part, to)
    shutil.copy(ROOT / "docs/src/SUMMARY.md", directory / "docs/src/SUMMARY.md")
    lines = (directory / "Cargo.toml").read_text(encoding="utf-8").splitlines()
    members = [line for line in lines if line.strip() == '"python",' or line.strip().startswith('"crates/')]
    absent = {line for line in members if line.strip() != '"crates/core/*",'}
    assert len(absent) > 1
    alone = "".join(line + "\n" for line in lines if line not in absent)
    (directory / "Cargo.toml").write_text(alone, encoding="utf-8")
    return directory


def test_a_trace_has_what_happened() -> None:
    lines = porting.recorded(mine.Reno).splitlines()
    assert lines[0].startswith("# Reno in Python, SHA-256 ")
    told = [line.split(" | ") for line in lines if not line.startswith("#")]
    assert len(told) == 2001
    assert told[0][0].split()[0] == "path"
    kinds = {event.split()[0] for event, _ in told[1:]}
    assert {"ack", "reordered"} <= kinds
    assert len({permitted for _, permitted in told}) > 50
    assert porting.recorded(mine.Reno).splitlines() == lines


def test_an_ack_has_the_bytes_remaining_where_hosts_know_sizes() -> None:
    def acks(size_aware: bool) -> list[list[str]]:
        scenario = nw.Scenario(
            name="known",
            stop="1ms",
            topology=config.SingleSwitch(hosts=2, rate="10Gbps", delay="1us"),
            host=config.Host(mss=1000, size_aware=size_aware),
            schemes={"traced": config.Scheme(law="Reno")},
            traffic=[config.LongFlows(flows=[[0, 1]], size="3500B")],
        )
        lines = porting.recorded(mine.Reno, scenario).splitlines()
        return [line.split(" | ")[0].split() for line in lines if line.startswith("ack ")]

    assert [(len(ack), int(ack[-1])) for ack in acks(size_aware=True)] == [(13, 2500), (13, 1500), (13, 500), (13, 0)]
    assert [len(ack) for ack in acks(size_aware=False)] == [12] * 4


def test_a_law_is_begun_in_rust(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    made = mine.Dctcp.to_rust(root, name="dctcp-two", events=50)
    assert [str(path.relative_to(root)) for path in made] == [
        "crates/core/laws/src/dctcp_two.rs",
        "docs/src/laws/dctcp-two.md",
        "crates/core/laws/src/dctcp_two_trace.txt",
    ]
    code = made[0].read_text(encoding="utf-8")
    assert '    gain: Fraction = Frac::millionths(62_500), "0.0625", Frac::ZERO, range::UNLIMITED;' in code
    assert "    //     share = self.marked / self.acked if self.acked else 0.0" in code.replace("    //         ", "    //     ")
    # Its `on_ack` calls that of the class that it builds on.
    assert "    //     # in Reno:\n    //     def on_ack(self, ack: nw.Ack) -> None:" in code
    assert "DctcpTwo in dctcp_two;" in (root / "crates/core/laws/src/law.rs").read_text(encoding="utf-8")
    # Nothing is said that the skeleton does not do.
    facts = "none yet | to be written | to be written | 10 packets | to be written | to be written |"
    table = (root / "docs/src/laws/README.md").read_text(encoding="utf-8").splitlines()
    assert f"| [`dctcp-two`](dctcp-two.md) | DctcpTwo | {facts}" in table
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with pytest.raises(nw.ScenarioError, match="has a module `dctcp_two` already"):
        mine.Dctcp.to_rust(root, name="dctcp-two", events=50)
    with pytest.raises(nw.ScenarioError, match="is no checkout of Narrows"):
        mine.Dctcp.to_rust(tmp_path / "crates", events=50)

    class Negative(mine.Fixed):
        """Has what Rust's parameters cannot be."""

        lowest: int = -1

    with pytest.raises(nw.ScenarioError, match=r"Negative\.lowest = -1 can be no parameter"):
        Negative.to_rust(root)

    class Late(mine.Fixed):
        """Has a default that is over the longest time."""

        delay_ns: int = 10**12 + 1

    with pytest.raises(nw.ScenarioError, match="`delay_ns` is out of range: expected a whole number, 0 to 1000000000000 ns"):
        Late.to_rust(root, events=10)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.skipif("NARROWS_ALL_CASES" not in os.environ, reason="compiling it takes a while: set NARROWS_ALL_CASES")
def test_a_law_that_was_written_passes_its_replay(tmp_path: Path) -> None:
    """The skeleton is formatted, builds without a warning and fails its replay alone; written out, it passes."""
    root = checkout(tmp_path)
    code = mine.Fixed.to_rust(root, name="still")[0]
    # Others for the form of the code: with parameters of several kinds, and without any.
    mine.Kinds.to_rust(root, events=10)
    mine.Bare.to_rust(root, events=10)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "to-rust"

    def cargo(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
        return subprocess.run(
            ["cargo", *words], cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=1800
        )

    def replayed() -> subprocess.CompletedProcess[str]:
        return cargo("test", "--offline", "-p", "narrows-laws", "--lib", "still::")

    formatted = cargo("fmt", "--check", "-p", "narrows-laws")
    assert formatted.returncode == 0, formatted.stdout
    linted = cargo("clippy", "--offline", "-p", "narrows-laws", "--lib", "--", "-D", "warnings")
    assert linted.returncode == 0, linted.stderr
    unfinished = replayed()
    assert unfinished.returncode == 101
    assert "matches_the_python_law ... FAILED" in unfinished.stdout
    assert "what this law permits, and what that one did" in unfinished.stdout
    text = code.read_text(encoding="utf-8")
    finished = text.replace("Window::new(path.mss.times(10),", "Window::new(params.size_bytes,")
    assert finished != text
    code.write_text(finished, encoding="utf-8")
    written = replayed()
    assert written.returncode == 0, written.stdout + written.stderr
    assert "matches_the_python_law ... ok" in written.stdout


def test_how_slow_it_is_is_said() -> None:
    assert law.slow([]) == ""
    assert json.dumps(law.slow([mine.Reno])).startswith('"Reno: written in Python')
