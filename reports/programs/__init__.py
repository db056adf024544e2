"""Lists the readers of program output by format; contract.figures has the same names for topology files."""

from __future__ import annotations

from collections.abc import Mapping

from reports.programs import ab, access, fio, h2load, hey, iperf3, k6, ping, wrk
from reports.programs.reading import Reader

READERS: Mapping[str, Reader] = {
    "ab": ab.read,
    "access": access.read,
    "fio": fio.read,
    "h2load": h2load.read,
    "hey": hey.read,
    "iperf3": iperf3.read,
    "k6": k6.read,
    "ping": ping.read,
    "wrk": wrk.read,
    "wrk2": wrk.read,
}
