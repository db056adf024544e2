"""Arms the roles of machines that restart, and keeps every message in the records.

The agent of a restarted machine has no state of the scenario. It receives the same roles, with the positions
of their flows from the records; the schedules continue unchanged.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.lab import workload
from orchestrator.lab.clock import Clock
from orchestrator.lab.operations import Go, Item, Workload
from orchestrator.lab.vm.dialogue import Dialogue, ask


@dataclass
class Armed:
    """A machine's roles; `ended_ns` is the time at which the machine ended, None while it runs."""

    items: list[Item]
    ended_ns: int | None = None


@dataclass
class Rearming:
    """The roles of each machine. Sets nothing after the end of the load (`over`). records: the file of
    message records.
    """

    records: Path
    t0_ns: int | None = None
    over: bool = False
    of: dict[str, Armed] = field(default_factory=dict)

    def armed(self, items: Iterable[Item]) -> None:
        """Stores the roles of a workload by node."""
        for item in items:
            self.of.setdefault(item["node"], Armed([])).items.append(item)

    def ended(self, node: str, now_ns: int) -> list[str]:
        """Records the machine's end and returns its endpoints; empty, without a record, if it has no roles,
        had ended, or the load has not begun or is over.
        """
        known = self.of.get(node)
        if known is None or known.ended_ns is not None or self.t0_ns is None or self.over:
            return []
        known.ended_ns = now_ns
        return [workload.endpoint(item) for item in known.items]

    def lost(self, node: str, now_ns: int) -> None:
        """Writes a `disconnected` record for each session of a machine that ended unexpectedly, as `ended`
        returns them.
        """
        gone = self.ended(node, now_ns)
        with self.records.open("a", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerows(
                ["C", endpoint, "disconnected", now_ns, "its machine ended"] for endpoint in gone
            )

    def again(self, node: str, clock: Clock, to_guest: Callable[[int], int]) -> Dialogue[None]:
        """Arms the roles of a restarted machine again, as a dialogue; does nothing if it has none, had not
        ended, or the load has not begun or is over. `to_guest` converts a time of the lab to the machine's
        clock.
        """
        known, t0_ns = self.of.get(node), self.t0_ns
        if known is None or known.ended_ns is None or t0_ns is None or self.over:
            return
        begins_ns = clock.now_ns() - t0_ns
        seen = recorded(self.records, {flow["number"] for item in known.items for flow in item["flows"]})
        items = [_with(i, seen, known.ended_ns - t0_ns, begins_ns) for i in known.items]
        known.ended_ns = None
        yield from ask(Workload(items))
        yield from ask(Go(to_guest(t0_ns)))


def _with(item: Item, seen: Mapping[int, set[int]], ended_ns: int, begins_ns: int) -> Item:
    """Returns the role with `resume`: for each flow number, the next sequence number, the earlier sequence
    numbers that are not recorded, and the times of the gap (ns after t0).
    """
    resume = {
        str(flow["number"]): _so_far(seen[flow["number"]]) | {"ended_ns": ended_ns, "begins_ns": begins_ns}
        for flow in item["flows"]
    }
    return {**item, "resume": resume}


def _so_far(recorded: set[int]) -> dict[str, Any]:
    """Returns the next sequence number after the recorded ones, and the numbers below it that are not
    recorded.
    """
    following = max(recorded, default=-1) + 1
    return {"next": following, "open": sorted(set(range(following)) - recorded)}


def recorded(path: Path, flows: set[int]) -> dict[int, set[int]]:
    """Returns the sequence numbers that have an S line in the records, by flow; empty sets without a file."""
    found: dict[int, set[int]] = {number: set() for number in flows}
    if not path.exists():
        return found
    with path.open(newline="") as lines:
        for fields in csv.reader(lines):
            if len(fields) > 2 and fields[0] == "S" and int(fields[1]) in found:
                found[int(fields[1])].add(int(fields[2]))
    return found
