"""Inserts numbers of published examples into README.md and the pages (`make figures`).

    figures.py            writes what differs, and names the pages
    figures.py --check    writes nothing; status 1 and the names where something differs

A page says `<!-- figure: NAME -->`, what FIGURES of figure_tables.py has for NAME, and
`<!-- end of figure -->`. What stands between them comes from the example's tables, never from a hand.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from figure_tables import FIGURES

ROOT = Path(__file__).resolve().parents[2]
MARKED = re.compile(r"(<!-- figure: ([\w-]+) -->)(.*?)(<!-- end of figure -->)", re.DOTALL)


def inserted(page: str, text: str) -> str:
    """The page with each marked figure as its example has it now."""

    def now(match: re.Match[str]) -> str:
        if match[2] not in FIGURES:
            raise SystemExit(f"figures: {page}: {match[2]!r}: no such figure; there are {', '.join(FIGURES)}")
        return f"{match[1]}{FIGURES[match[2]]()}{match[4]}"

    return MARKED.sub(now, text)


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def differing() -> dict[Path, str]:
    """Pages whose figures differ from the examples, with the text that they should have."""
    texts = {page: page.read_text(encoding="utf-8") for page in pages()}
    made = {page: inserted(str(page.relative_to(ROOT)), text) for page, text in texts.items()}
    return {page: text for page, text in made.items() if text != texts[page]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    found = differing()
    for page, text in found.items():
        print(f"figures: {page.relative_to(ROOT)}: {'differs' if options.check else 'written'}")
        if not options.check:
            page.write_text(text, encoding="utf-8")
    raise SystemExit(1 if found and options.check else 0)


if __name__ == "__main__":
    main()
