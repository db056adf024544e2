"""Samples counters of machines (nodes.vm.csv), and of qdiscs inside bridge VMs (links.vm.csv), once
a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from contract.plan import Link
from orchestrator.lab.loop import Loop
from orchestrator.lab.vm.carry import LinkSampler
from orchestrator.lab.vm.counters import Sampler
from orchestrator.lab.vm.guest import Guest
from orchestrator.lab.vm.watch import Watch


class Sampling:
    """Samples `guests` and `links`, the lab's own tables, to which nodes and links are added and removed."""

    def __init__(
        self, loop: Loop, netns: str, guests: Mapping[str, Guest], links: Callable[[], Sequence[Link]],
        watch: Watch,
    ) -> None:  # fmt: skip
        self._loop, self._netns, self._guests, self._links, self._watch = loop, netns, guests, links, watch
        self._machines: Sampler | None = None
        self._qdiscs: LinkSampler | None = None

    def start(self, directory: Path, libvirt: Any) -> bool:
        """Starts sampling machines to nodes.vm.csv, and the bridge VMs that exist now to links.vm.csv;
        returns False and does nothing if it had been started before.
        """
        if self._machines is not None:
            return False
        clock = self._loop.clock
        file = directory / "nodes.vm.csv"
        self._machines = Sampler(file, self._netns, libvirt, clock, lambda: list(self._guests.values()))
        bridges = [g for g in self._guests.values() if g.node.vm and g.node.vm.netem]
        if bridges:
            file = directory / "links.vm.csv"
            self._qdiscs = LinkSampler(self._loop, file, lambda: bridges, self._links)
        return True

    def stop(self) -> None:
        """Stops sampling; warns if the machines' counters could not be read to the end."""
        if self._qdiscs is not None:
            self._qdiscs.stop()
        if self._machines is not None:
            self._machines.stop()
            if self._machines.failure:
                text = "CPU figures of virtual machines end early"
                self._watch.warn("samples", self._machines.failure, text)
        self._machines = self._qdiscs = None
