"""Fetches clock estimates, message records and program logs from machines, during a lab and at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from orchestrator.lab.clock import SECOND
from orchestrator.lab.loop import Loop
from orchestrator.lab.vm import clocks
from orchestrator.lab.vm.dialogue import Dialogue, begin, together
from orchestrator.lab.vm.guest import GUEST_MESSAGES, Guest
from orchestrator.lab.vm.watch import Watch

DIALOGUE_NS = 120 * SECOND
CLOCK_ERROR_NS = 10_000_000  # a larger error of the clock makes one-way latencies doubtful


class Collector:
    """Fetches clock estimates, message records and logs from `guests`, the driver's own table, to which nodes
    are added and removed.
    """

    def __init__(self, loop: Loop, guests: Mapping[str, Guest], watch: Watch) -> None:
        self._loop, self._guests, self._watch = loop, guests, watch
        self._busy: set[str] = set()  # machines with a request for clock and files in progress

    def estimate_clocks(self) -> None:
        """Adds an estimate of each ready machine's clock and waits for it; ignores errors, since other code
        reports a lost agent.
        """
        dialogues = [(g, clocks.estimate(self._loop.clock)) for g in self._guests.values() if g.ready]
        found, _ = together(self._loop, "the machines' clocks", DIALOGUE_NS, dialogues, each=True)
        for name, estimate in found.items():
            self._watch.clock(self._guests[name]).estimates.append(estimate)

    def keep_up(self) -> None:
        """Begins to fetch clock and files of each ready machine without such a request in progress, without
        waiting.
        """
        for guest in self._guests.values():
            if guest.ready and guest.name not in self._busy:
                self._busy.add(guest.name)
                begin(guest, self._estimate_and_fetch(guest), partial(self._free, guest.name))

    def _settled(self) -> bool:
        """Returns whether no machine that answers has a request in progress."""
        return not any(guest.ready and guest.name in self._busy for guest in self._guests.values())

    def _free(self, name: str, _: Any, __: str | None) -> None:
        self._busy.discard(name)

    def _estimate_and_fetch(self, guest: Guest) -> Dialogue[None]:
        estimate = yield from clocks.estimate(self._loop.clock)
        self._watch.clock(guest).estimates.append(estimate)
        for file in self._watch.files(guest):
            yield from file.rest()

    def collect(self) -> None:
        """Fetches the last clock estimates and the rest of all files of ready machines after the load. Warns
        of the largest clock error if it is above 10 ms, which makes the run suspect; the manifest has all.
        """
        self.fetch([g for g in self._guests.values() if g.ready])
        facts = self._watch.clocks()
        worst = max(facts.items(), key=lambda f: int(f[1]["error_ns"]), default=None)
        if worst is not None and int(worst[1]["error_ns"]) > CLOCK_ERROR_NS:
            name, error = worst[0], int(worst[1]["error_ns"])
            self._watch.warn(
                "clocks", f"times of {len(facts)} virtual machines are carried over from their clocks, to "
                f"{error / 1e6:.2f} ms at worst ({name})",
                "one-way latencies between them are no better than twice that",
                suspect=True,
            )  # fmt: skip

    def fetch(self, guests: Sequence[Guest]) -> None:
        """Waits for fetches in progress, then fetches a last estimate and the rest of the files of ready
        machines; warns of each that fails. Raises TimedOut if the first wait takes more than 120 s.
        """
        self._loop.until(self._loop.clock.now_ns() + DIALOGUE_NS, "files under way", self._settled)
        dialogues = [(g, self._estimate_and_fetch(g)) for g in guests if g.ready]
        _, errors = together(self._loop, "the machines' files", DIALOGUE_NS, dialogues, each=True)
        for name, why in errors.items():
            self._watch.warn(
                "collect", f"nodes.{name}: {GUEST_MESSAGES} or logs: {why}", "what came before is kept"
            )
