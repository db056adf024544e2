"""Makes the page's section on the logs of the run: links to all of them, and the last lines of each with the
times at which the node's agent read them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from reports.roles import SECOND, phases
from reports.rundir import Run
from reports.sections.section import Page, Part

MOST = 200  # largest number of logs on one page
FEW = 12  # up to this number, the logs are not folded
MOST_LINES = 2000  # largest number of lines of all logs together
MOST_OF_ONE = 200
READ_BYTES = 1 << 17  # bytes that are read from the end of a log
LONGEST = 300  # characters shown of a line
FOLDER = Path("raw/logs")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")  # escape sequences for colours


@dataclass(frozen=True)
class Log:
    """A log: its link, name and size, its last lines as (time, text), and whether earlier ones are left
    out. A time is in seconds from the start of the hold, "" if it is not known.
    """

    href: str
    name: str
    size: str
    lines: tuple[tuple[str, str], ...]
    cut: bool


def section(page: Page) -> Part | None:
    """Returns the section of the page with up to MOST logs; None for several runs, whose own pages have it,
    and if all logs are empty.
    """
    if not page.study.single:
        return None
    run = page.study.cells[0].run
    files = [file for file in sorted((run.path / FOLDER).glob("*.log")) if _printed(file)]
    if not files:
        return None
    shown = files[:MOST]
    each = max(1, min(MOST_OF_ONE, MOST_LINES // len(shown)))
    logs = [_log(run, one, each) for one in shown]
    times = any(time for log in logs for time, _ in log.lines)
    return page.part("logs", "Logs", logs=logs, few=FEW, left_out=len(files) - len(logs), times=times)


def _printed(file: Path) -> bool:
    """Returns whether the log is a regular file, not a symbolic link, and not empty."""
    return file.is_file() and not file.is_symlink() and file.stat().st_size > 0


def _log(run: Run, file: Path, most: int) -> Log:
    size = file.stat().st_size
    begin = max(0, size - READ_BYTES)
    with file.open("rb") as log:
        log.seek(begin)
        raw = log.read(READ_BYTES)
    offset, lines = begin, []
    for part in raw.splitlines(keepends=True):
        lines.append((offset, part))
        offset += len(part)
    kept = lines[-most:]
    stamp = _times(run, file.with_suffix(".times"))
    found = tuple((stamp(at), _text(part)) for at, part in kept)
    cut = begin > 0 or len(kept) < len(lines)
    return Log(f"../{FOLDER}/{quote(file.name)}", file.name, _size(size), found, cut)


def _text(raw: bytes) -> str:
    line = _ESCAPES.sub("", raw.decode(errors="replace").rstrip("\r\n"))
    line = "".join(char if char.isprintable() or char == "\t" else "\ufffd" for char in line)
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


class _Stamps:
    """The times of a log, by the offset from which on they count."""

    def __init__(self, stamps: list[tuple[int, int]], zero_ns: int) -> None:
        self._offsets = [offset for _, offset in stamps]
        self._times = [time for time, _ in stamps]
        self._zero_ns = zero_ns

    def __call__(self, offset: int) -> str:
        """Returns the time of the byte at `offset`, "" before the first."""
        place = bisect_right(self._offsets, offset) - 1
        return f"{(self._times[place] - self._zero_ns) / SECOND:.3f}" if place >= 0 else ""


def _times(run: Run, file: Path) -> _Stamps:
    """Returns the times in a file of lines `t_ns,offset`; none if it is absent, or the run has no hold."""
    hold = phases(run).get("hold")
    if hold is None or not file.is_file() or file.is_symlink():
        return _Stamps([], 0)
    stamps = []
    for line in file.read_text(errors="replace").splitlines():
        time, _, offset = line.partition(",")
        if time.isdecimal() and offset.isdecimal():
            stamps.append((int(time), int(offset)))
    stamps.sort(key=lambda one: one[1])
    return _Stamps(stamps, hold.start_ns)


def _size(size: int) -> str:
    return f"{size} B" if size < 1000 else f"{size / 1000:.3g} kB" if size < 1e6 else f"{size / 1e6:.3g} MB"
