"""The proof of links: sends probes through the driver and has their answers judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.lab import half_duplex, reference
from orchestrator.lab.clock import SECOND
from orchestrator.lab.driver import Driver
from orchestrator.lab.judge import judge
from orchestrator.lab.judgement import Judgement, Seen
from orchestrator.lab.operations import Probe, Probed, Prove
from orchestrator.lab.probes import SPACING_NS, burst_probes, shared_probes, spaced_probes
from orchestrator.lab.slack import Noise, Slacks, settle
from orchestrator.model import Link
from orchestrator.model.slack import ProofSettings


@dataclass(frozen=True)
class Prover:
    """Proves links of one lab: in its core namespace, as its file asks, in the kernel that it runs in."""

    driver: Driver
    netns: str
    asked: ProofSettings
    kernel: str  # host, or a lab kernel's
    virtual: bool
    tables: Mapping[str, Sequence[int]]  # of delays, the plan's

    def prove(self, links: Sequence[Link]) -> tuple[list[Judgement], Slacks]:
        """Probe all directions and judge them; takes a few seconds at most."""
        beside = self._measures(links)
        with reference.wire(self.driver, self.netns) if beside else nullcontext():
            measured = beside and self.kernel != "host"
            quiet = reference.quiet(self.driver, self.netns) if measured else None
            slacks = settle(self.asked, kernel=self.kernel, virtual=self.virtual, quiet=quiet)
            if not links:
                return [], slacks
            spaced, noise = self._spaced(links, beside)
        burst = self._call(burst_probes(links))
        judged = judge(links, _by_way(spaced), _by_way(burst), slacks, noise, self.tables)
        together = _by_way(self._call(shared_probes(links)))
        return [*judged, *half_duplex.judge(links, together, slacks)], slacks

    def _measures(self, links: Sequence[Link]) -> bool:
        """Virtual time adds nothing, and a driver that invents its answers has no machine."""
        return not self.virtual and self.driver.name != "fake" and reference.wanted(links)

    def _spaced(self, links: Sequence[Link], beside: bool) -> tuple[list[Probed], Noise | None]:
        probes = spaced_probes(links, self.asked.longest_ns)
        if not beside:
            return self._call(probes), None
        longest = max(p["count"] * p["interval_ns"] for p in probes)
        extra = reference.probe(self.netns, max(reference.QUIET_FRAMES, longest // SPACING_NS))
        *found, seen = self._call([*probes, extra])
        return found, reference.noise(seen)

    def _call(self, probes: list[Probe]) -> list[Probed]:
        if not probes:
            return []
        longest = max(p["start_ns"] + p["timeout_ns"] + p["count"] * p["interval_ns"] for p in probes)
        return self.driver.call(Prove(probes), patience_ns=longest + 20 * SECOND)["probes"]


def _by_way(probed: Sequence[Probed]) -> dict[tuple[str, str], Seen]:
    return {(p["link"], p["direction"]): _seen(p) for p in probed}


def _seen(p: Probed) -> Seen:
    return Seen(p["sent"], p["received"], p["duplicates"], p["corrupted"], p["delays_ns"], p["arrivals_ns"])


def to_json(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    return [asdict(j) for j in judgements]
