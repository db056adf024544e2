"""Asked against realised, for every quantity of every direction: from what probes met to verdicts.

Intervals hold for all judged quantities at once with 99 % (Bonferroni): with 700 directions, 95 % each would
call 35 good links bad.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator import queueing
from orchestrator.lab import expected, shape
from orchestrator.lab.intervals import (
    deviation_interval,
    effective,
    mean_interval,
    median_interval,
    quartile_range,
    wilson,
    z_for,
)
from orchestrator.lab.judgement import Judgement, ProofResult, Seen, shown
from orchestrator.lab.probes import FRAMES_PLAIN, directions, spaced_size
from orchestrator.lab.slack import WIDEST, Noise, Slacks
from orchestrator.lab.train import Untold, realised
from orchestrator.model import Direction, Impairment, Link
from orchestrator.plan.slots import lone_ns

VAGUE = 5  # an interval that reaches so many times what was asked says nothing
ENOUGH = 30  # fewer frames say nothing about a share or a spread
# netem's uniform jitter spans mean +- jitter: its quartiles are one jitter apart; of a normal one 1.349.
# Quartiles: a machine that wakes up late now and then is no fault of the link (and warned of elsewhere).
QUARTILES_TO_JITTER = {"uniform": 1.0, "normal": 1 / 1.349}

Results = dict[tuple[str, str], Seen]
Tables = Mapping[str, Sequence[int]]
NO_TABLES: Tables = {}


def judge(
    links: Sequence[Link],
    spaced: Results,
    burst: Results,
    slacks: Slacks,
    noise: Noise | None = None,
    tables: Tables = NO_TABLES,
) -> list[Judgement]:
    """Every quantity of every direction, asked against realised; `noise`: what the machine added."""
    within = _Within(slacks, noise, tables)
    tests = sum(1 for _ in _judge(links, spaced, burst, within, z=2.0))
    return list(_judge(links, spaced, burst, within, z_for(tests)))


@dataclass(frozen=True, slots=True)
class _Within:
    slacks: Slacks
    noise: Noise | None
    tables: Tables

    def through(self, direction: Direction) -> _Within:
        """What a virtual machine that carries the netem adds, nobody has measured."""
        return self if direction.enter is None else _Within(WIDEST, None, self.tables)


def _judge(
    links: Sequence[Link], spaced: Results, burst: Results, within: _Within, z: float
) -> Iterator[Judgement]:
    for link, name, direction in directions(links):
        result = spaced.get((link, name))
        if result is None:
            why = "no probe was answered"
            yield Judgement(link, name, "reach", 1.0, 1.0, None, None, None, "share", 0, "not judged", why)
            continue
        judged = _Judging(link, name, direction.impairment, result, z, within.through(direction))
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
    within: _Within

    def all(self) -> Iterator[Judgement]:
        i = self.asked
        if expected.asked_loss(i) == 1:
            yield self._loss()  # nothing arrives that could tell more
            return
        yield self._reach()
        if i.slot is not None:
            yield self._slotted()
        elif i.delay_ns:
            yield self._delay()
        if i.jitter_ns and i.slot is None:
            table = self.within.tables.get(i.distribution)
            yield self._jitter() if table is None else self._distribution(table)
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
        slack: float | None = None, machine: float | None = None,
    ) -> Judgement:  # fmt: skip
        low, high = interval if interval else (None, None)
        return Judgement(
            self.link, self.direction, quantity, asked, asked if expects is None else expects, realised, low,
            high, unit, n, verdict, reason, slack, machine,
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
        """By the median where all frames are delayed alike: the few that came late do not matter."""
        values = self._delays()
        asked = self.asked.delay_ns
        whole = asked + queueing.sending_ns(self.asked, spaced_size(self.asked))
        if len(values) < FRAMES_PLAIN:
            return self._too_few("delay", asked, "ns", len(values))
        noise = self.within.noise
        if self.asked.jitter_ns:
            found = mean_interval(values, self.z, self.asked.delay_correlation)
            added = abs(noise.mean_ns) if noise else None
        else:
            found = median_interval(values, self.z)
            added = abs(noise.median_ns) if noise else None
        slack = self.within.slacks.delay.of(whole)
        return self._within("delay", asked, whole, found, "ns", len(values), slack, added)

    def _slotted(self) -> Judgement:
        """The mean delay of frames that each found a slot of their own."""
        values, i = self._delays(), self.asked
        makes = lone_ns(i, queueing.sending_ns(i, spaced_size(i)), self.within.tables)
        if makes is None:
            why = f"what slots make of a {i.distribution} jitter is not known; `delays: FILE` beside them is"
            return self._line("delay", i.delay_ns, None, None, "ns", len(values), "not judged", why)
        if len(values) < ENOUGH:
            return self._too_few("delay", i.delay_ns, "ns", len(values))
        noise, slack = self.within.noise, self.within.slacks.delay.of(makes)
        added = abs(noise.mean_ns) if noise else None
        found = mean_interval(values, self.z, i.delay_correlation)
        return self._within("delay", i.delay_ns, makes, found, "ns", len(values), slack, added)

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
        asked = self.asked.jitter_ns
        slack = self.within.slacks.jitter.of(asked)
        added = self.within.noise.spread_ns if self.within.noise else None
        return self._within("jitter", asked, asked, (spread, low, high), "ns", len(values), slack, added)

    def _distribution(self, table: Sequence[int]) -> Judgement:
        """Kolmogorov and Smirnov's distance from the user's own table, which the delay's slack may shift."""
        values, i = self._delays(), self.asked
        if len(values) < ENOUGH:
            return self._too_few("distribution", 0.0, "share", len(values))
        sending = queueing.sending_ns(i, spaced_size(i))
        wanted = shape.expected_ns(i.delay_ns, i.jitter_ns, table, sending)
        slack_ns = self.within.slacks.delay.of(i.delay_ns + sending)
        told = shape.critical(len(values), self.z)
        found, shifted = shape.distance(values, wanted), shape.distance(values, wanted, slack_ns)
        added = (
            max(abs(self.within.noise.median_ns), self.within.noise.spread_ns) if self.within.noise else 0.0
        )
        verdict: ProofResult = "holds" if shifted <= told else "fails"
        reason = shape.quantiles(values, wanted)
        if added > slack_ns:
            verdict = "not judged"
            allowed = shown("ns", slack_ns)
            reason = (
                f"this machine adds {shown('ns', added)}, more than the delay's slack of {allowed}; {reason}"
            )
        interval = (max(0.0, found - told), min(1.0, found + told))
        return self._line(
            "distribution", 0.0, found, interval, "share", len(values), verdict, reason, slack=told
        )

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
            why += "; longer trains tell it: `proof: {time: 20 s}`"
            return self._line(quantity, asked, hits / n, (low, high), "share", n, "not judged", why, share)
        return self._within(quantity, asked, share, (hits / n, low, high), "share", n)

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

    def rate(self, train: Seen | None) -> Judgement:
        """From the spacing of frames that waited for one another; the interval is the bound on its error."""
        asked, expects = float(self.asked.rate_bps), float(queueing.lone_bps(self.asked))
        slack = self.within.slacks.rate.of(expects)
        if self.asked.slot is not None:
            why = "slots let frames go together, which hides the rate's spacing"
            return self._line("rate", asked, None, None, "bit/s", 0, "not judged", why, slack=slack)
        told = realised(self.asked, train)
        if isinstance(told, Untold):
            return self._line(
                "rate", asked, None, None, "bit/s", told.frames, "not judged", told.reason, slack=slack
            )
        found = told.rate_bps, told.rate_bps * (1 - told.error), told.rate_bps * (1 + told.error)
        hidden = told.error * expects
        return self._within("rate", asked, expects, found, "bit/s", told.frames, slack, hidden, told.late_ns)

    def _too_few(self, quantity: str, asked: float, unit: str, n: int) -> Judgement:
        return self._line(
            quantity, asked, None, None, unit, n, "not judged", f"{n} frames are too few to judge"
        )

    def _within(
        self, quantity: str, asked: float, expects: float, found: tuple[float, float, float], unit: str,
        n: int, slack: float | None = None, machine: float | None = None, late_ns: float | None = None,
    ) -> Judgement:  # fmt: skip
        """`machine`: what it adds to the quantity itself. Where that is more than the slack, only what is
        further away than both fails.
        """
        realised, low, high = found
        allowed, added = slack or 0.0, machine or 0.0
        loud = added > allowed
        reach = allowed + added if loud else allowed
        verdict: ProofResult = "holds" if low - reach <= expects <= high + reach else "fails"
        reason = _wanted(unit, asked, expects)
        if verdict == "fails":
            reason += f", realised {shown(unit, low, high)} ({n} frames)"
        elif loud:
            verdict = "not judged"
            late = added if late_ns is None else late_ns
            reason = (
                f"this machine adds {shown('ns', late)}, more than the slack of {shown(unit, allowed)}; "
                "prove again when it is idle, use `--time virtual`, or allow more: `proof:`"
            )
        elif "makes" not in reason:
            reason = ""
        interval = (low, high)
        return self._line(
            quantity, asked, realised, interval, unit, n, verdict, reason, expects, slack, machine
        )


def _wanted(unit: str, asked: float, expects: float) -> str:
    """What the file asks, and what that makes where it is not the same."""
    text, makes = f"asked {shown(unit, asked)}", shown(unit, expects)
    return text if makes == shown(unit, asked) else f"{text}, which makes {makes}"
