"""An error about an argument has a line with the mistake and a line with what is accepted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import narrows as nw
from narrows import config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def said(call: Callable[[], object], kind: type[Exception]) -> tuple[str, str]:
    """Return the mistake and the help of an error."""
    with pytest.raises(kind) as caught:
        call()
    what, found, accepted = str(caught.value).partition("\nhelp: ")
    assert "\n" not in what + accepted
    if found and isinstance(caught.value, nw.ScenarioError):
        assert caught.value.help == accepted
    return what, accepted


@pytest.mark.parametrize(
    ("words", "kind", "what", "accepted"),
    [
        ({"seeds": 0}, nw.ScenarioError, "`seeds=0` is no number of seeds", "expected a whole number from 1 to 10000"),
        ({"seeds": [1, 2]}, TypeError, "`seeds=[1, 2]` is no number of seeds", 'vary={"seed": [1, 2]}'),
        ({"seeds": True}, TypeError, "`seeds=True`", "expected a whole number"),
        ({"seed": -1}, nw.ScenarioError, "`seed=-1` is no seed", "from 0 to"),
        ({"threads": 0}, nw.ScenarioError, "`threads=0` is no number of threads", "expected a whole number from 1 to 1024"),
        ({"threads": -1}, nw.ScenarioError, "`threads=-1`", "expected a whole number from 1 to 1024"),
        ({"threads": "2"}, TypeError, "`threads='2'`", "expected a whole number from 1 to 1024"),
        ({"laws": nw.Law}, TypeError, "`laws=Law` is one class", "laws=[Law]"),
        ({"laws": [int]}, TypeError, "<class 'int'> is no law", "expected a class that builds on narrows.Law"),
        ({"shard": "9/4"}, nw.ScenarioError, "`shard='9/4'` is no shard", "I from 1 to N"),
        ({"shard": "9/99"}, nw.ScenarioError, "has none of 4 runs", "fewer shards"),
        ({"shard": (1, 2)}, TypeError, "`shard=(1, 2)` is no shard", 'shard="3/8"'),
        ({"schemes": "dctp"}, nw.ScenarioError, "no scheme `dctp`; there are cubic, dctcp", "did you mean `dctcp`?"),
        ({"schemes": [1]}, TypeError, "1 is no name", "expected text"),
        ({"only": "dctcp"}, nw.ScenarioError, "the scenario has no run `dctcp`", ""),
        ({"set": ["topology.k=4"]}, TypeError, "are no keys with values", 'set={"topology.k": 4}'),
        ({"vary": {"seed": 3}}, TypeError, "`vary: seed=3` are no values", "expected a list of values"),
        ({"merge": "out/a"}, TypeError, "`merge='out/a'` is one path", "merge=['out/a']"),
    ],
)
def test_arguments_of_runs(
    words: dict[str, Any], kind: type[Exception], what: str, accepted: str, small: nw.Scenario, tmp_path: Path
) -> None:
    found = said(lambda: nw.sweep(small, tmp_path / "out", progress=False, **words), kind)
    assert what in found[0]
    assert accepted in found[1]
    assert not (tmp_path / "out").exists()


def test_what_is_no_scenario(tmp_path: Path) -> None:
    what, accepted = said(lambda: nw.run({"name": "x"}, tmp_path / "out"), TypeError)  # type: ignore[arg-type]
    assert what == "a dict is no scenario: {'name': 'x'}"
    assert "narrows.Scenario.from_dict({...})" in accepted
    what, _ = said(lambda: nw.tune(3, minimize="fct.max", where={"seed": [1]}), TypeError)  # type: ignore[arg-type]
    assert what == "a int is no scenario: 3"


def test_arguments_of_other_calls(small: nw.Scenario, results: nw.Results) -> None:
    figure: Callable[..., object] = lambda **words: nw.plot(results, **words)  # noqa: E731
    tune: Callable[..., object] = lambda **words: nw.tune(small, **{"minimize": "fct.max", "where": {"seed": [1]}, **words})  # noqa: E731
    for call, kind, what, accepted in [
        (lambda: small.read(seeds=-1), nw.ScenarioError, "`seeds=-1` is no number of seeds", "from 1 to 10000"),
        (lambda: nw.reproduce("uno/fig8", seeds=0), nw.ScenarioError, "`seeds=0` is no number of seeds", "from 1 to 10000"),
        (lambda: nw.Scenario.load({}), TypeError, "a dict is no scenario", "from_dict"),  # type: ignore[arg-type]
        (lambda: figure(y=3), TypeError, "`y=3` are no names", "expected a list of names"),
        (lambda: figure(y="goodput", log="z"), nw.ScenarioError, "`log='z'` are no axes", 'expected "x"'),
        (lambda: tune(where=["seed"]), TypeError, "`where=['seed']` are no keys", "expected a dictionary"),
        (lambda: tune(minimize=3), TypeError, "`minimize=3` are no names", "expected a list"),
        (lambda: tune(parallel=0.5), TypeError, "`parallel=0.5` is no number of trials at the same time", "from 1 to 1024"),
    ]:
        found = said(call, kind)
        assert what in found[0]
        assert accepted in found[1]


def test_fields_of_tables(small: nw.Scenario) -> None:
    what, accepted = said(lambda: config.Dumbbell(lef=4), TypeError)  # type: ignore[call-arg]
    assert what.startswith("`Dumbbell` has no field `lef`; its fields are delay, host_delay, host_rate, left, ")
    assert accepted == "did you mean `left`?"
    assert said(lambda: nw.Scenario(nam="x"), TypeError)[1] == "did you mean `name`?"  # type: ignore[call-arg]
    assert said(lambda: small.replace(topolgy=None), TypeError)[1] == "did you mean `topology`?"
    assert said(lambda: setattr(small, "trafic", []), AttributeError)[1] == "did you mean `traffic`?"
    assert said(lambda: nw.Scenario.from_dict({"stp": "1s"}), nw.ScenarioError)[1] == "did you mean `stop`?"


def test_figures_have_known_endings(results: nw.Results, tmp_path: Path) -> None:
    figure = nw.plot(results, y="goodput")
    what, accepted = said(lambda: nw.save(figure, tmp_path / "a.eps"), nw.ScenarioError)
    assert "there are no figures that end in `.eps`" in what
    assert accepted == "expected a name that ends in .pdf, .svg, .png"
    assert said(lambda: nw.plot(results, y="goodput", style="papr"), nw.ScenarioError)[1] == "did you mean `paper`?"
    assert not list(tmp_path.iterdir())


def test_figures_are_regular_files(results: nw.Results, tmp_path: Path) -> None:
    figure = nw.plot(results, y="goodput")
    # A device that takes anything and keeps nothing, so that nothing is lost if this fails.
    (tmp_path / "link.pdf").symlink_to("/dev/zero")
    with pytest.raises(FileExistsError, match="is not replaced"):
        nw.save(figure, tmp_path / "link.pdf")
    assert "has no ending" in said(lambda: nw.save(figure, "/dev/zero"), nw.ScenarioError)[0]
    assert [path.name for path in tmp_path.iterdir()] == ["link.pdf"]
    assert (tmp_path / "link.pdf").is_symlink()


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("polars", lambda results: results.flows.to_polars()),
        ("polars", lambda results: results.scan()),
        ("pyarrow", lambda results: results.flows.to_arrow()),
        ("pyarrow", lambda results: results.flows.to_pandas()),
        ("pandas", lambda results: results.flows.to_pandas()),
        ("matplotlib", lambda results: nw.plot(results, y="goodput")),
        ("matplotlib", nw.pareto_front),
        ("optuna", lambda _: nw.tune("x.toml", minimize="fct.max", where={"seed": [1]})),
    ],
)
def test_what_is_not_installed_is_said(
    package: str, call: Callable[[nw.Results], object], results: nw.Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    what, accepted = said(lambda: call(results), ModuleNotFoundError)
    assert f"needs {package}, which is not installed" in what.lower()
    assert accepted == f"pip install {package}"
