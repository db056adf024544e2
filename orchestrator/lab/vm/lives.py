"""MQTT clients of machines that end and begin anew: armed again, and every message of theirs in the records.

The agent of a machine that is up again knows nothing of the scenario. It is given the clients as they were,
with what the records hold of their life before; the schedule goes on as if nothing had been.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.lab.clock import Clock
from orchestrator.lab.vm.talk import Talk, insist

Item = Mapping[str, Any]


@dataclass
class Life:
    """A machine's clients; `ended_ns`: when its last life ended, None while it lives."""

    items: list[Item]
    ended_ns: int | None = None


@dataclass
class Lives:
    """By machine; nothing is armed again once the load is over."""

    records: Path
    t0_ns: int | None = None
    over: bool = False
    of: dict[str, Life] = field(default_factory=dict)

    def armed(self, items: Iterable[Item]) -> None:
        """A workload, of all nodes."""
        for item in items:
            self.of.setdefault(str(item["node"]), Life([])).items.append(item)

    def ended(self, node: str, now_ns: int) -> list[str]:
        """The machine is off from now on; the clients that went with it, once."""
        life = self.of.get(node)
        if life is None or life.ended_ns is not None or self.t0_ns is None or self.over:
            return []
        life.ended_ns = now_ns
        return [str(item["software"]["mqtt"]["client_id"]) for item in life.items]

    def lost(self, node: str, now_ns: int) -> None:
        """The machine ended without a word; of its clients at least that they are gone is written down."""
        clients = self.ended(node, now_ns)
        with self.records.open("a", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerows(["C", client, "disconnected", now_ns, "its machine ended"] for client in clients)

    def again(self, node: str, clock: Clock, to_guest: Callable[[int], int]) -> Talk:
        """A conversation that arms its clients; none where it has none, or the load is over.

        to_guest: a time of the lab on the machine's clock.
        """
        life, t0_ns = self.of.get(node), self.t0_ns
        if life is None or life.ended_ns is None or t0_ns is None or self.over:
            return
        begins_ns = clock.now_ns() - t0_ns
        seen = recorded(self.records, {str(i["software"]["mqtt"]["client_id"]) for i in life.items})
        items = [_with(i, seen, life.ended_ns - t0_ns, begins_ns) for i in life.items]
        life.ended_ns = None
        insist((yield "workload", {"items": items}))
        insist((yield "go", {"t0_ns": to_guest(t0_ns)}))


def _with(item: Item, seen: Mapping[str, set[int]], ended_ns: int, begins_ns: int) -> dict[str, Any]:
    mqtt = item["software"]["mqtt"]
    numbers = seen.get(str(mqtt["client_id"]), set())
    following = max(numbers, default=-1) + 1
    earlier = {
        "next": following, "open": sorted(set(range(following)) - numbers),
        "ended_ns": ended_ns, "begins_ns": begins_ns,
    }  # fmt: skip
    return {**item, "software": {**item["software"], "mqtt": {**mqtt, "earlier": earlier}}}


def recorded(path: Path, publishers: set[str]) -> dict[str, set[int]]:
    """The sequence numbers that have an S line, by publisher."""
    found: dict[str, set[int]] = {name: set() for name in publishers}
    if not path.exists():
        return found
    with path.open(newline="") as lines:
        for fields in csv.reader(lines):
            if len(fields) > 2 and fields[0] == "S" and fields[1] in found:
                found[fields[1]].add(int(fields[2]))
    return found
