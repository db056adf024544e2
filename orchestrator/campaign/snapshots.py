"""Provides the directory where cells of a campaign share snapshots of booted virtual machines.

The directory exists during one execution of `vnet campaign run`: it is removed before, with what a killed
campaign left there, and afterwards.
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

DIRECTORY = "snapshots"  # in the campaign's directory


@contextmanager
def snapshots(
    directory: Path, settings: Settings, cells: Sequence[Cell], boot: str
) -> Iterator[dict[int, Path]]:
    """Makes the snapshot directory while the context lasts, and yields index -> that directory for each cell
    that has a virtual machine in common with another one of `cells`.

    boot: with `each`, no cell shares machines, and the mapping is empty.
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
    """Returns the indices of the cells with at least one virtual machine that is equal in another cell."""
    topologies = {id(cell.loaded): cell.loaded for cell in cells}
    machines = {number: _machines(settings, topology) for number, topology in topologies.items()}
    seen = Counter(machine for cell in cells for machine in machines[id(cell.loaded)])
    return [cell.index for cell in cells if any(seen[m] > 1 for m in machines[id(cell.loaded)])]


def _machines(settings: Settings, topology: Topology) -> set[str]:
    """Returns one text for each virtual machine of a topology. Equal machines have equal texts; the text has
    name, virtual hardware and image, MAC addresses and ports.
    """
    model = topology.model
    if all(machine.kind != "vm" for machine in (*model.nodes.values(), *model.groups.values())):
        return set()
    nodes = [node for node in make_plan(topology, settings.lab).nodes if node.vm is not None]
    return {f"{node.name} {node.vm} {[(i.mac, i.port) for i in node.interfaces]}" for node in nodes}


def _remove(place: Path) -> None:
    """Removes the directory with its contents; a link or a file in its place is removed, not followed."""
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.exists():
        shutil.rmtree(place)
