#!/usr/bin/env python3
"""Checks that links and images in the documentation lead to files that exist, and that no page is a stub."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)
# `make book` writes this page into the built book.
BUILT = ROOT / "docs/src/claims.html"
CODE = re.compile(r"^```.*?^```$", re.M | re.S)


def anchor(heading: str) -> str:
    words = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
    return words.replace(" ", "-")


def faults(page: Path) -> list[str]:
    text = CODE.sub("", page.read_text())
    found = [] if len(text.split()) > 30 or page.name == "SUMMARY.md" else ["a stub"]
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        file = page if not name else (page.parent / name).resolve()
        if file == BUILT:
            continue
        if not file.exists():
            found.append(f"{target} does not exist")
        elif fragment and fragment not in {anchor(heading) for heading in HEADING.findall(CODE.sub("", file.read_text()))}:
            found.append(f"{target} has no such heading")
    return found


def main() -> int:
    pages = [page for folder in (ROOT, ROOT / "docs/decisions") for page in sorted(folder.glob("*.md"))]
    pages += sorted((ROOT / "docs/src").rglob("*.md"))
    listed = {(ROOT / "docs/src" / link).resolve() for link in LINK.findall((ROOT / "docs/src/SUMMARY.md").read_text())}
    bad = 0
    for page in pages:
        found = faults(page)
        if ROOT / "docs/src" in page.parents and page.name != "SUMMARY.md" and page not in listed:
            found.append("is not in SUMMARY.md")
        for fault in found:
            print(f"{page.relative_to(ROOT)}: {fault}")
        bad += len(found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
