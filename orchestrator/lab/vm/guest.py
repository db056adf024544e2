"""Describes one virtual machine of a lab: its node, image, files, domain, channel to its agent, and state."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract.plan import Node
from orchestrator.images import Image
from orchestrator.lab.launcher import Launcher
from orchestrator.lab.operations import SoftwareState

CONSOLE_LINES = 8
_TAIL_BYTES = 4096
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]")
# Directory of the launcher's logs in the guest (docs/contracts.md).
GUEST_LOGS = "/run/vnet/logs"
GUEST_MESSAGES = "/run/vnet/messages.csv"
SILENT, PAUSED = "silent", "paused"  # first words of the states of a machine that runs and does not answer


@dataclass
class Guest:
    """One machine; `state` is defined, booting, agent up, running, stopped, or silent, paused or failed
    with ": reason".
    """

    node: Node
    image: Image
    directory: Path  # directory of the machine's sockets
    storage: Path  # directory of the machine's disk, seed and snapshots
    console_log: Path
    state: str = "defined"
    domain: Any = None
    channel: Launcher | None = None
    pid: int | None = None
    down: set[str] = field(default_factory=set)  # ports whose carrier is off
    # the last known states of programs, while the machine is off
    software: dict[str, SoftwareState] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)  # the guest's log files -> the run's log files
    # Snapshots by name, each with its files' sizes and times of change (store.stamps).
    snapshots: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def ready(self) -> bool:
        """Whether the machine's state is `agent up` or `running` and its channel is open, so that requests
        may be sent.
        """
        return self.state in ("agent up", "running") and self._has_channel

    @property
    def up(self) -> bool:
        """Whether the machine's state says that it runs: agent up, running, silent or paused."""
        return self.state in ("agent up", "running") or self.state.startswith((f"{SILENT}:", f"{PAUSED}:"))

    @property
    def silent(self) -> bool:
        return self.state.startswith(f"{SILENT}:")

    @property
    def connected(self) -> bool:
        """Whether the machine's state says that it runs and its channel is open, also if it is silent or
        paused.
        """
        return self.up and self._has_channel

    def unfit(self, op: str) -> str:
        """Returns the error text for a request `op` that the machine cannot take. The text names the
        machine's state, and the command with which the user boots the machine.
        """
        remedy = "`vnet restart` boots it again" if self.connected else "`vnet start` boots it"
        return f"nodes.{self.name}: {op}: it is {self.state}; {remedy}"

    @property
    def _has_channel(self) -> bool:
        return self.channel is not None and not self.channel.lost

    def last_words(self) -> str:
        """Returns the last 8 lines of the machine's console output, without control characters, for error
        texts; `nothing` if there are none.
        """
        try:
            with self.console_log.open("rb") as log:  # the log may fill its disk, so only its end is read
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
                tail = log.read(_TAIL_BYTES).decode(errors="replace")
        except FileNotFoundError:
            tail = ""
        lines = [line.strip() for line in _ESCAPES.sub("", tail).splitlines() if line.strip()]
        return " / ".join(lines[-CONSOLE_LINES:]) or "nothing"
