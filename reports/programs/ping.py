"""Reads the output of ping: packets, loss, and round trips with the percentiles of the single replies.

Formats: iputils (`rtt min/avg/max/mdev`), BSD (`round-trip min/avg/max/stddev`) and BusyBox, which prints no
deviation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.programs.percentiles import measured
from reports.programs.reading import TIME_MS, Figure, find, need

_COUNTS = re.compile(r"^([0-9]+) packets transmitted, ([0-9]+) (?:packets )?received, ")
_REPLY = re.compile(r"bytes from .* time[=<]([0-9.]+) (ms|us|s)(?!.*DUP!)")
_SPREAD = re.compile(
    r"^(?:rtt|round-trip) min/avg/max(?:/(?:mdev|stddev))? = ([0-9.]+)/([0-9.]+)/([0-9.]+)(?:/([0-9.]+))? ms"
)


def read(lines: Sequence[str]) -> list[Figure]:
    """Returns the figures of the output; raises UnreadError without the line of counts, which a ping that was
    killed does not print.

    Percentiles need a line for each reply; without them, the summary's times are taken.
    """
    at, counts = need(lines, _COUNTS, "no line `N packets transmitted, N received` of ping")
    sent, received = int(counts[1]), int(counts[2])
    figures = [Figure("sent", sent, at, sent), Figure("received", received, at, sent)]
    figures.append(Figure("lost", sent - received, at, sent))
    if sent:
        figures.append(Figure("loss", 100 * (sent - received) / sent, at, sent))
    replies = [(line, float(found[1]) * TIME_MS[found[2]]) for line, found in find(lines, _REPLY)]
    if len(replies) == received and replies:  # `ping -q` and a flood do not print single replies
        return [*figures, *measured([time for _, time in replies], replies[-1][0])]
    for line, found in find(lines, _SPREAD):
        for i, name in enumerate(("min", "mean", "max", "deviation"), 1):
            if found[i] is not None:
                figures.append(Figure(f"latency_{name}", float(found[i]), line, received))
    return figures
