"""Makes the page's section of links to the logs of a run's programs and of its lab."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from reports.sections.section import Page, Part

MOST = 200  # links in one page
FEW = 12  # logs that need no folding
FOLDER = Path("raw/logs")


def section(page: Page) -> Part | None:
    """Returns the section of the page with up to MOST links; None for several runs, whose own pages have it,
    and if all logs are empty.
    """
    if not page.study.single:
        return None
    run = page.study.cells[0].run.path
    files = [file for file in sorted((run / FOLDER).glob("*.log")) if _printed(file)]
    logs = [(f"../{FOLDER}/{quote(one.name)}", one.name, _size(one)) for one in files[:MOST]]
    if not logs:
        return None
    return page.part("logs", "Logs", logs=logs, few=FEW, left_out=len(files) - len(logs))


def _printed(file: Path) -> bool:
    """Returns whether the log is a regular file, not a symbolic link, and not empty."""
    return file.is_file() and not file.is_symlink() and file.stat().st_size > 0


def _size(file: Path) -> str:
    size = file.stat().st_size
    return f"{size} B" if size < 1000 else f"{size / 1000:.3g} kB" if size < 1e6 else f"{size / 1e6:.3g} MB"
