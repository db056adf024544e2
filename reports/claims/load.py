"""Judging the claims on CPU and bandwidth of broker, subscriber, publishers and host."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import stats

from reports.claims.evidence import ONE, TWO, Evidence
from reports.claims.verdict import (
    FAILS,
    HOLDS,
    OPEN,
    Judgement,
    Value,
    all_levels,
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


def counted(rule: Callable[[Evidence], Judgement]) -> Callable[[Evidence], Judgement]:
    """A rule on the CPU of nodes: a tick misses some of their work, or all, so nothing follows from it."""

    def judge(e: Evidence) -> Judgement:
        return needs("a kernel that counts CPU finer than in ticks of 10 ms") if e.ticked else rule(e)

    return judge


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
                parts.append((f"QoS {qos}", _rising(rho, curve.height, reason)))
        return (
            together(parts) if parts else needs(f"a ramp of scenario 1 with at least {FEWEST_STEPS} samples")
        )

    return judge


def _rising(rho: float, n: int, reason: str) -> Judgement:
    """Below the bound it fails only if its 95 % interval (Fisher's z, Bonett and Wright's error) does too."""
    if rho >= RISE:
        return Judgement(HOLDS, reason)
    error = math.sqrt((1 + rho * rho / 2) / (n - 3))
    high = math.tanh(math.atanh(max(rho, -0.999999)) + 1.96 * error)
    if high < RISE:
        return Judgement(FAILS, reason)
    return Judgement(OPEN, f"{reason}; with so few steps it could be up to {high:.2f}")


def rises_with_qos(
    pick: Callable[[Evidence, int], Value | None], what: str
) -> Callable[[Evidence], Judgement]:
    """Both steps, 0 to 1 and 1 to 2, are above zero."""

    def judge(e: Evidence) -> Judgement:
        v = all_levels({q: pick(e, q) for q in (0, 1, 2)}, ONE, what)
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
        v = all_levels({q: _broker(e, quantity, q) for q in (0, 1, 2)}, ONE, "the broker's load")
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


def _near(one: Value, two: Value) -> Judgement:
    """Both borders of the band, each as a contrast with its interval."""
    change = f"{one.bare} to {two} ({two.value / one.value - 1:+.1%})"
    above = positive([(1 + LITTLE, one), (-1, two)], change)
    below = positive([(1, two), (LITTLE - 1, one)], change)
    return next((j for j in (above, below) if j.verdict == FAILS), None) or next(
        (j for j in (above, below) if j.verdict == OPEN), above
    )


def same_cpu(e: Evidence) -> Judgement:
    """The broker's CPU in scenario 2 is within 20 % of that in scenario 1, at every level run in both."""
    parts = []
    for qos in sorted(set(e.levels(ONE)) & set(e.levels(TWO))):
        one, two = e.value(ONE, qos, "cpu", "broker"), e.value(TWO, qos, "cpu", "broker")
        if one and two and one.value > 0:
            parts.append((f"QoS {qos}", _near(one, two)))
    return together(parts) if parts else needs("runs of both scenarios at the same QoS")


def node(e: Evidence, qos: int) -> Value | None:
    """CPU of the mean publisher, scenario 1."""
    return e.value(ONE, qos, "cpu", "publisher")


def cpu(e: Evidence, qos: int) -> Value | None:
    """CPU of the broker, scenario 1."""
    return _broker(e, "cpu", qos)


def net(e: Evidence, qos: int) -> Value | None:
    """Bandwidth of the broker, both ways, scenario 1."""
    return _broker(e, "net", qos)


def host(e: Evidence, qos: int) -> Value | None:
    """CPU of the machine, scenario 1."""
    return e.host(ONE, qos)
