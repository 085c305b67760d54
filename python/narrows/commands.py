"""Commands that are in Python: figures, tuning, and sweeps on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def _plot(words: list[str]) -> int:
    from narrows import plotting

    return plotting.main(words)


def _tune(words: list[str]) -> int:
    from narrows import tuning

    return tuning.main(words)


def _cluster(words: list[str]) -> int:
    from narrows import cluster

    return cluster.main(words)


#: By the word that the command line begins with.
IN_PYTHON: dict[str, Callable[[list[str]], int]] = {"plot": _plot, "tune": _tune, "sweep --ray": _cluster}
