"""A former name is answered with the new one."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

import narrows as nw
from narrows import _renamed, config, porting

if TYPE_CHECKING:
    from collections.abc import Callable

    from narrows._table import Table

#: Calls by the former arguments that they had.
CALLS: dict[str, list[Callable[..., Any]]] = {
    "against": [nw.pareto_front, nw.Results.score],
    "anew": [nw.run, nw.sweep],
    "cells": [nw.pareto_front, nw.Results.score],
    "checked": [nw.run, nw.sweep],
    "halve": [nw.tune],
    "newcomers": [nw.pareto_front, nw.Results.score],
    "on": [nw.sweep],
    "over": [nw.run, nw.sweep, nw.Scenario.read],
    "race": [nw.tune],
}
OBJECTS: dict[str, object] = {"narrows": nw, "narrows.config": config}


def test_former_arguments_name_the_new_ones() -> None:
    assert CALLS.keys() == _renamed.ARGUMENTS.keys()
    for old, new in _renamed.ARGUMENTS.items():
        for call in CALLS[old]:
            assert new in inspect.signature(call).parameters
            with pytest.raises(TypeError, match=rf"{call.__name__}\(\) has no argument `{old}`\nhelp: renamed to `{new}`$"):
                call(**{old: None})
    # An argument that never was one is refused as by any call.
    with pytest.raises(TypeError, match="unexpected keyword argument 'ovr'"):
        nw.run("a.toml", ovr={})  # type: ignore[call-arg]


def test_former_attributes_name_the_new_ones(results: nw.Results) -> None:
    objects = {**OBJECTS, "Results": results, "Run": results[0], "Ack": seen()}
    assert objects.keys() == _renamed.ATTRIBUTES.keys()
    for owner, names in _renamed.ATTRIBUTES.items():
        for old, new in names.items():
            assert hasattr(objects[owner], new)
            with pytest.raises(AttributeError, match=rf"'{owner}'.* has no attribute '{old}'\nhelp: renamed to `{new}`$"):
                getattr(objects[owner], old)
        with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
            _ = objects[owner].nothing  # type: ignore[attr-defined]


def seen() -> nw.Ack:
    """An acknowledgement that a law received."""
    acks: list[nw.Ack] = []

    class Keeps(nw.Law):
        """Keeps what it receives."""

        def on_ack(self, ack: nw.Ack) -> None:
            acks.append(ack)

        def on_loss(self, loss: nw.Loss) -> None:
            pass

        def on_timeout(self, timeout: nw.Timeout) -> None:
            pass

    porting.recorded(Keeps)
    return acks[0]


def test_former_names_are_not_imported() -> None:
    for old, new in _renamed.ATTRIBUTES["narrows"].items():
        with pytest.raises(ImportError, match=rf"'{old}'\nhelp: renamed to `{new}`$"):
            exec(f"from narrows import {old}")
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from narrows import nothing")


@pytest.mark.parametrize(
    ("table", "old", "new"),
    [(config.Host, "payload", "mss"), (config.Port, "hysteresis", "xon_offset"), (nw.Scenario, "series", "monitor")],
)
def test_former_keys_of_scenarios_name_the_new_ones(table: type[Table], old: str, new: str) -> None:
    """By the table of the readers of files, in Rust."""
    help_ = rf"`{old}`; .*\nhelp: renamed to `{new}`$"
    with pytest.raises(TypeError, match=help_):
        table(**{old: 1})
    with pytest.raises(nw.ScenarioError, match=help_):
        table.from_dict({old: 1})


def test_subclasses_answer_former_attributes(results: nw.Results) -> None:
    class Mine(nw.Results):
        pass

    mine = Mine.__new__(Mine)
    old, new = next(iter(_renamed.ATTRIBUTES["Results"].items()))
    with pytest.raises(AttributeError, match=f"renamed to `{new}`"):
        getattr(mine, old)
    assert not hasattr(mine, "no_such_name")
    assert not hasattr(results, "no_such_name")
