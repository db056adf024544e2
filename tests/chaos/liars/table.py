"""Reads the table of liars in docs/reliability.md for the tests; run as a command, tries the liars and writes
the table.

    python tests/chaos/liars/table.py [RUN] [--slow]

RUN: a run of the lab in base.py, in virtual time, which the liars in files change; --slow: also tries those
that need labs of their own.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def main(run_dir: Path | None) -> int:
    """Tries all liars, writes the table and returns how many vNET missed. Without a run, the rows of liars in
    files stay.
    """
    sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / name) for name in ("chaos", "virtual", "cli"))]
    from liars.registry import GROUPS

    rows = dict(documented())
    for liar in (one for group in GROUPS.values() for one in group) if run_dir else ():
        rows[liar.name] = _of_files(run_dir, liar)
    rows |= _slow(rows, again="--slow" in sys.argv)
    _write(rows)
    return sum(row.answer == "missed" for row in rows.values())


def _of_files(run_dir: Path | None, liar: Any) -> Row:
    from liars.liar import Truth, tried

    with tempfile.TemporaryDirectory() as folder:
        found = tried(Truth(run_dir), liar, Path(folder))  # type: ignore[arg-type]
    return _row(liar.name, liar.what, found)


def _row(name: str, what: str, found: Any) -> Row:
    print(name, found.answer, *(found.marks[:3] or found.wrong[:6]), sep=" | ", flush=True)
    by = ", ".join(found.codes) if found.marks else ""
    return Row(name, what, found.answer, by)


def _slow(rows: dict[str, Row], again: bool) -> dict[str, Row]:
    """Returns the rows of liars that need a lab of their own; those in real time get "caught" without being
    run here, because their test judges them.
    """
    from virtual_place import Place

    from liars import live, real

    found = {one.name: Row(one.name, one.what, "caught", _codes(one.codes)) for one in real.LIARS}

    def ran(one: live.Live, folder: Path) -> Path:
        place = Place(folder / one.name)
        (place.cwd / "live.yaml").write_text(live.lab(one))
        return place.run("--json", file="live.yaml").run_dir

    with tempfile.TemporaryDirectory() as name:
        true = ran(live.HONEST, Path(name)) if again else None
        for one in live.LIARS:
            if true is None:
                found[one.name] = rows[one.name]
                continue
            run = ran(one, Path(name))
            print("" if live.lied(run) else f"{one.name} did nothing", end="")
            found[one.name] = _row(one.name, one.what, live.outcome(true, run))
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
    runs = [Path(word) for word in sys.argv[1:] if not word.startswith("--")]
    sys.exit(bool(main(runs[0] if runs else None)))
