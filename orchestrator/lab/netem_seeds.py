"""Seeds netem's random generator of each link and direction from the run's seed.

Runs with the same seed then lose, delay and reorder the same packets of a link, as long as the link carries
the same sequence of packets; traffic on other links has no influence. The kernel restarts the generator
whenever it receives a seed, so the lab sends a seed once before the scenario and once after each change.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from contract.plan import Direction, Impairment, Link
from orchestrator.lab.driver import Seeder
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab
from orchestrator.lab.probes import directions

MOST_SHOWN = 5
Way = tuple[str, str]  # link and direction


def draws(impairment: Impairment) -> bool:
    """Returns whether netem draws random numbers for this impairment: jitter, loss, duplication, corruption,
    reordering, or slots of varying length.
    """
    slot = impairment.slot
    return bool(
        impairment.jitter_ns or impairment.loss or impairment.gemodel or impairment.duplicate
        or impairment.corrupt or impairment.reorder
        or (slot and (slot.max_ns != slot.min_ns or slot.jitter_ns))
    )  # fmt: skip


def derived(seed: int, link: str, direction: str, change: int) -> int:
    """Returns the 64-bit seed of one direction of a link after its change number `change`; 0 is the start of
    the scenario.
    """
    text = f"{seed}\0{link}\0{direction}\0{change}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


class NetemSeeds:
    """Seeds the netem generators of a lab; warns once of directions that could not be seeded, except with the
    fake driver.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._changes: Counter[Way] = Counter()
        self._warned = False

    def sow(self, links: Iterable[Link]) -> None:
        """Seeds all directions of these links for which netem draws random numbers."""
        self._send([(name, way, d) for name, way, d in directions(list(links))])

    def changed(self, link: str, direction: str) -> None:
        """Counts a change of one direction's impairment, and seeds the direction if netem draws random
        numbers for it.
        """
        self._changes[link, direction] += 1
        self._send([(link, direction, self._lab.link(link).way(direction))])

    def _send(self, ways: list[tuple[str, str, Direction]]) -> None:
        wanted: dict[str, dict[str, tuple[Way, int]]] = {}
        for name, way, d in ways:
            if draws(self._lab.impairments[name, way]):
                seed = derived(self._lab.plan.seed, name, way, self._changes[name, way])
                wanted.setdefault(d.netns, {}).setdefault(d.carrier, ((name, way), seed))
        without: list[Way] = []
        for netns, of in wanted.items():
            found: dict[str, int] = {}
            if isinstance(self._lab.driver, Seeder):
                found = self._lab.driver.seed(netns, {device: seed for device, (_, seed) in of.items()})
            without += [way for device, (way, seed) in of.items() if found.get(device) != seed]
        self._warn(without)

    def _warn(self, without: list[Way]) -> None:
        if without and not self._warned and self._lab.driver.name != "fake":
            self._warned = True
            named = ", ".join(f"{link} {way}" for link, way in without[:MOST_SHOWN])
            more = f" and {len(without) - MOST_SHOWN} more" if len(without) > MOST_SHOWN else ""
            self._lab.events.warn(Warning(
                "unseeded", f"netem draws random numbers of its own on {named}{more}",
                "two runs with one seed differ on these links; see docs/compare.md", suspect=False,
            ))  # fmt: skip
