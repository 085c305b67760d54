"""Laws written in Python, for trying out.

A `Law` decides how much its flow may send. It runs in the simulator as a built-in law does and leaves the same results, but
each acknowledgement is a call of Python, so it is slow. `Law.to_rust` writes the beginning of the same law in Rust.

Units: times are whole picoseconds, data is in bytes, rates are in bits a second.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from narrows._laws import LawBase, declared, slow
from narrows.porting import law_to_rust
from narrows.scenario import with_laws

if TYPE_CHECKING:
    from pathlib import Path

    from narrows.scenario import Scenario

__all__ = ["Law", "declared", "interrupt", "slow", "with_laws"]


class Law(LawBase):
    """A congestion-control law: the base class of laws in Python.

    A subclass implements `on_ack`, `on_loss` and `on_timeout`, and sets `cwnd` and `pacing_rate`. Each flow has its own object;
    with `law_per = "subflow"` of `load_balancing` (`kind = "unolb"`), each subflow has one. Flows on a persistent connection
    (`connections = "persistent"`) share the object of the first flow; an object is made for each later flow too, but receives
    no events.

    Parameters are the attributes of the class with a type (`int`, `float` or `bool`) and a value; a scheme sets others in
    `params`. A `ClassVar`, and a name that begins with an underscore, is not a parameter.
    """

    @classmethod
    def to_rust(
        cls,
        checkout: str | Path,
        *,
        name: str | None = None,
        scenario: Scenario | None = None,
        events: int = 2000,
    ) -> list[Path]:
        """Start the same law in Rust: see `law_to_rust`."""
        return law_to_rust(cls, checkout, name=name, scenario=scenario, events=events)


def interrupt(thread: int) -> None:
    """Raise `KeyboardInterrupt` in a thread whose law may be in an endless loop. Called by the native part."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
