"""Commands implemented in Python: figures, tuning, and sweeps on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def _plot(options: dict[str, Any]) -> int:
    from narrows import plotting

    return plotting.main(options)


def _tune(options: dict[str, Any]) -> int:
    from narrows import tuning

    return tuning.main(options)


def cluster(words: list[str]) -> int:
    """`narrows sweep --ray`."""
    from narrows import cluster

    return cluster.main(words)


#: By name; each takes its options under the names of their definition in Rust.
IN_PYTHON: dict[str, Callable[[dict[str, Any]], int]] = {"plot": _plot, "tune": _tune}
