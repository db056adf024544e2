"""Asked against realised, for every quantity of every direction: from what probes met to verdicts.

A quantity holds where its whole interval is within the slack of what is expected, fails where all of it is
outside, and the proof cannot tell where it is wider than that. Intervals hold for all judged quantities at
once with 99 % (Bonferroni): with 700 directions, 95 % each would call 35 good links bad.
"""

from __future__ import annotations

import math
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
from orchestrator.lab.judgement import Judgement, ProofResult, Seen, shown, verdict
from orchestrator.lab.pooling import alike, pooled
from orchestrator.lab.probes import FRAMES_PLAIN, directions, spaced_size
from orchestrator.lab.slack import WIDEST, Noise, Slacks, of_share
from orchestrator.lab.train import Untold, realised
from orchestrator.model import Direction, Impairment, Link
from orchestrator.plan.slots import lone_ns

ENOUGH = 30  # fewer frames say nothing about a share or a spread
# Of a slack, what an interval is to take: by the rest its middle may be off.
ROOM = 0.7
NEARLY, AGAIN = 0.9, 1.3  # once these were not enough: of the way to the slack's edge; times as many at least
NEAR = 0.1  # Kolmogorov and Smirnov's distance within which delays are distributed as a table says
# netem's uniform jitter spans mean +- jitter: its quartiles are one jitter apart; of a normal one 1.349.
# Quartiles: a machine that wakes up late now and then is no fault of the link (and warned of elsewhere).
# Second: the error of their distance (intervals.quartile_range), for these two laws.
QUARTILES_TO_JITTER = {"uniform": (1.0, 1.0), "normal": (1 / 1.349, 1.166)}
# Where the machine adds nothing, the standard deviation tells it with a fifth to a third of the frames.
DEVIATION_TO_JITTER = {"uniform": math.sqrt(3), "normal": 1.0}
TAIL = 4  # jitters below the mean that a normal one may reach; what would be sent before it came is cut off

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
    looks: int = 1,
) -> list[Judgement]:
    """Every quantity of every direction, asked against realised.

    noise: what the machine added. looks: how often it is judged at most, the last time for good; each is one
    more chance to err.
    """
    within = _Within(slacks, noise, tables)
    tests = sum(1 for _ in _judge(links, spaced, burst, within, z=2.0))
    groups = alike(links)
    together = 1 + any(len(ways) > 1 for ways in groups)  # each quantity by itself, and pooled
    z = z_for(tests * looks * together)
    found = list(_judge(links, spaced, burst, within, z))

    def again(direction: Direction, seen: Seen) -> list[Judgement]:
        return list(_Judging("", "", direction.impairment, seen, z, within.through(direction)).all())

    return pooled(groups, spaced, found, again)


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
            yield Judgement(link, name, "reach", 1.0, 1.0, None, None, None, "share", 0, "cannot tell", why)
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
        slack: float | None = None, machine: float | None = None, needs: int | None = None,
    ) -> Judgement:  # fmt: skip
        low, high = interval if interval else (None, None)
        return Judgement(
            self.link, self.direction, quantity, asked, asked if expects is None else expects, realised, low,
            high, unit, n, verdict, reason, slack, machine, needs,
        )  # fmt: skip

    def _loss(self) -> Judgement:
        i, seen = self.asked, self.seen
        asked, memory = expected.asked_loss(i), expected.loss_memory(i)
        return self._share("loss", asked, expected.lost(i), seen.sent - seen.received, seen.sent, memory)

    def _reach(self) -> Judgement:
        sent, received = self.seen.sent, self.seen.received
        if expected.asked_loss(self.asked) or self.asked.corrupt:
            found: ProofResult = "holds" if received else "cannot tell" if sent < ENOUGH else "fails"
            reason = "" if received else "no frame arrived"
        else:
            found = "holds" if received == sent else "fails"
            reason = (
                "" if received == sent else f"{sent - received} of {sent} frames lost where none should be"
            )
        return self._line("reach", 1.0, received / sent if sent else None, None, "share", sent, found, reason)

    def _delays(self) -> list[float]:
        """Delays of frames that were held back (a reordered frame skips the queue)."""
        least = self.asked.delay_ns / 4 if self.asked.reorder else -1
        return [float(d) for d in self.seen.delays_ns if d > least]

    def _delay(self) -> Judgement:
        """By the median where all frames are delayed alike: the few that came late do not matter."""
        values = self._delays()
        asked = self.asked.delay_ns
        whole = expected.mean_ns(self.asked) + queueing.sending_ns(self.asked, spaced_size(self.asked))
        if len(values) < FRAMES_PLAIN:
            return self._too_few("delay", asked, "ns", len(values))
        noise = self.within.noise
        if self.asked.jitter_ns:
            found = mean_interval(values, self.z, self.asked.delay_correlation)
            added = abs(noise.mean_ns) if noise else None
        else:
            found = median_interval(values, self.z)
            added = abs(noise.median_ns) if noise else None
        slack = self._delay_slack(whole)
        return self._within("delay", asked, whole, found, "ns", len(values), slack, added)

    def _delay_slack(self, whole: float) -> float:
        slacks = self.within.slacks
        return max(slacks.delay.of(whole), slacks.of_jitter * self.asked.jitter_ns)

    def _slotted(self) -> Judgement:
        """The mean delay of frames that each found a slot of their own."""
        values, i = self._delays(), self.asked
        makes = lone_ns(i, queueing.sending_ns(i, spaced_size(i)), self.within.tables)
        if makes is None:
            why = f"what slots make of a {i.distribution} jitter is not known; `delays: FILE` beside them is"
            return self._line("delay", i.delay_ns, None, None, "ns", len(values), "cannot tell", why)
        if len(values) < ENOUGH:
            return self._too_few("delay", i.delay_ns, "ns", len(values))
        noise, slack = self.within.noise, max(self._delay_slack(makes), _of_slots(i, self.within.slacks))
        added = abs(noise.mean_ns) if noise else None
        found = mean_interval(values, self.z, i.delay_correlation)
        return self._within("delay", i.delay_ns, makes, found, "ns", len(values), slack, added)

    def _jitter(self) -> Judgement:
        values = self._delays()
        if len(values) < ENOUGH:
            return self._too_few("jitter", self.asked.jitter_ns, "ns", len(values))
        factor, found = self._spread(values)
        spread, low, high = (factor * v for v in found)
        asked = self.asked.jitter_ns
        slack = self.within.slacks.jitter.of(asked)
        added = self.within.noise.spread_ns if self.within.noise else None
        makes = expected.jitter_ns(self.asked)
        return self._within("jitter", asked, makes, (spread, low, high), "ns", len(values), slack, added)

    def _spread(self, values: Sequence[float]) -> tuple[float, tuple[float, float, float]]:
        """What makes a jitter of the values' spread, and the spread with its interval."""
        i = self.asked
        whole = i.distribution == "uniform" or TAIL * i.jitter_ns <= i.delay_ns
        if self.within.slacks.exact and whole and i.distribution in DEVIATION_TO_JITTER:
            found = deviation_interval(values, self.z, i.delay_correlation)
            return DEVIATION_TO_JITTER[i.distribution], found
        if i.distribution in QUARTILES_TO_JITTER:
            factor, error = QUARTILES_TO_JITTER[i.distribution]
            return factor, quartile_range(values, self.z, error, i.delay_correlation)
        return 1.0, deviation_interval(values, self.z, i.delay_correlation)

    def _distribution(self, table: Sequence[int]) -> Judgement:
        """Kolmogorov and Smirnov's distance from the user's own table, which the delay's slack may shift."""
        values, i = self._delays(), self.asked
        if len(values) < ENOUGH:
            return self._too_few("distribution", 0.0, "share", len(values))
        sending = queueing.sending_ns(i, spaced_size(i))
        wanted = shape.expected_ns(i.delay_ns, i.jitter_ns, table, sending)
        slack_ns = self.within.slacks.delay.of(i.delay_ns + sending)
        told = shape.critical(len(values), self.z)
        shifted = shape.distance(values, wanted, slack_ns)
        added = (
            max(abs(self.within.noise.median_ns), self.within.noise.spread_ns) if self.within.noise else 0.0
        )
        low, high = max(0.0, shifted - told), min(1.0, shifted + told)
        judged = verdict(low, high, 0.0, NEAR)
        reason = shape.quantiles(values, wanted)
        needs = _needs(len(values), told, NEAR) if judged == "cannot tell" else None
        if added > slack_ns:
            judged, needs = "cannot tell", None
            allowed = shown("ns", slack_ns)
            reason = (
                f"this machine adds {shown('ns', added)}, more than the delay's slack of {allowed}; {reason}"
            )
        return self._line(
            "distribution", 0.0, shifted, (low, high), "share", len(values), judged, reason, slack=NEAR,
            needs=needs,
        )  # fmt: skip

    def _share(
        self, quantity: str, asked: float, share: float, hits: int, n: int, correlation: float
    ) -> Judgement:
        """A share: hits of n, of which neighbours may depend on one another."""
        slack = of_share(share)
        needs = math.ceil(self.z**2 * share * (1 - share) / (ROOM * slack) ** 2) if slack else ENOUGH
        needs = max(ENOUGH, math.ceil(needs * (1 + correlation) / (1 - correlation)))
        if n < ENOUGH:
            return self._too_few(quantity, asked, "share", n, needs)
        worth = effective(n, correlation)
        low, high = wilson(hits / n * worth, worth, self.z)
        return self._within(quantity, asked, share, (hits / n, low, high), "share", n, slack, needs=needs)

    def _reorder(self) -> Judgement:
        delays = self.seen.delays_ns
        if 3 * self.asked.jitter_ns > self.asked.delay_ns / 2:
            why = "the jitter hides which frames skipped the queue"
            return self._line(
                "reorder", self.asked.reorder, None, None, "share", len(delays), "cannot tell", why
            )
        skipped = sum(d < self.asked.delay_ns / 2 for d in delays)
        share, memory = expected.reordered(self.asked), self.asked.reorder_correlation
        return self._share("reorder", self.asked.reorder, share, skipped, len(delays), memory)

    def rate(self, train: Seen | None) -> Judgement:
        """From the spacing of frames that waited for one another; the interval is the bound on its error."""
        asked, expects = float(self.asked.rate_bps), expected.rate_bps(self.asked)
        slack = self.within.slacks.rate.of(expects)
        if self.asked.slot is not None:
            why = "slots let frames go together, which hides the rate's spacing"
            return self._line("rate", asked, None, None, "bit/s", 0, "cannot tell", why, slack=slack)
        told = realised(self.asked, train)
        if isinstance(told, Untold):
            return self._line(
                "rate", asked, None, None, "bit/s", told.frames, "cannot tell", told.reason, slack=slack
            )
        found = told.rate_bps, told.rate_bps * (1 - told.error), told.rate_bps * (1 + told.error)
        return self._within("rate", asked, expects, found, "bit/s", told.frames, slack, late_ns=told.late_ns)

    def _too_few(self, quantity: str, asked: float, unit: str, n: int, needs: int = ENOUGH) -> Judgement:
        why = f"{n} frames are too few to judge"
        return self._line(quantity, asked, None, None, unit, n, "cannot tell", why, needs=needs)

    def _within(
        self, quantity: str, asked: float, expects: float, found: tuple[float, float, float], unit: str,
        n: int, slack: float, machine: float | None = None, late_ns: float | None = None,
        needs: int | None = None,
    ) -> Judgement:  # fmt: skip
        """`machine`: what it adds to the quantity itself. Where that is more than the slack, only what is
        further away than both fails. `late_ns`: what it adds to the frames of a train, which a longer one
        does not make up for.
        """
        realised, low, high = found
        added = machine or 0.0
        loud = added > slack
        reach = slack + added if loud else slack
        judged = verdict(low, high, expects - reach, expects + reach)
        if judged == "holds" and loud:
            judged = "cannot tell"
        reason = _wanted(unit, asked, expects)
        if judged == "fails":
            reason += f", realised {shown(unit, low, high)} ({n} frames)"
        elif loud:
            reason = _loud(unit, slack, shown(unit, added))
        elif judged == "cannot tell" and late_ns is not None:
            reason = _loud(
                unit, slack, f"{shown('ns', late_ns)}, which is up to {shown(unit, (high - low) / 2)}"
            )
        elif judged == "cannot tell":
            reason += f", {n} frames only show {shown(unit, low, high)}, slack {shown(unit, slack)}"
        elif "makes" not in reason:
            reason = ""
        more = None
        if judged == "cannot tell" and not loud and late_ns is None:
            more = _more(n, (high - low) / 2, slack, abs(realised - expects), needs)
        return self._line(
            quantity, asked, realised, (low, high), unit, n, judged, reason, expects, slack, machine, more
        )


def _needs(n: int, half: float, slack: float) -> int | None:
    """Frames whose interval has room in the slack, where n of them have one of so much to either side."""
    return math.ceil(n * (half / (ROOM * slack)) ** 2) if slack else None


def _more(n: int, half: float, slack: float, away: float, needs: int | None) -> int | None:
    """`_needs` beforehand; where as many have not told, by how far the slack's edge is from them."""
    before = needs or _needs(n, half, slack) or 0
    if before > AGAIN * n:
        return before
    edge = max(abs(slack - away), half / 4)
    return math.ceil(n * min(4.0, max(AGAIN, (half / (NEARLY * edge)) ** 2)))


def _of_slots(asked: Impairment, slacks: Slacks) -> float:
    """A slot's own spread is a jitter, too: of evenly long ones, half their width."""
    return slacks.of_jitter * (asked.slot.max_ns / 2 if asked.slot is not None else 0.0)


def _loud(unit: str, slack: float, adds: str) -> str:
    return (
        f"this machine adds {adds}, more than the slack of {shown(unit, slack)}; "
        "prove again when it is idle, use `--time virtual`, or allow more: `proof:`"
    )


def _wanted(unit: str, asked: float, expects: float) -> str:
    """What the file asks, and what that makes where it is not the same."""
    text, makes = f"asked {shown(unit, asked)}", shown(unit, expects)
    return text if makes == shown(unit, asked) else f"{text}, which makes {makes}"
