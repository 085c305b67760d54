"""What the book's page and the notebooks say is true."""

from __future__ import annotations

import base64
import contextlib
import io
import linecache
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
BLOCK = re.compile(r"(?P<skip><!-- not run -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)


def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = io.StringIO()
    ran = 0
    for block in BLOCK.finditer((ROOT / "docs/src/python.md").read_text(encoding="utf-8")):
        if block["language"] == "python" and not block["skip"]:
            printed = io.StringIO()
            # As a notebook does, so that the source of a class is known.
            cell = f"<python.md, {ran}>"
            linecache.cache[cell] = (len(block["text"]), None, block["text"].splitlines(keepends=True), cell)
            with contextlib.redirect_stdout(printed):
                exec(compile(block["text"], cell, "exec"), names)
            ran += 1
        elif block["language"] == "text":
            assert block["text"] in printed.getvalue(), printed.getvalue()
    assert ran >= 6
    assert (tmp_path / "first.pdf").stat().st_size > 1000


def test_the_readme_shows_code_of_the_page() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text(encoding="utf-8"), re.DOTALL)
    page = (ROOT / "docs/src/python.md").read_text(encoding="utf-8")
    assert [line for line in block.splitlines() if line not in page] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    # Its paths are those of where it lies; what it makes does not go there.
    where = tmp_path / "docs/notebooks"
    where.mkdir(parents=True)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(where)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    # A cell that ends with a figure shows it.
    drawn = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.splitlines()[-1].startswith("nw.plot(")]
    assert bool(drawn) == (path.stem != "training")
    for cell in drawn:
        (picture,) = [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
        assert base64.b64decode(picture).startswith(b"\x89PNG")


def test_there_are_three_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-figure", "parameter-study", "training"]
