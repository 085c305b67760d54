"""Matplotlib's figure, as notebooks show it. Imported where a figure is drawn: Matplotlib is optional, and slow to import."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

#: Pixels per inch in a notebook.
DPI = 110


class Shown(Figure):
    """A figure made without pyplot, which is what tells notebooks how to show one."""

    def _repr_png_(self) -> bytes:
        """Return it as a picture: IPython's name for what a cell shows."""
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=DPI)
        return picture.getvalue()
