"""Reads the JSON output of iperf3 (`iperf3 -J`): throughput at the receiver, bytes, retransmissions, and for
UDP lost datagrams and jitter.

Format: iperf_json_finish and iperf_print_results of iperf3's src/iperf_api.c.
"""

from __future__ import annotations

from collections.abc import Sequence

from reports.programs.document import document, line_of, section
from reports.programs.reading import Figure, UnreadError, number

LOST = {"lost": "lost_packets", "loss": "lost_percent", "jitter": "jitter_ms"}


def read(lines: Sequence[str]) -> list[Figure]:
    """Returns the figures of the document; raises UnreadError with iperf3's error text if it ended with an
    error.
    """
    found, first = document(lines, ("start", "end"), "iperf3 -J")
    if "error" in found:
        raise UnreadError(line_of(lines, first, "error"), f"iperf3 ended with an error: {found['error']}")
    end = section(found, "end", first)
    received = section(end, "sum_received", first) or section(end, "sum", first)
    sent = section(end, "sum_sent", first) or received
    if not received:
        raise UnreadError(first, "the end of the iperf3 document has no sum_received")
    at = line_of(lines, first, "sum_received")
    figures = [
        Figure("throughput", 1e-6 * number(received.get("bits_per_second"), at, "bits_per_second"), at),
        Figure("bytes", 1e-6 * number(received.get("bytes"), at, "bytes"), at),
    ]
    if "retransmits" in sent:
        line = line_of(lines, line_of(lines, first, "sum_sent"), "retransmits")
        figures.append(Figure("retransmits", number(sent["retransmits"], line, "retransmits"), line))
    return [*figures, *_datagrams(lines, received, at)]


def _datagrams(lines: Sequence[str], received: object, at: int) -> list[Figure]:
    assert isinstance(received, dict)
    if "lost_packets" not in received:
        return []
    packets = int(number(received.get("packets"), at, "packets"))
    line = line_of(lines, at, "lost_packets")
    figures = [Figure("sent", packets, line, packets)]
    for name, key in LOST.items():
        figures.append(Figure(name, number(received.get(key), line, key), line, packets))
    return figures
