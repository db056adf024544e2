"""Describes what a run showed as a list of texts: outcomes of messages, kinds of log lines, TCP's rare
events, the order of events.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import polars as pl

from contract import events

MOST_LINES = 2000  # largest number of lines that are read of a log
_CHANGING = re.compile(r"0x[0-9a-f]+|[0-9a-f]*\d[0-9a-f.:]*", re.IGNORECASE)


def of_run(run_dir: Path) -> tuple[str, ...]:
    """Returns the features of a reduced run, sorted, each once."""
    return tuple(sorted({*_messages(run_dir), *_logs(run_dir), *_stacks(run_dir), *_order(run_dir)}))


def _size(count: int) -> int:
    """Returns the number of binary digits of a count: 0, 1, 2 (for 2 and 3), 3 (for 4 to 7)."""
    return count.bit_length()


def _messages(run_dir: Path) -> Iterator[str]:
    path = run_dir / "messages.parquet"
    if not path.exists():
        return
    of_message = pl.col("copies").fill_null(0)
    rows = pl.read_parquet(path, columns=["class", "copies", "settled_ns", "sent_ns"])
    for (name,), group in rows.group_by(["class"], maintain_order=True):
        lost = group.filter(of_message == 0).height
        more = int(group.select((of_message - 1).clip(0).sum()).item() or 0)
        unsent = group.filter(pl.col("sent_ns").fill_null(0) == 0).height
        unsettled = group.filter(pl.col("settled_ns").fill_null(0) == 0).height
        yield f"messages {name} {_size(lost)} {_size(more)} {_size(unsent)} {_size(unsettled)}"


def _logs(run_dir: Path) -> Iterator[str]:
    for log in sorted((run_dir / "raw" / "logs").glob("*.log")):
        with log.open(errors="replace") as lines:
            for _, line in zip(range(MOST_LINES), lines, strict=False):
                template = _CHANGING.sub("#", line.strip())
                yield f"log {log.stem} {hashlib.sha256(template.encode()).hexdigest()[:8]}"


def _stacks(run_dir: Path) -> Iterator[str]:
    """Yields node and name of each counter of rare TCP events that changed, such as connections that end in
    each state, expired timers, and segments that arrive twice. Leaves out the amounts, which differ in nearly
    all trials.
    """
    path = run_dir / "stacks.parquet"
    if path.exists():
        rows = pl.read_parquet(path, columns=["node", "counter"])
        for node, counter in rows.filter(pl.col("counter").str.starts_with("TcpExt")).iter_rows():
            yield f"tcp {node} {counter}"


def _order(run_dir: Path) -> Iterator[str]:
    """Yields each pair of session steps or timeline events that follow each other directly."""
    found: list[tuple[int, str]] = []
    sessions = run_dir / "sessions.parquet"
    if sessions.exists():
        rows = pl.read_parquet(sessions, columns=["endpoint", "what", "t_ns"])
        found += [(t_ns, f"{endpoint} {what}") for endpoint, what, t_ns in rows.iter_rows()]
    found += [(one.t_ns, f"{one.action} {' '.join(one.targets[:3])}") for one in events.read(run_dir)]
    for (_, one), (_, other) in pairwise(sorted(found)):
        yield f"order {one} > {other}"
