"""Judges deliveries, lines of logs and events of a run; they are observed and need no interval."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from contract.plan import DELIVERED, Expectation
from contract.verdict import FAILS, HOLDS, OPEN
from reports.claims.verdict import Judgement
from reports.expect.span import first_ns, narrowed, span_of, whole_ns
from reports.numbers import plain
from reports.rundir import Run

LOGS = "raw/logs"
SHOWN = 100  # characters of a log line that are shown
LONGEST_LINE = 10_000  # characters of a log line that are searched
MOST_NAMED = 5  # largest number of nodes without a log, or of sessions without a record, that are named


def delivered(run: Run, one: Expectation) -> Judgement:
    """Judges all messages that were sent to an expected receiver, in the whole run or the time of `during` or
    `after`, whatever their protocol guarantees.

    A request counts as delivered when its reply arrives. `cannot tell` if none was sent, or if only messages
    are missing that were still under way at the end.
    """
    if one.during or one.after:
        span = span_of(run, one)
        if span is None:
            return Judgement(OPEN, f"the event {one.during or one.after} did not happen in the hold")
        run = narrowed(run, span)
    table = run.table("messages")
    if table is None:
        return Judgement(OPEN, "no messages were recorded")
    columns = {"traffic_class": "class", "guarantee": "guarantee"}
    rows = table.filter(pl.lit(True), *(pl.col(columns[name]) == value for name, value in one.of.items()))
    here = pl.col("received_ns").is_not_null() | pl.col("replied_ns").is_not_null()
    due = rows.filter(pl.col("receiver").is_not_null() & ((pl.col("sent_ns").fill_null(0) > 0) | here))
    if due.is_empty():
        return Judgement(OPEN, "no message was sent to an expected receiver")
    asked = pl.col("pattern") == "request"
    missing = due.filter(~here | (asked & pl.col("replied_ns").is_null()))
    flying = missing.filter(~pl.col("outcome").is_in(["settled", "sent"])).height
    twice = due.filter((pl.col("copies") > 1) | (pl.col("replies") > 1)).height
    lossless, single = DELIVERED[one.name]
    lost = missing.height - flying
    counts = [f"{lost:,} lost"] * bool(lossless and lost) + [f"{twice:,} twice"] * bool(single and twice)
    of = f"of {due.height:,} deliveries"
    if counts:
        return Judgement(FAILS, f"{', '.join(counts)} {of}")
    if lossless and flying:
        return Judgement(
            OPEN, f"{flying:,} {of} were not settled when the run ended; a longer drain would tell"
        )
    return Judgement(HOLDS, f"all {due.height:,} deliveries")


def log(run: Run, one: Expectation) -> Judgement:
    nodes = [node for node in run.plan.nodes if one.name in (node.name, node.group)]
    of_nodes = {node.name: _files(run.path / LOGS, node.name) for node in nodes}
    files = [file for found in of_nodes.values() for file in found]
    writers = [node.name for node in nodes if any(software.process for software in node.software)]
    absent = [name for name in writers if not of_nodes[name]]
    pattern = re.compile(one.pattern, re.IGNORECASE)
    found = [(file, number, line) for file in files for number, line in _lines(file) if pattern.search(line)]
    if not found and (absent or not files):
        return Judgement(OPEN, f"there is no log of {', '.join(absent[:MOST_NAMED]) or one.name} in {LOGS}")
    if not found:
        word = HOLDS if one.mode == "never" else FAILS
        return Judgement(word, f"no line of {len(files)} log{'s' * (len(files) > 1)} has it")
    file, number, line = found[0]
    word = FAILS if one.mode == "never" else HOLDS
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return Judgement(word, f"{LOGS}/{file.name}:{number}: {line.strip()[:SHOWN]}{more}")


def _files(logs: Path, node: str) -> list[Path]:
    """Returns the logs of a node's programs, sorted, without symbolic links."""
    return [file for file in sorted(logs.glob(f"{node}.*.log")) if file.is_file() and not file.is_symlink()]


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    with file.open(encoding="utf-8", errors="replace") as opened:
        for number, line in enumerate(opened, 1):
            yield number, line[:LONGEST_LINE]


def event(run: Run, one: Expectation) -> Judgement:
    """Judges whether an event of the timeline was applied successfully, or a step of a session happened, in
    the whole run or the time of `during` or `after`. Of the steps, only those of the nodes of `group` and
    those whose record has the expectation's text count.

    With `within`, it must happen in that time from the start; `cannot tell` if the run ended before, or if no
    events were recorded. An absent step also gives `cannot tell` if sessions have no records.
    """
    span = span_of(run, one) if one.during or one.after else whole_ns(run)
    if span is None:
        label = one.during or one.after
        why = (
            f"the event {label} did not happen in the hold" if label else "the run's phases are not recorded"
        )
        return Judgement(OPEN, why)
    of_timeline = one.name in {event.label for event in run.plan.events}
    times = _labelled(run, one.name) if of_timeline else _steps(run, one)
    if times is None:
        return Judgement(OPEN, "no events were recorded")
    inside = times.filter((times >= span.start_ns) & (times <= span.end_ns)).sort()
    if inside.is_empty():
        if not of_timeline and (why := _silent(run, one)):
            return Judgement(OPEN, why)
        short = one.within_ns is not None and span.end_ns < span.start_ns + one.within_ns
        word = HOLDS if one.mode == "never" else OPEN if short else FAILS
        return Judgement(word, "has not happened" + (", but the time ended early" if short else ""))
    after_ns = int(inside[0]) - span.start_ns
    often = "once" if inside.len() == 1 else f"{inside.len():,} times, first"
    said = f"{often} after {plain(after_ns / 1e9)} s"
    if one.mode == "never":
        return Judgement(FAILS, said)
    return Judgement(HOLDS if one.within_ns is None or after_ns <= one.within_ns else FAILS, said)


def _labelled(run: Run, label: str) -> pl.Series | None:
    events = run.table("events")
    if events is None or first_ns(events, label) is None:
        return None if events is None else pl.Series([], dtype=pl.Int64)
    return events.filter((pl.col("label") == label) & pl.col("ok")).get_column("t_ns")


def _steps(run: Run, one: Expectation) -> pl.Series | None:
    """Returns the times of a session's step; None without records of sessions."""
    sessions = run.table("sessions")
    if sessions is None:
        return None
    found = sessions.filter(pl.col("what") == one.name)
    if "group" in one.of:
        found = found.filter(pl.col("endpoint").is_in(list(_members(run, one))))
    if one.pattern:
        pattern = re.compile(one.pattern, re.IGNORECASE)
        said = found.get_column("detail").fill_null("")
        found = found.filter(pl.Series([pattern.search(text) is not None for text in said], dtype=pl.Boolean))
    return found.get_column("t_ns")


def _members(run: Run, one: Expectation) -> dict[str, bool]:
    """Returns the sessions of the expectation by endpoint: those of the nodes of `group`, else all. The value
    is whether the node's agent carries the session and so records its steps; for a program the records are
    optional.
    """
    group = one.of.get("group")
    return {
        session.endpoint: software.process is None
        for node, software, session in run.plan.sessions()
        if group in (None, node.name, node.group)
    }


def _silent(run: Run, one: Expectation) -> str:
    """Returns the reason why the absence of a step shows nothing: sessions of the agent without any record,
    or no session with one. Empty if there is none.
    """
    sessions, members = run.table("sessions"), _members(run, one)
    heard = set() if sessions is None else set(sessions.get_column("endpoint"))
    silent = [endpoint for endpoint, recorded in members.items() if recorded and endpoint not in heard]
    if not silent and heard.isdisjoint(members):
        silent = list(members) or [one.of.get("group", "any node")]
    more = f" and {len(silent) - MOST_NAMED:,} more" if len(silent) > MOST_NAMED else ""
    return f"no step of a session was recorded of {', '.join(silent[:MOST_NAMED])}{more}" if silent else ""
