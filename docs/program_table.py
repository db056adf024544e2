"""Writes the table of programs in virtual-time.md from the list of the tests (tests/virtual/program_cases.py).

`python docs/program_table.py` writes; `--check` only compares, with status 1 if the page has another table.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "virtual-time.md"
BEGIN, END = "<!-- programs: begin -->", "<!-- programs: end -->"
sys.path.insert(0, str(ROOT / "tests" / "virtual"))


def table() -> str:
    """Returns the table as Markdown, a row for each program."""
    from program_cases import PROGRAMS

    lines = ["| program | tested with | runs | repeats | limits |", "|---|---|---|---|---|"]
    for one in PROGRAMS:
        runs = "refused" if one.refused else "yes"
        repeats = "" if one.refused else "to the byte"
        lines.append(f"| {one.name} | {one.what} | {runs} | {repeats} | {one.limits} |")
    return "\n".join(lines)


def renewed(page: str) -> str:
    """Returns the page's text with the present table; ValueError if it has no place for one."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE}: lacks the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main(argv: list[str]) -> int:
    """Writes the page or compares it; returns the exit status."""
    text = PAGE.read_text()
    if argv == ["--check"]:
        return int(renewed(text) != text)
    PAGE.write_text(renewed(text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
