"""Imports between the modules of the package: none of them is in a circle.

The graph is read from the sources, so imports count wherever they are: at the top, in functions, and under `TYPE_CHECKING`.
Python runs `narrows/__init__.py` before any module of the package; only an import that names the package itself counts for it.

The package need not be built: `python3 test_structure.py` does these tests, too.
"""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGE = Path(__file__).parents[1] / "narrows"

#: Line of an import, by the module that is imported.
Imports = dict[str, int]


def sources() -> dict[str, str]:
    """Texts of the modules, by their names. A stub has the imports of its native module."""
    files = sorted([*PACKAGE.glob("*.py"), *PACKAGE.glob("*.pyi")])
    names = {file: PACKAGE.name if file.stem == "__init__" else f"{PACKAGE.name}.{file.stem}" for file in files}
    assert len(set(names.values())) == len(names), "a module has a stub and a source"
    return {name: file.read_text(encoding="utf-8") for file, name in names.items()}


def graph(texts: Mapping[str, str]) -> dict[str, Imports]:
    """Imports of each module among these."""
    found: dict[str, Imports] = {}
    for name, text in texts.items():
        found[name] = {}
        for node in ast.walk(ast.parse(text, name)):
            for target, line in targets(node):
                # `from narrows import run` is of the package, where `run` is no module of it.
                module = target if target in texts else target.rpartition(".")[0]
                if module in texts:
                    found[name].setdefault(module, line)
    return found


def targets(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Full names of what a statement or a call imports, and its line."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, node.lineno) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        # The package has no packages in it, so every relative import is from the package itself.
        parts = [PACKAGE.name] if node.level else []
        parts += [node.module] if node.module else []
        yield from ((".".join([*parts, alias.name]), node.lineno) for alias in node.names)
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
            name = node.args[0].value
            yield f"{PACKAGE.name}{name}" if name.startswith(".") else name, node.lineno


def circle(imports: Mapping[str, Imports]) -> list[str]:
    """Modules that import each other in this order, the last of them the first again; empty where there are none."""
    done: set[str] = set()

    def search(path: list[str]) -> list[str]:
        for module in imports[path[-1]]:
            if module in path:
                return [*path[path.index(module) :], module]
            if module not in done and (found := search([*path, module])):
                return found
        done.add(path[-1])
        return []

    return next((found for name in imports if name not in done and (found := search([name]))), [])


def test_no_modules_import_each_other() -> None:
    imports = graph(sources())
    assert len(imports) > 20
    # What is certainly there, so that the graph is not empty by mistake.
    assert "narrows.plotting" in imports["narrows"]
    assert "narrows.figures" in imports["narrows.papers"]
    found = circle(imports)
    steps = [f"{one}, line {imports[one][two]}, imports {two}" for one, two in pairwise(found)]
    assert not found, "\n".join([f"modules import each other: {' -> '.join(found)}", *steps])


def test_circles_are_found() -> None:
    """Wherever an import is, and however it is written."""
    for back in [
        "import narrows.a",
        "import narrows.a as other",
        "from narrows import a",
        "from narrows.a import name",
        "from . import a",
        "from .a import name",
        "def late():\n    from narrows import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from narrows.a import name",
        "class Late:\n    def of(self):\n        return importlib.import_module('narrows.a')",
        "importlib.import_module('.a', 'narrows')",
        "__import__('narrows.a')",
    ]:
        texts = {"narrows": "from narrows.a import name", "narrows.a": "from narrows import b", "narrows.b": "", "narrows.c": back}
        assert circle(graph(texts)) == [], back
        texts["narrows.b"] = "import narrows.c"
        assert circle(graph(texts)) == ["narrows.a", "narrows.b", "narrows.c", "narrows.a"], back
    itself = {"narrows": "from narrows.a import name", "narrows.a": "import narrows as nw"}
    assert circle(graph(itself)) == ["narrows", "narrows.a", "narrows"]
    itself["narrows.a"] = "from narrows import name"
    assert circle(graph(itself)) == ["narrows", "narrows.a", "narrows"]
    assert circle(graph({"narrows.a": "from narrows.a import name"})) == ["narrows.a", "narrows.a"]


if __name__ == "__main__":
    test_circles_are_found()
    test_no_modules_import_each_other()
    print("no module of the package imports one that imports it")
