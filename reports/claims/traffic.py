"""Judging the claims on captured packets: sizes, overhead, goodput."""

from __future__ import annotations

from collections.abc import Callable

from reports.claims.evidence import ONE, Evidence
from reports.claims.verdict import FAILS, HOLDS, Judgement, all_levels, needs, together, within

SMALL, LARGE = "40-79", "640-1279"  # packet size bins, bytes


def tcp_overhead(e: Evidence) -> Judgement:
    """More than 80 % of packets lie in the 40-79 byte bin, which is how the paper counts TCP overhead."""
    parts = []
    for qos in e.levels(ONE):
        small, data = e.packets(ONE, qos, "packet_size", SMALL), e.packets(ONE, qos, "goodput_packets")
        if small and data:
            reason = (
                f"{small.value:.1f} % of {SMALL} bytes ({100 - data.value:.1f} % without any TCP payload)"
            )
            parts.append((f"QoS {qos}", Judgement(HOLDS if small.value > 80 else FAILS, reason)))
    return together(parts) if parts else needs("a capture of scenario 1")


def small_packets(e: Evidence) -> Judgement:
    """From level to level the share of 40-79 bytes rises and that of 640-1279 bytes falls."""
    small = all_levels({q: e.packets(ONE, q, "packet_size", SMALL) for q in (0, 1, 2)}, ONE, "a capture")
    large = all_levels({q: e.packets(ONE, q, "packet_size", LARGE) for q in (0, 1, 2)}, ONE, "a capture")
    if isinstance(small, Judgement) or isinstance(large, Judgement):
        return small if isinstance(small, Judgement) else needs("a capture")
    s, g = ([v[q].value for q in (0, 1, 2)] for v in (small, large))
    ok = s[0] < s[1] < s[2] and g[0] > g[1] > g[2]
    series = [" / ".join(f"{x:.1f}" for x in values) for values in (s, g)]
    return Judgement(
        HOLDS if ok else FAILS, f"QoS 0 / 1 / 2: {series[0]} % of {SMALL}, {series[1]} % of {LARGE} bytes"
    )


def every_level(
    name: str, bin_name: str, good: Callable[[float], bool], text: str
) -> Callable[[Evidence], Judgement]:
    def judge(e: Evidence) -> Judgement:
        found = {q: v for q in e.levels(ONE) if (v := e.packets(ONE, q, name, bin_name)) is not None}
        parts = [
            (f"QoS {q}", Judgement(HOLDS if good(v.value) else FAILS, text.format(v.value)))
            for q, v in found.items()
        ]
        return together(parts) if parts else needs("a capture of scenario 1")

    return judge


def goodput_qos1(e: Evidence) -> Judgement:
    """Between 25 and 35 % of packets at QoS 1 have a TCP payload."""
    value = e.packets(ONE, 1, "goodput_packets")
    if value is None:
        return needs("a capture of scenario 1 at QoS 1")
    return within(value.value, 25, 35, f"{value.bare} % of the packets at QoS 1 carry TCP payload")
