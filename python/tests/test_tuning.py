"""Tuning finds what is best, goes on where it ended, and says what is wrong before it runs."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from waits import within

import narrows as nw
from narrows import config, study, tuning
from narrows.tuning import Setting

if TYPE_CHECKING:
    from pathlib import Path


def queue() -> nw.Scenario:
    """Four flows through a port whose buffer is the only thing that limits its queue."""
    return nw.Scenario(
        name="queue",
        stop="50ms",
        topology=config.Dumbbell(left=4, right=4, rate="10Gbps", delay="20us"),
        port=config.Port(buffer="1MB", ecn=config.StepMarking(step="100KB")),
        schemes={"dctcp": config.Scheme(law="dctcp")},
        traffic=[config.Permutation(scope="any", size="4MB")],
    )


def test_the_least_queue_is_at_the_least_threshold(tmp_path: Path) -> None:
    def tune(trials: int) -> nw.TuneResult:
        return nw.tune(
            queue(),
            minimize="network.max_queue",
            where={"port.ecn.step": ["20KB", "80KB", "320KB"]},
            trials=trials,
            seeds=1,
            out=tmp_path / "out",
            held_out=[queue().replace(name="other", seed=9)],
            progress=False,
        )

    first = tune(6)
    assert first.best[0].set == {"port.ecn.step": "20KB"}
    assert first.held_out[0].tuned["network.max_queue"] < first.held_out[0].untuned["network.max_queue"]
    # A second call with as many trials does none.
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/trials").rglob("flows.parquet")}
    again = tune(6)
    assert len(again.study.trials) == 6
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out/trials").rglob("flows.parquet")} == times
    assert len(tune(7).study.trials) == 7


def test_trials_in_parallel_are_those_that_the_seed_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each of two trials waits until the other runs, too: one after the other they would not end.
    both = threading.Barrier(2, timeout=60)
    run = study.run

    def together(*args: Any, **kwargs: Any) -> nw.Results:
        both.wait()
        results = run(*args, **kwargs)
        # The first of two ends last.
        time.sleep(0.3 if args[1].name in {"0000", "0002"} else 0.0)
        return results

    def tune(out: str, parallel: int = 2) -> list[dict[str, object]]:
        where = {"port.ecn.step": nw.Range("10KB..500KB", log=True)}
        tuned = nw.tune(
            queue(),
            minimize="network.max_queue",
            where=where,
            trials=6,
            seeds=1,
            parallel=parallel,
            out=tmp_path / out,
            progress=False,
        )
        assert [trial.state.name for trial in tuned.study.trials] == ["COMPLETE"] * 6
        return [trial.params for trial in tuned.study.trials]

    with monkeypatch.context() as patched:
        patched.setattr(study, "run", together)
        first = tune("first")
    assert tune("second") == first
    # With another number of them others are tried, after the first ones.
    alone = tune("alone", parallel=1)
    assert alone[0] == first[0]


def test_trials_share_the_cores() -> None:
    cores = len(os.sched_getaffinity(0))
    assert tuning._threads(None, 1) is None
    assert tuning._threads(None, 2) == max(1, cores // 2)
    assert tuning._threads(3, 2) == 3


def test_what_ends_a_tuning_ends_all_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = study.run

    def fails(*args: Any, **kwargs: Any) -> nw.Results:
        if args[1].name == "0001":
            raise ZeroDivisionError
        return run(*args, **kwargs)

    def tune(trials: int) -> nw.TuneResult:
        where = {"port.ecn.step": ("10KB", "500KB")}
        return nw.tune(
            queue(), minimize="fct.max", where=where, trials=trials, seeds=1, parallel=3, out=tmp_path / "out", progress=False
        )

    with monkeypatch.context() as patched:
        patched.setattr(study, "run", fails)
        with pytest.raises(ZeroDivisionError):
            tune(6)
    # The same call goes on: first with the trials that did not end.
    tuned = tune(6)
    states = [trial.state.name for trial in tuned.study.trials]
    assert "RUNNING" not in states
    assert states.count("COMPLETE") == 6
    failed = [trial.params for trial in tuned.study.trials if trial.state.name == "FAIL"]
    assert failed
    done = [trial.params for trial in tuned.study.trials if trial.state.name == "COMPLETE"]
    assert all(params in done for params in failed)


def test_constraints_and_several_objectives(tmp_path: Path) -> None:
    tuned = nw.tune(
        queue(),
        minimize=["network.max_queue", "fct.max"],
        where={"port.ecn.step": ("10KB", "500KB")},
        subject_to="network.max_queue >= 60KB",
        trials=8,
        seeds=1,
        out=tmp_path / "out",
        progress=False,
    )
    assert tuned.best
    assert all(setting.objectives["network.max_queue"] >= 60_000 for setting in tuned.best)
    queues = [setting.objectives["network.max_queue"] for setting in tuned.best]
    times = [setting.objectives["fct.max"] for setting in tuned.best]
    # A front: what is better in one is worse in the other.
    assert queues == sorted(queues)
    assert times == sorted(times, reverse=True)


def test_halving_cuts_trials_off(tmp_path: Path) -> None:
    tuned = nw.tune(
        queue(),
        minimize="network.max_queue",
        where={"port.ecn.step": nw.Range("10KB..500KB", log=True)},
        trials=8,
        seeds=1,
        successive_halving=True,
        out=tmp_path / "out",
        progress=False,
    )
    states = [trial.state.name for trial in tuned.study.trials]
    assert "PRUNED" in states
    assert "COMPLETE" in states


def test_a_race_ends_trials_that_are_worse_seed_by_seed(tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="racing needs SciPy")
    tuned = nw.tune(
        queue().replace(traffic=[config.Poisson(intra="websearch", load=0.3, load_of="host", flows=20)]),
        minimize="network.max_queue",
        where={"port.ecn.step": ["20KB", "80KB", "320KB", "640KB"]},
        trials=8,
        seeds=6,
        racing=True,
        out=tmp_path / "out",
        progress=False,
    )
    pruned = [trial.intermediate_values for trial in tuned.study.trials if trial.state.name == "PRUNED"]
    finished = [trial.intermediate_values for trial in tuned.study.trials if trial.state.name == "COMPLETE"]
    assert pruned
    for trial in pruned:
        # Another one was better on the same seeds.
        assert any(sum(other[seed] for seed in trial) < sum(trial.values()) for other in finished)
    # What was cut off was not run over all seeds.
    runs = [len(list(trial.rglob("flows.parquet"))) for trial in sorted((tmp_path / "out/trials").glob("*/*"))]
    assert max(runs) == 6
    assert min(runs) in (4, 5)


def test_a_score_is_an_objective_and_a_bar(tmp_path: Path) -> None:
    steps = {"port.ecn.step": ["20KB", "80KB", "320KB"]}
    untuned = nw.run(queue(), tmp_path / "untuned", seeds=2, progress=False)
    file = tmp_path / "reference.toml"
    words = ["score", str(untuned.directory), "--metric", "network.max_queue", "--metric", "fct.max", "--save-baseline", str(file)]
    subprocess.run([sys.executable, "-m", "narrows", *words], check=True, capture_output=True, timeout=300)
    assert untuned.score(file)[0]["g"] == 1.0
    tuned = nw.tune(
        queue(),
        minimize=f"G({file})",
        subject_to=f"W({file}) <= 1.5",
        where=steps,
        trials=6,
        seeds=2,
        out=tmp_path / "out",
        progress=False,
    )
    best = tuned.best[0]
    assert best.objectives[f"G({file})"] <= 1.0
    results = nw.Results(tmp_path / "out/trials" / tuned.study.study_name / f"{best.number:04}")
    [score] = results.score(file)
    assert score["g"] == best.objectives[f"G({file})"]
    assert score["w"] <= 1.5
    # What is wrong with a reference is found before the first trial.
    whole = file.read_text(encoding="utf-8")
    for part, other, said in [("seeds = [", "seeds = [7, 7,", "seeds in order"), ('"queue"', '"other"', "of the scenario `queue`")]:
        file.write_text(whole.replace(part, other, 1), encoding="utf-8")
        with pytest.raises(ValueError, match=f"reference.toml`: .*{said}"):
            nw.tune(queue(), minimize=f"G({file})", where=steps, trials=1, seeds=2, out=tmp_path / "never", progress=False)
    assert not (tmp_path / "never").exists()
    # The scenario's name may be set.
    file.write_text(whole.replace('"queue"', '"other"', 1), encoding="utf-8")
    nw.tune(
        queue(), minimize=f"G({file})", where=steps, set={"name": "other"}, trials=1, seeds=2, out=tmp_path / "set", progress=False
    )
    file.write_text(whole, encoding="utf-8")
    with pytest.raises(ValueError, match="seeds"):
        nw.run(queue(), tmp_path / "other", seed=9, progress=False).score(file)


def test_another_direction_is_another_study(tmp_path: Path) -> None:
    def tune(**objective: str) -> nw.TuneResult:
        where = {"port.ecn.step": ["20KB", "320KB"]}
        return nw.tune(queue(), **objective, where=where, trials=4, seeds=1, out=tmp_path / "out", progress=False)  # type: ignore[arg-type]

    assert tune(minimize="network.max_queue").best[0].set == {"port.ecn.step": "20KB"}
    assert tune(maximize="network.max_queue").best[0].set == {"port.ecn.step": "320KB"}
    assert len(list((tmp_path / "out/trials").iterdir())) == 2


def test_values_that_do_not_go_together_cost_a_trial_and_not_the_tuning(tmp_path: Path) -> None:
    where = {"port.ecn.min": ["10KB", "200KB"], "port.ecn.max": ["100KB", "400KB"]}
    marked = queue().replace(port=config.Port(buffer="1MB", ecn=config.RedMarking(min="50KB", max="300KB")))
    tuned = nw.tune(marked, minimize="fct.max", where=where, trials=10, seeds=1, out=tmp_path / "out", progress=False)
    assert tuned.best
    assert all(setting.set != {"port.ecn.min": "200KB", "port.ecn.max": "100KB"} for setting in tuned.best)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"minimize": "p98(fct)"}, "no such function"),
        ({"minimize": ()}, "expected something to minimize"),
        ({"where": {}}, "expected at least one key"),
        ({"where": {"port.bufer": ("1KB", "2KB")}}, "did you mean `buffer`"),
        ({"where": {"port.buffer": ("2KB", "1KB")}}, "is not above"),
        ({"where": {"port.buffer": ("1KB", "1ms")}}, "of another kind"),
        ({"where": {"port.loss_probability": nw.Range("0%..5%", log=True)}}, "no logarithm"),
        ({"minimize": ["fct.max", "goodput"], "successive_halving": True}, "halving needs one objective"),
        ({"minimize": ["fct.max", "goodput"], "racing": True}, "racing needs one objective"),
        ({"racing": True, "seeds": 3}, "racing needs at least 5 seeds"),
        ({"racing": True, "successive_halving": True}, "not by both"),
        ({"minimize": "G(none.toml)"}, "none.toml"),
        ({"subject_to": "W(none.toml)"}, "expected W"),
        ({"subject_to": "G(none.toml) <= 1.2.3"}, "expected G"),
        ({"schemes": ["nope"]}, "there is no scheme `nope`; there are "),
        ({"threads": 0}, "`threads=0` is no number of threads"),
        ({"trials": 0}, "`trials=0` is no number of trials"),
        ({"seeds": 0}, "`seeds=0` is no number of seeds"),
        ({"parallel": 0}, "`parallel=0` is no number of trials at the same time"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(words: dict[str, object], said: str, tmp_path: Path) -> None:
    given = {"minimize": "fct.max", "where": {"port.buffer": ("1KB", "2MB")}, "out": tmp_path / "out", "trials": 1, **words}
    with pytest.raises(ValueError, match=said):
        nw.tune(queue(), **given)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_a_directory_is_tuned_in_by_one_at_a_time(tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = {"minimize": "fct.max", "where": {"port.buffer": ["1MB"]}, "trials": 1, "seeds": 1, "out": out, "progress": False}
    out.mkdir()
    with (out / "tune.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="another `narrows tune` is at work in"):
            nw.tune(queue(), **given)  # type: ignore[arg-type]
    assert nw.tune(queue(), **given).best  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [{}, {"storage": "nowhere://x"}])
def test_where_trials_cannot_be_kept_is_said(words: dict[str, object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "trials.sqlite").write_text("a user's own")
    with pytest.raises(OSError, match="trials cannot be kept in `"):
        nw.tune(queue(), minimize="fct.max", where={"port.buffer": ["1MB"]}, trials=1, out=out, **words)  # type: ignore[arg-type]
    assert (out / "trials.sqlite").read_text() == "a user's own"


@pytest.mark.parametrize("parallel", [1, 2])
def test_sigterm_ends_as_ctrl_c_does(parallel: int, tmp_path: Path) -> None:
    queue().replace(stop="1000s", traffic=[config.Permutation(scope="any", size="1TB")]).save(tmp_path / "queue.toml")
    words = ["tune", "queue.toml", "--minimize", "network.max_queue", "--where", "port.ecn.step=20KB,320KB", "--out", "out"]
    program = [sys.executable, "-m", "narrows", *words, "--parallel", str(parallel)]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as tuning, within(120, tuning):
        ends = time.monotonic() + 60
        while len(list((tmp_path / "out").glob("trials/*/*/.next"))) < parallel and tuning.poll() is None:
            assert time.monotonic() < ends, "no trial began"
            time.sleep(0.05)
        tuning.terminate()
        _, said = tuning.communicate()
    assert (tuning.returncode, said.startswith("interrupted: ")) == (130, True), said


def test_settings_are_written_as_the_command_line_has_them() -> None:
    setting = Setting(3, {"a.b": True, "c": "20KB", "d": "two words", "e": 0.5}, {"m": 1.0})
    assert str(setting) == "m = 1  --set a.b=true --set c=20KB --set 'd=two words' --set e=0.5"


def test_a_time_is_not_compared_with_a_number(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a time and `5` is a number"):
        nw.tune(
            queue(), minimize="fct.max", where={"port.buffer": ["1MB"]}, subject_to="fct.max <= 5", trials=1, out=tmp_path / "out"
        )


def test_the_command(tmp_path: Path) -> None:
    queue().save(tmp_path / "queue.toml")
    words = ["tune", "queue.toml", "--minimize", "network.max_queue", "--where", "port.ecn.step=20KB,320KB", "--trials", "4"]
    program = [sys.executable, "-m", "narrows", *words, "--seeds", "1", "--parallel", "2"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "--set port.ecn.step=20KB" in done.stdout
    wrong = subprocess.run([*program, "--set", "seedd=1"], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=300)
    assert (wrong.returncode, "did you mean `seed`?" in wrong.stderr) == (2, True), wrong.stderr
