"""Reads queues back before each event that changes them.

A node's program may change a queue, and a later event or the program itself may undo the change; a check at
the end of the run would then miss it.
"""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.lab import queue_readback
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Warning
from orchestrator.lab.lab import Lab
from orchestrator.lab.links import carriers_of
from orchestrator.lab.readback import Difference

OF_LINKS = ("impair", "link-down", "link-up")
OF_NODES = ("start", "stop", "kill", "restart", "limit", "set")
MOST = 16  # largest number of targets that are read back for one event, evenly spread; each takes up to 30 ms
MOST_SHOWN = 5
REMEDY = "no program of a node may use tc; put changes into the timeline"


class ReadBacks:
    """The differences that were found in a run, each listed once, with the event before which it
    was found.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._found: dict[Difference, str] = {}

    def look(self, action: str, targets: Iterable[str], label: str) -> None:
        """Compares the queues of an event's targets (at most MOST, evenly spread) and of the links that the
        targets' frames pass with the expected ones; warns if they cannot be read.
        """
        names = list(targets)
        names = names[:: 1 + (len(names) - 1) // MOST]
        links = names if action in OF_LINKS else self._links_of(names)
        nodes = [] if action in OF_LINKS else names
        try:
            found = queue_readback.changed(self._lab, queue_readback.Part(set(nodes), set(links)))
        except (LabError, OSError) as error:
            text = f"queues could not be read back before {label}: {error}"
            self._lab.events.warn(Warning("unread", text, "what was changed until then is not known", False))
            return
        for one in found:
            self._found.setdefault(one, f" (before {label})")

    def _links_of(self, nodes: Iterable[str]) -> list[str]:
        known = [self._lab.nodes[name] for name in nodes if name in self._lab.nodes]
        return list(dict.fromkeys(link for node in known for link in carriers_of(self._lab, node)))

    def end(self) -> None:
        """Compares all queues after the measurement, when this no longer disturbs it; then warns of all
        differences found in the run.
        """
        try:
            for one in queue_readback.changed(self._lab):
                self._found.setdefault(one, "")
        finally:
            self._warn()

    def _warn(self) -> None:
        if self._found:
            shown = [f"{one}{when}" for one, when in self._found.items()]
            more = f"; and {len(shown) - MOST_SHOWN} more" if len(shown) > MOST_SHOWN else ""
            named = "; ".join(shown[:MOST_SHOWN])
            text = f"queues were changed in the run, which the proof of links does not know: {named}{more}"
            self._lab.events.warn(Warning("changed", text, REMEDY))


def touches(action: str) -> bool:
    """Returns whether an action changes queues or the devices that have them."""
    return action in (*OF_LINKS, *OF_NODES)
