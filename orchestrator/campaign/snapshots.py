"""The places of the snapshots of booted virtual machines that cells of a campaign share.

Snapshots last one sitting: they are removed at its end, and those of a killed campaign are not used.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from orchestrator.campaign.settings import Settings
from orchestrator.plan.build import make_plan
from orchestrator.topology import Cell, Topology

DIRECTORY = "snapshots"  # of the campaign's


@contextmanager
def snapshots(
    directory: Path, settings: Settings, cells: Sequence[Cell], boot: str
) -> Iterator[dict[int, Path]]:
    """The place for each cell (by its index) that has a machine in common with another one of `cells`.

    boot: `each` as the file says where no cell shall have one.
    """
    place = directory / DIRECTORY
    _remove(place)
    sharing = [] if boot == "each" else sharing_machines(settings, cells)
    if sharing:
        place.mkdir()
    try:
        yield dict.fromkeys(sharing, place)
    finally:
        _remove(place)


def sharing_machines(settings: Settings, cells: Sequence[Cell]) -> list[int]:
    """Indices of the cells that have an equal virtual machine in another cell."""
    topologies = {id(cell.loaded): cell.loaded for cell in cells}
    machines = {number: _machines(settings, topology) for number, topology in topologies.items()}
    seen = Counter(machine for cell in cells for machine in machines[id(cell.loaded)])
    return [cell.index for cell in cells if any(seen[m] > 1 for m in machines[id(cell.loaded)])]


def _machines(settings: Settings, topology: Topology) -> set[str]:
    """The identity of each virtual machine, as text: everything that determines it."""
    model = topology.model
    if all(machine.kind != "vm" for machine in (*model.nodes.values(), *model.groups.values())):
        return set()
    nodes = [node for node in make_plan(topology, settings.lab).nodes if node.vm is not None]
    return {f"{node.name} {node.vm} {[(i.mac, i.port) for i in node.interfaces]}" for node in nodes}


def _remove(place: Path) -> None:
    if place.exists():
        shutil.rmtree(place)
