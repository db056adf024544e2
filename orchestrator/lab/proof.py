"""Proves links: sends probes through the driver and judges the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from contract.plan import Link
from contract.plan.tolerance import ProofSettings
from contract.proof import Proven
from orchestrator.lab import half_duplex, noise_floor, train
from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import Driver
from orchestrator.lab.judge import judge
from orchestrator.lab.judgement import Seen
from orchestrator.lab.operations import Probe, Probed, Prove
from orchestrator.lab.pooling import Way, added
from orchestrator.lab.probes import SPACING_NS, burst_probes, in_calls, in_turns, length_ns, spaced_probes
from orchestrator.lab.proving import (
    JITTERED,
    LOOKS,
    at_once,
    brief,
    further,
    in_time,
    more,
    most_ns,
    told,
)
from orchestrator.lab.tolerance import Noise, Tolerances, settle


@dataclass(frozen=True)
class Prover:
    """Proves links of one lab. netns: its core namespace; requested: the topology's settings of the proof;
    kernel: `host` or the name of a lab kernel; tables: the plan's delay distributions.
    """

    driver: Driver
    netns: str
    requested: ProofSettings
    kernel: str  # the kernel's name: "host", or that of a lab kernel
    virtual: bool
    tables: Mapping[str, Sequence[int]]  # the plan's tables of delays

    def prove(self, links: Sequence[Link], *, once: bool = False) -> tuple[list[Proven], Tolerances]:
        """Probes all directions and judges them, with further trains until every verdict is decided or the
        allowed time or number of attempts is used; returns the judgements and the tolerances. Half-duplex
        links are also judged with both directions at once.

        once: sends only the first trains, so that a lab that serves clients does not wait longer.
        """
        beside = self._measures(links)
        with noise_floor.wire(self.driver, self.netns) if beside else nullcontext():
            measured = beside and self.kernel != "host"
            quiet = noise_floor.quiet(self.driver, self.netns) if measured else None
            tolerances = settle(self.requested, kernel=self.kernel, virtual=self.virtual, quiet=quiet)
            if not links:
                return [], tolerances
            judged = self._until_told(links, tolerances, beside, LOOKS if not once else 1)
        return [*judged, *self._shared(links, tolerances, LOOKS if not once else 1)], tolerances

    def _until_told(
        self, links: Sequence[Link], tolerances: Tolerances, beside: bool, looks: int
    ) -> list[Proven]:
        """Sends spaced frames and trains through all directions, then further frames and longer trains
        through undecided ones; returns the judgements. A jitter or delay is judged with the rough tolerance
        if the time does not suffice for the fine one.
        """
        first = spaced_probes(links, self.requested.longest_ns)
        if self.virtual:
            first = brief(first, links)
        probes = first
        answers, noise = self._spaced(probes, beside)
        spaced = _by_way(answers)
        burst = _by_way(self._call(self._offered(burst_probes(links))))
        most = most_ns(self.requested, virtual=self.virtual)
        left_ns = most - length_ns(probes)
        for look in range(looks):
            fine = judge(links, spaced, burst, tolerances, noise, self.tables, LOOKS)
            rough = fine
            if any(more(line) for line in fine if line.quantity in JITTERED):
                rough = judge(links, spaced, burst, tolerances.rough(), noise, self.tables, LOOKS)
            last = look == looks - 1
            trains = [] if last else train.further(links, fine, left_ns)
            burst |= _by_way(self._call(self._offered(trains)))
            left_ns -= length_ns(trains)
            judged = in_time(fine, rough, first, left_ns, dense=self.virtual)
            probes = [] if last else further(first, judged, left_ns, links, dense=self.virtual)
            probes = in_turns(probes, links)
            if not probes and not trains:
                break
            if probes:
                answers, later = self._spaced(probes, beside)
                noise = later or noise
                for way, seen in _by_way(answers).items():
                    spaced[way] = added(spaced[way], seen)
            left_ns -= length_ns(probes)
        lines = in_time(fine, rough, first, 0, dense=self.virtual)
        return [_served(line) for line in lines] if looks == 1 else self._told(lines, links, first, left_ns)

    def _told(
        self, lines: Sequence[Proven], links: Sequence[Link], first: Sequence[Probe], left_ns: int
    ) -> list[Proven]:
        """Returns the judgements; undecided ones have the time that would decide them added, those of trains
        before those of spaced frames.
        """
        most = most_ns(self.requested, virtual=self.virtual)
        trains = train.trains(links, lines)
        whole_ns = most - left_ns + length_ns(trains)
        rated = [train.told(line, whole_ns, most) for line in lines]
        return told(rated, first, whole_ns, most, dense=self.virtual)

    def _shared(self, links: Sequence[Link], tolerances: Tolerances, looks: int) -> list[Proven]:
        """Sends trains through both directions of half-duplex links at once, and longer ones through those
        whose rate is undecided; returns the judgements.
        """
        most = most_ns(self.requested, virtual=self.virtual)
        trains, together, spent_ns = half_duplex.probes(links, tolerances, most), dict[Way, Seen](), 0
        for look in range(looks):
            together |= _by_way(self._call(self._offered(trains)))
            spent_ns += length_ns(trains)
            judged = list(half_duplex.judge(links, together, tolerances))
            trains = half_duplex.further(links, judged, most - spent_ns) if look < looks - 1 else []
            if not trains:
                break
        return [_served(j) if looks == 1 else half_duplex.told(j, links, tolerances, most) for j in judged]

    def _offered(self, trains: list[Probe]) -> list[Probe]:
        return at_once(trains) if self.virtual else trains

    def _measures(self, links: Sequence[Link]) -> bool:
        """Returns whether to measure the machine's added delay: not in virtual time, not for the fake driver,
        and only if a link has a delay.
        """
        return not self.virtual and self.driver.name != "fake" and noise_floor.wanted(links)

    def _spaced(self, probes: list[Probe], beside: bool) -> tuple[list[Probed], Noise | None]:
        """Sends the probes, together with the reference wire's if `beside`. Returns the answers and the
        machine's added delay; None if that is not measured.
        """
        if len(parts := in_calls(probes)) > 1:
            several = [self._spaced(part, beside) for part in parts]
            return [one for answers, _ in several for one in answers], several[-1][1]
        if not beside:
            return self._call(probes), None
        longest = max(p["count"] * p["interval_ns"] for p in probes)
        frames = min(noise_floor.MOST_FRAMES, max(noise_floor.QUIET_FRAMES, longest // SPACING_NS))
        *found, seen = self._call([*probes, noise_floor.probe(self.netns, frames)])
        return found, noise_floor.noise(seen)

    def _call(self, probes: list[Probe]) -> list[Probed]:
        """Sends probes to the driver and returns the answers; sends nothing for an empty list."""
        if not probes:
            return []
        longest = max(p["start_ns"] + p["timeout_ns"] + p["count"] * p["interval_ns"] for p in probes)
        return self.driver.call(Prove(probes), patience_ns=longest + 20 * SECOND)["probes"]


def _served(line: Proven) -> Proven:
    """Adds to the reason of an undecided judgement that a lab that only serves sends no more than the first
    trains.
    """
    if line.verdict != "cannot tell" or line.needs is None:
        return line
    why = "a lab that serves waits for the first trains only; a lab that begins with this link proves it"
    return replace(line, reason=f"{line.reason}; {why}")


def _by_way(probed: Sequence[Probed]) -> dict[tuple[str, str], Seen]:
    """Returns the frames of each (link, direction); several answers for one direction are added up."""
    found: dict[tuple[str, str], Seen] = {}
    for one in probed:
        way = one["link"], one["direction"]
        found[way] = added(found[way], _seen(one)) if way in found else _seen(one)
    return found


def _seen(p: Probed) -> Seen:
    return Seen(p["sent"], p["received"], p["duplicates"], p["corrupted"], p["delays_ns"], p["arrivals_ns"])
