"""Writes `narrows/config.py` from the schema of scenario files: a class for each table.

`python generate.py` prints the module; the tests hold the file to it.
"""

from __future__ import annotations

import json
import keyword
import re
import sys
import textwrap
from typing import Any

from narrows import _narrows

HEAD = '''"""Classes for the tables of a scenario file: one field a key.

Generated from the schema by `python generate.py > narrows/config.py`; the file format's reference has the same texts. A field
that is not set is not written to the file, and has the default that the reference states. Times, rates and sizes are texts with
units, such as `"2ms"`, `"100Gbps"` and `"1MiB"`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from narrows import _renamed
from narrows._table import Candidates, Table

if TYPE_CHECKING:
    from collections.abc import Sequence
'''
TAIL = '''

if not TYPE_CHECKING:  # Type checkers would accept any name.

    def __getattr__(name: str) -> object:
        """Refuse a name that the module lacks."""
        raise _renamed.no_name(__name__, name)
'''

Schema = dict[str, Any]


def name_of(key: str) -> str:
    """Return the field name of a key: words of Python get a trailing underscore."""
    name = re.sub(r"\W", "_", key)
    return f"{name}_" if keyword.iskeyword(name) else name


class Writer:
    """Writer of the classes, each after the classes that it refers to."""

    def __init__(self) -> None:
        """Start without classes."""
        self.classes: dict[str, str] = {}

    def type_of(self, schema: Schema, found: list[str]) -> str:
        """Return the type of a value; the classes of tables in it are added to `found`."""
        if "const" in schema:
            return f"Literal[{json.dumps(schema['const'])}]"
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(word) for word in schema['enum'])}]"
        for several in ("oneOf", "anyOf"):
            if several in schema:
                return self.union(schema[several], found)
        match schema.get("type"):
            case list() as kinds:
                return self.union([{"type": kind} for kind in kinds], found)
            case "string":
                return "str"
            case "integer":
                return "int"
            case "number":
                return "float"
            case "boolean":
                return "bool"
            case "array":
                items = self.type_of(schema.get("items", {}), found)
                return f"Sequence[{items}]"
            case "object":
                if "x-table" in schema:
                    self.write(schema)
                    found.append(schema["x-table"])
                    return str(schema["x-table"])
                values = schema.get("additionalProperties", {})
                inner = self.type_of(values, found) if isinstance(values, dict) else "Any"
                return f"dict[str, {inner}]"
            case _:
                return "Any"

    def union(self, schemas: list[Schema], found: list[str]) -> str:
        """Return the union of some types, each named once."""
        types: list[str] = []
        for schema in schemas:
            kind = self.type_of(schema, found)
            if kind == "Any":
                return "Any"
            if kind not in types:
                types.append(kind)
        return " | ".join(types)

    def write(self, schema: Schema) -> None:
        """Write the class of a table, unless it exists."""
        name = schema["x-table"]
        if name in self.classes:
            return
        lines: list[str] = []
        candidates: dict[str, list[str]] = {}
        keys: dict[str, str] = {}
        required = set(schema.get("required", []))
        properties: dict[str, Schema] = schema["properties"]
        ordered = sorted(properties, key=lambda key: key not in required)
        for key in ordered:
            value = properties[key]
            field = name_of(key)
            if field != key:
                keys[field] = key
            if key == "kind" and "const" in value:
                continue
            found: list[str] = []
            kind = self.type_of(value, found)
            if found:
                candidates[field] = list(dict.fromkeys(found))
            declared = f"    {field}: {kind}" if key in required else f"    {field}: {kind} | None = None"
            if kind == "Any" and key not in required:
                declared = f"    {field}: Any = None"
            lines.append(declared)
            lines.append(indented(described(value, key in required)))
        head = [
            f"@dataclass(kw_only=True, repr=False)\nclass {name}(Table):",
            indented(docstring(schema["description"])),
            "",
        ]
        word = properties.get("kind", {}).get("const")
        if word is not None:
            head.append(f"    KIND: ClassVar[str | None] = {json.dumps(word)}")
        if keys:
            head.append(f"    KEYS: ClassVar[dict[str, str]] = {json.dumps(keys)}")
        if word is not None or keys:
            head.append("")
        tail = []
        if candidates:
            pairs = ", ".join(f'"{field}": lambda: ({", ".join(names)},)' for field, names in candidates.items())
            tail = ["", f"    CANDIDATES: ClassVar[Candidates] = {{{pairs}}}"]
        self.classes[name] = "\n".join([*head, *lines, *tail])


def docstring(text: str) -> str:
    """Return a text as a docstring."""
    text = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
    if text.endswith('"'):
        text += " "
    return "\n".join(textwrap.wrap(f'"""{text}"""', 112, break_long_words=False, break_on_hyphens=False))


def described(schema: Schema, required: bool) -> str:
    """Return the docstring of a key: its meaning, its accepted values and its default."""
    text = schema.get("description", "")
    takes = schema.get("title", "")
    if takes:
        text += f" Takes {takes}."
    default = schema.get("default")
    if default is not None and not isinstance(default, (dict, list)):
        text += f" Default: {json.dumps(default)}."
    elif required:
        text += " Required."
    return docstring(text)


def indented(text: str) -> str:
    """Indent a text by four spaces."""
    return textwrap.indent(text, "    ")


def module() -> str:
    """Return the text of the module."""
    writer = Writer()
    writer.write(json.loads(_narrows.schema()))
    return HEAD + "\n\n" + "\n\n\n".join(writer.classes.values()) + "\n" + TAIL


if __name__ == "__main__":
    sys.stdout.write(module())
