"""Writes the user's tables of delays to a directory in which tc finds them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.lab.errors import LabError

# Directories that tc searches: Debian's multiarch path, upstream's, and that of newer iproute2.
PUBLISHED = ("/usr/lib/*/tc", "/usr/lib/tc", "/usr/lib64/tc", "/usr/share/tc")


def offer(directory: Path, tables: Mapping[str, Sequence[int]]) -> None:
    """Writes NAME.dist for each table, links iproute2's own tables in the same directory, and makes tc use
    the directory (TC_LIB_DIR of this process). Raises LabError if a file cannot be written.
    """
    try:
        directory.mkdir(exist_ok=True)
        for pattern in PUBLISHED:
            for file in sorted(Path("/").glob(f"{pattern.lstrip('/')}/*.dist")):
                if not (directory / file.name).exists():
                    (directory / file.name).symlink_to(file)
        for name, entries in tables.items():
            text = "".join(f"{entry}\n" for entry in entries)
            (directory / f"{name}.dist").write_text(f"# {name}: delays in 1/8192 of the jitter\n{text}")
    except OSError as error:
        raise LabError(f"{directory}: tables of delays: {error.strerror}") from error
    os.environ["TC_LIB_DIR"] = str(directory)
