"""The parts of a page that a script writes, from `<!-- generated: NAME -->` to `<!-- end -->`."""

import re
import sys
from pathlib import Path


def fill(page: Path, parts: dict[str, str]) -> bool:
    """Writes these parts of a page by their names, all or none; says what is wrong with the page."""
    text = page.read_text()
    for name, part in parts.items():
        around = re.split(rf"<!-- generated: {name} -->\n.*?<!-- end -->", text, flags=re.S)
        if len(around) != 2:
            print(f"{page}: not exactly one part `<!-- generated: {name} -->` to `<!-- end -->`", file=sys.stderr)
            return False
        text = f"<!-- generated: {name} -->\n\n{part}\n\n<!-- end -->".join(around)
    page.write_text(text)
    return True
