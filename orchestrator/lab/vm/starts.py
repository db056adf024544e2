"""Records how the machines of a lab started (booted, kept, restored), for its manifest."""

from __future__ import annotations

from dataclasses import dataclass, field

BOOTED, KEPT, RESTORED = "booted", "kept", "restored"


@dataclass
class Starts:
    """The way in which each machine of a lab started: booted, kept (booted, saved and restored in this run)
    or restored. Each time is that of all machines in parallel.
    """

    nodes: dict[str, str] = field(default_factory=dict)
    boot_ns: int = 0
    save_ns: int = 0
    restore_ns: int = 0

    def add(self, more: Starts) -> None:
        """Adds the starts of nodes that joined later; the times add up."""
        self.nodes |= more.nodes
        self.boot_ns += more.boot_ns
        self.save_ns += more.save_ns
        self.restore_ns += more.restore_ns
