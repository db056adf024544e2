"""Says which run of a campaign's cell counts: the last one that cells.jsonl has of it.

A cell has several lines if it failed or was interrupted and was run again, or if it was suspect and the
campaign runs suspect cells again. Imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

COMPLETE = "complete"
Line = Mapping[str, Any]


def set_aside(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Returns for each cell the lines of its complete runs that do not count, in their order."""
    by_cell: dict[str, list[Line]] = {}
    for line in lines:
        by_cell.setdefault(str(line["cell"]), []).append(line)
    found = {
        name: [line for line in several[:-1] if line.get("state") == COMPLETE]
        for name, several in by_cell.items()
    }
    return {name: earlier for name, earlier in found.items() if earlier}
