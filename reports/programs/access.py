"""Reads access logs in the common or combined format, with or without the time that a request took.

The time is the last field of a line, in seconds with a decimal point (nginx: `$request_time`) or in
microseconds without one (Apache: `%D`). Lines of another form are the program's other output and are left
out; a log in which no line has the form is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from reports.programs.percentiles import measured
from reports.programs.reading import Figure, UnreadError, find

_LINE = re.compile(
    r'^\S+ \S+ \S+ \[[^\]]+\] "(?:[^"\\]|\\.)*" ([1-5])[0-9]{2} ([0-9]+|-)'  # common
    r'(?: "(?:[^"\\]|\\.)*" "(?:[^"\\]|\\.)*")?'  # combined: referrer, user agent
    r"(?: ([0-9]+\.[0-9]+|[0-9]+))?\s*$"
)


def read(lines: Sequence[str]) -> list[Figure]:
    """Returns requests by status, bytes of the answers and, if every request has its time, latencies; raises
    UnreadError without a line of the format, or if only some lines have times.
    """
    statuses = Counter(dict.fromkeys("2345", 0))
    total, times, last = 0, list[float](), 0
    for line, found in find(lines, _LINE):
        last = line
        statuses[found[1]] += 1
        total += 0 if found[2] == "-" else int(found[2])
        if found[3] is not None:
            times.append(float(found[3]) * (1e3 if "." in found[3] else 1e-3))
    n = sum(statuses.values())
    if not n:
        raise UnreadError(len(lines), "no line of an access log in the common or combined format")
    if times and len(times) != n:
        raise UnreadError(last, f"{len(times):,} of {n:,} lines of the access log have the request's time")
    figures = [Figure("requests", n, last, n), Figure("bytes", total / 1e6, last, n)]
    figures += [Figure(f"status_{digit}xx", count, last, n) for digit, count in sorted(statuses.items())]
    return [*figures, *measured(times, last)]
