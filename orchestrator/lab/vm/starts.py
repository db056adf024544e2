"""How the machines of a lab came up, for its manifest: a reader of figures wants to know."""

from __future__ import annotations

from dataclasses import dataclass, field

BOOTED, KEPT, RESTORED = "booted", "kept", "restored"


@dataclass
class Starts:
    """`kept`: booted, saved and restored in this very run. Times are of all machines side by side."""

    nodes: dict[str, str] = field(default_factory=dict)
    boot_ns: int = 0
    save_ns: int = 0
    restore_ns: int = 0

    def add(self, more: Starts) -> None:
        """Those of nodes that came later."""
        self.nodes |= more.nodes
        self.boot_ns += more.boot_ns
        self.save_ns += more.save_ns
        self.restore_ns += more.restore_ns
