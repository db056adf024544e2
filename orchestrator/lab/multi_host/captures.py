"""Controls a capture on another host and fetches its packets when it has ended."""

from __future__ import annotations

from pathlib import Path

from orchestrator.lab.clock import SECOND
from orchestrator.lab.loop import Loop
from orchestrator.lab.multi_host.files import Packets
from orchestrator.lab.multi_host.hostpart import HostPart, ask_all

STOP_NS = 30 * SECOND


class HostCapture:
    """A running capture on another host; it captures from the beginning, since the part answers only then."""

    listening = True

    def __init__(self, loop: Loop, part: HostPart, name: str, run_dir: Path, file: Path) -> None:
        self._loop, self._part, self._name, self._run_dir, self._file = loop, part, name, run_dir, file

    def stop(self) -> dict[str, int]:
        """Ends the capture, fetches its file, and returns its counts of packets and drops."""
        answer = ask_all(self._loop, "capture-stop", {self._part: {"name": self._name}}, STOP_NS)
        packets = Packets(self._file, self._part.clock.to_lab)
        try:
            self._part.fetch(str(self._file.relative_to(self._run_dir)), packets.take)
        finally:
            packets.close()
        counts: dict[str, int] = answer[self._part.name]["value"]
        return counts
