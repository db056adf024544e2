"""Judges each quantity of one direction of a link from the proof's frames: delay, jitter, loss, rate and the
others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from contract.plan import Direction, Impairment
from contract.proof import Proven
from orchestrator import queueing
from orchestrator.lab import expected, intervals, shape
from orchestrator.lab.intervals import ENOUGH, ROOM
from orchestrator.lab.judgement import ProofResult, Seen, loud_reason, shown, verdict, wanted_reason
from orchestrator.lab.probes import FRAMES_PLAIN, spaced_size
from orchestrator.lab.tolerance import WIDEST, Noise, Tolerances, of_share
from orchestrator.lab.train import Untold, measured, needed_frames
from orchestrator.plan.slots import lone_ns

NEAR = 0.1  # largest Kolmogorov-Smirnov distance at which the delays count as having the table's distribution
# The quartiles of netem's uniform jitter (mean +- jitter) are one jitter apart, of a normal one 1.349. They
# are used since rare late wake-ups of the machine hardly change them. Second: the error of their distance
# (intervals.quartile_range), for these two laws.
QUARTILES_TO_JITTER = {"uniform": (1.0, 1.0), "normal": (1 / 1.349, 1.166)}
# If the machine adds no delay, the standard deviation needs a fifth to a third of the quartiles' frames.
DEVIATION_TO_JITTER = {"uniform": math.sqrt(3), "normal": 1.0}
TAIL = 4  # a normal distribution reaches this many jitters below the mean; a delay below 0 is cut off

Tables = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Within:
    """The tolerances, the machine's added delay (None if it is not measured) and the delay tables by which
    directions are judged.
    """

    tolerances: Tolerances
    noise: Noise | None
    tables: Tables

    def through(self, direction: Direction) -> Within:
        """Returns the values that apply to a direction: these, or, if a bridge VM carries the direction's
        netem, the widest tolerances without the machine's added delay, which is not measured there.
        """
        return self if direction.enter is None else Within(WIDEST, None, self.tables)


@dataclass(frozen=True, slots=True)
class Quantities:
    """Judges the quantities of one direction from the results of its frames.

    z: number of standard errors to each side of an interval.
    """

    link: str
    direction: str
    requested: Impairment
    seen: Seen
    z: float
    within: Within

    def all(self) -> Iterator[Proven]:
        """Yields a judgement of reach and of each requested quantity except the rate; if all frames must be
        lost, only a judgement of loss.
        """
        i = self.requested
        if expected.requested_loss(i) == 1:
            yield self._loss()  # no further frame arrives, so nothing else can be judged
            return
        yield self._reach()
        if i.slot is not None:
            yield self._slotted()
        else:
            yield from self._times()
        seen = self.seen
        if expected.requested_loss(i):
            yield self._loss()
        if i.duplicate:
            share, memory = expected.duplicated(i), i.duplicate_correlation
            yield self._share("duplicate", i.duplicate, share, seen.duplicates, seen.sent, memory)
        if i.corrupt:
            each, memory = expected.judged_copies(i), i.corrupt_correlation
            share, n = expected.corrupted(i) / each, round(seen.sent * each)
            yield self._share("corrupt", i.corrupt, share, min(seen.corrupted, n), n, memory)
        if i.reorder:
            yield self._reorder()

    def _times(self) -> Iterator[Proven]:
        """Yields the judgements of delay and jitter, as far as each is requested."""
        i, table = self.requested, self.within.tables.get(self.requested.distribution)
        copies = table is not None and expected.overtaking(i) > expected.MINGLED
        if i.delay_ns:
            yield self._hidden("delay") if copies else self._delay()
        if i.jitter_ns and (self._mixed() or copies):
            yield self._hidden("jitter" if table is None else "distribution")
        elif i.jitter_ns:
            yield self._jitter() if table is None else self._distribution(table)

    def _line(
        self, quantity: str, requested: float, measured: float | None, interval: tuple[float, float] | None,
        unit: str, n: int, verdict: ProofResult, reason: str = "", expects: float | None = None,
        tolerance: float | None = None, machine: float | None = None, needs: int | None = None,
    ) -> Proven:  # fmt: skip
        """Returns a judgement of this direction; the expected value is the requested one unless given."""
        low, high = interval if interval else (None, None)
        return Proven(
            self.link, self.direction, quantity, requested, requested if expects is None else expects,
            measured, low, high, unit, n, verdict, reason, tolerance, machine, needs,
        )  # fmt: skip

    def _loss(self) -> Proven:
        """Judges the share of lost frames."""
        i, seen = self.requested, self.seen
        requested, memory = expected.requested_loss(i), expected.loss_memory(i)
        missing = seen.sent - seen.received + expected.counted_twice(i) * seen.sent
        hits = min(float(seen.sent), max(0.0, missing))
        return self._share("loss", requested, expected.lost(i), hits, seen.sent, memory)

    def _reach(self) -> Proven:
        """Judges whether frames arrive: all frames must arrive if neither loss nor corruption is requested,
        else at least one.
        """
        sent, received = self.seen.sent, self.seen.received
        if expected.requested_loss(self.requested) or self.requested.corrupt:
            found: ProofResult = "holds" if received else "cannot tell" if sent < ENOUGH else "fails"
            reason = "" if received else "no frame arrived"
        else:
            found = "holds" if received == sent else "fails"
            reason = (
                "" if received == sent else f"{sent - received} of {sent} frames lost where none should be"
            )
        share = received / sent if sent else None
        if share is not None and (twice := expected.counted_twice(self.requested)):
            share = min(1.0, max(0.0, share - twice))
        return self._line("reach", 1.0, share, None, "share", sent, found, reason)

    def _delays(self) -> list[float]:
        """Returns the delays of frames. If reordering is requested, returns only delays above a quarter of
        the requested delay, whose frames did not skip the queue, unless the jitter hides which frames did.
        """
        least = self.requested.delay_ns / 4 if self.requested.reorder and not self._mixed() else -1
        return [float(d) for d in self.seen.delays_ns if d > least]

    def _mixed(self) -> bool:
        """Returns whether the jitter reaches down to the delay of frames that skipped the queue."""
        i = self.requested
        return bool(i.reorder) and 3 * i.jitter_ns > i.delay_ns / 2

    def _delay(self) -> Proven:
        """Judges the delay by the mean if there is jitter, else by the median, which a few late frames do not
        change. The verdict is "cannot tell" with fewer than 5 delays.
        """
        values = self._delays()
        requested = self.requested.delay_ns
        sending = queueing.sending_ns(self.requested, spaced_size(self.requested))
        # A frame that skips the queue arrives without the delay (netem_enqueue). If the jitter hides which
        # frames did so, they count in the mean with a delay of 0.
        kept = 1 - expected.reordered(self.requested) if self._mixed() else 1.0
        whole = kept * expected.mean_ns(self.requested) + sending
        if len(values) < FRAMES_PLAIN:
            needs = self._for_mean(self.requested.jitter_ns, self._delay_tolerance(whole))
            return self._too_few("delay", requested, "ns", len(values), needs)
        noise = self.within.noise
        if self.requested.jitter_ns:
            found = intervals.mean_interval(values, self.z, self.requested.delay_correlation)
            added = abs(noise.mean_ns) if noise else None
        else:
            found = intervals.median_interval(values, self.z)
            added = abs(noise.median_ns) if noise else None
        tolerance = self._delay_tolerance(whole)
        return self._within("delay", requested, whole, found, "ns", len(values), tolerance, added)

    def _delay_tolerance(self, whole: float) -> float:
        tolerances = self.within.tolerances
        return max(tolerances.delay.of(whole), tolerances.of_jitter * self.requested.jitter_ns)

    def _slotted(self) -> Proven:
        """Judges the mean delay of frames that each have their own slot. The verdict is "cannot tell" if the
        effect of the slots on the jitter's distribution is unknown, or with too few frames.
        """
        values, i = self._delays(), self.requested
        makes = lone_ns(i, queueing.sending_ns(i, spaced_size(i)), self.within.tables)
        if makes is None:
            why = f"slots change a {i.distribution} jitter in an unknown way; use `delays: FILE` with them"
            return self._line("delay", i.delay_ns, None, None, "ns", len(values), "cannot tell", why)
        tolerance = max(self._delay_tolerance(makes), _of_slots(i, self.within.tolerances))
        if len(values) < ENOUGH:
            deviation = i.slot.max_ns / math.sqrt(3) if i.slot is not None else 0.0
            return self._too_few("delay", i.delay_ns, "ns", len(values), self._for_mean(deviation, tolerance))
        noise = self.within.noise
        added = abs(noise.mean_ns) if noise else None
        found = intervals.mean_interval(values, self.z, i.delay_correlation)
        return self._within("delay", i.delay_ns, makes, found, "ns", len(values), tolerance, added)

    def _jitter(self) -> Proven:
        """Judges the jitter by the spread of the delays; the verdict is "cannot tell" with too few frames."""
        values = self._delays()
        if len(values) < ENOUGH:
            needs = self._for_spread(self.within.tolerances.jitter.of(self.requested.jitter_ns))
            return self._too_few("jitter", self.requested.jitter_ns, "ns", len(values), needs)
        factor, found = self._spread(values)
        spread, low, high = (factor * v for v in found)
        requested = self.requested.jitter_ns
        tolerance = self.within.tolerances.jitter.of(requested)
        added = self.within.noise.spread_ns if self.within.noise else None
        makes = expected.jitter_ns(self.requested)
        return self._within(
            "jitter", requested, makes, (spread, low, high), "ns", len(values), tolerance, added
        )

    def _spread(self, values: Sequence[float]) -> tuple[float, tuple[float, float, float]]:
        """Returns a factor that converts the delays' spread to a jitter, and the spread with its interval.
        The spread is the standard deviation if the machine adds no delay; else it is the interquartile range,
        if the distribution has a known one.
        """
        i = self.requested
        whole = i.distribution == "uniform" or TAIL * i.jitter_ns <= i.delay_ns
        if self.within.tolerances.exact and whole and i.distribution in DEVIATION_TO_JITTER:
            found = intervals.deviation_interval(values, self.z, i.delay_correlation)
            return DEVIATION_TO_JITTER[i.distribution], found
        if i.distribution in QUARTILES_TO_JITTER:
            factor, error = QUARTILES_TO_JITTER[i.distribution]
            return factor, intervals.quartile_range(values, self.z, error, i.delay_correlation)
        return 1.0, intervals.deviation_interval(values, self.z, i.delay_correlation)

    def _for_mean(self, deviation: float, tolerance: float) -> int:
        """Returns the number of frames, at least ENOUGH, whose mean delay is precise enough if single delays
        deviate by at most `deviation`.
        """
        return self._frames(deviation / tolerance if tolerance else 0.0)

    def _for_spread(self, tolerance: float) -> int:
        """Returns the number of frames, at least ENOUGH, after which the interval of the jitter (see
        `_spread`) is narrow enough.
        """
        i, law = self.requested, self.requested.distribution
        if self.within.tolerances.exact and law in DEVIATION_TO_JITTER:
            error = {"uniform": math.sqrt(0.2), "normal": math.sqrt(0.5)}[law]
        else:
            _, error = QUARTILES_TO_JITTER.get(law, (1.0, 1.0))
        return self._frames(error * i.jitter_ns / tolerance if tolerance else 0.0)

    def _frames(self, error: float) -> int:
        """Returns the number of frames, at least ENOUGH, that make the interval narrow enough. `error`: the
        standard error with a single frame, divided by the tolerance.
        """
        memory = self.requested.delay_correlation
        return max(ENOUGH, math.ceil((self.z * error / ROOM) ** 2 * (1 + memory) / max(1e-3, 1 - memory)))

    def _distribution(self, table: Sequence[int]) -> Proven:
        """Judges the delays by their Kolmogorov-Smirnov distance from the user's table; shifts within the
        delay's tolerance do not count. The verdict is "cannot tell" with too few frames, or if the machine
        adds more than that tolerance.
        """
        values, i = self._delays(), self.requested
        if len(values) < ENOUGH:
            needs = intervals.needed(ENOUGH, shape.critical(ENOUGH, self.z), NEAR)
            return self._too_few("distribution", 0.0, "share", len(values), needs or ENOUGH)
        sending = queueing.sending_ns(i, spaced_size(i))
        wanted = shape.expected_ns(i.delay_ns, i.jitter_ns, table, sending)
        tolerance_ns = self.within.tolerances.delay.of(i.delay_ns + sending)
        told = shape.critical(len(values), self.z)
        shifted = shape.distance(values, wanted, tolerance_ns)
        added = (
            max(abs(self.within.noise.median_ns), self.within.noise.spread_ns) if self.within.noise else 0.0
        )
        low, high = max(0.0, shifted - told), min(1.0, shifted + told)
        judged = verdict(low, high, 0.0, NEAR)
        reason = shape.quantiles(values, wanted)
        needs = intervals.more(len(values), told, NEAR, shifted, None) if judged == "cannot tell" else None
        if added > tolerance_ns:
            judged, needs = "cannot tell", None
            allowed = shown("ns", tolerance_ns)
            adds = f"this machine adds {shown('ns', added)}, more than the delay's tolerance of {allowed}"
            reason = f"{adds}; {reason}"
        return self._line(
            "distribution", 0.0, shifted, (low, high), "share", len(values), judged, reason, tolerance=NEAR,
            needs=needs,
        )  # fmt: skip

    def _share(
        self, quantity: str, requested: float, share: float, hits: float, n: int, correlation: float
    ) -> Proven:
        """Judges a share: `hits` of `n` frames, with the correlation of successive frames; the verdict is
        "cannot tell" with too few frames.
        """
        tolerance = of_share(share)
        needs = math.ceil(self.z**2 * share * (1 - share) / (ROOM * tolerance) ** 2) if tolerance else ENOUGH
        needs = max(ENOUGH, math.ceil(needs * (1 + correlation) / (1 - correlation)))
        if n < ENOUGH:
            return self._too_few(quantity, requested, "share", n, needs)
        worth = intervals.effective(n, correlation)
        low, high = intervals.wilson(hits / n * worth, worth, self.z)
        return self._within(
            quantity, requested, share, (hits / n, low, high), "share", n, tolerance, needs=needs
        )

    def _reorder(self) -> Proven:
        """Judges the share of frames that skipped the queue, which arrive with less than half of the delay;
        the verdict is "cannot tell" if the jitter is too large to distinguish them.
        """
        delays = self.seen.delays_ns
        if self._mixed():
            why = "the jitter hides which frames skipped the queue"
            return self._line(
                "reorder", self.requested.reorder, None, None, "share", len(delays), "cannot tell", why
            )
        skipped = sum(d < self.requested.delay_ns / 2 for d in delays)
        share, memory = expected.reordered(self.requested), self.requested.reorder_correlation
        return self._share("reorder", self.requested.reorder, share, skipped, len(delays), memory)

    def rate(self, direction: Direction, train: Seen | None) -> Proven:
        """Judges the rate by the spacing of a train's frames that waited for one another; the interval is the
        bound on the rate's error. The verdict is "cannot tell" with slots, or if the train does not show the
        rate.
        """
        requested, expects = float(self.requested.rate_bps), expected.rate_bps(self.requested)
        tolerance = self.within.tolerances.rate.of(expects)
        if self.requested.slot is not None:
            why = "slots let frames go together, which hides the rate's spacing"
            return self._line(
                "rate", requested, None, None, "bit/s", 0, "cannot tell", why, tolerance=tolerance
            )
        told = measured(self.requested, train)
        away = 0.0 if isinstance(told, Untold) else abs(told.rate_bps / expects - 1)
        needs = needed_frames(direction, train, told, tolerance / expects, away)
        if isinstance(told, Untold):
            return self._line(
                "rate", requested, None, None, "bit/s", told.frames, "cannot tell", told.reason,
                tolerance=tolerance, needs=needs,
            )  # fmt: skip
        found = told.rate_bps, told.rate_bps * (1 - told.error), told.rate_bps * (1 + told.error)
        line = self._within(
            "rate", requested, expects, found, "bit/s", told.frames, tolerance,
            # missing frames look like lateness, but the link causes them
            late_ns=None if told.holes else told.late_ns,
        )  # fmt: skip
        return replace(line, needs=needs) if line.verdict == "cannot tell" else line

    def _hidden(self, quantity: str) -> Proven:
        """Returns a judgement `cannot tell` with this reason: the delays include frames that skipped the
        queue, or the earlier of two copies, and the jitter hides these frames.
        """
        which = "skipped the queue" if self._mixed() else "overtook their copies"
        why = f"frames that {which} are among the delays, and the jitter hides which"
        wanted = {"delay": self.requested.delay_ns, "jitter": self.requested.jitter_ns}.get(quantity, 0.0)
        unit = "share" if quantity == "distribution" else "ns"
        return self._line(quantity, wanted, None, None, unit, len(self.seen.delays_ns), "cannot tell", why)

    def _too_few(self, quantity: str, requested: float, unit: str, n: int, needs: int = ENOUGH) -> Proven:
        """Returns a judgement `cannot tell` because of too few frames."""
        why = f"{n} frames are too few to judge"
        return self._line(quantity, requested, None, None, unit, n, "cannot tell", why, needs=needs)

    def _within(
        self, quantity: str, requested: float, expects: float, found: tuple[float, float, float], unit: str,
        n: int, tolerance: float, machine: float | None = None, late_ns: float | None = None,
        needs: int | None = None,
    ) -> Proven:  # fmt: skip
        """Judges an interval (measured, low, high) against the expected value and the tolerance.

        machine: the machine's addition to the quantity. If that exceeds the tolerance, the result never
        holds, and fails only beyond the sum of both. late_ns: the machine's lateness for the frames of a
        train; the reason names it if the rate is undecided. In both cases no further spaced frames are
        requested; otherwise `needs` is their least number.
        """
        measured, low, high = found
        added = machine or 0.0
        loud = added > tolerance
        reach = tolerance + added if loud else tolerance
        judged = verdict(low, high, expects - reach, expects + reach)
        if judged == "holds" and loud:
            judged = "cannot tell"
        reason = wanted_reason(unit, requested, expects)
        if judged == "fails":
            reason += f", measured {shown(unit, low, high)} ({n} frames)"
        elif loud:
            reason = loud_reason(unit, tolerance, shown(unit, added))
        elif judged == "cannot tell" and late_ns is not None:
            reason = loud_reason(
                unit, tolerance, f"{shown('ns', late_ns)}, which is up to {shown(unit, (high - low) / 2)}"
            )
        elif judged == "cannot tell":
            reason += f", {n} frames only show {shown(unit, low, high)}, tolerance {shown(unit, tolerance)}"
        elif "makes" not in reason:
            reason = ""
        wants = None
        if judged == "cannot tell" and not loud and late_ns is None:
            wants = intervals.more(n, (high - low) / 2, tolerance, abs(measured - expects), needs)
        return self._line(
            quantity, requested, measured, (low, high), unit, n, judged, reason, expects, tolerance, machine,
            wants,
        )  # fmt: skip


def _of_slots(requested: Impairment, tolerances: Tolerances) -> float:
    """Returns the tolerance (ns) that slots add: their spread counts as jitter, for a uniform spread half its
    width.
    """
    return tolerances.of_jitter * (requested.slot.max_ns / 2 if requested.slot is not None else 0.0)
