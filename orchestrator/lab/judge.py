"""Asked against realised, for every quantity of every direction: from what probes met to verdicts.

Intervals hold for all judged quantities at once with 99 % (Bonferroni): with 700 directions, 95 % each would
call 35 good links bad.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator import queueing
from orchestrator.lab import expected
from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.intervals import (
    deviation_interval,
    effective,
    mean_interval,
    quartile_range,
    wilson,
    z_for,
)
from orchestrator.lab.judgement import Judgement, ProofResult, Seen, shown
from orchestrator.lab.probes import (
    BURST_SIZE,
    FRAMES_LEAST,
    FRAMES_PLAIN,
    SIZE,
    at_once,
    directions,
)
from orchestrator.model import Impairment, Link

VAGUE = 5  # an interval that reaches so many times what was asked says nothing
ENOUGH = 30  # fewer frames say nothing about a share or a spread
# Waking up late is the machine's share in a delay, about a timer tick of the lab kernel.
DELAY_SLACK_NS, DELAY_SLACK = MILLISECOND, 0.05
JITTER_SLACK_NS, JITTER_SLACK = MILLISECOND / 2, 0.15
RATE_SLACK = 0.05
OFFER_FACTOR = 1.2  # a rate is only seen where more than it was offered

# netem's uniform jitter spans mean +- jitter: its quartiles are one jitter apart; of a normal one 1.349.
# Quartiles: a machine that wakes up late now and then is no fault of the link (and warned of elsewhere).
QUARTILES_TO_JITTER = {"uniform": 1.0, "normal": 1 / 1.349}

Results = dict[tuple[str, str], Seen]


def judge(links: Sequence[Link], spaced: Results, burst: Results) -> list[Judgement]:
    """Every quantity of every direction, asked against realised."""
    tests = sum(1 for _ in _judge(links, spaced, burst, z=2.0))
    return list(_judge(links, spaced, burst, z_for(tests)))


def _judge(links: Sequence[Link], spaced: Results, burst: Results, z: float) -> Iterator[Judgement]:
    for link, name, direction in directions(links):
        result = spaced.get((link, name))
        if result is None:
            why = "no probe was answered"
            yield Judgement(link, name, "reach", 1.0, 1.0, None, None, None, "share", 0, "not judged", why)
            continue
        judged = _Judging(link, name, direction.impairment, result, z)
        yield from judged.all()
        if direction.impairment.rate_bps:
            yield judged.rate(burst.get((link, name)))


@dataclass(frozen=True, slots=True)
class _Judging:
    link: str
    direction: str
    asked: Impairment
    seen: Seen
    z: float

    def all(self) -> Iterator[Judgement]:
        i = self.asked
        if expected.asked_loss(i) == 1:
            yield self._loss()  # nothing arrives that could tell more
            return
        yield self._reach()
        if i.delay_ns:
            yield self._delay()
        if i.jitter_ns:
            yield self._jitter()
        seen = self.seen
        if expected.asked_loss(i):
            yield self._loss()
        if i.duplicate:
            share, memory = expected.duplicated(i), i.duplicate_correlation
            yield self._share("duplicate", i.duplicate, share, seen.duplicates, seen.sent, memory)
        if i.corrupt:
            share, memory = expected.corrupted(i), i.corrupt_correlation
            yield self._share("corrupt", i.corrupt, share, seen.corrupted, seen.sent, memory)
        if i.reorder:
            yield self._reorder()

    def _line(
        self, quantity: str, asked: float, realised: float | None, interval: tuple[float, float] | None,
        unit: str, n: int, verdict: ProofResult, reason: str = "", expects: float | None = None,
    ) -> Judgement:  # fmt: skip
        low, high = interval if interval else (None, None)
        return Judgement(
            self.link, self.direction, quantity, asked, asked if expects is None else expects, realised, low,
            high, unit, n, verdict, reason,
        )  # fmt: skip

    def _loss(self) -> Judgement:
        i, seen = self.asked, self.seen
        asked, memory = expected.asked_loss(i), expected.loss_memory(i)
        return self._share("loss", asked, expected.lost(i), seen.sent - seen.received, seen.sent, memory)

    def _reach(self) -> Judgement:
        sent, received = self.seen.sent, self.seen.received
        if expected.asked_loss(self.asked) or self.asked.corrupt:
            verdict: ProofResult = "holds" if received else "not judged" if sent < ENOUGH else "fails"
            reason = "" if received else "no frame arrived"
        else:
            verdict = "holds" if received == sent else "fails"
            reason = (
                "" if received == sent else f"{sent - received} of {sent} frames lost where none should be"
            )
        return self._line(
            "reach", 1.0, received / sent if sent else None, None, "share", sent, verdict, reason
        )

    def _delays(self) -> list[float]:
        """Delays of frames that were held back (a reordered frame skips the queue)."""
        least = self.asked.delay_ns / 4 if self.asked.reorder else -1
        return [float(d) for d in self.seen.delays_ns if d > least]

    def _delay(self) -> Judgement:
        values = self._delays()
        asked = self.asked.delay_ns
        whole = asked + queueing.sending_ns(self.asked, SIZE)
        if len(values) < FRAMES_PLAIN:
            return self._too_few("delay", asked, "ns", len(values))
        mean, low, high = mean_interval(values, self.z, self.asked.delay_correlation)
        slack = max(DELAY_SLACK_NS, DELAY_SLACK * whole)
        return self._within("delay", asked, whole, mean, (low, high), "ns", len(values), slack)

    def _jitter(self) -> Judgement:
        values = self._delays()
        if len(values) < ENOUGH:
            return self._too_few("jitter", self.asked.jitter_ns, "ns", len(values))
        correlation = self.asked.delay_correlation
        if self.asked.distribution in QUARTILES_TO_JITTER:
            factor = QUARTILES_TO_JITTER[self.asked.distribution]
            found = quartile_range(values, self.z, correlation)
        else:  # the pareto tables of netem have the jitter as their standard deviation
            factor, found = 1.0, deviation_interval(values, self.z, correlation)
        spread, low, high = (factor * v for v in found)
        slack = max(JITTER_SLACK_NS, JITTER_SLACK * self.asked.jitter_ns)
        asked = self.asked.jitter_ns
        return self._within("jitter", asked, asked, spread, (low, high), "ns", len(values), slack)

    def _share(
        self, quantity: str, asked: float, share: float, hits: int, n: int, correlation: float
    ) -> Judgement:
        """A share holds where its interval has the expected one in it, but not none nor many times as
        much.
        """
        if n < ENOUGH:
            return self._too_few(quantity, asked, "share", n)
        worth = effective(n, correlation)
        low, high = wilson(hits / n * worth, worth, self.z)
        if low <= share <= high and (low <= 0 or high > VAGUE * share):
            why = f"{_wanted('share', asked, share)}, {n} frames only show {shown('share', low, high)}"
            return self._line(quantity, asked, hits / n, (low, high), "share", n, "not judged", why, share)
        return self._within(quantity, asked, share, hits / n, (low, high), "share", n, 0.0)

    def _reorder(self) -> Judgement:
        delays = self.seen.delays_ns
        if 3 * self.asked.jitter_ns > self.asked.delay_ns / 2:
            why = "the jitter hides which frames skipped the queue"
            return self._line(
                "reorder", self.asked.reorder, None, None, "share", len(delays), "not judged", why
            )
        skipped = sum(d < self.asked.delay_ns / 2 for d in delays)
        share, memory = expected.reordered(self.asked), self.asked.reorder_correlation
        return self._share("reorder", self.asked.reorder, share, skipped, len(delays), memory)

    def rate(self, burst: Seen | None) -> Judgement:
        """From the spacing of a burst's arrivals; only where the machine offered more than the rate."""
        asked, expects = float(self.asked.rate_bps), float(queueing.lone_bps(self.asked))
        skipped = at_once(self.asked)
        arrivals = sorted(burst.arrivals_ns)[skipped:] if burst is not None else []
        if burst is None or len(arrivals) < FRAMES_LEAST:
            return self._too_few("rate", asked, "bit/s", len(arrivals))
        n, span = len(arrivals), arrivals[-1] - arrivals[0]
        realised = _rate(n, span)
        sent = [a - d for a, d in zip(burst.arrivals_ns, burst.delays_ns, strict=True)]
        offered = _rate(len(sent), max(sent) - min(sent))
        if offered < OFFER_FACTOR * expects:
            why = f"the machine offered only {shown('bit/s', offered)}"
            return self._line("rate", asked, realised, None, "bit/s", n, "not judged", why)
        shift = 2 * self.asked.jitter_ns  # the jitter may move the first and the last frame apart or together
        if shift > span / 4:
            why = f"the jitter hides the spacing of {n} frames"
            return self._line("rate", asked, realised, None, "bit/s", n, "not judged", why)
        low, high = _rate(n, span + shift) * (1 - RATE_SLACK), _rate(n, span - shift) * (1 + RATE_SLACK)
        return self._within("rate", asked, expects, realised, (low, high), "bit/s", n, 0.0)

    def _too_few(self, quantity: str, asked: float, unit: str, n: int) -> Judgement:
        return self._line(
            quantity, asked, None, None, unit, n, "not judged", f"{n} frames are too few to judge"
        )

    def _within(
        self, quantity: str, asked: float, expects: float, realised: float, interval: tuple[float, float],
        unit: str, n: int, slack: float,
    ) -> Judgement:  # fmt: skip
        low, high = interval
        verdict: ProofResult = "holds" if low - slack <= expects <= high + slack else "fails"
        reason = _wanted(unit, asked, expects)
        if verdict == "fails":
            reason += f", realised {shown(unit, low, high)} ({n} frames)"
        elif asked == expects:
            reason = ""
        return self._line(quantity, asked, realised, interval, unit, n, verdict, reason, expects)


def _wanted(unit: str, asked: float, expects: float) -> str:
    """What the file asks, and what that makes where it is not the same."""
    text = f"asked {shown(unit, asked)}"
    return text if asked == expects else f"{text}, which makes {shown(unit, expects)}"


def _rate(frames: int, span_ns: int) -> float:
    return float("inf") if span_ns <= 0 else (frames - 1) * BURST_SIZE * 8 * SECOND / span_ns
