"""The claims of the vNET paper's MQTT experiments (section III), each with the rule it is judged by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scipy import stats

from reports.claims.evidence import ONE, TWO, Evidence
from reports.claims.verdict import (
    FAILS,
    HOLDS,
    Judgement,
    Value,
    needs,
    positive,
    together,
    within,
)

MUCH = 2.0  # "much larger": at least twice
ABOUT = 2.0  # "about 6 times": within a factor of two
LITTLE = 0.20  # "little effect": under 20 %
EXACTLY = 0.05  # "almost exactly": within 5 %
RISE = 0.8  # rank correlation with the number of clients from which a curve counts as rising
FEWEST_STEPS = 6  # of a ramp, to speak of a curve
PAPER_CLIENTS, CLIENT_BAND = 350, 0.10
SMALL, LARGE = "40-79", "640-1279"  # packet size bins, bytes


@dataclass(frozen=True)
class Claim:
    """`text` is what the paper says; `rule` how it is judged here."""

    key: str
    figures: str
    text: str
    rule: str
    judge: Callable[[Evidence], Judgement]


def _levels(found: dict[int, Value | None], scenario: str, what: str) -> Judgement | dict[int, Value]:
    known = {q: v for q, v in found.items() if v is not None}
    absent = [str(q) for q in (0, 1, 2) if q not in known]
    return needs(f"{what} in {scenario} at QoS {', '.join(absent)}") if absent else known


def _total(e: Evidence, scenario: str, qos: int, scope: str) -> Value | None:
    """Received and sent together; half widths add, since the two are correlated."""
    got, put = e.value(scenario, qos, "received", scope), e.value(scenario, qos, "sent", scope)
    if got is None or put is None:
        return None
    half = None if got.half is None or put.half is None else got.half + put.half
    value = got.value + put.value
    low, high = (None, None) if half is None else (value - half, value + half)
    return Value(value, low, high, got.unit)


def _broker(e: Evidence, quantity: str, qos: int) -> Value | None:
    return e.value(ONE, qos, "cpu", "broker") if quantity == "cpu" else _total(e, ONE, qos, "broker")


def rises_with_clients(quantity: str) -> Callable[[Evidence], Judgement]:
    """Spearman's rank correlation of the ramp's steps."""
    columns = ("cpu",) if quantity == "cpu" else ("received", "sent")

    def judge(e: Evidence) -> Judgement:
        parts = []
        for qos in e.levels(ONE):
            curve = e.curve(ONE, qos, columns)
            if curve.height >= FEWEST_STEPS:
                rho = float(stats.spearmanr(curve["clients"], curve["value"]).statistic)
                most = max(curve["clients"].to_list())
                reason = f"rank correlation {rho:.2f} over {curve.height} steps up to {most:.0f} clients"
                parts.append((f"QoS {qos}", Judgement(HOLDS if rho >= RISE else FAILS, reason)))
        return (
            together(parts) if parts else needs(f"a ramp of scenario 1 with at least {FEWEST_STEPS} samples")
        )

    return judge


def rises_with_qos(
    pick: Callable[[Evidence, int], Value | None], what: str
) -> Callable[[Evidence], Judgement]:
    """Both steps, 0 to 1 and 1 to 2, are above zero."""

    def judge(e: Evidence) -> Judgement:
        v = _levels({q: pick(e, q) for q in (0, 1, 2)}, ONE, what)
        if isinstance(v, Judgement):
            return v
        return together(
            [
                (f"{a} to {b}", positive([(1, v[b]), (-1, v[a])], f"{v[a].bare} to {v[b]}"))
                for a, b in ((0, 1), (1, 2))
            ]
        )

    return judge


def larger_step(quantity: str) -> Callable[[Evidence], Judgement]:
    """(v2 - v1) >= 2 (v1 - v0), as one contrast of three values."""

    def judge(e: Evidence) -> Judgement:
        v = _levels({q: _broker(e, quantity, q) for q in (0, 1, 2)}, ONE, "the broker's load")
        if isinstance(v, Judgement):
            return v
        small, large = v[1].value - v[0].value, v[2].value - v[1].value
        reason = f"step 0 to 1 is {small:+.3g}, step 1 to 2 is {large:+.3g} {v[0].unit}"
        return positive([(1, v[2]), (-1 - MUCH, v[1]), (MUCH, v[0])], reason)

    return judge


def _as_large(e: Evidence) -> Judgement | None:
    clients = e.clients(ONE)
    if not clients:
        return needs("a run of scenario 1")
    if abs(clients - PAPER_CLIENTS - 1) <= CLIENT_BAND * PAPER_CLIENTS:
        return None
    return needs(
        f"about {PAPER_CLIENTS} clients, since the value depends on their number; this had {clients}"
    )


def _ratios(e: Evidence, pick: Callable[[int, str], Value | None]) -> dict[int, float]:
    found = {}
    for qos in e.levels(ONE):
        one, mean = pick(qos, "subscriber"), pick(qos, "publisher")
        if one is not None and mean is not None and mean.value > 0:
            found[qos] = one.value / mean.value
    return found


def ratio_claim(quantity: str, published: float) -> Callable[[Evidence], Judgement]:
    """The largest ratio of subscriber to mean publisher over the QoS levels, within a factor of two."""

    def judge(e: Evidence) -> Judgement:
        if (small := _as_large(e)) is not None:
            return small
        pick = (
            (lambda q, s: e.value(ONE, q, "cpu", s))
            if quantity == "cpu"
            else (lambda q, s: _total(e, ONE, q, s))
        )
        ratios = _ratios(e, pick)
        if not ratios:
            return needs("node samples of the subscriber and the publishers in the hold")
        reason = "subscriber / mean publisher: " + ", ".join(f"{r:.3g} at QoS {q}" for q, r in ratios.items())
        return within(max(ratios.values()), published / ABOUT, published * ABOUT, reason)

    return judge


def publisher_net(e: Evidence) -> Judgement:
    """Received and sent together are 0.5 to 1 kB/s at every level at hand."""
    if (small := _as_large(e)) is not None:
        return small
    rates = {q: v.value for q in e.levels(ONE) if (v := _total(e, ONE, q, "publisher")) is not None}
    if not rates:
        return needs("node samples of the publishers in the hold")
    return together([(f"QoS {q}", within(r, 0.5, 1.0, f"{r:.2f} kB/s")) for q, r in rates.items()])


def receives_more(e: Evidence) -> Judgement:
    """Received is above sent at every level at hand."""
    parts = []
    for qos in e.levels(ONE):
        got, put = e.value(ONE, qos, "received", "broker"), e.value(ONE, qos, "sent", "broker")
        more = e.value(ONE, qos, "received_minus_sent", "broker")
        if got and put and more:
            reason = f"received {got.bare}, sent {put.bare}, difference {more}"
            parts.append((f"QoS {qos}", positive([(1, more)], reason)))
    return together(parts) if parts else needs("a run of scenario 1 with node samples in the hold")


def rates_match(e: Evidence) -> Judgement:
    """Sent by received is within 5 % of one at every level at hand."""
    parts = []
    for qos in e.levels(TWO):
        got, put = e.value(TWO, qos, "received", "broker"), e.value(TWO, qos, "sent", "broker")
        if got and put and got.value > 0:
            ratio = put.value / got.value
            parts.append(
                (f"QoS {qos}", within(ratio, 1 - EXACTLY, 1 + EXACTLY, f"sent / received = {ratio:.3f}"))
            )
    return together(parts) if parts else needs("a run of scenario 2 with node samples in the hold")


def same_cpu(e: Evidence) -> Judgement:
    """The broker's CPU in scenario 2 is within 20 % of that in scenario 1, at every level run in both."""
    parts = []
    for qos in sorted(set(e.levels(ONE)) & set(e.levels(TWO))):
        one, two = e.value(ONE, qos, "cpu", "broker"), e.value(TWO, qos, "cpu", "broker")
        if one and two and one.value > 0:
            change = two.value / one.value - 1
            parts.append(
                (f"QoS {qos}", within(change, -LITTLE, LITTLE, f"{one.bare} to {two} ({change:+.1%})"))
            )
    return together(parts) if parts else needs("runs of both scenarios at the same QoS")


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
    small = _levels({q: e.packets(ONE, q, "packet_size", SMALL) for q in (0, 1, 2)}, ONE, "a capture")
    large = _levels({q: e.packets(ONE, q, "packet_size", LARGE) for q in (0, 1, 2)}, ONE, "a capture")
    if isinstance(small, Judgement) or isinstance(large, Judgement):
        return small if isinstance(small, Judgement) else needs("a capture")
    s, g = ([v[q].value for q in (0, 1, 2)] for v in (small, large))
    ok = s[0] < s[1] < s[2] and g[0] > g[1] > g[2]
    series = [" / ".join(f"{x:.1f}" for x in values) for values in (s, g)]
    return Judgement(
        HOLDS if ok else FAILS, f"QoS 0 / 1 / 2: {series[0]} % of {SMALL}, {series[1]} % of {LARGE} bytes"
    )


def _every_level(
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


def _node(e: Evidence, qos: int) -> Value | None:
    return e.value(ONE, qos, "cpu", "publisher")


def _cpu(e: Evidence, qos: int) -> Value | None:
    return _broker(e, "cpu", qos)


def _net(e: Evidence, qos: int) -> Value | None:
    return _broker(e, "net", qos)


def _host(e: Evidence, qos: int) -> Value | None:
    return e.host(ONE, qos)


RISING = f"the ramp's rank correlation with the number of clients is at least {RISE}, at every QoS"
STEPS = "each step is above zero by more than its 95 % interval"
LARGER = "the step 1 to 2 is at least twice the step 0 to 1, by more than the 95 % interval"
CLAIMS: tuple[Claim, ...] = (
    Claim(
        "cpu-clients-1",
        "8",
        "The broker's CPU rises with the number of clients.",
        RISING,
        rises_with_clients("cpu"),
    ),
    Claim(
        "cpu-qos-1",
        "8",
        "The broker's CPU rises with the QoS level.",
        STEPS,
        rises_with_qos(_cpu, "the broker's CPU"),
    ),
    Claim(
        "cpu-step-1",
        "8",
        "For CPU the step from QoS 1 to 2 is much larger than from 0 to 1.",
        LARGER,
        larger_step("cpu"),
    ),
    Claim(
        "net-clients-1",
        "9",
        "The broker's bandwidth rises with the number of clients.",
        RISING,
        rises_with_clients("net"),
    ),
    Claim(
        "net-qos-1",
        "9",
        "The broker's bandwidth rises with the QoS level.",
        STEPS + "; received and sent together",
        rises_with_qos(_net, "the broker's bandwidth"),
    ),
    Claim(
        "net-step-1",
        "9",
        "For bandwidth the step from QoS 1 to 2 is much larger than from 0 to 1.",
        LARGER,
        larger_step("net"),
    ),
    Claim(
        "receives-more",
        "9",
        "In scenario 1 the broker receives more than it sends.",
        "received is above sent by more than the 95 % interval, at every QoS at hand",
        receives_more,
    ),
    Claim(
        "subscriber-cpu",
        "10",
        "The single subscriber uses about 6 times the CPU of a publisher.",
        "the largest ratio lies within a factor of two of 6",
        ratio_claim("cpu", 6),
    ),
    Claim(
        "subscriber-net",
        "11",
        "The subscriber's network use is up to 360 times a publisher's.",
        "the largest ratio, received and sent together, lies within a factor of two of 360",
        ratio_claim("net", 360),
    ),
    Claim(
        "publisher-net",
        "11",
        "A publisher uses 0.5 to 1 kB/s.",
        "received and sent together, at every QoS at hand",
        publisher_net,
    ),
    Claim(
        "cpu-scenarios",
        "8, 12",
        "Going from scenario 1 to 2 has little effect on the broker's CPU.",
        "the change is under 20 %, at every QoS run in both",
        same_cpu,
    ),
    Claim(
        "rates-match",
        "13",
        "In scenario 2 received and sent rates match almost exactly.",
        "sent / received is within 5 % of one, at every QoS at hand",
        rates_match,
    ),
    Claim(
        "tcp-overhead",
        "14",
        "Over 80 % of packets are TCP overhead at every QoS.",
        "share of packets of 40-79 bytes, which is how the paper counts it",
        tcp_overhead,
    ),
    Claim(
        "small-packets",
        "14",
        "Higher QoS shifts the distribution to more small packets and fewer large ones.",
        "from level to level the share of 40-79 bytes rises and that of 640-1279 bytes falls",
        small_packets,
    ),
    Claim(
        "arp-share",
        "14",
        "ARP is less than 0.05 % of packets.",
        "share of ARP packets, at every QoS at hand",
        _every_level("arp_packets", "", lambda v: v < 0.05, "{:.3f} % ARP"),
    ),
    Claim(
        "publish-bin",
        "14",
        "Packets of 640-1279 bytes are exclusively PUBLISH.",
        "at least 99 % of them, retransmissions left out, complete a PUBLISH",
        _every_level("publish_packets", LARGE, lambda v: v >= 99, "{:.2f} % complete a PUBLISH"),
    ),
    Claim(
        "goodput-qos1",
        "15",
        "At QoS 1 only 30 % of packets carry a payload.",
        "25 to 35 % of packets have a TCP payload longer than zero",
        goodput_qos1,
    ),
    Claim(
        "table-ii-node",
        "II",
        "CPU of a publishing node rises with the QoS level (0.971, 0.977, 1.022 %).",
        STEPS + "; the values themselves depend on the machine",
        rises_with_qos(_node, "the publishers' CPU"),
    ),
    Claim(
        "table-ii-host",
        "II",
        "CPU of the host rises with the QoS level (69.0, 69.7, 71.1 %).",
        STEPS + "; the values themselves depend on the machine",
        rises_with_qos(_host, "the machine's CPU"),
    ),
)


def judge_all(e: Evidence) -> dict[str, tuple[Claim, Judgement]]:
    """Every claim by its key, in the paper's order."""
    return {claim.key: (claim, claim.judge(e)) for claim in CLAIMS}
