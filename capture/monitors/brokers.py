"""Monitors brokers that reached one of their own limits, by their logs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from capture.conservation.evidence import Evidence
from capture.monitors.monitor import Monitor, Reading, listed

LIMITS = Monitor("broker-limits", 1, "clients and alarms", role="broker")
# A line that a broker logs at a limit -> the meaning of the line. mosquitto: src/database.c, src/net.c,
# src/handle_publish.c; RabbitMQ: rabbit_alarm.erl.
SAYS: dict[re.Pattern[str], str] = {
    re.compile(r"Outgoing messages are being dropped for client (?P<client>[^\s]+?)\.?$"):
        "dropped messages for {client}, whose queue was full",
    re.compile(r"Client connection from \S+ denied: max_connections exceeded"):
        "refused a client, because it had as many connections as it admits",
    re.compile(r"(?:Dropping|Dropped) too large (?:outgoing )?PUBLISH"):
        "dropped a message that was longer than it or its client admits",
    re.compile(r"(?P<what>memory|disk|file descriptor) resource limit alarm set"):
        "stopped all publishers, because an alarm was raised: {what}",
}  # fmt: skip


def limits(e: Evidence) -> Reading:
    """Reports the clients whose messages a broker dropped because of the broker's own limits, and the
    broker's alarms.
    """
    programs = [(n.name, s.name) for n in e.plan.nodes for s in n.software if s.role == LIMITS.role]
    logs = {of: e.run_dir / "raw" / "logs" / f"{'.'.join(of)}.log" for of in programs}
    missing = [".".join(of) for of, file in logs.items() if not file.is_file()]
    if missing:
        return LIMITS.untold(f"the log of {listed(missing)} is missing")
    found = [
        f"{node}.{name} {said}" for (node, name), file in logs.items() for said in dict.fromkeys(_says(file))
    ]
    reached = f"{listed(found)}{_unreceived(e)}"
    return LIMITS.read(len(found), reached, "no broker wrote of a limit that it reached")


def _says(file: Path) -> Iterator[str]:
    with file.open(errors="replace") as lines:
        for line in lines:
            for pattern, meaning in SAYS.items():
                if match := pattern.search(line.rstrip()):
                    yield meaning.format(**match.groupdict())


def _unreceived(e: Evidence) -> str:
    """Returns the number of published messages that were acknowledged and never arrived, in words."""
    if e.messages is None:
        return ""
    published = e.messages.filter((pl.col("pattern") == "publish") & pl.col("receiver").is_not_null())
    lost = published.filter(pl.col("settled_ns").is_not_null() & pl.col("received_ns").is_null()).height
    return f"; {lost:,} messages that brokers took never arrived" if lost else ""
