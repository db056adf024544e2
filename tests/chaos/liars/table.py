"""Reads the table of liars in docs/reliability.md for the tests; run as a command, tries the liars and writes
the table.

    python tests/chaos/liars/table.py            all liars: makes their runs (root; 15 minutes of a core)
    python tests/chaos/liars/table.py RUN        liars in files only, in an existing run of the lab in base.py

The second form keeps the other rows of the table.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- liars -->", "<!-- /liars -->"
ROW = re.compile(
    r"^\| `(?P<name>[\w-]+)` \| (?P<what>.*?) \| (?P<answer>caught|harmless|missed) \| (?P<by>.*?) \|$"
)


@dataclass(frozen=True)
class Row:
    """One liar as a row of the table in docs/reliability.md."""

    name: str
    what: str
    answer: str
    by: str


def documented() -> dict[str, Row]:
    """Returns the rows by the liar's name, in the order of the table."""
    text = DOCS.read_text(encoding="utf-8")
    part = text.partition(BEGIN)[2].partition(END)[0]
    found = (ROW.match(line) for line in part.splitlines())
    return {row["name"]: Row(**row.groupdict()) for row in found if row is not None}


def main(given: Path | None) -> int:
    """Tries liars, writes the table and returns how many vNET missed. given: the run for the liars in files;
    None: makes a new one, and tries also the liars that need a lab of their own.
    """
    sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / name) for name in ("chaos", "virtual", "cli"))]
    from liars.base import LAB
    from liars.registry import GROUPS

    rows = dict(documented())
    with tempfile.TemporaryDirectory() as name:
        run_dir = given or _run(Path(name) / "truth", LAB, "--strict")
        for liar in (one for group in GROUPS.values() for one in group):
            rows[liar.name] = _of_files(run_dir, liar)
        if given is None:
            rows |= _live(Path(name)) | _real(Path(name) / "real.xml")
    _write(rows)
    return sum(row.answer == "missed" for row in rows.values())


def _run(folder: Path, lab: str, option: str) -> Path:
    from virtual_place import Place

    place = Place(folder)
    (place.cwd / "lab.yaml").write_text(lab)
    return place.run(option, file="lab.yaml").run_dir


def _of_files(run_dir: Path, liar: Any) -> Row:
    from liars.liar import Truth, tried

    with tempfile.TemporaryDirectory() as folder:
        found = tried(Truth(run_dir), liar, Path(folder))
    return _row(liar.name, liar.what, found)


def _row(name: str, what: str, found: Any) -> Row:
    print(name, found.answer, *(found.marks[:3] or found.wrong[:6]), sep=" | ", flush=True)
    by = ", ".join(found.codes) if found.marks else ""
    return Row(name, what, found.answer, by)


def _live(folder: Path) -> dict[str, Row]:
    """Returns the rows of the liars in labs in virtual time. Raises ValueError if one did not lie."""
    from liars import live

    true, found = _run(folder / "true", live.lab(live.HONEST), "--json"), dict[str, Row]()
    for one in live.LIARS:
        run = _run(folder / one.name, live.lab(one), "--json")
        if not live.lied(run):
            raise ValueError(f"{one.name} did nothing")
        found[one.name] = _row(one.name, one.what, live.outcome(true, run))
    return found


def _real(results: Path) -> dict[str, Row]:
    """Returns the rows of the liars in real time, which their test judges: one that it finds unmarked is
    "missed". Raises ValueError if the test did not try one of them.
    """
    from liars import real

    test = ROOT / "tests" / "chaos" / "test_liars_real.py"
    argv = [sys.executable, "-m", "pytest", "-q", "-m", "", f"--junitxml={results}", str(test)]
    subprocess.run(argv, cwd=ROOT, check=False)
    cases = {
        str(case.get("name")).partition("[")[2].rstrip("]"): {child.tag for child in case}
        for case in ElementTree.parse(results).iter("testcase")
    }
    found = {}
    for one in real.LIARS:
        tags = cases.get(one.name)
        if tags is None or tags & {"skipped", "error"}:
            raise ValueError(f"{one.name} was not tried")
        answer = "missed" if "failure" in tags else "caught"
        print(one.name, answer, sep=" | ", flush=True)
        found[one.name] = Row(one.name, one.what, answer, _codes(one.codes))
    return found


def _codes(codes: Iterable[str]) -> str:
    return ", ".join(code.removeprefix("trust-") for code in codes)


def _write(rows: dict[str, Row]) -> None:
    from liars.registry import titled

    counts, out = Counter(row.answer for row in rows.values()), list[str]()
    for title, names in titled().items():
        out += ["", f"**{title}**", "", "| liar | what it does | | by |", "|---|---|---|---|"]
        out += [f"| `{n}` | {rows[n].what} | {rows[n].answer} | {rows[n].by} |" for n in names]
    said = ", ".join(f"{counts[answer]} {answer}" for answer in ("caught", "harmless", "missed"))
    text = DOCS.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    body = "\n".join([f"{len(rows)} liars: {said}.", *out])
    DOCS.write_text(f"{before}{BEGIN}\n{body}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    print(said)


if __name__ == "__main__":
    sys.exit(bool(main(Path(sys.argv[1]) if sys.argv[1:] else None)))
