"""Reads a run's records: sent and received messages, sessions, progress and windows of bulk flows, spans,
debts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from capture import rawfile
from capture.rawfile import INTEGER, NAME, OPTIONAL, Raw
from contract.manifest import Warned

SENT = {
    "kind": "S",
    "flow": INTEGER,
    "seq": INTEGER,
    "bytes": INTEGER,
    "scheduled_ns": INTEGER,
    "sent_ns": INTEGER,
    "settled_ns": INTEGER,
    "attempts": INTEGER,
    "outcome": "[a-z]+",
}
RECEIVED = {
    "kind": "R",
    "flow": INTEGER,
    "seq": INTEGER,
    "receiver": NAME,
    "leg": "[01]",
    "received_ns": INTEGER,
    "copy": "[01]",
}
SESSION = {"kind": "C", "endpoint": NAME, "what": "[a-z]+", "t_ns": INTEGER, "detail": NAME, "peer": NAME}
PROGRESS = {
    "kind": "B",
    "flow": INTEGER,
    "endpoint": NAME,
    "leg": "[01]",
    "t_ns": INTEGER,
} | dict.fromkeys(("bytes", "packets", "lost", "retransmits", "rtt_ns"), OPTIONAL)
WINDOW = {
    "kind": "W",
    "flow": INTEGER,
    "endpoint": NAME,
    "stream": INTEGER,
    "t_ns": INTEGER,
    "segments": INTEGER,
    "threshold": OPTIONAL,
    "segment_bytes": INTEGER,
    "rtt_ns": INTEGER,
}
SPAN = {
    "kind": "P",
    "endpoint": NAME,
    "what": "[a-z-]+",
    "flow": OPTIONAL,
    "seq": OPTIONAL,
    "t_ns": INTEGER,
    "duration_ns": INTEGER,
}
DEBT = {"kind": "D", "flow": INTEGER, "from_seq": INTEGER, "to_seq": INTEGER, "state": "missing|refused"}
THERE, BACK = "0", "1"  # legs: 0 to the receiver; 1 for a reply, back at the sender


@dataclass(frozen=True, slots=True)
class Records:
    """The seven kinds of lines in raw/messages.csv as tables; only flows of the plan are included."""

    sent: pl.DataFrame
    received: pl.DataFrame
    sessions: pl.DataFrame
    progress: pl.DataFrame
    windows: pl.DataFrame
    spans: pl.DataFrame
    debts: pl.DataFrame  # messages from_seq to to_seq of a flow that were due and have no S record
    warnings: tuple[Warned, ...]


def read(path: Path, flows: int) -> Records:
    """Reads raw/messages.csv into one table for each kind of record; sent_ns and settled_ns of 0 (unknown)
    become null.

    `flows` is the number of the plan's flows. Leaves out records of other flows and lines that are not
    records, with warnings.
    """
    raw = rawfile.read(path)
    found = []
    warnings = [*raw.warnings]
    unknown = 0
    for pattern in (SENT, RECEIVED, SESSION, PROGRESS, WINDOW, SPAN, DEBT):
        of_kind = Raw(raw.lines.filter(pl.col("line").str.starts_with(pattern["kind"] + ",")))
        if pattern is SESSION:
            of_kind = _with_peer(of_kind)
        table = rawfile.fields(of_kind, path.name, pattern)
        warnings += table.warnings
        lines = table.lines.drop("kind")
        if "flow" in pattern:
            known = lines.filter(pl.col("flow").is_null() | pl.col("flow").is_between(0, flows - 1))
            unknown += lines.height - known.height
            lines = known.with_columns(pl.col("flow").cast(pl.UInt32))
        found.append(lines)
    sent, received, sessions, progress, windows, spans, debts = found
    times = [pl.when(pl.col(c) != 0).then(pl.col(c)).alias(c) for c in ("sent_ns", "settled_ns")]
    warnings += _strange(path, raw.lines, unknown, flows)
    sent = sent.with_columns(times)
    return Records(sent, received, sessions, progress, windows, spans, debts, tuple(warnings))


def _with_peer(raw: Raw) -> Raw:
    """Adds an empty last field (`peer`) to session lines that lack it."""
    unquoted = pl.col("line").str.replace_all('"(?:[^"]|"")*"', "")
    short = unquoted.str.count_matches(",") == len(SESSION) - 2
    whole = pl.when(short).then(pl.col("line") + ",").otherwise("line")
    return Raw(raw.lines.with_columns(whole.alias("line")), raw.warnings)


def _strange(path: Path, lines: pl.DataFrame, unknown: int, flows: int) -> list[Warned]:
    """Returns warnings of lines of unknown kinds and of lines of unknown flows."""
    found = []
    if other := lines.filter(~pl.col("line").str.contains("^[SRCBWPD],")).height:
        text = f"{path.name}: {other} lines are of no known kind and were left out."
        found.append(Warned("reduce-odd-lines", text, "Another version may have written the file."))
    if unknown:
        text = f"{path.name}: {unknown} records are of flows that the plan does not have; they are left out."
        remedy = f"A record's flow is a number from 0 to {flows - 1}." if flows else "The plan has no flows."
        found.append(Warned("reduce-unknown-flow", text, remedy))
    return found
