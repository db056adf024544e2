"""Names the formats of program output from which reports read figures, and the parts of output that a format
distinguishes.

A topology file chooses a format (`figures: {from: log, format: wrk}`); reports/programs reads it. Imports the
standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping

# Format -> names of its parts, of which each has figures of its own; empty: the program is one whole.
FORMATS: Mapping[str, tuple[str, ...]] = {
    "ab": (),
    "access": (),
    "fio": ("read", "write", "trim"),
    "h2load": (),
    "hey": (),
    "iperf3": (),
    "k6": (),
    "ping": (),
    "wrk": (),
    "wrk2": (),
}
KEY = "figures"  # in the `spec` of software: the name of its format


def subjects(node: str, software: str, format_: str) -> tuple[str, ...]:
    """Returns the values that the column `program` can have for the software of a node: NODE/SOFTWARE,
    followed by a space and the part if the format has parts.
    """
    name = f"{node}/{software}"
    return tuple(f"{name} {part}" for part in FORMATS[format_]) or (name,)
