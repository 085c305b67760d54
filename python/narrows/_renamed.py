"""Former names of the package, each with the name that replaces it.

A former argument is a `TypeError`, a former attribute an `AttributeError`, and a former name after `from narrows import` an
`ImportError`; each states the new name. Former keys of scenario files are listed where files are read, in Rust.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from narrows._given import said

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

#: Arguments of calls.
ARGUMENTS = {
    "against": "baseline",
    "anew": "force",
    "cells": "metrics",
    "checked": "check_invariants",
    "halve": "successive_halving",
    "newcomers": "not_in_baseline",
    "on": "cluster",
    "over": "vary",
    "race": "racing",
}
#: Attributes of modules and classes.
ATTRIBUTES = {
    "narrows": {"LawPath": "PathInfo", "Tuned": "TuneResult", "front": "pareto_front", "tables": "config"},
    "narrows.config": {
        "BroughtLaw": "ExternalLaw",
        "BurstTable": "LossBursts",
        "HostOver": "HostOverrides",
        "Import": "ImportedTraffic",
        "List": "FlowList",
        "Long": "LongFlows",
        "PhantomTable": "PhantomQueue",
        "PortOver": "PortOverrides",
        "PortPatch": "PortClassOverrides",
        "Red": "RedMarking",
        "Sample": "RandomPoints",
        "Series": "Monitor",
        "Step": "StepMarking",
        "SwitchOver": "SwitchOverrides",
        "TrimTable": "Trimming",
    },
    "Ack": {"left": "bytes_remaining"},
    "Results": {"hold": "check", "of": "subset", "ports": "port_samples", "rates": "flow_samples"},
    "Run": {"ports": "port_samples", "rates": "flow_samples"},
}


def arguments(call: Callable[P, R]) -> Callable[P, R]:
    """Wrap a call so that the error for a former argument states the new one."""
    accepted = inspect.signature(call).parameters
    former = {old: new for old, new in ARGUMENTS.items() if new in accepted and old not in accepted}

    @functools.wraps(call)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name in former:
                raise TypeError(said(f"{call.__name__}() has no argument `{name}`", f"renamed to `{former[name]}`"))
        return call(*args, **kwargs)

    return wrapped


def no_attribute(owner: str, name: str) -> AttributeError:
    """Return the error for an attribute that an object or a module lacks."""
    what = f"module '{owner}'" if owner.startswith("narrows") else f"'{owner}' object"
    new = ATTRIBUTES.get(owner, {}).get(name)
    return AttributeError(said(f"{what} has no attribute '{name}'", f"renamed to `{new}`" if new else ""), name=name)


def no_name(module: str, name: str) -> AttributeError | ImportError:
    """Return the error for a name that a module lacks. To be called by the module's `__getattr__`."""
    error = no_attribute(module, name)
    # `from MODULE import NAME` replaces an AttributeError by an error of its own, without the new name.
    if name in ATTRIBUTES.get(module, {}) and sys._getframe(2).f_code.co_name == "_handle_fromlist":
        return ImportError(str(error), name=module)
    return error


class Attributes:
    """Base class that answers former attributes."""

    if not TYPE_CHECKING:  # Type checkers would accept any name.

        def __getattr__(self, name: str) -> Any:
            """Refuse an attribute that does not exist."""
            known = [of.__name__ for of in type(self).__mro__ if name in ATTRIBUTES.get(of.__name__, {})]
            raise no_attribute(known[0] if known else type(self).__name__, name)
