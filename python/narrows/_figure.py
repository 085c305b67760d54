"""Figure of Matplotlib that notebooks show. Imported on demand: Matplotlib is optional, and slow to import."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

#: Pixels per inch in a notebook.
DPI = 110


class Shown(Figure):
    """Figure made without pyplot, which would register how notebooks show figures."""

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG, by the method name that IPython expects."""
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=DPI)
        return picture.getvalue()
